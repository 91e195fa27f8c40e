//! The open connections, by protocol.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use telemetry::{Kind, MetricsSource, Page, Registry};

/// The name of this front end in the registry.
pub(crate) const API: &str = "nosql";
const MONGO_API: &str = "mongodb";

/// How many connections are open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpenConnections {
    /// The number of the NoSQL API by HTTP, or by a protocol that is not known yet.
    pub http: u64,
    /// The number of the NoSQL API in direct mode.
    pub direct: u64,
    /// The number of the MongoDB API.
    pub mongodb: u64,
}

/// Counts the open connections.
#[derive(Debug)]
pub struct Connections {
    registry: Arc<Registry>,
    direct: Arc<DirectConnections>,
}

/// The number of connections in direct mode.
#[derive(Debug, Default)]
struct DirectConnections(AtomicU64);

/// A connection in direct mode, counted until this is dropped.
pub(crate) struct DirectConnection(Arc<DirectConnections>);

impl Connections {
    pub(crate) fn new(registry: &Arc<Registry>) -> Connections {
        let direct = Arc::<DirectConnections>::default();
        registry.add_source(Arc::downgrade(&direct) as _);
        Connections { registry: Arc::clone(registry), direct }
    }

    /// Counts a connection in direct mode until the result is dropped.
    pub(crate) fn in_direct_mode(&self) -> DirectConnection {
        self.direct.0.fetch_add(1, Ordering::Relaxed);
        DirectConnection(Arc::clone(&self.direct))
    }

    /// Returns how many connections are open now.
    pub fn open(&self) -> OpenConnections {
        let direct = self.direct.0.load(Ordering::Relaxed);
        OpenConnections {
            http: self.registry.connections_open(API).saturating_sub(direct),
            direct,
            mongodb: self.registry.connections_open(MONGO_API),
        }
    }
}

impl MetricsSource for DirectConnections {
    fn write(&self, page: &mut Page) {
        page.plain(
            "bolide_direct_connections_open",
            Kind::Gauge,
            "Open connections in direct mode, which are among those of the NoSQL API.",
            self.0.load(Ordering::Relaxed),
        );
    }
}

impl Drop for DirectConnection {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_counted_under_the_protocol_that_it_speaks() {
        let registry = Arc::new(Registry::default());
        let connections = Connections::new(&registry);
        assert_eq!(connections.open(), OpenConnections::default());
        let (nosql, mongo) = (registry.register(API, []), registry.register(MONGO_API, []));
        let (one, _two, _three) = (nosql.connected(), nosql.connected(), mongo.connected());
        let direct = connections.in_direct_mode();
        assert_eq!(connections.open(), OpenConnections { http: 1, direct: 1, mongodb: 1 });
        drop((direct, one));
        assert_eq!(connections.open(), OpenConnections { http: 1, direct: 0, mongodb: 1 });
    }
}

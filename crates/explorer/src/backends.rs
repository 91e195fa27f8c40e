//! The interfaces that the server provides to the explorer: the transport of a request, the MongoDB front end, and the number
//! of open connections.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use account::{AuthenticatedKey, Keyring};
use bson::{Document, RawDocument};
use engine::Engine;

/// The transport of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// Unencrypted.
    Plain,
    /// TLS: its cookie is sent only over TLS.
    Tls,
}

/// The answer to a MongoDB command.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The whole answer, as a driver would receive it.
    pub document: RawDocument,
    /// The charge.
    pub request_units: f64,
}

/// The MongoDB front end. Commands run with the rights of a key.
pub trait Shell: Send + Sync {
    /// Runs a command.
    fn run<'a>(
        &'a self,
        owner: &'a AuthenticatedKey,
        database: &'a str,
        command: &'a Document,
    ) -> Pin<Box<dyn Future<Output = Reply> + Send + 'a>>;
}

/// How many connections are open, by protocol.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpenConnections {
    /// Of the NoSQL API by HTTP, the explorer's own among them.
    pub http: u64,
    /// Of the NoSQL API in direct mode.
    pub direct: u64,
    /// Of the MongoDB API.
    pub mongodb: u64,
}

/// A function that returns how many connections are open now.
pub type OpenConnectionsCount = Arc<dyn Fn() -> OpenConnections + Send + Sync>;

/// The backends of the explorer.
#[derive(Clone)]
pub struct Backends {
    /// The engine.
    pub engine: Arc<Engine>,
    /// The account's keys.
    pub keys: Keyring,
    /// The MongoDB front end; without it collections are read-only.
    pub shell: Option<Arc<dyn Shell>>,
    /// Counts the open connections.
    pub connections: OpenConnectionsCount,
}

/// An extension of answers whose bytes are shared by all visitors: they use no memory of their own.
#[derive(Debug, Clone, Copy)]
pub struct SharedFile;

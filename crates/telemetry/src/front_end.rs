//! The traffic of one front end: what its operations came to, its connections, its bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::buckets::{Buckets, Snapshot};
use crate::outcome::Outcome;

/// What operations are called that are none of those that the front end has.
const UNKNOWN: &str = "unknown";

/// An operation of a front end: its position in the list of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperationId(pub usize);

impl OperationId {
    /// What is none of the front end's operations.
    pub const UNKNOWN: OperationId = OperationId(usize::MAX);
}

/// How a request ended.
#[derive(Debug, Clone, Copy)]
pub struct Ending {
    /// What it came to.
    pub outcome: Outcome,
    /// How long the server took, without waiting for the client.
    pub duration: Duration,
    /// Request units, in hundredths.
    pub charge_hundredths: u64,
}

/// The figures of one front end.
#[derive(Debug)]
pub struct FrontEnd {
    api: &'static str,
    /// One for each name; the last is for what is unknown.
    operations: Box<[Figures]>,
    connections_opened: AtomicU64,
    connections_closed: AtomicU64,
    connections_refused: AtomicU64,
    received_bytes: AtomicU64,
    sent_bytes: AtomicU64,
    slow: AtomicU64,
}

/// The figures of one operation.
#[derive(Debug)]
pub(crate) struct Figures {
    pub(crate) name: &'static str,
    outcomes: [AtomicU64; Outcome::ALL.len()],
    durations: Buckets,
    charge_hundredths: AtomicU64,
}

impl FrontEnd {
    pub(crate) fn new(api: &'static str, names: impl IntoIterator<Item = &'static str>) -> FrontEnd {
        let names: Vec<&str> = names.into_iter().chain([UNKNOWN]).collect();
        for (position, name) in names.iter().enumerate() {
            assert!(!names[..position].contains(name), "two operations of {api} are called {name}");
        }
        FrontEnd {
            api,
            operations: names.into_iter().map(Figures::new).collect(),
            connections_opened: AtomicU64::new(0),
            connections_closed: AtomicU64::new(0),
            connections_refused: AtomicU64::new(0),
            received_bytes: AtomicU64::new(0),
            sent_bytes: AtomicU64::new(0),
            slow: AtomicU64::new(0),
        }
    }

    /// The name of the protocol.
    pub fn api(&self) -> &'static str {
        self.api
    }

    /// The name of an operation.
    pub fn name(&self, operation: OperationId) -> &'static str {
        self.figures(operation).name
    }

    /// Counts a request that has ended.
    pub fn record(&self, operation: OperationId, ending: &Ending) {
        let figures = self.figures(operation);
        figures.outcomes[ending.outcome as usize].fetch_add(1, Ordering::Relaxed);
        figures.durations.add(ending.duration);
        figures.charge_hundredths.fetch_add(ending.charge_hundredths, Ordering::Relaxed);
    }

    fn figures(&self, operation: OperationId) -> &Figures {
        let unknown = self.operations.len() - 1;
        &self.operations[operation.0.min(unknown)]
    }

    /// Counts a connection for as long as what this returns lives.
    pub fn connected(self: &Arc<Self>) -> Connected {
        self.connections_opened.fetch_add(1, Ordering::Relaxed);
        Connected(Arc::clone(self))
    }

    /// Counts a connection that was closed because there are too many.
    pub fn refused_connection(&self) {
        self.connections_refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts bytes that came from clients.
    pub fn received(&self, bytes: usize) {
        self.received_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Counts bytes that went to clients.
    pub fn sent(&self, bytes: usize) {
        self.sent_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Connections since the start.
    pub fn connections_opened(&self) -> u64 {
        self.connections_opened.load(Ordering::Relaxed)
    }

    /// Connections that are open.
    pub fn connections_open(&self) -> u64 {
        // Closed first: whoever closes between the two looks is then still counted as open, and never twice as closed.
        let closed = self.connections_closed.load(Ordering::Relaxed);
        self.connections_opened().saturating_sub(closed)
    }

    /// Bytes that came from clients.
    pub fn received_bytes(&self) -> u64 {
        self.received_bytes.load(Ordering::Relaxed)
    }

    /// Bytes that went to clients.
    pub fn sent_bytes(&self) -> u64 {
        self.sent_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn connections_refused(&self) -> u64 {
        self.connections_refused.load(Ordering::Relaxed)
    }

    pub(crate) fn count_slow(&self) {
        self.slow.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn slow(&self) -> u64 {
        self.slow.load(Ordering::Relaxed)
    }

    /// The operations that have ever been asked for.
    pub(crate) fn used(&self) -> impl Iterator<Item = &Figures> {
        self.operations.iter().filter(|figures| figures.outcomes().next().is_some())
    }
}

impl Figures {
    fn new(name: &'static str) -> Figures {
        Figures {
            name,
            outcomes: std::array::from_fn(|_| AtomicU64::new(0)),
            durations: Buckets::default(),
            charge_hundredths: AtomicU64::new(0),
        }
    }

    /// The outcomes that there were, and how often.
    pub(crate) fn outcomes(&self) -> impl Iterator<Item = (Outcome, u64)> {
        let counts = self.outcomes.iter().map(|count| count.load(Ordering::Relaxed));
        Outcome::ALL.into_iter().zip(counts).filter(|(_, count)| *count > 0)
    }

    pub(crate) fn durations(&self) -> Snapshot {
        self.durations.snapshot()
    }

    pub(crate) fn charge_hundredths(&self) -> u64 {
        self.charge_hundredths.load(Ordering::Relaxed)
    }
}

/// An open connection in the figures.
#[derive(Debug)]
pub struct Connected(Arc<FrontEnd>);

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.connections_closed.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unknown_has_one_place() {
        let front_end = FrontEnd::new("api", ["a", "b"]);
        let ending = Ending { outcome: Outcome::Invalid, duration: Duration::ZERO, charge_hundredths: 7 };
        for operation in [OperationId(2), OperationId(3), OperationId::UNKNOWN, OperationId(1)] {
            front_end.record(operation, &ending);
        }
        let used: Vec<_> =
            front_end.used().map(|figures| (figures.name, figures.charge_hundredths())).collect();
        assert_eq!(used, [("b", 7), (UNKNOWN, 21)]);
        assert_eq!(front_end.name(OperationId(0)), "a");
    }

    #[test]
    #[should_panic(expected = "two operations")]
    fn names_do_not_come_twice() {
        FrontEnd::new("api", ["a", "b", "a"]);
    }

    #[test]
    fn a_connection_is_open_until_it_is_dropped() {
        let front_end = Arc::new(FrontEnd::new("api", []));
        let (one, two) = (front_end.connected(), front_end.connected());
        assert_eq!((front_end.connections_open(), front_end.connections_opened()), (2, 2));
        drop((one, two));
        assert_eq!((front_end.connections_open(), front_end.connections_opened()), (0, 2));
    }
}

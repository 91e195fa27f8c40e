//! The traffic of one front end: the outcomes of its operations, its connections, its bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::buckets::{Buckets, Snapshot};
use crate::outcome::Outcome;

/// The name of operations that the front end does not know.
const UNKNOWN: &str = "unknown";

/// An operation of a front end: its position in the list of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperationId(pub usize);

impl OperationId {
    /// An operation that the front end does not know.
    pub const UNKNOWN: OperationId = OperationId(usize::MAX);
}

/// The summary of a finished request.
#[derive(Debug, Clone, Copy)]
pub struct RequestSummary {
    /// The outcome.
    pub outcome: Outcome,
    /// How long the server took, without waiting for the client.
    pub duration: Duration,
    /// Request units, in hundredths.
    pub charge_hundredths: u64,
}

/// The metrics of one front end.
#[derive(Debug)]
pub struct FrontEnd {
    api: &'static str,
    /// One for each name; the last is for unknown operations.
    operations: Box<[OperationMetrics]>,
    connections_opened: AtomicU64,
    connections_closed: AtomicU64,
    connections_refused: AtomicU64,
    received_bytes: AtomicU64,
    sent_bytes: AtomicU64,
    slow: AtomicU64,
}

/// The metrics of one operation.
#[derive(Debug)]
pub(crate) struct OperationMetrics {
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
            operations: names.into_iter().map(OperationMetrics::new).collect(),
            connections_opened: AtomicU64::new(0),
            connections_closed: AtomicU64::new(0),
            connections_refused: AtomicU64::new(0),
            received_bytes: AtomicU64::new(0),
            sent_bytes: AtomicU64::new(0),
            slow: AtomicU64::new(0),
        }
    }

    /// Returns the name of the protocol.
    pub fn api(&self) -> &'static str {
        self.api
    }

    /// Returns the name of an operation.
    pub fn name(&self, operation: OperationId) -> &'static str {
        self.operation_metrics(operation).name
    }

    /// Counts a finished request.
    pub fn record(&self, operation: OperationId, summary: &RequestSummary) {
        let operation_metrics = self.operation_metrics(operation);
        operation_metrics.outcomes[summary.outcome as usize].fetch_add(1, Ordering::Relaxed);
        operation_metrics.durations.add(summary.duration);
        operation_metrics.charge_hundredths.fetch_add(summary.charge_hundredths, Ordering::Relaxed);
    }

    fn operation_metrics(&self, operation: OperationId) -> &OperationMetrics {
        let unknown = self.operations.len() - 1;
        &self.operations[operation.0.min(unknown)]
    }

    /// Counts a connection until the result is dropped.
    pub fn connected(self: &Arc<Self>) -> OpenConnection {
        self.connections_opened.fetch_add(1, Ordering::Relaxed);
        OpenConnection(Arc::clone(self))
    }

    /// Counts a connection that was closed because there were too many.
    pub fn refused_connection(&self) {
        self.connections_refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts bytes received from clients.
    pub fn received(&self, bytes: usize) {
        self.received_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Counts bytes sent to clients.
    pub fn sent(&self, bytes: usize) {
        self.sent_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Returns the number of connections since the start.
    pub fn connections_opened(&self) -> u64 {
        self.connections_opened.load(Ordering::Relaxed)
    }

    /// Returns the number of open connections.
    pub fn connections_open(&self) -> u64 {
        // Closed first: a connection that closes between the two loads is then still counted as open, and never twice
        // as closed.
        let closed = self.connections_closed.load(Ordering::Relaxed);
        self.connections_opened().saturating_sub(closed)
    }

    /// Returns the bytes received from clients.
    pub fn received_bytes(&self) -> u64 {
        self.received_bytes.load(Ordering::Relaxed)
    }

    /// Returns the bytes sent to clients.
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

    /// Returns the operations requested at least once.
    pub(crate) fn used(&self) -> impl Iterator<Item = &OperationMetrics> {
        self.operations.iter().filter(|operation_metrics| operation_metrics.outcomes().next().is_some())
    }
}

impl OperationMetrics {
    fn new(name: &'static str) -> OperationMetrics {
        OperationMetrics {
            name,
            outcomes: std::array::from_fn(|_| AtomicU64::new(0)),
            durations: Buckets::default(),
            charge_hundredths: AtomicU64::new(0),
        }
    }

    /// Returns the outcomes that occurred, and how often.
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

/// An open connection, counted until it is dropped.
#[derive(Debug)]
pub struct OpenConnection(Arc<FrontEnd>);

impl Drop for OpenConnection {
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
        let summary =
            RequestSummary { outcome: Outcome::Invalid, duration: Duration::ZERO, charge_hundredths: 7 };
        for operation in [OperationId(2), OperationId(3), OperationId::UNKNOWN, OperationId(1)] {
            front_end.record(operation, &summary);
        }
        let used: Vec<_> = front_end
            .used()
            .map(|operation_metrics| (operation_metrics.name, operation_metrics.charge_hundredths()))
            .collect();
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

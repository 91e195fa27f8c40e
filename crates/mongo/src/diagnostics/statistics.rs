//! Figures of the front end since it started that are for `serverStatus` alone. Those that metrics show as well are in
//! `service::metrics`.

use std::sync::atomic::{AtomicU64, Ordering};

use bson::Document;

use super::operation_kind::OperationKind;

/// A figure that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed).try_into().unwrap_or(i64::MAX)
    }
}

/// All figures.
#[derive(Debug, Default)]
pub(crate) struct Statistics {
    pub(crate) requests: Counter,
    pub(crate) documents_returned: Counter,
    pub(crate) documents_inserted: Counter,
    pub(crate) documents_updated: Counter,
    pub(crate) documents_deleted: Counter,
    pub(crate) cursors_opened: Counter,
    operations: [Counter; 6],
}

impl Statistics {
    /// Counts operations of a kind.
    pub(crate) fn count(&self, kind: OperationKind, count: u64) {
        self.operations[kind as usize].add(count);
    }

    /// `opcounters` of `serverStatus`.
    pub(crate) fn opcounters(&self) -> Document {
        let count = |kind: OperationKind| (kind.in_counters(), self.operations[kind as usize].get());
        OperationKind::ALL.into_iter().map(count).collect()
    }
}

//! Figures of the front end since it started that are for `serverStatus` alone. Those that metrics tell as well are in
//! `record`.

use std::sync::atomic::{AtomicU64, Ordering};

use bson::Document;

/// What `opcounters` tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Insert,
    Query,
    Update,
    Delete,
    GetMore,
    Command,
}

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
    pub(crate) fn count(&self, kind: Kind, count: u64) {
        self.operations[kind as usize].add(count);
    }

    /// `opcounters` of `serverStatus`.
    pub(crate) fn opcounters(&self) -> Document {
        let names = ["insert", "query", "update", "delete", "getmore", "command"];
        names.into_iter().zip(&self.operations).map(|(name, counter)| (name, counter.get())).collect()
    }
}

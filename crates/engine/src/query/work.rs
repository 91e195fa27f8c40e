//! The work of a request: it ends a page at its limit, counts for the metrics, and checks whether the client still waits.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::tuning::Tuning;
use crate::types::error::{Error, Result};

/// The work between two looks at the cancel flag, in entries.
const WORK_BETWEEN_LOOKS: u64 = 256;
/// This many bytes of an item take about as long as an entry.
const BYTES_LIKE_AN_ENTRY: u64 = 256;

/// The work of one request.
#[derive(Debug)]
pub(super) struct Work {
    /// The limits between small and large amounts.
    pub(super) tuning: Tuning,
    cancel: Arc<AtomicBool>,
    /// Entries read, living or expired.
    looked_at: Cell<usize>,
    /// A page ends after this many.
    limit: Cell<usize>,
    /// Living index entries that were read.
    index_entries: Cell<u64>,
    /// The work that may still be done before the request is given up.
    budget: Cell<u64>,
}

impl Work {
    pub(super) fn new(cancel: Arc<AtomicBool>, tuning: Tuning) -> Work {
        let (looked_at, index_entries) = (Cell::new(0), Cell::new(0));
        let budget = Cell::new(tuning.work_max);
        Work { tuning, cancel, looked_at, limit: Cell::new(usize::MAX), index_entries, budget }
    }

    /// Lets the page end once it has read its limit of entries, with the rows that it has by then.
    pub(super) fn end_in_time(&self) {
        self.limit.set(self.tuning.page_entries);
    }

    /// Counts an entry, living or expired.
    pub(super) fn look(&self) -> Result<()> {
        let looked_at = self.looked_at.get() + 1;
        self.looked_at.set(looked_at);
        self.spend(1)
    }

    /// Ends a request whose client has left. One that may take long yields its processor to waiting threads, which
    /// would have to wait until the system's next tick.
    fn pause(&self) -> Result<()> {
        if self.cancel.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        if !self.tuning.is_brief() {
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Counts an item that was loaded.
    pub(super) fn load(&self, bytes: u64) -> Result<()> {
        self.spend(1 + bytes / BYTES_LIKE_AN_ENTRY)
    }

    fn spend(&self, amount: u64) -> Result<()> {
        let before = self.budget.get();
        let left = before.checked_sub(amount).ok_or(Error::Cancelled)?;
        self.budget.set(left);
        if before / WORK_BETWEEN_LOOKS == left / WORK_BETWEEN_LOOKS { Ok(()) } else { self.pause() }
    }

    /// Counts a living index entry for the metrics.
    pub(super) fn count_entry(&self) {
        self.index_entries.set(self.index_entries.get() + 1);
    }

    /// Returns whether the page must end here.
    pub(super) fn is_spent(&self) -> bool {
        self.looked_at.get() >= self.limit.get()
    }

    /// Returns the living index entries so far.
    pub(super) fn index_entries(&self) -> u64 {
        self.index_entries.get()
    }

    /// Does work that neither ends the page nor shows in its metrics, such as estimating.
    pub(super) fn aside<T>(&self, act: impl FnOnce(&Work) -> T) -> T {
        let (looked_at, index_entries, limit) =
            (self.looked_at.get(), self.index_entries.get(), self.limit.get());
        self.looked_at.set(0);
        self.limit.set(self.tuning.page_entries);
        let answer = act(self);
        self.looked_at.set(looked_at);
        self.index_entries.set(index_entries);
        self.limit.set(limit);
        answer
    }
}

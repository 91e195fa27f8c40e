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
    /// Items that the chosen plan will load, as far as they were counted, until the first of them was loaded.
    expected: Cell<u64>,
}

impl Work {
    pub(super) fn new(cancel: Arc<AtomicBool>, tuning: Tuning) -> Work {
        let (looked_at, index_entries) = (Cell::new(0), Cell::new(0));
        let (budget, expected) = (Cell::new(tuning.work_max), Cell::new(0));
        Work { tuning, cancel, looked_at, limit: Cell::new(usize::MAX), index_entries, budget, expected }
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

    /// Notes that all of these items will be loaded. If they cost more than the request may do, it is given up with the
    /// first of them instead of the last one that it can afford: a brief request is then carried out again without a limit.
    pub(super) fn expect_loads(&self, items: usize) {
        self.expected.set(items as u64);
    }

    /// Counts an item that was loaded.
    pub(super) fn load(&self, bytes: u64) -> Result<()> {
        let cost = 1 + bytes / BYTES_LIKE_AN_ENTRY;
        if cost.saturating_mul(self.expected.take()) > self.budget.get() {
            return Err(Error::Cancelled);
        }
        self.spend(cost)
    }

    fn spend(&self, amount: u64) -> Result<()> {
        let before = self.budget.get();
        let left = before.checked_sub(amount).ok_or(Error::Cancelled)?;
        self.budget.set(left);
        if before / WORK_BETWEEN_LOOKS == left / WORK_BETWEEN_LOOKS { Ok(()) } else { self.pause() }
    }

    /// Counts a living index entry for the metrics.
    pub(super) fn count_entry(&self) {
        self.count_entries(1);
    }

    /// Counts living index entries for the metrics.
    pub(super) fn count_entries(&self, count: usize) {
        self.index_entries.set(self.index_entries.get() + count as u64);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn work(tuning: Tuning) -> Work {
        Work::new(Arc::default(), tuning)
    }

    #[test]
    fn a_brief_request_that_expects_more_items_than_it_may_load_ends_with_the_first() {
        let item = 3 * BYTES_LIKE_AN_ENTRY;
        let affordable = usize::try_from(Tuning::brief().work_max / 4).expect("small");
        for (expected, is_affordable) in [(0, true), (1, true), (affordable, true), (affordable + 1, false)] {
            let work = work(Tuning::brief());
            work.expect_loads(expected);
            assert_eq!(work.load(item).is_ok(), is_affordable, "{expected}");
        }
        let work = work(Tuning::brief());
        work.expect_loads(affordable);
        assert!((0..affordable).all(|_| work.load(item).is_ok()));
        assert!(matches!(work.load(item), Err(Error::Cancelled)));
    }

    #[test]
    fn a_request_without_a_limit_loads_all_that_it_expects() {
        let work = work(Tuning::default());
        work.expect_loads(usize::MAX);
        assert!(work.load(u64::MAX / 4).is_ok());
    }
}

//! How much a request has done: what ends a page, what the figures count, and whether anybody still waits for it.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::tuning::Tuning;
use crate::error::{Error, Result};

/// Entries between two looks at the flag.
const LOOKS_BETWEEN: usize = 256;
/// So many bytes of an item take about as long as an entry.
const BYTES_LIKE_AN_ENTRY: u64 = 256;

/// The work of one request.
#[derive(Debug)]
pub(super) struct Work {
    /// What is few and what is many.
    pub(super) tuning: Tuning,
    cancel: Arc<AtomicBool>,
    /// Entries looked at, dead or alive.
    looked_at: Cell<usize>,
    /// A page ends after so many.
    limit: Cell<usize>,
    /// Living index entries that a walk came by.
    touched: Cell<u64>,
    /// What may still be done before the request is given up.
    patience: Cell<u64>,
}

impl Work {
    pub(super) fn new(cancel: Arc<AtomicBool>, tuning: Tuning) -> Work {
        let (looked_at, touched) = (Cell::new(0), Cell::new(0));
        let patience = Cell::new(tuning.patience);
        Work { tuning, cancel, looked_at, limit: Cell::new(usize::MAX), touched, patience }
    }

    /// Lets the page end where it has looked at enough, with what it has by then.
    pub(super) fn end_in_time(&self) {
        self.limit.set(self.tuning.page_entries);
    }

    /// Counts an entry, dead or alive.
    pub(super) fn look(&self) -> Result<()> {
        let looked_at = self.looked_at.get() + 1;
        self.looked_at.set(looked_at);
        if looked_at.is_multiple_of(LOOKS_BETWEEN) && self.cancel.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        self.spend(1)
    }

    /// Counts an item that was loaded.
    pub(super) fn load(&self, bytes: u64) -> Result<()> {
        self.spend(1 + bytes / BYTES_LIKE_AN_ENTRY)
    }

    fn spend(&self, patience: u64) -> Result<()> {
        let left = self.patience.get().checked_sub(patience).ok_or(Error::Cancelled)?;
        self.patience.set(left);
        Ok(())
    }

    /// Counts a living index entry for the figures.
    pub(super) fn touch(&self) {
        self.touched.set(self.touched.get() + 1);
    }

    /// Whether the page must end where it stands.
    pub(super) fn is_spent(&self) -> bool {
        self.looked_at.get() >= self.limit.get()
    }

    /// The living index entries so far.
    pub(super) fn touched(&self) -> u64 {
        self.touched.get()
    }

    /// Does something that neither ends the page nor shows in its figures, such as estimating.
    pub(super) fn aside<T>(&self, act: impl FnOnce(&Work) -> T) -> T {
        let (looked_at, touched, limit) = (self.looked_at.get(), self.touched.get(), self.limit.get());
        self.looked_at.set(0);
        self.limit.set(self.tuning.page_entries);
        let answer = act(self);
        self.looked_at.set(looked_at);
        self.touched.set(touched);
        self.limit.set(limit);
        answer
    }
}

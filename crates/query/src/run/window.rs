//! `OFFSET`, `LIMIT` and `TOP` over any number of pages: the rows still to skip, and those still to return.

use super::{PageLimits, Resume};
use crate::logical::Query;

/// The position of the passing rows in the query's window, and the rest of the page.
#[derive(Debug)]
pub(super) struct Window {
    /// Rows that have passed so far, on this page and those before, returned or left out.
    passed: u64,
    skip: u64,
    take: u64,
    room: PageLimits,
}

/// The disposition of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowAction {
    /// It lies before the window.
    Skipped,
    /// It belongs on the page.
    Returned,
    /// It belongs on a later page.
    PageIsFull,
    /// It lies behind the window, and so does every later one.
    WindowIsFull,
}

impl Window {
    pub(super) fn new(query: &Query, resume: &Resume, limits: PageLimits) -> Window {
        Window {
            passed: resume.passed,
            skip: query.skip,
            take: query.take.unwrap_or(u64::MAX),
            room: PageLimits { rows: limits.rows.max(1), bytes: limits.bytes.max(1) },
        }
    }

    /// Returns the disposition of the next row.
    pub(super) fn next(&self) -> RowAction {
        if self.is_full() {
            RowAction::WindowIsFull
        } else if self.passed < self.skip {
            RowAction::Skipped
        } else if self.room.rows == 0 || self.room.bytes == 0 {
            RowAction::PageIsFull
        } else {
            RowAction::Returned
        }
    }

    /// Lets the next row pass; `bytes` is what it adds to the page.
    pub(super) fn pass(&mut self, bytes: usize) {
        if self.passed >= self.skip {
            self.room.rows = self.room.rows.saturating_sub(1);
            self.room.bytes = self.room.bytes.saturating_sub(bytes);
        }
        self.passed = self.passed.saturating_add(1);
    }

    /// Returns `true` if no further row can be shown, on any page.
    pub(super) fn is_full(&self) -> bool {
        self.passed.saturating_sub(self.skip) >= self.take
    }

    /// Returns how many more rows could matter to this page: those to leave out, those to return, and one that shows whether
    /// there is more.
    pub(super) fn wanted(&self) -> usize {
        let left_out = self.skip.saturating_sub(self.passed);
        let left_to_show = self.take.saturating_sub(self.passed.saturating_sub(self.skip));
        let shown = left_to_show.min((self.room.rows as u64).saturating_add(1));
        usize::try_from(left_out.saturating_add(shown)).unwrap_or(usize::MAX)
    }

    pub(super) fn passed(&self) -> u64 {
        self.passed
    }
}

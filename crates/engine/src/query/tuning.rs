//! The numbers that a query's choices turn on. Answers do not depend on them, which is tested with other numbers.

use crate::limits::PAGE_ENTRIES_MAX;

/// What is few and what is many.
#[derive(Debug, Clone)]
pub(crate) struct Tuning {
    /// Living entries that a probe counts; what has fewer is small.
    pub(crate) probe: usize,
    /// Entries that are counted at most to find out whether sorting what matches is cheaper than walking in order, and whether
    /// a count had better go by one part of its filter.
    pub(crate) sort_probe: usize,
    /// A page ends after so many entries, dead or alive.
    pub(crate) page_entries: usize,
    /// Lookups by (partition key, id) that are surely better than anything else.
    pub(crate) lookups: usize,
    /// Equalities of one path that are walked side by side; more of them are collected.
    pub(crate) streams: usize,
    /// Numbers of a range that are collected for one page,
    pub(crate) collected_for_page: usize,
    /// and for a query that is answered in one go.
    pub(crate) collected_for_all: usize,
    /// Shapes that are looked through for a kind at a path.
    pub(crate) shapes: usize,
    /// Shapes whose items are walked side by side.
    pub(crate) shape_streams: usize,
    /// Outliers that are looked at before a walk; with more of them there is none.
    pub(crate) outliers: usize,
    /// Items that an index cannot tell apart and that are put into order at once,
    pub(crate) group: usize,
    /// and the bytes of their sort keys.
    pub(crate) group_bytes: usize,
    /// What may be done before a request is given up, in entries.
    pub(crate) patience: u64,
    /// The same, in steps of evaluation.
    pub(crate) steps: Option<u64>,
}

impl Tuning {
    /// For a request that is to be answered at once or not at all: well under a millisecond.
    pub(crate) fn brief() -> Tuning {
        Tuning { patience: 1_000, steps: Some(10_000), ..Tuning::default() }
    }
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning {
            probe: 256,
            sort_probe: 20_000,
            page_entries: PAGE_ENTRIES_MAX,
            lookups: 256,
            streams: 64,
            collected_for_page: 10_000,
            collected_for_all: 1_000_000,
            shapes: 4096,
            shape_streams: 256,
            outliers: 100,
            group: 10_000,
            group_bytes: 16 << 20,
            patience: u64::MAX,
            steps: None,
        }
    }
}

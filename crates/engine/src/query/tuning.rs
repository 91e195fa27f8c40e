//! The numbers that a query's choices depend on. Answers do not depend on them, which is tested with other numbers.

use crate::types::limits::PAGE_ENTRIES_MAX;

/// The limits between small and large amounts.
#[derive(Debug, Clone)]
pub(crate) struct Tuning {
    /// Living entries that a probe counts; a part with fewer is small.
    pub(crate) probe: usize,
    /// The most entries that are counted to decide whether sorting the matching items is cheaper than reading in order,
    /// and whether a count should use one part of its filter.
    pub(crate) sort_probe: usize,
    /// A page ends after this many entries, living or expired.
    pub(crate) page_entries: usize,
    /// The number of lookups by (partition key, id) up to which they are always preferred.
    pub(crate) lookups: usize,
    /// Equalities of one path that are read as parallel streams; more of them are collected.
    pub(crate) streams: usize,
    /// Numbers of a range that are collected for one page,
    pub(crate) collected_for_page: usize,
    /// and for a query that is answered on one page.
    pub(crate) collected_for_all: usize,
    /// Shapes that are searched for a kind at a path.
    pub(crate) shapes: usize,
    /// Shapes whose items are read as parallel streams.
    pub(crate) shape_streams: usize,
    /// Outliers that are read before a cursor is opened; with more of them it is not.
    pub(crate) outliers: usize,
    /// Items that an index cannot distinguish and that are sorted at once,
    pub(crate) group: usize,
    /// and the bytes of their sort keys.
    pub(crate) group_bytes: usize,
    /// The work after which a request is given up, in entries.
    pub(crate) work_max: u64,
    /// The same, in steps of evaluation.
    pub(crate) steps: Option<u64>,
}

impl Tuning {
    /// Returns the numbers for a request that is answered at once or not at all: well under a millisecond.
    pub(crate) fn brief() -> Tuning {
        Tuning { work_max: 1_000, steps: Some(10_000), ..Tuning::default() }
    }

    /// Returns whether the request is answered at once or not at all.
    pub(crate) fn is_brief(&self) -> bool {
        self.steps.is_some()
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
            work_max: u64::MAX,
            steps: None,
        }
    }
}

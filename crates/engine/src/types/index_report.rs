//! The report of a step of building or clearing an index.

/// What one step did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IndexReport {
    /// Entries written or removed.
    pub entries: u64,
    /// Whether there is more to do.
    pub more: bool,
}

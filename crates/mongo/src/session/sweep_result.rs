//! The result of a background step for one kind of entry.

use tokio::time::Instant;

/// The result of a step for one kind of entry.
pub(crate) struct SweepResult<T> {
    /// The entries that have exceeded their lifetime. The caller drops them, outside of all locks.
    pub(crate) expired: Vec<T>,
    /// When the next of the remaining entries is due.
    pub(crate) next_due: Option<Instant>,
}

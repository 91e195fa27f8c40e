//! What a step of the background leaves of one kind of entry.

use tokio::time::Instant;

/// What one kind of entry is left with after a step.
pub(crate) struct SweepResult<T> {
    /// What has outlived its time. Dropped by the caller, outside of all locks.
    pub(crate) expired: Vec<T>,
    /// When the next of those that are left is due.
    pub(crate) next_due: Option<Instant>,
}

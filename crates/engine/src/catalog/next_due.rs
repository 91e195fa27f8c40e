//! When the purge visits a partition next.

use std::sync::atomic::{AtomicU64, Ordering};

use storage::Time;

/// When a partition is next due for a visit of the purge: milliseconds; 0 at once, the maximum never.
#[derive(Debug, Default)]
pub(crate) struct NextDue(AtomicU64);

impl NextDue {
    const NEVER: u64 = u64::MAX;

    /// Notes that an item in the partition expires at `due`.
    pub(crate) fn not_after(&self, due: Time) {
        self.0.fetch_min(due.millis(), Ordering::AcqRel);
    }

    /// Makes the partition due at once, because its policy has changed.
    pub(crate) fn at_once(&self) {
        self.0.store(0, Ordering::Release);
    }

    /// Returns whether the partition is due.
    pub(crate) fn is_due(&self, now: Time) -> bool {
        self.0.load(Ordering::Acquire) <= now.millis()
    }

    /// Returns `true` once if the partition is due. A due time that is set from then on is kept for the next visit.
    /// One that was set before belongs to a transaction that has run, and the sweep, which runs later, sees its
    /// writes.
    pub(crate) fn take(&self, now: Time) -> bool {
        self.0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |at| {
                (at <= now.millis()).then_some(Self::NEVER)
            })
            .is_ok()
    }

    pub(crate) fn get(&self) -> Option<Time> {
        let at = self.0.load(Ordering::Acquire);
        (at != Self::NEVER).then(|| Time::from_millis(at))
    }
}

//! Items that were removed from a partition and whose bytes may still be in files (T24).

use std::sync::atomic::{AtomicU64, Ordering};

use storage::Time;

/// When the items expired that were removed from a partition and may still be in files.
#[derive(Debug, Default)]
pub(crate) struct UnscrubbedRemovals {
    /// When the oldest of them expired, in milliseconds; 0 while that is unknown, since the store was opened.
    oldest: AtomicU64,
    /// When the newest removed item expired, in milliseconds.
    newest: AtomicU64,
    /// When the newest item expired that a scrub has removed from the files.
    scrubbed: AtomicU64,
    /// The expiry up to which misses were reported.
    told: AtomicU64,
}

/// The expiries of the oldest and the newest item that a scrub is about to remove from the files.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScrubbedRange {
    oldest: u64,
    newest: u64,
}

/// Removed items whose bytes may still be in files.
#[derive(Debug, Clone, Copy)]
pub(crate) enum UnscrubbedBytes {
    /// Items of before the start.
    Unknown,
    /// Items of which the oldest expired then.
    Since(Time),
}

impl UnscrubbedBytes {
    pub(crate) fn expiry_time(self) -> Option<Time> {
        match self {
            UnscrubbedBytes::Unknown => None,
            UnscrubbedBytes::Since(expiry) => Some(expiry),
        }
    }
}

impl UnscrubbedRemovals {
    const NOTHING: u64 = u64::MAX;

    /// Returns the state of a partition from which nothing was ever removed.
    pub(crate) fn nothing() -> UnscrubbedRemovals {
        UnscrubbedRemovals { oldest: AtomicU64::new(Self::NOTHING), ..UnscrubbedRemovals::default() }
    }

    /// Notes the removal of an item that expired then.
    pub(crate) fn note(&self, expiry: Time) {
        self.newest.fetch_max(expiry.millis(), Ordering::AcqRel);
        self.oldest.fetch_min(expiry.millis().max(1), Ordering::AcqRel);
    }

    pub(crate) fn oldest(&self) -> Option<UnscrubbedBytes> {
        match self.oldest.load(Ordering::Acquire) {
            Self::NOTHING => None,
            0 => Some(UnscrubbedBytes::Unknown),
            millis => Some(UnscrubbedBytes::Since(Time::from_millis(millis))),
        }
    }

    pub(crate) fn take(&self) -> ScrubbedRange {
        let oldest = self.oldest.swap(Self::NOTHING, Ordering::AcqRel);
        ScrubbedRange { oldest, newest: self.newest.load(Ordering::Acquire) }
    }

    pub(crate) fn give_back(&self, taken: ScrubbedRange) {
        self.oldest.fetch_min(taken.oldest, Ordering::AcqRel);
    }

    pub(crate) fn scrubbed(&self, taken: ScrubbedRange) {
        self.scrubbed.fetch_max(taken.newest, Ordering::AcqRel);
    }

    /// Returns whether a scrub has removed an item from the files that expired after that time.
    pub(crate) fn was_scrubbed_since(&self, time: Time) -> bool {
        self.scrubbed.load(Ordering::Acquire) > time.millis()
    }

    /// Returns whether the miss of an item that expired then is to be reported. Bounds pass in the order of expiries.
    pub(crate) fn miss(&self, expiry: Time) -> bool {
        self.told.fetch_max(expiry.millis().max(1), Ordering::AcqRel) < expiry.millis().max(1)
    }
}

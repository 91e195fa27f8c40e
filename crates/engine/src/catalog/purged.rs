//! What the purge has removed from a partition.

use std::sync::atomic::{AtomicU64, Ordering};

use storage::Time;

use crate::entries::counters::Tally;

/// What the purge has removed from one partition since the engine was opened.
#[derive(Debug, Default)]
pub(crate) struct Purged {
    items: AtomicU64,
    bytes: AtomicU64,
    /// Milliseconds; 0 if nothing was removed.
    last_pass: AtomicU64,
}

impl Purged {
    pub(crate) fn add(&self, items: u64, bytes: u64, now: Time) {
        if items > 0 {
            self.items.fetch_add(items, Ordering::Relaxed);
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
            self.last_pass.store(now.millis(), Ordering::Relaxed);
        }
    }

    pub(crate) fn get(&self) -> (Tally, Option<Time>) {
        let tally =
            Tally { items: self.items.load(Ordering::Relaxed), bytes: self.bytes.load(Ordering::Relaxed) };
        let last = self.last_pass.load(Ordering::Relaxed);
        (tally, (last > 0).then(|| Time::from_millis(last)))
    }
}

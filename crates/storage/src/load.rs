//! The load of the writer, from which background work derives the capacity that users leave.

use crate::Priority;
use crate::sync::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The writer's busy time since the store was opened. The difference between two readings gives the share of the time
/// that was idle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriterLoad {
    /// The time spent on jobs of normal priority, by their groups, from the first job to the last answer, syncs
    /// included.
    pub normal: Duration,
    /// The time spent on jobs of background priority.
    pub background: Duration,
    /// Whether compaction lags so far behind that the writer is throttled.
    pub compaction_lags: bool,
}

/// The counters behind [`WriterLoad`].
#[derive(Debug, Default)]
pub(crate) struct LoadMeter {
    normal_ns: AtomicU64,
    background_ns: AtomicU64,
}

impl LoadMeter {
    /// Adds the duration of a group of this priority.
    pub(crate) fn add(&self, priority: Priority, time: Duration) {
        let spent = match priority {
            Priority::Normal => &self.normal_ns,
            Priority::Background => &self.background_ns,
        };
        spent.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(crate) fn get(&self, compaction_lags: bool) -> WriterLoad {
        let time = |nanos: &AtomicU64| Duration::from_nanos(nanos.load(Ordering::Relaxed));
        WriterLoad { normal: time(&self.normal_ns), background: time(&self.background_ns), compaction_lags }
    }
}

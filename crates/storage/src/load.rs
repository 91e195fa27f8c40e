//! How busy the writer is: what background work looks at to find the capacity that users leave.

use crate::sync::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// What the writer has done since the store was opened. Two of these, a while apart, tell which share of the time was left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriterLoad {
    /// The time spent on jobs of normal priority: their groups from the first job to the last answer, syncs included.
    pub normal: Duration,
    /// The time spent on jobs of background priority.
    pub background: Duration,
    /// Whether merging tables lags so far behind that the writer slows down for it.
    pub merging_lags: bool,
}

/// The same as it grows.
#[derive(Debug, Default)]
pub(crate) struct LoadMeter {
    normal_ns: AtomicU64,
    background_ns: AtomicU64,
}

impl LoadMeter {
    pub(crate) fn add(&self, normal: Duration, background: Duration) {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.normal_ns.fetch_add(nanos(normal), Ordering::Relaxed);
        self.background_ns.fetch_add(nanos(background), Ordering::Relaxed);
    }

    pub(crate) fn get(&self, merging_lags: bool) -> WriterLoad {
        let time = |nanos: &AtomicU64| Duration::from_nanos(nanos.load(Ordering::Relaxed));
        WriterLoad { normal: time(&self.normal_ns), background: time(&self.background_ns), merging_lags }
    }
}

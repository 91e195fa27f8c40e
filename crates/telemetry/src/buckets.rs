//! Buckets of durations, for Prometheus histograms.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The upper bounds: as text for the label `le`, and in nanoseconds. A point read takes some ten microseconds, a large
/// query seconds; three bounds in each decade give quantiles to within a factor of two and a half.
pub(crate) const BOUNDS: [(&str, u64); 17] = [
    ("0.00005", 50_000),
    ("0.0001", 100_000),
    ("0.00025", 250_000),
    ("0.0005", 500_000),
    ("0.001", 1_000_000),
    ("0.0025", 2_500_000),
    ("0.005", 5_000_000),
    ("0.01", 10_000_000),
    ("0.025", 25_000_000),
    ("0.05", 50_000_000),
    ("0.1", 100_000_000),
    ("0.25", 250_000_000),
    ("0.5", 500_000_000),
    ("1", 1_000_000_000),
    ("2.5", 2_500_000_000),
    ("5", 5_000_000_000),
    ("10", 10_000_000_000),
];

/// Counts of durations.
#[derive(Debug, Default)]
pub(crate) struct Buckets {
    /// The counts within each bound and above the previous one; the last is above all.
    counts: [AtomicU64; BOUNDS.len() + 1],
    sum_nanos: AtomicU64,
}

impl Buckets {
    pub(crate) fn add(&self, duration: Duration) {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let at = BOUNDS.partition_point(|(_, bound)| *bound < nanos);
        self.counts[at].fetch_add(1, Ordering::Relaxed);
        self.sum_nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    /// Returns the current counts. The total is the sum of the buckets read, so that a page is consistent however many
    /// additions go on.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let mut total = 0;
        let cumulative = self.counts.each_ref().map(|count| {
            total += count.load(Ordering::Relaxed);
            total
        });
        Snapshot { cumulative, sum: Duration::from_nanos(self.sum_nanos.load(Ordering::Relaxed)) }
    }
}

/// The counts at one point in time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Snapshot {
    /// The count within each bound; the last includes all.
    pub(crate) cumulative: [u64; BOUNDS.len() + 1],
    pub(crate) sum: Duration,
}

impl Snapshot {
    pub(crate) fn count(&self) -> u64 {
        self.cumulative[BOUNDS.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_numbers_of_the_bounds_agree_and_grow() {
        for (text, nanos) in BOUNDS {
            assert_eq!((text.parse::<f64>().unwrap() * 1e9).round() as u64, nanos);
        }
        assert!(BOUNDS.windows(2).all(|pair| pair[0].1 < pair[1].1));
    }

    #[test]
    fn a_duration_counts_in_every_bucket_that_it_fits_into() {
        let buckets = Buckets::default();
        for nanos in [1, 50_000, 50_001, 10_000_000_000, 10_000_000_001] {
            buckets.add(Duration::from_nanos(nanos));
        }
        let snapshot = buckets.snapshot();
        assert_eq!(snapshot.cumulative[0], 2, "a bound belongs to its bucket");
        assert_eq!(snapshot.cumulative[1], 3);
        assert_eq!(snapshot.cumulative[BOUNDS.len() - 1], 4);
        assert_eq!(snapshot.count(), 5);
        assert_eq!(snapshot.sum, Duration::from_nanos(20_000_100_003));
    }
}

//! Latencies in buckets whose width grows with the value: constant memory, no value off by more than 1.6 %.

use std::time::Duration;

/// Buckets between one power of two and the next.
const STEPS: usize = 64;
const STEP_BITS: u32 = STEPS.trailing_zeros();
/// Up to 2^40 ns, 18 minutes.
const POWERS: usize = 40;

#[derive(Clone)]
pub struct Histogram {
    buckets: Vec<u64>,
    count: u64,
    max_ns: u64,
    sum_ns: u128,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram { buckets: vec![0; STEPS * POWERS], count: 0, max_ns: 0, sum_ns: 0 }
    }
}

impl Histogram {
    pub fn add(&mut self, latency: Duration) {
        let ns = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.buckets[bucket(ns)] += 1;
        self.count += 1;
        self.sum_ns += u128::from(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    pub fn merge(&mut self, other: &Histogram) {
        for (mine, others) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine += others;
        }
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns a percentile in microseconds; 100 is the exact maximum.
    pub fn percentile(&self, percent: f64) -> f64 {
        let rank = (self.count as f64 * percent / 100.0).ceil().max(1.0) as u64;
        if rank >= self.count {
            return self.max_ns as f64 / 1e3;
        }
        let mut seen = 0;
        for (at, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return highest(at).min(self.max_ns) as f64 / 1e3;
            }
        }
        self.max_ns as f64 / 1e3
    }

    /// Returns the mean in microseconds.
    pub fn mean(&self) -> f64 {
        self.sum_ns as f64 / self.count.max(1) as f64 / 1e3
    }
}

/// Returns the bucket: values below `STEPS` have one each; above, the leading bits choose it.
fn bucket(ns: u64) -> usize {
    if ns < STEPS as u64 {
        return ns as usize;
    }
    let power = ns.ilog2() - STEP_BITS;
    let at = (power as usize + 1) * STEPS + ((ns >> power) as usize - STEPS);
    at.min(STEPS * POWERS - 1)
}

/// Returns the largest value of a bucket.
fn highest(bucket: usize) -> u64 {
    if bucket < STEPS {
        return bucket as u64;
    }
    let power = bucket / STEPS - 1;
    (((bucket % STEPS + STEPS) as u64 + 1) << power) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_found_again_within_two_percent() {
        for ns in (0..60).flat_map(|power| [1_u64 << power, (1 << power) + 1, (3 << power) / 2]) {
            if ns < 1 << 40 {
                let found = highest(bucket(ns));
                assert!(found >= ns && found as f64 <= ns as f64 * 1.016 + 1.0, "{ns} became {found}");
            }
        }
    }

    #[test]
    fn percentiles_of_a_known_series() {
        let mut histogram = Histogram::default();
        (1..=1000).for_each(|us| histogram.add(Duration::from_micros(us)));
        let close = |percent, us: f64| (histogram.percentile(percent) / us - 1.0).abs() < 0.017;
        assert!(close(50.0, 500.0) && close(99.0, 990.0) && close(99.9, 999.0));
        assert_eq!(histogram.percentile(100.0), 1000.0);
    }
}

//! The bounds of a steady stream.

use anyhow::{Result, ensure};

use super::run::{Run, Sample};

/// The bounds: the age of the oldest expired item,
const MAX_AGE_SECONDS: u64 = 30;
/// the expired items for each live one,
const MAX_BACKLOG: f64 = 2.0;
/// the bytes on disk for each live byte, and in any case,
const MAX_DISK: f64 = 4.0;
pub(super) const DISK_ALLOWANCE_BYTES: u64 = 256 << 20;
/// the writers' throughput and p99 latency as shares of those without a purge.
const MIN_THROUGHPUT: f64 = 0.85;
const MAX_P99: f64 = 1.3;

/// The smallest part of its seconds without other machines for which a run's throughput and latencies are judged.
const MIN_COUNTED: f64 = 0.25;

/// Returns `true` if enough of both runs counts to compare them.
pub fn is_comparable(paused: &Run, running: &Run) -> bool {
    paused.counted().min(running.counted()) >= MIN_COUNTED
}

/// Fails with every bound that a run misses, judged against a run without a purge.
pub fn judge(paused: &Run, running: &Run) -> Result<()> {
    ensure!(
        is_comparable(paused, running),
        "other machines took the processors in too many seconds to compare runs"
    );
    let throughput = running.per_second() / paused.per_second();
    let p99 = running.p99() / paused.p99();
    let (age, backlog) = (running.max_age(), running.worst(Sample::backlog));
    let disk = running.worst(Sample::disk);
    let wrong: Vec<String> = [
        (age > MAX_AGE_SECONDS).then(|| format!("the oldest waited {age} s, {MAX_AGE_SECONDS} are allowed")),
        (backlog > MAX_BACKLOG)
            .then(|| format!("{backlog:.2} expired for a living one, {MAX_BACKLOG} are allowed")),
        (disk > MAX_DISK).then(|| {
            format!("{disk:.2} bytes on disk for a living one beyond the allowance, {MAX_DISK} are allowed")
        }),
        (throughput < MIN_THROUGHPUT)
            .then(|| format!("throughput is {throughput:.2} of that without a purge, not {MIN_THROUGHPUT}")),
        (p99 > MAX_P99).then(|| format!("p99 is {p99:.2} of that without a purge, {MAX_P99} are allowed")),
    ]
    .into_iter()
    .flatten()
    .collect();
    ensure!(wrong.is_empty(), "{}", wrong.join("; "));
    Ok(())
}

/// Returns the comparison of a run with one without a purge.
pub fn compare(paused: &Run, running: &Run) -> String {
    format!(
        "throughput {:.2}, p50 {:.2}, p99 {:.2} of that without a purge",
        running.per_second() / paused.per_second(),
        running.latencies.percentile(50.0) / paused.latencies.percentile(50.0),
        running.p99() / paused.p99()
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::run::Sample;
    use super::*;
    use crate::histogram::Histogram;

    fn run_of(latency_ms: u64, count: u64, sample: Sample) -> Run {
        let mut latencies = Histogram::default();
        (0..count).for_each(|_| latencies.add(Duration::from_millis(latency_ms)));
        let samples = vec![Sample::default(), sample];
        Run { latencies, counted_seconds: 10.0, seconds: 10.0, samples, ..Run::default() }
    }

    #[test]
    fn each_bound_is_judged() {
        let good = Sample {
            living_items: 100,
            living_bytes: 1_000_000,
            backlog_items: 200,
            oldest_age_seconds: 30,
            disk_bytes: 4_000_000 + DISK_ALLOWANCE_BYTES,
            resident_kib: 0,
        };
        let paused = run_of(10, 1000, Sample::default());
        judge(&paused, &run_of(12, 860, good)).expect("all bounds hold");
        for (running, what) in [
            (run_of(12, 860, Sample { backlog_items: 201, ..good }), "2.01 expired for a living one"),
            (run_of(12, 860, Sample { oldest_age_seconds: 31, ..good }), "the oldest waited 31 s"),
            (run_of(12, 860, Sample { disk_bytes: good.disk_bytes + 20_000, ..good }), "4.02 bytes on disk"),
            (run_of(12, 840, good), "throughput is 0.84"),
            (run_of(14, 860, good), "p99 is 1.4"),
        ] {
            let error = judge(&paused, &running).expect_err(what).to_string();
            assert!(error.contains(what) && !error.contains(';'), "{error}");
        }
    }

    #[test]
    fn runs_of_which_too_little_counts_are_not_judged() {
        let (good, mut stolen) = (run_of(10, 1000, Sample::default()), run_of(10, 1000, Sample::default()));
        judge(&good, &good).expect("all bounds hold");
        stolen.counted_seconds = 0.0;
        assert!(judge(&good, &stolen).is_err() && judge(&stolen, &good).is_err());
    }

    #[test]
    fn runs_of_a_kind_are_judged_together() {
        let sample = Sample { oldest_age_seconds: 7, ..Sample::default() };
        let (mut slow, fast) = (run_of(20, 500, sample), run_of(10, 1500, Sample::default()));
        slow.seconds = 30.0;
        let both = slow.and(fast);
        assert_eq!((both.per_second(), both.max_age(), both.counted()), (100.0, 7, 0.5));
    }
}

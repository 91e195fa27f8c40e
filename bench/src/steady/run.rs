//! The figures of one run, sampled once a second.

use std::fmt;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::judge::DISK_ALLOWANCE_BYTES;
use super::load::Load;
use crate::client::{Answer, Client, Server};
use crate::histogram::Histogram;
use crate::processors::Ticks;

/// The store at one moment.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sample {
    pub(super) living_items: u64,
    pub(super) living_bytes: u64,
    pub(super) backlog_items: u64,
    pub(super) oldest_age_seconds: u64,
    pub(super) disk_bytes: u64,
    pub(super) resident_kib: u64,
}

impl Sample {
    /// Expired items for each live one.
    pub(super) fn backlog(&self) -> f64 {
        self.backlog_items as f64 / self.living_items.max(1) as f64
    }

    /// Bytes on disk beyond the allowance for each live one.
    pub(super) fn disk(&self) -> f64 {
        self.disk_bytes.saturating_sub(DISK_ALLOWANCE_BYTES) as f64 / self.living_bytes.max(1) as f64
    }
}

/// The figures of one run.
#[derive(Default)]
pub struct Run {
    /// Latencies in the seconds that count.
    pub(super) latencies: Histogram,
    /// Latencies of readers in the same seconds, by quarters of the run.
    pub(super) reads: [Histogram; 4],
    /// Reads that did not find their item.
    pub(super) misses: u64,
    pub(super) counted_seconds: f64,
    pub(super) seconds: f64,
    pub(super) samples: Vec<Sample>,
    /// Inserts of all seconds, and the seconds that the server took for them.
    pub(super) inserts: u64,
    pub(super) cpu: f64,
    pub(super) purged: u64,
}

/// What one quarter of a run shows.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Quarter {
    /// Bytes on disk for each byte of a living item.
    pub disk: f64,
    pub resident_mib: f64,
    /// The latency in microseconds that one of a hundred reads exceeds.
    pub read_p99_us: f64,
}

impl Run {
    pub(super) fn per_second(&self) -> f64 {
        self.latencies.count() as f64 / self.counted_seconds
    }

    pub(super) fn p99(&self) -> f64 {
        self.latencies.percentile(99.0)
    }

    pub(super) fn worst(&self, of: impl Fn(&Sample) -> f64) -> f64 {
        self.samples.iter().map(of).fold(0.0, f64::max)
    }

    /// Returns the part of its seconds in which other machines left the processors alone.
    pub fn counted(&self) -> f64 {
        self.counted_seconds / self.seconds
    }

    /// Returns the sum of this run and another of the same kind.
    pub(super) fn and(mut self, other: Run) -> Run {
        self.latencies.merge(&other.latencies);
        self.reads.iter_mut().zip(&other.reads).for_each(|(mine, others)| mine.merge(others));
        self.samples.extend(other.samples);
        Run {
            misses: self.misses + other.misses,
            counted_seconds: self.counted_seconds + other.counted_seconds,
            seconds: self.seconds + other.seconds,
            inserts: self.inserts + other.inserts,
            cpu: self.cpu + other.cpu,
            purged: self.purged + other.purged,
            ..self
        }
    }

    /// Returns the server's CPU seconds for one insert, everything else that it did included.
    pub fn cpu_of_insert(&self) -> f64 {
        self.cpu / self.inserts.max(1) as f64
    }

    /// Returns the CPU seconds of one purged item: what this run took for its inserts beyond what they take in a run
    /// whose purge is paused.
    pub fn cpu_of_purge(&self, paused: &Run) -> f64 {
        (self.cpu - paused.cpu_of_insert() * self.inserts as f64) / self.purged.max(1) as f64
    }

    /// Returns the reads that did not find their item.
    pub fn misses(&self) -> u64 {
        self.misses
    }

    /// Returns the quarters of the run.
    pub fn quarters(&self) -> [Quarter; 4] {
        std::array::from_fn(|number| {
            let count = self.samples.len();
            let samples = &self.samples[number * count / 4..(number + 1) * count / 4];
            let sum = |of: fn(&Sample) -> u64| samples.iter().map(of).sum::<u64>() as f64;
            Quarter {
                disk: sum(|sample| sample.disk_bytes) / sum(|sample| sample.living_bytes).max(1.0),
                resident_mib: sum(|sample| sample.resident_kib) / samples.len().max(1) as f64 / 1024.0,
                read_p99_us: self.reads[number].percentile(99.0),
            }
        })
    }

    pub(super) fn max_age(&self) -> u64 {
        self.samples.iter().map(|sample| sample.oldest_age_seconds).max().unwrap_or_default()
    }
}

impl fmt::Display for Run {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last = self.samples.last().copied().unwrap_or_default();
        let [p50, p99, p999, max] =
            [50.0, 99.0, 99.9, 100.0].map(|percent| self.latencies.percentile(percent) / 1e3);
        write!(
            out,
            "{:.0} inserts/s, p50 {p50:.2} ms, p99 {p99:.2} ms, p99.9 {p999:.2} ms, max {max:.0} ms, {:.0} us of server CPU \
             for each; {:.0} purged/s, oldest {} s at most, {:.2} expired for a living one at most; at the end {} living \
             ({} MB), {} expired, {} MB on disk (at most {:.0} MB); {:.0} % of its seconds count",
            self.per_second(),
            self.cpu * 1e6 / self.inserts.max(1) as f64,
            self.purged as f64 / self.seconds,
            self.max_age(),
            self.worst(Sample::backlog),
            last.living_items,
            last.living_bytes / 1_000_000,
            last.backlog_items,
            last.disk_bytes / 1_000_000,
            self.worst(|sample| sample.disk_bytes as f64) / 1e6,
            self.counted() * 100.0,
        )
    }
}

/// Samples once a second, and keeps the latencies of seconds without load of other machines.
pub(super) fn watch(server: &Server, length: Duration, ttl_seconds: u64, load: &Load) -> Result<Run> {
    // A connection of its own: the server closes one that is idle for long.
    let mut operator = server.client()?;
    let mut run = Run::default();
    load.take();
    let (mut began, mut ticks) = (Instant::now(), Ticks::read()?);
    for second in 0..length.as_secs() {
        sleep(Duration::from_secs(1).saturating_sub(began.elapsed()));
        let ((seen, reads), now, end) = (load.take(), Ticks::read()?, Instant::now());
        let seconds = (end - began).as_secs_f64();
        run.seconds += seconds;
        run.inserts += seen.count();
        if !now.were_taken_since(ticks) {
            run.counted_seconds += seconds;
            run.latencies.merge(&seen);
            run.reads[(second * 4 / length.as_secs()) as usize].merge(&reads);
        }
        load.age(ttl_seconds);
        (began, ticks) = (end, now);
        run.samples.push(sample(&mut operator, server)?);
    }
    run.misses = load.misses();
    Ok(run)
}

fn sample(operator: &mut Client, server: &Server) -> Result<Sample> {
    let told = operator.admin("GET", "/_bolide/ttl/db/c", "")?.expect(200)?;
    let part = |name: &str| {
        let (_, rest) =
            told.body.split_once(&format!("\"{name}\":")).with_context(|| format!("no {name}"))?;
        let part = Answer { body: rest.to_owned(), etag: String::new(), ..told };
        Ok::<_, anyhow::Error>((part.number("items").unwrap_or(0), part.number("bytes").unwrap_or(0)))
    };
    let ((living_items, living_bytes), (backlog_items, _)) = (part("living")?, part("backlog")?);
    Ok(Sample {
        living_items,
        living_bytes,
        backlog_items,
        oldest_age_seconds: told.number("oldestAgeSeconds").unwrap_or(0),
        disk_bytes: disk_bytes(server.directory())?,
        resident_kib: server.resident_kib()?,
    })
}

/// Returns the sizes of all files below a directory. Files appear and disappear meanwhile.
fn disk_bytes(directory: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in std::fs::read_dir(directory)? {
        let Ok(entry) = entry else { continue };
        let Ok(about) = entry.metadata() else { continue };
        sum += if about.is_dir() { disk_bytes(&entry.path()).unwrap_or(0) } else { about.len() };
    }
    Ok(sum)
}

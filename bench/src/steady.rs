//! A steady stream of writes into a container whose items expire: does the purge keep up, and what do writers pay for it?
//!
//! Three connections insert as fast as answers come, on a server whose purge is paused and on another that purges. The
//! paused one shows what the machine can do; the other is judged against it. Each runs twice, in the order paused, running,
//! running, paused, so that a machine that becomes slower or faster meanwhile favours neither. Runs are sampled once a
//! second, and only what comes after the first part of one counts: before that nothing has expired, or the purge has just
//! begun. Throughput and latencies leave out the seconds in which other machines took the processors (`processors.rs`); the
//! report says how many are left.

use std::fmt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::client::{Answer, Client, Server};
use crate::histogram::Histogram;
use crate::processors::Ticks;

/// Connections that insert.
const WRITERS: usize = 3;
/// Items in one logical partition.
const PARTITION_ITEMS: u64 = 1000;
/// The bounds: the age of the oldest expired item,
const MAX_AGE_SECONDS: u64 = 30;
/// the expired items for each live one,
const MAX_BACKLOG: f64 = 2.0;
/// the bytes on disk for each live byte, and in any case,
const MAX_DISK: f64 = 4.0;
const DISK_ALLOWANCE_BYTES: u64 = 256 << 20;
/// the writers' throughput and p99 latency as shares of those without a purge.
const MIN_THROUGHPUT: f64 = 0.85;
const MAX_P99: f64 = 1.3;

/// The smallest part of its seconds without other machines for which a run's throughput and latencies are judged.
const MIN_COUNTED: f64 = 0.25;

/// How long a run takes.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// The time to live of items.
    pub ttl_seconds: u64,
    /// The time at the beginning that is not judged.
    pub warm_up: Duration,
    /// The length of the run.
    pub length: Duration,
}

impl Plan {
    /// Creates a run of so many seconds in all, whose items live for so many. It does not judge the time before the purge
    /// begins, nor as much again.
    pub fn new(seconds: u64, ttl_seconds: u64) -> Plan {
        let (all, warm_up) = (Duration::from_secs(seconds), Duration::from_secs(2 * ttl_seconds));
        Plan { ttl_seconds, warm_up, length: all.saturating_sub(warm_up) }
    }
}

/// Whether the purge runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purge {
    Paused,
    Running,
}

/// The store at one moment.
#[derive(Debug, Clone, Copy, Default)]
struct Sample {
    living_items: u64,
    living_bytes: u64,
    backlog_items: u64,
    oldest_age_seconds: u64,
    disk_bytes: u64,
}

impl Sample {
    /// Expired items for each live one.
    fn backlog(&self) -> f64 {
        self.backlog_items as f64 / self.living_items.max(1) as f64
    }

    /// Bytes on disk beyond the allowance for each live one.
    fn disk(&self) -> f64 {
        self.disk_bytes.saturating_sub(DISK_ALLOWANCE_BYTES) as f64 / self.living_bytes.max(1) as f64
    }
}

/// The figures of one run.
#[derive(Default)]
pub struct Run {
    /// Latencies in the seconds that count.
    latencies: Histogram,
    counted_seconds: f64,
    seconds: f64,
    samples: Vec<Sample>,
    /// Inserts of all seconds, and the seconds that the server took for them.
    inserts: u64,
    cpu: f64,
    purged: u64,
}

impl Run {
    fn per_second(&self) -> f64 {
        self.latencies.count() as f64 / self.counted_seconds
    }

    fn p99(&self) -> f64 {
        self.latencies.percentile(99.0)
    }

    fn worst(&self, of: impl Fn(&Sample) -> f64) -> f64 {
        self.samples.iter().map(of).fold(0.0, f64::max)
    }

    /// Returns the part of its seconds in which other machines left the processors alone.
    pub fn counted(&self) -> f64 {
        self.counted_seconds / self.seconds
    }

    /// Returns the sum of this run and another of the same kind.
    fn and(mut self, other: Run) -> Run {
        self.latencies.merge(&other.latencies);
        self.samples.extend(other.samples);
        Run {
            counted_seconds: self.counted_seconds + other.counted_seconds,
            seconds: self.seconds + other.seconds,
            inserts: self.inserts + other.inserts,
            cpu: self.cpu + other.cpu,
            purged: self.purged + other.purged,
            ..self
        }
    }

    fn max_age(&self) -> u64 {
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

/// Runs one stream on a new server in a directory.
pub fn run(binary: &Path, directory: &Path, plan: Plan, purge: Purge) -> Result<Run> {
    let server = Server::start_in(binary, directory, &[])?;
    let mut operator = server.client()?;
    operator.database("db")?;
    operator.container("c", &format!(",\"defaultTtl\":{}", plan.ttl_seconds), "")?;
    if purge == Purge::Paused {
        operator.pause_purge(true)?;
    }
    let (next, latencies, over) = (AtomicU64::new(0), Mutex::default(), AtomicBool::new(false));
    let run = std::thread::scope(|scope| -> Result<Run> {
        // Without this, an error here would leave the writers running, and the scope waiting for them.
        let ended = OnDrop(&over);
        let mut writers = Vec::new();
        for _ in 0..WRITERS {
            let client = server.client()?;
            let (next, latencies, over) = (&next, &latencies, &over);
            writers.push(scope.spawn(move || insert(client, next, latencies, over)));
        }
        watch(&mut operator, directory, plan.warm_up, &latencies)?;
        let (cpu, (purged, _)) = (server.cpu_seconds()?, operator.purge()?);
        let mut run = watch(&mut operator, directory, plan.length, &latencies)?;
        (run.cpu, run.purged) = (server.cpu_seconds()? - cpu, operator.purge()?.0 - purged);
        drop(ended);
        writers.into_iter().try_for_each(|writer| writer.join().expect("a writer does not panic"))?;
        Ok(run)
    })?;
    server.kill()?;
    Ok(run)
}

/// Sets the flag when it is dropped.
struct OnDrop<'a>(&'a AtomicBool);

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Inserts as fast as answers come.
fn insert(
    mut client: Client,
    next: &AtomicU64,
    latencies: &Mutex<Histogram>,
    over: &AtomicBool,
) -> Result<()> {
    while !over.load(Ordering::Relaxed) {
        let id = next.fetch_add(1, Ordering::Relaxed);
        let pk = (id / PARTITION_ITEMS).to_string();
        let body = body(id, &pk);
        let began = Instant::now();
        client.upsert("c", &pk, &body)?.expect(201)?;
        latencies.lock().expect("no thread panics while it holds the lock").add(began.elapsed());
    }
    Ok(())
}

/// Returns an item of about 900 bytes.
fn body(id: u64, pk: &str) -> String {
    let noise = id.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let text: String = (0..24_u64).map(|part| format!("{:032x}", noise.wrapping_mul(2 * part + 1))).collect();
    format!(
        "{{\"id\":\"{id}\",\"pk\":\"{pk}\",\"name\":\"{noise:016x}\",\"n\":{},\"text\":\"{text}\"}}",
        noise % 1000
    )
}

/// Samples once a second, and keeps the latencies of seconds without load of other machines.
fn watch(
    operator: &mut Client,
    directory: &Path,
    length: Duration,
    latencies: &Mutex<Histogram>,
) -> Result<Run> {
    let take = || std::mem::take(&mut *latencies.lock().expect("no thread panics while it holds the lock"));
    let mut run = Run::default();
    take();
    let (mut began, mut ticks) = (Instant::now(), Ticks::read()?);
    for _ in 0..length.as_secs() {
        sleep(Duration::from_secs(1).saturating_sub(began.elapsed()));
        let (seen, now, end) = (take(), Ticks::read()?, Instant::now());
        let seconds = (end - began).as_secs_f64();
        run.seconds += seconds;
        run.inserts += seen.count();
        if !now.were_taken_since(ticks) {
            run.counted_seconds += seconds;
            run.latencies.merge(&seen);
        }
        (began, ticks) = (end, now);
        run.samples.push(sample(operator, directory)?);
    }
    Ok(run)
}

fn sample(operator: &mut Client, directory: &Path) -> Result<Sample> {
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
        disk_bytes: disk_bytes(directory)?,
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

/// Runs both kinds twice below a directory; returns the paused run and the running one. Calls `told` after each run.
pub fn both(binary: &Path, place: &Path, plan: Plan, told: impl Fn(Purge, &Run)) -> Result<(Run, Run)> {
    let measured = |purge: Purge| {
        let run = run(binary, &place.join("data"), plan, purge);
        // Each run has the same free space on the disk.
        let _ = std::fs::remove_dir_all(place);
        run.inspect(|run| told(purge, run))
    };
    let (paused, running) = (measured(Purge::Paused)?, measured(Purge::Running)?);
    let running = running.and(measured(Purge::Running)?);
    Ok((paused.and(measured(Purge::Paused)?), running))
}

/// Runs all, prints each run, and judges at the end.
pub fn steady(binary: &Path, plan: Plan) -> Result<()> {
    let place = std::env::temp_dir().join(format!("bolide-bench-steady-{}", std::process::id()));
    let (paused, running) =
        both(binary, &place, plan, |purge, run| println!("{:<9} {run}", format!("{purge:?}:")))?;
    println!("{}", compare(&paused, &running));
    judge(&paused, &running)
}

#[cfg(test)]
mod tests {
    use super::*;

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

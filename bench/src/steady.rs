//! A steady stream of writes into a container whose items expire: does the purge keep up, and what do writers pay for it?
//!
//! Three connections insert as fast as answers come, on a server whose purge is paused and on another that purges. The paused one
//! says what the machine can do; the other is judged against it. Each runs twice, in the order paused, running, running, paused, so
//! that a machine that becomes slower or faster meanwhile favours neither. Runs are sampled once a second, and only what comes after
//! the first part of one counts: before that nothing has expired, or the purge has just begun.
//!
//! Where the machine is a virtual one, others may take its processors away. How much of their time that was is told, because a
//! comparison says little then.

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::client::{Answer, Client, Server};
use crate::histogram::Histogram;

/// Connections that insert.
const WRITERS: usize = 3;
/// Items in one logical partition.
const PARTITION_ITEMS: u64 = 1000;
/// What must hold: the age of the oldest expired item,
const MAX_AGE_SECONDS: u64 = 30;
/// the expired items for each living one,
const MAX_BACKLOG: f64 = 2.0;
/// the bytes on disk for each living byte, and in any case,
const MAX_DISK: f64 = 4.0;
const DISK_ALLOWANCE_BYTES: u64 = 256 << 20;
/// the writers' throughput and p99 latency as shares of those without a purge.
const MIN_THROUGHPUT: f64 = 0.85;
const MAX_P99: f64 = 1.3;

/// More of the processors' time than this taken by other machines, and a comparison says nothing.
pub const MAX_STOLEN: f64 = 0.05;

/// How long a run takes.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// How long an item lives.
    pub ttl_seconds: u64,
    /// How long the run is not judged.
    pub warm_up: Duration,
    /// How long it is.
    pub length: Duration,
}

impl Plan {
    /// A run of so many seconds in all, of which the first fifth is not judged.
    pub fn of_seconds(seconds: u64) -> Plan {
        let warm_up = Duration::from_secs(seconds / 5);
        Plan { ttl_seconds: 20, warm_up, length: Duration::from_secs(seconds) - warm_up }
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
    /// Expired items for each living one.
    fn backlog(&self) -> f64 {
        self.backlog_items as f64 / self.living_items.max(1) as f64
    }

    /// Bytes on disk beyond the allowance for each living one.
    fn disk(&self) -> f64 {
        self.disk_bytes.saturating_sub(DISK_ALLOWANCE_BYTES) as f64 / self.living_bytes.max(1) as f64
    }
}

/// What one run came to.
pub struct Run {
    latencies: Histogram,
    seconds: f64,
    samples: Vec<Sample>,
    /// Of the server, in seconds.
    cpu: f64,
    purged: u64,
    /// The part of the processors' time that other machines took.
    stolen: f64,
}

impl Run {
    fn per_second(&self) -> f64 {
        self.latencies.count() as f64 / self.seconds
    }

    fn p99(&self) -> f64 {
        self.latencies.percentile(99.0)
    }

    fn worst(&self, of: impl Fn(&Sample) -> f64) -> f64 {
        self.samples.iter().map(of).fold(0.0, f64::max)
    }

    /// What other machines took of the processors' time.
    pub fn stolen(&self) -> f64 {
        self.stolen
    }

    /// This run and another of the same kind.
    fn and(mut self, other: Run) -> Run {
        self.latencies.merge(&other.latencies);
        self.samples.extend(other.samples);
        Run {
            seconds: self.seconds + other.seconds,
            cpu: self.cpu + other.cpu,
            purged: self.purged + other.purged,
            stolen: f64::midpoint(self.stolen, other.stolen),
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
             ({} MB), {} expired, {} MB on disk (at most {:.0} MB); {:.0} % of the processors taken away",
            self.per_second(),
            self.cpu * 1e6 / self.latencies.count().max(1) as f64,
            self.purged as f64 / self.seconds,
            self.max_age(),
            self.worst(Sample::backlog),
            last.living_items,
            last.living_bytes / 1_000_000,
            last.backlog_items,
            last.disk_bytes / 1_000_000,
            self.worst(|sample| sample.disk_bytes as f64) / 1e6,
            self.stolen * 100.0,
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
        operator.admin("POST", "/_bolide/purge", "{\"paused\":true}")?.expect(200)?;
    }
    let (next, measured, over) = (AtomicU64::new(0), AtomicBool::new(false), AtomicBool::new(false));
    let run = std::thread::scope(|scope| -> Result<Run> {
        // Without this an error here would leave the writers running, and the scope waiting for them.
        let ended = OnDrop(&over);
        let mut writers = Vec::new();
        for _ in 0..WRITERS {
            let client = server.client()?;
            let (next, measured, over) = (&next, &measured, &over);
            writers.push(scope.spawn(move || insert(client, next, measured, over)));
        }
        watch(&mut operator, directory, plan.warm_up)?;
        let (cpu, ticks, (purged, _)) = (server.cpu_seconds()?, Ticks::read()?, operator.purge()?);
        measured.store(true, Ordering::SeqCst);
        let began = Instant::now();
        let samples = watch(&mut operator, directory, plan.length)?;
        let (seconds, cpu) = (began.elapsed().as_secs_f64(), server.cpu_seconds()? - cpu);
        let (purged, stolen) = (operator.purge()?.0 - purged, Ticks::read()?.stolen_since(ticks));
        drop(ended);
        let mut latencies = Histogram::default();
        for writer in writers {
            latencies.merge(&writer.join().expect("a writer does not panic")?);
        }
        Ok(Run { latencies, seconds, samples, cpu, purged, stolen })
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
    measured: &AtomicBool,
    over: &AtomicBool,
) -> Result<Histogram> {
    let mut latencies = Histogram::default();
    while !over.load(Ordering::Relaxed) {
        let id = next.fetch_add(1, Ordering::Relaxed);
        let pk = (id / PARTITION_ITEMS).to_string();
        let body = body(id, &pk);
        let (counts, began) = (measured.load(Ordering::Relaxed), Instant::now());
        client.upsert("c", &pk, &body)?.expect(201)?;
        if counts {
            latencies.add(began.elapsed());
        }
    }
    Ok(latencies)
}

/// An item of about 900 bytes.
fn body(id: u64, pk: &str) -> String {
    let noise = id.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let text: String = (0..24_u64).map(|part| format!("{:032x}", noise.wrapping_mul(2 * part + 1))).collect();
    format!(
        "{{\"id\":\"{id}\",\"pk\":\"{pk}\",\"name\":\"{noise:016x}\",\"n\":{},\"text\":\"{text}\"}}",
        noise % 1000
    )
}

/// Samples once a second.
fn watch(operator: &mut Client, directory: &Path, length: Duration) -> Result<Vec<Sample>> {
    let (mut samples, mut due) = (Vec::new(), Instant::now() + Duration::from_secs(1));
    let end = Instant::now() + length;
    while due <= end {
        sleep(due.saturating_duration_since(Instant::now()));
        samples.push(sample(operator, directory)?);
        due += Duration::from_secs(1);
    }
    Ok(samples)
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

/// The sizes of all files below a directory. Files come and go meanwhile.
fn disk_bytes(directory: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in std::fs::read_dir(directory)? {
        let Ok(entry) = entry else { continue };
        let Ok(about) = entry.metadata() else { continue };
        sum += if about.is_dir() { disk_bytes(&entry.path()).unwrap_or(0) } else { about.len() };
    }
    Ok(sum)
}

/// Fails with all that does not hold of a run, judged against one without a purge.
pub fn judge(paused: &Run, running: &Run) -> Result<()> {
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

/// How a run compares with one without a purge.
pub fn compare(paused: &Run, running: &Run) -> String {
    format!(
        "throughput {:.2}, p50 {:.2}, p99 {:.2} of that without a purge",
        running.per_second() / paused.per_second(),
        running.latencies.percentile(50.0) / paused.latencies.percentile(50.0),
        running.p99() / paused.p99()
    )
}

/// Runs both kinds twice below a directory: what came of the paused ones and of the running ones. `told` hears of each run.
pub fn both(binary: &Path, place: &Path, plan: Plan, told: impl Fn(Purge, &Run)) -> Result<(Run, Run)> {
    let measured = |purge: Purge| {
        let run = run(binary, &place.join("data"), plan, purge);
        // Each run has the same room on the disk.
        let _ = std::fs::remove_dir_all(place);
        run.inspect(|run| told(purge, run))
    };
    let (paused, running) = (measured(Purge::Paused)?, measured(Purge::Running)?);
    let running = running.and(measured(Purge::Running)?);
    Ok((paused.and(measured(Purge::Paused)?), running))
}

/// All runs, told on the way and judged at the end.
pub fn steady(binary: &Path, seconds: u64) -> Result<()> {
    let plan = Plan::of_seconds(seconds);
    let place = std::env::temp_dir().join(format!("bolide-bench-steady-{}", std::process::id()));
    let (paused, running) =
        both(binary, &place, plan, |purge, run| println!("{:<9} {run}", format!("{purge:?}:")))?;
    println!("{}", compare(&paused, &running));
    judge(&paused, &running)
}

/// What the processors of the machine have done since it was started (Linux).
#[derive(Debug, Clone, Copy)]
struct Ticks {
    all: u64,
    stolen: u64,
}

impl Ticks {
    fn read() -> Result<Ticks> {
        Ticks::of(&std::fs::read_to_string("/proc/stat").context("cannot read /proc/stat")?)
    }

    /// The first line sums up all processors; its eighth column is what other machines took, the two behind it are contained in
    /// the first two.
    fn of(text: &str) -> Result<Ticks> {
        let columns = text.lines().next().unwrap_or_default().split_whitespace().skip(1).take(8);
        let columns: Vec<u64> = columns.map(str::parse).collect::<Result<_, _>>()?;
        ensure!(columns.len() == 8, "/proc/stat has {} columns, not 8", columns.len());
        Ok(Ticks { all: columns.iter().sum(), stolen: columns[7] })
    }

    fn stolen_since(self, before: Ticks) -> f64 {
        (self.stolen - before.stolen) as f64 / (self.all - before.all).max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_of(latency_ms: u64, count: u64, sample: Sample) -> Run {
        let mut latencies = Histogram::default();
        (0..count).for_each(|_| latencies.add(Duration::from_millis(latency_ms)));
        let samples = vec![Sample::default(), sample];
        Run { latencies, seconds: 10.0, samples, cpu: 0.0, purged: 0, stolen: 0.0 }
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
    fn runs_of_a_kind_are_judged_together() {
        let sample = Sample { oldest_age_seconds: 7, ..Sample::default() };
        let (mut slow, fast) = (run_of(20, 500, sample), run_of(10, 1500, Sample::default()));
        slow.stolen = 0.2;
        let both = slow.and(fast);
        assert_eq!((both.per_second(), both.max_age(), both.stolen()), (100.0, 7, 0.1));
    }

    #[test]
    fn what_other_machines_take_is_told_from_two_looks() {
        let ticks = |text: &str| Ticks::of(text).expect("a line of eight");
        let before = ticks("cpu  10 0 10 70 0 0 0 10 5 0\ncpu0 1 2 3\n");
        let after = ticks("cpu  20 0 20 100 0 0 0 60 5 0\n");
        assert!((after.stolen_since(before) - 0.5).abs() < 1e-9);
        assert!(Ticks::of("cpu  1 2 3\n").is_err());
    }
}

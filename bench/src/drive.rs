//! The load generator: a number of connections, each with a thread, as fast as answers come or at a fixed rate.
//!
//! The server's CPU time for each operation is the measure that a noisy machine does not distort. Deferred work after the
//! last answer, compaction above all, belongs to the operations that caused it: the generator waits for it and adds it.
//!
//! A run has a gate between its warm-up and its measured part: nothing is in flight when the counting begins. What is in
//! flight when it ends is waited for and counted.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::client::cpu_seconds_of;
use crate::counters::{Instructions, switches, written_bytes};
use crate::documents::{DataSet, Zipf};
use crate::histogram::Histogram;
use crate::peer::{Connection, Peer};
use crate::processors::Ticks;
use crate::workload::{Kind, Operation, Stream};

/// When the next operation begins.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// After the last answer.
    Closed,
    /// At this rate over all connections, whether or not answers are late; latency counts from when an operation was due.
    Open(f64),
}

/// One run.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    pub kind: Kind,
    pub connections: usize,
    pub pace: Pace,
    pub warm_up: Duration,
    pub length: Duration,
    pub seed: u64,
}

/// The figures of a run.
#[derive(Clone)]
pub struct Figures {
    pub latencies: Histogram,
    pub seconds: f64,
    /// Server CPU for one operation, in microseconds.
    pub server_us: f64,
    /// Generator CPU for one operation, in microseconds.
    pub client_us: f64,
    /// The longest answer in microseconds, those after the end of the run included.
    pub longest_us: f64,
    /// The server's context switches for one operation, without those of deferred work.
    pub switches: Option<f64>,
    /// The server's instructions for one operation.
    pub instructions: Option<f64>,
    /// Bytes written to disks for one operation.
    pub written_bytes: Option<f64>,
    /// Whether all deferred work was done before the figures were taken.
    pub is_settled: bool,
    /// Whether other machines took the processors meanwhile.
    pub was_disturbed: bool,
    pub failures: u64,
    /// The first failure.
    pub failure: Option<String>,
}

impl Figures {
    pub fn per_second(&self) -> f64 {
        self.latencies.count() as f64 / self.seconds
    }
}

/// The number of failures after which a connection gives up.
const MAX_FAILURES: u64 = 20;
const SETTLE_STEP: Duration = Duration::from_millis(50);
/// The longest wait for deferred work.
const SETTLE_MAX: Duration = Duration::from_mins(1);
/// CPU in a step that is less than that of any flush, merge or vacuum; the kernel counts in steps of ten milliseconds.
const CALM_SECONDS: f64 = 0.011;
const CALM_STEPS: u32 = 3;

/// The phases of a run, for its users.
struct Gate {
    warm: AtomicBool,
    /// All users and the generator, before the measured part and at its beginning.
    barrier: Barrier,
    over: AtomicBool,
}

impl Gate {
    fn new(users: usize) -> Gate {
        let (warm, over) = (AtomicBool::new(true), AtomicBool::new(false));
        Gate { warm, barrier: Barrier::new(users + 1), over }
    }
}

/// Runs a plan against a peer that has loaded the set.
pub fn drive(peer: &dyn Peer, set: &Arc<DataSet>, plan: Plan) -> Result<Figures> {
    let zipf = matches!(plan.kind, Kind::Mixed50 | Kind::Mixed95).then(|| Zipf::new(set.items));
    let connections = (0..plan.connections).map(|_| peer.connect(set)).collect::<Result<Vec<_>>>()?;
    let gate = Gate::new(plan.connections);
    std::thread::scope(|scope| -> Result<Figures> {
        let mut users = Vec::new();
        for (number, connection) in connections.into_iter().enumerate() {
            let stream = Stream::new(plan.kind, set, zipf.as_ref(), plan.seed * 1000 + number as u64);
            let gate = &gate;
            users.push(scope.spawn(move || user(connection, stream, plan, number, gate)));
        }
        std::thread::sleep(plan.warm_up);
        gate.warm.store(false, Ordering::SeqCst);
        gate.barrier.wait();
        let before = Before::take(peer);
        gate.barrier.wait();
        let began = Instant::now();
        std::thread::sleep(plan.length);
        // Before deferred work, whose part differs from run to run.
        let switches = switches(peer);
        gate.over.store(true, Ordering::SeqCst);
        let seconds = began.elapsed().as_secs_f64();
        let client = cpu_seconds_of(std::process::id());
        let (mut total, mut connections) = (Seen::default(), Vec::new());
        for user in users {
            let (seen, mut connection) = user.join().expect("a user does not panic");
            total.add(seen);
            // One that is broken has nothing to finish; its failures are counted.
            let _ = connection.finish();
            // Open until the figures are taken: its end is no part of an operation, and with PostgreSQL a process ends.
            connections.push(connection);
        }
        before?.until_now(peer, total, seconds, switches, client?)
    })
}

/// What was counted before a run.
struct Before {
    server: f64,
    client: f64,
    switches: Option<u64>,
    written_bytes: Option<u64>,
    instructions: Option<Instructions>,
    ticks: Option<Ticks>,
}

impl Before {
    fn take(peer: &dyn Peer) -> Result<Before> {
        Ok(Before {
            instructions: Instructions::start(peer),
            switches: switches(peer),
            written_bytes: written_bytes(peer),
            ticks: Ticks::read().ok(),
            client: cpu_seconds_of(std::process::id())?,
            server: peer.measured().cpu_seconds()?,
        })
    }

    /// Waits for deferred work, and returns the figures of a run that has ended.
    fn until_now(
        self,
        peer: &dyn Peer,
        seen: Seen,
        seconds: f64,
        switches: Option<u64>,
        client: f64,
    ) -> Result<Figures> {
        let answered = seen.latencies.count();
        ensure!(answered > 0, "not one operation: {}", seen.failure.unwrap_or_default());
        let was_disturbed =
            self.ticks.zip(Ticks::read().ok()).is_some_and(|(before, now)| now.were_taken_since(before));
        let settled = settled(peer, SETTLE_MAX)?;
        let all = (answered + seen.late) as f64;
        let grown = |before: Option<u64>, now: Option<u64>| Some(now?.saturating_sub(before?) as f64);
        Ok(Figures {
            latencies: seen.latencies,
            seconds,
            server_us: (settled.cpu_seconds - self.server) * 1e6 / all,
            client_us: (client - self.client) * 1e6 / answered as f64,
            longest_us: seen.longest.as_secs_f64() * 1e6,
            switches: grown(self.switches, switches).map(|count| count / answered as f64),
            instructions: self.instructions.and_then(Instructions::stop).map(|count| count as f64 / all),
            written_bytes: grown(self.written_bytes, written_bytes(peer)).map(|bytes| bytes / all),
            is_settled: settled.is_complete,
            was_disturbed,
            failures: seen.failures,
            failure: seen.failure,
        })
    }
}

/// A server after its deferred work.
#[derive(Debug, Clone, Copy)]
pub struct Settled {
    /// The CPU seconds that it has used so far.
    pub cpu_seconds: f64,
    /// Whether nothing was left to do, and not only the time over.
    pub is_complete: bool,
}

/// Waits until the server has no deferred work and uses no CPU, at most so long, and makes it write out the rest.
pub fn settled(peer: &dyn Peer, most: Duration) -> Result<Settled> {
    let (began, mut last, mut calm) = (Instant::now(), peer.measured().cpu_seconds()?, 0);
    while calm < CALM_STEPS && began.elapsed() < most {
        std::thread::sleep(SETTLE_STEP);
        let is_busy = peer.measured().has_deferred_work()?;
        let now = peer.measured().cpu_seconds()?;
        calm = if is_busy || now - last >= CALM_SECONDS { 0 } else { calm + 1 };
        last = now;
    }
    peer.write_out()?;
    Ok(Settled { cpu_seconds: peer.measured().cpu_seconds()?, is_complete: calm >= CALM_STEPS })
}

#[derive(Default)]
struct Seen {
    latencies: Histogram,
    /// Operations begun in time and answered later: they count, because the server's time for them does.
    late: u64,
    longest: Duration,
    failures: u64,
    failure: Option<String>,
}

impl Seen {
    fn add(&mut self, other: Seen) {
        self.latencies.merge(&other.latencies);
        self.late += other.late;
        self.longest = self.longest.max(other.longest);
        self.failures += other.failures;
        self.failure = self.failure.take().or(other.failure);
    }

    fn failed(&mut self, error: &anyhow::Error) {
        self.failures += 1;
        self.failure.get_or_insert_with(|| format!("{error:#}"));
    }
}

fn user(
    mut connection: Box<dyn Connection>,
    mut stream: Stream,
    plan: Plan,
    number: usize,
    gate: &Gate,
) -> (Seen, Box<dyn Connection>) {
    let mut seen = Seen::default();
    while gate.warm.load(Ordering::Relaxed) && seen.failures < MAX_FAILURES {
        if let Pace::Open(rate) = plan.pace {
            std::thread::sleep(Duration::from_secs_f64(plan.connections as f64 / rate));
        }
        if let Err(error) = connection.run(stream.operation()) {
            seen.failed(&error);
        }
    }
    gate.barrier.wait();
    gate.barrier.wait();
    let period = match plan.pace {
        Pace::Closed => Duration::ZERO,
        Pace::Open(rate) => Duration::from_secs_f64(plan.connections as f64 / rate),
    };
    let mut due = Instant::now() + period.mul_f64(number as f64 / plan.connections as f64);
    while !gate.over.load(Ordering::Relaxed) && seen.failures < MAX_FAILURES {
        match plan.pace {
            Pace::Closed => due = Instant::now(),
            Pace::Open(_) => std::thread::sleep(due.saturating_duration_since(Instant::now())),
        }
        let outcome = connection.run(stream.operation());
        let latency = due.elapsed();
        match outcome {
            Ok(()) => {
                seen.longest = seen.longest.max(latency);
                if gate.over.load(Ordering::Relaxed) {
                    seen.late += 1;
                } else {
                    seen.latencies.add(latency);
                }
            }
            Err(error) => seen.failed(&error),
        }
        due += period;
    }
    (seen, connection)
}

/// Inserts the set's documents 0..items, and waits for the peer's deferred work, which does not belong to the next
/// measurement.
pub fn load(peer: &dyn Peer, set: &Arc<DataSet>, connections: usize) -> Result<()> {
    peer.prepare(set)?;
    if !peer.supports(Kind::Insert) {
        return Ok(());
    }
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| -> Result<()> {
        let mut loaders = Vec::new();
        for _ in 0..connections {
            let mut connection = peer.connect(set)?;
            let next = &next;
            loaders.push(scope.spawn(move || -> Result<()> {
                loop {
                    let id = next.fetch_add(1, Ordering::Relaxed);
                    if id >= set.items {
                        return Ok(());
                    }
                    connection.run(Operation::Insert(id))?;
                }
            }));
        }
        loaders.into_iter().try_for_each(|loader| loader.join().expect("a loader does not panic"))
    })
    .with_context(|| format!("cannot load {}", peer.name()))?;
    settled(peer, SETTLE_MAX).map(drop)
}

/// Checks the result of one operation of each kind.
pub fn verify(peer: &dyn Peer, set: &Arc<DataSet>, kinds: &[Kind]) -> Result<()> {
    let mut connection = peer.connect(set)?;
    for kind in kinds.iter().filter(|kind| peer.supports(**kind)) {
        let mut stream = Stream::new(*kind, set, None, 42);
        connection.run(stream.operation()).with_context(|| format!("{}: {}", peer.name(), kind.name()))?;
        let (rows, expected) = (connection.rows()?, kind.rows(set));
        ensure!(rows == expected, "{}: {} gave {rows} and not {expected}", peer.name(), kind.name());
    }
    Ok(())
}

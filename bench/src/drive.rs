//! The load generator: a number of connections, each with a thread, as fast as answers come or at a fixed rate.
//!
//! The server's CPU time for each operation is the measure that a noisy machine does not distort. Deferred work after the
//! last answer, compaction above all, belongs to the operations that caused it: the generator waits for it and adds it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::client::cpu_seconds_of;
use crate::documents::{DataSet, Zipf};
use crate::histogram::Histogram;
use crate::peer::{Connection, Peer};
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
    pub failures: u64,
    /// The first failure.
    pub failure: Option<String>,
}

impl Figures {
    pub fn per_second(&self) -> f64 {
        self.latencies.count() as f64 / self.seconds
    }
}

const WARM: u8 = 0;
const MEASURED: u8 = 1;
const OVER: u8 = 2;
/// The number of failures after which a connection gives up.
const MAX_FAILURES: u64 = 20;
const SETTLE_STEP: Duration = Duration::from_millis(50);
const SETTLE_MAX: Duration = Duration::from_secs(3);

/// Runs a plan against a peer that has loaded the set.
pub fn drive(peer: &dyn Peer, set: &Arc<DataSet>, plan: Plan) -> Result<Figures> {
    let zipf = matches!(plan.kind, Kind::Mixed50 | Kind::Mixed95).then(|| Zipf::new(set.items));
    let phase = AtomicU8::new(WARM);
    std::thread::scope(|scope| -> Result<Figures> {
        let mut users = Vec::new();
        for number in 0..plan.connections {
            let connection = peer.connect(set)?;
            let stream = Stream::new(plan.kind, set, zipf.as_ref(), plan.seed * 1000 + number as u64);
            let phase = &phase;
            users.push(scope.spawn(move || user(connection, stream, plan, number, phase)));
        }
        std::thread::sleep(plan.warm_up);
        let (server, client) = (peer.cpu_seconds()?, cpu_seconds_of(std::process::id())?);
        let began = Instant::now();
        phase.store(MEASURED, Ordering::SeqCst);
        std::thread::sleep(plan.length);
        phase.store(OVER, Ordering::SeqCst);
        let seconds = began.elapsed().as_secs_f64();
        let client = cpu_seconds_of(std::process::id())? - client;
        let mut total = Seen::default();
        for user in users {
            total.add(user.join().expect("a user does not panic"));
        }
        let server = settled(peer, SETTLE_MAX)? - server;
        let count = total.latencies.count();
        ensure!(count > 0, "not one operation: {}", total.failure.unwrap_or_default());
        Ok(Figures {
            latencies: total.latencies,
            seconds,
            server_us: server * 1e6 / (count + total.late) as f64,
            client_us: client * 1e6 / count as f64,
            failures: total.failures,
            failure: total.failure,
        })
    })
}

/// Returns the CPU seconds once the server has nothing more to do, or after the longest wait.
pub fn settled(peer: &dyn Peer, most: Duration) -> Result<f64> {
    let (began, mut last, mut calm) = (Instant::now(), peer.cpu_seconds()?, 0);
    while calm < 3 && began.elapsed() < most {
        std::thread::sleep(SETTLE_STEP);
        let now = peer.cpu_seconds()?;
        calm = if now - last < 0.011 { calm + 1 } else { 0 };
        last = now;
    }
    Ok(last)
}

#[derive(Default)]
struct Seen {
    latencies: Histogram,
    /// Operations begun in time and answered later: they count, because the server's time for them does.
    late: u64,
    failures: u64,
    failure: Option<String>,
}

impl Seen {
    fn add(&mut self, other: Seen) {
        self.latencies.merge(&other.latencies);
        self.late += other.late;
        self.failures += other.failures;
        self.failure = self.failure.take().or(other.failure);
    }
}

fn user(
    mut connection: Box<dyn Connection>,
    mut stream: Stream,
    plan: Plan,
    number: usize,
    phase: &AtomicU8,
) -> Seen {
    let mut seen = Seen::default();
    let period = match plan.pace {
        Pace::Closed => Duration::ZERO,
        Pace::Open(rate) => Duration::from_secs_f64(plan.connections as f64 / rate),
    };
    let mut due = Instant::now() + period.mul_f64(number as f64 / plan.connections as f64);
    while phase.load(Ordering::Relaxed) != OVER {
        match plan.pace {
            Pace::Closed => due = Instant::now(),
            Pace::Open(_) => std::thread::sleep(due.saturating_duration_since(Instant::now())),
        }
        let outcome = connection.run(stream.operation());
        match (outcome, phase.load(Ordering::Relaxed)) {
            (Ok(()), MEASURED) => seen.latencies.add(due.elapsed()),
            (Ok(()), OVER) => seen.late += 1,
            (Ok(()), _) => {}
            (Err(error), _) => {
                seen.failures += 1;
                seen.failure.get_or_insert_with(|| format!("{error:#}"));
                if seen.failures >= MAX_FAILURES {
                    break;
                }
            }
        }
        due += period;
    }
    seen
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
        let (rows, expected) = (connection.rows()?, kind.rows(set.shape));
        ensure!(rows == expected, "{}: {} gave {rows} and not {expected}", peer.name(), kind.name());
    }
    Ok(())
}

//! A steady stream of writes into a container whose items expire: does the purge keep up, and what do writers pay for it?
//!
//! Three connections insert as fast as answers come, on a server whose purge is paused and on another that purges. The
//! paused one shows what the machine can do; the other is judged against it. Each runs twice, in the order paused, running,
//! running, paused, so that a machine that becomes slower or faster meanwhile favours neither. Runs are sampled once a
//! second, and only what comes after the first part of one counts: before that nothing has expired, or the purge has just
//! begun. Throughput and latencies leave out the seconds in which other machines took the processors (`processors.rs`); the
//! report says how many are left.

mod judge;
mod load;
mod run;

use std::path::Path;
use std::time::Duration;

use anyhow::Result;

pub use self::judge::{compare, is_comparable, judge};
use self::load::{Load, OnDrop};
use self::run::watch;
pub use self::run::{Quarter, Run};
use crate::client::Server;

/// Connections that insert.
const WRITERS: usize = 3;
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

/// The connections of a run.
#[derive(Debug, Clone, Copy)]
pub struct Users {
    /// Connections that read.
    pub readers: u64,
    /// Inserts per second over all connections that insert; without it they insert as fast as answers come.
    pub inserts_per_second: Option<f64>,
}

/// Runs one stream on a new server in a directory.
pub fn run(binary: &Path, directory: &Path, plan: Plan, purge: Purge) -> Result<Run> {
    run_with(binary, directory, plan, purge, Users { readers: 0, inserts_per_second: None })
}

/// Does the same with these users.
pub fn run_with(binary: &Path, directory: &Path, plan: Plan, purge: Purge, users: Users) -> Result<Run> {
    let server = Server::start_in(binary, directory, &[])?;
    let mut operator = server.client()?;
    operator.database("db")?;
    operator.container("c", &format!(",\"defaultTtl\":{}", plan.ttl_seconds), "")?;
    if purge == Purge::Paused {
        operator.pause_purge(true)?;
    }
    let load = Load::default();
    let period = users.inserts_per_second.map_or(0.0, |rate| WRITERS as f64 / rate);
    let period = Duration::from_secs_f64(period);
    let run = std::thread::scope(|scope| -> Result<Run> {
        // Without this, an error here would leave the users running, and the scope waiting for them.
        let ended = OnDrop(&load.over);
        let mut threads = Vec::new();
        for _ in 0..WRITERS {
            let (client, load) = (server.client()?, &load);
            threads.push(scope.spawn(move || load.insert(client, period)));
        }
        for number in 0..users.readers {
            let (client, load) = (server.client()?, &load);
            threads.push(scope.spawn(move || load.read(client, number)));
        }
        watch(&server, plan.warm_up, plan.ttl_seconds, &load)?;
        let (cpu, (purged, _)) = (server.cpu_seconds()?, server.client()?.purge()?);
        let mut run = watch(&server, plan.length, plan.ttl_seconds, &load)?;
        (run.cpu, run.purged) = (server.cpu_seconds()? - cpu, server.client()?.purge()?.0 - purged);
        drop(ended);
        threads.into_iter().try_for_each(|thread| thread.join().expect("a user does not panic"))?;
        Ok(run)
    })?;
    server.kill()?;
    Ok(run)
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

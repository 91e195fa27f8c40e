//! The growth of costs with a container: the same operations at ten thousand items, a hundred thousand, a million, ten
//! million, with the memory and the disk they take, and the duration of a restart.
//!
//! At a million items of 1 KB the data set is four times the cache, at ten million forty times.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use bolide_bench::client::Server;
use bolide_bench::documents::{DataSet, Fields, PARTITION_ITEMS, Shape};
use bolide_bench::drive::{Pace, Plan, drive, settled};
use bolide_bench::peer::{BolideRest, Indexing, Peer};
use bolide_bench::workload::Kind;

use crate::load::{Requests, insert};
use crate::purge::TTL_SECONDS;

pub const KINDS: [Kind; 5] = [Kind::Read, Kind::Query, Kind::Insert, Kind::Replace, Kind::Patch];
const STEPS: [u64; 4] = [10_000, 100_000, 1_000_000, 10_000_000];
const LOADERS: usize = 4;
const CONNECTIONS: usize = 16;
const SIZE: usize = 960;
const WARM_UP: Duration = Duration::from_millis(500);
/// The length of a round; that of a growth to few items, as part of a quick run, is half of it.
const LENGTH: Duration = Duration::from_secs(2);
const FEW_ITEMS: u64 = 100_000;
/// The number of rounds; each cost is their median.
const ROUNDS: u64 = 3;
/// How long to wait for the deferred work of loading, which does not belong to the next measurement.
const SETTLE_MAX: Duration = Duration::from_mins(5);
/// A container of items with a time to live beside the growing one.
const EXPIRING: &str = "expiring";
const EXPIRING_ITEMS: u64 = 20_000;

/// The figures at one size.
pub struct Step {
    pub items: u64,
    /// Server CPU in microseconds, in the order of `KINDS`.
    pub costs: Vec<f64>,
    /// Server CPU in microseconds for one item that is purged.
    pub purge_us: f64,
    pub resident_mib: u64,
    pub peak_mib: u64,
    /// The size on disk for each item, as the server leaves it.
    pub disk_bytes: f64,
    pub start_after_stop: Duration,
    pub start_after_kill: Duration,
}

pub struct Growth {
    pub start_empty: Duration,
    pub steps: Vec<Step>,
    /// For each item, after `bolide compact`.
    pub compacted_bytes: f64,
    /// The size of one document as JSON.
    pub document_bytes: usize,
}

/// Measures at each size up to `most` items.
pub fn run(binary: &Path, most: u64) -> Result<Growth> {
    let directory = std::env::temp_dir().join(format!("bolide-bench-grow-{}", std::process::id()));
    let grown = grow(binary, most, &directory);
    let _ = std::fs::remove_dir_all(&directory);
    grown
}

fn grow(binary: &Path, most: u64, directory: &Path) -> Result<Growth> {
    let began = Instant::now();
    let mut server = Arc::new(Server::start_in(binary, directory, &[])?);
    let start_empty = began.elapsed();
    println!("ready after {:.0} ms on an empty store", start_empty.as_secs_f64() * 1e3);
    let mut set = DataSet::new("grow", Shape::of_size(SIZE), 0);
    BolideRest::new(Arc::clone(&server), binary, Indexing::EveryPath)?.prepare(&set)?;
    server.client()?.container(EXPIRING, &format!(",\"defaultTtl\":{TTL_SECONDS}"), "")?;
    let mut steps = Vec::new();
    for items in STEPS.into_iter().filter(|items| *items <= most) {
        fill(&server, &set, items)?;
        set = set.grown(items);
        let peer = BolideRest::new(Arc::clone(&server), binary, Indexing::EveryPath)?;
        settled(&peer, SETTLE_MAX)?;
        let mut costs = Vec::new();
        for kind in KINDS {
            costs.push(cost(&peer, &set, kind, if most <= FEW_ITEMS { LENGTH / 2 } else { LENGTH })?);
        }
        let purge_us = purge_cost(&server, &peer)?;
        let (resident_mib, peak_mib) = (server.resident_mib()?, server.peak_resident_mib()?);
        let disk_bytes = peer.measured().disk_bytes()? as f64 / set.used() as f64;
        drop(peer);
        let start_after_kill;
        (server, start_after_kill) = again(server, binary, directory, Server::kill)?;
        let start_after_stop;
        (server, start_after_stop) = again(server, binary, directory, Server::stop)?;
        let step = Step {
            items,
            costs,
            purge_us,
            resident_mib,
            peak_mib,
            disk_bytes,
            start_after_stop,
            start_after_kill,
        };
        show(&step);
        steps.push(step);
    }
    let compacted_bytes = compacted(server, binary, directory)? / set.used().max(1) as f64;
    println!("{compacted_bytes:.0} bytes on disk for each item after compaction");
    let mut document = String::new();
    Fields::new(most, 0, Shape::of_size(SIZE)).json(&mut document);
    Ok(Growth { start_empty, steps, compacted_bytes, document_bytes: document.len() })
}

fn cost(peer: &BolideRest, set: &Arc<DataSet>, kind: Kind, length: Duration) -> Result<f64> {
    middle(|round| {
        let plan = Plan {
            kind,
            connections: CONNECTIONS,
            pace: Pace::Closed,
            warm_up: WARM_UP,
            length,
            seed: set.items + round,
        };
        Ok(drive(peer, set, plan)?.server_us)
    })
}

/// Measures a purge of items that expire at once, without other load.
fn purge_cost(server: &Server, peer: &BolideRest) -> Result<f64> {
    middle(|_| {
        insert(server, EXPIRING, EXPIRING_ITEMS, Requests::OfMany)?;
        settled(peer, SETTLE_MAX)?;
        let mut operator = server.client()?;
        let ((before, _), cpu) = (operator.purge()?, server.cpu_seconds()?);
        operator.advance(2 * TTL_SECONDS)?;
        while operator.purge()?.0 < before + EXPIRING_ITEMS {
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok((settled(peer, SETTLE_MAX)?.cpu_seconds - cpu) * 1e6 / EXPIRING_ITEMS as f64)
    })
}

/// Returns the median of some rounds: now and then one of them includes a merge caused by earlier rounds.
fn middle(mut measure: impl FnMut(u64) -> Result<f64>) -> Result<f64> {
    let mut rounds = (0..ROUNDS).map(&mut measure).collect::<Result<Vec<_>>>()?;
    rounds.sort_by(f64::total_cmp);
    Ok(rounds[rounds.len() / 2])
}

/// Inserts until there are `items`, a whole partition in one request.
fn fill(server: &Server, set: &DataSet, items: u64) -> Result<()> {
    let next = AtomicU64::new(set.used());
    std::thread::scope(|scope| -> Result<()> {
        let mut loaders = Vec::new();
        for _ in 0..LOADERS {
            let mut client = server.client()?;
            let next = &next;
            loaders.push(scope.spawn(move || -> Result<()> {
                loop {
                    let ahead = |first: u64| Some((first / PARTITION_ITEMS + 1) * PARTITION_ITEMS);
                    let first = next
                        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, ahead)
                        .expect("the function always gives a number");
                    if first >= items {
                        return Ok(());
                    }
                    let last = ((first / PARTITION_ITEMS + 1) * PARTITION_ITEMS).min(items);
                    let mut bodies = Vec::new();
                    for id in first..last {
                        let mut body = String::new();
                        Fields::new(id, 0, set.shape).json(&mut body);
                        bodies.push(body);
                    }
                    client.batch(&set.name, &set.shape.partition(first).to_string(), &bodies)?;
                }
            }));
        }
        loaders.into_iter().try_for_each(|loader| loader.join().expect("a loader does not panic"))
    })
}

/// Ends the server in some way and starts it on the same data; returns how long the start took.
fn again(
    server: Arc<Server>,
    binary: &Path,
    directory: &Path,
    end: fn(Server) -> Result<()>,
) -> Result<(Arc<Server>, Duration)> {
    end(Arc::into_inner(server).expect("the only owner"))?;
    let began = Instant::now();
    let server = Server::start_in(binary, directory, &[])?;
    Ok((Arc::new(server), began.elapsed()))
}

/// Returns the bytes on disk after `bolide compact`.
fn compacted(server: Arc<Server>, binary: &Path, directory: &Path) -> Result<f64> {
    Arc::into_inner(server).expect("the only owner").stop()?;
    // Its clock was moved, so only a test clock can open it.
    let done = Command::new(binary).args(["compact", "--test-clock", "--data"]).arg(directory).output()?;
    ensure!(done.status.success(), "bolide compact: {}", String::from_utf8_lossy(&done.stderr));
    let size = Command::new("du").args(["-s", "--block-size=1"]).arg(directory).output()?;
    let text = String::from_utf8_lossy(&size.stdout);
    Ok(text.split_whitespace().next().unwrap_or_default().parse()?)
}

fn show(step: &Step) {
    let costs: Vec<String> =
        KINDS.iter().zip(&step.costs).map(|(kind, us)| format!("{} {us:.1} us", kind.name())).collect();
    println!(
        "{} items: {}, purge {:.1} us; {} MiB resident (at most {}), {:.0} bytes on disk each, ready {:.0} ms after a stop, {:.0} ms \
         after kill -9",
        step.items,
        costs.join(", "),
        step.purge_us,
        step.resident_mib,
        step.peak_mib,
        step.disk_bytes,
        step.start_after_stop.as_secs_f64() * 1e3,
        step.start_after_kill.as_secs_f64() * 1e3
    );
}

//! Reads right after a start: nothing is in the servers' caches, and nothing in the system's where it can be emptied.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use bolide_bench::client::Server;
use bolide_bench::documents::{DataSet, Shape};
use bolide_bench::drive::{Pace, Plan, drive, load};
use bolide_bench::peer::{BolideRest, BolideWire, Indexing, Peer, Postgres};
use bolide_bench::workload::Kind;

use super::{CONNECTIONS, Options, Results, Run, SIZES, Section, show};

/// The cache of PostgreSQL in MiB, as elsewhere.
const CACHE_MIB: u64 = 256;

/// Makes a peer of a server.
type Make = fn(Arc<Server>, &Path) -> Result<Box<dyn Peer>>;

pub(super) fn measure(binary: &Path, options: &Options, results: &mut Results) -> Result<()> {
    if !drop_page_cache() {
        results.missing.push(
            "reads after a cold start: the system's page cache cannot be emptied here, so only the servers' own caches \
             are cold"
                .to_owned(),
        );
    }
    let rest: Make = |server, binary| Ok(Box::new(BolideRest::new(server, binary, Indexing::EveryPath)?));
    let wire: Make = |server, binary| Ok(Box::new(BolideWire::new(server, binary)?));
    for make in [rest, wire] {
        let set = set(options);
        let server = Arc::new(Server::start(binary, &[])?);
        let peer = make(Arc::clone(&server), binary)?;
        load(peer.as_ref(), &set, CONNECTIONS)?;
        drop(peer);
        let server = Arc::into_inner(server).context("another peer still has the server")?;
        let server = server.restart_after(binary, &[], empty_page_cache)?;
        read(make(Arc::new(server), binary)?.as_ref(), &set, options, results);
    }
    if let Some(programs) = Postgres::installed() {
        let set = set(options);
        let mut postgres = Postgres::start(&programs, CACHE_MIB)?;
        load(&postgres, &set, CONNECTIONS)?;
        postgres.restart(empty_page_cache)?;
        read(&postgres, &set, options, results);
    }
    Ok(())
}

fn set(options: &Options) -> Arc<DataSet> {
    DataSet::new("c1024", Shape::of_size(SIZES[0]), options.items())
}

/// Reads at random, from the first request on.
fn read(peer: &dyn Peer, set: &Arc<DataSet>, options: &Options, results: &mut Results) {
    let plan = Plan {
        kind: Kind::Read,
        connections: 1,
        pace: Pace::Closed,
        warm_up: Duration::ZERO,
        length: options.length(),
        seed: 0,
    };
    let (rounds, failure) = match drive(peer, set, plan) {
        Ok(figures) => (vec![figures], None),
        Err(error) => (Vec::new(), Some(format!("{error:#}"))),
    };
    let run = Run {
        section: Section::Cold,
        kind: plan.kind,
        size: SIZES[0],
        connections: plan.connections,
        peer: peer.name().to_owned(),
        rounds,
        failure,
    };
    show(&run);
    results.runs.push(run);
}

fn empty_page_cache() {
    // The report says where it is not permitted.
    let _ = drop_page_cache();
}

/// Empties the system's cache of files. Returns `false` where that is not permitted.
fn drop_page_cache() -> bool {
    // Only what is written to disk can be dropped.
    let is_synced = Command::new("sync").status().is_ok_and(|status| status.success());
    is_synced && std::fs::write("/proc/sys/vm/drop_caches", "3").is_ok()
}

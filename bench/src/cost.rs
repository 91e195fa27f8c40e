//! A short measurement of the server's cost per operation, for optimization work.
//!
//! 1 KB documents, 16 connections, APIs interleaved. It prints the median of the rounds.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use bolide_bench::client::Server;
use bolide_bench::documents::{DataSet, Shape};
use bolide_bench::drive::{Figures, Pace, Plan, drive, load, verify};
use bolide_bench::peer::{BolideRest, BolideWire, Indexing, Peer};
use bolide_bench::workload::Kind;

const CONNECTIONS: usize = 16;
const ITEMS: u64 = 20_000;
const WARM_UP: Duration = Duration::from_millis(300);
const LENGTH: Duration = Duration::from_secs(2);

/// `arguments`: how many rounds, then names of operations or APIs with `-` for a space; without names all.
pub fn run(binary: &Path, arguments: &[String]) -> Result<()> {
    let rounds: u64 = arguments.first().map_or(Ok(3), |text| text.parse())?;
    let names: Vec<String> = arguments.iter().skip(1).map(|name| name.replace('-', " ")).collect();
    let kinds: Vec<Kind> =
        Kind::ALL.into_iter().filter(|kind| names.iter().any(|name| name == kind.name())).collect();
    let kinds = if kinds.is_empty() { Kind::ALL.to_vec() } else { kinds };
    let peers = peers(binary)?;
    let wanted = |peer: &dyn Peer| {
        let apis = ["bolide rest", "bolide rest, one path", "bolide wire"];
        let some = names.iter().any(|name| apis.contains(&name.as_str()));
        !some || names.iter().any(|name| name == peer.name())
    };
    let sets: Vec<Arc<DataSet>> =
        peers.iter().map(|_| DataSet::new("c1024", Shape::of_size(1024), ITEMS)).collect();
    for (peer, set) in peers.iter().zip(&sets).filter(|(peer, _)| wanted(peer.as_ref())) {
        load(peer.as_ref(), set, CONNECTIONS)?;
        verify(peer.as_ref(), set, &kinds)?;
    }
    println!(
        "{:<16} {:<22} {:>9} {:>10} {:>9} {:>9} {:>9} {:>9}  (us)",
        "operation", "api", "cpu", "per second", "p50", "p99", "max", "client"
    );
    for kind in kinds {
        let mut runs: Vec<Vec<Figures>> = peers.iter().map(|_| Vec::new()).collect();
        for round in 0..rounds {
            for ((peer, set), runs) in peers.iter().zip(&sets).zip(&mut runs) {
                if peer.supports(kind) && wanted(peer.as_ref()) {
                    runs.push(drive(peer.as_ref(), set, plan(kind, round))?);
                }
            }
        }
        for (peer, runs) in peers.iter().zip(runs) {
            show(kind, peer.as_ref(), runs);
        }
    }
    Ok(())
}

fn peers(binary: &Path) -> Result<Vec<Box<dyn Peer>>> {
    let server = || Ok::<_, anyhow::Error>(Arc::new(Server::start(binary, &[])?));
    Ok(vec![
        Box::new(BolideRest::new(server()?, binary, Indexing::EveryPath)?),
        Box::new(BolideRest::new(server()?, binary, Indexing::OnePath)?),
        Box::new(BolideWire::new(server()?, binary)?),
    ])
}

fn plan(kind: Kind, seed: u64) -> Plan {
    Plan { kind, connections: CONNECTIONS, pace: Pace::Closed, warm_up: WARM_UP, length: LENGTH, seed }
}

fn show(kind: Kind, peer: &dyn Peer, mut runs: Vec<Figures>) {
    runs.sort_by(|left, right| left.server_us.total_cmp(&right.server_us));
    let Some(middle) = runs.get(runs.len() / 2) else { return };
    let [p50, p99, max] = [50.0, 99.0, 100.0].map(|percent| middle.latencies.percentile(percent));
    println!(
        "{:<16} {:<22} {:>9.1} {:>10.0} {p50:>9.0} {p99:>9.0} {max:>9.0} {:>9.1}",
        kind.name(),
        peer.name(),
        middle.server_us,
        middle.per_second(),
        middle.client_us
    );
    let failures: u64 = runs.iter().map(|run| run.failures).sum();
    if let Some(failure) = runs.iter().find_map(|run| run.failure.as_ref()) {
        println!("    {failures} failures, the first: {failure}");
    }
}

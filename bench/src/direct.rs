//! Direct mode beside REST: server CPU for each operation, both inside TLS, and the gain of many requests in flight on one
//! connection.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use bolide_bench::client::Server;
use bolide_bench::documents::{DataSet, Shape};
use bolide_bench::drive::{Figures, Pace, Plan, drive, load, verify};
use bolide_bench::peer::{BolideDirect, BolideRest, DirectConnection, Indexing, Peer};
use bolide_bench::workload::{Kind, Operation};

const ITEMS: u64 = 20_000;
const KINDS: [Kind; 3] = [Kind::Read, Kind::Insert, Kind::Query];
const CONNECTIONS: [usize; 2] = [1, 16];
const WARM_UP: Duration = Duration::from_millis(300);
const LENGTH: Duration = Duration::from_secs(2);
/// The number of requests that the SDKs have in flight on a connection.
const IN_FLIGHT: u64 = 30;
/// The aims: the ratio of server CPU in direct mode to that of REST, and the gain of many requests in flight.
const AIMS: [(Kind, f64); 2] = [(Kind::Read, 0.7), (Kind::Insert, 0.85)];
const GAIN_AIM: f64 = 3.0;

pub fn run(binary: &Path, rounds: u64) -> Result<()> {
    let server = || Ok::<_, anyhow::Error>(Arc::new(Server::start(binary, &[])?));
    let rest = BolideRest::new(server()?, binary, Indexing::EveryPath)?.inside_tls()?;
    let direct = BolideDirect::new(server()?, binary)?;
    let peers: [&dyn Peer; 2] = [&rest, &direct];
    let sets = peers.map(|_| DataSet::new("c1024", Shape::of_size(1024), ITEMS));
    for (peer, set) in peers.iter().zip(&sets) {
        load(*peer, set, 16)?;
        verify(*peer, set, &KINDS)?;
    }
    println!(
        "{:<12} {:>11} {:>14} {:>14} {:>7}  (us of server CPU)",
        "operation", "connections", "rest, tls", "direct", "ratio"
    );
    for connections in CONNECTIONS {
        for kind in KINDS {
            let mut figures = peers.map(|_| Vec::new());
            for seed in 0..rounds {
                let plan =
                    Plan { kind, connections, pace: Pace::Closed, warm_up: WARM_UP, length: LENGTH, seed };
                for ((peer, set), figures) in peers.iter().zip(&sets).zip(&mut figures) {
                    figures.push(drive(*peer, set, plan)?);
                }
            }
            let [rest, direct] = figures.map(middle);
            let aim = AIMS.iter().find(|(aimed, _)| *aimed == kind).map(|(_, aim)| format!("aim {aim}"));
            let (name, ratio) = (kind.name(), direct / rest);
            println!(
                "{name:<12} {connections:>11} {rest:>14.1} {direct:>14.1} {ratio:>7.2}  {}",
                aim.unwrap_or_default()
            );
        }
    }
    for kind in [Kind::Read, Kind::Insert] {
        let mut gains = Vec::new();
        for round in 0..rounds {
            let mut connection = direct.open(&sets[1])?;
            let first = ITEMS * 100 * (round + 1) + if kind == Kind::Read { 0 } else { ITEMS };
            let one = per_second(&mut connection, kind, 1, first)?;
            let many = per_second(&mut connection, kind, IN_FLIGHT, first + ITEMS * 40)?;
            gains.push(many / one);
        }
        gains.sort_by(f64::total_cmp);
        let (name, gain) = (kind.name(), gains[gains.len() / 2]);
        println!(
            "{name}: one connection with {IN_FLIGHT} in flight has {gain:.1} times the throughput of one with 1 (aim {GAIN_AIM})"
        );
    }
    Ok(())
}

fn middle(mut figures: Vec<Figures>) -> f64 {
    figures.sort_by(|left, right| left.server_us.total_cmp(&right.server_us));
    figures[figures.len() / 2].server_us
}

/// Returns the answers per second on one connection with so many requests in flight.
fn per_second(connection: &mut DirectConnection, kind: Kind, in_flight: u64, first: u64) -> Result<f64> {
    let operation = |number: u64| match kind {
        Kind::Insert => Operation::Insert(first + number),
        _ => Operation::Read(number % ITEMS),
    };
    let began = Instant::now();
    let (mut sent, mut answered) = (0, 0);
    while began.elapsed() < LENGTH {
        while sent - answered < in_flight {
            connection.send(operation(sent))?;
            sent += 1;
        }
        connection.receive()?;
        answered += 1;
    }
    let seconds = began.elapsed().as_secs_f64();
    for _ in answered..sent {
        connection.receive()?;
    }
    Ok(answered as f64 / seconds)
}

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
/// The length of a run, unless a report says otherwise.
const LENGTH: Duration = Duration::from_secs(2);
/// The number of requests that the SDKs have in flight on a connection.
pub const IN_FLIGHT: u64 = 30;
/// The aims for the ratio of server CPU in direct mode to that of REST.
pub const RATIO_AIMS: [(Kind, f64); 2] = [(Kind::Read, 0.7), (Kind::Insert, 0.85)];
/// The aim for the gain of many requests in flight.
pub const GAIN_AIM: f64 = 3.0;

/// Direct mode beside REST.
#[derive(Debug)]
pub struct Comparison {
    pub costs: Vec<Costs>,
    /// How many times the throughput of one connection with a single request is that of one with many in flight.
    pub gains: Vec<(Kind, f64)>,
}

/// Server CPU for one operation in microseconds, in the median round.
#[derive(Debug)]
pub struct Costs {
    pub kind: Kind,
    pub connections: usize,
    pub rest_us: f64,
    pub direct_us: f64,
}

impl Costs {
    /// Returns the cost in direct mode as a part of that over REST.
    pub fn ratio(&self) -> f64 {
        self.direct_us / self.rest_us
    }

    /// Returns what the ratio should be at most, if there is an aim for this operation.
    pub fn aim(&self) -> Option<f64> {
        RATIO_AIMS.iter().find(|(kind, _)| *kind == self.kind).map(|(_, aim)| *aim)
    }
}

/// Measures, and prints the results.
pub fn run(binary: &Path, rounds: u64) -> Result<()> {
    let Comparison { costs, gains } = measure(binary, rounds, LENGTH)?;
    println!(
        "{:<12} {:>11} {:>14} {:>14} {:>7}  (us of server CPU)",
        "operation", "connections", "rest, tls", "direct", "ratio"
    );
    for cost in &costs {
        let Costs { kind, connections, rest_us, direct_us } = cost;
        let aim = cost.aim().map(|aim| format!("aim {aim}")).unwrap_or_default();
        let (name, ratio) = (kind.name(), cost.ratio());
        println!("{name:<12} {connections:>11} {rest_us:>14.1} {direct_us:>14.1} {ratio:>7.2}  {aim}");
    }
    for (kind, gain) in gains {
        println!(
            "{}: one connection with {IN_FLIGHT} in flight has {gain:.1} times the throughput of one with 1 (aim {GAIN_AIM})",
            kind.name()
        );
    }
    Ok(())
}

/// Measures direct mode and REST in turn, in so many rounds of that length.
pub fn measure(binary: &Path, rounds: u64, length: Duration) -> Result<Comparison> {
    let server = || Ok::<_, anyhow::Error>(Arc::new(Server::start(binary, &[])?));
    let rest = BolideRest::new(server()?, binary, Indexing::EveryPath)?.inside_tls()?;
    let direct = BolideDirect::new(server()?, binary)?;
    let sets = [&rest as &dyn Peer, &direct].map(|_| DataSet::new("c1024", Shape::of_size(1024), ITEMS));
    for (peer, set) in [&rest as &dyn Peer, &direct].into_iter().zip(&sets) {
        load(peer, set, 16)?;
        verify(peer, set, &KINDS)?;
    }
    let mut costs = Vec::new();
    for connections in CONNECTIONS {
        for kind in KINDS {
            let mut figures = [Vec::new(), Vec::new()];
            for seed in 0..rounds {
                let plan = Plan { kind, connections, pace: Pace::Closed, warm_up: WARM_UP, length, seed };
                figures[0].push(drive(&rest, &sets[0], plan)?);
                figures[1].push(drive(&direct, &sets[1], plan)?);
            }
            let [rest_us, direct_us] = figures.map(middle);
            costs.push(Costs { kind, connections, rest_us, direct_us });
        }
    }
    let mut gains = Vec::new();
    for kind in [Kind::Read, Kind::Insert] {
        gains.push((kind, gain(&direct, &sets[1], kind, rounds, length)?));
    }
    Ok(Comparison { costs, gains })
}

/// Returns the gain of many requests in flight on a connection, in the median round.
fn gain(direct: &BolideDirect, set: &Arc<DataSet>, kind: Kind, rounds: u64, length: Duration) -> Result<f64> {
    let mut gains = Vec::new();
    for round in 0..rounds {
        let mut connection = direct.open(set)?;
        let first = ITEMS * 100 * (round + 1) + if kind == Kind::Read { 0 } else { ITEMS };
        let one = per_second(&mut connection, kind, 1, first, length)?;
        let many = per_second(&mut connection, kind, IN_FLIGHT, first + ITEMS * 40, length)?;
        gains.push(many / one);
    }
    gains.sort_by(f64::total_cmp);
    Ok(gains[gains.len() / 2])
}

fn middle(mut figures: Vec<Figures>) -> f64 {
    figures.sort_by(|left, right| left.server_us.total_cmp(&right.server_us));
    figures[figures.len() / 2].server_us
}

/// Returns the answers per second on one connection with so many requests in flight.
fn per_second(
    connection: &mut DirectConnection,
    kind: Kind,
    in_flight: u64,
    first: u64,
    length: Duration,
) -> Result<f64> {
    let operation = |number: u64| match kind {
        Kind::Insert => Operation::Insert(first + number),
        _ => Operation::Read(number % ITEMS),
    };
    let began = Instant::now();
    let (mut sent, mut answered) = (0, 0);
    while began.elapsed() < length {
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

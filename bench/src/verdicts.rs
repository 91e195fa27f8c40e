//! Decides whether Bolide meets its aims beside PostgreSQL, in so many interleaved rounds that chance does not decide.
//!
//! Each round runs every peer once, and gives one ratio for each API: the server's CPU for an operation, deferred work
//! included, divided by PostgreSQL's in the same round. An aim is met if the median of the ratios is at most the aim and
//! their third quartile at most a tenth more.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use bolide_bench::client::Server;
use bolide_bench::documents::{DataSet, Shape};
use bolide_bench::drive::{Figures, Pace, Plan, drive, load, verify};
use bolide_bench::peer::{BolideRest, BolideWire, Indexing, Peer, Postgres};
use bolide_bench::workload::Kind;

const ITEMS: u64 = 20_000;
const SIZE: usize = 1024;
/// The sizes of partitions that are measured.
const PARTITIONS: [u64; 3] = [10, 100, 10_000];
/// The partition size of operations that are not about a partition.
const ORDINARY: u64 = 100;
const MANY: usize = 16;
const WARM_UP: Duration = Duration::from_millis(300);
/// How much more than the aim the third quartile may be.
const SPREAD: f64 = 1.1;
const CACHE_MIB: u64 = 256;

/// What is compared.
#[derive(Debug, Clone, Copy)]
enum Measure {
    /// Server CPU for an operation.
    Cpu,
    /// The latency that half of the operations exceed.
    P50,
}

impl Measure {
    fn name(self) -> &'static str {
        match self {
            Measure::Cpu => "CPU",
            Measure::P50 => "p50",
        }
    }

    fn of(self, figures: &Figures) -> f64 {
        match self {
            Measure::Cpu => figures.server_us,
            Measure::P50 => figures.latencies.percentile(50.0),
        }
    }
}

/// A workload, and its largest cost as a ratio to PostgreSQL: over REST and over the MongoDB wire.
struct Aim {
    kind: Kind,
    partition_items: u64,
    connections: usize,
    at_most: &'static [(Measure, [f64; 2])],
}

const fn aim(kind: Kind, connections: usize, at_most: &'static [(Measure, [f64; 2])]) -> Aim {
    Aim { kind, partition_items: ORDINARY, connections, at_most }
}

const fn scoped(kind: Kind, partition_items: u64) -> Aim {
    Aim { kind, partition_items, connections: MANY, at_most: &[(Measure::Cpu, [0.9, 0.7])] }
}

const AIMS: [Aim; 14] = [
    aim(Kind::Read, MANY, &[(Measure::Cpu, [0.70, 0.55])]),
    aim(Kind::Read, 1, &[(Measure::Cpu, [1.3, 1.1])]),
    scoped(Kind::Scoped, PARTITIONS[0]),
    scoped(Kind::Scoped, PARTITIONS[1]),
    scoped(Kind::Scoped, PARTITIONS[2]),
    scoped(Kind::Top, PARTITIONS[0]),
    scoped(Kind::Top, PARTITIONS[1]),
    scoped(Kind::Top, PARTITIONS[2]),
    scoped(Kind::Count, PARTITIONS[0]),
    scoped(Kind::Count, PARTITIONS[1]),
    scoped(Kind::Count, PARTITIONS[2]),
    aim(Kind::Insert, MANY, &[(Measure::Cpu, [0.80, 0.45])]),
    aim(Kind::Replace, MANY, &[(Measure::Cpu, [0.75, 0.50])]),
    aim(Kind::Insert, 1, &[(Measure::Cpu, [1.5, 1.2]), (Measure::P50, [1.2, 1.0])]),
];

/// A peer with a set of documents for each size of partitions.
struct Loaded {
    peer: Box<dyn Peer>,
    sets: Vec<Arc<DataSet>>,
}

impl Loaded {
    fn new(peer: Box<dyn Peer>) -> Result<Loaded> {
        let mut sets = Vec::new();
        for partition_items in PARTITIONS {
            let shape = Shape { size: SIZE, partition_items };
            let set = DataSet::new(&format!("p{partition_items}"), shape, ITEMS);
            load(peer.as_ref(), &set, MANY)?;
            verify(peer.as_ref(), &set, &AIMS.map(|aim| aim.kind))?;
            sets.push(set);
        }
        Ok(Loaded { peer, sets })
    }

    fn drive(&self, aim: &Aim, seed: u64, length: Duration) -> Result<Figures> {
        let set = self.sets.iter().find(|set| set.shape.partition_items == aim.partition_items);
        let Aim { kind, connections, .. } = *aim;
        let plan = Plan { kind, connections, pace: Pace::Closed, warm_up: WARM_UP, length, seed };
        drive(self.peer.as_ref(), set.context("no such set")?, plan)
    }
}

/// Measures all aims, or those whose operation is named, and prints the verdicts.
pub fn run(binary: &Path, rounds: u64, length: Duration, names: &[String]) -> Result<()> {
    let server = || Ok::<_, anyhow::Error>(Arc::new(Server::start(binary, &[])?));
    let programs = Postgres::installed().context("PostgreSQL 15 is not installed")?;
    let apis = [
        Loaded::new(Box::new(BolideRest::new(server()?, binary, Indexing::EveryPath)?))?,
        Loaded::new(Box::new(BolideWire::new(server()?, binary)?))?,
    ];
    let postgres = Loaded::new(Box::new(Postgres::start(&programs, CACHE_MIB)?))?;
    println!(
        "{:<14} {:>9} {:>11} {:<12} {:<4} {:>6} {:>7} {:>8} {:>9} {:>9}  verdict",
        "operation", "partition", "connections", "api", "", "aim", "median", "3rd q.", "us", "theirs"
    );
    let is_wanted =
        |aim: &&Aim| names.is_empty() || names.iter().any(|name| name.replace('-', " ") == aim.kind.name());
    for aim in AIMS.iter().filter(is_wanted) {
        let mut measured: [Vec<Figures>; 3] = [const { Vec::new() }; 3];
        for round in 0..rounds {
            for (loaded, measured) in apis.iter().chain([&postgres]).zip(&mut measured) {
                measured.push(loaded.drive(aim, round, length)?);
            }
        }
        let [rest, wire, theirs] = measured;
        for (measure, at_most) in aim.at_most {
            for ((api, figures), at_most) in apis.iter().zip([&rest, &wire]).zip(at_most) {
                show(aim, api.peer.name(), *measure, *at_most, figures, &theirs);
            }
        }
    }
    Ok(())
}

fn show(aim: &Aim, api: &str, measure: Measure, at_most: f64, ours: &[Figures], theirs: &[Figures]) {
    let [mut ours, mut theirs] =
        [ours, theirs].map(|all| all.iter().map(|it| measure.of(it)).collect::<Vec<_>>());
    let mut ratios: Vec<f64> = ours.iter().zip(&theirs).map(|(ours, theirs)| ours / theirs).collect();
    let [median, third] = [0.5, 0.75].map(|part| quantile(&mut ratios, part));
    println!(
        "{:<14} {:>9} {:>11} {api:<12} {:<4} {at_most:>6.2} {median:>7.2} {third:>8.2} {:>9.1} {:>9.1}  {}",
        aim.kind.name(),
        aim.partition_items,
        aim.connections,
        measure.name(),
        quantile(&mut ours, 0.5),
        quantile(&mut theirs, 0.5),
        verdict(at_most, median, third)
    );
}

fn verdict(at_most: f64, median: f64, third: f64) -> &'static str {
    if median > at_most {
        "missed"
    } else if third > at_most * SPREAD {
        "met by the median, and not by the third quartile"
    } else {
        "met"
    }
}

/// Returns the value below which that part of the values lies, interpolated between two of them.
fn quantile(values: &mut [f64], part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let Some(last) = values.len().checked_sub(1) else { return f64::NAN };
    let at = part * last as f64;
    let (low, high) = (values[at.floor() as usize], values[at.ceil() as usize]);
    low + (high - low) * at.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_values() {
        let mut values = [4.0, 1.0, 3.0, 2.0, 5.0];
        assert_eq!([0.0, 0.5, 0.75, 1.0].map(|part| quantile(&mut values, part)), [1.0, 3.0, 4.0, 5.0]);
        assert_eq!(quantile(&mut [1.0, 2.0], 0.75), 1.75);
        assert!(quantile(&mut [], 0.5).is_nan());
    }

    #[test]
    fn an_aim_is_met_by_the_median_and_nearly_by_the_third_quartile() {
        assert_eq!(verdict(1.0, 1.0, 1.1), "met");
        assert_ne!(verdict(1.0, 1.0, 1.2), "met");
        assert_eq!(verdict(1.0, 1.01, 1.01), "missed");
    }
}

//! The comparison of all peers, interleaved: each workload runs on every peer in turn, several rounds, so that other load
//! on the machine affects all of them.
//!
//! A bad run neither ends the others nor gets into a table: the report lists it.

mod bare;
mod cold;
mod options;
mod transport;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bolide_bench::churn::{self, Churn};
use bolide_bench::client::Server;
use bolide_bench::documents::{DataSet, PARTITION_ITEMS, Shape};
use bolide_bench::drive::{Figures, Pace, Plan, drive, load, verify};
use bolide_bench::peer::{
    About, BolideRest, BolideWire, CosmosServer, Floor, Indexing, Loop, Peer, Postgres, Redis,
};
use bolide_bench::workload::Kind;

pub use self::options::{Extent, Options};
use crate::direct::{self, Comparison};
use crate::grow::{self, Growth};
use crate::purge::{self, StormEffect};
use crate::report;
use crate::verdicts::{self, Verdicts};

/// The results of one peer in one workload.
pub struct Run {
    pub section: Section,
    pub kind: Kind,
    pub size: usize,
    pub connections: usize,
    pub peer: String,
    pub rounds: Vec<Figures>,
    pub failure: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// 1 KB, 16 connections.
    Main,
    /// One connection, all operations.
    One,
    /// Many connections.
    Connections,
    /// TLS and HTTP/2.
    Transport,
    Sizes,
    /// Reads right after a start without anything in caches.
    Cold,
    /// With four times as much data as the servers' caches hold.
    Large,
    /// At a fixed rate.
    OpenLoop,
}

impl Run {
    /// Returns the median by CPU.
    pub fn middle(&self) -> Option<&Figures> {
        let mut sorted: Vec<&Figures> = self.rounds.iter().collect();
        sorted.sort_by(|left, right| left.server_us.total_cmp(&right.server_us));
        sorted.get(sorted.len() / 2).copied()
    }
}

/// The bare store with the commits of an insert.
pub struct Bare {
    pub indexing: &'static str,
    pub cpu_us: f64,
    pub per_second: f64,
    pub entries: u64,
}

/// All results of a report.
#[derive(Default)]
pub struct Results {
    pub peers: Vec<(String, About)>,
    /// The parts that could not be measured, with the reasons.
    pub missing: Vec<String>,
    pub runs: Vec<Run>,
    pub bare: Vec<Bare>,
    pub verdicts: Option<Verdicts>,
    /// Direct mode beside REST.
    pub direct: Option<Comparison>,
    pub growth: Option<Growth>,
    pub storm: Option<StormEffect>,
    pub churn: Option<Churn>,
    pub seconds: f64,
}

/// A peer and its sets of documents.
struct MeasuredPeer {
    peer: Box<dyn Peer>,
    sets: Vec<Arc<DataSet>>,
}

pub const SIZES: [usize; 4] = [1024, 256, 10_240, 102_400];
pub const CONNECTIONS: usize = 16;
pub const OPEN_RATE: f64 = 500.0;
const WARM_UP: Duration = Duration::from_millis(200);
/// The length of the longer of the two churn runs.
const CHURN: Duration = Duration::from_mins(30);

pub fn run(binary: &Path, arguments: &[String]) -> Result<()> {
    let options = Options::parse(arguments)?;
    let began = Instant::now();
    let before = report::load_average();
    let mut results = Results::default();
    let mut places = start(binary, &options, &mut results)?;
    fill(&mut places, &options, &mut results);
    let all_peers: Vec<&MeasuredPeer> = places.iter().collect();
    main_part(&all_peers, &options, &mut results);
    one_part(&all_peers, &options, &mut results);
    connections_part(&all_peers, &options, &mut results);
    sizes_part(&all_peers, &options, &mut results);
    open_loop_part(&all_peers, &options, &mut results);
    drop(places);
    note(&mut results, "TLS and HTTP/2", |results| transport::measure(binary, &options, results));
    note(&mut results, "reads after a cold start", |results| cold::measure(binary, &options, results));
    note(&mut results, "more than the cache", |results| large_part(binary, &options, results));
    note(&mut results, "bare store", |results| bare::measure(binary, &options, results));
    note(&mut results, "verdicts", |results| verdicts_part(binary, &options, results));
    note(&mut results, "direct mode", |results| {
        results.direct = Some(direct::measure(binary, options.rounds(), options.length())?);
        Ok(())
    });
    note(&mut results, "growth", |results| {
        results.growth = Some(grow::run(binary, options.most_items())?);
        Ok(())
    });
    note(&mut results, "mass expiry", |results| {
        let (items, seconds) = if options.extent == Extent::Quick { (50_000, 8) } else { (1_000_000, 30) };
        results.storm = Some(purge::storm(binary, items, Duration::from_secs(seconds))?);
        Ok(())
    });
    if options.extent == Extent::Long {
        note(&mut results, "churn", |results| {
            results.churn = Some(churn::run(binary, CHURN)?);
            Ok(())
        });
    }
    results.seconds = began.elapsed().as_secs_f64();
    report::write(&options, &results, &before)
}

/// Runs a part; notes its failure, and goes on.
fn note(results: &mut Results, what: &str, part: impl FnOnce(&mut Results) -> Result<()>) {
    println!("{what}");
    if let Err(error) = part(results) {
        results.missing.push(format!("{what}: {error:#}"));
    }
}

/// Starts all available peers. Bolide is required; missing peers are noted.
fn start(binary: &Path, options: &Options, results: &mut Results) -> Result<Vec<MeasuredPeer>> {
    let server = || Ok::<_, anyhow::Error>(Arc::new(Server::start(binary, &[])?));
    let mut peers: Vec<Box<dyn Peer>> = vec![
        Box::new(BolideRest::new(server()?, binary, Indexing::EveryPath)?),
        Box::new(BolideRest::new(server()?, binary, Indexing::OnePath)?),
        Box::new(BolideWire::new(server()?, binary)?),
    ];
    let mut others: Vec<(&str, Result<Box<dyn Peer>>)> = Vec::new();
    let postgres =
        Postgres::installed().context("it is not installed").and_then(|at| Postgres::start(&at, 256));
    others.push(("postgresql", postgres.map(|peer| Box::new(peer) as Box<dyn Peer>)));
    let cosmos = options.cosmos.as_deref().context("it is not installed").and_then(CosmosServer::start);
    others.push(("cosmosdb-server", cosmos.map(|peer| Box::new(peer) as Box<dyn Peer>)));
    others.push(("redis", Redis::start().map(|peer| Box::new(peer) as Box<dyn Peer>)));
    for (name, of) in [("empty http loop", Loop::Http), ("empty wire loop", Loop::Wire)] {
        others.push((name, Floor::start(&options.baselines, of).map(|peer| Box::new(peer) as Box<dyn Peer>)));
    }
    for (name, started) in others {
        match started {
            Ok(peer) => peers.push(peer),
            Err(error) => results.missing.push(format!("{name}: not measured: {error:#}")),
        }
    }
    results.peers = peers.iter().map(|peer| (peer.name().to_owned(), peer.about().clone())).collect();
    Ok(peers.into_iter().map(|peer| MeasuredPeer { peer, sets: Vec::new() }).collect())
}

/// Loads all sets; a peer that fails to load is excluded.
fn fill(places: &mut Vec<MeasuredPeer>, options: &Options, results: &mut Results) {
    places.retain_mut(|place| {
        for size in SIZES {
            let items = match size {
                1024 => options.items(),
                // At least one whole partition.
                102_400 => (options.items() / 100).max(PARTITION_ITEMS),
                _ => options.items() / 10,
            };
            let set = DataSet::new(&format!("c{size}"), Shape::of_size(size), items);
            let filled = load(place.peer.as_ref(), &set, CONNECTIONS)
                .and_then(|()| verify(place.peer.as_ref(), &set, &Kind::ALL));
            if let Err(error) = filled {
                results.missing.push(format!("{}: {error:#}", place.peer.name()));
                return false;
            }
            place.sets.push(set);
        }
        println!("loaded {}", place.peer.name());
        true
    });
}

/// Runs one workload on every peer in turn, for all rounds.
fn go_round(
    places: &[&MeasuredPeer],
    options: &Options,
    results: &mut Results,
    section: Section,
    plan: Plan,
    set: usize,
) {
    let mut runs: Vec<Run> = Vec::new();
    for place in places.iter().filter(|place| place.peer.supports(plan.kind)) {
        runs.push(Run {
            section,
            kind: plan.kind,
            size: SIZES[set],
            connections: plan.connections,
            peer: place.peer.name().to_owned(),
            rounds: Vec::new(),
            failure: None,
        });
    }
    let rounds = if section == Section::Main { options.rounds() } else { (options.rounds() / 2).max(1) };
    for round in 0..rounds {
        for run in &mut runs {
            let place = places.iter().find(|place| place.peer.name() == run.peer).expect("it was just there");
            match drive(place.peer.as_ref(), &place.sets[set], Plan { seed: round, ..plan }) {
                Ok(figures) => run.rounds.push(figures),
                Err(error) => run.failure = Some(format!("{error:#}")),
            }
        }
    }
    runs.iter().for_each(show);
    results.runs.extend(runs);
}

/// Prints the median round.
fn show(run: &Run) {
    if let Some(figures) = run.middle() {
        println!(
            "{:<16} {:>6} B {:>3} connections  {:<22} {:>8.1} us of CPU, {:>7.0}/s, p99 {:>8.0} us",
            run.kind.name(),
            run.size,
            run.connections,
            run.peer,
            figures.server_us,
            figures.per_second(),
            figures.latencies.percentile(99.0)
        );
    }
}

fn plan(kind: Kind, connections: usize, pace: Pace, options: &Options) -> Plan {
    Plan { kind, connections, pace, warm_up: WARM_UP, length: options.length(), seed: 0 }
}

fn main_part(places: &[&MeasuredPeer], options: &Options, results: &mut Results) {
    for kind in Kind::ALL {
        go_round(places, options, results, Section::Main, plan(kind, CONNECTIONS, Pace::Closed, options), 0);
    }
}

/// One connection, as most applications have it: Bolide, its lower bounds and PostgreSQL.
fn one_part(places: &[&MeasuredPeer], options: &Options, results: &mut Results) {
    let is_wanted = |name: &str| {
        matches!(name, "bolide rest" | "bolide wire" | "postgresql") || name.starts_with("empty")
    };
    let some: Vec<&MeasuredPeer> =
        places.iter().copied().filter(|place| is_wanted(place.peer.name())).collect();
    for kind in Kind::ALL {
        go_round(&some, options, results, Section::One, plan(kind, 1, Pace::Closed, options), 0);
    }
}

fn connections_part(places: &[&MeasuredPeer], options: &Options, results: &mut Results) {
    for connections in [64, 256] {
        for kind in [Kind::Read, Kind::Insert] {
            let plan = plan(kind, connections, Pace::Closed, options);
            go_round(places, options, results, Section::Connections, plan, 0);
        }
    }
}

fn sizes_part(places: &[&MeasuredPeer], options: &Options, results: &mut Results) {
    let kinds: &[Kind] = match options.extent {
        Extent::Quick => &[Kind::Read, Kind::Insert],
        _ => &[Kind::Read, Kind::Query, Kind::Insert, Kind::Replace, Kind::Patch],
    };
    // The empty loops answer 1 KB to every request.
    let sized: Vec<&MeasuredPeer> =
        places.iter().copied().filter(|place| !place.peer.name().starts_with("empty")).collect();
    for set in 1..SIZES.len() {
        for kind in kinds {
            let plan = plan(*kind, CONNECTIONS, Pace::Closed, options);
            go_round(&sized, options, results, Section::Sizes, plan, set);
        }
    }
}

fn open_loop_part(places: &[&MeasuredPeer], options: &Options, results: &mut Results) {
    for kind in [Kind::Read, Kind::Insert, Kind::Mixed50] {
        let plan = plan(kind, CONNECTIONS, Pace::Open(OPEN_RATE), options);
        go_round(places, options, results, Section::OpenLoop, plan, 0);
    }
}

/// Returns a quarter of the size of the documents.
pub fn small_cache_mib(options: &Options) -> u64 {
    (options.items() * SIZES[0] as u64 / 4) >> 20
}

/// Loads the ordinary set into each peer.
fn loaded(peers: Vec<Box<dyn Peer>>, options: &Options) -> Result<Vec<MeasuredPeer>> {
    let mut places: Vec<MeasuredPeer> =
        peers.into_iter().map(|peer| MeasuredPeer { peer, sets: Vec::new() }).collect();
    for place in &mut places {
        let set = DataSet::new("c1024", Shape::of_size(SIZES[0]), options.items());
        load(place.peer.as_ref(), &set, CONNECTIONS)?;
        place.sets.push(set);
    }
    Ok(places)
}

fn verdicts_part(binary: &Path, options: &Options, results: &mut Results) -> Result<()> {
    let (rounds, length) = options.verdict_rounds();
    let extent = verdicts::Extent { rounds, length, names: &[], baselines: &options.baselines };
    let verdicts = verdicts::measure(binary, &extent)?;
    results.missing.extend(verdicts.missing.iter().cloned());
    results.verdicts = Some(verdicts);
    Ok(())
}

fn large_part(binary: &Path, options: &Options, results: &mut Results) -> Result<()> {
    let mib = small_cache_mib(options);
    let bytes = (mib << 20).to_string();
    let server = || Ok::<_, anyhow::Error>(Arc::new(Server::start(binary, &["--cache-memory", &bytes])?));
    let mut peers: Vec<Box<dyn Peer>> = vec![
        Box::new(BolideRest::new(server()?, binary, Indexing::EveryPath)?),
        Box::new(BolideWire::new(server()?, binary)?),
    ];
    if let Some(programs) = Postgres::installed() {
        peers.push(Box::new(Postgres::start(&programs, mib)?));
    }
    let places = loaded(peers, options)?;
    let all_peers: Vec<&MeasuredPeer> = places.iter().collect();
    for kind in [Kind::Read, Kind::Query, Kind::Insert, Kind::Replace, Kind::Mixed50] {
        let plan = plan(kind, CONNECTIONS, Pace::Closed, options);
        go_round(&all_peers, options, results, Section::Large, plan, 0);
    }
    Ok(())
}

//! Decides whether Bolide meets its aims beside PostgreSQL, in so many interleaved rounds that chance does not decide.
//!
//! Each round runs every peer once, and gives one ratio for each API: the server's CPU for an operation, deferred work
//! included, divided by PostgreSQL's in the same round. An aim is met if the median of the ratios is at most the aim and
//! their third quartile at most a tenth more.

mod aims;
mod judge;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use bolide_bench::client::Server;
use bolide_bench::documents::{DataSet, Shape};
use bolide_bench::drive::{Figures, Pace, Plan, drive, load, verify};
use bolide_bench::peer::{BolideRest, BolideWire, Floor, Indexing, Loop, Peer, Postgres};
use bolide_bench::workload::Kind;

use self::aims::{AIMS, Aim, MANY, Measure, PARTITIONS};
use self::judge::Sides;
pub use self::judge::{Outcome, Verdict};

const ITEMS: u64 = 20_000;
/// The documents that a scan looks at.
pub const SCANNED_ITEMS: u64 = 100_000;
const SIZE: usize = 1024;
const WARM_UP: Duration = Duration::from_millis(200);
/// The shortest run of scans, each of which takes some tenths of a second.
const SCAN_LENGTH: Duration = Duration::from_secs(2);
const CACHE_MIB: u64 = 256;

/// How often and how long each workload runs, and of which peers.
pub struct Extent<'a> {
    pub rounds: u64,
    pub length: Duration,
    /// Names of operations; none means all.
    pub names: &'a [String],
    /// The program with the empty HTTP loop.
    pub baselines: &'a Path,
}

/// The runs of one peer in one workload, one for each round.
pub struct Measured {
    pub aim: Aim,
    pub who: String,
    pub rounds: Vec<Figures>,
}

/// All results.
pub struct Verdicts {
    pub rounds: u64,
    pub length: Duration,
    pub verdicts: Vec<Verdict>,
    pub measured: Vec<Measured>,
    /// What PostgreSQL says about its settings and indexes.
    pub configuration: Vec<String>,
    /// What could not be measured, with the reasons.
    pub missing: Vec<String>,
}

/// What a peer is compared for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    /// Bolide, with the aims of this position.
    Judged(usize),
    /// Bolide over REST with the same composite index as the others, for the operations that it is made for.
    JudgedWithComposite,
    Postgres,
    Loop,
}

impl Side {
    /// Returns whether the peer takes part in a workload.
    fn has(self, aim: &Aim) -> bool {
        match self {
            Side::Judged(_) | Side::Postgres => true,
            Side::JudgedWithComposite => matches!(aim.kind, Kind::Top | Kind::Count),
            Side::Loop => aim.of_the_loop.is_some(),
        }
    }

    /// Returns which of a workload's aims the peer has.
    fn api(self) -> Option<usize> {
        match self {
            Side::Judged(api) => Some(api),
            Side::JudgedWithComposite => Some(REST),
            Side::Postgres | Side::Loop => None,
        }
    }
}

/// A peer with its sets of documents.
struct Loaded {
    side: Side,
    peer: Box<dyn Peer>,
    sets: Vec<Arc<DataSet>>,
}

impl Loaded {
    fn new(side: Side, peer: impl Peer + 'static, wanted: &[&Aim]) -> Result<Loaded> {
        let peer: Box<dyn Peer> = Box::new(peer);
        let wanted: Vec<&Aim> = wanted.iter().copied().filter(|aim| side.has(aim)).collect();
        let mut sets = Vec::new();
        let shape = Shape::of_size(SIZE);
        for partition_items in PARTITIONS {
            let set =
                DataSet::new(&format!("p{partition_items}"), shape.in_partitions_of(partition_items), ITEMS);
            sets.push(set);
        }
        sets.push(DataSet::new("named", shape.named(), SCANNED_ITEMS));
        sets.retain(|set| wanted.iter().any(|aim| is_of(aim, set)));
        for set in &sets {
            let kinds: Vec<Kind> = wanted.iter().filter(|aim| is_of(aim, set)).map(|aim| aim.kind).collect();
            load(peer.as_ref(), set, MANY)?;
            verify(peer.as_ref(), set, &kinds)?;
        }
        println!("loaded {}", peer.name());
        Ok(Loaded { side, peer, sets })
    }

    fn drive(&self, aim: &Aim, seed: u64, length: Duration) -> Result<Figures> {
        let set = self.sets.iter().find(|set| is_of(aim, set)).context("no such set")?;
        let length = if aim.kind == Kind::Contains { length.max(SCAN_LENGTH) } else { length };
        let Aim { kind, connections, .. } = *aim;
        let plan = Plan { kind, connections, pace: Pace::Closed, warm_up: WARM_UP, length, seed };
        drive(self.peer.as_ref(), set, plan).with_context(|| format!("{}: {}", self.peer.name(), kind.name()))
    }
}

/// Returns whether a workload runs on a set.
fn is_of(aim: &Aim, set: &DataSet) -> bool {
    let is_scan = aim.kind == Kind::Contains;
    set.shape.is_named == is_scan && (is_scan || set.shape.partition_items == aim.partition_items)
}

/// Measures and prints the verdicts.
pub fn run(binary: &Path, extent: &Extent<'_>) -> Result<()> {
    for missing in measure(binary, extent)?.missing {
        println!("{missing}");
    }
    Ok(())
}

/// Measures all wanted aims, and prints each verdict as soon as it is known.
pub fn measure(binary: &Path, extent: &Extent<'_>) -> Result<Verdicts> {
    let is_wanted = |aim: &&Aim| {
        let named = |name: &String| name.replace('-', " ") == aim.kind.name();
        extent.names.is_empty() || extent.names.iter().any(named)
    };
    let wanted: Vec<&Aim> = AIMS.iter().filter(is_wanted).collect();
    let server = || Ok::<_, anyhow::Error>(Arc::new(Server::start(binary, &[])?));
    let programs = Postgres::installed().context("PostgreSQL 15 is not installed")?;
    let rest = |indexing| BolideRest::new(server()?, binary, indexing);
    let mut peers = vec![
        Loaded::new(Side::Judged(REST), rest(Indexing::EveryPath)?, &wanted)?,
        Loaded::new(Side::Judged(WIRE), BolideWire::new(server()?, binary)?, &wanted)?,
    ];
    if wanted.iter().any(|aim| Side::JudgedWithComposite.has(aim)) {
        let rest = rest(Indexing::EveryPathAndComposite)?;
        peers.push(Loaded::new(Side::JudgedWithComposite, rest, &wanted)?);
    }
    let postgres = Loaded::new(Side::Postgres, Postgres::start(&programs, CACHE_MIB)?, &wanted)?;
    let configuration = postgres.peer.configuration()?;
    peers.push(postgres);
    let mut missing = Vec::new();
    if wanted.iter().any(|aim| Side::Loop.has(aim)) {
        let floor = Floor::start(extent.baselines, Loop::Http);
        match floor.and_then(|floor| Loaded::new(Side::Loop, floor, &wanted)) {
            Ok(floor) => peers.push(floor),
            Err(error) => missing.push(format!("empty http loop: not measured: {error:#}")),
        }
    }
    let (mut verdicts, mut measured) = (Vec::new(), Vec::new());
    head();
    for aim in wanted {
        let runs = rounds(&peers, aim, extent)?;
        let decided = decide(aim, &runs);
        decided.iter().for_each(show);
        verdicts.extend(decided);
        measured.extend(runs.into_iter().map(|(_, measured)| measured));
    }
    let Extent { rounds, length, .. } = *extent;
    Ok(Verdicts { rounds, length, verdicts, measured, configuration, missing })
}

/// The positions of aims.
const REST: usize = 0;
const WIRE: usize = 1;

/// Runs one workload on all its peers in turn, in every other round in the reverse order.
fn rounds(peers: &[Loaded], aim: &Aim, extent: &Extent<'_>) -> Result<Vec<(Side, Measured)>> {
    let peers: Vec<&Loaded> = peers.iter().filter(|peer| peer.side.has(aim)).collect();
    let measured = |peer: &&Loaded| {
        (peer.side, Measured { aim: *aim, who: peer.peer.name().to_owned(), rounds: Vec::new() })
    };
    let mut runs: Vec<(Side, Measured)> = peers.iter().map(measured).collect();
    for round in 0..extent.rounds {
        let mut order: Vec<usize> = (0..peers.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for at in order {
            runs[at].1.rounds.push(peers[at].drive(aim, round, extent.length)?);
        }
    }
    Ok(runs)
}

fn decide(aim: &Aim, runs: &[(Side, Measured)]) -> Vec<Verdict> {
    let of = |wanted: Side| runs.iter().find(|(side, _)| *side == wanted).map(|(_, measured)| measured);
    let judged = || runs.iter().filter_map(|(side, measured)| Some((side.api()?, measured)));
    let Some(postgres) = of(Side::Postgres) else { return Vec::new() };
    let mut verdicts = Vec::new();
    for (measure, at_most) in aim.at_most {
        let verdict = |(api, ours): (usize, &Measured)| {
            judge::ratio(aim, *measure, at_most[api], &Sides::of(ours, postgres))
        };
        verdicts.extend(judged().map(verdict));
    }
    if let (Some(at_most), Some(rest), Some(floor)) =
        (aim.of_the_loop, of(Side::Judged(REST)), of(Side::Loop))
    {
        verdicts.push(judge::ratio(aim, Measure::Cpu, at_most, &Sides::of(rest, floor)));
    }
    if let Some(at_most) = aim.pause_ms() {
        verdicts.extend(judged().map(|(_, ours)| judge::pause(aim, at_most, &Sides::of(ours, postgres))));
    }
    verdicts
}

fn head() {
    println!(
        "{:<13} {:>9} {:>11} {:<20} {:<15} {:<7} {:>6} {:>7} {:>7} {:>7} {:>9} {:>9}  verdict",
        "operation",
        "partition",
        "connections",
        "api",
        "beside",
        "",
        "aim",
        "median",
        "3rd q.",
        "all",
        "ours",
        "theirs"
    );
}

fn show(verdict: &Verdict) {
    let Verdict { aim, who, beside, measure, at_most, median, third, overall, ours, theirs, outcome } =
        verdict;
    println!(
        "{:<13} {:>9} {:>11} {who:<20} {beside:<15} {:<7} {at_most:>6.2} {median:>7.2} {third:>7.2} {overall:>7.2} \
         {ours:>9.1} {theirs:>9.1}  {outcome}",
        aim.kind.name(),
        aim.partition_items,
        aim.connections,
        measure.name()
    );
}

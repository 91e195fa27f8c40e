//! The goals that are not about PostgreSQL, and by how much they are met or missed: those that are, verdicts decide.

use std::fmt::Write as _;

use bolide_bench::churn::{Bound, Churn};
use bolide_bench::workload::Kind;

use self::Limit::{AtLeast, AtMost};
use super::main_figures;
use crate::compare::Results;
use crate::direct::{Comparison, Costs, GAIN_AIM, IN_FLIGHT};
use crate::purge::StormEffect;

const REST: &str = "bolide rest";
const ONE_PATH: &str = "bolide rest, one path";
const WIRE: &str = "bolide wire";

/// The largest server CPU in microseconds, with 1 KB documents and 16 connections.
const COSTS: [(Kind, &str, f64); 8] = [
    (Kind::Read, REST, 25.0),
    (Kind::Read, WIRE, 15.0),
    (Kind::Insert, REST, 100.0),
    (Kind::Insert, ONE_PATH, 60.0),
    (Kind::Query, REST, 105.0),
    (Kind::Query, WIRE, 90.0),
    (Kind::Replace, REST, 120.0),
    (Kind::Replace, WIRE, 70.0),
];

/// The server's cache, as it is by default.
const CACHE_BYTES: u64 = 256 << 20;

struct Aim {
    what: String,
    limit: Limit,
    found: Option<f64>,
    unit: &'static str,
}

#[derive(Clone, Copy)]
enum Limit {
    AtMost(f64),
    AtLeast(f64),
}

impl Limit {
    /// Returns `met`, or by how much the aim is missed.
    fn verdict(self, found: f64) -> String {
        let missed = match self {
            AtMost(limit) if found > limit => found / limit - 1.0,
            AtLeast(limit) if found < limit => 1.0 - found / limit,
            AtMost(_) | AtLeast(_) => return "met".to_owned(),
        };
        format!("**missed by {:.0} %**", missed * 100.0)
    }
}

pub(super) fn table(text: &mut String, results: &Results) {
    text.push_str("## Other aims\n\n| aim | limit | measured | |\n|---|---|---|---|\n");
    let mut aims = costs(results);
    aims.extend(ratios(results));
    aims.extend(direct_mode(results));
    aims.extend(expired(results));
    aims.extend(grown(results));
    aims.extend(churned(results));
    for Aim { what, limit, found, unit } in aims {
        let (found, verdict) = match found {
            None => ("-".to_owned(), "not measured".to_owned()),
            Some(found) => (format!("{}{unit}", number(found)), limit.verdict(found)),
        };
        let limit = match limit {
            AtMost(limit) => format!("at most {}{unit}", number(limit)),
            AtLeast(limit) => format!("at least {}{unit}", number(limit)),
        };
        let _ = writeln!(text, "| {what} | {limit} | {found} | {verdict} |");
    }
    text.push('\n');
}

fn number(value: f64) -> String {
    if value < 10.0 { format!("{value:.2}") } else { format!("{value:.0}") }
}

fn costs(results: &Results) -> Vec<Aim> {
    let aim = |(kind, peer, at_most): (Kind, &str, f64)| Aim {
        what: format!("CPU of one {}, {peer}", kind.name()),
        limit: AtMost(at_most),
        found: main_figures(results, kind, peer).map(|figures| figures.server_us),
        unit: " us",
    };
    COSTS.map(aim).into()
}

fn ratios(results: &Results) -> Vec<Aim> {
    let cost = |kind, peer: &str| main_figures(results, kind, peer).map(|figures| figures.server_us);
    let ratio = |left: Option<f64>, right: Option<f64>| Some(left? / right?);
    let mut aims = vec![
        Aim {
            what: "patch / replace, REST".to_owned(),
            limit: AtMost(1.0),
            found: ratio(cost(Kind::Patch, REST), cost(Kind::Replace, REST)),
            unit: "",
        },
        Aim {
            what: "patch / replace, wire".to_owned(),
            limit: AtMost(1.0),
            found: ratio(cost(Kind::Patch, WIRE), cost(Kind::Replace, WIRE)),
            unit: "",
        },
    ];
    for bare in &results.bare {
        let peer = if bare.indexing == "every path" { REST } else { ONE_PATH };
        aims.push(Aim {
            what: format!("insert / bare store's commit, {} indexed", bare.indexing),
            limit: AtMost(1.5),
            found: ratio(cost(Kind::Insert, peer), Some(bare.cpu_us)),
            unit: "",
        });
    }
    aims
}

fn direct_mode(results: &Results) -> Vec<Aim> {
    // The list of bad runs says why it is missing.
    let Some(Comparison { costs, gains }) = &results.direct else { return Vec::new() };
    let ratio = |cost: &Costs| {
        Some(Aim {
            what: format!(
                "CPU of one {} in direct mode / REST, {} connection(s)",
                cost.kind.name(),
                cost.connections
            ),
            limit: AtMost(cost.aim()?),
            found: Some(cost.ratio()),
            unit: "",
        })
    };
    let gain = |(kind, gain): &(Kind, f64)| Aim {
        what: format!(
            "throughput of one connection in direct mode, {IN_FLIGHT} {}s in flight / 1",
            kind.name()
        ),
        limit: AtLeast(GAIN_AIM),
        found: Some(*gain),
        unit: "",
    };
    costs.iter().filter_map(ratio).chain(gains.iter().map(gain)).collect()
}

fn expired(results: &Results) -> Vec<Aim> {
    let storm = results.storm.as_ref();
    let items = storm.map_or("items".to_owned(), |storm| format!("{} items", storm.items));
    let aim = |what: &str, at_most: f64, found: fn(&StormEffect) -> f64, unit| Aim {
        what: format!("mass expiry of {items}: {what}"),
        limit: AtMost(at_most),
        // A ratio without a measurement is not a number.
        found: storm.map(found).filter(|found| found.is_finite()),
        unit,
    };
    vec![
        aim("expired items seen", 0.0, |storm| storm.ghosts as f64, ""),
        aim("readers' p99 while purged / while paused", 1.3, |storm| storm.read_ratio, ""),
        aim("writers' p99 while purged / while paused", 1.3, |storm| storm.write_ratio, ""),
        aim("readers' p99", 10.0, |storm| storm.read_p99_ms, " ms"),
        aim("slowest write", 100.0, |storm| storm.worst_write_ms, " ms"),
        aim("CPU of a purged item / of its insert", 1.0, |storm| storm.purge_to_insert, ""),
    ]
}

/// Returns how much more an operation may cost in a container of this size: more where it reads items of which most are
/// not in the cache.
fn most_growth(kind: &str, data_bytes: u64) -> f64 {
    let reads = [Kind::Read, Kind::Replace, Kind::Patch].map(Kind::name);
    match (reads.contains(&kind), data_bytes <= CACHE_BYTES) {
        (false, _) => 1.2,
        (true, true) => 1.5,
        (true, false) => 2.0,
    }
}

fn churned(results: &Results) -> Vec<Aim> {
    let bounds = results.churn.iter().flat_map(Churn::bounds);
    let aim = |Bound { what, at_most, found }| Aim {
        what: format!("churn: {what}"),
        limit: AtMost(at_most),
        found: Some(found).filter(|found| found.is_finite()),
        unit: "",
    };
    bounds.map(aim).collect()
}

fn grown(results: &Results) -> Vec<Aim> {
    // The list of bad runs says why it is missing.
    let Some(growth) = &results.growth else { return Vec::new() };
    let Some((first, last)) = growth.steps.first().zip(growth.steps.last()) else { return Vec::new() };
    let mut aims = vec![Aim {
        what: "ready on an empty store".to_owned(),
        limit: AtMost(100.0),
        found: Some(growth.start_empty.as_secs_f64() * 1e3),
        unit: " ms",
    }];
    for (what, at_most, found) in [
        ("ready after a stop", 1000.0, last.start_after_stop),
        ("ready after kill -9", 10_000.0, last.start_after_kill),
    ] {
        let what = format!("{what}, {} items", last.items);
        aims.push(Aim { what, limit: AtMost(at_most), found: Some(found.as_secs_f64() * 1e3), unit: " ms" });
    }
    aims.push(Aim {
        what: format!("resident memory at most, {} items", last.items),
        limit: AtMost(512.0),
        found: Some(last.peak_mib as f64),
        unit: " MiB",
    });
    aims.push(Aim {
        what: format!("on disk after compaction for a document of {} bytes", growth.document_bytes),
        limit: AtMost(1300.0),
        found: Some(growth.compacted_bytes),
        unit: " bytes",
    });
    let kinds = crate::grow::KINDS.iter().map(|kind| kind.name()).chain(["purged item"]);
    let few = first.costs.iter().chain([&first.purge_us]);
    let many = last.costs.iter().chain([&last.purge_us]);
    let data_bytes = last.items * growth.document_bytes as u64;
    for ((kind, few), many) in kinds.zip(few).zip(many) {
        aims.push(Aim {
            what: format!("CPU of one {kind} at {} items / at {}", last.items, first.items),
            limit: AtMost(most_growth(kind, data_bytes)),
            found: Some(many / few),
            unit: "",
        });
    }
    aims
}

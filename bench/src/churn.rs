//! Inserts and expiries at equal rates for long, with readers: does anything grow, and what does an expiry cost?
//!
//! One long run at a fixed rate shows whether disk, memory and the readers' latency stay flat: its last quarter is compared
//! with its second, because the first fills caches. Pairs of shorter runs as in `steady`, with the purge paused and
//! running, show the cost of a purged item: what the server takes for as many inserts beyond what it takes for them
//! without a purge.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use crate::steady::{self, Plan, Purge, Quarter, Users};

/// Inserts per second of the long run: a load that two processors carry easily, so that its latencies are not those of
/// a queue.
const RATE: f64 = 1000.0;
const READERS: u64 = 4;
/// The time to live of items of the long run, which is shorter for a short one.
const TTL_SECONDS: u64 = 60;
/// At least so many times to live fit into the long run.
const TURNOVERS: u64 = 12;
/// The pairs' time to live, as in `steady`, and the longest of their measured parts.
const PAIR_TTL_SECONDS: u64 = 20;
const PAIR_LENGTH: Duration = Duration::from_mins(2);

/// The bounds: how much more in the last quarter than in the second,
const DISK_GROWTH: f64 = 1.2;
const RESIDENT_GROWTH: f64 = 1.1;
const READ_P99_GROWTH: f64 = 1.3;
/// and the CPU of a purged item for each that its insert took.
const PURGE_TO_INSERT: f64 = 0.25;

/// The figures of a churn.
pub struct Churn {
    pub length: Duration,
    pub ttl_seconds: u64,
    pub rate: f64,
    pub quarters: [Quarter; 4],
    pub purge_to_insert: f64,
    /// The runs, in words.
    pub lines: Vec<String>,
}

/// One bound, with what was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    pub what: &'static str,
    pub at_most: f64,
    pub found: f64,
}

impl Churn {
    /// Returns all bounds.
    pub fn bounds(&self) -> [Bound; 4] {
        let [_, second, _, last] = self.quarters;
        let grown = |of: fn(&Quarter) -> f64| of(&last) / of(&second);
        let bound = |what, at_most, found| Bound { what, at_most, found };
        [
            bound(
                "disk for each living byte, last quarter / second",
                DISK_GROWTH,
                grown(|quarter| quarter.disk),
            ),
            bound(
                "resident memory, last quarter / second",
                RESIDENT_GROWTH,
                grown(|quarter| quarter.resident_mib),
            ),
            bound(
                "readers' p99, last quarter / second",
                READ_P99_GROWTH,
                grown(|quarter| quarter.read_p99_us),
            ),
            bound("CPU of a purged item / of its insert", PURGE_TO_INSERT, self.purge_to_insert),
        ]
    }

    /// Prints quarters and bounds.
    pub fn show(&self) {
        for (number, quarter) in self.quarters.iter().enumerate() {
            println!(
                "quarter {}: {:.2} bytes on disk for each living one, {:.0} MiB resident, readers' p99 {:.0} us",
                number + 1,
                quarter.disk,
                quarter.resident_mib,
                quarter.read_p99_us
            );
        }
        for Bound { what, at_most, found } in self.bounds() {
            let verdict = if found <= at_most { "met" } else { "missed" };
            println!("{what}: {found:.2}, at most {at_most:.2}: {verdict}");
        }
    }
}

/// Runs a churn of this length, and the pairs.
pub fn run(binary: &Path, length: Duration) -> Result<Churn> {
    let place = std::env::temp_dir().join(format!("bolide-bench-churn-{}", std::process::id()));
    let churned = churn(binary, &place, length);
    let _ = std::fs::remove_dir_all(&place);
    churned
}

fn churn(binary: &Path, place: &Path, length: Duration) -> Result<Churn> {
    let mut lines = Vec::new();
    let mut say = |line: String| {
        println!("{line}");
        lines.push(line);
    };
    let pair_length = (length / 15).clamp(Duration::from_secs(4), PAIR_LENGTH);
    let (paused, running) = pairs(binary, place, pair_length)?;
    say(format!("paused:  {paused}"));
    say(format!("running: {running}"));
    let (insert, purge) = (paused.cpu_of_insert(), running.cpu_of_purge(&paused));
    say(format!("{:.0} us of CPU for an insert, {:.0} us for its purge", insert * 1e6, purge * 1e6));
    let ttl_seconds = (length.as_secs() / TURNOVERS).clamp(5, TTL_SECONDS);
    let plan = Plan { ttl_seconds, warm_up: Duration::from_secs(2 * ttl_seconds), length };
    let users = Users { readers: READERS, inserts_per_second: Some(RATE) };
    let long = steady::run_with(binary, &place.join("data"), plan, Purge::Running, users)?;
    say(format!("churn:   {long}; {} reads did not find their item", long.misses()));
    let quarters = long.quarters();
    Ok(Churn { length, ttl_seconds, rate: RATE, quarters, purge_to_insert: purge / insert, lines })
}

/// Runs both kinds twice, in an order that favours neither.
fn pairs(binary: &Path, place: &Path, length: Duration) -> Result<(steady::Run, steady::Run)> {
    let ttl_seconds = PAIR_TTL_SECONDS.min(length.as_secs());
    let plan = Plan { ttl_seconds, warm_up: Duration::from_secs(2 * ttl_seconds), length };
    steady::both(binary, &place.join("pairs"), plan, |_, _| {})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_quarter_is_compared_with_the_second() {
        let quarter = |disk, resident_mib, read_p99_us| Quarter { disk, resident_mib, read_p99_us };
        let churn = Churn {
            length: Duration::from_secs(60),
            ttl_seconds: 5,
            rate: RATE,
            quarters: [
                quarter(9.0, 9.0, 9.0),
                quarter(2.0, 100.0, 1000.0),
                quarter(9.0, 9.0, 9.0),
                quarter(3.0, 100.0, 500.0),
            ],
            purge_to_insert: 0.3,
            lines: Vec::new(),
        };
        let found = churn.bounds().map(|bound| (bound.found, bound.found <= bound.at_most));
        assert_eq!(found, [(1.5, false), (1.0, true), (0.5, true), (0.3, false)]);
    }
}

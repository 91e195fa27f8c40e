//! A steady stream of inserts whose items expire: the purge keeps up, and writers hardly notice. The same runs and the same bounds
//! as `bolide-bench SERVER steady`, shorter.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use bolide_bench::steady::{self, Plan, Purge};

use crate::{Outcome, Setting};

/// How long items live: short, so that there is a steady state after seconds.
const TTL_SECONDS: u64 = 5;

/// Runs it. A machine that is busy with something else makes one of the two runs slower than the other by chance, so the better of
/// a few tries counts; a purge that does not keep up fails in each.
pub fn run(setting: &Setting, place: &Path) -> Result<Outcome> {
    const TRIES: usize = 3;
    let seconds = setting.rounds(10, 30, 120);
    let plan = Plan {
        ttl_seconds: TTL_SECONDS,
        warm_up: Duration::from_secs(15),
        length: Duration::from_secs(seconds),
    };
    let mut told = String::new();
    for number in 1..=TRIES {
        let measured = |purge: Purge, name: &str| {
            let directory = place.join(format!("{name}-{number}"));
            let run = steady::run(&setting.server, &directory, plan, purge)?;
            std::fs::remove_dir_all(&directory)?;
            Ok::<_, anyhow::Error>(run)
        };
        let (paused, running) = (measured(Purge::Paused, "paused")?, measured(Purge::Running, "running")?);
        told = format!("{}; with the purge: {running}", steady::compare(&paused, &running));
        match steady::judge(&paused, &running) {
            Ok(()) => break,
            Err(error) if number == TRIES => return Err(error.context(told)),
            Err(_) => {}
        }
    }
    Ok(Outcome::Held(told))
}

//! A steady stream of inserts whose items expire: the purge keeps up, and writers hardly notice. The same runs and the same bounds
//! as `bolide-bench SERVER steady`, shorter.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use bolide_bench::steady::{self, Plan};

use crate::{Outcome, Setting};

/// How long items live: short, so that there is a steady state after seconds.
const TTL_SECONDS: u64 = 5;

/// Runs the check. Other load on the machine makes runs differ by chance, so the best of a few tries counts; a purge that
/// does not keep up fails in each. Where other machines took the processors, the check cannot judge.
pub fn run(setting: &Setting, place: &Path) -> Result<Outcome> {
    const TRIES: usize = 3;
    let plan = Plan {
        ttl_seconds: TTL_SECONDS,
        warm_up: Duration::from_secs(15),
        length: Duration::from_secs(setting.rounds(5, 15, 60)),
    };
    let mut missed = None;
    for number in 1..=TRIES {
        let directory = place.join(number.to_string());
        let (paused, running) = steady::both(&setting.server, &directory, plan, |_, _| {})?;
        let told = format!("{}; with the purge: {running}", steady::compare(&paused, &running));
        match steady::judge(&paused, &running) {
            Ok(()) => return Ok(Outcome::Held(told)),
            Err(_) if !steady::is_comparable(&paused, &running) => {}
            Err(error) => missed = Some(error.context(told)),
        }
    }
    match missed {
        Some(error) => Err(error),
        None => Ok(Outcome::Skipped(
            "other machines took the processors in too many seconds to compare runs".to_owned(),
        )),
    }
}

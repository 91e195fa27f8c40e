//! The cost of an idle server: its start time on an empty store, and its memory.
//!
//! Where processors are free, the clock measures the start. Where other programs keep them busy, the processor time that
//! the server has used until then does: waiting for a processor is not its fault.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use bolide_bench::client::{Client, cpu_seconds_of, resident_kib_of};
use bolide_bench::processors::Ticks;

use crate::process::Launch;
use crate::{Outcome, Setting};

const READY_MOST: Duration = Duration::from_millis(100);
/// A start leaves more than this part of two processors idle; if less is idle, other programs use them.
const IDLE_LEAST: f64 = 0.2;
const MEMORY_MOST_KIB: u64 = 30 * 1024;

/// The times of one start.
struct Start {
    ready: Duration,
    used: Duration,
    memory_kib: u64,
}

/// Runs the check.
pub fn run(setting: &Setting, place: &Path) -> Result<Outcome> {
    let (before, mut starts) = (Ticks::read()?, Vec::new());
    for number in 0..setting.rounds(15, 50, 200) {
        starts.push(start(&Launch::new(&setting.server, &place.join(number.to_string())))?);
    }
    let is_busy = Ticks::read()?.idle_since(before) < IDLE_LEAST;
    let (judged, by): (fn(&Start) -> Duration, _) = if is_busy {
        (|start| start.used, " of processor time, because others use the processors")
    } else {
        (|start| start.ready, "")
    };
    starts.sort_by_key(judged);
    // The ninth of ten starts in order of time: neither the luckiest, nor the last few that the machine disturbed.
    let ready = judged(&starts[starts.len() * 9 / 10]);
    ensure!(ready < READY_MOST, "nine of ten starts take up to {ready:?}{by}, {READY_MOST:?} is promised");
    let memory_kib = starts.iter().map(|start| start.memory_kib).max().unwrap_or_default();
    ensure!(memory_kib < MEMORY_MOST_KIB, "{memory_kib} KiB when idle, {MEMORY_MOST_KIB} are promised");
    Ok(Outcome::Held(format!(
        "{} starts on an empty store, nine of ten ready after at most {} ms{by}; idle memory at most {:.1} MiB",
        starts.len(),
        ready.as_millis(),
        memory_kib as f64 / 1024.0
    )))
}

fn start(launch: &Launch) -> Result<Start> {
    if let Some(place) = launch.log.parent() {
        std::fs::create_dir_all(place)?;
    }
    let begun = Instant::now();
    let server = launch.start()?;
    Client::connect(&server.address)?.plain("GET", "/ready", "", "")?.expect(200)?;
    let ready = begun.elapsed();
    let used = Duration::from_secs_f64(cpu_seconds_of(server.id())?);
    let (memory_kib, _) = resident_kib_of(server.id())?;
    server.stop(Duration::from_secs(60))?;
    Ok(Start { ready, used, memory_kib })
}

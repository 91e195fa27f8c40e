//! What a server costs before anybody uses it: how soon it is there on an empty store, and how much memory it then has.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use bolide_bench::client::{Client, resident_kib_of};

use crate::process::Launch;
use crate::{Outcome, Setting};

const READY_MOST: Duration = Duration::from_millis(100);
const MEMORY_MOST_KIB: u64 = 30 * 1024;

/// What one start took.
struct Start {
    ready: Duration,
    memory_kib: u64,
}

/// Runs it.
pub fn run(setting: &Setting, place: &Path) -> Result<Outcome> {
    let mut starts = Vec::new();
    for number in 0..setting.rounds(15, 50, 200) {
        starts.push(start(&Launch::new(&setting.server, &place.join(number.to_string())))?);
    }
    starts.sort_by_key(|start| start.ready);
    // Most starts, not the luckiest, and not what the machine does to the last few.
    let ready = starts[starts.len() * 9 / 10].ready;
    ensure!(ready < READY_MOST, "nine of ten starts take up to {ready:?}, {READY_MOST:?} is promised");
    let memory_kib = starts.iter().map(|start| start.memory_kib).max().unwrap_or_default();
    ensure!(memory_kib < MEMORY_MOST_KIB, "{memory_kib} KiB when idle, {MEMORY_MOST_KIB} are promised");
    Ok(Outcome::Held(format!(
        "{} starts on an empty store, nine of ten ready after at most {} ms; idle memory at most {:.1} MiB",
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
    let (memory_kib, _) = resident_kib_of(server.id())?;
    server.stop(Duration::from_secs(60))?;
    Ok(Start { ready, memory_kib })
}

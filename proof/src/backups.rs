//! The content of a backup: restored and served by another process, everything is as it was at one instant between the
//! backup's beginning and its end. Writes acknowledged before it began are in it, writes sent after it ended are not, and
//! writes that happen together are in it together.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use bolide_bench::client::{Client, WireClient};

use crate::ledger::Version;
use crate::process::Launch;
use crate::times::{Rules, Span};
use crate::verify::{Groups, Writers};
use crate::world::{self, CONTAINERS, World};
use crate::writer::Item;

/// A backup that was finished.
#[derive(Clone, Debug)]
pub struct Taken {
    pub file: PathBuf,
    /// When it began, by the machine's clock.
    pub begun: f64,
    pub ended: f64,
}

/// Restores a backup into `data`, compares it with the ledgers of all writers, and removes both.
pub fn compare(
    taken: &Taken,
    launch: &Launch,
    data: &Path,
    world: &World,
    all_writers: &Writers,
) -> Result<u64> {
    let output = Command::new(&launch.binary)
        .args(["restore", "--test-clock"])
        .arg(&taken.file)
        .arg("--data")
        .arg(data)
        .output()?;
    ensure!(
        output.status.success(),
        "a backup does not restore: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let server =
        Launch { data: data.to_owned(), ..launch.clone() }.start().context("on a restored backup")?;
    let mut client = Client::connect(&server.address)?;
    let (world, mut groups, mut compared) = (world.elsewhere(), Groups::default(), 0);
    for (at, name) in CONTAINERS.iter().enumerate() {
        let low = world.read_clock(&mut client)?;
        let found = world::living(&mut client, name, low)?;
        let now = Span { low, high: world.read_clock(&mut client)? };
        let rules = world.rules[at].lock().clone();
        let items = all_writers.writers.iter().flat_map(|writer| &writer.items[at]);
        compared += content(taken, items, found, &rules, now, &mut groups)
            .with_context(|| format!("container {name} of a backup"))?;
    }
    let low = world.read_clock(&mut client)?;
    let found = world::living_documents(&mut WireClient::connect(&server.mongo)?, low)?;
    let now = Span { low, high: world.read_clock(&mut client)? };
    let items = all_writers.wire_writers.iter().flat_map(|writer| &writer.items);
    compared += content(taken, items, found, &world.date_rules, now, &mut groups)
        .context("the collection of a backup")?;
    server.kill()?;
    std::fs::remove_dir_all(data)?;
    std::fs::remove_file(&taken.file)?;
    Ok(compared)
}

fn content<'a>(
    taken: &Taken,
    items: impl Iterator<Item = &'a Item>,
    mut found: HashMap<String, Version>,
    rules: &Rules,
    now: Span,
    groups: &mut Groups,
) -> Result<u64> {
    let mut compared = 0;
    for Item { id, entry } in items {
        let found = found.remove(id);
        entry
            .settle_within(found, (taken.begun, taken.ended), rules, now)
            .with_context(|| format!("item {id}"))?;
        // Numbers of versions grow, so an older version means that this one was not yet made. A missing item proves
        // nothing.
        for (rev, group) in entry.put_since(taken.begun) {
            if let Some(found) = found {
                groups.add(group, found.rev >= rev).with_context(|| format!("item {id}"))?;
            }
        }
        compared += 1;
    }
    ensure!(found.is_empty(), "no writer wrote these items: {found:?}");
    Ok(compared)
}

//! `bolide compact`: rewrites the files of a data directory without removed data.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use storage::{Keyspace, ScrubProgress, Scrubbed, Store};

use super::bar::Bar;
use super::offline;
use crate::settings::Settings;

/// Arguments of the command: none.
#[derive(Debug, clap::Args)]
pub(crate) struct Request {}

/// Rewrites all tables, and prints the sizes before and after.
pub(crate) fn run(_request: &Request, settings: &Settings) -> Result<ExitCode> {
    let before = directory_bytes(&offline::directory(settings)?);
    let (store, path) = offline::open(settings)?;
    let mut bar = Bar::new("rewriting");
    let scrubbed = store.scrub_watched(&Keyspace::ALL, &mut |progress| {
        let ScrubProgress { keyspace, done_bytes, of_bytes } = progress;
        bar.at(done_bytes, of_bytes, keyspace.map_or("", Keyspace::name));
    });
    drop(bar);
    let closed = store.close().with_context(|| format!("cannot close '{}'", path.display()));
    let scrubbed = scrubbed.with_context(|| format!("cannot rewrite '{}'", path.display()))?;
    closed?;
    if scrubbed == Scrubbed::Held {
        bail!("old files of '{}' could not be removed; run it again", path.display());
    }
    let after = directory_bytes(&path);
    println!("{before} bytes before, {after} bytes after");
    Ok(ExitCode::SUCCESS)
}

/// Returns the bytes used by the files of a directory. The journal is allocated in advance: its sparse parts do not
/// count.
fn directory_bytes(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let Ok(entries) = std::fs::read_dir(path) else { return 0 };
    let bytes = |path: &Path| match std::fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => directory_bytes(path),
        Ok(metadata) => metadata.len().min(metadata.blocks() * 512),
        Err(_) => 0,
    };
    entries.flatten().map(|entry| bytes(&entry.path())).sum()
}

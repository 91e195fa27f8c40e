//! `bolide restore`: makes a data directory from a backup.
//!
//! The backup is read to its end before the first byte is written, and the directory is verified afterwards. All of
//! that happens at the backup's own time: the restored store continues from there (T13).

use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use engine::Engine;
use engine::check::{self, Progress};
use storage::{BackupInfo, BackupReader, Contents, EmbeddedOptions, EmbeddedStore, ManualClock, Store, Time};

use super::backup::verify;
use super::bar::Bar;
use super::offline;
use crate::settings::{Origin, Settings};

/// Arguments of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct Request {
    /// The backup file
    file: PathBuf,
    /// Turn expiry off in every container and collection as of the backup's own time: items that had not expired then
    /// are kept, however old they are now; items that had expired stay expired
    #[arg(long)]
    disable_ttl: bool,
}

/// Makes the directory, which must be empty or not exist.
pub(crate) fn run(request: &Request, settings: &Settings) -> Result<ExitCode> {
    if settings.origin("data") != Origin::CommandLine {
        bail!("name the directory to restore into with --data; it must be empty, or not exist");
    }
    let path = offline::directory(settings)?;
    let contents = verify(&request.file)?;
    let info = head(&request.file)?;
    if request.disable_ttl && info.clock_is_suspect {
        bail!(
            "the clock was suspect when the backup was taken, so it is not certain which items had expired then: restore it without \
             --disable-ttl, start the server, and accept or reject the time"
        );
    }
    // The wall clock shows the time of the backup, so that the time passed since does not affect the data.
    let wall = info.time.minus_millis(info.advanced_ms);
    let clock = Arc::new(ManualClock::new(wall));
    let options = offline::options_at(settings, &path, clock);
    write(&request.file, &options).with_context(|| format!("cannot restore into '{}'", path.display()))?;
    let findings = finish(&options, &contents, request.disable_ttl)
        .with_context(|| format!("restored '{}', but", path.display()))?;
    println!("{}: {} entries as of {}", path.display(), contents.total(), date(info.time));
    if findings > 0 {
        println!("the backup was taken of an inconsistent store: {findings} findings, see bolide check");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

fn write(file: &Path, options: &EmbeddedOptions) -> Result<()> {
    let (mut reader, of) = open(file)?;
    let mut bar = Bar::new("restoring");
    EmbeddedStore::restore(options, &mut reader, |done| bar.at(done, of, ""))?;
    Ok(())
}

/// Verifies the directory, inspects it and turns expiry off if requested. Returns the number of findings.
fn finish(options: &EmbeddedOptions, contents: &Contents, disable_ttl: bool) -> Result<u64> {
    let store = Arc::new(EmbeddedStore::open(options.clone())?);
    let mut bar = Bar::new("reading back");
    let mut entries = 0;
    let found = Contents::of(&*store.snapshot()?, |_| {
        entries += 1;
        bar.at(entries, contents.total(), "");
    })?;
    if found != *contents {
        bail!("its contents differ from the backup: the disk does not return what was written");
    }
    drop(bar);
    let mut bar = Bar::new("checking");
    let report = check::check(&*store, &mut |Progress { place, items, of }| bar.at(items, of, place))?;
    drop(bar);
    if disable_ttl {
        let engine = Engine::open(store.clone())?;
        let changed = engine.disable_expiry().context("expiry could not be turned off")?;
        println!("expiry is off; it was on in {changed} containers and collections");
    }
    store.close()?;
    Ok(report.found())
}

fn head(file: &Path) -> Result<BackupInfo> {
    Ok(*open(file)?.0.info())
}

#[expect(clippy::disallowed_methods, reason = "the server accesses files")]
fn open(file: &Path) -> Result<(BackupReader<BufReader<std::fs::File>>, u64)> {
    let name = || format!("'{}'", file.display());
    let opened = std::fs::File::open(file).with_context(|| format!("cannot read {}", name()))?;
    let of = opened.metadata().map_or(0, |metadata| metadata.len());
    Ok((BackupReader::open(BufReader::new(opened)).with_context(name)?, of))
}

fn date(time: Time) -> String {
    bson::format_date(i64::try_from(time.millis()).unwrap_or(i64::MAX))
}

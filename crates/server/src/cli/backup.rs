//! `bolide backup`: everything in one file, as of one snapshot.
//!
//! The file gets its name only once it is complete and on disk. An interrupted backup cannot be resumed: its snapshot
//! is gone.

use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use hyper::Method;
use storage::{BackupReader, Contents, Store};

use super::bar::Bar;
use super::offline;
use super::status::number;
use crate::client::{Client, Endpoint, Payload};
use crate::files::create_private;
use crate::settings::{Origin, Settings};

/// Arguments of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct Request {
    /// The file to write; must not exist
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
}

/// Takes a backup, and verifies it by reading it back.
pub(crate) fn run(request: &Request, settings: &Settings) -> Result<ExitCode> {
    let (to, partial) = (&request.to, with_suffix(&request.to, ".partial"));
    if to.exists() {
        bail!("'{}' already exists: name another file", to.display());
    }
    let written = write_file(&partial, |file| match settings.origin("data") {
        Origin::CommandLine => from_directory(settings, file),
        _ => from_server(settings, file),
    });
    let verified = written.and_then(|()| verify(&partial));
    let contents = match verified {
        Ok(contents) => contents,
        Err(error) => {
            let _ = std::fs::remove_file(&partial);
            return Err(error);
        }
    };
    let rename = || {
        std::fs::rename(&partial, to)?;
        sync_directory(to)
    };
    rename().with_context(|| format!("cannot rename '{}'", partial.display()))?;
    println!("{}: {} entries, as of one instant", to.display(), contents.total());
    Ok(ExitCode::SUCCESS)
}

fn from_directory(settings: &Settings, file: &mut dyn Write) -> Result<()> {
    let (store, path) = offline::open(settings)?;
    let stats = store.stats();
    let estimate = stats.disk_bytes.saturating_sub(stats.journal_bytes);
    let mut bar = Bar::new("backing up");
    let mut write = || {
        let (mut backup, mut done) = (store.backup()?, 0);
        while let Some(piece) = backup.next_piece()? {
            file.write_all(&piece).context("cannot write the backup")?;
            done += piece.len() as u64;
            show(&mut bar, done, estimate);
        }
        Ok(())
    };
    let written = write();
    store.close().with_context(|| format!("cannot close '{}'", path.display())).and(written)
}

/// Streams the backup of a running server.
fn from_server(settings: &Settings, file: &mut dyn Write) -> Result<()> {
    let mut client = Client::new(&Endpoint::from_settings(settings)?)?;
    let store = client.get_json("/_bolide/status")?;
    let bytes = |name| number(&store, &["store", name]);
    let estimate = bytes("diskBytes").saturating_sub(bytes("journalBytes"));
    let mut bar = Bar::new("backing up");
    let mut done = 0;
    client.exchange(&Method::GET, "/_bolide/backup", Payload::Nothing, &mut |piece| {
        file.write_all(piece).context("cannot write the backup")?;
        done += piece.len() as u64;
        show(&mut bar, done, estimate);
        Ok(())
    })?;
    Ok(())
}

/// The total is not known beforehand. The tables are about as large; data that they do not hold yet, or hold
/// compressed, is shown without a total.
fn show(bar: &mut Bar, done: u64, estimate: u64) {
    bar.at(done, if done > estimate { 0 } else { estimate }, &format!("{} MiB", done >> 20));
}

/// Creates a file with what `pour` writes; it is on disk on return.
fn write_file(path: &Path, pour: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let file = create_private(path).with_context(|| format!("cannot create '{}'", path.display()))?;
    let mut buffered = std::io::BufWriter::new(file);
    pour(&mut buffered)?;
    let sync = || buffered.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all();
    sync().with_context(|| format!("cannot write '{}'", path.display()))
}

/// Reads a backup to its end and verifies that it is complete and undamaged.
#[expect(clippy::disallowed_methods, reason = "the server accesses files")]
pub(super) fn verify(path: &Path) -> Result<Contents> {
    let name = || format!("'{}'", path.display());
    let file = std::fs::File::open(path).with_context(|| format!("cannot read {}", name()))?;
    let of = file.metadata().map_or(0, |metadata| metadata.len());
    let mut bar = Bar::new("verifying");
    let mut reader = BackupReader::open(BufReader::new(file)).with_context(name)?;
    while reader.next_entry().with_context(name)?.is_some() {
        bar.at(reader.position(), of, "");
    }
    reader.contents().cloned().with_context(name)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[expect(clippy::disallowed_methods, reason = "a directory can be synced only through a file handle")]
fn sync_directory(file: &Path) -> std::io::Result<()> {
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    std::fs::File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

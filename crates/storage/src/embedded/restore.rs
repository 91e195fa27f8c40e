//! Makes a store from a backup, in an empty directory.
//!
//! The marker is written last: a directory in which a restore was interrupted has data and no marker, and no store
//! opens it.

use super::compactor::{self, CompactorSignal};
use super::database::{Committer, Database, cannot, make_directory};
use super::marker::{Marker, State};
use super::{EmbeddedOptions, EmbeddedStore, lock};
use crate::backup::BackupReader;
use crate::overlay::Overlay;
use crate::record::StoreRecord;
use crate::writer::Backend;
use crate::{Durability, Error, Result};
use fjall::PersistMode;
use std::path::Path;
use std::sync::Arc;
use std::{fs, io};

/// The bytes written in one commit.
const COMMIT_BYTES: usize = 4 << 20;

impl EmbeddedStore {
    /// Makes a store from a backup, in a directory that does not exist or is empty. Calls `seen` with the number of
    /// bytes of the backup read so far. If the restore fails, nothing is left in the directory.
    pub fn restore<R: io::Read>(
        options: &EmbeddedOptions,
        backup: &mut BackupReader<R>,
        mut seen: impl FnMut(u64),
    ) -> Result<()> {
        let (path, record) = (&options.path, *backup.info().record());
        if record.clock.advanced_ms > 0 && !options.clock.test_clock.is_on() {
            return Err(Error::TestClockStore { advanced_ms: record.clock.advanced_ms });
        }
        make_directory(path).map_err(|error| Error::io("make the data directory", &error))?;
        check_empty(path)?;
        let lock = lock(path)?;
        let filled = fill(options, backup, &record, &mut seen);
        drop(lock);
        if filled.is_err() {
            clear(path)?;
        }
        filled
    }
}

fn fill<R: io::Read>(
    options: &EmbeddedOptions,
    backup: &mut BackupReader<R>,
    record: &StoreRecord,
    seen: &mut dyn FnMut(u64),
) -> Result<()> {
    let (database, signal) = (Arc::new(Database::open(options)?), Arc::new(CompactorSignal::default()));
    let (path, durability) = (options.path.clone(), Durability::Buffered);
    let mut committer =
        Committer::new(Arc::clone(&database), durability, path, Some(record), Arc::clone(&signal));
    let mut overlay = Overlay::default();
    let mut undo = overlay.begin();
    while let Some((keyspace, key, value)) = backup.next_entry()? {
        overlay.set(keyspace, key, Some(value), &mut undo);
        if overlay.bytes() >= COMMIT_BYTES {
            committer.commit(std::mem::take(&mut overlay), record, Durability::Sync)?;
            undo = overlay.begin();
            signal.free_memtables();
            seen(backup.position());
        }
    }
    committer.commit(overlay, record, Durability::Sync)?;
    drop(committer);
    database.flush()?;
    compactor::compact(&database, &signal)?;
    let (fjall, _) = database.own();
    fjall.persist(PersistMode::SyncAll).map_err(|error| cannot("sync the restored store", &error))?;
    drop(database);
    Marker { commit: record.commit, state: State::Clean }.write(&options.path)
}

fn check_empty(path: &Path) -> Result<()> {
    let entries = entries(path)?;
    match entries.first() {
        None => Ok(()),
        Some(_) => Err(Error::NotEmpty { path: path.display().to_string() }),
    }
}

/// Removes what a failed restore has written; the directory was empty before it.
fn clear(path: &Path) -> Result<()> {
    for entry in entries(path)? {
        let removed = if entry.is_dir() { fs::remove_dir_all(&entry) } else { fs::remove_file(&entry) };
        removed.map_err(|error| Error::io("clear the data directory", &error))?;
    }
    Ok(())
}

/// Returns the contents of a directory, except what file systems put into their roots.
fn entries(path: &Path) -> Result<Vec<std::path::PathBuf>> {
    let list = || fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>();
    let mut entries = list().map_err(|error| Error::io("list the data directory", &error))?;
    entries.retain(|entry| entry.file_name().is_none_or(|name| name != "lost+found"));
    Ok(entries)
}

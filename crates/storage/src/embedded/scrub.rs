//! Getting removed bytes out of the files (T24): a log-structured store that is told to remove something writes that down and
//! keeps the bytes, in tables and in the journal, until it happens to rewrite them.
//!
//! A scrub makes it happen, in this order, each step resting on the one before:
//!
//! 1. wait for snapshots from before: they may read what was removed, so fjall would keep it;
//! 2. begin another journal file, so that the old ones, which hold what was written and the keys of what was removed, can go;
//! 3. flush every memtable: fjall deletes a journal file when tables hold all that is in it;
//! 4. rewrite the tables of the keyspaces concerned into the last level, where removed entries and the notes that they were
//!    removed are left out;
//! 5. let fjall forget the old versions of its tables, which unlinks their files, and look whether they are gone.
//!
//! fjall begins another journal file only when the present one has 64 MB, and offers no way to ask for it. So the scrub fills
//! it with writes of nothing, in pieces that no commit notices; a journal that is busy anyway needs less of it.
//!
//! Reading and writing go on meanwhile.

use super::database::{Database, cannot};
use super::journal::is_journal;
use super::pace::pause;
use crate::{Error, Keyspace, Result, Scrubbed};
use fjall::PersistMode;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A key that nothing is ever stored under.
const NOTHING: &[u8] = &[0xff];
/// One write that fills the journal: values below fjall's threshold of compression, a megabyte in all.
const PIECE_VALUES: usize = 256;
const PIECE_VALUE_BYTES: usize = 4000;
/// A journal file is ended at 64 MB; twice as many pieces mean that something is wrong.
const PIECES_MAX: usize = 128;
/// How many milliseconds snapshots, journal files and obsolete tables are waited for.
const PATIENCE_MS: u32 = 3000;
/// Every so many of these milliseconds fjall is given an occasion to tidy up.
const OCCASION_MS: u32 = 20;

/// How far a scrub has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScrubProgress {
    /// The keyspace whose tables are rewritten next, none when all are.
    pub keyspace: Option<Keyspace>,
    /// Bytes of tables that were rewritten, as many as they had before.
    pub done_bytes: u64,
    /// Bytes of all tables that are.
    pub of_bytes: u64,
}

/// One run of it.
pub(super) struct Scrub<'a> {
    pub(super) database: &'a Database,
    pub(super) directory: &'a Path,
    /// Whether the store is being closed.
    pub(super) stopping: &'a dyn Fn() -> bool,
}

impl Scrub<'_> {
    /// Gets what was removed from `keyspaces` before this call out of the files.
    pub(super) fn run(
        &self,
        keyspaces: &[Keyspace],
        watcher: &mut dyn FnMut(ScrubProgress),
    ) -> Result<Scrubbed> {
        // fjall keeps the newest commit for a snapshot that might be taken of it; these are newer than what was removed.
        self.occasion()?;
        let mut patience = PATIENCE_MS;
        let readers_gone = self.database.readers.wait_for_all(|| {
            pause();
            patience = patience.saturating_sub(1);
            patience > 0 && !(self.stopping)()
        });
        if !readers_gone {
            return Ok(Scrubbed::Held);
        }
        let journals = self.journals()?;
        self.begin_journal(&journals)?;
        self.database.flush()?;
        if !self.wait_until_gone(&journals)? {
            return Ok(Scrubbed::Held);
        }
        let tables = self.rewrite(keyspaces, watcher)?;
        Ok(if self.wait_until_gone(&tables)? { Scrubbed::Done } else { Scrubbed::Held })
    }

    /// Rewrites the tables; those that nobody needs any more.
    fn rewrite(
        &self,
        keyspaces: &[Keyspace],
        watcher: &mut dyn FnMut(ScrubProgress),
    ) -> Result<BTreeSet<PathBuf>> {
        let made = |keyspace: &Keyspace| Some((*keyspace, self.database.made_already(*keyspace)?));
        let made: Vec<_> = keyspaces.iter().filter_map(made).collect();
        let of_bytes = made.iter().map(|(_, keyspace)| keyspace.disk_space()).sum();
        let (mut tables, mut done_bytes) = (BTreeSet::new(), 0);
        for (name, keyspace) in made {
            if (self.stopping)() {
                return Err(Error::Closed);
            }
            watcher(ScrubProgress { keyspace: Some(name), done_bytes, of_bytes });
            // Nobody makes another table of the old ones after these were listed.
            let _compacting = self.database.compacting.lock();
            let bytes = keyspace.disk_space();
            tables.extend(files(&keyspace.path().join("tables"))?);
            self.database.rewrite(keyspace)?;
            done_bytes += bytes;
        }
        watcher(ScrubProgress { keyspace: None, done_bytes: of_bytes, of_bytes });
        Ok(tables)
    }

    /// Fills the journal until another file of it is begun.
    fn begin_journal(&self, before: &BTreeSet<PathBuf>) -> Result<()> {
        for _ in 0..PIECES_MAX {
            if (self.stopping)() {
                return Err(Error::Closed);
            }
            if !self.journals()?.is_subset(before) {
                return Ok(());
            }
            let (fjall, own) = self.database.own();
            let mut piece = fjall.batch().durability(Some(PersistMode::SyncData));
            for _ in 0..PIECE_VALUES {
                piece.insert(own, NOTHING, [0_u8; PIECE_VALUE_BYTES]);
            }
            piece.remove(own, NOTHING);
            self.database.wait_for_flushes(1)?;
            piece.commit().map_err(|error| cannot("fill the journal", &error))?;
            pause();
        }
        // The last pieces may not have been flushed yet, which is when fjall looks at the size.
        self.occasion()?;
        self.database.wait_for_flushes(0)?;
        if self.journals()?.is_subset(before) {
            let message = "the journal could not be made to begin another file".to_owned();
            return Err(Error::Internal { message });
        }
        Ok(())
    }

    /// Waits until none of these files is left; false if that takes too long.
    fn wait_until_gone(&self, doomed: &BTreeSet<PathBuf>) -> Result<bool> {
        for waited in 0..PATIENCE_MS {
            if !doomed.iter().any(|file| file.exists()) {
                return Ok(true);
            }
            if (self.stopping)() {
                return Err(Error::Closed);
            }
            if waited % OCCASION_MS == 0 {
                self.occasion()?;
            }
            pause();
        }
        Ok(false)
    }

    /// Commits nothing, twice, and flushes: when fjall flushes it tidies up what lies before the last commit. Every keyspace
    /// takes part, because a journal file stays until each has a table newer than it, and a rewritten table may be older.
    fn occasion(&self) -> Result<()> {
        let (fjall, _) = self.database.own();
        for _ in 0..2 {
            let mut nothing = fjall.batch();
            for keyspace in self.database.made() {
                nothing.remove(keyspace, NOTHING);
            }
            nothing.commit().map_err(|error| cannot("commit nothing", &error))?;
        }
        self.database.flush()
    }

    /// The files of the journal.
    fn journals(&self) -> Result<BTreeSet<PathBuf>> {
        let mut found = files(self.directory)?;
        found.retain(|file| is_journal(file));
        Ok(found)
    }
}

/// The files in a directory.
fn files(directory: &Path) -> Result<BTreeSet<PathBuf>> {
    let list = || fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>();
    list().map_err(|error| Error::io("list the store's files", &error))
}

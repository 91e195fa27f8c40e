//! Removes deleted bytes from the files (T24): a log-structured store only records a removal, and keeps the bytes in
//! tables and journal until it rewrites them.
//!
//! A scrub rewrites them in this order, where each step relies on the one before:
//!
//! 1. wait for earlier snapshots: they may read removed entries, so fjall would keep those;
//! 2. begin another journal file, so that the old ones, which hold written data and the keys of removed data, can be deleted;
//! 3. flush every memtable: fjall deletes a journal file when tables hold everything in it;
//! 4. wait until every open snapshot has the watermarks: a merge drops no entries for a watermark before that;
//! 5. rewrite the tables of the keyspaces concerned into the last level, without removed entries and their tombstones, and without
//!    entries below watermarks;
//! 6. let fjall drop the old versions of its tables, which unlinks their files, and check that they are gone.
//!
//! fjall begins another journal file only when the current one reaches 64 MB, and offers no call for it. So the scrub
//! fills it with dummy writes, in pieces too small to delay a commit; a busy journal needs fewer of them.
//!
//! Reads and writes continue meanwhile.

use super::database::{Database, cannot};
use super::journal::is_journal;
use super::throttle::pause;
use crate::{Error, Keyspace, Result, Scrubbed};
use fjall::PersistMode;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A key that is never used.
const NOTHING: &[u8] = &[0xff];
/// One write that fills the journal: values below fjall's threshold of compression, a megabyte in all.
const PIECE_VALUES: usize = 256;
const PIECE_VALUE_BYTES: usize = 4000;
/// The largest number of pieces: a journal file is ended at 64 MB, so twice as many pieces mean a defect.
const PIECES_MAX: usize = 128;
/// How many milliseconds to wait for snapshots, journal files and obsolete tables.
const WAIT_MAX_MS: u32 = 3000;
/// How often, in those milliseconds, fjall is prompted to drop old versions.
const GC_INTERVAL_MS: u32 = 20;

/// The progress of a scrub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScrubProgress {
    /// The keyspace whose tables are rewritten next; `None` when all are done.
    pub keyspace: Option<Keyspace>,
    /// Bytes of tables rewritten so far, by their size before.
    pub done_bytes: u64,
    /// Bytes of all tables to rewrite.
    pub of_bytes: u64,
}

/// One run of a scrub.
pub(super) struct Scrub<'a> {
    pub(super) database: &'a Database,
    pub(super) directory: &'a Path,
    /// Returns whether the store is closing.
    pub(super) stopping: &'a dyn Fn() -> bool,
}

impl Scrub<'_> {
    /// Removes what was deleted from `keyspaces` before this call from the files.
    pub(super) fn run(
        &self,
        keyspaces: &[Keyspace],
        watcher: &mut dyn FnMut(ScrubProgress),
    ) -> Result<Scrubbed> {
        // fjall keeps the newest commit for a future snapshot; these commits are newer than what was removed.
        self.collect_garbage()?;
        let mut left_ms = WAIT_MAX_MS;
        let readers_gone = self.database.readers.wait_for_all(|| {
            pause();
            left_ms = left_ms.saturating_sub(1);
            left_ms > 0 && !(self.stopping)()
        });
        if !readers_gone {
            return Ok(Scrubbed::Held);
        }
        let journals = self.journals()?;
        self.begin_journal(&journals)?;
        let watermarks = self.database.sync_watermarks()?;
        self.database.flush()?;
        if !self.wait_until_gone(&journals)? || !self.wait_until_settled(watermarks)? {
            return Ok(Scrubbed::Held);
        }
        let tables = self.rewrite(keyspaces, watcher)?;
        Ok(if self.wait_until_gone(&tables)? { Scrubbed::Done } else { Scrubbed::Held })
    }

    /// Rewrites the tables, and returns the files they replace.
    fn rewrite(
        &self,
        keyspaces: &[Keyspace],
        watcher: &mut dyn FnMut(ScrubProgress),
    ) -> Result<BTreeSet<PathBuf>> {
        let made = |keyspace: &Keyspace| Some((*keyspace, self.database.opened_keyspace(*keyspace)?));
        let made: Vec<_> = keyspaces.iter().filter_map(made).collect();
        let of_bytes = made.iter().map(|(_, keyspace)| keyspace.disk_space()).sum();
        let (mut tables, mut done_bytes) = (BTreeSet::new(), 0);
        for (name, keyspace) in made {
            if (self.stopping)() {
                return Err(Error::Closed);
            }
            watcher(ScrubProgress { keyspace: Some(name), done_bytes, of_bytes });
            // No other compaction reads the old tables after these were listed.
            let _compacting = self.database.compacting.lock();
            let bytes = keyspace.disk_space();
            tables.extend(files(&keyspace.path().join("tables"))?);
            self.database.rewrite(keyspace)?;
            done_bytes += bytes;
        }
        watcher(ScrubProgress { keyspace: None, done_bytes: of_bytes, of_bytes });
        Ok(tables)
    }

    /// Fills the journal until fjall begins another file.
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
            self.database.commit(piece).map_err(|error| cannot("fill the journal", &error))?;
            pause();
        }
        // The last pieces may not have been flushed yet, which is when fjall checks the size.
        self.collect_garbage()?;
        self.database.wait_for_flushes(0)?;
        if self.journals()?.is_subset(before) {
            let message = "the journal could not be made to begin another file".to_owned();
            return Err(Error::Internal { message });
        }
        Ok(())
    }

    /// Waits until none of these files is left; returns false if that takes too long.
    fn wait_until_gone(&self, files_before: &BTreeSet<PathBuf>) -> Result<bool> {
        for waited in 0..WAIT_MAX_MS {
            if !files_before.iter().any(|file| file.exists()) {
                return Ok(true);
            }
            if (self.stopping)() {
                return Err(Error::Closed);
            }
            if waited % GC_INTERVAL_MS == 0 {
                self.collect_garbage()?;
            }
            pause();
        }
        Ok(false)
    }

    /// Waits until the rewrite may drop the entries that watermarks of commits before `seqno` cover; returns false if that takes too
    /// long.
    fn wait_until_settled(&self, seqno: u64) -> Result<bool> {
        for waited in 0..WAIT_MAX_MS {
            self.database.settle_watermarks();
            if self.database.watermarks.are_settled_through(seqno) {
                return Ok(true);
            }
            if (self.stopping)() {
                return Err(Error::Closed);
            }
            if waited % GC_INTERVAL_MS == 0 {
                self.collect_garbage()?;
            }
            pause();
        }
        Ok(false)
    }

    /// Makes two empty commits and flushes: on a flush fjall drops versions from before the last commit. Every keyspace
    /// takes part, because a journal file stays until each has a table newer than it, and a rewritten table may be
    /// older.
    fn collect_garbage(&self) -> Result<()> {
        let (fjall, _) = self.database.own();
        for _ in 0..2 {
            let mut nothing = fjall.batch();
            for keyspace in self.database.opened_keyspaces() {
                nothing.remove(keyspace, NOTHING);
            }
            self.database.commit(nothing).map_err(|error| cannot("commit nothing", &error))?;
        }
        self.database.flush()
    }

    /// Returns the files of the journal.
    fn journals(&self) -> Result<BTreeSet<PathBuf>> {
        let mut found = files(self.directory)?;
        found.retain(|file| is_journal(file));
        Ok(found)
    }
}

/// Returns the files in a directory.
fn files(directory: &Path) -> Result<BTreeSet<PathBuf>> {
    let list = || fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>();
    list().map_err(|error| Error::io("list the store's files", &error))
}

//! fjall behind the contract of this crate, and its pitfalls.
//!
//! - Reads go through a snapshot taken between two batches: any other may see half of one (published.rs).
//! - Key-value separation, FIFO compaction, weak deletes and `clear` are not used.
//! - Memtables are small, so that a flush is short and writers do not stall behind several large ones; the journal is
//!   bounded, so that the replay after a crash is, too.
//! - fjall does not flush on close; this module does, so the next start has nothing to replay into memory.
//! - Compaction and freeing memtables are done by this crate: see compactor.rs.
//! - Errors after which fjall refuses writes stop the store's writes, too.
//! - Entries below a watermark are hidden from readers, and dropped later: see watermarks.rs.

use super::compaction_health::CompactionHealth;
use super::compactor::{CompactorSignal, Memtables, TABLE_BYTES, no_automatic_compaction};
use super::covered_tables::CoveredTables;
use super::hiding::Hiding;
use super::marker::{Marker, State};
use super::published::Published;
use super::readers::Readers;
use super::sequence_history::SequenceHistory;
use super::throttle::{self, pause};
use super::watermarks::{self, Watermarks};
use super::{EmbeddedOptions, journal, manifest};
use crate::overlay::Overlay;
use crate::record::StoreRecord;
use crate::writer::Backend;
use crate::{
    Direction, Durability, Error, FreeSpace, KeyRange, Keyspace, Read, Result, Scan, Snapshot, watermark,
};
use bytes::Bytes;
use fjall::config::FilterPolicy;
use fjall::{KeyspaceCreateOptions, OwnedWriteBatch, PersistMode, Readable};
use lsm_tree::AbstractTree;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The directory of fjall's keyspaces.
const KEYSPACES: &str = "keyspaces";
/// The keyspace of the store's own record.
const OWN_KEYSPACE: &str = "store";
const RECORD_KEY: &[u8] = b"record";
/// The samples of [`SequenceHistory`].
const SEQUENCES_KEY: &[u8] = b"sequences";
/// The memtable size of an ordinary keyspace, and of the two that take most of the bytes.
const MEMTABLE_BYTES: u64 = 8 << 20;
const BIG_MEMTABLE_BYTES: u64 = 16 << 20;
/// The number of sealed memtables a writer waits below: with one more, fjall would sleep in steps of 100 ms.
const MAX_SEALED: usize = 2;
/// The smallest journal that fjall allows; it is exceeded by at most one journal file.
const JOURNAL_BYTES: u64 = 64 << 20;
/// How far the clock's bound must move before the marker is rewritten: not with every renewal of the lease, because it
/// costs two syncs of its own.
const MARK_MS: u64 = 5_000;
/// fjall's own threads: one, which flushes.
const WORKERS: usize = 1;

/// An open fjall database with the store's keyspaces.
///
/// Creating a keyspace takes fjall a dozen syncs, noticeable on a slow disk. So a new store starts with its own
/// keyspace only, and the writer creates the others when they are first written to, or earlier, when it is idle.
pub(super) struct Database {
    fjall: fjall::Database,
    path: PathBuf,
    keyspaces: [OnceLock<fjall::Keyspace>; Keyspace::ALL.len()],
    own: fjall::Keyspace,
    /// The newest state, for readers.
    published: Published,
    /// How much of the disk is reserved.
    reserve_bytes: u64,
    /// Open snapshots.
    pub(super) readers: Readers,
    /// Held while tables are being compacted.
    pub(super) compacting: Mutex<()>,
    pub(super) compaction_health: CompactionHealth,
    pub(super) watermarks: Arc<Watermarks>,
    pub(super) covered_tables: CoveredTables,
}

impl Database {
    /// Returns whether there is a fjall database in `path`.
    pub(super) fn exists(path: &Path) -> bool {
        path.join(KEYSPACES).exists()
    }

    /// Removes the remains of a database whose creation was interrupted: fjall neither opens nor recreates it.
    pub(super) fn remove_unfinished(path: &Path) -> Result<()> {
        let remove = || {
            for entry in std::fs::read_dir(path)? {
                let entry = entry?.path();
                let name = entry.file_name().unwrap_or_default();
                if name == KEYSPACES {
                    std::fs::remove_dir_all(&entry)?;
                } else if name == "lock" || name == "version" || journal::is_journal(&entry) {
                    std::fs::remove_file(&entry)?;
                }
            }
            Ok::<_, std::io::Error>(())
        };
        remove().map_err(|error| Error::io("remove an unfinished store", &error))
    }

    pub(super) fn open(options: &EmbeddedOptions) -> Result<Self> {
        // fjall asserts conditions in its recovery that a damaged file may break.
        catch_unwind(AssertUnwindSafe(|| Self::open_fjall(options)))
            .unwrap_or_else(|_| Err(Error::Corrupt { what: "recovery found inconsistent data".to_owned() }))
            .map_err(|error| match error {
                Error::Locked { .. } => Error::Locked { path: options.path.display().to_string() },
                other => other,
            })
    }

    fn open_fjall(options: &EmbeddedOptions) -> Result<Self> {
        manifest::check(&options.path.join(KEYSPACES))?;
        journal::check(&options.path)?;
        let watermarks = Arc::new(Watermarks::default());
        let of_keyspaces = Arc::clone(&watermarks);
        let fjall = fjall::Database::builder(&options.path)
            .with_compaction_filter_factories(Arc::new(move |name: &str| {
                watermarks::filters(&of_keyspaces, name)
            }))
            // Blocks are counted by their bytes and take up to a third more: allocators round up and have gaps.
            .cache_size(options.cache_bytes / 4 * 3)
            .max_cached_files(Some(options.open_files))
            .max_journaling_size(JOURNAL_BYTES)
            .manual_journal_persist(true)
            .worker_threads(WORKERS)
            .open()
            .map_err(|error| cannot("open the store", &error))?;
        let own_options = || {
            KeyspaceCreateOptions::default()
                .compaction_strategy(no_automatic_compaction())
                .max_memtable_size(MEMTABLE_BYTES)
        };
        let own = fjall.keyspace(OWN_KEYSPACE, own_options);
        let own = own.map_err(|error| cannot("open a keyspace", &error))?;
        // A killed store may have created keyspaces whose names are not durable yet.
        sync_keyspaces(&options.path)?;
        let keyspaces = [const { OnceLock::new() }; Keyspace::ALL.len()];
        let published = Published::new(&fjall);
        let database = Self {
            published,
            fjall,
            path: options.path.clone(),
            keyspaces,
            own,
            reserve_bytes: options.reserve_bytes,
            readers: Readers::default(),
            compacting: Mutex::default(),
            compaction_health: CompactionHealth::default(),
            watermarks,
            covered_tables: CoveredTables::default(),
        };
        for keyspace in Keyspace::ALL {
            if database.fjall.keyspace_exists(keyspace.name()) {
                database.open_keyspace(keyspace)?;
            }
        }
        database.load_watermarks()?;
        Ok(database)
    }

    /// Reads the watermarks; called before any read of entries that they hide.
    fn load_watermarks(&self) -> Result<()> {
        let snapshot = self.fjall.snapshot();
        let mut found = HashMap::new();
        if let Some(catalog) = self.opened_keyspace(Keyspace::Catalog) {
            for entry in snapshot.prefix(catalog, [watermark::WATERMARK]) {
                let (key, value) = entry.into_inner().map_err(|error| cannot("scan", &error))?;
                let damaged = || Error::Corrupt { what: "the key of a watermark of wrong length".to_owned() };
                found.insert(watermark::prefix_of(&key).ok_or_else(damaged)?, watermark::decode(&value)?);
            }
        }
        let stored = snapshot.get(&self.own, SEQUENCES_KEY).map_err(|error| cannot("read", &error))?;
        let sequence = self.record()?.map_or(0, |record| record.sequence);
        let seqno = self.fjall.seqno();
        let sequences = SequenceHistory::open(stored.as_deref().unwrap_or_default(), seqno, sequence);
        self.watermarks.load(found, sequences, seqno);
        Ok(())
    }

    /// Returns the keyspace, creating it if necessary. Only the writer may call this.
    fn open_keyspace(&self, keyspace: Keyspace) -> Result<&fjall::Keyspace> {
        let place = &self.keyspaces[keyspace.number()];
        if let Some(made) = place.get() {
            return Ok(made);
        }
        let is_new = !self.fjall.keyspace_exists(keyspace.name());
        let made = self.fjall.keyspace(keyspace.name(), || keyspace_options(keyspace));
        let made = made.map_err(|error| cannot("open a keyspace", &error))?;
        if is_new {
            sync_keyspaces(&self.path)?;
        }
        Ok(place.get_or_init(|| made))
    }

    /// Returns the keyspace if it exists.
    pub(super) fn opened_keyspace(&self, keyspace: Keyspace) -> Option<&fjall::Keyspace> {
        self.keyspaces[keyspace.number()].get()
    }

    /// Returns fjall itself and the store's own keyspace.
    pub(super) fn own(&self) -> (&fjall::Database, &fjall::Keyspace) {
        (&self.fjall, &self.own)
    }

    /// Returns all keyspaces that exist.
    pub(super) fn opened_keyspaces(&self) -> impl Iterator<Item = &fjall::Keyspace> {
        self.keyspaces.iter().filter_map(OnceLock::get).chain([&self.own])
    }

    /// Returns the store's record as of the newest commit; `None` if there was no commit.
    pub(super) fn record(&self) -> Result<Option<StoreRecord>> {
        let bytes = self.published.newest().get(&self.own, RECORD_KEY);
        let bytes = bytes.map_err(|error| cannot("read the store record", &error))?;
        bytes.map(|bytes| StoreRecord::decode(&bytes)).transpose()
    }

    /// Commits a batch. Readers from now on see all of it.
    pub(super) fn commit(&self, batch: OwnedWriteBatch) -> fjall::Result<()> {
        self.published.commit(&self.fjall, batch)
    }

    /// Returns the bytes on disk in all, and of the journal alone.
    pub(super) fn sizes(&self) -> (u64, u64) {
        (self.fjall.disk_space().unwrap_or(0), self.fjall.journal_disk_space().unwrap_or(0))
    }

    /// Returns the free space of the disk. What is only in memory and in the journal still needs space for its tables.
    pub(super) fn free_space(&self) -> Option<FreeSpace> {
        FreeSpace::of(&self.path, self.reserve_bytes, self.fjall.write_buffer_size())
    }

    /// Replaces the snapshot that readers share by a new one, unless a running commit is about to do so.
    pub(super) fn refresh_snapshot(&self) {
        self.published.refresh(&self.fjall);
    }

    /// Returns the sequence number below which snapshots see only the newest version of each key.
    pub(super) fn oldest_snapshot(&self) -> u64 {
        self.fjall.supervisor.snapshot_tracker.get_seqno_safe_to_gc()
    }

    /// Lets merges drop the entries below the watermarks that are durable and in every snapshot.
    pub(super) fn settle_watermarks(&self) {
        self.watermarks.settle(self.oldest_snapshot());
    }

    /// Makes all commits durable, so that merges may drop the entries that their watermarks cover. Returns the next sequence number.
    pub(super) fn sync_watermarks(&self) -> Result<u64> {
        let seqno = self.fjall.visible_seqno();
        self.fjall.persist(PersistMode::SyncData).map_err(|error| cannot("sync", &error))?;
        self.watermarks.synced(seqno);
        Ok(seqno)
    }

    /// Rewrites all tables of a keyspace into the last level, without removed entries.
    pub(super) fn rewrite(&self, keyspace: &fjall::Keyspace) -> Result<()> {
        self.settle_watermarks();
        let rewritten = keyspace.tree.major_compact(TABLE_BYTES, self.oldest_snapshot());
        rewritten.map_err(|error| cannot("rewrite tables", &error.into()))
    }

    /// Writes all memtables to tables.
    pub(super) fn flush(&self) -> Result<()> {
        for keyspace in self.opened_keyspaces() {
            keyspace.rotate_memtable().map_err(|error| cannot("flush", &error))?;
        }
        self.wait_for_flushes(0)
    }

    /// Closes a flushed database. Returns whether tables hold everything, so that nothing is lost with the journal.
    pub(super) fn close(self) -> bool {
        let is_flushed = |keyspace: &fjall::Keyspace| {
            keyspace.tree.active_memtable().is_empty() && keyspace.sealed_memtable_count() == 0
        };
        self.opened_keyspaces().all(is_flushed)
    }

    /// Waits until no keyspace has more than `sealed` memtables waiting to be flushed.
    pub(super) fn wait_for_flushes(&self, sealed: usize) -> Result<()> {
        while self.opened_keyspaces().any(|keyspace| keyspace.sealed_memtable_count() > sealed) {
            // Reports a worker that has ended, for which the wait would never end.
            self.fjall.persist(PersistMode::Buffer).map_err(|error| cannot("flush", &error))?;
            pause();
        }
        Ok(())
    }
}

fn keyspace_options(keyspace: Keyspace) -> KeyspaceCreateOptions {
    let options = KeyspaceCreateOptions::default().compaction_strategy(no_automatic_compaction());
    match keyspace {
        // Read by key, mostly keys that exist.
        Keyspace::Item => options.max_memtable_size(BIG_MEMTABLE_BYTES).expect_point_read_hits(true),
        // Read by range: a filter would cost and never help.
        Keyspace::Index => {
            options.max_memtable_size(BIG_MEMTABLE_BYTES).filter_policy(FilterPolicy::disabled())
        }
        Keyspace::Queue | Keyspace::Feed | Keyspace::History | Keyspace::Deletion => {
            options.max_memtable_size(MEMTABLE_BYTES).filter_policy(FilterPolicy::disabled())
        }
        Keyspace::Catalog | Keyspace::Id | Keyspace::Unique | Keyspace::Counter | Keyspace::Receipt => {
            options.max_memtable_size(MEMTABLE_BYTES)
        }
    }
}

/// The writer's access to the disk.
pub(super) struct Committer {
    database: Arc<Database>,
    durability: Durability,
    path: PathBuf,
    /// The clock's bound when the marker was last written.
    marked_bound: crate::Time,
    memtables: Memtables,
    /// Whether the last check found too little free space.
    short: bool,
}

impl Committer {
    pub(super) fn new(
        database: Arc<Database>,
        durability: Durability,
        path: PathBuf,
        record: Option<&StoreRecord>,
        signal: Arc<CompactorSignal>,
    ) -> Self {
        let marked_bound = record.map(|record| record.clock.bound).unwrap_or_default();
        Self { database, durability, path, marked_bound, memtables: Memtables::new(signal), short: false }
    }
}

impl Backend for Committer {
    fn prepare(&mut self) -> Result<bool> {
        let missing = |keyspace: &Keyspace| self.database.keyspaces[keyspace.number()].get().is_none();
        let Some(keyspace) = Keyspace::ALL.into_iter().find(missing) else { return Ok(false) };
        self.database.open_keyspace(keyspace)?;
        Ok(true)
    }

    fn base(&self) -> Result<Box<dyn Read>> {
        Ok(Box::new(EmbeddedSnapshot::new(Arc::clone(&self.database))))
    }

    fn check(&self) -> Result<()> {
        self.database.compaction_health.check(&self.database)
    }

    fn free_space(&mut self) -> Option<FreeSpace> {
        if self.database.reserve_bytes == 0 {
            return None;
        }
        let mut free_space = self.database.free_space()?;
        if self.short {
            // A little hysteresis, or the limit would be crossed many times a second.
            free_space.reserved_bytes += free_space.reserved_bytes / 8;
        }
        if free_space.is_low() != self.short {
            self.short = free_space.is_low();
            let FreeSpace { free_bytes, reserved_bytes, .. } = free_space;
            if self.short {
                log::error!(
                    "disk space is low: {free_bytes} bytes free, {reserved_bytes} bytes reserved; only writes that free space are accepted"
                );
            } else {
                log::warn!("disk space is sufficient again; all writes are accepted");
            }
        }
        Some(free_space)
    }

    fn commit(&mut self, mut overlay: Overlay, record: &StoreRecord, durability: Durability) -> Result<()> {
        let Database { fjall, own, watermarks, .. } = self.database.as_ref();
        self.database.wait_for_flushes(MAX_SEALED)?;
        // A buffered commit is durable before it gets into a table: fjall syncs its journal before every flush.
        let is_synced = self.durability == Durability::Sync && durability == Durability::Sync;
        let mode = if is_synced { PersistMode::SyncData } else { PersistMode::Buffer };
        let covered = watermarks.begin_commit(&mut overlay);
        let sequences = watermarks.sequences_to_store();
        // All entries, the history of sequences, the store's record and the floor.
        let entries = overlay.len() + 3;
        let batch = OwnedWriteBatch::with_capacity(fjall.clone(), entries);
        let mut batch = batch.durability(Some(mode));
        for (keyspace, key, change) in overlay.into_packed_changes() {
            let keyspace = self.database.open_keyspace(keyspace)?;
            match change {
                Some(value) => batch.insert(keyspace, key, value),
                None => batch.remove(keyspace, key),
            }
        }
        if let Some(sequences) = sequences {
            batch.insert(own, SEQUENCES_KEY, sequences);
        }
        batch.insert(own, RECORD_KEY, record.encode());
        // The last entry: `journal::check` looks for it there.
        batch.insert(own, journal::FLOOR_KEY, fjall.seqno().to_le_bytes());
        self.database.commit(batch).map_err(|error| cannot("commit", &error))?;
        let seqno = fjall.visible_seqno();
        watermarks.committed(covered, seqno, record.sequence);
        // Also with buffered durability: a power failure must not undo a watermark whose entries are gone and restore their
        // items.
        if is_synced {
            watermarks.synced(seqno);
        }
        self.memtables.committed(&self.database);
        throttle::throttle_after(&self.database, entries);
        if is_synced && record.clock.bound.millis().abs_diff(self.marked_bound.millis()) >= MARK_MS {
            self.marked_bound = record.clock.bound;
            Marker { commit: record.commit, state: State::Open }.write(&self.path)?;
        }
        Ok(())
    }
}

/// A snapshot of the database.
pub(super) struct EmbeddedSnapshot {
    snapshot: Arc<fjall::Snapshot>,
    /// Dropped after fjall's snapshot: fields are dropped in this order.
    reader: Reader,
}

/// An open snapshot; it is counted until it is dropped.
struct Reader {
    database: Arc<Database>,
    phase: usize,
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.database.readers.leave(self.phase);
    }
}

impl EmbeddedSnapshot {
    pub(super) fn new(database: Arc<Database>) -> Self {
        let reader = Reader { phase: database.readers.enter(), database };
        Self { snapshot: reader.database.published.newest(), reader }
    }

    /// Returns the store's record as of this snapshot.
    pub(super) fn record(&self) -> Result<Option<StoreRecord>> {
        let bytes = self.snapshot.get(&self.reader.database.own, RECORD_KEY);
        let bytes = bytes.map_err(|error| cannot("read the store record", &error))?;
        bytes.map(|bytes| StoreRecord::decode(&bytes)).transpose()
    }

    fn keyspace(&self, keyspace: Keyspace) -> Option<&fjall::Keyspace> {
        self.reader.database.opened_keyspace(keyspace)
    }

    /// Returns the filter that hides the snapshot's covered entries of a keyspace.
    pub(super) fn hiding(
        &self,
        keyspace: Keyspace,
    ) -> Option<Hiding<'_, impl Fn(watermark::Prefix) -> Result<u64>>> {
        let read = move |prefix| watermark::watermark(self, prefix);
        Hiding::new(&self.reader.database.watermarks, keyspace, read)
    }
}

impl Snapshot for EmbeddedSnapshot {}

impl Read for EmbeddedSnapshot {
    fn get(&self, keyspace: Keyspace, key: &[u8]) -> Result<Option<Bytes>> {
        if let Some(mut hiding) = self.hiding(keyspace)
            && hiding.hides(key)?
        {
            return Ok(None);
        }
        let Some(keyspace) = self.keyspace(keyspace) else { return Ok(None) };
        let value = self.snapshot.get(keyspace, key);
        Ok(value.map_err(|error| cannot("read", &error))?.map(Bytes::from))
    }

    fn scan(&self, keyspace: Keyspace, range: KeyRange, direction: Direction) -> Scan<'_> {
        let hiding = self.hiding(keyspace);
        let visible = match &hiding {
            Some(hiding) => hiding.skip_hidden(keyspace, range),
            None => Ok(range),
        };
        let range = match visible {
            Ok(range) => range,
            Err(error) => return Box::new(std::iter::once(Err(error))),
        };
        let Some(keyspace) = self.keyspace(keyspace).filter(|_| !range.is_empty()) else {
            return Box::new(std::iter::empty());
        };
        let entries = self.snapshot.range(keyspace, (range.start, range.end));
        let entry = |guard: fjall::Guard| {
            let (key, value) = guard.into_inner().map_err(|error| cannot("scan", &error))?;
            Ok((Bytes::from(key), Bytes::from(value)))
        };
        match (direction, hiding) {
            (Direction::Forward, None) => Box::new(entries.map(entry)),
            (Direction::Backward, None) => Box::new(entries.rev().map(entry)),
            (Direction::Forward, Some(mut hiding)) => {
                Box::new(entries.filter_map(move |guard| hiding.visible(entry(guard))))
            }
            (Direction::Backward, Some(mut hiding)) => {
                Box::new(entries.rev().filter_map(move |guard| hiding.visible(entry(guard))))
            }
        }
    }
}

/// Converts fjall's error.
pub(super) fn cannot(doing: &'static str, error: &fjall::Error) -> Error {
    match error {
        fjall::Error::Io(error) | fjall::Error::Storage(lsm_tree::Error::Io(error)) => {
            Error::io(doing, error)
        }
        fjall::Error::Locked => Error::Locked { path: String::new() },
        fjall::Error::Poisoned => {
            Error::Poisoned { cause: format!("cannot {doing}: an earlier write or flush failed") }
        }
        other => Error::Corrupt { what: format!("cannot {doing}: {other}") },
    }
}

/// Makes the names of new keyspaces durable: fjall syncs the contents of a keyspace's directory, but not its parent.
fn sync_keyspaces(path: &Path) -> Result<()> {
    sync_directory(&path.join(KEYSPACES)).map_err(|error| Error::io("sync the names of keyspaces", &error))
}

/// Creates a directory if it does not exist, durably with its name in the parent directory, and readable by its owner
/// alone, because it will hold user data.
pub(super) fn make_directory(path: &Path) -> std::io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(above) = path.parent().filter(|above| !above.as_os_str().is_empty()) {
        make_directory(above)?;
    }
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error),
        Ok(()) | Err(_) => {
            let above = path.parent().filter(|above| !above.as_os_str().is_empty());
            sync_directory(above.unwrap_or(Path::new(".")))
        }
    }
}

/// Makes a rename in `directory` durable.
#[expect(clippy::disallowed_methods, reason = "a directory can be synced only through a file handle")]
pub(super) fn sync_directory(directory: &Path) -> std::io::Result<()> {
    if cfg!(unix) { std::fs::File::open(directory)?.sync_all() } else { Ok(()) }
}

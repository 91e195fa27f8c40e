//! The embedded store: fjall under one writer thread with group commit.
//!
//! Callers queue their jobs; the writer thread runs everything that waits over one overlay and makes one synced commit
//! for all of it, so the jobs share one sync and "visible" means "durable". Readers take snapshots and never wait for
//! the writer. This module is the only one of the crate that starts threads and touches files.
//!
//! | file | what |
//! |---|---|
//! | `database.rs` | fjall itself: keyspaces, batches, snapshots, and its traps |
//! | `queue.rs` | the bounded queue and the writer thread |
//! | `compactor.rs` | compaction in small pieces, and freeing memory, on threads of their own |
//! | `compaction_health.rs` | failing compactions, until their cause is gone |
//! | `marker.rs` | the small file beside the data: format, clean or not, a commit number that cannot be lost |
//! | `published.rs` | the state that readers see, taken between two batches |
//! | `readers.rs` | open snapshots, to wait for those opened before some moment |
//! | `scrub.rs` | removing deleted bytes from the files |
//! | `throttle.rs` | delays that let compaction keep up with writing |
//! | `watermarks.rs`, `hiding.rs` | removals stated by one number: when merges may drop their entries, and hiding these from readers |
//! | `covered_tables.rs`, `sequence_history.rs` | tables that are dropped whole, because watermarks cover all their entries |
//! | `reclaim.rs` | the space that dropped tables leave when nothing else is written |
//! | `data_directory.rs` | which directories may hold a store |
//! | `restore.rs` | making a store from a backup |
//! | `journal.rs`, `manifest.rs` | checks that fjall does not make when it opens a store |
//! | `rescue.rs` | the part of the journal that a recovery cut off, kept and reported |

mod compaction_health;
mod compactor;
mod covered_tables;
mod data_directory;
mod database;
mod hiding;
mod journal;
mod manifest;
mod marker;
#[cfg(all(test, feature = "shuttle"))]
mod model;
mod published;
mod queue;
mod readers;
mod reclaim;
mod rescue;
mod restore;
mod scrub;
mod sequence_history;
mod throttle;
#[cfg(test)]
mod watermark_steps_tests;
#[cfg(test)]
mod watermark_tests;
mod watermarks;

use crate::clock::{ClockOptions, Command};
use crate::record::StoreRecord;
use crate::sync::JoinHandle;
use crate::ticket::ticket;
use crate::writer::{Shared, Wait, Work, Writer, check_outside_job, refuse};
use crate::{
    Backup, ClockStatus, Durability, Error, FreeSpace, Job, Keyspace, Lanes, Result, Scrubbed, Snapshot,
    Stats, Store, Time, WriterLoad,
};
use compactor::{Compactor, CompactorSignal};
use database::{Committer, Database, EmbeddedSnapshot};
use marker::{Marker, State};
use parking_lot::{Mutex, RwLock};
use queue::Queue;
use rescue::Rescue;
use scrub::Scrub;
pub use scrub::ScrubProgress;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How often the lock is tried, one millisecond apart.
const LOCK_ATTEMPTS: u32 = 100;

/// Options for opening an embedded store.
#[derive(Clone)]
pub struct EmbeddedOptions {
    /// The data directory; created if it does not exist.
    pub path: PathBuf,
    /// What an acknowledged write survives.
    pub durability: Durability,
    /// The largest size of the block cache; it fills as data is read.
    pub cache_bytes: u64,
    /// The largest number of table files kept open for reading. A compaction opens more.
    pub open_files: usize,
    /// How much of the disk is reserved, at most a twentieth of it. With 0 nothing is reserved, and free space is not
    /// checked.
    pub reserve_bytes: u64,
    /// The clock.
    pub clock: ClockOptions,
}

impl EmbeddedOptions {
    /// Creates options with synced commits, a cache of up to 256 MiB, up to 900 open tables and 256 MiB of the disk
    /// reserved.
    pub fn new(path: impl Into<PathBuf>, clock: ClockOptions) -> Self {
        let (path, durability) = (path.into(), Durability::Sync);
        Self { path, durability, cache_bytes: 256 << 20, open_files: 900, reserve_bytes: 256 << 20, clock }
    }
}

/// The result of recovery. Worth a line in the log unless it was clean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// Whether the store was new or had been closed cleanly.
    pub clean: bool,
    /// The number of commits in the store after recovery.
    pub commits: u64,
    /// Bytes at the end of the journal that were not a complete commit and were cut off.
    pub dropped_bytes: u64,
    /// The file that keeps those bytes until the next recovery that drops some.
    pub dropped_file: Option<PathBuf>,
}

/// A store in a directory of its own.
pub struct EmbeddedStore {
    database: RwLock<Option<Arc<Database>>>,
    shared: Arc<Shared>,
    queue: Arc<Queue>,
    thread: Mutex<Option<JoinHandle<()>>>,
    compactor: Mutex<Option<Compactor>>,
    path: PathBuf,
    recovery: Recovery,
    /// Held while a scrub runs, and permanently by `close`.
    scrubbing: Mutex<()>,
    closing: AtomicBool,
    /// Locks the directory until the store is closed or dropped.
    lock: Mutex<Option<fs::File>>,
}

impl EmbeddedStore {
    /// Opens the store in `options.path`, or creates one there.
    pub fn open(options: EmbeddedOptions) -> Result<Self> {
        let path = options.path.clone();
        data_directory::check(&path)?;
        database::make_directory(&path).map_err(|error| Error::io("make the data directory", &error))?;
        let lock = lock(&path)?;
        let found = Marker::read(&path)?;
        if found.is_none() && Database::exists(&path) {
            let what = format!("{} has data but no {}", path.display(), marker::FILE);
            return Err(Error::Corrupt { what });
        }
        let before = found.unwrap_or(Marker { commit: 0, state: State::Making });
        let database = match before.state {
            State::Making => Self::make(&options)?,
            // From here on a crash leaves a store marked as not closed.
            State::Clean | State::Open => {
                Marker { state: State::Open, ..before }.write(&path)?;
                None
            }
        };
        let rescue = match before.state {
            State::Clean | State::Making => None,
            State::Open => Some(Rescue::prepare(&path)?),
        };
        let database = match (database, &rescue) {
            (Some(database), _) => database,
            (None, None) => Database::open(&options)?,
            (None, Some(rescue)) => recover(&options, rescue)?,
        };
        let record = database.record()?;
        let commits = record.as_ref().map_or(0, |record| record.commit);
        check_commit(&before, commits)?;
        let dropped = rescue.map(Rescue::finish).transpose()?.unwrap_or_default();
        let recovery = Recovery {
            clean: before.state != State::Open,
            commits,
            dropped_bytes: dropped.bytes,
            dropped_file: dropped.file,
        };
        Self::start(options, database, record, recovery, lock)
    }

    /// Creates the files of a new store, which exists only when all of them do: fjall does not continue with half of
    /// them.
    fn make(options: &EmbeddedOptions) -> Result<Option<Database>> {
        let marker = Marker { commit: 0, state: State::Making };
        marker.write(&options.path)?;
        Database::remove_unfinished(&options.path)?;
        let database = Database::open(options)?;
        Marker { state: State::Open, ..marker }.write(&options.path)?;
        Ok(Some(database))
    }

    fn start(
        options: EmbeddedOptions,
        database: Database,
        record: Option<StoreRecord>,
        recovery: Recovery,
        lock: fs::File,
    ) -> Result<Self> {
        let EmbeddedOptions { path, durability, clock, .. } = options;
        let shared = match Shared::start(record.as_ref(), clock) {
            Ok(shared) => shared,
            Err(error) => {
                // The store was refused and not changed: leave it as it was found.
                if recovery.clean {
                    Marker { commit: recovery.commits, state: State::Clean }.write(&path)?;
                }
                return Err(error);
            }
        };
        let database = Arc::new(database);
        let signal = Arc::new(CompactorSignal::default());
        let compactor = Compactor::start(Arc::clone(&database), Arc::clone(&shared), Arc::clone(&signal))?;
        let committer =
            Committer::new(Arc::clone(&database), durability, path.clone(), record.as_ref(), signal);
        let writer = Writer::new(committer, record.unwrap_or_default(), Arc::clone(&shared));
        let queue = Arc::new(Queue::default());
        let thread = queue::start(Arc::clone(&queue), writer, Arc::clone(&shared))?;
        Ok(Self {
            database: RwLock::new(Some(database)),
            shared,
            queue,
            thread: Mutex::new(Some(thread)),
            compactor: Mutex::new(Some(compactor)),
            path,
            recovery,
            scrubbing: Mutex::default(),
            closing: AtomicBool::new(false),
            lock: Mutex::new(Some(lock)),
        })
    }

    /// Returns the result of the recovery when this store was opened.
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    fn database(&self) -> Result<Arc<Database>> {
        self.database.read().clone().ok_or(Error::Closed)
    }

    /// Leaves nothing to recover, and marks the store as clean.
    fn finish(&self, database: Arc<Database>) -> Result<()> {
        database.flush()?;
        let commit = database.record()?.map_or(0, |record| record.commit);
        // A snapshot may still be open; then the next start has a journal to read.
        if Arc::into_inner(database).is_some_and(Database::close) {
            journal::empty(&self.path)?;
        }
        Marker { commit, state: State::Clean }.write(&self.path)
    }

    fn command(&self, command: Command, wait: Wait) -> Result<()> {
        check_outside_job()?;
        let (resolver, ticket) = ticket();
        let work = Work::Clock(command, resolver);
        match wait {
            Wait::Yes => {
                self.queue.push(work);
                ticket.wait()
            }
            Wait::No => {
                self.queue.offer(work);
                Ok(())
            }
        }
    }

    /// Scrubs as [`scrub`](Store::scrub) does, reporting its progress to `watcher`.
    pub fn scrub_watched(
        &self,
        keyspaces: &[Keyspace],
        watcher: &mut dyn FnMut(ScrubProgress),
    ) -> Result<Scrubbed> {
        check_outside_job()?;
        let _scrubbing = self.scrubbing.lock();
        let database = self.database()?;
        // A scrub writes much before it frees anything.
        database.free_space().map_or(Ok(()), FreeSpace::require)?;
        let stopping = || self.closing.load(Ordering::Acquire);
        let scrub = Scrub { database: &database, directory: &self.path, stopping: &stopping };
        let scrubbed = scrub.run(keyspaces, watcher)?;
        // The bytes that a recovery cut off the journal may include removed data.
        rescue::forget(&self.path)?;
        Ok(scrubbed)
    }
}

impl Store for EmbeddedStore {
    fn snapshot(&self) -> Result<Arc<dyn Snapshot>> {
        let database = self.database()?;
        database.readers.count();
        Ok(Arc::new(EmbeddedSnapshot::new(database)))
    }

    fn operations(&self) -> u64 {
        self.shared.jobs() + self.database().map_or(0, |database| database.readers.taken())
    }

    fn writer_load(&self) -> WriterLoad {
        self.shared.load.get(self.database().is_ok_and(|database| throttle::is_throttled(&database)))
    }

    fn scrub(&self, keyspaces: &[Keyspace]) -> Result<Scrubbed> {
        self.scrub_watched(keyspaces, &mut |_| {})
    }

    fn backup(&self) -> Result<Backup> {
        loop {
            let commits = self.commits();
            let database = self.database()?;
            database.readers.count();
            let snapshot = EmbeddedSnapshot::new(database);
            let record = snapshot.record()?;
            let clock = self.clock_status()?;
            // As for every snapshot with a time; a store without a commit gets one with its first lease.
            if self.commits() == commits
                && let Some(record) = record
            {
                return Ok(Backup::new(Arc::new(snapshot), record, &clock));
            }
        }
    }

    fn submit(&self, _lanes: Lanes, job: Box<dyn Job>) {
        match check_outside_job() {
            Ok(()) => self.queue.push(Work::Job(job)),
            Err(error) => refuse(Work::Job(job), error),
        }
    }

    fn last_sequence(&self) -> u64 {
        self.shared.last_sequence()
    }

    fn commits(&self) -> u64 {
        self.shared.commits()
    }

    fn clock_status(&self) -> Result<ClockStatus> {
        self.shared.status(|wait| self.command(Command::Renew, wait))
    }

    fn accept_clock(&self) -> Result<ClockStatus> {
        self.command(Command::Accept, Wait::Yes)?;
        self.clock_status()
    }

    fn reject_clock(&self) -> Result<ClockStatus> {
        self.command(Command::Reject, Wait::Yes)?;
        self.clock_status()
    }

    fn advance_clock(&self, seconds: u64) -> Result<Time> {
        self.command(Command::Advance { seconds }, Wait::Yes)?;
        self.now()
    }

    fn stats(&self) -> Stats {
        let database = self.database().ok();
        let (disk_bytes, journal_bytes) =
            database.as_ref().map(|database| database.sizes()).unwrap_or_default();
        let compaction = |is_so: fn(&Database) -> bool| database.as_deref().is_some_and(is_so);
        Stats {
            disk_bytes,
            journal_bytes,
            commits: self.shared.commits(),
            jobs: self.shared.jobs(),
            poisoned: self.shared.poison().is_some(),
            compaction_fails: compaction(|database| database.compaction_health.fails()),
            compaction_stops_jobs: compaction(|database| database.compaction_health.check(database).is_err()),
            deferred: database.as_deref().map(Database::deferred_work).unwrap_or_default(),
            free_space: database.and_then(|database| database.free_space()),
        }
    }

    fn close(&self) -> Result<()> {
        check_outside_job()?;
        let Some(thread) = self.thread.lock().take() else { return Ok(()) };
        self.closing.store(true, Ordering::Release);
        let _scrubbing = self.scrubbing.lock();
        let (resolver, ticket) = ticket();
        self.queue.close(Work::Clock(Command::Close, resolver));
        let stored = ticket.wait();
        let joined =
            thread.join().map_err(|_| Error::Internal { message: "the writer thread has ended".to_owned() });
        let compacted = self.compactor.lock().take().map_or(Ok(()), Compactor::stop);
        let database = self.database.write().take();
        let flushed = match (database, self.shared.poison()) {
            (Some(database), None) => self.finish(database),
            // After a failed commit there is nothing to flush that the journal does not hold.
            _ => Ok(()),
        };
        self.shared.stop(&Error::Closed);
        drop(self.lock.lock().take());
        stored.and(joined).and(compacted).and(flushed)
    }
}

impl Drop for EmbeddedStore {
    fn drop(&mut self) {
        // Callers that need the outcome call `close`.
        let _ = self.close();
    }
}

/// Locks the directory for this process.
fn lock(path: &Path) -> Result<fs::File> {
    let file = fs::OpenOptions::new().create(true).write(true).truncate(false).open(path.join("bolide.lock"));
    let file = file.map_err(|error| Error::io("open the lock file", &error))?;
    for attempt in 1.. {
        match file.try_lock() {
            Ok(()) => break,
            // A process that is just ending, or replacing itself, may still hold it.
            Err(fs::TryLockError::WouldBlock) if attempt < LOCK_ATTEMPTS => throttle::pause(),
            Err(fs::TryLockError::WouldBlock) => {
                return Err(Error::Locked { path: path.display().to_string() });
            }
            Err(fs::TryLockError::Error(error)) => return Err(Error::io("lock the data directory", &error)),
        }
    }
    Ok(file)
}

/// Opens a store that was not closed.
///
/// fjall discards a last commit that has no end, but refuses one that has an end but wrong bytes before it. A power
/// loss may leave a commit of several pages like that, since they reach the disk in any order. Only the last commit can
/// be in that state, and it was not acknowledged: without its end it is discarded, too. If that does not help, the
/// store is damaged.
fn recover(options: &EmbeddedOptions, rescue: &Rescue) -> Result<Database> {
    match Database::open(options) {
        Err(Error::Corrupt { what }) => {
            rescue.cut_last_end()?;
            Database::open(options).map_err(|_| Error::Corrupt { what })
        }
        other => other,
    }
}

/// Compares the recovered number of commits with the one in the marker.
fn check_commit(marker: &Marker, commits: u64) -> Result<()> {
    let lost = match marker.state {
        State::Clean | State::Making => commits != marker.commit,
        State::Open => commits < marker.commit,
    };
    if lost {
        let what = format!(
            "{} commits were found where {} are known to have been made; the journal as it was is kept in {}",
            commits,
            marker.commit,
            rescue::DIRECTORY
        );
        return Err(Error::Corrupt { what });
    }
    Ok(())
}

//! A store in memory: for `--memory`, for tests and for the simulator.
//!
//! Jobs run at once on the caller's thread, one at a time, each a group of its own, so that a run is determined by its
//! calls and its clock alone. Dropping a store without closing it counts as a crash for its disk.

mod disk;

pub use disk::{CrashMode, MemoryDisk};

use crate::clock::{ClockOptions, Command};
use crate::overlay::Overlay;
use crate::record::StoreRecord;
use crate::ticket::ticket;
use crate::writer::{Backend, Shared, Work, Writer, check_outside_job, refuse};
use crate::{
    Backup, ClockStatus, DeferredWork, Direction, Durability, Error, FreeSpace, Job, KeyRange, Keyspace,
    Lanes, Read, Result, Scan, Scrubbed, Snapshot, Stats, Store, Time,
};
use bytes::Bytes;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// How many entries a scan fetches at a time.
const SCAN_CHUNK: usize = 64;

/// A store whose data is in memory.
pub struct MemoryStore {
    disk: MemoryDisk,
    user: u64,
    shared: Arc<Shared>,
    writer: Mutex<Writer<DiskClaim>>,
    closed: AtomicBool,
    /// Snapshots taken since the store was opened.
    snapshots: AtomicU64,
}

impl MemoryStore {
    /// Creates an empty store.
    pub fn new(options: ClockOptions) -> Result<Self> {
        Self::open(MemoryDisk::new(), options)
    }

    /// Opens the durable state on `disk`. Fails while another store has it open, unless that one crashed.
    pub fn open(disk: MemoryDisk, options: ClockOptions) -> Result<Self> {
        let user = disk.claim()?;
        let record = disk.record();
        let shared = match Shared::start(record.as_ref(), options) {
            Ok(shared) => shared,
            Err(error) => {
                disk.release(user);
                return Err(error);
            }
        };
        let backend = DiskClaim { disk: disk.clone(), user };
        let writer = Writer::new(backend, record.unwrap_or_default(), Arc::clone(&shared));
        let (writer, closed, snapshots) = (Mutex::new(writer), AtomicBool::new(false), AtomicU64::new(0));
        Ok(Self { disk, user, shared, writer, closed, snapshots })
    }

    fn perform(&self, work: Work) {
        if let Err(error) = check_outside_job() {
            return refuse(work, error);
        }
        let mut writer = self.writer.lock();
        if let Some((mut group, work)) = writer.begin(work) {
            writer.add(&mut group, work);
            writer.finish(group);
        }
    }

    fn command(&self, command: Command) -> Result<()> {
        let (resolver, ticket) = ticket();
        self.perform(Work::Clock(command, resolver));
        ticket.wait()
    }
}

impl Store for MemoryStore {
    fn snapshot(&self) -> Result<Arc<dyn Snapshot>> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::Closed);
        }
        self.snapshots.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::new(MemorySnapshot::new(self.disk.clone())))
    }

    fn operations(&self) -> u64 {
        self.shared.jobs() + self.snapshots.load(Ordering::Relaxed)
    }

    fn scrub(&self, _: &[Keyspace]) -> Result<Scrubbed> {
        // A memory store has no files, but requires as much free space as an embedded one.
        self.disk.free_space().map_or(Ok(()), FreeSpace::require).map(|()| Scrubbed::Done)
    }

    fn backup(&self) -> Result<Backup> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::Closed);
        }
        loop {
            let commits = self.commits();
            let snapshot = MemorySnapshot::new(self.disk.clone());
            let record = self.disk.record();
            let clock = self.clock_status()?;
            if self.commits() == commits
                && let Some(record) = record
            {
                self.snapshots.fetch_add(1, Ordering::Relaxed);
                return Ok(Backup::new(Arc::new(snapshot), record, &clock));
            }
        }
    }

    fn submit(&self, _lanes: Lanes, job: Box<dyn Job>) {
        self.perform(Work::Job(job));
    }

    fn last_sequence(&self) -> u64 {
        self.shared.last_sequence()
    }

    fn commits(&self) -> u64 {
        self.shared.commits()
    }

    fn clock_status(&self) -> Result<ClockStatus> {
        self.shared.status(|_| self.command(Command::Renew))
    }

    fn accept_clock(&self) -> Result<ClockStatus> {
        self.command(Command::Accept)?;
        self.clock_status()
    }

    fn reject_clock(&self) -> Result<ClockStatus> {
        self.command(Command::Reject)?;
        self.clock_status()
    }

    fn advance_clock(&self, seconds: u64) -> Result<Time> {
        self.command(Command::Advance { seconds })?;
        self.now()
    }

    fn stats(&self) -> Stats {
        Stats {
            disk_bytes: self.disk.bytes(),
            journal_bytes: 0,
            commits: self.shared.commits(),
            jobs: self.shared.jobs(),
            poisoned: self.shared.poison().is_some(),
            compaction_fails: false,
            compaction_stops_jobs: false,
            free_space: self.disk.free_space(),
            deferred: DeferredWork::default(),
        }
    }

    fn close(&self) -> Result<()> {
        check_outside_job()?;
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let outcome = self.command(Command::Close);
        self.shared.stop(&Error::Closed);
        self.disk.release(self.user);
        outcome
    }
}

impl Drop for MemoryStore {
    fn drop(&mut self) {
        self.disk.release(self.user);
    }
}

/// One store's right to write to a disk.
struct DiskClaim {
    disk: MemoryDisk,
    user: u64,
}

impl Backend for DiskClaim {
    fn base(&self) -> Result<Box<dyn Read>> {
        Ok(Box::new(MemorySnapshot::new(self.disk.clone())))
    }

    fn free_space(&mut self) -> Option<FreeSpace> {
        self.disk.free_space()
    }

    fn commit(&mut self, overlay: Overlay, record: &StoreRecord, durability: Durability) -> Result<()> {
        self.disk.commit(self.user, overlay, record, durability)
    }
}

struct MemorySnapshot {
    disk: MemoryDisk,
    commit: u64,
}

impl MemorySnapshot {
    fn new(disk: MemoryDisk) -> Self {
        let commit = disk.open_snapshot();
        Self { disk, commit }
    }
}

impl Drop for MemorySnapshot {
    fn drop(&mut self) {
        self.disk.close_snapshot(self.commit);
    }
}

impl Snapshot for MemorySnapshot {}

impl Read for MemorySnapshot {
    fn get(&self, keyspace: Keyspace, key: &[u8]) -> Result<Option<Bytes>> {
        Ok(self.disk.get(self.commit, keyspace, key))
    }

    fn scan(&self, keyspace: Keyspace, range: KeyRange, direction: Direction) -> Scan<'_> {
        Box::new(
            Chunks { snapshot: self, keyspace, range: Some(range), direction, chunk: Vec::new().into_iter() }
                .map(Ok),
        )
    }
}

/// A scan that holds the lock only while it fetches a chunk.
struct Chunks<'a> {
    snapshot: &'a MemorySnapshot,
    keyspace: Keyspace,
    range: Option<KeyRange>,
    direction: Direction,
    chunk: std::vec::IntoIter<(Bytes, Bytes)>,
}

impl Iterator for Chunks<'_> {
    type Item = (Bytes, Bytes);

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(entry) = self.chunk.next() {
            return Some(entry);
        }
        let range = self.range.take().filter(|range| !range.is_empty())?;
        let MemorySnapshot { disk, commit } = self.snapshot;
        let chunk = disk.entries(*commit, self.keyspace, &range, self.direction, SCAN_CHUNK);
        if chunk.len() == SCAN_CHUNK {
            let last = chunk[SCAN_CHUNK - 1].0.to_vec();
            self.range = Some(match self.direction {
                Direction::Forward => range.after(last),
                Direction::Backward => range.before(last),
            });
        }
        self.chunk = chunk.into_iter();
        self.chunk.next()
    }
}

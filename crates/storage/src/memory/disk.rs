//! The disk of a memory store: what survives a crash, and the interface through which tests inject failures.
//!
//! Entries have versions, so that a snapshot is a number, and so is the durable state: the newest synced commit. A
//! version is dropped once neither a snapshot nor a crash can show it.

use crate::overlay::{Change, Overlay};
use crate::record::StoreRecord;
use crate::{Direction, Durability, Error, FreeSpace, KeyRange, Keyspace, Result};
use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The data of a memory store, which stays when the store is dropped.
#[derive(Clone, Default)]
pub struct MemoryDisk(Arc<Disk>);

/// What a crash leaves of the commit it interrupts. In either case the commit was not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashMode {
    /// Nothing of it, nor of unsynced commits before it.
    BeforeCommit,
    /// All of it.
    AfterCommit,
}

#[derive(Default)]
struct Disk {
    tables: RwLock<Tables>,
    faults: Mutex<Faults>,
}

#[derive(Default)]
struct Faults {
    /// The number of the current user of the disk; an earlier one may no longer write.
    user: u64,
    in_use: bool,
    commits: u64,
    undone: u64,
    free_space: Option<FreeSpace>,
    planned: Option<(u64, Fault)>,
}

#[derive(Clone, Copy)]
enum Fault {
    Crash(CrashMode),
    Full,
    /// The sync fails after the write: the next opening replays it.
    Unsynced,
}

#[derive(Default)]
struct Tables {
    maps: [BTreeMap<Bytes, Versions>; Keyspace::ALL.len()],
    record: Option<StoreRecord>,
    /// The number of the newest commit.
    commit: u64,
    /// The number of the newest synced commit, and its record.
    synced: (u64, Option<StoreRecord>),
    /// A commit whose sync has failed. It is not visible until the disk is opened again.
    unsynced: Option<(Overlay, StoreRecord)>,
    /// Open snapshots by commit.
    snapshots: BTreeMap<u64, usize>,
    /// Entries that had a version replaced, by the commit that did it.
    garbage: VecDeque<(u64, Keyspace, Bytes)>,
    bytes: u64,
}

/// The values of one key, oldest first; most keys have one.
type Versions = Vec<(u64, Change)>;

impl MemoryDisk {
    /// Returns an empty disk.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets the next `commits` commits pass and crashes in the one after them: it fails, the store is poisoned, and
    /// reopening the disk shows what `mode` defines. Renewals of the clock's lease are commits, too.
    pub fn crash_after(&self, commits: u64, mode: CrashMode) {
        self.plan(commits, Fault::Crash(mode));
    }

    /// Lets the next `commits` commits pass and fails the one after them as a full disk would.
    pub fn fail_after(&self, commits: u64) {
        self.plan(commits, Fault::Full);
    }

    /// Lets the next `commits` commits pass; the one after them is written, but its sync fails: it returns an error,
    /// the store is poisoned and keeps showing the state before it, and reopening the disk replays it.
    pub fn fail_sync_after(&self, commits: u64) {
        self.plan(commits, Fault::Unsynced);
    }

    /// Sets the free space of the disk from now on; `None` is unlimited.
    pub fn set_free_space(&self, free_space: Option<FreeSpace>) {
        self.0.faults.lock().free_space = free_space;
    }

    /// Cancels a planned failure that has not happened.
    pub fn clear_faults(&self) {
        self.0.faults.lock().planned = None;
    }

    /// Returns whether a failure is planned that has not happened.
    pub fn fault_is_planned(&self) -> bool {
        self.0.faults.lock().planned.is_some()
    }

    /// Returns the number of commits this disk has taken.
    pub fn commits(&self) -> u64 {
        self.0.faults.lock().commits
    }

    /// Returns the number of acknowledged commits that crashes have undone.
    pub fn undone(&self) -> u64 {
        self.0.faults.lock().undone
    }

    fn plan(&self, commits: u64, fault: Fault) {
        let mut faults = self.0.faults.lock();
        faults.planned = Some((faults.commits + commits, fault));
    }

    pub(super) fn free_space(&self) -> Option<FreeSpace> {
        self.0.faults.lock().free_space
    }

    /// Claims the disk for one store, and recovers it.
    pub(super) fn claim(&self) -> Result<u64> {
        let mut faults = self.0.faults.lock();
        if faults.in_use {
            return Err(Error::Locked { path: "the memory disk".to_owned() });
        }
        faults.in_use = true;
        faults.user += 1;
        let mut tables = self.0.tables.write();
        if let Some((overlay, record)) = tables.unsynced.take() {
            faults.commits += 1;
            tables.apply(overlay, &record, Durability::Sync);
        }
        Ok(faults.user)
    }

    /// Releases the disk; has no effect for a store that no longer holds it.
    pub(super) fn release(&self, user: u64) {
        let mut faults = self.0.faults.lock();
        if faults.user == user {
            faults.in_use = false;
        }
    }

    pub(super) fn record(&self) -> Option<StoreRecord> {
        self.0.tables.read().record
    }

    pub(super) fn bytes(&self) -> u64 {
        self.0.tables.read().bytes
    }

    /// Commits, unless a failure is due.
    pub(super) fn commit(
        &self,
        user: u64,
        overlay: Overlay,
        record: &StoreRecord,
        durability: Durability,
    ) -> Result<()> {
        let mut faults = self.0.faults.lock();
        if faults.user != user || !faults.in_use {
            return Err(Error::Closed);
        }
        let crash = || Error::io("commit", &"the disk crashed");
        let commits = faults.commits;
        let due = faults.planned.take_if(|(at, _)| *at == commits);
        if let Some((_, fault)) = due {
            faults.in_use = false;
            match fault {
                Fault::Full => return Err(Error::io("commit", &"no space left on the disk")),
                Fault::Unsynced => {
                    self.0.tables.write().unsynced = Some((overlay, *record));
                    return Err(Error::io("commit", &"the sync failed"));
                }
                Fault::Crash(CrashMode::BeforeCommit) => {
                    faults.undone += self.0.tables.write().discard_unsynced();
                    return Err(crash());
                }
                Fault::Crash(CrashMode::AfterCommit) => {}
            }
        }
        faults.commits += 1;
        self.0.tables.write().apply(overlay, record, durability);
        if due.is_some() { Err(crash()) } else { Ok(()) }
    }

    /// Opens a snapshot of the newest commit.
    pub(super) fn open_snapshot(&self) -> u64 {
        let mut tables = self.0.tables.write();
        let commit = tables.commit;
        *tables.snapshots.entry(commit).or_default() += 1;
        commit
    }

    pub(super) fn close_snapshot(&self, commit: u64) {
        let mut tables = self.0.tables.write();
        let open = tables.snapshots.get_mut(&commit).expect("a snapshot is closed once");
        *open -= 1;
        if *open == 0 {
            tables.snapshots.remove(&commit);
        }
    }

    pub(super) fn get(&self, commit: u64, keyspace: Keyspace, key: &[u8]) -> Option<Bytes> {
        let tables = self.0.tables.read();
        tables.maps[keyspace.number()].get(key).and_then(|versions| visible(versions, commit))
    }

    /// Returns the first `limit` entries of `range` in `direction` as of `commit`.
    pub(super) fn entries(
        &self,
        commit: u64,
        keyspace: Keyspace,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
    ) -> Vec<(Bytes, Bytes)> {
        let tables = self.0.tables.read();
        let entries = tables.maps[keyspace.number()].range::<[u8], _>(range.bounds());
        let seen = |(key, versions): (&Bytes, &Versions)| {
            visible(versions, commit).map(|value| (key.clone(), value))
        };
        match direction {
            Direction::Forward => entries.filter_map(seen).take(limit).collect(),
            Direction::Backward => entries.rev().filter_map(seen).take(limit).collect(),
        }
    }
}

fn visible(versions: &Versions, commit: u64) -> Option<Bytes> {
    let (_, change) = versions.iter().rev().find(|(since, _)| *since <= commit)?;
    change.clone()
}

impl Tables {
    fn apply(&mut self, overlay: Overlay, record: &StoreRecord, durability: Durability) {
        self.commit += 1;
        self.record = Some(*record);
        if durability == Durability::Sync {
            self.synced = (self.commit, self.record);
        }
        for (keyspace, key, change) in overlay.into_changes() {
            self.bytes += (key.len() + change.as_ref().map_or(0, Bytes::len)) as u64;
            let versions = self.maps[keyspace.number()].entry(key.clone()).or_default();
            let gone = change.is_none();
            versions.push((self.commit, change));
            if versions.len() > 1 || gone {
                self.garbage.push_back((self.commit, keyspace, key));
            }
        }
        self.collect();
    }

    /// Crashes: the newest synced commit becomes the current state. Returns how many commits that undoes.
    fn discard_unsynced(&mut self) -> u64 {
        let (synced, record) = self.synced;
        let undone = self.commit - synced;
        let size = |key: &Bytes, change: &Change| (key.len() + change.as_ref().map_or(0, Bytes::len)) as u64;
        for map in &mut self.maps {
            map.retain(|key, versions| {
                for (_, change) in versions.extract_if(.., |(commit, _)| *commit > synced) {
                    self.bytes -= size(key, &change);
                }
                !versions.is_empty()
            });
        }
        self.record = record;
        // Commit numbers are not reused: a snapshot from before the crash may still be open.
        self.commit += 1;
        self.synced = (self.commit, record);
        undone
    }

    /// Drops the versions that no snapshot, open or future, can see, and no crash can bring back.
    fn collect(&mut self) {
        let oldest = self.snapshots.keys().next().copied().unwrap_or(self.commit).min(self.synced.0);
        while let Some((_, keyspace, key)) = self.garbage.pop_front_if(|(commit, ..)| *commit <= oldest) {
            let map = &mut self.maps[keyspace.number()];
            let Some(versions) = map.get_mut(&key) else { continue };
            let kept = versions.iter().rposition(|(commit, _)| *commit <= oldest).unwrap_or(0);
            let size = |change: &Change| key.len() + change.as_ref().map_or(0, Bytes::len);
            self.bytes -= versions.drain(..kept).map(|(_, change)| size(&change) as u64).sum::<u64>();
            if let [(commit, None)] = versions.as_slice()
                && *commit <= oldest
            {
                map.remove(&key);
                self.bytes -= key.len() as u64;
            }
        }
    }
}

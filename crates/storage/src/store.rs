//! The interface of a store.

use crate::{Backup, ClockStatus, FreeSpace, Job, Keyspace, Lanes, Result, Snapshot, Time, WriterLoad};
use std::sync::Arc;

/// Ordered bytes with atomic, durable commits and a clock that never goes back.
///
/// An acknowledged job survives a crash, unless it [asks for less](Job::durability); any other job happened completely
/// or not at all. Reads never wait for writes. No method may be called from inside a job.
pub trait Store: Send + Sync {
    /// Returns a snapshot of the store, which includes everything acknowledged before this call.
    fn snapshot(&self) -> Result<Arc<dyn Snapshot>>;

    /// Returns a sequence, a snapshot and a time that belong together: everything in the snapshot was written by that
    /// time, and everything written later has no earlier time. So the time never shows an item as expired that a write
    /// visible in the snapshot keeps living (T13).
    fn snapshot_now(&self) -> Result<(u64, Arc<dyn Snapshot>, Time)> {
        loop {
            let (commits, sequence) = (self.commits(), self.last_sequence());
            let (snapshot, now) = (self.snapshot()?, self.now()?);
            // Time stands still while a commit is pending; one that came between the two calls is in neither.
            if self.commits() == commits {
                return Ok((sequence, snapshot, now));
            }
        }
    }

    /// Submits a job. Jobs run one after another, those of one [priority](Job::priority) in the order of submission.
    /// Blocks only while the queue of waiting jobs is full.
    fn submit(&self, lanes: Lanes, job: Box<dyn Job>);

    /// Returns the sequence of the newest commit.
    fn last_sequence(&self) -> u64;

    /// Returns the number of commits in a snapshot taken now.
    fn commits(&self) -> u64;

    /// Returns the time now. It never goes back, not even over a crash (T13). Rarely waits for one commit.
    fn now(&self) -> Result<Time> {
        Ok(self.clock_status()?.now)
    }

    /// Returns the status of the clock.
    fn clock_status(&self) -> Result<ClockStatus>;

    /// Accepts the wall clock by decision of the operator: the clock is no longer suspect (T34). If the wall clock has
    /// come back from a leap found at start, the leap counts as wrong, and the time falls back to the trusted time. Has
    /// no effect if the clock is not suspect.
    fn accept_clock(&self) -> Result<ClockStatus>;

    /// Rejects the leap by decision of the operator (T34). After a leap found at start the time falls back to the
    /// trusted time; nothing else makes it fall back. Has no effect if the clock is not suspect.
    fn reject_clock(&self) -> Result<ClockStatus>;

    /// Advances the test clock (T29); durable when it returns.
    fn advance_clock(&self, seconds: u64) -> Result<Time>;

    /// Returns statistics for operators.
    fn stats(&self) -> Stats;

    /// Returns the number of snapshots taken and jobs run since the store was opened. Background work that yields to
    /// users polls it.
    fn operations(&self) -> u64;

    /// Returns the load of the writer. A store without a writer thread is never busy.
    fn writer_load(&self) -> WriterLoad {
        WriterLoad::default()
    }

    /// Removes entries deleted from these keyspaces before this call from the files for good (T24). It takes long,
    /// writes much and may be called from any thread; reads and writes continue meanwhile.
    fn scrub(&self, keyspaces: &[Keyspace]) -> Result<Scrubbed>;

    /// Returns a backup of the store, which includes everything acknowledged before this call. It holds disk space back
    /// while it is open, as a snapshot does.
    fn backup(&self) -> Result<Backup>;

    /// Finishes waiting jobs, stores the exact time, flushes and releases the data. May be called again.
    fn close(&self) -> Result<()>;
}

/// Statistics of a running store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Bytes on disk, journal included; of a memory store the bytes of keys and values.
    pub disk_bytes: u64,
    /// Bytes of the journal on disk.
    pub journal_bytes: u64,
    /// Commits since the store was opened; one commit serves many jobs.
    pub commits: u64,
    /// Jobs run since the store was opened.
    pub jobs: u64,
    /// Whether writes have stopped after a failure.
    pub poisoned: bool,
    /// Whether compactions fail at present; they are retried until one succeeds.
    pub compaction_fails: bool,
    /// Whether they have failed for so long that no job is accepted until one succeeds.
    pub compaction_stops_jobs: bool,
    /// The free space on the disk; `None` if there is no disk, or the system does not report it.
    pub free_space: Option<FreeSpace>,
    /// The work that writes have left for later.
    pub deferred: DeferredWork,
}

/// The flushes and merges that wait or run; a memory store has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeferredWork {
    /// Bytes of all memtables: written, and in no table yet.
    pub memtable_bytes: u64,
    /// Full memtables that wait to be flushed to tables.
    pub sealed_memtables: usize,
    /// Keyspaces whose first level has enough tables to be merged, and the merge that is running. A merge that waits
    /// begins after the next commit.
    pub pending_merges: usize,
}

impl Stats {
    /// Returns whether the store accepts all writes of users.
    pub fn is_writable(&self) -> bool {
        !self.poisoned && !self.compaction_stops_jobs && !self.free_space.is_some_and(FreeSpace::is_low)
    }
}

/// The outcome of a scrub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scrubbed {
    /// No file holds any of the removed bytes.
    Done,
    /// An open snapshot from before may still read them, so files had to stay: the scrub must be repeated.
    Held,
}

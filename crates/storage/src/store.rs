//! The door: what a store can do.

use crate::{Backup, ClockStatus, Job, Keyspace, Lanes, Result, Room, Snapshot, Time, WriterLoad};
use std::sync::Arc;

/// Ordered bytes with atomic, durable commits and a clock that never goes back.
///
/// A job that was answered with `Ok` survives a crash, unless it [asks for less](Job::extent); one that was not either
/// happened whole or not at all.
/// Reads never wait for writes. No method may be called from inside a job.
pub trait Store: Send + Sync {
    /// The store as it is now: everything answered before this call is in it.
    fn snapshot(&self) -> Result<Arc<dyn Snapshot>>;

    /// A state, its sequence, and a time for which it holds: whatever is in it was written by then, and whatever is written
    /// afterwards is not of an earlier time. So nobody finds by the one that an item is dead which the other keeps alive (T13).
    fn snapshot_now(&self) -> Result<(u64, Arc<dyn Snapshot>, Time)> {
        loop {
            let (commits, sequence) = (self.commits(), self.last_sequence());
            let (snapshot, now) = (self.snapshot()?, self.now()?);
            // The time stands still while a commit is on its way; one that came between the two is in neither.
            if self.commits() == commits {
                return Ok((sequence, snapshot, now));
            }
        }
    }

    /// Hands over a job. Jobs run one after another, those of one [priority](Job::priority) in the order of submission.
    /// Blocks only while the queue of waiting jobs is full.
    fn submit(&self, lanes: Lanes, job: Box<dyn Job>);

    /// The sequence of the newest commit.
    fn last_sequence(&self) -> u64;

    /// How many commits are in a snapshot that is taken now.
    fn commits(&self) -> u64;

    /// The time now. It never goes back, not even over a crash (T13). Rarely waits for one commit.
    fn now(&self) -> Result<Time> {
        Ok(self.clock_status()?.now)
    }

    /// The state of the clock.
    fn clock_status(&self) -> Result<ClockStatus>;

    /// An operator takes the wall clock's word: the clock is no longer suspect (T34). If the wall clock has come back from a
    /// leap found at start, its word is that the leap was wrong, and the time falls back to the trusted time. Nothing happens
    /// if the clock is not suspect.
    fn accept_clock(&self) -> Result<ClockStatus>;

    /// An operator rejects the leap (T34). After a leap found at start the time falls back to the trusted time:
    /// only a decision of the operator makes it do so. Nothing happens if the clock is not suspect.
    fn reject_clock(&self) -> Result<ClockStatus>;

    /// Moves the test clock forward (T29); durable when it returns.
    fn advance_clock(&self, seconds: u64) -> Result<Time>;

    /// Figures for operators.
    fn stats(&self) -> Stats;

    /// How many snapshots were taken and jobs run since the store was opened. Who makes way for users looks at it often.
    fn operations(&self) -> u64;

    /// How busy the writer is. A store without a writer thread is never busy.
    fn writer_load(&self) -> WriterLoad {
        WriterLoad::default()
    }

    /// Gets what was removed from these keyspaces before this call out of the files for good (T24). It takes long, writes much
    /// and may be called from any thread; reading and writing go on meanwhile.
    fn scrub(&self, keyspaces: &[Keyspace]) -> Result<Scrubbed>;

    /// The store as it is now, to be kept elsewhere: everything answered before this call is in it. It holds space back while
    /// it lives, as a snapshot does.
    fn backup(&self) -> Result<Backup>;

    /// Finishes waiting jobs, stores the exact time, flushes and lets go of the data. May be called again.
    fn close(&self) -> Result<()>;
}

/// Figures of a running store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Bytes on disk, journal included; of a memory store the bytes of keys and values.
    pub disk_bytes: u64,
    /// Bytes of the journal on disk.
    pub journal_bytes: u64,
    /// Commits since the store was opened; one serves many jobs.
    pub commits: u64,
    /// Jobs run since the store was opened.
    pub jobs: u64,
    /// Whether writes have stopped after a failure.
    pub poisoned: bool,
    /// Whether tables cannot be merged now; that is tried again until it succeeds.
    pub merging_fails: bool,
    /// What is left on the disk; none if there is no disk, or the system does not tell.
    pub room: Option<Room>,
}

impl Stats {
    /// Whether everything is written that users ask for.
    pub fn is_writable(&self) -> bool {
        !self.poisoned && !self.room.is_some_and(Room::is_short)
    }
}

/// What a scrub came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scrubbed {
    /// No file has any of it.
    Done,
    /// Somebody who began to read before may still see it, so files had to stay: it must be done again.
    Held,
}

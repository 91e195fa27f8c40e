//! Jobs, the units of work that a store runs: each has a verdict, a priority and a durability.

use crate::{Result, Transaction};

/// Whether a job's writes are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Commit them.
    Commit,
    /// Discard them, and the sequences taken.
    Abort,
}

/// What an acknowledged commit survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Power loss: the group is synced to disk, with everything written before it, before it is acknowledged.
    Sync,
    /// The end of this process, but not a crash of the operating system. A buffered commit becomes durable with the next synced
    /// one, and always before anything committed after it.
    Buffered,
}

/// When a job runs, relative to others that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// In the order of submission.
    Normal,
    /// When no other work waits, so that it uses the writer's idle time. On a busy writer it runs after a few groups of
    /// others, in a group of its own, so that no other job waits for its commit.
    Background,
}

/// A unit of work that runs while its lanes are held. It must not call the store it runs in.
pub trait Job: Send {
    /// Reads and writes. A panic counts as [`Verdict::Abort`] and fails this job alone.
    fn run(&mut self, transaction: &mut Transaction<'_>) -> Verdict;

    /// Reports the outcome, once, when the job's group is durable or has failed; also after an abort, since the job may
    /// have read what an earlier job of its group wrote, which was not durable yet.
    fn done(self: Box<Self>, outcome: Result<()>);

    /// Returns the least durability of its group. A job may ask for less only if later work repeats what a crash undoes.
    fn durability(&self) -> Durability {
        Durability::Sync
    }

    /// Returns when the job runs, relative to others that wait.
    fn priority(&self) -> Priority {
        Priority::Normal
    }
}

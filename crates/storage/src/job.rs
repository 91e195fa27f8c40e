//! What a store runs: work with a verdict, a priority, and how far its commit must get.

use crate::{Result, Transaction};

/// Whether a job's writes are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Commit them.
    Commit,
    /// Forget them, and the sequences taken.
    Abort,
}

/// How far a commit must get before it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Onto the disk, with all that was written before.
    Synced,
    /// Out of our hands: a crash of the system may undo it, of the process not. It becomes durable with the next commit that is
    /// synced, always before what comes later.
    Written,
}

/// When a job runs, among others that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// In the order of submission.
    Normal,
    /// When no other work waits, so that it uses the writer's idle moments. On a writer that has none it runs after a few
    /// groups, as the last job of one, so that it shares that group's sync.
    Background,
}

/// Work that runs while its lanes are held. It must not call the store it runs in.
pub trait Job: Send {
    /// Reads and writes. A panic counts as [`Verdict::Abort`] and fails this job alone.
    fn run(&mut self, transaction: &mut Transaction<'_>) -> Verdict;

    /// Called once, when the job's group is durable or has failed; also after an abort, since what the
    /// job read may have been written by a neighbour that was not durable yet.
    fn done(self: Box<Self>, outcome: Result<()>);

    /// How far its group must get at least. What need not be synced is found again and done again if a crash undoes it.
    fn extent(&self) -> Extent {
        Extent::Synced
    }

    /// When it runs, among others that wait.
    fn priority(&self) -> Priority {
        Priority::Normal
    }
}

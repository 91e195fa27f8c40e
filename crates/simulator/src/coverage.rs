//! Proof that the seeds go where the bugs would be: a counter for each situation that a run must have reached.
//!
//! A simulator that never meets a deadline passes every test. So a run over many seeds fails if one of these
//! situations did not occur at all.

/// A situation worth reaching.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// `defaultTtl` changed three times or more in one second.
    PolicyToggledWithinASecond,
    /// A policy was raised or removed while dead items still lay in the store (T13).
    PolicyChangedOverUnpurgedDead,
    /// `defaultTtl` that T4 refuses.
    BadDefaultTtl,
    /// An item `ttl` that T5 refuses, alone.
    BadItemTtl,
    /// The same inside a batch.
    BadItemTtlInBatch,
    /// A write to an item in the very second in which it dies.
    WriteAtTheDeadlinesSecond,
    /// A write to an item in the last second of its life.
    WriteInTheLastSecond,
    /// A write prepared while its item lived and run when it was dead.
    WriteBegunBeforeRunAfter,
    /// A query page asked for after something in it had died.
    PageAfterADeath,
    /// An id used again while its dead holder still lay in the store.
    RecreateOverUnpurged,
    /// The same while the purge had removed some of the dead and not all.
    RecreateDuringPurge,
    /// A unique value taken from a dead item.
    UniqueTakenOverFromDead,
    /// An operation that names a dead item by its number.
    NumberOfADeadItem,
    /// A logical partition deleted that held living and dead items.
    PartitionDeletedOverDead,
    /// A container deleted and made again.
    ContainerRecreated,
    /// A handle used after its container was deleted.
    HandleOfADeletedContainer,
    /// A batch that did nothing.
    BatchRefused,
    /// The system clock set forward by more than a day's work of drift.
    ClockForward,
    /// The system clock set back.
    ClockBackward,
    /// The test clock moved by a command.
    TestClockAdvanced,
    /// A leap while running made the clock suspect.
    SuspectWhileRunning,
    /// A leap found at start made the clock suspect.
    SuspectAtStart,
    /// A write refused because only a suspect time calls its predecessor dead.
    RefusedWhileSuspect,
    /// An operator accepted a suspect time.
    ClockAccepted,
    /// An operator rejected a suspect time.
    ClockRejected,
    /// A purge step that removed something.
    Purged,
    /// A purge step that had nothing to do.
    PurgeIdle,
    /// A purge driven until nothing was left, and the raw store looked at.
    Drained,
    /// A crash while something dead was not yet purged.
    CrashBetweenDeathAndPurge,
    /// A crash inside a purge step.
    CrashInsidePurge,
    /// A crash that lost an unacknowledged commit.
    CrashLostCommit,
    /// A crash that kept an unacknowledged commit.
    CrashKeptCommit,
    /// A commit that failed, and what was read and refused afterwards.
    CommitFailed,
    /// A write while an index was being built.
    WriteDuringIndexBuild,
    /// A crash inside a step of an index build.
    CrashInsideIndexBuild,
    /// A restart of a container with TTL off.
    RestartTtlOff,
    /// A restart of a container with `defaultTtl` -1.
    RestartTtlNever,
    /// A restart of a container with `defaultTtl` n.
    RestartTtlSeconds,
    /// A restart with dead items not yet purged.
    RestartWithDead,
    /// A restart with some of the dead purged and some not.
    RestartHalfPurged,
    /// A restart with a suspect clock.
    RestartSuspect,
    /// A restart after an orderly close.
    RestartClean,
}

const ALL: [Reach; 42] = [
    Reach::PolicyToggledWithinASecond,
    Reach::PolicyChangedOverUnpurgedDead,
    Reach::BadDefaultTtl,
    Reach::BadItemTtl,
    Reach::BadItemTtlInBatch,
    Reach::WriteAtTheDeadlinesSecond,
    Reach::WriteInTheLastSecond,
    Reach::WriteBegunBeforeRunAfter,
    Reach::PageAfterADeath,
    Reach::RecreateOverUnpurged,
    Reach::RecreateDuringPurge,
    Reach::UniqueTakenOverFromDead,
    Reach::NumberOfADeadItem,
    Reach::PartitionDeletedOverDead,
    Reach::ContainerRecreated,
    Reach::HandleOfADeletedContainer,
    Reach::BatchRefused,
    Reach::ClockForward,
    Reach::ClockBackward,
    Reach::TestClockAdvanced,
    Reach::SuspectWhileRunning,
    Reach::SuspectAtStart,
    Reach::RefusedWhileSuspect,
    Reach::ClockAccepted,
    Reach::ClockRejected,
    Reach::Purged,
    Reach::PurgeIdle,
    Reach::Drained,
    Reach::CrashBetweenDeathAndPurge,
    Reach::CrashInsidePurge,
    Reach::CrashLostCommit,
    Reach::CrashKeptCommit,
    Reach::CommitFailed,
    Reach::WriteDuringIndexBuild,
    Reach::CrashInsideIndexBuild,
    Reach::RestartTtlOff,
    Reach::RestartTtlNever,
    Reach::RestartTtlSeconds,
    Reach::RestartWithDead,
    Reach::RestartHalfPurged,
    Reach::RestartSuspect,
    Reach::RestartClean,
];

/// How often each situation occurred.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coverage([u64; ALL.len()]);

impl Default for Coverage {
    fn default() -> Coverage {
        Coverage([0; ALL.len()])
    }
}

impl Coverage {
    /// Counts one occurrence.
    pub fn reach(&mut self, reach: Reach) {
        self.0[reach as usize] += 1;
    }

    /// Counts one occurrence if it is one.
    pub fn reach_if(&mut self, condition: bool, reach: Reach) {
        if condition {
            self.reach(reach);
        }
    }

    /// Adds another run's counts.
    pub fn add(&mut self, other: &Coverage) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }

    /// The situations that never occurred.
    pub fn missing(&self) -> Vec<Reach> {
        ALL.into_iter().filter(|reach| self.0[*reach as usize] == 0).collect()
    }

    /// Every situation with its count.
    pub fn counts(&self) -> impl Iterator<Item = (Reach, u64)> + '_ {
        ALL.into_iter().map(|reach| (reach, self.0[reach as usize]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_situation_has_its_own_counter() {
        for (index, reach) in ALL.into_iter().enumerate() {
            assert_eq!(reach as usize, index, "{reach:?}");
        }
    }

    #[test]
    fn a_counter_at_zero_is_missing() {
        let mut coverage = Coverage::default();
        coverage.reach(Reach::Purged);
        assert!(!coverage.missing().contains(&Reach::Purged));
        assert_eq!(coverage.missing().len(), ALL.len() - 1);
    }
}

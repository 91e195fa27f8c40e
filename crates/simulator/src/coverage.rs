//! Coverage: a counter for each situation that a run must reach.
//!
//! A simulator that never reaches a deadline passes every test. So a run over many seeds fails if one of these
//! situations did not occur at all.

/// Lists every situation once: the enum, and all of it.
macro_rules! situations {
    ($($(#[$documentation:meta])+ $name:ident,)+) => {
        /// A situation that a run must reach.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum CoveragePoint {
            $($(#[$documentation])+ $name,)+
        }

        const ALL: &[CoveragePoint] = &[$(CoveragePoint::$name,)+];
    };
}

situations! {
    /// `defaultTtl` changed three times or more in one second.
    PolicyToggledWithinASecond,
    /// A policy was raised or removed while expired items still lay in the store (T13).
    PolicyChangedOverUnpurged,
    /// `defaultTtl` that T4 refuses.
    BadDefaultTtl,
    /// An item `ttl` that T5 refuses, alone.
    BadItemTtl,
    /// The same inside a batch.
    BadItemTtlInBatch,
    /// A write to an item in the very second in which it expires.
    WriteAtTheDeadlinesSecond,
    /// A write to an item in the last second before its expiry.
    WriteInTheLastSecond,
    /// A write prepared while its item was live and run when it was expired.
    WriteBegunBeforeRunAfter,
    /// A query page requested after an item in it had expired.
    PageAfterAnExpiry,
    /// An id used again while its expired holder still lay in the store.
    RecreateOverUnpurged,
    /// The same while the purge had removed some of the expired items and not all.
    RecreateDuringPurge,
    /// A unique value taken over from an expired item.
    UniqueTakenOverFromExpired,
    /// An operation that names an expired item by its number.
    NumberOfAnExpiredItem,
    /// A logical partition deleted that held live and expired items.
    PartitionDeletedOverExpired,
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
    /// A wall clock too far behind made the clock suspect.
    SuspectBehind,
    /// The system clock was put right while time was ahead of it.
    ClockSlewed,
    /// A leap found at start made the clock suspect.
    SuspectAtStart,
    /// A write refused because only a suspect time calls its predecessor expired.
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
    /// A crash while something expired was not yet purged.
    CrashBetweenExpiryAndPurge,
    /// A crash inside a purge step.
    CrashInsidePurge,
    /// A crash that lost an unacknowledged commit.
    CrashLostCommit,
    /// A crash that kept an unacknowledged commit.
    CrashKeptCommit,
    /// A crash that undid what the purge had removed.
    CrashUndidAPurge,
    /// A commit that failed, and what was read and refused afterwards.
    CommitFailed,
    /// A restart after a failed commit whose record, and write, may be there all the same.
    FailedCommitKept,
    /// The machine was restarted.
    Rebooted,
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
    /// A restart with expired items not yet purged.
    RestartWithExpired,
    /// A restart with some of the expired items purged and some not.
    RestartHalfPurged,
    /// A restart with a suspect clock.
    RestartSuspect,
    /// A restart after an orderly close.
    RestartClean,
    /// A reader of the feed of all versions received an expiry.
    ExpiryTold,
    /// It received a part, and continued.
    HistoryInPages,
    /// It continued after a crash.
    HistoryOverACrash,
    /// It was too late.
    HistoryGone,
    /// All that the retention keeps was read.
    HistoryWithinRetention,
    /// A feed of all versions was turned off.
    FeedTurnedOff,
    /// One was begun while expired items of before still lay in the store.
    FeedTurnedOnOverUnpurged,
    /// An item was held.
    ItemHeld,
    /// A container with live items was held.
    ContainerHeld,
    /// A container was held while expired items of before lay in the store.
    HoldOverUnpurgedItems,
    /// One was created in a held container whose predecessor, expired before the hold, may still have lain there.
    RecreateUnderHold,
    /// `defaultTtl` was changed while something was held.
    PolicyChangedUnderHold,
    /// A restart while something was held whose deadline had passed.
    RestartHeldPastDeadline,
    /// The end of a hold expired an item.
    LiftExpires,
    /// The end of a hold did not expire an item.
    LiftKeeps,
    /// Something was refused because of a hold.
    RefusedByHold,
    /// The purge was driven to its end while a container was held.
    DrainedUnderHold,
    /// Something was refused because too many would have expired.
    RefusedByGuard,
    /// A dry run found an item that would expire.
    DryRunExpires,
    /// A forecast had an expiry within its intervals.
    ExpiryForecast,
    /// A purge that was paused although there was something to do.
    PurgePaused,
    /// A purge on demand removed something.
    PurgedOnDemand,
    /// An expired item has a line in the archive.
    Archived,
    /// An expired item has an entry in the deletion record.
    Recorded,
    /// A purge that a full archive blocks.
    ArchiveFull,
    /// A read kept an item live past the time in its header.
    OutlivesItsHeader,
    /// An item that a read had kept live has expired.
    SlidItemExpired,
    /// A write let a countdown go on.
    CountdownKept,
    /// A read restarted one.
    CountdownRestarted,
    /// An operation met an item whose countdown does not begin at its last write.
    CountedFromElsewhere,
    /// An operation met an item that names its expiry.
    ExpiryNamed,
    /// A request was refused for its rate.
    Throttled,
    /// It was retried after the time in its refusal.
    WaitedAsTold,
    /// A purge for which users had left nothing.
    PurgeWithoutUnits,
    /// A purge that users had left something for, and not enough.
    PurgeOnLeftOvers,
    /// A purge that a retention promise made urgent, although users had left nothing.
    PurgeUrgent,
    /// A retention promise was broken, and reported.
    PromiseBroken,
    /// A process ended, and its budget was forgotten.
    BudgetForgotten,
    /// A document was written that had already expired by a date in it.
    WrittenExpired,
    /// A document was written under several date rules.
    SeveralDateRules,
    /// A date rule expired documents as it came into force.
    NewRuleExpires,
    /// A changed one did.
    ChangedRuleExpires,
    /// A date rule was changed while the expired items still lay in the collection.
    RuleChangedOverExpired,
    /// One was dropped.
    RuleDroppedOverExpired,
    /// A write while the index of a rule was being built.
    WriteDuringRuleBuild,
    /// An update that changes nothing, which is no write.
    UpdateThatChangesNothing,
    /// A document was purged.
    DocumentsPurged,
    /// A crash among requests to collections.
    CrashAmongDocuments,
    /// A hold refused something there.
    DocumentRefusedByHold,
    /// The end of a hold expired a document.
    DocumentLiftExpires,
    /// A collection got another name.
    CollectionRenamed,
    /// A collection was dropped.
    CollectionDropped,
    /// A watch returned an expiry.
    DocumentExpiryTold,
    /// A watch was read page by page.
    WatchInPages,
    /// Too many documents would have expired.
    DocumentRefusedByGuard,
    /// A document that expired has a line in the archive.
    DocumentArchived,
    /// One that expired has an entry in the deletion record.
    DocumentRecorded,
    /// A purge of documents that an archive without room holds up.
    DocumentArchiveFull,
}

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
    pub fn reach(&mut self, reach: CoveragePoint) {
        self.0[reach as usize] += 1;
    }

    /// Counts one occurrence if it is one.
    pub fn reach_if(&mut self, condition: bool, reach: CoveragePoint) {
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

    /// Returns the situations that never occurred.
    pub fn missing(&self) -> Vec<CoveragePoint> {
        ALL.iter().copied().filter(|reach| self.0[*reach as usize] == 0).collect()
    }

    /// Returns every situation with its count.
    pub fn counts(&self) -> impl Iterator<Item = (CoveragePoint, u64)> + '_ {
        ALL.iter().map(|reach| (*reach, self.0[*reach as usize]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_situation_has_its_own_counter() {
        for (index, reach) in ALL.iter().enumerate() {
            assert_eq!(*reach as usize, index, "{reach:?}");
        }
    }

    #[test]
    fn a_counter_at_zero_is_missing() {
        let mut coverage = Coverage::default();
        coverage.reach(CoveragePoint::Purged);
        assert!(!coverage.missing().contains(&CoveragePoint::Purged));
        assert_eq!(coverage.missing().len(), ALL.len() - 1);
    }
}

//! The state of one partition's archive (T32): the batch whose items wait for their removal, and the last failure.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use document::{ItemNumber, Sequence};
use parking_lot::{Mutex, MutexGuard};
use storage::Time;

use crate::entries::counters::Tally;
use crate::expiry::ArchiveDirectory;

/// How long the purge of a partition waits after the first failure, and at most; each further failure doubles the
/// wait.
const RETRY_MIN_MS: u64 = 1000;
const RETRY_MAX_MS: u64 = 60_000;

/// How long a drop may take after it last looked for expired items. Items that expire within that time are dropped
/// unarchived.
const DROP_MS: u64 = 1000;

/// Why lines could not be made durable, as text for the operator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ArchiveError(pub String);

/// Expired items whose lines are in the archive.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) directory: ArchiveDirectory,
    pub(crate) contents: Contents,
    /// How many of them sweeps have removed.
    removed: AtomicU64,
}

/// The expired items of a batch.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// Items in queues, with their versions.
    pub(crate) items: BTreeMap<ItemNumber, Sequence>,
    /// The keys of items that writes have moved aside.
    pub(crate) aside: Vec<Vec<u8>>,
    /// Items in queues that cannot be archived because they are damaged, and why: the sweep sets them aside.
    pub(crate) damaged: BTreeMap<ItemNumber, String>,
    /// The same for items that writes have moved aside.
    pub(crate) damaged_aside: BTreeMap<ItemNumber, String>,
}

impl Contents {
    /// Returns how many of them have a line.
    pub(crate) fn lines(&self) -> u64 {
        (self.items.len() + self.aside.len()) as u64
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len() + self.aside.len() + self.damaged.len() + self.damaged_aside.len()
    }
}

impl Batch {
    pub(crate) fn new(directory: ArchiveDirectory, contents: Contents) -> Batch {
        Batch { directory, contents, removed: AtomicU64::new(0) }
    }

    /// Notes that a sweep has removed `items` items of the batch. Returns `true` if no later sweep will find anything
    /// of it.
    pub(crate) fn is_spent_by(&self, items: u64) -> bool {
        let removed = self.removed.fetch_add(items, Ordering::Relaxed) + items;
        // Writes remove some items too, so the batch may be empty although sweeps did not remove all of it.
        items == 0 || removed >= self.contents.lines()
    }
}

/// Why an archive cannot be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveFailure {
    /// The error of the last attempt.
    pub error: String,
    /// When the first attempt failed.
    pub since: Time,
    /// When the next attempt is made.
    pub retry_at: Time,
    /// How many attempts have failed.
    pub tries: u32,
}

/// The state of one partition's archive.
#[derive(Debug, Default)]
pub(crate) struct ArchiveState {
    pub(crate) known: Mutex<Known>,
    /// Held while a batch is written, by the purge, by an operator's retry, or by a drop. Without it each of them
    /// would write its own lines for the same items.
    turn: Mutex<()>,
}

#[derive(Debug, Default)]
pub(crate) struct Known {
    pub(crate) batch: Option<Arc<Batch>>,
    pub(crate) failure: Option<ArchiveFailure>,
    /// The directory where the last attempt failed: another directory need not wait.
    pub(crate) failing: Option<ArchiveDirectory>,
    pub(crate) archived: Tally,
    pub(crate) failures: u64,
    /// All items that had expired by then are removed, as a drop has verified.
    pub(crate) settled: Option<Time>,
}

impl ArchiveState {
    /// Waits until no other thread writes a batch.
    pub(crate) fn take_turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock()
    }

    /// Returns the batch whose items are not all removed yet.
    pub(crate) fn batch(&self, directory: &ArchiveDirectory) -> Option<Arc<Batch>> {
        self.known.lock().batch.clone().filter(|batch| batch.directory == *directory)
    }

    /// Returns whether it is certain that an item's line is in the archive.
    pub(crate) fn has(&self, directory: &ArchiveDirectory, number: ItemNumber, version: Sequence) -> bool {
        self.batch(directory).is_some_and(|batch| batch.contents.items.get(&number) == Some(&version))
    }

    /// Notes that a sweep has removed items of a batch.
    pub(crate) fn swept(&self, of: &Arc<Batch>, items: u64) {
        let mut known = self.known.lock();
        if of.is_spent_by(items) && known.batch.as_ref().is_some_and(|batch| Arc::ptr_eq(batch, of)) {
            known.batch = None;
        }
    }

    /// Notes that a batch was written. Returns `true` if that ends a series of failures.
    pub(crate) fn written(&self, batch: &Arc<Batch>, lines: Tally) -> bool {
        let mut known = self.known.lock();
        known.batch = Some(Arc::clone(batch));
        known.archived = known.archived.plus(lines);
        known.failure.take().is_some()
    }

    /// Notes that a batch could not be written. Returns whether this is the first failure, and when to try again.
    pub(crate) fn failed(
        &self,
        directory: &ArchiveDirectory,
        error: &ArchiveError,
        now: Time,
    ) -> (bool, Time) {
        let mut known = self.known.lock();
        known.failing = Some(directory.clone());
        known.failures += 1;
        let before = known.failure.take();
        let is_first = before.is_none();
        let tries = before.as_ref().map_or(1, |failure| failure.tries.saturating_add(1));
        let pause = RETRY_MIN_MS.saturating_mul(1 << (tries - 1).min(16)).min(RETRY_MAX_MS);
        let retry_at = now.plus_millis(pause);
        let since = before.map_or(now, |failure| failure.since);
        known.failure = Some(ArchiveFailure { error: error.to_string(), since, retry_at, tries });
        (is_first, retry_at)
    }

    /// Returns when to try again, if the last attempt in that directory failed and the time has not come.
    pub(crate) fn waits_until(&self, directory: &ArchiveDirectory, now: Time) -> Option<Time> {
        let known = self.known.lock();
        let failure = known.failure.as_ref().filter(|_| known.failing.as_ref() == Some(directory));
        failure.map(|failure| failure.retry_at).filter(|retry_at| *retry_at > now)
    }

    /// Returns whether the last attempt failed.
    pub(crate) fn is_failing(&self) -> bool {
        self.known.lock().failure.is_some()
    }

    /// Notes that a drop has seen all items removed that had expired by then.
    pub(crate) fn settled(&self, by: Time) {
        self.known.lock().settled = Some(by);
    }

    /// Returns the time until which an expired item must be archived if a drop happens now.
    pub(crate) fn owed_until(&self, now: Time) -> Time {
        let settled = self.known.lock().settled;
        settled.map(|at| at.min(now)).filter(|at| now.millis_since(*at) <= DROP_MS).unwrap_or(now)
    }

    /// Makes the next attempt due now, on an operator's request. Returns `false` if no attempt has failed.
    pub(crate) fn hurry(&self, now: Time) -> bool {
        let mut known = self.known.lock();
        known.failure.as_mut().is_some_and(|failure| {
            failure.retry_at = now;
            true
        })
    }

    /// Forgets everything: the owner has turned the archive off.
    pub(crate) fn forget(&self) {
        let mut known = self.known.lock();
        (known.batch, known.failure) = (None, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t32_what_expires_during_a_drop_goes_with_it_and_no_other_item_does() {
        let (state, at) = (ArchiveState::default(), |millis: u64| Time::from_millis(100_000 + millis));
        assert_eq!(state.owed_until(at(0)), at(0), "not yet checked");
        state.settled(at(0));
        for (now, until) in [(0, 0), (1, 0), (1000, 0), (1001, 1001), (5000, 5000)] {
            assert_eq!(state.owed_until(at(now)), at(until));
        }
        let earlier = Time::from_millis(99_000);
        assert_eq!(state.owed_until(earlier), earlier, "a time that is not trusted any more");
    }

    #[test]
    fn t32_the_wait_doubles_up_to_a_minute_and_ends_with_a_success() {
        let (state, start) = (ArchiveState::default(), Time::from_seconds(100));
        let directory = |name| ArchiveDirectory::parse(name).expect("a good name");
        let error = ArchiveError("no room".into());
        for (tries, seconds) in [(1, 1), (2, 2), (3, 4), (4, 8), (5, 16), (6, 32), (7, 60), (8, 60)] {
            let outcome = state.failed(&directory("cold"), &error, start);
            assert_eq!(outcome, (tries == 1, start.plus_millis(seconds * 1000)));
        }
        assert_eq!(state.waits_until(&directory("cold"), start), Some(start.plus_millis(60_000)));
        assert_eq!(state.waits_until(&directory("cold"), start.plus_millis(60_000)), None);
        assert_eq!(state.waits_until(&directory("warm"), start), None, "nothing has failed there");
        let batch = Arc::new(Batch::new(directory("cold"), Contents::default()));
        assert!(state.written(&batch, Tally::default()));
        assert!(!state.written(&batch, Tally::default()), "there was no failure since");
        assert_eq!(state.waits_until(&directory("cold"), start), None);
    }
}

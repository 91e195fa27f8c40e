//! What is known in memory of a partition's archive: what was written and not removed yet, whether it can be written, and what
//! an operator is told of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use document::{ItemNumber, Sequence};
use parking_lot::{Mutex, MutexGuard};
use storage::Time;

use super::{ArchiveDirectory, ArchiveError, unarchived};
use crate::Engine;
use crate::counters::Tally;
use crate::error::Result;
use crate::gate::View;
use crate::holder::Holder;

/// How long the purge of a partition waits after the first failure, and at most; each further one doubles it.
const RETRY_MIN_MS: u64 = 1000;
const RETRY_MAX_MS: u64 = 60_000;

/// How long a drop may take from its last look at the dead on: who dies meanwhile goes with it.
const DROP_MS: u64 = 1000;

/// News that nobody has asked for; older ones are dropped.
const NEWS_MAX: usize = 1000;

/// Dead items whose lines are in the archive.
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
    /// Those in queues, with their versions.
    pub(crate) items: BTreeMap<ItemNumber, Sequence>,
    /// The keys of those that writes have moved aside.
    pub(crate) aside: Vec<Vec<u8>>,
    /// Those in queues that no line could be made of, and why: the sweep sets them aside.
    pub(crate) damaged: BTreeMap<ItemNumber, String>,
    /// The same of those that writes have moved aside.
    pub(crate) damaged_aside: BTreeMap<ItemNumber, String>,
}

impl Contents {
    /// How many of them have a line.
    pub(super) fn lines(&self) -> u64 {
        (self.items.len() + self.aside.len()) as u64
    }

    pub(super) fn len(&self) -> usize {
        self.items.len() + self.aside.len() + self.damaged.len() + self.damaged_aside.len()
    }
}

impl Batch {
    pub(super) fn new(directory: ArchiveDirectory, contents: Contents) -> Batch {
        Batch { directory, contents, removed: AtomicU64::new(0) }
    }

    /// A sweep has removed so many; true if no other will find anything of it.
    fn is_spent_by(&self, items: u64) -> bool {
        let removed = self.removed.fetch_add(items, Ordering::Relaxed) + items;
        // Writes remove some, too, so all may be gone though sweeps have not seen to it.
        items == 0 || removed >= self.contents.lines()
    }
}

/// Why an archive cannot be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveFailure {
    /// What the last try said.
    pub error: String,
    /// When the first try failed.
    pub since: Time,
    /// When the next one is made.
    pub retry_at: Time,
    /// How many have failed.
    pub tries: u32,
}

/// The archive of a container or collection, as an operator sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveStatus {
    /// Where lines go.
    pub directory: ArchiveDirectory,
    /// What was written since the engine was opened: lines, and their bytes.
    pub archived: Tally,
    /// Dead items that writes have moved aside and that wait for their line.
    pub aside: Tally,
    /// Why it cannot be written; none if it can.
    pub failure: Option<ArchiveFailure>,
}

/// All archives together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ArchiveSums {
    /// Lines written since the engine was opened, and their bytes.
    pub archived: Tally,
    /// Tries that have failed since then.
    pub failures: u64,
    /// Containers and collections whose purge waits for their archive.
    pub waiting: u64,
}

/// Something that an operator should read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PurgeNews {
    /// The purge of a container waits from now on.
    Waits {
        /// `database/container`.
        container: String,
        /// Why.
        error: String,
    },
    /// It goes on.
    GoesOn {
        /// `database/container`.
        container: String,
    },
    /// An expired item cannot be removed, and the purge goes on without it.
    SetAside {
        /// `database/container`.
        container: String,
        /// The number of the item, as `bolide check` names it.
        item: u64,
        /// What is wrong with it.
        reason: String,
    },
}

/// What is known of one partition's archive.
#[derive(Debug, Default)]
pub(crate) struct ArchiveState {
    known: Mutex<Known>,
    /// Held by whoever writes a batch: the purge, an operator who hurries it, or a drop. Without it each of them would write
    /// lines of its own.
    turn: Mutex<()>,
}

#[derive(Debug, Default)]
struct Known {
    batch: Option<Arc<Batch>>,
    failure: Option<ArchiveFailure>,
    /// Where the last try has failed: another directory need not wait for that one.
    failing: Option<ArchiveDirectory>,
    archived: Tally,
    failures: u64,
    /// All who had died by then are gone, as a drop has seen.
    settled: Option<Time>,
}

impl ArchiveState {
    /// Waits for whoever writes a batch.
    pub(super) fn take_turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock()
    }

    /// The batch whose items are not all gone yet.
    pub(super) fn batch(&self, directory: &ArchiveDirectory) -> Option<Arc<Batch>> {
        self.known.lock().batch.clone().filter(|batch| batch.directory == *directory)
    }

    /// Whether an item's line is in the archive for sure.
    pub(crate) fn has(&self, directory: &ArchiveDirectory, number: ItemNumber, version: Sequence) -> bool {
        self.batch(directory).is_some_and(|batch| batch.contents.items.get(&number) == Some(&version))
    }

    /// A sweep has removed so many items of a batch.
    pub(crate) fn swept(&self, of: &Arc<Batch>, items: u64) {
        let mut known = self.known.lock();
        if of.is_spent_by(items) && known.batch.as_ref().is_some_and(|batch| Arc::ptr_eq(batch, of)) {
            known.batch = None;
        }
    }

    /// A batch was written; true if that ends a time of failures.
    pub(super) fn written(&self, batch: &Arc<Batch>, lines: Tally) -> bool {
        let mut known = self.known.lock();
        known.batch = Some(Arc::clone(batch));
        known.archived = known.archived.plus(lines);
        known.failure.take().is_some()
    }

    /// A batch could not be written; true if it is the first. Returns when to try again.
    pub(super) fn failed(
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

    /// When to try again, if the last try there has failed and the time has not come.
    pub(super) fn waits_until(&self, directory: &ArchiveDirectory, now: Time) -> Option<Time> {
        let known = self.known.lock();
        let failure = known.failure.as_ref().filter(|_| known.failing.as_ref() == Some(directory));
        failure.map(|failure| failure.retry_at).filter(|retry_at| *retry_at > now)
    }

    /// Whether the last try has failed.
    pub(super) fn is_failing(&self) -> bool {
        self.known.lock().failure.is_some()
    }

    /// A drop has seen that all who had died by then are gone.
    pub(super) fn settled(&self, by: Time) {
        self.known.lock().settled = Some(by);
    }

    /// Who has died by then is owed a line, if a drop is to happen now.
    pub(super) fn owed_until(&self, now: Time) -> Time {
        let settled = self.known.lock().settled;
        settled.map(|at| at.min(now)).filter(|at| now.millis_since(*at) <= DROP_MS).unwrap_or(now)
    }

    /// An operator wants another try now; false if nothing has failed.
    fn hurry(&self, now: Time) -> bool {
        let mut known = self.known.lock();
        known.failure.as_mut().is_some_and(|failure| {
            failure.retry_at = now;
            true
        })
    }

    /// The owner wants no archive any more.
    pub(crate) fn forget(&self) {
        let mut known = self.known.lock();
        (known.batch, known.failure) = (None, None);
    }
}

/// News for the log, until somebody takes them.
#[derive(Debug, Default)]
pub(crate) struct NewsDesk(Mutex<Vec<PurgeNews>>);

impl NewsDesk {
    pub(crate) fn tell(&self, news: PurgeNews) {
        let mut all = self.0.lock();
        if all.len() >= NEWS_MAX {
            all.remove(0);
        }
        all.push(news);
    }
}

impl Engine {
    /// The archive of a container or collection; none if its owner wants none.
    pub fn archive_status(&self, holder: &Holder) -> Result<Option<ArchiveStatus>> {
        let Some(directory) = holder.lifecycle().archive else { return Ok(None) };
        let (archived, aside, failure) = (Tally::default(), Tally::default(), None);
        let mut status = ArchiveStatus { directory, archived, aside, failure };
        for view in View::open_all(&*self.store, holder.partitions())? {
            status.aside = status.aside.plus(unarchived::sum(&*view.snapshot, view.gate.partition)?);
        }
        for partition in holder.partitions() {
            let known = partition.archive.known.lock();
            status.archived = status.archived.plus(known.archived);
            let failures = status.failure.take().into_iter().chain(known.failure.clone());
            status.failure = failures.min_by_key(|failure| failure.since);
        }
        Ok(Some(status))
    }

    /// Figures of all archives.
    pub fn archive_sums(&self) -> ArchiveSums {
        let mut sums = ArchiveSums::default();
        let mut last = None;
        for (holder, partition) in self.catalog().holdings() {
            let known = partition.archive.known.lock();
            sums.archived = sums.archived.plus(known.archived);
            sums.failures += known.failures;
            let first = holder.partitions()[0].id;
            if known.failure.is_some() && last.replace(first) != Some(first) {
                sums.waiting += 1;
            }
        }
        sums
    }

    /// What the log should say of the purge, since this was last asked.
    pub fn take_purge_news(&self) -> Vec<PurgeNews> {
        std::mem::take(&mut *self.news.0.lock())
    }

    /// Archives that could not be written are tried again with the next step, of one container or collection or of all.
    pub fn retry_archives(&self, of: Option<&Holder>) -> Result<()> {
        let now = self.store.now()?;
        let catalog = self.catalog();
        let all = catalog.holdings().map(|(_, partition)| partition);
        let chosen = all.filter(|partition| {
            of.is_none_or(|holder| holder.partitions().iter().any(|own| own.id == partition.id))
        });
        for partition in chosen.filter(|partition| partition.archive.hurry(now)) {
            partition.next_look.at_once();
        }
        self.alarm.ring();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t32_who_dies_on_the_way_of_a_drop_goes_with_it_and_nobody_else() {
        let (state, at) = (ArchiveState::default(), |millis: u64| Time::from_millis(100_000 + millis));
        assert_eq!(state.owed_until(at(0)), at(0), "nobody has looked");
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

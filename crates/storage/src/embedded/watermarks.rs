//! Watermarks in the embedded store: entries below them are hidden from readers, and dropped when no reader and no recovery needs them.
//!
//! A commit leaves out the removals that a watermark covers ([`Watermarks::begin_commit`]). One number for each prefix replaces a
//! tombstone for each entry, which would be written to journal, memtable and table and merged down to its entry.
//!
//! - *Readers* (`hiding.rs`) skip entries below the watermark of their own snapshot.
//! - *Merges* ([`MergeFilter`]) drop an entry once its watermark is *settled*: in every open snapshot, so that no reader misses an
//!   entry that its snapshot still has, and durable, because a power failure must not undo a watermark whose entries were already
//!   dropped. A commit counts as durable once it was synced, whatever durability the store gives its users.
//! - *Whole tables* (`covered_tables.rs`) that have only entries below settled watermarks are dropped as they are. Tables of
//!   ascending keys are never merged, so the filter does not see them.

use std::collections::{HashMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use lsm_tree::compaction::filter::{CompactionFilter, Context, Factory, ItemAccessor, Verdict};
use parking_lot::{Mutex, RwLock};

use super::sequence_history::SequenceHistory;
use crate::overlay::Overlay;
use crate::watermark::{self, COVERED, Prefix};
use crate::{KeyRange, Keyspace};

/// The most commits whose watermarks settle one by one; later ones settle together with the last of them.
const PENDING_MAX: usize = 256;

/// Watermarks of a commit, or of several, that are not settled yet.
#[derive(Debug)]
struct Pending {
    /// The sequence number after the first of these commits.
    first_seqno: u64,
    /// The sequence number after the last of them: a snapshot at it, or a later one, has all of them.
    seqno: u64,
    raised: HashMap<Prefix, u64>,
}

/// The watermarks between their commit and the merges that may use them.
#[derive(Debug, Default)]
struct Progress {
    /// In the order of their commits.
    pending: VecDeque<Pending>,
    /// Commits that end at or below this sequence number are durable.
    durable_seqno: u64,
    settled: Arc<HashMap<Prefix, u64>>,
    /// Changes whenever a watermark is settled.
    generation: u64,
    sequences: SequenceHistory,
}

/// The watermarks of a store.
#[derive(Default)]
pub(super) struct Watermarks {
    /// For each prefix a number not below the watermark of any snapshot.
    highest: RwLock<HashMap<Prefix, u64>>,
    /// The watermarks as of the newest commit.
    committed: Mutex<HashMap<Prefix, u64>>,
    progress: Mutex<Progress>,
}

/// The watermarks that a commit raises.
#[derive(Debug, Default)]
pub(super) struct Commit {
    raised: HashMap<Prefix, u64>,
}

/// The settled watermarks: entries below them may be dropped.
pub(super) struct Settled {
    pub(super) watermarks: Arc<HashMap<Prefix, u64>>,
    pub(super) sequences: SequenceHistory,
}

impl Watermarks {
    /// Loads the watermarks of a store that is being opened.
    pub(super) fn load(&self, watermarks: HashMap<Prefix, u64>, sequences: SequenceHistory, seqno: u64) {
        self.highest.write().extend(watermarks.iter());
        self.committed.lock().extend(watermarks.iter());
        let mut progress = self.progress.lock();
        progress.sequences = sequences;
        if !watermarks.is_empty() {
            // A killed process may not have synced them.
            progress.push(seqno, watermarks);
        }
    }

    /// Leaves out of a commit the removals that its watermarks or earlier ones cover.
    pub(super) fn begin_commit(&self, overlay: &mut Overlay) -> Commit {
        let mut commit = Commit::default();
        for (key, value) in overlay.puts(Keyspace::Catalog, &KeyRange::prefix([watermark::WATERMARK])) {
            if let (Some(prefix), Ok(number)) = (watermark::prefix_of(key), watermark::decode(value)) {
                commit.raised.insert(prefix, number);
            }
        }
        let committed = self.committed.lock();
        if committed.is_empty() && commit.raised.is_empty() {
            return commit;
        }
        let covering = |prefix: &Prefix| commit.raised.get(prefix).or_else(|| committed.get(prefix)).copied();
        for keyspace in COVERED {
            overlay.retain_removals(keyspace, |key| {
                watermark::place(key)
                    .is_some_and(|(prefix, number)| covering(&prefix).is_some_and(|below| number < below))
            });
        }
        // Before the commit is visible: a reader that sees it must see that its snapshot may hide entries.
        let mut highest = self.highest.write();
        for (prefix, number) in &commit.raised {
            let known = highest.entry(*prefix).or_default();
            *known = (*known).max(*number);
        }
        commit
    }

    /// Returns the part of the history of sequences that the next commit has to store.
    pub(super) fn sequences_to_store(&self) -> Option<Vec<u8>> {
        self.progress.lock().sequences.take_changed()
    }

    /// Records a finished commit. `seqno` is the next sequence number after it, `sequence` the last one taken.
    pub(super) fn committed(&self, commit: Commit, seqno: u64, sequence: u64) {
        let mut progress = self.progress.lock();
        if let Some(highest) = commit.raised.values().max() {
            progress.sequences.raised(watermark::sequence_of(*highest));
            self.committed.lock().extend(commit.raised.iter());
            progress.push(seqno, commit.raised);
        }
        progress.sequences.committed(seqno, sequence);
    }

    /// Records that all commits before this sequence number survive a power failure.
    pub(super) fn synced(&self, seqno: u64) {
        let mut progress = self.progress.lock();
        progress.durable_seqno = progress.durable_seqno.max(seqno);
    }

    /// Returns whether a watermark waits for a sync.
    pub(super) fn wants_sync(&self) -> bool {
        let progress = self.progress.lock();
        progress.pending.back().is_some_and(|last| last.seqno > progress.durable_seqno)
    }

    /// Settles the watermarks that are durable and in every snapshot. All snapshots have the commits below `oldest_snapshot`.
    pub(super) fn settle(&self, oldest_snapshot: u64) {
        let mut progress = self.progress.lock();
        let Progress { pending, durable_seqno, settled, generation, .. } = &mut *progress;
        let through = oldest_snapshot.min(*durable_seqno);
        while let Some(first) = pending.pop_front_if(|first| first.seqno <= through) {
            *generation += 1;
            let settled = Arc::make_mut(settled);
            for (prefix, number) in first.raised {
                let known = settled.entry(prefix).or_default();
                *known = (*known).max(number);
            }
        }
    }

    /// Returns whether all watermarks of commits before a sequence number are settled.
    pub(super) fn are_settled_through(&self, seqno: u64) -> bool {
        self.progress.lock().pending.front().is_none_or(|first| first.first_seqno > seqno)
    }

    /// Returns a number that changes whenever a watermark is settled; 0 before the first.
    pub(super) fn generation(&self) -> u64 {
        self.progress.lock().generation
    }

    /// Returns the settled watermarks.
    pub(super) fn settled(&self) -> Settled {
        let progress = self.progress.lock();
        Settled { watermarks: Arc::clone(&progress.settled), sequences: progress.sequences.clone() }
    }

    /// Returns whether all watermarks are settled.
    pub(super) fn are_settled(&self) -> bool {
        self.progress.lock().pending.is_empty()
    }

    /// Returns the highest watermark that any snapshot may have for a prefix.
    pub(super) fn highest(&self, prefix: Prefix) -> u64 {
        self.highest.read().get(&prefix).copied().unwrap_or(0)
    }
}

impl Progress {
    fn push(&mut self, seqno: u64, raised: HashMap<Prefix, u64>) {
        let is_full = self.pending.len() >= PENDING_MAX;
        match self.pending.back_mut() {
            Some(last) if is_full => {
                last.seqno = seqno;
                last.raised.extend(raised);
            }
            _ => self.pending.push_back(Pending { first_seqno: seqno, seqno, raised }),
        }
    }
}

/// Makes the filters of the merges of one keyspace.
struct MergeFilters {
    watermarks: AssertUnwindSafe<Arc<Watermarks>>,
}

impl Factory for MergeFilters {
    fn name(&self) -> &'static str {
        "watermarks"
    }

    fn make_filter(&self, _: &Context) -> Box<dyn CompactionFilter> {
        Box::new(MergeFilter { settled: Arc::clone(&self.watermarks.progress.lock().settled) })
    }
}

/// Drops the entries below settled watermarks in one merge.
struct MergeFilter {
    settled: Arc<HashMap<Prefix, u64>>,
}

impl CompactionFilter for MergeFilter {
    fn filter_item(&mut self, item: ItemAccessor<'_>, _: &Context) -> lsm_tree::Result<Verdict> {
        if self.settled.is_empty() {
            return Ok(Verdict::Keep);
        }
        let is_settled = watermark::place(item.key())
            .is_some_and(|(prefix, number)| self.settled.get(&prefix).is_some_and(|below| number < *below));
        // No tombstone is needed: older versions of the entry, which levels below may have, are below the watermark, too.
        Ok(if is_settled { Verdict::Destroy } else { Verdict::Keep })
    }
}

/// Returns the factory of a keyspace's filters, by its name; `None` if watermarks do not apply to it.
pub(super) fn filters(watermarks: &Arc<Watermarks>, name: &str) -> Option<Arc<dyn Factory>> {
    let is_covered = COVERED.iter().any(|covered| covered.name() == name);
    is_covered.then(|| Arc::new(MergeFilters { watermarks: AssertUnwindSafe(Arc::clone(watermarks)) }) as _)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A scrub has succeeded only when the watermarks set before it are settled, however many follow.
    #[test]
    fn t24_watermarks_that_wait_together_keep_the_place_of_the_first() {
        let watermarks = Watermarks::default();
        let raise = |seqno: u64| {
            let commit = Commit { raised: HashMap::from([([0, 0, 0, 1], seqno)]) };
            watermarks.committed(commit, seqno, seqno);
        };
        let last = PENDING_MAX as u64;
        (1..=last).for_each(raise);
        assert!(!watermarks.are_settled_through(last));
        raise(last + 10);
        watermarks.synced(u64::MAX);
        watermarks.settle(last);
        assert!(!watermarks.are_settled_through(last), "the last of them waits for the one that came later");
        watermarks.settle(last + 10);
        assert!(watermarks.are_settled_through(last) && watermarks.are_settled());
    }
}

//! Watermarks in the embedded store: entries below them are hidden from readers, and leave the files when tables are merged.
//!
//! A commit leaves out the removals that a watermark covers ([`Watermarks::begin_commit`]). What would have been a tombstone for each
//! entry, written to journal, memtable and table and merged down to its entry, is one number for each prefix.
//!
//! - *Readers* ([`Hiding`]) pass over entries below the watermark of their own snapshot.
//! - *Merges* ([`MergeFilter`]) drop an entry once its watermark is *settled*: in every open snapshot, so that no reader misses an
//!   entry that its snapshot still has, and durable, because a power failure must not take back a watermark whose entries are gone
//!   already.
//! - *Whole tables* (`compactor.rs`): keys that are a prefix and a number, those of items and of the feed, are in the order of
//!   watermarks, so tables below one are dropped as they are.
//! - *Rewrites* (`compactor.rs`): other tables of ascending keys are moved from level to level and never merged. So the
//!   entries that should have been dropped are counted, and when they are many, the keyspace is rewritten.

use std::collections::{HashMap, VecDeque};
use std::ops::{AddAssign, SubAssign};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bytes::Bytes;
use lsm_tree::compaction::filter::{CompactionFilter, Context, Factory, ItemAccessor, Verdict};
use parking_lot::{Mutex, RwLock};

use crate::overlay::Overlay;
use crate::watermark::{self, COVERED, Prefix};
use crate::{KeyRange, Keyspace, Result};

/// The most watermarks at once below which whole tables are dropped.
const RANGES_MAX: usize = 8;

/// Entries in each of the [`COVERED`] keyspaces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct CoveredEntries([u64; COVERED.len()]);

impl AddAssign for CoveredEntries {
    fn add_assign(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(entries, more)| *entries += more);
    }
}

impl SubAssign for CoveredEntries {
    fn sub_assign(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(entries, less)| *entries = entries.saturating_sub(less));
    }
}

impl CoveredEntries {
    pub(super) fn encode(self) -> Vec<u8> {
        self.0.iter().flat_map(|entries| entries.to_le_bytes()).collect()
    }

    /// Reads the stored form. It is an estimate, so what cannot be read counts as nothing.
    pub(super) fn decode(stored: &[u8]) -> Self {
        let mut counts = Self::default();
        for (count, stored) in counts.0.iter_mut().zip(stored.chunks_exact(8)) {
            *count = stored.try_into().map_or(0, u64::from_le_bytes);
        }
        counts
    }

    fn is_none(self) -> bool {
        self == Self::default()
    }
}

/// Watermarks of a commit that are not settled yet.
#[derive(Debug)]
struct Pending {
    /// The sequence number next to the commit: a snapshot at it, or behind, has the commit.
    seqno: u64,
    raised: Vec<(Prefix, u64)>,
    entries: CoveredEntries,
}

/// The watermarks on their way from a commit to the merges.
#[derive(Debug, Default)]
struct Progress {
    /// In the order of their commits.
    pending: VecDeque<Pending>,
    /// The entries of all of them.
    pending_entries: CoveredEntries,
    /// Commits that end at or below this sequence number are durable.
    durable_seqno: u64,
    settled: HashMap<Prefix, u64>,
    /// What merges may drop and have not dropped, about.
    droppable: CoveredEntries,
    /// The settled watermarks below which tables of a covered keyspace were dropped.
    tables_dropped: [HashMap<Prefix, u64>; COVERED.len()],
}

impl Progress {
    fn push(&mut self, pending: Pending) {
        self.pending_entries += pending.entries;
        self.pending.push_back(pending);
    }
}

/// The watermarks of a store.
#[derive(Default)]
pub(super) struct Watermarks {
    /// At least the watermark of every snapshot.
    highest: RwLock<HashMap<Prefix, u64>>,
    /// As of the newest commit.
    committed: Mutex<HashMap<Prefix, u64>>,
    progress: Mutex<Progress>,
}

/// What a commit does to watermarks.
#[derive(Debug, Default)]
pub(super) struct Commit {
    raised: Vec<(Prefix, u64)>,
    entries: CoveredEntries,
}

impl Commit {
    /// Returns whether the commit has left out a removal.
    pub(super) fn leaves_out(&self) -> bool {
        !self.entries.is_none()
    }
}

impl Watermarks {
    /// Takes over what a store has when it is opened.
    pub(super) fn load(&self, watermarks: Vec<(Prefix, u64)>, droppable: CoveredEntries, seqno: u64) {
        self.highest.write().extend(watermarks.iter().copied());
        self.committed.lock().extend(watermarks.iter().copied());
        // A killed process may not have synced them.
        self.progress.lock().push(Pending { seqno, raised: watermarks, entries: droppable });
    }

    /// Takes the removals out of a commit that its watermarks or earlier ones cover.
    pub(super) fn begin_commit(&self, overlay: &mut Overlay) -> Commit {
        let mut commit = Commit::default();
        for (key, value) in overlay.puts(Keyspace::Catalog, &KeyRange::prefix([watermark::WATERMARK])) {
            if let (Some(prefix), Ok(number)) = (watermark::prefix_of(key), watermark::decode(value)) {
                commit.raised.push((prefix, number));
            }
        }
        let committed = self.committed.lock();
        if committed.is_empty() && commit.raised.is_empty() {
            return commit;
        }
        let raised: HashMap<Prefix, u64> = commit.raised.iter().copied().collect();
        let covering = |prefix: &Prefix| raised.get(prefix).or_else(|| committed.get(prefix)).copied();
        for (keyspace, entries) in COVERED.into_iter().zip(&mut commit.entries.0) {
            overlay.retain_removals(keyspace, |key| {
                let is_covered = watermark::place(key)
                    .is_some_and(|(prefix, number)| covering(&prefix).is_some_and(|below| number < below));
                *entries += u64::from(is_covered);
                is_covered
            });
        }
        // Before the commit can be seen: who sees it must know that there may be something to hide.
        let mut highest = self.highest.write();
        for (prefix, number) in &commit.raised {
            let known = highest.entry(*prefix).or_default();
            *known = (*known).max(*number);
        }
        commit
    }

    /// Returns what is left to drop with this commit, for the next start.
    pub(super) fn left_to_drop(&self, commit: &Commit) -> CoveredEntries {
        let progress = self.progress.lock();
        let mut sum = progress.droppable;
        sum += progress.pending_entries;
        sum += commit.entries;
        sum
    }

    /// Takes note of a finished commit. `seqno` is the next sequence number after it.
    pub(super) fn committed(&self, commit: Commit, seqno: u64) {
        if commit.raised.is_empty() && !commit.leaves_out() {
            return;
        }
        self.committed.lock().extend(commit.raised.iter().copied());
        self.progress.lock().push(Pending { seqno, raised: commit.raised, entries: commit.entries });
    }

    /// Takes note that all commits before this sequence number survive a power failure.
    pub(super) fn synced(&self, seqno: u64) {
        let mut progress = self.progress.lock();
        progress.durable_seqno = progress.durable_seqno.max(seqno);
    }

    /// Settles the watermarks that are durable and in every snapshot. All snapshots have what is below `oldest_snapshot`.
    pub(super) fn settle(&self, oldest_snapshot: u64) {
        let mut progress = self.progress.lock();
        let Progress { pending, pending_entries, durable_seqno, settled, droppable, .. } = &mut *progress;
        let through = oldest_snapshot.min(*durable_seqno);
        while let Some(first) = pending.pop_front_if(|first| first.seqno <= through) {
            *pending_entries -= first.entries;
            *droppable += first.entries;
            for (prefix, number) in first.raised {
                let known = settled.entry(prefix).or_default();
                *known = (*known).max(number);
            }
        }
    }

    /// Returns how many entries of a covered keyspace merges may drop, about.
    pub(super) fn droppable(&self, covered: usize) -> u64 {
        self.progress.lock().droppable.0[covered]
    }

    /// Takes note that entries were dropped without a merge.
    pub(super) fn dropped(&self, covered: usize, entries: u64) {
        let droppable = &mut self.progress.lock().droppable.0[covered];
        *droppable = droppable.saturating_sub(entries);
    }

    /// Returns the settled watermarks that have grown since this was last asked of a covered keyspace; none if they are many: with
    /// entries of many prefixes in every table there are no tables to drop, and merges have enough to do.
    pub(super) fn take_grown(&self, covered: usize) -> Vec<(Prefix, u64)> {
        let mut progress = self.progress.lock();
        let Progress { settled, tables_dropped, .. } = &mut *progress;
        let dropped = &mut tables_dropped[covered];
        let has_grown = |(prefix, number): &(&Prefix, &u64)| dropped.get(*prefix).copied() < Some(**number);
        let grown: Vec<_> =
            settled.iter().filter(has_grown).map(|(prefix, number)| (*prefix, *number)).collect();
        if grown.len() > RANGES_MAX {
            return Vec::new();
        }
        dropped.extend(grown.iter().copied());
        grown
    }

    /// Takes note that the tables of a covered keyspace were rewritten: what is left to drop was in memory.
    pub(super) fn rewritten(&self, covered: usize, in_memory: u64) {
        let droppable = &mut self.progress.lock().droppable.0[covered];
        *droppable = in_memory.min(*droppable);
    }

    /// Returns the highest watermark that any snapshot may have for a prefix.
    fn highest(&self, prefix: Prefix) -> u64 {
        self.highest.read().get(&prefix).copied().unwrap_or(0)
    }
}

/// What a snapshot hides: entries below the watermarks that it has.
pub(super) struct Hiding<'a, F> {
    watermarks: &'a Watermarks,
    /// Reads a watermark from the snapshot.
    read: F,
    /// The prefix of the last key, and its watermark.
    last: Option<(Prefix, u64)>,
}

impl<'a, F: Fn(Prefix) -> Result<u64>> Hiding<'a, F> {
    /// Returns what a snapshot hides of a keyspace; `None` if watermarks do not apply to it.
    pub(super) fn new(watermarks: &'a Watermarks, keyspace: Keyspace, read: F) -> Option<Self> {
        watermark::covers(keyspace).map(|_| Hiding { watermarks, read, last: None })
    }

    /// Returns whether an entry is hidden.
    pub(super) fn hides(&mut self, key: &[u8]) -> Result<bool> {
        let Some((prefix, number)) = watermark::place(key) else { return Ok(false) };
        let below = match self.last {
            Some((last, below)) if last == prefix => below,
            _ if number >= self.watermarks.highest(prefix) => return Ok(false),
            _ => {
                let below = (self.read)(prefix)?;
                self.last = Some((prefix, below));
                below
            }
        };
        Ok(number < below)
    }

    /// Returns an entry unless it is hidden.
    pub(super) fn visible(&mut self, entry: Result<(Bytes, Bytes)>) -> Option<Result<(Bytes, Bytes)>> {
        match entry.and_then(|(key, value)| Ok((self.hides(&key)?, key, value))) {
            Ok((true, ..)) => None,
            Ok((false, key, value)) => Some(Ok((key, value))),
            Err(error) => Some(Err(error)),
        }
    }
}

/// Makes the filters of the merges of one keyspace.
struct MergeFilters {
    watermarks: AssertUnwindSafe<Arc<Watermarks>>,
    covered: usize,
}

impl Factory for MergeFilters {
    fn name(&self) -> &'static str {
        "watermarks"
    }

    fn make_filter(&self, _: &Context) -> Box<dyn CompactionFilter> {
        let settled = self.watermarks.progress.lock().settled.clone();
        let watermarks = Arc::clone(&self.watermarks);
        Box::new(MergeFilter { settled, dropped: 0, covered: self.covered, watermarks })
    }
}

/// Drops the entries below settled watermarks in one merge.
struct MergeFilter {
    settled: HashMap<Prefix, u64>,
    dropped: u64,
    covered: usize,
    watermarks: Arc<Watermarks>,
}

impl CompactionFilter for MergeFilter {
    fn filter_item(&mut self, item: ItemAccessor<'_>, _: &Context) -> lsm_tree::Result<Verdict> {
        let key = item.key();
        let is_settled = watermark::place(key)
            .is_some_and(|(prefix, number)| self.settled.get(&prefix).is_some_and(|below| number < *below));
        if !is_settled {
            return Ok(Verdict::Keep);
        }
        self.dropped += 1;
        // A tombstone, which the last level drops: levels below may have older versions of the entry, which readers would pass over,
        // and which no merge need look at again.
        Ok(Verdict::Remove)
    }

    fn finish(self: Box<Self>) {
        self.watermarks.dropped(self.covered, self.dropped);
    }
}

/// Returns what makes the filter of a keyspace by its name; `None` for one that watermarks do not apply to.
pub(super) fn filters(watermarks: &Arc<Watermarks>, name: &str) -> Option<Arc<dyn Factory>> {
    let covered = COVERED.iter().position(|covered| covered.name() == name)?;
    Some(Arc::new(MergeFilters { watermarks: AssertUnwindSafe(Arc::clone(watermarks)), covered }))
}

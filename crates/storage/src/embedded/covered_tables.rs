//! Drops tables that have only entries below settled watermarks. That needs neither a merge nor space on the disk.
//!
//! Either of two properties shows that a table is *covered*:
//!
//! - *Its keys*, in the keyspaces of items and of the feed, where a key is a prefix and a number and nothing else: the table has one
//!   prefix, and its last key is below the prefix's watermark.
//! - *Its age*, in every keyspace: the sequences taken until its newest entry was written ([`SequenceHistory`]) make only numbers
//!   below the watermarks of all prefixes that it may have. This covers tables of index entries and queues too, which have another order.
//!
//! fjall drops the tables that a range of keys contains. Such a range must contain no other table, so no table may be added during the
//! search: merges and flushes are held off.
//!
//! [`SequenceHistory`]: super::sequence_history::SequenceHistory

use std::path::PathBuf;
use std::sync::Arc;

use lsm_tree::{AbstractTree, Table, UserKey};
use parking_lot::Mutex;

use super::compactor::CompactorSignal;
use super::database::{Database, cannot};
use super::watermarks::Settled;
use crate::watermark::{self, COVERED, Prefix, RANGES};
use crate::{Keyspace, Result};

/// The most ranges that are dropped at once in a keyspace; each takes the lock of its readers, and flushes wait for all of them.
const DROPPED_MAX: usize = 8;
/// The most prefixes that a covered table may have.
const PREFIXES_MAX: u32 = 1024;

/// The state of a keyspace without covered tables: the generation of the watermarks, and the number of its list of tables.
type Seen = (u64, u64);

/// The progress of dropping covered tables, for each keyspace.
#[derive(Default)]
pub(super) struct CoveredTables {
    /// The last state in which a keyspace had no table to drop.
    seen: Mutex<[Seen; COVERED.len()]>,
    /// The file of one of the tables dropped last: older snapshots may still read it.
    files: Mutex<[Option<Arc<PathBuf>>; COVERED.len()]>,
}

impl CoveredTables {
    /// Drops covered tables of all keyspaces, unless the store is closing.
    pub(super) fn drop_from(&self, database: &Database, signal: &CompactorSignal) -> Result<()> {
        for (number, name) in COVERED.into_iter().enumerate() {
            let Some(keyspace) = database.opened_keyspace(name) else { continue };
            while !signal.is_closing() && self.drop_of(number, name, database, keyspace)? {}
        }
        Ok(())
    }

    /// Drops some covered tables of a keyspace; returns whether there may be more.
    fn drop_of(
        &self,
        number: usize,
        name: Keyspace,
        database: &Database,
        keyspace: &fjall::Keyspace,
    ) -> Result<bool> {
        let _compacting = database.compacting.lock();
        database.settle_watermarks();
        let generation = database.watermarks.generation();
        let before = (generation, keyspace.tree.current_version().id());
        if generation == 0 || self.seen.lock()[number] == before {
            return Ok(false);
        }
        let Dropped { ranges, file, version } = drop_some(database, name, keyspace)?;
        if file.is_some() {
            self.files.lock()[number] = file;
        }
        if ranges < DROPPED_MAX {
            self.seen.lock()[number] = (generation, version);
        }
        Ok(ranges == DROPPED_MAX)
    }

    /// Returns whether files of dropped tables are still there.
    pub(super) fn have_files(&self) -> bool {
        let mut files = self.files.lock();
        for file in files.iter_mut() {
            file.take_if(|file| !file.exists());
        }
        files.iter().any(Option::is_some)
    }
}

/// The tables dropped from a keyspace.
struct Dropped {
    ranges: usize,
    /// The file of one of them.
    file: Option<Arc<PathBuf>>,
    /// The number of the list of tables without them.
    version: u64,
}

/// Drops covered tables of a keyspace. The caller keeps others from merging its tables meanwhile.
fn drop_some(database: &Database, name: Keyspace, keyspace: &fjall::Keyspace) -> Result<Dropped> {
    let settled = database.watermarks.settled();
    // A flush could add a table to a range that has only covered ones.
    let _flushing = keyspace.tree.get_flush_lock();
    let version = keyspace.tree.current_version();
    // fjall deletes a journal file when each keyspace has a table that is newer than its entries in the file. So the newest table
    // stays: without it, a keyspace that receives no more writes would keep the file and all later ones.
    let newest = version.iter_tables().map(Table::get_highest_seqno).max();
    let is_covered =
        |table: &&Table| Some(table.get_highest_seqno()) != newest && settled.covers(name, table);
    let (covered, kept): (Vec<&Table>, Vec<&Table>) = version.iter_tables().partition(is_covered);
    let spans = |tables: &[&Table]| tables.iter().map(|table| span(table)).collect::<Vec<_>>();
    let ranges = ranges(spans(&covered), &spans(&kept), DROPPED_MAX);
    for Span { first, last } in &ranges {
        let dropped = keyspace.tree.drop_range::<&[u8], _>(&first[..]..=&last[..]);
        dropped.map_err(|error| cannot("drop tables", &error.into()))?;
    }
    let last = ranges.last();
    let file = covered.iter().find(|table| last.is_some_and(|last| last.contains(&span(table))));
    Ok(Dropped {
        ranges: ranges.len(),
        file: file.map(|table| Arc::clone(&table.path)),
        version: keyspace.tree.current_version().id(),
    })
}

impl Settled {
    /// Returns whether a table has only entries below settled watermarks.
    fn covers(&self, name: Keyspace, table: &Table) -> bool {
        let Span { first, last } = span(table);
        let (Some((from, _)), Some((to, number))) = (watermark::place(&first), watermark::place(&last))
        else {
            return false;
        };
        let is_below =
            |prefix: Prefix, number: u64| self.watermarks.get(&prefix).is_some_and(|below| number < *below);
        if RANGES.contains(&name) && from == to && is_below(to, number) {
            return true;
        }
        let Some(sequence) = self.sequences.highest_through(table.get_highest_seqno()) else { return false };
        let highest = watermark::last_number(sequence);
        let (from, to) = (u32::from_be_bytes(from), u32::from_be_bytes(to));
        to - from < PREFIXES_MAX && (from..=to).all(|prefix| is_below(prefix.to_be_bytes(), highest))
    }
}

/// The first and the last key of a table, or of several.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Span {
    first: UserKey,
    last: UserKey,
}

impl Span {
    fn contains(&self, other: &Span) -> bool {
        self.first <= other.first && other.last <= self.last
    }
}

fn span(table: &Table) -> Span {
    let range = &table.metadata.key_range;
    Span { first: range.min().clone(), last: range.max().clone() }
}

/// Returns ranges that contain tables to drop, and none to keep; at most so many.
fn ranges(mut doomed: Vec<Span>, kept: &[Span], most: usize) -> Vec<Span> {
    doomed.sort_unstable();
    let mut doomed = doomed.into_iter().peekable();
    let mut ranges = Vec::new();
    while ranges.len() < most
        && let Some(mut range) = doomed.next()
    {
        // A range that begins here may reach up to the end of the first table that it would contain.
        let end = kept.iter().filter(|kept| kept.first >= range.first).map(|kept| &kept.last).min();
        let fits = |last: &UserKey| end.is_none_or(|end| last < end);
        if !fits(&range.last) {
            continue;
        }
        while let Some(next) = doomed.next_if(|next| fits(&next.last)) {
            range.last = range.last.max(next.last);
        }
        ranges.push(range);
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::{Span, ranges};

    fn span((first, last): (u8, u8)) -> Span {
        Span { first: [first].into(), last: [last].into() }
    }

    #[test]
    fn ranges_contain_tables_to_drop_and_none_to_keep() {
        type Spans = &'static [(u8, u8)];
        let cases: [(Spans, Spans, Spans); 7] = [
            (&[], &[(1, 2)], &[]),
            (&[(3, 4), (1, 2)], &[], &[(1, 4)]),
            (&[(1, 2), (7, 8), (3, 4)], &[(5, 6)], &[(1, 4), (7, 8)]),
            (&[(1, 9)], &[(5, 6)], &[]),
            (&[(1, 9)], &[(1, 9)], &[]),
            (&[(1, 5), (6, 9)], &[(4, 7)], &[(1, 5), (6, 9)]),
            (&[(1, 9), (2, 3)], &[(5, 6), (0, 20)], &[(2, 3)]),
        ];
        for (doomed, kept, expected) in cases {
            let of = |spans: Spans| spans.iter().copied().map(span).collect::<Vec<_>>();
            assert_eq!(ranges(of(doomed), &of(kept), usize::MAX), of(expected), "{doomed:?} {kept:?}");
        }
    }

    #[test]
    fn random_ranges_contain_tables_to_drop_and_none_to_keep() {
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..5000 {
            let mut spans = || {
                let pair = |random: &mut fastrand::Rng| (random.u8(..40), random.u8(..40));
                let pairs = (0..random.usize(..8)).map(|_| pair(&mut random)).collect::<Vec<_>>();
                pairs.into_iter().map(|(a, b)| span((a.min(b), a.max(b)))).collect::<Vec<_>>()
            };
            let (doomed, kept) = (spans(), spans());
            let found = ranges(doomed.clone(), &kept, usize::MAX);
            assert!(!found.iter().any(|range| kept.iter().any(|kept| range.contains(kept))));
            for span in doomed {
                let can_be_dropped = !kept.iter().any(|kept| span.contains(kept));
                assert_eq!(found.iter().any(|range| range.contains(&span)), can_be_dropped);
            }
        }
    }
}

//! Entries below a watermark are hidden at once, and merges drop them when no reader and no recovery can need them.

use super::EmbeddedOptions;
use super::compactor::{CompactorSignal, compact_round};
use super::database::{Committer, Database, EmbeddedSnapshot};
use crate::overlay::Overlay;
use crate::record::StoreRecord;
use crate::watermark;
use crate::writer::Backend;
use crate::{ClockOptions, Direction, Durability, KeyRange, Keyspace, ManualClock, Read, Result, Time};
use fjall::Readable;
use lsm_tree::AbstractTree;
use std::collections::BTreeSet;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

pub(super) const PREFIX: watermark::Prefix = [0, 0, 0, 7];
const ENTRIES: u64 = 100;
const BELOW: u64 = 60;

/// A value, or the removal of one.
type Change = (Keyspace, Vec<u8>, Option<Vec<u8>>);

/// A database without background threads.
pub(super) struct Bench {
    pub(super) database: Arc<Database>,
    committer: Committer,
    signal: Arc<CompactorSignal>,
    /// The last one taken.
    pub(super) sequence: u64,
}

impl Bench {
    pub(super) fn open(directory: &Path) -> Self {
        Self::with(directory, Durability::Sync)
    }

    fn with(directory: &Path, durability: Durability) -> Self {
        let clock = ClockOptions::new(Arc::new(ManualClock::new(Time::from_seconds(1))));
        let options = EmbeddedOptions::new(directory, clock);
        let database = Arc::new(Database::open(&options).unwrap());
        let signal = Arc::new(CompactorSignal::default());
        let committer = Committer::new(
            Arc::clone(&database),
            durability,
            directory.to_owned(),
            None,
            Arc::clone(&signal),
        );
        let sequence = database.record().unwrap().map_or(0, |record| record.sequence);
        Self { database, committer, signal, sequence }
    }

    pub(super) fn commit(&mut self, durability: Durability, changes: &[Change]) {
        let mut overlay = Overlay::default();
        let mut undo = overlay.begin();
        for (keyspace, key, value) in changes {
            overlay.set(*keyspace, key.clone().into(), value.clone().map(Into::into), &mut undo);
            if let Some((_, number)) = watermark::place(key).filter(|_| value.is_some()) {
                self.sequence = self.sequence.max(watermark::sequence_of(number));
            }
        }
        let record = StoreRecord { sequence: self.sequence, ..StoreRecord::default() };
        self.committer.commit(overlay, &record, durability).unwrap();
    }

    fn fill(&mut self) {
        let puts: Vec<_> = (0..ENTRIES).map(|number| (Keyspace::Index, key(number), Some(vec![1]))).collect();
        self.commit(Durability::Sync, &puts);
        self.database.flush().unwrap();
    }

    /// Removes what is below [`BELOW`].
    fn forget(&mut self, durability: Durability) {
        let mut changes: Vec<_> = (0..BELOW).map(|number| (Keyspace::Index, key(number), None)).collect();
        changes.push((Keyspace::Catalog, watermark::key(PREFIX), Some(BELOW.to_be_bytes().to_vec())));
        self.commit(durability, &changes);
    }

    pub(super) fn snapshot(&self) -> EmbeddedSnapshot {
        EmbeddedSnapshot::new(Arc::clone(&self.database))
    }

    /// Commits and flushes, as a running store does: that moves on what fjall takes for the oldest snapshot.
    fn go_on(&mut self) {
        for _ in 0..3 {
            self.commit(Durability::Buffered, &[(Keyspace::Counter, vec![1], Some(vec![1]))]);
            self.database.flush().unwrap();
        }
    }

    /// Rewrites the index.
    fn rewrite(&mut self) {
        self.go_on();
        self.database.rewrite(self.database.opened_keyspace(Keyspace::Index).unwrap()).unwrap();
    }

    /// Does what the background thread does when it wakes.
    pub(super) fn round(&mut self) {
        self.go_on();
        self.compact();
    }

    /// The same on a store that nothing is written to.
    pub(super) fn compact(&self) {
        compact_round(&self.database, &self.signal).unwrap();
    }

    /// Returns how many entries of the index tables and memory have, hidden ones included.
    fn stored(&self) -> u64 {
        self.stored_in(Keyspace::Index)
    }

    pub(super) fn stored_in(&self, keyspace: Keyspace) -> u64 {
        let (fjall, _) = self.database.own();
        fjall.snapshot().iter(self.database.opened_keyspace(keyspace).unwrap()).count() as u64
    }

    /// Makes a table of these entries.
    pub(super) fn table(&mut self, keyspace: Keyspace, keys: impl IntoIterator<Item = Vec<u8>>) {
        let puts: Vec<_> = keys.into_iter().map(|key| (keyspace, key, Some(vec![1]))).collect();
        self.commit(Durability::Sync, &puts);
        self.database.flush().unwrap();
    }

    /// Returns the tables of the keyspaces that watermarks apply to.
    pub(super) fn tables(&self) -> BTreeSet<(&'static str, lsm_tree::TableId)> {
        let mut tables = BTreeSet::new();
        for name in watermark::COVERED {
            let Some(keyspace) = self.database.opened_keyspace(name) else { continue };
            let version = keyspace.tree.current_version();
            tables.extend(version.iter_tables().map(|table| (name.name(), table.id())));
        }
        tables
    }

    /// Raises the watermark of a prefix.
    pub(super) fn raise(&mut self, prefix: watermark::Prefix, below: u64) {
        let watermark = (Keyspace::Catalog, watermark::key(prefix), Some(below.to_be_bytes().to_vec()));
        self.commit(Durability::Sync, &[watermark]);
    }
}

/// Returns the key of an entry in the order of numbers.
pub(super) fn ascending(prefix: watermark::Prefix, number: u64) -> Vec<u8> {
    [&prefix[..], &number.to_be_bytes()].concat()
}

/// Returns the first number of a sequence.
pub(super) fn number(sequence: u64) -> u64 {
    sequence << watermark::SLOT_BITS
}

/// Returns the key of an entry of an index in the order of numbers, of one path of several.
fn indexed(path: u8, sequence: u64) -> Vec<u8> {
    [&PREFIX[..], &[path], &sequence.to_be_bytes()[..], &number(sequence).to_be_bytes()].concat()
}

fn key(number: u64) -> Vec<u8> {
    // Scattered, as the terms of an index are.
    let term = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
    [&PREFIX[..], &term, &number.to_be_bytes()].concat()
}

/// Returns the numbers of the entries that a reader sees, by scans in both directions and one by one.
fn seen(reader: &dyn Read) -> Vec<u64> {
    let scan = |direction| {
        let entries = reader.scan(Keyspace::Index, KeyRange::all(), direction);
        let numbers = entries.map(|entry| Ok(watermark::place(&entry?.0).unwrap().1));
        let mut numbers = numbers.collect::<Result<Vec<_>>>().unwrap();
        numbers.sort_unstable();
        numbers
    };
    let is_there = |number: &u64| reader.get(Keyspace::Index, &key(*number)).unwrap().is_some();
    let numbers = scan(Direction::Forward);
    assert_eq!(numbers, scan(Direction::Backward));
    assert_eq!(numbers, (0..ENTRIES).filter(is_there).collect::<Vec<_>>());
    numbers
}

fn all() -> Vec<u64> {
    (0..ENTRIES).collect()
}

fn left() -> Vec<u64> {
    (BELOW..ENTRIES).collect()
}

#[test]
fn t22_what_is_below_a_watermark_is_gone_from_its_commit_on_and_over_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let mut bench = Bench::open(directory.path());
    bench.fill();
    let before = bench.snapshot();
    bench.forget(Durability::Sync);
    assert_eq!(seen(&before), all(), "a snapshot keeps what it has");
    assert_eq!(seen(&bench.snapshot()), left());
    assert_eq!(bench.stored(), ENTRIES, "no removal was written");
    drop(before);
    drop(bench);
    let bench = Bench::open(directory.path());
    assert_eq!(seen(&bench.snapshot()), left());
    assert_eq!(bench.stored(), ENTRIES);
}

#[test]
fn t24_a_rewrite_drops_what_is_below_a_watermark_but_not_before_old_snapshots_are_gone() {
    let directory = tempfile::tempdir().unwrap();
    let mut bench = Bench::open(directory.path());
    bench.fill();
    let before = bench.snapshot();
    bench.forget(Durability::Sync);
    bench.rewrite();
    assert_eq!((seen(&before), seen(&bench.snapshot())), (all(), left()));
    assert_eq!(bench.stored(), ENTRIES, "the old snapshot has the entries");
    drop(before);
    bench.rewrite();
    assert_eq!(bench.stored(), ENTRIES - BELOW);
    assert_eq!(seen(&bench.snapshot()), left());
    drop(bench);
    let mut bench = Bench::open(directory.path());
    bench.rewrite();
    assert_eq!((bench.stored(), seen(&bench.snapshot())), (ENTRIES - BELOW, left()));
}

/// A power failure may undo a watermark that is not synced; then its entries must be there.
#[test]
fn t22_nothing_is_dropped_for_a_watermark_that_is_not_durable() {
    let directory = tempfile::tempdir().unwrap();
    let mut bench = Bench::open(directory.path());
    bench.fill();
    bench.forget(Durability::Buffered);
    assert_eq!(seen(&bench.snapshot()), left());
    bench.rewrite();
    assert_eq!(bench.stored(), ENTRIES, "a power failure would bring the items back, without their entries");
    bench.database.sync_watermarks().unwrap();
    bench.rewrite();
    assert_eq!(bench.stored(), ENTRIES - BELOW);
}

/// With buffered durability a power failure may undo commits, but the items that it restores must have their entries.
#[test]
fn t13_t22_a_watermark_of_a_buffered_store_counts_when_it_is_synced_once_in_a_round() {
    let directory = tempfile::tempdir().unwrap();
    let mut bench = Bench::with(directory.path(), Durability::Buffered);
    bench.fill();
    bench.forget(Durability::Sync);
    bench.rewrite();
    assert_eq!(bench.stored(), ENTRIES, "nothing was synced");
    assert!(bench.database.watermarks.wants_sync());
    bench.round();
    assert!(!bench.database.watermarks.wants_sync());
    bench.rewrite();
    assert_eq!((bench.stored(), seen(&bench.snapshot())), (ENTRIES - BELOW, left()));
}

#[test]
fn t24_tables_of_items_below_a_watermark_are_dropped_whole() {
    let directory = tempfile::tempdir().unwrap();
    let mut bench = Bench::open(directory.path());
    for half in [0..ENTRIES / 2, ENTRIES / 2..ENTRIES] {
        bench.table(Keyspace::Item, half.map(|number| ascending(PREFIX, number)));
    }
    bench.raise(PREFIX, BELOW);
    assert_eq!(bench.stored_in(Keyspace::Item), ENTRIES);
    bench.round();
    assert_eq!(bench.stored_in(Keyspace::Item), ENTRIES / 2);
    let left = |bench: &Bench| {
        let snapshot = bench.snapshot();
        let entries = snapshot.scan(Keyspace::Item, KeyRange::all(), Direction::Forward);
        entries.map(|entry| watermark::place(&entry.unwrap().0).unwrap().1).collect::<Vec<_>>()
    };
    assert_eq!(left(&bench), (BELOW..ENTRIES).collect::<Vec<_>>());
    drop(bench);
    assert_eq!(left(&Bench::open(directory.path())), (BELOW..ENTRIES).collect::<Vec<_>>());
}

/// fjall keeps a file of the journal, and all that follow, until each keyspace has a table that is newer.
#[test]
fn the_newest_table_of_a_keyspace_is_not_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let mut bench = Bench::open(directory.path());
    for number in [5, 1, 3] {
        bench.table(Keyspace::Item, [ascending(PREFIX, number)]);
    }
    let newest = |bench: &Bench| {
        bench.database.opened_keyspace(Keyspace::Item).unwrap().tree.get_highest_persisted_seqno()
    };
    let before = newest(&bench);
    bench.raise(PREFIX, BELOW);
    bench.round();
    assert_eq!((bench.stored_in(Keyspace::Item), newest(&bench)), (1, before));
}

/// More tables than are dropped at once, and a restart, after which the store has no record of earlier drops.
#[test]
fn t24_tables_of_many_prefixes_are_dropped_and_after_a_restart_those_that_are_left_stay() {
    const PREFIXES: u8 = 20;
    let directory = tempfile::tempdir().unwrap();
    let mut bench = Bench::open(directory.path());
    let prefix = |number: u8| [0, 0, number, 0];
    for number in 0..PREFIXES {
        bench.table(Keyspace::Item, [1, 2].map(|item| ascending(prefix(number), item)));
    }
    (0..PREFIXES).for_each(|number| bench.raise(prefix(number), 3 - u64::from(number % 2)));
    bench.database.sync_watermarks().unwrap();
    bench.go_on();
    let drop_some = |bench: &Bench| {
        bench.database.covered_tables.drop_from(&bench.database, &bench.signal).unwrap();
        bench.stored_in(Keyspace::Item)
    };
    // Every other table has an item above its watermark.
    assert_eq!(drop_some(&bench), u64::from(PREFIXES));
    drop(bench);
    let mut bench = Bench::open(directory.path());
    bench.database.sync_watermarks().unwrap();
    bench.go_on();
    assert_eq!(drop_some(&bench), u64::from(PREFIXES));
    let snapshot = bench.snapshot();
    let found = snapshot.scan(Keyspace::Item, KeyRange::all(), Direction::Forward).count();
    assert_eq!(found, usize::from(PREFIXES) / 2);
}

/// The index is in another order than that of numbers, and ascending parts of it are never merged.
#[test]
fn t24_tables_of_an_index_are_dropped_whole_when_all_that_is_as_old_is_below_the_watermark() {
    let directory = tempfile::tempdir().unwrap();
    let mut bench = Bench::open(directory.path());
    for first in [0, 2000, 4000] {
        for path in [1, 2] {
            bench.table(Keyspace::Index, (first..first + 2000).map(|number| indexed(path, number)));
        }
    }
    bench.raise(PREFIX, number(3000));
    bench.round();
    assert_eq!(bench.stored(), 8000, "the first of each path");
    // A later entry of an old item has the item's number, and is as new as its write.
    bench.table(Keyspace::Index, [indexed(1, 5999), indexed(3, 3001)]);
    drop(bench);
    let mut bench = Bench::open(directory.path());
    bench.raise(PREFIX, number(5999));
    bench.round();
    let snapshot = bench.snapshot();
    let seen = |path: u8| {
        let range = KeyRange::prefix([&PREFIX[..], &[path]].concat());
        snapshot.scan(Keyspace::Index, range, Direction::Forward).count()
    };
    assert_eq!([seen(1), seen(2), seen(3)], [1, 1, 0]);
    assert!(bench.stored() < 6000, "{}", bench.stored());
    // Behind everything that was written.
    bench.raise(PREFIX, number(bench.sequence + 1));
    drop(snapshot);
    bench.round();
    assert_eq!(bench.stored(), 2, "those of the newest table, which stays");
    assert_eq!(bench.snapshot().scan(Keyspace::Index, KeyRange::all(), Direction::Forward).count(), 0);
}

/// A flush may put a table between those that are dropped.
#[test]
fn t22_a_table_with_living_entries_between_covered_ones_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let mut bench = Bench::open(directory.path());
    bench.table(Keyspace::Index, (0..3000).map(|number| indexed(1, number)));
    bench.table(
        Keyspace::Index,
        [(1, 100), (1, 200)].map(|(path, at)| {
            [&PREFIX[..], &[path], &u64::to_be_bytes(at)[..], &number(9000).to_be_bytes()].concat()
        }),
    );
    bench.table(Keyspace::Index, (3000..5000).map(|number| indexed(1, number)));
    bench.raise(PREFIX, number(8000));
    bench.round();
    let snapshot = bench.snapshot();
    assert_eq!(snapshot.scan(Keyspace::Index, KeyRange::all(), Direction::Forward).count(), 2);
}

/// A rewrite of a whole keyspace would need free space for all of it, and could not be stopped.
#[test]
fn a_round_rewrites_no_tables_however_much_of_them_is_covered() {
    const COVERED: u64 = 36;
    let directory = tempfile::tempdir().unwrap();
    let mut bench = Bench::open(directory.path());
    let mut random = fastrand::Rng::with_seed(1);
    for number in 0..COVERED + 12 {
        let value: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(1 << 20).collect();
        let key = [&PREFIX[..], &number.to_be_bytes(), &number.to_be_bytes()].concat();
        bench.commit(Durability::Buffered, &[(Keyspace::Index, key, Some(value))]);
        if number % 12 == 11 {
            bench.database.flush().unwrap();
        }
    }
    bench.round();
    let before = bench.tables();
    bench.raise(PREFIX, COVERED);
    bench.round();
    bench.round();
    assert_eq!(bench.tables(), before);
}

/// A scrub waits until its watermarks are settled: entries that its rewrite had to keep are not removed.
#[test]
fn t24_watermarks_are_not_settled_before_every_snapshot_has_them() {
    let directory = tempfile::tempdir().unwrap();
    let mut bench = Bench::open(directory.path());
    bench.fill();
    let before = bench.snapshot();
    bench.forget(Durability::Sync);
    let seqno = bench.database.sync_watermarks().unwrap();
    let mut are_settled = || {
        bench.go_on();
        bench.database.settle_watermarks();
        bench.database.watermarks.are_settled_through(seqno)
    };
    assert!(!are_settled());
    drop(before);
    assert!(are_settled());
}

#[test]
fn scans_of_items_begin_behind_what_a_watermark_covers() {
    let directory = tempfile::tempdir().unwrap();
    let mut bench = Bench::open(directory.path());
    bench.table(Keyspace::Item, (0..ENTRIES).map(|number| ascending(PREFIX, number)));
    let before = bench.snapshot();
    bench.raise(PREFIX, BELOW);
    let after = bench.snapshot();
    let starts = |snapshot: &EmbeddedSnapshot, range: KeyRange| {
        let hiding = snapshot.hiding(Keyspace::Item).unwrap();
        hiding.skip_hidden(Keyspace::Item, range).unwrap().start
    };
    let all = KeyRange::prefix(PREFIX);
    assert_eq!(starts(&before, all.clone()), all.start, "as its snapshot has it");
    assert_eq!(starts(&after, all.clone()), Bound::Included(ascending(PREFIX, BELOW)));
    let behind = all.after(ascending(PREFIX, BELOW + 1));
    assert_eq!(starts(&after, behind.clone()), behind.start);
    let none = KeyRange::between(ascending(PREFIX, 1), ascending(PREFIX, 5));
    assert_eq!(after.scan(Keyspace::Item, none, Direction::Backward).count(), 0);
    assert_eq!(before.scan(Keyspace::Item, KeyRange::prefix(PREFIX), Direction::Backward).count(), 100);
    assert_eq!(after.scan(Keyspace::Item, KeyRange::prefix(PREFIX), Direction::Backward).count(), 40);
}

#[test]
fn removals_above_a_watermark_and_under_other_prefixes_are_written() {
    let directory = tempfile::tempdir().unwrap();
    let mut bench = Bench::open(directory.path());
    bench.fill();
    bench.forget(Durability::Sync);
    let other = [&[0, 0, 0, 8][..], &[0; 8]].concat();
    bench.commit(Durability::Sync, &[(Keyspace::Index, other.clone(), Some(vec![1]))]);
    assert_eq!(bench.snapshot().get(Keyspace::Index, &other).unwrap().as_deref(), Some(&[1][..]));
    bench.commit(Durability::Sync, &[(Keyspace::Index, other, None), (Keyspace::Index, key(BELOW), None)]);
    assert_eq!(seen(&bench.snapshot()), (BELOW + 1..ENTRIES).collect::<Vec<_>>());
    assert_eq!(bench.stored(), ENTRIES - 1);
    // Watermarks do not apply to keyspaces whose keys do not end with a number.
    bench.commit(Durability::Sync, &[(Keyspace::Unique, key(3), Some(vec![1]))]);
    assert!(bench.snapshot().get(Keyspace::Unique, &key(3)).unwrap().is_some());
}

//! What lies below a watermark: hidden at once, dropped by merges when nothing can need it any more.

use super::EmbeddedOptions;
use super::compactor::{CompactorSignal, drop_tables};
use super::database::{Committer, Database, EmbeddedSnapshot};
use crate::overlay::Overlay;
use crate::record::StoreRecord;
use crate::watermark;
use crate::writer::Backend;
use crate::{ClockOptions, Direction, Durability, KeyRange, Keyspace, ManualClock, Read, Result, Time};
use fjall::Readable;
use std::path::Path;
use std::sync::Arc;

const PREFIX: watermark::Prefix = [0, 0, 0, 7];
const ENTRIES: u64 = 100;
const BELOW: u64 = 60;

/// A value, or the removal of one.
type Change = (Keyspace, Vec<u8>, Option<Vec<u8>>);

/// A database without background threads.
struct Bench {
    database: Arc<Database>,
    committer: Committer,
}

impl Bench {
    fn open(directory: &Path) -> Self {
        let clock = ClockOptions::new(Arc::new(ManualClock::new(Time::from_seconds(1))));
        let options = EmbeddedOptions::new(directory, clock);
        let database = Arc::new(Database::open(&options).unwrap());
        let signal = Arc::new(CompactorSignal::default());
        let committer =
            Committer::new(Arc::clone(&database), Durability::Sync, directory.to_owned(), None, signal);
        Self { database, committer }
    }

    fn commit(&mut self, durability: Durability, changes: &[Change]) {
        let mut overlay = Overlay::default();
        let mut undo = overlay.begin();
        for (keyspace, key, value) in changes {
            overlay.set(*keyspace, key.clone().into(), value.clone().map(Into::into), &mut undo);
        }
        self.committer.commit(overlay, &StoreRecord::default(), durability).unwrap();
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

    fn snapshot(&self) -> EmbeddedSnapshot {
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

    /// How many entries tables and memory have, hidden ones included.
    fn stored(&self) -> u64 {
        let (fjall, _) = self.database.own();
        let index = self.database.opened_keyspace(Keyspace::Index).unwrap();
        fjall.snapshot().iter(index).count() as u64
    }
}

fn key(number: u64) -> Vec<u8> {
    // Scattered, as the terms of an index are.
    let term = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
    [&PREFIX[..], &term, &number.to_be_bytes()].concat()
}

/// The numbers of the entries that a reader sees, by scans in both directions and one by one.
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

/// A power failure may take back what is not synced; then its entries must be there.
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

#[test]
fn t24_tables_of_items_below_a_watermark_are_dropped_whole() {
    let directory = tempfile::tempdir().unwrap();
    let mut bench = Bench::open(directory.path());
    let item = |number: u64| [&PREFIX[..], &number.to_be_bytes()].concat();
    for half in [0..ENTRIES / 2, ENTRIES / 2..ENTRIES] {
        let puts: Vec<_> = half.map(|number| (Keyspace::Item, item(number), Some(vec![1]))).collect();
        bench.commit(Durability::Sync, &puts);
        bench.database.flush().unwrap();
    }
    let mut changes: Vec<_> = (0..BELOW).map(|number| (Keyspace::Item, item(number), None)).collect();
    changes.push((Keyspace::Catalog, watermark::key(PREFIX), Some(BELOW.to_be_bytes().to_vec())));
    bench.commit(Durability::Sync, &changes);
    bench.go_on();
    bench.database.settle_watermarks();
    let (fjall, _) = bench.database.own();
    let items = bench.database.opened_keyspace(Keyspace::Item).unwrap();
    let stored = || fjall.snapshot().iter(items).count() as u64;
    assert_eq!(stored(), ENTRIES);
    drop_tables(&bench.database, items, 0).unwrap();
    assert_eq!(stored(), ENTRIES / 2);
    let left = |bench: &Bench| {
        let snapshot = bench.snapshot();
        let entries = snapshot.scan(Keyspace::Item, KeyRange::all(), Direction::Forward);
        entries.map(|entry| watermark::place(&entry.unwrap().0).unwrap().1).collect::<Vec<_>>()
    };
    assert_eq!(left(&bench), (BELOW..ENTRIES).collect::<Vec<_>>());
    drop(bench);
    assert_eq!(left(&Bench::open(directory.path())), (BELOW..ENTRIES).collect::<Vec<_>>());
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
    // Keyspaces whose keys end with other things know no watermarks.
    bench.commit(Durability::Sync, &[(Keyspace::Unique, key(3), Some(vec![1]))]);
    assert!(bench.snapshot().get(Keyspace::Unique, &key(3)).unwrap().is_some());
}

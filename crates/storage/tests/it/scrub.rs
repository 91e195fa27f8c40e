//! T24: removed data leaves the files, under load, with open snapshots, and over a crash.

use crate::support::{Bench, run};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use storage::{Direction, KeyRange, Keyspace, SLOT_BITS, Scrubbed, Store};

const KEYSPACES: [Keyspace; 3] = [Keyspace::Item, Keyspace::Id, Keyspace::Index];
const ITEMS: u32 = 2000;

/// Returns whether any file below `directory` contains these bytes.
fn holds(directory: &Path, marker: &str) -> bool {
    fs::read_dir(directory).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return holds(&path, marker);
        }
        // A file that disappears meanwhile holds nothing.
        let bytes = fs::read(&path).unwrap_or_default();
        bytes.windows(marker.len()).any(|window| window == marker.as_bytes())
    })
}

/// Entries that name `who` in key and value.
fn write(store: &dyn Store, who: &'static str) {
    run(store, move |transaction| {
        for number in 0..ITEMS {
            let noise = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            for keyspace in KEYSPACES {
                transaction.put(keyspace, format!("{number:06} {who}"), format!("{noise:x} {who} {noise:o}"));
            }
        }
        Ok(())
    })
    .unwrap();
}

fn remove(store: &dyn Store, who: &'static str) {
    run(store, move |transaction| {
        for number in 0..ITEMS {
            for keyspace in KEYSPACES {
                transaction.remove(keyspace, format!("{number:06} {who}"));
            }
        }
        Ok(())
    })
    .unwrap();
}

fn count(store: &dyn Store, who: &str) -> usize {
    let snapshot = store.snapshot().unwrap();
    let is_there = |number: &u32| {
        let key = format!("{number:06} {who}");
        KEYSPACES.iter().all(|keyspace| snapshot.get(*keyspace, key.as_bytes()).unwrap().is_some())
    };
    (0..ITEMS).filter(is_there).count()
}

#[test]
fn t24_what_was_removed_is_in_no_file_after_a_scrub() {
    let mut bench = Bench::embedded();
    write(bench.store(), "doomed");
    write(bench.store(), "living");
    remove(bench.store(), "doomed");
    bench.reopen();
    assert!(holds(bench.path(), "doomed"), "a store keeps what it was told to remove");
    assert_eq!(bench.store().scrub(&KEYSPACES), Ok(Scrubbed::Done));
    assert!(!holds(bench.path(), "doomed"));
    assert_eq!(count(bench.store(), "living"), ITEMS as usize);
    bench.reopen();
    assert_eq!((count(bench.store(), "living"), count(bench.store(), "doomed")), (ITEMS as usize, 0));
}

#[test]
fn t24_a_scrub_waits_for_readers_and_says_so() {
    let bench = Bench::embedded();
    write(bench.store(), "doomed");
    let reader = bench.store().snapshot().unwrap();
    remove(bench.store(), "doomed");
    assert_eq!(bench.store().scrub(&KEYSPACES), Ok(Scrubbed::Held));
    assert!(reader.get(Keyspace::Item, b"000007 doomed").unwrap().is_some(), "what it sees stays");
    drop(reader);
    assert_eq!(bench.store().scrub(&KEYSPACES), Ok(Scrubbed::Done));
    assert!(!holds(bench.path(), "doomed"));
}

#[test]
fn t24_a_scrub_ends_while_others_read_and_write() {
    let bench = Bench::embedded();
    let (store, over) = (bench.store(), AtomicBool::new(false));
    write(store, "doomed");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                write(store, "busy");
            }
        });
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                assert_eq!(count(store, "doomed") % ITEMS as usize, 0);
            }
        });
        remove(store, "doomed");
        let mut outcomes = (0..20).map(|_| store.scrub(&KEYSPACES).unwrap());
        let done = outcomes.any(|outcome| outcome == Scrubbed::Done);
        over.store(true, Ordering::Relaxed);
        assert!(done && !holds(bench.path(), "doomed"));
    });
    assert_eq!(count(store, "busy"), ITEMS as usize);
}

/// The removals that a watermark stands for are not written; a scrub must remove the bytes from the files all the same.
#[test]
fn t24_what_lies_below_a_watermark_is_in_no_file_after_a_scrub() {
    const PREFIX: [u8; 4] = [0, 0, 0, 7];
    let mut bench = Bench::embedded();
    let key = |number: u64, who: &str| [&PREFIX[..], who.as_bytes(), &number.to_be_bytes()].concat();
    run(bench.store(), move |transaction| {
        // Numbers are made of sequences.
        while transaction.next_sequence() < (2 * u64::from(ITEMS)) >> SLOT_BITS {}
        for number in 0..u64::from(ITEMS) {
            transaction.put(Keyspace::Index, key(number, "doomed"), "");
            transaction.put(Keyspace::Index, key(u64::from(ITEMS) + number, "living"), "");
        }
        Ok(())
    })
    .unwrap();
    bench.reopen();
    run(bench.store(), move |transaction| {
        (0..u64::from(ITEMS)).for_each(|number| transaction.remove(Keyspace::Index, key(number, "doomed")));
        transaction.set_watermark(PREFIX, u64::from(ITEMS))
    })
    .unwrap();
    assert!(holds(bench.path(), "doomed"));
    assert_eq!(bench.store().scrub(&KEYSPACES), Ok(Scrubbed::Done));
    assert!(!holds(bench.path(), "doomed"));
    bench.reopen();
    let snapshot = bench.store().snapshot().unwrap();
    let left = snapshot.scan(Keyspace::Index, KeyRange::prefix(PREFIX), Direction::Forward).count();
    assert_eq!(left, ITEMS as usize);
}

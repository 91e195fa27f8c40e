//! Failures of the memory disk: a failed commit is there completely or not at all, and the store writes nothing after
//! it.

use crate::support::{Bench, START, get, put, run};
use std::time::Duration;
use storage::{CrashMode, Durability, Error, FreeSpace, Keyspace, Lanes, Time, WallClock, transact_with};

/// Writes two entries per commit until one fails; returns how many were acknowledged.
fn write_until_failure(bench: &Bench) -> u64 {
    for number in 0..100_u64 {
        let outcome = run(bench.store(), move |transaction| {
            transaction.next_sequence();
            transaction.put(Keyspace::Item, number.to_be_bytes(), "item");
            transaction.put(Keyspace::Index, number.to_be_bytes(), "index");
            Ok(())
        });
        if outcome.is_err() {
            return number;
        }
    }
    panic!("no commit failed");
}

fn count(bench: &Bench) -> (u64, u64) {
    let snapshot = bench.store().snapshot().unwrap();
    let count = |keyspace| {
        (0..100_u64).filter(|number| snapshot.get(keyspace, &number.to_be_bytes()).unwrap().is_some()).count()
            as u64
    };
    (count(Keyspace::Item), count(Keyspace::Index))
}

#[test]
fn every_commit_that_a_crash_strikes_is_there_whole_or_not_at_all() {
    for commits in 0..20 {
        for (mode, kept) in [(CrashMode::BeforeCommit, 0), (CrashMode::AfterCommit, 1)] {
            let mut bench = Bench::memory();
            bench.disk().crash_after(commits, mode);
            let acknowledged = write_until_failure(&bench);
            assert_eq!(acknowledged, commits);
            bench.crash();
            bench.open().unwrap();
            assert_eq!(count(&bench), (commits + kept, commits + kept));
            assert_eq!(bench.store().last_sequence(), commits + kept);
            put(bench.store(), "after", "1").unwrap();
        }
    }
}

/// Sets the entry `lazy` to `value` in a transaction that a crash may undo.
fn put_lazily(bench: &Bench, value: &'static str) {
    let ticket =
        transact_with::<_, Error>(bench.store(), Lanes::one(1), Durability::Buffered, move |transaction| {
            transaction.put(Keyspace::Item, "lazy", value);
            transaction.remove(Keyspace::Item, "gone");
            Ok(())
        });
    ticket.wait().unwrap();
}

#[test]
fn a_crash_undoes_buffered_commits_unless_a_synced_one_followed() {
    for (mode, synced_after, lazy, gone) in [
        (CrashMode::BeforeCommit, false, "1", Some("here")),
        (CrashMode::BeforeCommit, true, "3", None),
        (CrashMode::AfterCommit, false, "3", None),
    ] {
        let mut bench = Bench::memory();
        put(bench.store(), "gone", "here").unwrap();
        put(bench.store(), "lazy", "1").unwrap();
        let bytes = bench.store().stats().disk_bytes;
        for value in ["2", "3"] {
            put_lazily(&bench, value);
            assert_eq!(
                (get(bench.store(), "lazy").as_deref(), get(bench.store(), "gone")),
                (Some(value), None)
            );
        }
        if synced_after {
            put(bench.store(), "other", "1").unwrap();
        }
        bench.disk().crash_after(0, mode);
        put(bench.store(), "struck", "1").unwrap_err();
        bench.crash();
        bench.open().unwrap();
        assert_eq!(get(bench.store(), "lazy").as_deref(), Some(lazy), "{mode:?} {synced_after}");
        assert_eq!(get(bench.store(), "gone").as_deref(), gone, "{mode:?} {synced_after}");
        if gone.is_some() {
            assert_eq!(bench.store().stats().disk_bytes, bytes, "nothing is left of what was undone");
        }
        put_lazily(&bench, "4");
        put(bench.store(), "other", "2").unwrap();
        assert_eq!(get(bench.store(), "lazy").as_deref(), Some("4"));
    }
}

#[test]
fn after_a_full_disk_nothing_is_written_and_reads_go_on() {
    let bench = Bench::memory();
    put(bench.store(), "a", "1").unwrap();
    bench.disk().fail_after(0);
    assert!(matches!(put(bench.store(), "a", "2"), Err(Error::Io { .. })));
    for _ in 0..2 {
        assert!(
            matches!(put(bench.store(), "a", "3"), Err(Error::Poisoned { cause }) if cause.contains("space"))
        );
    }
    assert_eq!(get(bench.store(), "a").as_deref(), Some("1"));
    assert_eq!(bench.store().now(), Ok(Time::from_seconds(START)));
    assert!(bench.store().stats().poisoned);
    bench.pass(Duration::from_mins(1));
    assert_eq!(bench.store().now(), Ok(Time::from_seconds(START)), "the outcome is unknown: time stays");
}

#[test]
fn a_commit_beyond_the_lease_that_fails_leaves_no_time_to_show() {
    let bench = Bench::memory();
    put(bench.store(), "a", "1").unwrap();
    bench.pass(Duration::from_mins(1));
    bench.disk().fail_after(0);
    put(bench.store(), "a", "2").unwrap_err();
    assert!(matches!(bench.store().now(), Err(Error::Poisoned { .. })), "no time beyond the bound is shown");
}

/// How long after one renewal of the lease a write carries the next.
const RENEWAL: Duration = Duration::from_millis(1_100);

/// Lets the disk keep a commit and report that it failed, and checks the store until it is opened again.
fn check_time_after_a_failed_commit(mut bench: Bench, fail: impl Fn(), repair: impl Fn()) {
    put(bench.store(), "a", "1").unwrap();
    for _ in 0..3 {
        // In a directory the fifth renewal is the one that also writes the marker.
        for _ in 0..4 {
            bench.pass(RENEWAL);
            put(bench.store(), "b", "1").unwrap();
        }
        bench.pass(RENEWAL);
        fail();
        put(bench.store(), "a", "2").unwrap_err();
        let failed = bench.clock.wall();
        assert!(bench.store().stats().poisoned);
        for _ in 0..5 {
            bench.pass(Duration::from_secs(3));
            let (_, snapshot, now) = bench.store().snapshot_now().unwrap();
            assert_eq!(now, failed, "T13: no later time is shown while recovery may replay the write");
            assert!(snapshot.get(Keyspace::Item, b"a").unwrap().is_some(), "reads go on");
        }
        repair();
        bench.abandon();
        bench.open().unwrap();
        assert_eq!(get(bench.store(), "a").as_deref(), Some("2"), "what was written is there");
        let status = bench.store().clock_status().unwrap();
        assert!((0..=100).contains(&status.ahead_ms), "and time is that of the machine: {status:?}");
        put(bench.store(), "a", "1").unwrap();
    }
}

#[test]
fn t13_t16_after_a_failed_sync_time_stays_until_the_store_is_opened_again() {
    let bench = Bench::memory();
    let disk = bench.disk().clone();
    check_time_after_a_failed_commit(bench, move || disk.fail_sync_after(0), || ());
}

/// In a directory: the commit is in the journal, and the marker cannot be written.
#[test]
fn t13_t16_after_a_failed_commit_in_a_directory_time_stays_until_it_is_opened_again() {
    let mut bench = Bench::embedded();
    bench.durability = Durability::Sync;
    bench.reopen();
    let obstacle = bench.path().join("bolide.store.new");
    let other = obstacle.clone();
    let fail = move || std::fs::create_dir(&obstacle).unwrap();
    check_time_after_a_failed_commit(bench, fail, move || std::fs::remove_dir(&other).unwrap());
}

#[test]
fn without_room_only_what_makes_room_is_written_and_with_room_everything_again() {
    let bench = Bench::memory();
    let store = bench.store();
    put(store, "a", "1").unwrap();
    put(store, "b", "1").unwrap();
    let free_space = |free_bytes| Some(FreeSpace { free_bytes, reserved_bytes: 1000, unwritten_bytes: 100 });
    bench.disk().set_free_space(free_space(999));
    let sequence = store.last_sequence();
    let error = put(store, "a", "2").unwrap_err();
    assert_eq!(error, Error::DiskFull { wanted_bytes: 4, free_bytes: 999, kept_bytes: 1000 });
    assert!(
        error.to_string().contains("not enough disk space for 4 bytes: 999 bytes free, 1000 bytes reserved"),
        "{error}"
    );
    assert_eq!((get(store, "a").as_deref(), store.last_sequence()), (Some("1"), sequence));
    let one = |keyspace: Keyspace, value: Option<&'static str>| {
        run(store, move |transaction| {
            match value {
                Some(value) => transaction.put(keyspace, "b", value),
                None => transaction.remove(keyspace, "b"),
            }
            Ok(())
        })
    };
    assert!(one(Keyspace::Index, Some("")).is_err(), "an index grows, too");
    for (keyspace, value) in [
        (Keyspace::Item, None),
        (Keyspace::Index, None),
        (Keyspace::Feed, Some("gone")),
        (Keyspace::Catalog, Some("x")),
    ] {
        one(keyspace, value).unwrap_or_else(|error| panic!("{keyspace:?}: {error}"));
    }
    assert_eq!(get(store, "b"), None);
    let urgent = run(store, |transaction| {
        transaction.put(Keyspace::Item, "held", "1");
        assert!(transaction.check_free_space().is_err() && transaction.require_free_space().is_err());
        transaction.use_reserve();
        transaction.check_free_space()
    });
    assert_eq!((urgent, get(store, "held").as_deref()), (Ok(()), Some("1")));
    assert!(!store.stats().is_writable() && !store.stats().poisoned);
    bench.disk().set_free_space(free_space(100));
    assert!(one(Keyspace::Item, None).is_err(), "the memtables must always find space");
    // Key and value, of one byte each, must fit twice.
    bench.disk().set_free_space(free_space(1003));
    assert!(put(store, "a", "2").is_err());
    bench.disk().set_free_space(free_space(1004));
    put(store, "a", "2").unwrap();
    assert!(store.stats().is_writable());
}

#[test]
fn an_open_disk_is_not_opened_twice_but_a_crashed_one_is() {
    let bench = Bench::memory();
    let again = storage::MemoryStore::open(bench.disk().clone(), bench.options.clone());
    assert!(matches!(again.err(), Some(Error::Locked { .. })));
    bench.disk().crash_after(0, CrashMode::BeforeCommit);
    put(bench.store(), "a", "1").unwrap_err();
    let again = storage::MemoryStore::open(bench.disk().clone(), bench.options.clone()).unwrap();
    put(&again, "a", "2").unwrap();
    assert!(matches!(put(bench.store(), "a", "3"), Err(Error::Poisoned { .. })));
}

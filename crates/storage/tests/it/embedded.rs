//! Behaviour that only a store on disk has: a directory, a lock, a format, recovery and closing.

use crate::support::{Bench, get, put};
use std::fs;
use std::sync::Arc;
use std::sync::mpsc;
use storage::{
    ClockOptions, EmbeddedOptions, EmbeddedStore, Error, Keyspace, Lanes, ManualClock, Store, Time, transact,
};

fn options(path: &std::path::Path) -> EmbeddedOptions {
    let clock = Arc::new(ManualClock::new(Time::from_seconds(1_800_000_000)));
    EmbeddedOptions::new(path, ClockOptions::new(clock))
}

#[test]
fn a_second_process_is_told_that_the_directory_is_in_use() {
    let bench = Bench::embedded();
    let again = EmbeddedStore::open(options(bench.path()));
    assert_eq!(again.err(), Some(Error::Locked { path: bench.path().display().to_string() }));
}

/// One commit, and one sync, serve all callers that wait when the writer takes the next group.
#[test]
fn jobs_that_wait_together_are_committed_together() {
    let bench = Bench::embedded();
    let store = bench.store();
    let (say, hear) = mpsc::channel();
    let busy = transact(store, Lanes::one(0), move |_| hear.recv().map_err(|_| Error::Closed));
    let before = store.commits();
    let put = |number: u8| {
        transact(store, Lanes::one(1), move |transaction| {
            transaction.put(Keyspace::Item, [number], "");
            Ok::<_, Error>(())
        })
    };
    let tickets: Vec<_> = (0..100).map(put).collect();
    say.send(()).unwrap();
    busy.wait().unwrap();
    for ticket in tickets {
        ticket.wait().unwrap();
    }
    let commits = store.commits() - before;
    assert!(commits <= 2, "{commits} commits for 100 jobs");
}

#[test]
fn a_clean_store_says_so_and_has_everything() {
    let directory = tempfile::tempdir().unwrap();
    for round in 0..4 {
        let store = EmbeddedStore::open(options(directory.path())).unwrap();
        assert!(store.recovery().clean && store.recovery().dropped_bytes == 0);
        for earlier in 0..round {
            assert_eq!(get(&store, &format!("key {earlier}")).as_deref(), Some("value"));
        }
        put(&store, &format!("key {round}"), "value").unwrap();
        store.close().unwrap();
    }
}

/// Nothing is left to replay, and later writes have larger numbers than earlier ones.
#[test]
fn a_closed_store_has_an_empty_journal_unless_a_snapshot_is_open() {
    let directory = tempfile::tempdir().unwrap();
    let journal_bytes = || {
        let files = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path());
        let journals = files.filter(|path| path.extension().is_some_and(|extension| extension == "jnl"));
        journals.map(|path| fs::metadata(path).unwrap().len()).collect::<Vec<_>>()
    };
    for round in 0..4 {
        let store = EmbeddedStore::open(options(directory.path())).unwrap();
        let before = (round > 0).then(|| (round - 1).to_string());
        assert_eq!(get(&store, "key"), before);
        put(&store, "key", &round.to_string()).unwrap();
        let reader = (round == 2).then(|| store.snapshot().unwrap());
        store.close().unwrap();
        assert_eq!(journal_bytes() == [0], reader.is_none(), "{:?}", journal_bytes());
    }
}

#[test]
fn stores_of_other_formats_and_foreign_directories_are_refused_by_name() {
    let mut bench = Bench::embedded();
    bench.close();
    let marker = bench.path().join("bolide.store");
    let text = fs::read_to_string(&marker).unwrap();
    fs::write(&marker, text.replace("store 11", "store 12")).unwrap();
    assert_eq!(bench.open(), Err(Error::Unsupported { found: 12, supported: 11 }));
    fs::write(&marker, "something else").unwrap();
    assert!(matches!(bench.open(), Err(Error::Corrupt { what }) if what.contains("bolide.store")));
    fs::remove_file(&marker).unwrap();
    assert!(matches!(bench.open(), Err(Error::Corrupt { what }) if what.contains("bolide.store")));
    fs::write(&marker, text).unwrap();
    bench.open().unwrap();
}

#[test]
fn commits_that_are_known_to_be_durable_are_missed_when_they_are_gone() {
    let mut bench = Bench::embedded();
    put(bench.store(), "a", "1").unwrap();
    bench.close();
    let marker = bench.path().join("bolide.store");
    for state in ["clean", "open"] {
        fs::write(&marker, format!("bolide store 1\ncommit 4711\n{state}\n")).unwrap();
        assert!(matches!(bench.open(), Err(Error::Corrupt { what }) if what.contains("4711")));
    }
}

#[test]
fn many_groups_flow_through_flushes_and_come_back() {
    let mut bench = Bench::embedded();
    let value = "x".repeat(1000);
    for round in 0..30 {
        let value = value.clone();
        crate::support::run(bench.store(), move |transaction| {
            for number in 0..1000_u32 {
                let key = (round * 1000 + number).to_be_bytes();
                transaction.put(storage::Keyspace::Item, key, value.clone());
                transaction.put(storage::Keyspace::Index, key, "");
            }
            Ok(())
        })
        .unwrap();
    }
    assert!(bench.store().stats().disk_bytes > 10_000_000);
    bench.reopen();
    let snapshot = bench.store().snapshot().unwrap();
    for keyspace in [storage::Keyspace::Item, storage::Keyspace::Index] {
        let count = snapshot.scan(keyspace, storage::KeyRange::all(), storage::Direction::Backward).count();
        assert_eq!(count, 30_000);
    }
}

#[test]
fn the_data_directory_is_its_owners() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("new").join("data");
    EmbeddedStore::open(options(&path)).unwrap().close().unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
    let given = directory.path().join("given");
    fs::create_dir(&given).unwrap();
    fs::set_permissions(&given, fs::Permissions::from_mode(0o750)).unwrap();
    EmbeddedStore::open(options(&given)).unwrap().close().unwrap();
    assert_eq!(
        fs::metadata(&given).unwrap().permissions().mode() & 0o777,
        0o750,
        "the operator's choice stays"
    );
}

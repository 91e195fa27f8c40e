//! Backups: a snapshot is restored byte for byte, or damage is reported and nothing is written.

use std::sync::Arc;
use std::time::Duration;

use storage::{
    BackupReader, ClockOptions, Contents, EmbeddedOptions, EmbeddedStore, Error, Keyspace, Lanes,
    ManualClock, MemoryStore, Result, Store, TestClock, Time, transact,
};

const START: Time = Time::from_seconds(1_700_000_000);

fn clock(time: Time) -> ClockOptions {
    ClockOptions::new(Arc::new(ManualClock::new(time)))
}

fn fill(store: &dyn Store, from: u32, to: u32) {
    for number in from..to {
        let put = transact(store, Lanes::all(), move |tx| -> Result<()> {
            tx.next_sequence();
            for keyspace in Keyspace::ALL {
                let value = vec![number as u8; (number as usize % 7) * 100];
                tx.put(keyspace, number.to_be_bytes(), value);
            }
            Ok(())
        });
        put.wait().unwrap();
    }
}

fn bytes_of(store: &dyn Store) -> Vec<u8> {
    let mut backup = store.backup().unwrap();
    let mut bytes = Vec::new();
    while let Some(piece) = backup.next_piece().unwrap() {
        bytes.extend_from_slice(&piece);
    }
    bytes
}

fn contents(store: &dyn Store) -> Contents {
    Contents::of(&*store.snapshot().unwrap(), |_| ()).unwrap()
}

/// Reads a backup to its end.
fn verify(bytes: &[u8]) -> Result<Contents> {
    let mut reader = BackupReader::open(bytes)?;
    while reader.next_entry()?.is_some() {}
    Ok(reader.contents().unwrap().clone())
}

fn restore(bytes: &[u8], options: &EmbeddedOptions) -> Result<()> {
    EmbeddedStore::restore(options, &mut BackupReader::open(bytes)?, |_| ())
}

#[test]
fn t13_a_backup_comes_back_whole_and_time_goes_on_from_it() {
    let directory = tempfile::tempdir().unwrap();
    let wall = Arc::new(ManualClock::new(START));
    let store = EmbeddedStore::open(EmbeddedOptions::new(
        directory.path().join("a"),
        ClockOptions::new(wall.clone()),
    ));
    let store = store.unwrap();
    fill(&store, 0, 300);
    wall.advance(Duration::from_secs(100));
    let (before, sequence, time) = (contents(&store), store.last_sequence(), store.now().unwrap());
    let mut backup = store.backup().unwrap();
    assert_eq!((backup.info().time, backup.info().sequence), (time, sequence));
    let mut bytes = backup.next_piece().unwrap().unwrap().to_vec();
    // Later writes are not in it.
    fill(&store, 300, 400);
    while let Some(piece) = backup.next_piece().unwrap() {
        bytes.extend_from_slice(&piece);
    }
    assert_eq!(verify(&bytes), Ok(before.clone()));
    store.close().unwrap();
    let options = EmbeddedOptions::new(directory.path().join("b"), clock(START));
    restore(&bytes, &options).unwrap();
    let restored = EmbeddedStore::open(options.clone()).unwrap();
    assert!(restored.recovery().clean);
    assert_eq!((contents(&restored), restored.last_sequence()), (before, sequence));
    assert_eq!(restored.now().unwrap(), time, "T13: the wall clock is behind, and time is not");
    fill(&restored, 300, 310);
    restored.close().unwrap();
    let refused = restore(&bytes, &options);
    assert!(matches!(refused, Err(Error::NotEmpty { .. })), "{refused:?}");
}

#[test]
fn a_memory_store_is_restored_into_a_directory() {
    let store = MemoryStore::new(clock(START)).unwrap();
    let empty = bytes_of(&store);
    assert_eq!(verify(&empty).unwrap().total(), 0);
    fill(&store, 0, 20);
    let directory = tempfile::tempdir().unwrap();
    for (name, bytes) in [("empty", empty), ("full", bytes_of(&store))] {
        let options = EmbeddedOptions::new(directory.path().join(name), clock(START));
        restore(&bytes, &options).unwrap();
        let restored = EmbeddedStore::open(options).unwrap();
        assert_eq!(contents(&restored), verify(&bytes).unwrap());
    }
}

#[test]
fn every_damaged_byte_is_told_and_nothing_is_written() {
    let store = MemoryStore::new(clock(START)).unwrap();
    fill(&store, 0, 4);
    let bytes = bytes_of(&store);
    verify(&bytes).unwrap();
    let directory = tempfile::tempdir().unwrap();
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        let found = verify(&damaged);
        assert!(matches!(found, Err(Error::Backup { at: told, .. }) if told <= at as u64), "{at}: {found:?}");
    }
    for length in 0..bytes.len() {
        let found = verify(&bytes[..length]);
        assert!(matches!(found, Err(Error::Backup { .. })), "cut at {length}: {found:?}");
    }
    assert!(verify(&[&bytes[..], b"x"].concat()).is_err());
    let options = EmbeddedOptions::new(directory.path().join("b"), clock(START));
    let mut damaged = bytes.clone();
    let last = damaged.len() - 60;
    damaged[last] ^= 1;
    assert!(matches!(restore(&damaged, &options), Err(Error::Backup { .. })));
    assert_eq!(std::fs::read_dir(&options.path).unwrap().count(), 0);
    restore(&bytes, &options).unwrap();
}

#[test]
fn t29_a_backup_of_an_advanced_clock_wants_the_mode() {
    let test_clock = || ClockOptions { test_clock: TestClock::Runs, ..clock(START) };
    let store = MemoryStore::new(test_clock()).unwrap();
    store.advance_clock(1000).unwrap();
    let (bytes, directory) = (bytes_of(&store), tempfile::tempdir().unwrap());
    let options = |clock| EmbeddedOptions::new(directory.path().join("b"), clock);
    let refused = restore(&bytes, &options(clock(START)));
    assert_eq!(refused, Err(Error::TestClockStore { advanced_ms: 1_000_000 }));
    restore(&bytes, &options(test_clock())).unwrap();
    let restored = EmbeddedStore::open(options(test_clock())).unwrap();
    assert_eq!(restored.now().unwrap(), START.plus(Duration::from_secs(1000)));
}

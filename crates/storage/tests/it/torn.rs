//! A journal whose end is torn or garbled: recovery keeps a prefix of the commits, never part of one, and reports it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use storage::{
    ClockOptions, EmbeddedOptions, EmbeddedStore, Error, Keyspace, Lanes, ManualClock, Store, Time, transact,
};

const COMMITS: u64 = 40;

fn open(path: &Path) -> Result<EmbeddedStore, Error> {
    let clock = Arc::new(ManualClock::new(Time::from_seconds(1_800_000_000)));
    EmbeddedStore::open(EmbeddedOptions::new(path, ClockOptions::new(clock)))
}

/// Returns a store with some commits, copied while it is open, as a crash would leave it.
fn crashed_store() -> (tempfile::TempDir, u64) {
    let live = tempfile::tempdir().unwrap();
    let store = open(live.path()).unwrap();
    touch_every_keyspace(&store);
    for number in 1..=COMMITS {
        let outcome: Result<(), Error> = transact(&store, Lanes::all(), move |transaction| {
            assert_eq!(transaction.next_sequence(), number);
            for keyspace in [Keyspace::Item, Keyspace::Index] {
                transaction.put(keyspace, number.to_be_bytes(), vec![number as u8 | 0x80; 300]);
            }
            Ok(())
        })
        .wait();
        outcome.unwrap();
    }
    let crashed = tempfile::tempdir().unwrap();
    copy(live.path(), crashed.path());
    let journal = journal(crashed.path());
    let bytes = fs::read(&journal).unwrap();
    let length = bytes.iter().rposition(|&byte| byte != 0).unwrap() as u64 + 1;
    fs::write(&journal, &bytes[..length as usize]).unwrap();
    (crashed, length)
}

/// Creates all keyspaces now. The writer would otherwise create unused ones when it is idle, on a busy machine while
/// the store is being copied, and the copy would have half of one.
fn touch_every_keyspace(store: &EmbeddedStore) {
    let touched: Result<(), Error> = transact(store, Lanes::all(), |transaction| {
        for keyspace in Keyspace::ALL {
            transaction.put(keyspace, "touched", "");
        }
        Ok(())
    })
    .wait();
    touched.unwrap();
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn journal(path: &Path) -> PathBuf {
    let journals: Vec<_> = fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jnl"))
        .collect();
    assert_eq!(journals.len(), 1);
    journals[0].clone()
}

/// Returns how many commits there are, after checking that they are the first ones and complete.
fn whole_prefix(store: &EmbeddedStore) -> u64 {
    let snapshot = store.snapshot().unwrap();
    let last = store.last_sequence();
    for number in 1..=COMMITS {
        for keyspace in [Keyspace::Item, Keyspace::Index] {
            let value = snapshot.get(keyspace, &number.to_be_bytes()).unwrap();
            let expected = (number <= last).then(|| vec![number as u8 | 0x80; 300]);
            assert_eq!(value.map(|value| value.to_vec()), expected, "commit {number} of {last}");
        }
    }
    last
}

#[test]
fn a_journal_cut_anywhere_keeps_a_prefix_of_whole_commits() {
    let (crashed, length) = crashed_store();
    let mut random = fastrand::Rng::with_seed(1);
    let mut offsets: Vec<u64> = (0..12).map(|_| random.u64(length * 3 / 4..length)).collect();
    offsets.extend([length - 1, length - 4, length - 5, length]);
    let mut fewest = COMMITS;
    for cut in offsets {
        let directory = tempfile::tempdir().unwrap();
        copy(crashed.path(), directory.path());
        let file = fs::OpenOptions::new().write(true).open(journal(directory.path())).unwrap();
        file.set_len(cut).unwrap();
        let store = open(directory.path()).unwrap();
        let commits = whole_prefix(&store);
        assert_eq!(commits == COMMITS, cut == length, "cut at {cut} of {length}");
        let recovery = store.recovery();
        assert!(!recovery.clean && recovery.commits >= commits);
        if let Some(file) = &recovery.dropped_file {
            assert_eq!(fs::metadata(file).unwrap().len(), recovery.dropped_bytes);
        }
        assert_eq!(recovery.dropped_bytes > 0, recovery.dropped_file.is_some());
        fewest = fewest.min(commits);
    }
    assert!(fewest < COMMITS - 3);
}

#[test]
fn a_garbled_end_is_cut_off_and_reported_or_refused() {
    let (crashed, length) = crashed_store();
    let mut random = fastrand::Rng::with_seed(2);
    let (mut reported, mut refused) = (0, 0);
    for _ in 0..24 {
        let at = random.u64(length * 3 / 4..length) as usize;
        let directory = tempfile::tempdir().unwrap();
        copy(crashed.path(), directory.path());
        let journal = journal(directory.path());
        let mut bytes = fs::read(&journal).unwrap();
        let end = bytes.len().min(at + 8);
        bytes[at..end].iter_mut().for_each(|byte| *byte ^= 0xA5);
        fs::write(&journal, &bytes).unwrap();
        match open(directory.path()) {
            Ok(store) => {
                let commits = whole_prefix(&store);
                assert!(commits < COMMITS, "garbled at {at} of {length}");
                assert!(store.recovery().dropped_bytes > 0, "garbled at {at} of {length}");
                reported += 1;
            }
            Err(Error::Corrupt { .. }) => {
                let kept = directory.path().join("rescue").join(journal.file_name().unwrap());
                assert_eq!(fs::read(kept).unwrap(), bytes, "the journal is kept as it was");
                refused += 1;
            }
            Err(other) => panic!("garbled at {at} of {length}: {other}"),
        }
    }
    assert!(reported + refused == 24 && refused > 0);
}

/// The pages of a commit reach the disk in any order: a power loss may leave a hole in the last one before its end.
#[test]
fn a_hole_in_the_last_commit_is_a_commit_that_was_not_made() {
    let live = tempfile::tempdir().unwrap();
    let store = open(live.path()).unwrap();
    touch_every_keyspace(&store);
    let put = |key: &'static str, length: usize| {
        let put: Result<(), Error> = transact(&store, Lanes::all(), move |transaction| {
            // Not compressible, so that the journal has every byte of it.
            let mut random = fastrand::Rng::with_seed(3);
            let value: Vec<u8> = std::iter::repeat_with(|| random.u8(1..)).take(length).collect();
            transaction.put(Keyspace::Item, key, value);
            Ok(())
        })
        .wait();
        put.unwrap();
    };
    put("first", 100);
    put("last", 3 * 4096);
    let crashed = tempfile::tempdir().unwrap();
    copy(live.path(), crashed.path());
    let journal = journal(crashed.path());
    let mut bytes = fs::read(&journal).unwrap();
    let end = bytes.iter().rposition(|&byte| byte != 0).unwrap() + 1;
    let hole = (end - 2 * 4096) / 4096 * 4096;
    bytes[hole..hole + 4096].fill(0);
    fs::write(&journal, &bytes).unwrap();
    let recovered = open(crashed.path()).unwrap();
    let there =
        |key: &str| recovered.snapshot().unwrap().get(Keyspace::Item, key.as_bytes()).unwrap().is_some();
    assert_eq!([there("first"), there("last")], [true, false]);
    assert!(recovered.recovery().dropped_bytes > 3 * 4096);
    put("after", 10);
}

#[test]
fn a_store_whose_creation_was_cut_off_is_created_again() {
    let made = tempfile::tempdir().unwrap();
    drop(open(made.path()).unwrap());
    let mut files = Vec::new();
    list(made.path(), made.path(), &mut files);
    for left in 0..=files.len() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("bolide.store"), "bolide store 7\ncommit 0\nmaking\n").unwrap();
        for file in files[..left].iter().filter(|file| file.file_name().unwrap() != "bolide.store") {
            let target = directory.path().join(file);
            fs::create_dir_all(target.parent().unwrap()).unwrap();
            fs::copy(made.path().join(file), target).unwrap();
        }
        let store = open(directory.path()).unwrap();
        assert!(store.recovery().clean, "{left} files are left");
        touch_every_keyspace(&store);
        drop(store);
        assert!(open(directory.path()).unwrap().last_sequence() == 0);
    }
}

/// A recovery that is killed after fjall removed a journal file leaves a copy of it, and with it the removed data.
#[test]
fn t24_copies_that_a_killed_recovery_left_go_with_the_next_one() {
    let (crashed, _) = crashed_store();
    let left = crashed.path().join("rescue").join("7.jnl");
    fs::create_dir_all(left.parent().unwrap()).unwrap();
    fs::write(&left, "of a journal file that is gone").unwrap();
    let store = open(crashed.path()).unwrap();
    assert!(!store.recovery().clean && !left.exists());
}

/// Returns the files below a directory, by their paths from `root`, in order.
fn list(root: &Path, directory: &Path, files: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for entry in entries {
        if entry.is_dir() {
            list(root, &entry, files);
        } else {
            files.push(entry.strip_prefix(root).unwrap().to_owned());
        }
    }
}

#[test]
fn tables_that_nothing_leads_to_any_more_are_damage_and_no_empty_keyspace() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path()).unwrap();
    let put = transact(&store, Lanes::all(), |transaction| {
        transaction.put(Keyspace::Item, *b"key", "value");
        Ok::<_, Error>(())
    });
    put.wait().unwrap();
    store.close().unwrap();
    let keyspaces = fs::read_dir(directory.path().join("keyspaces")).unwrap();
    let with_tables: Vec<PathBuf> = keyspaces
        .map(|keyspace| keyspace.unwrap().path())
        .filter(|keyspace| {
            fs::read_dir(keyspace.join("tables")).is_ok_and(|mut tables| tables.next().is_some())
        })
        .collect();
    assert!(with_tables.len() > 1, "items, and the store's own");
    for keyspace in with_tables {
        let current = keyspace.join("current");
        let kept = fs::read(&current).unwrap();
        let number = u64::from_le_bytes(*kept.first_chunk().unwrap());
        for file in [current, keyspace.join(format!("v{number}"))] {
            let refuses = |how: &str| {
                let refused = open(directory.path()).err();
                assert!(
                    matches!(refused, Some(Error::Corrupt { .. })),
                    "{}, {how}: {refused:?}",
                    file.display()
                );
            };
            let kept = fs::read(&file).unwrap();
            fs::remove_file(&file).unwrap();
            refuses("missing");
            for at in (0..kept.len()).step_by(7) {
                let mut other = kept.clone();
                other[at] ^= 4;
                fs::write(&file, other).unwrap();
                refuses(&format!("byte {at}"));
            }
            fs::write(&file, kept).unwrap();
        }
    }
    let value = open(directory.path()).unwrap().snapshot().unwrap().get(Keyspace::Item, b"key").unwrap();
    assert_eq!(value.as_deref(), Some(&b"value"[..]));
}

/// fjall allocates memory for all parts that a table claims to have, and a failed allocation ends the process.
#[test]
fn a_table_that_says_to_have_more_parts_than_it_has_room_for_is_damage() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path()).unwrap();
    touch_every_keyspace(&store);
    store.close().unwrap();
    let keyspaces = fs::read_dir(directory.path().join("keyspaces")).unwrap();
    let tables = keyspaces.filter_map(|keyspace| fs::read_dir(keyspace.unwrap().path().join("tables")).ok());
    let tables: Vec<PathBuf> = tables.flatten().map(|table| table.unwrap().path()).collect();
    assert!(tables.len() > Keyspace::ALL.len(), "one for each, and the store's own");
    for table in tables {
        let kept = fs::read(&table).unwrap();
        let list = kept.windows(4).rposition(|bytes| bytes == b"TOC!").unwrap();
        for byte in 4..8 {
            let mut other = kept.clone();
            other[list + byte] ^= 0x60;
            fs::write(&table, other).unwrap();
            assert!(
                matches!(open(directory.path()), Err(Error::Corrupt { .. })),
                "{}: {byte}",
                table.display()
            );
        }
        fs::write(&table, kept).unwrap();
    }
    open(directory.path()).unwrap();
}

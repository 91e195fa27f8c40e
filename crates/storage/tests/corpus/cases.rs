//! Invariants for one input of the fuzz targets `backup` and `recovery`. The targets and the tests that replay their
//! corpora share this file.
//!
//! | target | an input is |
//! |---|---|
//! | `backup` | the frames of a backup: kind, length (two bytes), payload; checksums and end are added |
//! | `recovery` | damage to the files of a killed store: five bytes each, see [`Damage`] |

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use sha2::{Digest, Sha256};
use storage::{
    BackupReader, ClockOptions, Contents, Durability, EmbeddedOptions, EmbeddedStore, Error, Keyspace, Lanes,
    ManualClock, MemoryStore, Result, Store, Time, transact,
};

const MAGIC: &[u8] = b"bolide backup 1\n";
const END: u8 = 3;

/// Commits of the store to damage, half of them in tables and half in the journal.
const COMMITS: u64 = 6;

/// Damages of one input.
const DAMAGES_MAX: usize = 8;

/// Checks that a backup is refused, or restored exactly.
pub(crate) fn check_backup(data: &[u8]) {
    let _ = read(data);
    let backup = framed(data);
    let Ok((contents, store)) = read(&backup) else { return };
    assert_eq!(Contents::of(&*store.snapshot().expect("a snapshot"), |_| ()), Ok(contents.clone()));
    let mut again = store.backup().expect("a backup");
    let mut bytes = Vec::new();
    while let Some(piece) = again.next_piece().expect("memory can be read") {
        bytes.extend_from_slice(&piece);
    }
    assert_eq!(read(&bytes).expect("our own backup").0, contents);
    assert!(read(&backup[..backup.len() - 1]).is_err(), "one byte less");
    assert!(read(&[&backup[..], &[0]].concat()).is_err(), "one byte more");
    let mut other = backup.clone();
    let at = data.len() * 7 % other.len();
    other[at] ^= 1;
    assert!(read(&other).is_err(), "another byte at {at}");
}

/// Returns a complete backup of a store.
fn read(bytes: &[u8]) -> Result<(Contents, MemoryStore)> {
    let mut reader = BackupReader::open(bytes)?;
    let mut entries = Vec::new();
    while let Some(entry) = reader.next_entry()? {
        assert!(reader.position() <= bytes.len() as u64);
        entries.push(entry);
    }
    let contents = reader.contents().expect("it was read to its end").clone();
    assert_eq!(contents.total(), entries.len() as u64);
    let store = MemoryStore::new(ClockOptions::new(Arc::new(ManualClock::new(Time::from_seconds(1)))))?;
    let put = transact(&store, Lanes::all(), move |tx| {
        for (keyspace, key, value) in entries {
            tx.put(keyspace, key, value);
        }
        Ok::<_, Error>(())
    });
    put.wait()?;
    Ok((contents, store))
}

/// Returns a backup of these frames, with valid checksums and a valid end.
fn framed(data: &[u8]) -> Vec<u8> {
    let mut backup = MAGIC.to_vec();
    let mut entries = [0_u64; Keyspace::ALL.len()];
    let mut rest = data;
    while let [kind, low, high, behind @ ..] = rest {
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(behind.len());
        let (payload, behind) = behind.split_at(length);
        frame(&mut backup, *kind, payload);
        count(&mut entries, payload);
        rest = behind;
    }
    let mut end = vec![Keyspace::ALL.len() as u8];
    for entries in entries {
        end.extend_from_slice(&entries.to_le_bytes());
    }
    end.extend_from_slice(&Sha256::digest(&backup));
    frame(&mut backup, END, &end);
    backup
}

fn frame(backup: &mut Vec<u8>, kind: u8, payload: &[u8]) {
    let start = backup.len();
    backup.push(kind);
    backup.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    backup.extend_from_slice(payload);
    let checksum = crc32fast::hash(&backup[start..]);
    backup.extend_from_slice(&checksum.to_le_bytes());
}

/// Counts the entries of a frame, if it is a data frame.
fn count(entries: &mut [u64; Keyspace::ALL.len()], payload: &[u8]) {
    let Some((keyspace, mut rest)) = payload.split_first() else { return };
    let Some(entries) = entries.get_mut(usize::from(*keyspace)) else { return };
    while let Some(([k0, k1, v0, v1, v2, v3], behind)) = rest.split_first_chunk() {
        let value = u32::from_le_bytes([*v0, *v1, *v2, *v3]) as usize;
        let length = usize::from(u16::from_le_bytes([*k0, *k1])) + value;
        let Some(behind) = behind.get(length..) else { return };
        *entries += 1;
        rest = behind;
    }
}

/// Checks that a store with damaged files is refused, or has a prefix of its commits, each of them complete, or fails
/// to read them with an error.
pub(crate) fn check_recovery(data: &[u8]) {
    let directory = tempfile::tempdir().expect("a directory");
    for (name, bytes) in damaged(data) {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().expect("it has a folder")).expect("a folder");
        fs::write(path, bytes).expect("a file");
    }
    let Ok(store) = open(directory.path()) else { return };
    let last = store.last_sequence();
    assert!(last <= COMMITS, "{last}");
    let snapshot = store.snapshot().expect("a snapshot");
    for number in 1..=COMMITS {
        for keyspace in [Keyspace::Item, Keyspace::Index] {
            let Ok(value) = snapshot.get(keyspace, &number.to_be_bytes()) else { continue };
            let expected = (number <= last).then(|| value_of(number));
            assert_eq!(
                value.map(|value| value.to_vec()),
                expected,
                "{keyspace:?} of commit {number} of {last}"
            );
        }
    }
    drop(snapshot);
    // Whether it can be written to and closed does not matter; that it terminates does.
    let _ = commit(&store, last + 1);
    let _ = store.close();
}

fn value_of(number: u64) -> Vec<u8> {
    vec![number as u8 | 0x80; 40]
}

fn open(path: &Path) -> Result<EmbeddedStore> {
    let clock = Arc::new(ManualClock::new(Time::from_seconds(1_800_000_000)));
    let mut options = EmbeddedOptions::new(path, ClockOptions::new(clock));
    options.durability = Durability::Buffered;
    EmbeddedStore::open(options)
}

fn commit(store: &EmbeddedStore, number: u64) -> Result<()> {
    let put = transact(store, Lanes::all(), move |tx| {
        tx.next_sequence();
        for keyspace in [Keyspace::Item, Keyspace::Index] {
            tx.put(keyspace, number.to_be_bytes(), value_of(number));
        }
        Ok(())
    });
    put.wait()
}

type Files = Vec<(PathBuf, Vec<u8>)>;

/// The damage that an input does to one file.
struct Damage {
    /// The file, modulo the number of files.
    file: usize,
    /// The offset of the byte, modulo the length.
    at: usize,
    kind: u8,
    byte: u8,
}

impl Damage {
    fn read([file, a0, a1, kind, byte]: [u8; 5]) -> Damage {
        let at = usize::from(u16::from_le_bytes([a0, a1]));
        Damage { file: usize::from(file), at, kind, byte }
    }

    fn inflict(&self, files: &mut Files) {
        if files.is_empty() {
            return;
        }
        let file = self.file % files.len();
        let bytes = &mut files[file].1;
        let at = self.at % (bytes.len() + 1);
        match self.kind % 5 {
            0 => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= self.byte),
            1 => bytes.truncate(at),
            2 => bytes.insert(at, self.byte),
            3 => bytes.extend_from_within(at..),
            _ => drop(files.remove(file)),
        }
    }
}

/// Returns the files of a killed store, with the damage of an input.
fn damaged(data: &[u8]) -> Files {
    static KILLED: OnceLock<Files> = OnceLock::new();
    let mut files = KILLED.get_or_init(killed).clone();
    for damage in data.as_chunks().0.iter().take(DAMAGES_MAX) {
        Damage::read(*damage).inflict(&mut files);
    }
    files
}

/// Returns a store with commits in tables and in the journal, copied while it is open, as a kill leaves it.
fn killed() -> Files {
    let directory = tempfile::tempdir().expect("a directory");
    for half in [1..=COMMITS / 2, COMMITS / 2 + 1..=COMMITS] {
        let store = open(directory.path()).expect("a store");
        let last = *half.end();
        half.for_each(|number| commit(&store, number).expect("a commit"));
        if last == COMMITS {
            return files(directory.path(), directory.path());
        }
        store.close().expect("closed");
    }
    unreachable!("the second half is the last")
}

/// Returns all files below a folder, without trailing zeroes: journals are allocated in advance.
fn files(root: &Path, folder: &Path) -> Files {
    let mut all = Files::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            all.extend(files(root, &path));
            continue;
        }
        let mut bytes = fs::read(&path).expect("a file");
        if path.extension().is_some_and(|extension| extension == "jnl") {
            bytes.truncate(bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
        }
        all.push((path.strip_prefix(root).expect("it lies there").to_path_buf(), bytes));
    }
    all.sort();
    all
}

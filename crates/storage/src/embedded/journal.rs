//! fjall's journal: one file for data that is in memory alone, and older ones for data that is being flushed to tables.
//!
//! fjall keeps a checksum of each commit's entries, but not of the sequence number before them; and that number decides
//! which version of a key is the newest, and which commits the tables already have. It also stops reading a file at the
//! first incomplete commit, and continues with the next file. So a single flipped bit could let an older commit undo a
//! newer one, or drop a commit silently. Each commit of this crate therefore has a *floor* among its entries, the
//! number that was next before it:
//!
//! ```text
//!   floor 7   number 7        floor 9   number 9        floor 10  number 10
//!             8 was taken by a flush
//! ```
//!
//! A commit's number is its own floor or a little more, and below the floor of the next commit.

use std::path::{Path, PathBuf};
use std::{fs, io};

use xxhash_rust::xxh3::xxh3_64;

use crate::{Error, Result};

/// The key of the floor, in the store's own keyspace; the last entry of a commit.
pub(super) const FLOOR_KEY: &[u8] = b"floor";

/// More numbers than flushes and compactions can take between a commit's floor and its number.
const LEAP: u64 = 1 << 20;

const START: u8 = 1;
const ITEM: u8 = 2;
const END: u8 = 3;
const END_MAGIC: &[u8; 4] = b"FJL\x03";

/// Returns whether this is a file of the journal.
pub(super) fn is_journal(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "jnl")
}

/// Empties the journal of a closed database that has everything in tables. fjall would otherwise read all of it on
/// opening, up to 64 MB in most of a second, to find that out. The file itself stays: without one fjall would restart
/// its sequence numbers. Where there are several files, something is unusual, and they stay as they are.
pub(super) fn empty(path: &Path) -> Result<()> {
    let empty = || {
        let journals = journals(path)?;
        let [journal] = &*journals else { return Ok(()) };
        let file = fs::OpenOptions::new().write(true).open(journal)?;
        file.set_len(0)?;
        file.sync_all()
    };
    empty().map_err(|error: io::Error| Error::io("empty the journal", &error))
}

/// Refuses a store whose journal has a commit with a wrong number, or ends too early in a file that another one
/// follows: such a file was synced before the next one was begun. fjall decides where the newest file ends.
pub(super) fn check(path: &Path) -> Result<()> {
    let cannot = |error: io::Error| Error::io("read the journal", &error);
    let journals = journals(path).map_err(cannot)?;
    let mut least = 0;
    for (at, journal) in journals.iter().enumerate() {
        let bytes = fs::read(journal).map_err(cannot)?;
        let mut rest = &*bytes;
        while let Some((commit, behind)) = Commit::split(rest) {
            if let Some(floor) = commit.floor {
                if !(floor..floor.saturating_add(LEAP)).contains(&commit.number) || floor < least {
                    let what = format!("the commit at byte {} has a wrong number", bytes.len() - rest.len());
                    return Err(damaged(journal, &what));
                }
                least = commit.number.saturating_add(1);
            }
            rest = behind;
        }
        let is_sealed = at + 1 < journals.len();
        if is_sealed && rest.iter().any(|byte| *byte != 0) {
            let what = format!("no commit follows at byte {}", bytes.len() - rest.len());
            return Err(damaged(journal, &what));
        }
    }
    Ok(())
}

/// Returns the files of the journal, the oldest first.
fn journals(path: &Path) -> io::Result<Vec<PathBuf>> {
    let paths = fs::read_dir(path)?.map(|entry| Ok(entry?.path()));
    let mut journals = paths.collect::<io::Result<Vec<_>>>()?;
    journals.retain(|path| is_journal(path));
    journals.sort_by_key(|path| path.file_stem()?.to_str()?.parse::<u64>().ok());
    Ok(journals)
}

fn damaged(journal: &Path, what: &str) -> Error {
    Error::Corrupt { what: format!("{}: {what}", journal.display()) }
}

/// The parts of a commit that decide its position.
#[derive(Debug, PartialEq, Eq)]
struct Commit {
    number: u64,
    /// `None` in what the scrub writes, and in commits of versions that wrote no floor.
    floor: Option<u64>,
}

impl Commit {
    /// Returns the commit at the beginning of `bytes`, if it is complete, and the bytes after it. Little-endian:
    ///
    /// | | |
    /// |---|---|
    /// | start | tag 1, entries (4 bytes), number (8) |
    /// | each entry | tag 2, kind (1), compression (1), keyspace (8), lengths of key (2), of value (4) and of value here (4); both |
    /// | end | tag 3, checksum of all entries (8), four fixed bytes |
    fn split(bytes: &[u8]) -> Option<(Commit, &[u8])> {
        let bytes = tagged(bytes, START)?;
        let (entries, bytes) = bytes.split_first_chunk()?;
        let (number, first) = bytes.split_first_chunk()?;
        let (mut rest, mut floor) = (first, None);
        for _ in 0..u32::from_le_bytes(*entries) {
            let (key, value);
            (key, value, rest) = entry(rest)?;
            floor = if key == FLOOR_KEY { value.try_into().ok().map(u64::from_le_bytes) } else { None };
        }
        let entries = &first[..first.len() - rest.len()];
        let (checksum, rest) = tagged(rest, END)?.split_first_chunk()?;
        let rest = rest.strip_prefix(END_MAGIC)?;
        let is_whole = xxh3_64(entries) == u64::from_le_bytes(*checksum);
        is_whole.then_some((Commit { number: u64::from_le_bytes(*number), floor }, rest))
    }
}

/// Returns key and value of the entry at the beginning of `bytes`, and the bytes after it.
fn entry(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (head, rest) = tagged(bytes, ITEM)?.split_first_chunk::<20>()?;
    let [.., k0, k1, _, _, _, _, v0, v1, v2, v3] = *head;
    let (key, rest) = rest.split_at_checked(u16::from_le_bytes([k0, k1]).into())?;
    let (value, rest) = rest.split_at_checked(u32::from_le_bytes([v0, v1, v2, v3]) as usize)?;
    Some((key, value, rest))
}

fn tagged(bytes: &[u8], tag: u8) -> Option<&[u8]> {
    let (found, rest) = bytes.split_first()?;
    (*found == tag).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::{Commit, END, END_MAGIC, LEAP, START, check, journals};
    use crate::{
        ClockOptions, EmbeddedOptions, EmbeddedStore, Error, Keyspace, Lanes, ManualClock, Time, transact,
    };
    use std::fs;
    use std::sync::Arc;
    use xxhash_rust::xxh3::xxh3_64;

    /// Returns the journal of a store with some commits, and the offset of each.
    fn journal() -> (Vec<u8>, Vec<usize>) {
        let directory = tempfile::tempdir().unwrap();
        let clock = ClockOptions::new(Arc::new(ManualClock::new(Time::from_seconds(1_800_000_000))));
        let store = EmbeddedStore::open(EmbeddedOptions::new(directory.path(), clock)).unwrap();
        for number in 0..6_u64 {
            let put = transact(&store, Lanes::all(), move |transaction| {
                transaction.put(Keyspace::Item, number.to_be_bytes(), "floor");
                Ok::<_, Error>(())
            });
            put.wait().unwrap();
        }
        let bytes = fs::read(&journals(directory.path()).unwrap()[0]).unwrap();
        let (mut starts, mut rest) = (Vec::new(), &*bytes);
        while let Some((_, behind)) = Commit::split(rest) {
            starts.push(bytes.len() - rest.len());
            rest = behind;
        }
        let end = bytes.len() - rest.len();
        (bytes[..end].to_vec(), starts)
    }

    fn checked(files: &[&[u8]]) -> Result<(), Error> {
        let directory = tempfile::tempdir().unwrap();
        for (number, bytes) in files.iter().enumerate() {
            // The tenth comes after the ninth, not after the first.
            fs::write(directory.path().join(format!("{}.jnl", number + 9)), bytes).unwrap();
        }
        check(directory.path())
    }

    #[test]
    fn no_bit_of_a_number_is_turned_over_unnoticed_if_it_matters() {
        let (bytes, starts) = journal();
        assert!(starts.len() >= 6);
        assert_eq!(checked(&[&bytes]), Ok(()));
        for (at, start) in starts.iter().enumerate() {
            let (commit, _) = Commit::split(&bytes[*start..]).unwrap();
            assert!(commit.floor.is_some_and(|floor| floor <= commit.number), "{commit:?}");
            for bit in 0..u64::BITS {
                let mut damaged = bytes.clone();
                let number = (commit.number ^ 1 << bit).to_le_bytes();
                damaged[start + 5..start + 13].copy_from_slice(&number);
                let number = u64::from_le_bytes(number);
                let next = starts.get(at + 1).map(|next| Commit::split(&bytes[*next..]).unwrap().0);
                let most = next.and_then(|next| next.floor).or(commit.floor.map(|floor| floor + LEAP));
                let stays_in_place = commit.floor <= Some(number) && Some(number) < most;
                assert_eq!(
                    checked(&[&damaged]).is_ok(),
                    stays_in_place,
                    "bit {bit} of commit {at}: {commit:?}"
                );
            }
        }
    }

    #[test]
    fn only_the_newest_file_may_end_too_early() {
        let (bytes, starts) = journal();
        let (older, newer) = bytes.split_at(starts[3]);
        let allocated = [older, &[0; 100]].concat();
        for older in [older, &allocated] {
            assert_eq!(checked(&[older, newer]), Ok(()));
            assert_eq!(checked(&[older, &newer[..newer.len() - 1]]), Ok(()), "a torn end");
        }
        let torn = &older[..older.len() - 1];
        assert!(matches!(checked(&[torn, newer]), Err(Error::Corrupt { .. })));
        let mut other = older.to_vec();
        other[starts[1] + 40] ^= 1;
        assert!(matches!(checked(&[&other, newer]), Err(Error::Corrupt { .. })));
        assert_eq!(checked(&[&other]), Ok(()), "that is for fjall to find");
        assert!(matches!(checked(&[newer, older]), Err(Error::Corrupt { .. })), "the wrong way round");
    }

    /// The scrub takes numbers between the floor of a commit and its own.
    #[test]
    fn commits_without_a_floor_stand_where_they_are() {
        let (bytes, starts) = journal();
        let (first, second) = (&bytes[starts[1]..starts[2]], &bytes[starts[2]..starts[3]]);
        let taken = Commit::split(second).and_then(|(commit, _)| commit.floor).unwrap();
        let mut beside = vec![START];
        beside.extend_from_slice(&0_u32.to_le_bytes());
        beside.extend_from_slice(&taken.to_le_bytes());
        beside.push(END);
        beside.extend_from_slice(&xxh3_64(&[]).to_le_bytes());
        beside.extend_from_slice(END_MAGIC);
        assert_eq!(Commit::split(&beside), Some((Commit { number: taken, floor: None }, &[][..])));
        assert_eq!(checked(&[&[first, &beside, second].concat()]), Ok(()));
    }
}

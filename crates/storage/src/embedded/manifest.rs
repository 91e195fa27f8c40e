//! Checks the lists of tables of the keyspaces. fjall keeps a list of them, `v` and a number, and a file `current` with
//! that number and the list's checksum. It checks neither the checksum nor whether the file exists: it takes a keyspace
//! without `current` for a new one, and a list with a flipped bit may have fewer tables. Their contents would be lost
//! silently, so this module checks both. And each table ends with a list of its parts, for which fjall allocates memory
//! before it verifies a checksum.

use std::fs;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_128;

use crate::{Error, Result};

const CURRENT: &str = "current";
/// The one checksum kind this module can compute.
const XXH3: u8 = 0;

/// The footer of a table: `SFA!`, two bytes of versions, 16 of the checksum of the list of its parts, 8 of the list's
/// offset, 8 of its length.
const END_BYTES: u64 = 38;
const LIST_AT: u64 = 22;
/// The list: `TOC!`, the number of parts (4), and for each of them at least position, length (8 each) and the length of its name.
const LIST_HEAD_BYTES: u64 = 8;
const PART_MIN_BYTES: u64 = 18;

/// Refuses a store if the list of a keyspace's tables is missing or damaged, or a table's own list is longer than the table.
pub(super) fn check(keyspaces: &Path) -> Result<()> {
    let Ok(keyspaces) = fs::read_dir(keyspaces) else { return Ok(()) };
    for keyspace in keyspaces {
        let keyspace = keyspace.map_err(|error| Error::io("list the keyspaces", &error))?.path();
        let tables = tables(&keyspace.join("tables"))?;
        let Some(current) = read(&keyspace.join(CURRENT))? else {
            if !tables.is_empty() {
                return Err(damaged(&keyspace, "it has tables, but the file 'current' is missing"));
            }
            continue;
        };
        let Some((number, checksum)) = parse(&current) else {
            return Err(damaged(&keyspace, "its file 'current' names no list of tables"));
        };
        let list = read(&keyspace.join(format!("v{number}")))?;
        if list.is_none_or(|list| xxh3_128(&list) != checksum) {
            return Err(damaged(
                &keyspace,
                &format!("the list of its tables, 'v{number}', is missing or damaged"),
            ));
        }
        for table in tables {
            if claims_too_much(&table).map_err(|error| Error::io("look at a table", &error))? {
                return Err(damaged(&table, "the list of its parts is longer than the file"));
            }
        }
    }
    Ok(())
}

/// Returns the number of the current list of tables of a keyspace; `None` if there is none.
pub(super) fn current(keyspace: &Path) -> Result<Option<u64>> {
    let current = read(&keyspace.join(CURRENT))?;
    Ok(current.and_then(|current| parse(&current)).map(|(number, _)| number))
}

fn tables(folder: &Path) -> Result<Vec<PathBuf>> {
    let list = || fs::read_dir(folder)?.map(|table| Ok(table?.path())).collect::<io::Result<_>>();
    match list() {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        listed => listed.map_err(|error| Error::io("list the tables", &error)),
    }
}

/// Returns whether a table's list claims more parts than it has bytes for. fjall notices everything else that is wrong
/// with a table. A table that was still being written when the machine stopped has no such footer and is not used.
fn claims_too_much(table: &Path) -> io::Result<bool> {
    let mut file = fs::OpenOptions::new().read(true).open(table)?;
    let Some(end) = file.metadata()?.len().checked_sub(END_BYTES) else { return Ok(false) };
    let mark: [u8; 4] = read_at(&mut file, end)?;
    let list = u64::from_le_bytes(read_at(&mut file, end + LIST_AT)?);
    let Some(list_bytes) =
        end.checked_sub(list).and_then(|list_bytes| list_bytes.checked_sub(LIST_HEAD_BYTES))
    else {
        return Ok(false);
    };
    let list_mark: [u8; 4] = read_at(&mut file, list)?;
    let parts = u32::from_le_bytes(read_at(&mut file, list + 4)?);
    Ok(mark == *b"SFA!" && list_mark == *b"TOC!" && u64::from(parts) * PART_MIN_BYTES > list_bytes)
}

fn read_at<const LENGTH: usize>(file: &mut fs::File, at: u64) -> io::Result<[u8; LENGTH]> {
    let mut bytes = [0; LENGTH];
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Returns the number of the list, its checksum and the kind of checksum.
fn parse(current: &[u8]) -> Option<(u64, u128)> {
    let (number, rest) = current.split_first_chunk()?;
    let (checksum, kind) = rest.split_first_chunk()?;
    (kind == [XXH3]).then_some((u64::from_le_bytes(*number), u128::from_le_bytes(*checksum)))
}

fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("read the list of a keyspace's tables", &error)),
    }
}

fn damaged(keyspace: &Path, what: &str) -> Error {
    Error::Corrupt { what: format!("{}: {what}", keyspace.display()) }
}

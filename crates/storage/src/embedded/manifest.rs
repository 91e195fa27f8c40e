//! Which tables of a keyspace count. fjall keeps a list of them, `v` and a number, and a file `current` with that number and
//! the list's checksum. It looks at neither checksum nor absence: a keyspace without `current` is a new one to it, and a list
//! with a bit turned over may have fewer tables. What was in them would be gone without a word, so it is looked at here.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use xxhash_rust::xxh3::xxh3_128;

use crate::{Error, Result};

const CURRENT: &str = "current";
/// How a checksum was made that we can make again.
const XXH3: u8 = 0;

/// Refuses a store if the list of a keyspace's tables is missing or damaged.
pub(super) fn check(keyspaces: &Path) -> Result<()> {
    let Ok(keyspaces) = fs::read_dir(keyspaces) else { return Ok(()) };
    for keyspace in keyspaces {
        let keyspace = keyspace.map_err(|error| Error::io("list the keyspaces", &error))?.path();
        let Some(current) = read(&keyspace.join(CURRENT))? else {
            let has_tables = fs::read_dir(keyspace.join("tables")).is_ok_and(|mut all| all.next().is_some());
            if has_tables {
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
    }
    Ok(())
}

/// The number of the list, its checksum, and how that was made.
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

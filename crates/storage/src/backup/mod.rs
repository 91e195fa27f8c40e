//! Backups: a store at one snapshot as a stream of bytes, and such a stream read back.
//!
//! ```text
//!   "bolide backup 1\n"                                        identifies the file to a reader
//!   frame: kind u8, length u32, payload, CRC-32 u32            all numbers little-endian; the CRC is of all before it
//!     1 head   time u64 (ms), store record (85 bytes)          once, first
//!     2 data   keyspace u8, then entries                       keyspaces and keys in order, no key twice
//!              entry: key length u16, value length u32, key, value
//!     3 end    keyspaces u8, entries u64 of each, SHA-256      once, last: of everything before this frame
//! ```
//!
//! The CRC of a frame locates damage, the SHA-256 proves that the file is complete. The format does not depend on the
//! kind of store; a backup of a memory store can be restored into a directory.
//!
//! The clock's bound in the record is the time of the backup (T13): the restored store continues from there, or from
//! the wall clock if that is later, so whatever had expired by then stays expired.

mod reader;
mod writer;

pub use reader::BackupReader;
pub use writer::Backup;

use sha2::{Digest, Sha256};

use crate::record::StoreRecord;
use crate::{Keyspace, Read, Result, Time};

/// The first line of a backup.
const MAGIC: &[u8; 16] = b"bolide backup 1\n";
const HEAD: u8 = 1;
const DATA: u8 = 2;
const END: u8 = 3;
/// The kind and length before a payload, and the CRC after it.
const FRAME_HEAD: usize = 1 + 4;
const CRC_BYTES: usize = 4;
/// The payload size beyond which a data frame is full; only a single large entry makes a larger one.
const PIECE_BYTES: usize = 256 << 10;
/// The largest frame accepted.
const FRAME_MAX: usize = PIECE_BYTES + crate::MAX_KEY_BYTES + crate::MAX_VALUE_BYTES + 64;

/// The description in the head of a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupInfo {
    /// The store's time when the backup was taken.
    pub time: Time,
    /// How far the test clock had been advanced.
    pub advanced_ms: u64,
    /// Whether the clock was suspect.
    pub clock_is_suspect: bool,
    /// The last sequence in the backup.
    pub sequence: u64,
    record: StoreRecord,
}

impl BackupInfo {
    fn new(time: Time, record: StoreRecord) -> Self {
        Self {
            time,
            advanced_ms: record.clock.advanced_ms,
            clock_is_suspect: record.clock.suspicion.is_some(),
            sequence: record.sequence,
            record,
        }
    }

    /// Returns the record for the store that is restored from this backup.
    pub(crate) fn record(&self) -> &StoreRecord {
        &self.record
    }
}

/// The contents of a backup or a store: the number of entries, and one hash over all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// Entries of each keyspace, in the order of [`Keyspace::ALL`].
    pub entries: [u64; Keyspace::ALL.len()],
    /// The SHA-256 of all entries in order.
    pub hash: [u8; 32],
}

impl Contents {
    /// Reads every entry of a snapshot.
    pub fn of(reader: &dyn Read, mut seen: impl FnMut(u64)) -> Result<Self> {
        let mut sum = Sum::default();
        for keyspace in Keyspace::ALL {
            for entry in reader.scan(keyspace, crate::KeyRange::all(), crate::Direction::Forward) {
                let (key, value) = entry?;
                sum.add(keyspace, &key, &value);
                seen((key.len() + value.len()) as u64);
            }
        }
        Ok(sum.finish())
    }

    /// Returns the number of entries.
    pub fn total(&self) -> u64 {
        self.entries.iter().sum()
    }
}

/// Contents while they are being counted.
#[derive(Clone, Default)]
struct Sum {
    entries: [u64; Keyspace::ALL.len()],
    hash: Sha256,
}

impl Sum {
    fn add(&mut self, keyspace: Keyspace, key: &[u8], value: &[u8]) {
        self.entries[keyspace.number()] += 1;
        self.hash.update([keyspace.number() as u8]);
        self.hash.update(entry_head(key, value));
        self.hash.update(key);
        self.hash.update(value);
    }

    fn finish(self) -> Contents {
        Contents { entries: self.entries, hash: self.hash.finalize().into() }
    }
}

/// Returns the two lengths before an entry.
fn entry_head(key: &[u8], value: &[u8]) -> [u8; 6] {
    let [k0, k1] = (key.len() as u16).to_le_bytes();
    let [v0, v1, v2, v3] = (value.len() as u32).to_le_bytes();
    [k0, k1, v0, v1, v2, v3]
}

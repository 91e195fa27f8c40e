//! The read interface that snapshots and transactions share.

use crate::{Direction, KeyRange, Keyspace, Result};
use bytes::Bytes;

/// A lazy scan over a range of one keyspace, as keys and values.
pub type Scan<'a> = Box<dyn Iterator<Item = Result<(Bytes, Bytes)>> + 'a>;

/// A readable state: every read sees the same one.
pub trait Read {
    /// Returns the value stored under `key`.
    fn get(&self, keyspace: Keyspace, key: &[u8]) -> Result<Option<Bytes>>;

    /// Returns the entries of `range` in order. Entries are read lazily.
    fn scan(&self, keyspace: Keyspace, range: KeyRange, direction: Direction) -> Scan<'_>;
}

/// A store as of one commit. It holds disk space back while it is open: drop it soon.
pub trait Snapshot: Read + Send + Sync {}

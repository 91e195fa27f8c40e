//! Reading: one small trait that snapshots and transactions share.

use crate::{Direction, KeyRange, Keyspace, Result};
use bytes::Bytes;

/// A lazy walk over a range of one keyspace, as key and value.
pub type Scan<'a> = Box<dyn Iterator<Item = Result<(Bytes, Bytes)>> + 'a>;

/// Something that can be read: every read sees the same state.
pub trait Read {
    /// The value stored under `key`.
    fn get(&self, keyspace: Keyspace, key: &[u8]) -> Result<Option<Bytes>>;

    /// The entries of `range`, one after another. Nothing is read before it is asked for.
    fn scan(&self, keyspace: Keyspace, range: KeyRange, direction: Direction) -> Scan<'_>;
}

/// A store as it was at one moment. It holds space back while it lives: drop it soon.
pub trait Snapshot: Read + Send + Sync {}

//! Continuation tokens: the position from which a reader resumes, as text that a client hands back.
//!
//! A token names the last entry that was visited, not a count: entries may appear and disappear on either side of it.
//! It holds values and numbers of items, never keys of an index generation, so that it stays valid over a change of the
//! indexing policy. Every token ends with a checksum, so that a truncated or altered token is refused. A query's
//! token is bound to what its position depends on, and refused with anything else (decision 0028).
//!
//! ```text
//! feed    0x46, version 2, time u64, then for each partition: its number u32, sequence u64
//! history 0x48, version 2, then for each partition: its number u32, position (32 bytes)
//! query   0x51, version 2, binding u64, partition u32, position, resume
//!           position   kind u8, then what the kind needs; byte strings with their length u16 before them
//!           resume     passed u64; 0, or 1, number u64, rows u32; how the last row's key follows (bit 0: whole, bit 1:
//!                      shortened) and whether the order is made in memory (bit 2); the key
//!           shortened  hash u64, the last 12 bytes (item and row), the first 1024
//! ```
//!
//! The checksum, u64, follows at the end of each. Version 1 of the feeds' tokens had none and can still be read.

mod bytes;
mod feed;
mod query;
mod text;

use std::sync::Arc;

pub(crate) use feed::{FeedToken, HistoryToken};
pub(crate) use query::{KEY_BYTES_MAX, Position, QueryToken, ShortenedKey};
pub use text::{decode_token, encode_token};

use crate::catalog::container::Partition;
use crate::keys::PartitionId;
use crate::types::error::{Error, Result};

const VERSION: u8 = 2;

/// Returns the error for a token that is not as it was issued.
fn damaged() -> Error {
    Error::InvalidContinuation { why: "it was cut or changed, or is no token of this kind of request" }
}

/// Returns the error for a token that belongs to another query or container.
pub(crate) fn foreign() -> Error {
    Error::InvalidContinuation { why: "it was given for another query, container, partition key or range" }
}

/// Returns the positions of a token in the partitions of a scope, in the token's order. A token that lacks one of the
/// partitions belongs to another container, or to another part of it.
pub(crate) fn places_in<'a, P: Copy>(
    places: &[(PartitionId, P)],
    partitions: &[&'a Arc<Partition>],
) -> Result<Vec<(&'a Arc<Partition>, P)>> {
    let find = |id| partitions.iter().copied().find(|partition| partition.id == id);
    let found: Vec<_> = places.iter().filter_map(|(id, place)| Some((find(*id)?, *place))).collect();
    if found.len() == partitions.len() { Ok(found) } else { Err(foreign()) }
}

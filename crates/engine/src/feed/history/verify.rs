//! The parts of the feed of all versions that the integrity check reads.

use bytes::Bytes;
use document::ItemNumber;
use storage::Read;

use super::codec;
use super::state::State;
use crate::expiry::header::{Body, Record};
use crate::keys::{self, PartitionId};
use crate::types::error::Result;

/// Returns whether the feed of a partition is kept, or `None` if it has no feed.
pub(crate) fn keeping(reader: &dyn Read, partition: PartitionId) -> Result<Option<bool>> {
    Ok(State::load(reader, partition)?.map(|state| state.is_kept))
}

/// Reads a recorded change or expiry; fails if it cannot be read.
pub(crate) fn read_entry<B: Body>(key: &[u8], value: &Bytes) -> Result<()> {
    let position = keys::history_position(key)?;
    if keys::is_history_change(key) {
        codec::decode::<B>(value).map(drop)
    } else {
        let number = ItemNumber(position.number.0);
        Record::<B>::decode(number, value).map(drop)
    }
}

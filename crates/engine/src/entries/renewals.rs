//! The record beside an item whose countdown a read has restarted (T33).

use document::ItemNumber;
use storage::Read;

use crate::expiry::Millis;
use crate::expiry::header::Header;
use crate::keys::{Key, PartitionId};
use crate::types::error::{Error, Result};

/// Looks up whether a read has restarted the countdown of a stored item.
pub(crate) fn look_up(
    reader: &(impl Read + ?Sized),
    partition: PartitionId,
    number: ItemNumber,
    header: &mut Header,
) -> Result<()> {
    if header.slides() {
        let (keyspace, key) = Key::SlidingRenewal(partition, number).encode();
        let decode = |value: bytes::Bytes| match value.as_ref().try_into() {
            Ok(bytes) => Ok(Millis::from_be_bytes(bytes)),
            Err(_) => Err(Error::Corrupt(format!("the sliding renewal of item {}", number.0))),
        };
        header.renewed_at = reader.get(keyspace, &key)?.map(decode).transpose()?;
    }
    Ok(())
}

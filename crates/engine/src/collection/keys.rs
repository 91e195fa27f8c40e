//! Keys of the entries that documents have in the indexes of a collection.

use document::ItemNumber;

use crate::keys::PartitionId;

/// Returns the prefix of an index in `Index`.
pub(crate) fn index(partition: PartitionId, index: u32) -> Vec<u8> {
    [partition.0.to_be_bytes(), index.to_be_bytes()].concat()
}

/// Returns the prefix of all entries of an index with this key. No key is the beginning of another.
pub(super) fn entries(partition: PartitionId, number: u32, key: &[u8]) -> Vec<u8> {
    [&index(partition, number), key].concat()
}

/// Returns an entry of an index.
pub(super) fn entry(partition: PartitionId, number: u32, key: &[u8], item: ItemNumber) -> Vec<u8> {
    [&index(partition, number), key, &item.0.to_be_bytes()[..]].concat()
}

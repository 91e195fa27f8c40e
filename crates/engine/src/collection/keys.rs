//! Keys of the entries that lead to items of a collection.

use bson::{Collation, ValueRef, encode_key};
use document::ItemNumber;

use crate::keys::{self, PartitionId};

/// The key of the entry in `Id` that leads from an `_id` to the item. Equal numbers of whatever type are one `_id`.
pub(super) fn id(partition: PartitionId, id: ValueRef<'_>, collation: &Collation) -> Vec<u8> {
    let mut key = keys::partition(partition);
    encode_key(id, collation, &mut key);
    key
}

/// The prefix of an index in `Index`.
pub(super) fn index(partition: PartitionId, index: u32) -> Vec<u8> {
    [partition.0.to_be_bytes(), index.to_be_bytes()].concat()
}

/// The prefix of all entries of an index with this key. No key is the beginning of another.
pub(super) fn entries(partition: PartitionId, number: u32, key: &[u8]) -> Vec<u8> {
    [&index(partition, number), key].concat()
}

/// An entry of an index.
pub(super) fn entry(partition: PartitionId, number: u32, key: &[u8], item: ItemNumber) -> Vec<u8> {
    [&index(partition, number), key, &item.0.to_be_bytes()[..]].concat()
}

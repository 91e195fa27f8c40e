//! Keys of the entries that lead to items of a collection.

use bson::{Collation, ValueRef, encode_key};

use crate::keys::{self, PartitionId};

/// The key of the entry in `Id` that leads from an `_id` to the item. Equal numbers of whatever type are one `_id`.
pub(super) fn id(partition: PartitionId, id: ValueRef<'_>, collation: &Collation) -> Vec<u8> {
    let mut key = keys::partition(partition);
    encode_key(id, collation, &mut key);
    key
}

//! Keys of the entries that lead to items of a collection.

use bson::ValueRef;

use crate::keys::{self, PartitionId};

/// The key of the entry in `Id` that leads from an `_id` to the item.
pub(super) fn id(partition: PartitionId, id: ValueRef<'_>) -> Vec<u8> {
    let mut key = keys::partition(partition);
    match id {
        ValueRef::Int32(number) => integer(i64::from(number), &mut key),
        ValueRef::Int64(number) => integer(number, &mut key),
        ValueRef::Double(number) if number.trunc() == number && number.abs() < 9e15 => {
            integer(number as i64, &mut key);
        }
        other => {
            let mut writer = bson::Writer::default();
            writer.field("", other);
            key.extend_from_slice(writer.finish().as_bytes());
        }
    }
    key
}

fn integer(number: i64, key: &mut Vec<u8>) {
    key.extend_from_slice(&number.to_be_bytes());
}

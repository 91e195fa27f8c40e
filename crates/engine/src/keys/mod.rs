//! The whole key space as one enum; `docs/file-format.md` describes the same layout in prose.
//!
//! Every key that belongs to items starts with the number of their *physical partition*. Policy, queues, counters and
//! purge cursors belong to a partition, so that a container of several partitions, or partitions on several stores,
//! need no other layout. Numbers are big-endian and times have their sign bit flipped, so that byte order is their
//! order.
//!
//! An item's body is stored under its *number*, the sequence of the write that created it. Numbers grow with time, so
//! items that were written together are stored together and, mostly, expire together. All other entries refer to the
//! item by that number. The entry that maps (partition key, id) to the number is written once, when the item is
//! created.

mod position;

pub use position::Position;
pub(crate) use position::millis;

use document::{EffectiveKey, ItemNumber, PartitionKey, Sequence};
use storage::Keyspace;

use crate::expiry::{Millis, Queue};

/// A physical partition: its number is unique within the store and never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionId(pub u32);

/// One build of a partition's index, for one indexing policy. Its number is never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Generation(pub(crate) u32);

/// The resolution of a counter. A prefix is summed over whole hours, then over the seconds of the last hour;
/// milliseconds correct the last second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Grain {
    Hour = 1,
    Second = 2,
    Milli = 3,
}

impl Grain {
    /// Returns the length of one bucket.
    pub(crate) fn millis(self) -> Millis {
        match self {
            Grain::Hour => 3_600_000,
            Grain::Second => 1000,
            Grain::Milli => 1,
        }
    }
}

/// Every key that the engine writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key<'a> {
    /// The last number given to a database, container or partition.
    LastNumber,
    /// A database record.
    Database(u32),
    /// A container record, below its database.
    Container { database: u32, container: u32 },
    /// A collection record, below its database.
    Collection { database: u32, container: u32 },
    /// The indexes of a collection's partition.
    CollectionIndexes(PartitionId),
    /// The expiry policy of a partition. It exists exactly as long as the partition accepts writes.
    Policy(PartitionId),
    /// A partition whose container was dropped and whose entries are being removed.
    Dropped(PartitionId),
    /// The partition of a dropped collection whose feed may still be read.
    Retired(PartitionId),
    /// A watch of clients; see `watch`.
    Watch(&'a [u8]),
    /// A change to a watched collection or database itself.
    WatchLog(Position),
    /// The generations of a partition's index, and the state of each.
    IndexState(PartitionId),
    /// The indexing policy of one generation.
    IndexPolicy(PartitionId, Generation),
    /// A user or script of a database or container.
    Resource { kind: u8, parent: u32, number: u32 },
    /// Header and body.
    Item(PartitionId, ItemNumber),
    /// (Partition key, id) to number.
    Id { partition: PartitionId, effective: &'a EffectiveKey, key: &'a PartitionKey, id: &'a str },
    /// Unique-key values within a logical partition to number.
    Unique {
        partition: PartitionId,
        effective: &'a EffectiveKey,
        key: &'a PartitionKey,
        index: u8,
        values: &'a [u8],
    },
    /// A queue position.
    Queue { partition: PartitionId, queue: Queue, base: Millis, number: ItemNumber },
    /// The event of a sequence.
    Feed(PartitionId, Sequence),
    /// Items and bytes of the partition, expired ones that are not purged included.
    Total(PartitionId),
    /// Items and bytes of a queue whose base is in the bucket that starts at `start`.
    Bucket { partition: PartitionId, queue: Queue, grain: Grain, start: Millis },
    /// The purge cursor of a queue: before it there are only entries of items that are set aside.
    PurgeCursor(PartitionId, Queue),
    /// Why the purge has set an expired item aside that cannot be removed as it is.
    SetAside(PartitionId, ItemNumber),
    /// The state of the feed of all versions of a partition.
    HistoryState(PartitionId),
    /// A recorded change.
    HistoryChange(PartitionId, Position),
    /// A recorded expiry.
    HistoryExpiry(PartitionId, Position),
    /// The note of a hold on one item; it exists exactly as long as the item's header says that the item is held.
    Held(PartitionId, ItemNumber),
    /// When a read last restarted the countdown of an item.
    SlidingRenewal(PartitionId, ItemNumber),
    /// An expired item that a write has moved aside until it is archived.
    Unarchived { partition: PartitionId, expired_at: Millis, number: ItemNumber },
    /// The number and bytes of the items that were moved aside.
    UnarchivedTotal(PartitionId),
    /// The head of a partition's deletion record. It stays when the partition is dropped.
    DeletionHead(PartitionId),
    /// An entry of the deletion record, by its number.
    Deletion(PartitionId, u64),
    /// How many items of a generation have a shape.
    ShapeCount(PartitionId, Generation, [u8; 16]),
    /// The paths that make up a shape; stored as long as its count is.
    ShapePlaces(PartitionId, Generation, [u8; 16]),
}

pub(crate) const LAST_NUMBER: u8 = 0x10;
pub(crate) const DATABASE: u8 = 0x20;
pub(crate) const CONTAINER: u8 = 0x30;
pub(crate) const POLICY: u8 = 0x40;
pub(crate) const DROPPED: u8 = 0x50;
pub(crate) const RESOURCE: u8 = 0x60;
pub(crate) const INDEX_STATE: u8 = 0x70;
pub(crate) const INDEX_POLICY: u8 = 0x80;
pub(crate) const COLLECTION: u8 = 0x90;
pub(crate) const COLLECTION_INDEXES: u8 = 0xA0;
pub(crate) const WATCH: u8 = 0xB0;
pub(crate) const WATCH_EVENT: u8 = 0xB1;
pub(crate) const RETIRED: u8 = 0xB2;
/// Written by the store itself.
pub(crate) const WATERMARK: u8 = storage::WATERMARK;

pub(crate) const TOTAL: u8 = 0x10;
pub(crate) const BUCKET: u8 = 0x20;
pub(crate) const PURGE_CURSOR: u8 = 0x30;
pub(crate) const SHAPE_COUNT: u8 = 0x40;
pub(crate) const SHAPE_PLACES: u8 = 0x50;
pub(crate) const HELD: u8 = 0x60;
pub(crate) const UNARCHIVED_TOTAL: u8 = 0x70;
pub(crate) const SLIDING_RENEWAL: u8 = 0x80;
pub(crate) const SET_ASIDE: u8 = 0x90;

pub(crate) const HISTORY_STATE: u8 = 0x10;
pub(crate) const HISTORY_CHANGE: u8 = 0x20;
pub(crate) const HISTORY_EXPIRY: u8 = 0x30;
pub(crate) const UNARCHIVED: u8 = 0x40;

pub(crate) const DELETION_HEAD: u8 = 0x10;
pub(crate) const DELETION: u8 = 0x20;

impl Key<'_> {
    /// Returns the keyspace and the bytes of the key.
    pub(crate) fn encode(&self) -> (Keyspace, Vec<u8>) {
        match *self {
            Key::LastNumber => (Keyspace::Catalog, vec![LAST_NUMBER]),
            Key::Database(number) => (Keyspace::Catalog, tagged(DATABASE, number)),
            Key::Container { database, container } => {
                (Keyspace::Catalog, tagged_pair(CONTAINER, database, container))
            }
            Key::Collection { database, container } => {
                (Keyspace::Catalog, tagged_pair(COLLECTION, database, container))
            }
            Key::CollectionIndexes(partition) => (Keyspace::Catalog, tagged(COLLECTION_INDEXES, partition.0)),
            Key::Policy(partition) => (Keyspace::Catalog, tagged(POLICY, partition.0)),
            Key::Dropped(partition) => (Keyspace::Catalog, tagged(DROPPED, partition.0)),
            Key::Retired(partition) => (Keyspace::Catalog, tagged(RETIRED, partition.0)),
            Key::Watch(scope) => (Keyspace::Catalog, [&[WATCH], scope].concat()),
            Key::WatchLog(position) => (Keyspace::Catalog, [WATCH_LOG, &position.to_bytes()[..16]].concat()),
            Key::IndexState(partition) => (Keyspace::Catalog, tagged(INDEX_STATE, partition.0)),
            Key::IndexPolicy(partition, generation) => {
                (Keyspace::Catalog, tagged_pair(INDEX_POLICY, partition.0, generation.0))
            }
            Key::Resource { kind, parent, number } => {
                (Keyspace::Catalog, [&resources(kind, parent), &number.to_be_bytes()[..]].concat())
            }
            Key::Item(partition, number) => (Keyspace::Item, two(partition, number.0)),
            Key::Id { partition, effective, key, id } => {
                (Keyspace::Id, [&logical_partition(partition, effective, key), id.as_bytes()].concat())
            }
            Key::Unique { partition, effective, key, index, values } => {
                let home = logical_partition(partition, effective, key);
                (Keyspace::Unique, [&home, &[index][..], values].concat())
            }
            Key::Queue { partition, queue, base, number } => {
                (Keyspace::Queue, [&queue_base(partition, queue, base), &number.0.to_be_bytes()[..]].concat())
            }
            Key::Feed(partition, sequence) => (Keyspace::Feed, two(partition, sequence.0)),
            Key::Total(partition) => (Keyspace::Counter, counter(partition, TOTAL)),
            Key::Bucket { partition, queue, grain, start } => {
                (Keyspace::Counter, [&buckets(partition, queue, grain), &ordered(start)[..]].concat())
            }
            Key::PurgeCursor(partition, queue) => (
                Keyspace::Counter,
                [&counter(partition, PURGE_CURSOR), &queue.number().to_be_bytes()[..]].concat(),
            ),
            Key::HistoryState(partition) => (Keyspace::History, counter(partition, HISTORY_STATE)),
            Key::HistoryChange(partition, position) => {
                (Keyspace::History, [&history_changes(partition), &position.to_bytes()[..16]].concat())
            }
            Key::HistoryExpiry(partition, position) => {
                (Keyspace::History, [&history_expiries(partition), &position.to_bytes()[..]].concat())
            }
            Key::Held(partition, number) => (Keyspace::Counter, numbered(holds(partition), number)),
            Key::Unarchived { partition, expired_at, number } => {
                let number = number.0.to_be_bytes();
                (Keyspace::History, [&unarchived(partition), &ordered(expired_at)[..], &number[..]].concat())
            }
            Key::UnarchivedTotal(partition) => (Keyspace::Counter, counter(partition, UNARCHIVED_TOTAL)),
            Key::DeletionHead(partition) => (Keyspace::Deletion, tagged(DELETION_HEAD, partition.0)),
            Key::Deletion(partition, number) => {
                (Keyspace::Deletion, [&deletions(partition), &number.to_be_bytes()[..]].concat())
            }
            Key::SlidingRenewal(partition, number) => {
                (Keyspace::Counter, numbered(counter(partition, SLIDING_RENEWAL), number))
            }
            Key::SetAside(partition, number) => (Keyspace::Counter, numbered(set_aside(partition), number)),
            Key::ShapeCount(partition, generation, shape) => {
                (Keyspace::Counter, [&shape_counts(partition, generation), &shape[..]].concat())
            }
            Key::ShapePlaces(partition, generation, shape) => {
                (Keyspace::Counter, [&shape_places(partition, generation), &shape[..]].concat())
            }
        }
    }
}

/// Returns the key of an item below a prefix.
fn numbered(mut prefix: Vec<u8>, number: ItemNumber) -> Vec<u8> {
    prefix.extend_from_slice(&number.0.to_be_bytes());
    prefix
}

/// The prefix of all databases.
pub(crate) const DATABASES: &[u8] = &[DATABASE];
/// The prefix of all containers.
pub(crate) const CONTAINERS: &[u8] = &[CONTAINER];
/// The prefix of all collections.
pub(crate) const COLLECTIONS: &[u8] = &[COLLECTION];
/// The prefix of all dropped partitions.
pub(crate) const DROPPED_PARTITIONS: &[u8] = &[DROPPED];
/// The prefix of all retired partitions.
pub(crate) const RETIRED_PARTITIONS: &[u8] = &[RETIRED];
/// The prefix of all watches.
pub(crate) const WATCHES: &[u8] = &[WATCH];
/// The prefix of the log of watched collections.
pub(crate) const WATCH_LOG: &[u8] = &[WATCH_EVENT];
/// The keyspaces in which a partition has entries under its own number.
pub(crate) const PARTITIONED: [Keyspace; 8] = [
    Keyspace::Item,
    Keyspace::Id,
    Keyspace::Index,
    Keyspace::Unique,
    Keyspace::Queue,
    Keyspace::Feed,
    Keyspace::Counter,
    Keyspace::History,
];

/// Returns the prefix of all resources of one kind and owner.
pub(crate) fn resources(kind: u8, parent: u32) -> Vec<u8> {
    let mut key = vec![RESOURCE, kind];
    key.extend_from_slice(&parent.to_be_bytes());
    key
}

/// Returns the prefix of a whole partition in any of [`PARTITIONED`].
pub(crate) fn partition(partition: PartitionId) -> Vec<u8> {
    partition.0.to_be_bytes().to_vec()
}

/// Reads the partition out of a key in [`DROPPED_PARTITIONS`] or [`RETIRED_PARTITIONS`].
pub(crate) fn dropped_partition(key: &[u8]) -> Option<PartitionId> {
    Some(PartitionId(u32::from_be_bytes(*key.get(1..)?.first_chunk()?)))
}

/// Returns the prefix of a logical partition in `Id` and `Unique`. The effective key comes first, so that a range of
/// effective keys is one range of keys; the partition key itself follows, because two keys may share a hash.
pub(crate) fn logical_partition(
    partition: PartitionId,
    effective: &EffectiveKey,
    key: &PartitionKey,
) -> Vec<u8> {
    let mut bytes = effective_bound(partition, effective);
    bytes.extend_from_slice(&[0x00, 0x00]);
    key.encode(&mut bytes);
    bytes
}

/// Returns the lower bound of an effective key in `Id` and `Unique`. Effective keys differ in length, so a zero byte
/// is written as `00 FF` and the end as `00 00`. What follows the end then cannot disturb the order of the keys, even
/// when a key is compared with a longer bound.
pub(crate) fn effective_bound(partition: PartitionId, effective: &EffectiveKey) -> Vec<u8> {
    let mut bytes = partition.0.to_be_bytes().to_vec();
    for &byte in effective.as_bytes() {
        bytes.push(byte);
        if byte == 0x00 {
            bytes.push(0xFF);
        }
    }
    bytes
}

/// Returns the lower bound of a base time in a queue.
pub(crate) fn queue_base(partition: PartitionId, queue: Queue, base: Millis) -> Vec<u8> {
    let mut bytes = queue_prefix(partition, queue);
    bytes.extend_from_slice(&ordered(base));
    bytes
}

/// Returns the prefix of a queue.
pub(crate) fn queue_prefix(partition: PartitionId, queue: Queue) -> Vec<u8> {
    let mut bytes = partition.0.to_be_bytes().to_vec();
    bytes.extend_from_slice(&queue.number().to_be_bytes());
    bytes
}

/// Reads the number from an item's key.
pub(crate) fn item_number(key: &[u8]) -> crate::Result<ItemNumber> {
    let parse = || Some(ItemNumber(u64::from_be_bytes(key.get(4..)?.try_into().ok()?)));
    parse().ok_or_else(|| crate::Error::Corrupt("an item's key of wrong length".into()))
}

/// Reads base and number from a queue key.
pub(crate) fn queue_entry(key: &[u8]) -> crate::Result<(Millis, ItemNumber)> {
    let parse = || {
        let (base, number) = key.get(6..)?.split_first_chunk::<8>()?;
        Some((from_ordered(*base), ItemNumber(u64::from_be_bytes(number.try_into().ok()?))))
    };
    parse().ok_or_else(|| crate::Error::Corrupt("a queue key of wrong length".into()))
}

/// Returns the first possible key of a queue behind an entry.
pub(crate) fn behind_queue_entry(key: &[u8]) -> crate::Result<Vec<u8>> {
    let (_, ItemNumber(number)) = queue_entry(key)?;
    // For the highest number this is the entry itself, which would be visited twice; that is harmless.
    Ok([&key[..key.len() - 8], &number.saturating_add(1).to_be_bytes()[..]].concat())
}

/// Reads sequence and item number from a feed entry.
pub(crate) fn feed_entry(key: &[u8], value: &[u8]) -> crate::Result<(Sequence, ItemNumber)> {
    let parse = || {
        let sequence = u64::from_be_bytes(key.get(4..)?.try_into().ok()?);
        Some((Sequence(sequence), ItemNumber(u64::from_be_bytes(value.get(1..)?.try_into().ok()?))))
    };
    parse().ok_or_else(|| crate::Error::Corrupt("a feed entry of wrong length".into()))
}

/// Returns the prefix of all recorded changes of a partition.
pub(crate) fn history_changes(partition: PartitionId) -> Vec<u8> {
    counter(partition, HISTORY_CHANGE)
}

/// Returns the prefix of all recorded expiries of a partition.
pub(crate) fn history_expiries(partition: PartitionId) -> Vec<u8> {
    counter(partition, HISTORY_EXPIRY)
}

/// Returns whether a key of the feed of all versions is that of a change.
pub(crate) fn is_history_change(key: &[u8]) -> bool {
    key.get(4) == Some(&HISTORY_CHANGE)
}

/// Reads the position from the key of a recorded change or expiry.
pub(crate) fn history_position(key: &[u8]) -> crate::Result<Position> {
    let parse = || match (key.get(4)?, key.get(5..)?) {
        (&HISTORY_CHANGE, rest) => {
            let (time, order): (&[u8; 8], _) = rest.split_first_chunk()?;
            let order = Sequence(u64::from_be_bytes(order.try_into().ok()?));
            Some(Position { time: from_ordered(*time), order, base: 0, number: ItemNumber(0) })
        }
        (&HISTORY_EXPIRY, rest) => Some(Position::from_bytes(rest.try_into().ok()?)),
        _ => None,
    };
    parse().ok_or_else(|| crate::Error::Corrupt("a key of the feed of all versions".into()))
}

/// Reads the position from a key of the log of watched collections.
pub(crate) fn watch_log_position(key: &[u8]) -> crate::Result<Position> {
    let parse = || {
        let (time, order): (&[u8; 8], _) = key.get(1..)?.split_first_chunk()?;
        let order = Sequence(u64::from_be_bytes(order.try_into().ok()?));
        Some(Position { time: from_ordered(*time), order, base: 0, number: ItemNumber(0) })
    };
    parse().ok_or_else(|| crate::Error::Corrupt("a key of the log of watched collections".into()))
}

/// Returns the prefix of all expired items of a partition that were moved aside.
pub(crate) fn unarchived(partition: PartitionId) -> Vec<u8> {
    counter(partition, UNARCHIVED)
}

/// Reads instant of expiry and number from the key of an expired item that was moved aside.
pub(crate) fn unarchived_entry(key: &[u8]) -> crate::Result<(Millis, ItemNumber)> {
    let parse = || {
        let (expired_at, number) = key.get(5..)?.split_first_chunk::<8>()?;
        Some((from_ordered(*expired_at), ItemNumber(u64::from_be_bytes(number.try_into().ok()?))))
    };
    parse().ok_or_else(|| crate::Error::Corrupt("the key of an expired item that was moved aside".into()))
}

/// The prefix of the heads of all deletion records.
pub(crate) const DELETION_HEADS: &[u8] = &[DELETION_HEAD];

/// Reads the partition out of a key in [`DELETION_HEADS`].
pub(crate) fn deletion_head(key: &[u8]) -> crate::Result<PartitionId> {
    let parse = || Some(PartitionId(u32::from_be_bytes(key.get(1..)?.try_into().ok()?)));
    parse().ok_or_else(|| crate::Error::Corrupt("the key of a deletion record".into()))
}

/// The prefix of all entries of all deletion records.
pub(crate) const DELETIONS: &[u8] = &[DELETION];

/// Reads the partition out of a key in [`DELETIONS`].
pub(crate) fn deletion_log(key: &[u8]) -> crate::Result<PartitionId> {
    let parse = || Some(PartitionId(u32::from_be_bytes(*key.get(1..)?.first_chunk()?)));
    parse().ok_or_else(|| crate::Error::Corrupt("the key of an entry of a deletion record".into()))
}

/// Returns the prefix of all entries of a deletion record.
pub(crate) fn deletions(partition: PartitionId) -> Vec<u8> {
    tagged(DELETION, partition.0)
}

/// Reads the number from the key of an entry of a deletion record.
pub(crate) fn deletion_number(key: &[u8]) -> crate::Result<u64> {
    let parse = || Some(u64::from_be_bytes(key.get(5..)?.try_into().ok()?));
    parse().ok_or_else(|| crate::Error::Corrupt("the key of an entry of a deletion record".into()))
}

/// Returns the prefix of the notes of all items of a partition that the purge has set aside.
pub(crate) fn set_aside(partition: PartitionId) -> Vec<u8> {
    counter(partition, SET_ASIDE)
}

/// Reads the item's number from the key of such a note.
pub(crate) fn set_aside_number(key: &[u8]) -> crate::Result<ItemNumber> {
    let parse = || Some(ItemNumber(u64::from_be_bytes(key.get(5..)?.try_into().ok()?)));
    parse().ok_or_else(|| crate::Error::Corrupt("the note of an item that was set aside".into()))
}

/// Returns the prefix of all buckets of one queue and grain.
pub(crate) fn buckets(partition: PartitionId, queue: Queue, grain: Grain) -> Vec<u8> {
    let mut bytes = counter(partition, BUCKET);
    bytes.extend_from_slice(&queue.number().to_be_bytes());
    bytes.push(grain as u8);
    bytes
}

/// Returns the prefix of a generation in `Index`; the rest of the key is described in `index`.
pub(crate) fn index_generation(partition: PartitionId, generation: Generation) -> Vec<u8> {
    [partition.0.to_be_bytes(), generation.0.to_be_bytes()].concat()
}

/// Returns the prefix of the policies of all generations of a partition.
pub(crate) fn index_policies(partition: PartitionId) -> Vec<u8> {
    tagged(INDEX_POLICY, partition.0)
}

/// Returns the prefix of the notes of all holds on items.
pub(crate) fn holds(partition: PartitionId) -> Vec<u8> {
    counter(partition, HELD)
}

/// Reads the item's number from the key of a hold's note.
pub(crate) fn held_number(key: &[u8]) -> crate::Result<ItemNumber> {
    let parse = || Some(ItemNumber(u64::from_be_bytes(key.get(5..)?.try_into().ok()?)));
    parse().ok_or_else(|| crate::Error::Corrupt("the key of a hold of wrong length".into()))
}

/// Returns the prefix of all shape counts of a generation.
pub(crate) fn shape_counts(partition: PartitionId, generation: Generation) -> Vec<u8> {
    [&counter(partition, SHAPE_COUNT), &generation.0.to_be_bytes()[..]].concat()
}

/// Returns the prefix of all shapes of a generation.
pub(crate) fn shape_places(partition: PartitionId, generation: Generation) -> Vec<u8> {
    [&counter(partition, SHAPE_PLACES), &generation.0.to_be_bytes()[..]].concat()
}

/// Encodes an item number as the value of an `Id` or `Unique` entry.
pub(crate) fn number_value(number: ItemNumber) -> Vec<u8> {
    number.0.to_be_bytes().to_vec()
}

/// Reads [`number_value`] back.
pub(crate) fn number_from_value(value: &[u8]) -> crate::Result<ItemNumber> {
    let bytes =
        value.try_into().map_err(|_| crate::Error::Corrupt("an item number of wrong length".into()))?;
    Ok(ItemNumber(u64::from_be_bytes(bytes)))
}

fn tagged(tag: u8, number: u32) -> Vec<u8> {
    let mut key = vec![tag];
    key.extend_from_slice(&number.to_be_bytes());
    key
}

fn tagged_pair(tag: u8, first: u32, second: u32) -> Vec<u8> {
    let mut key = tagged(tag, first);
    key.extend_from_slice(&second.to_be_bytes());
    key
}

fn two(partition: PartitionId, second: u64) -> Vec<u8> {
    let mut key = partition.0.to_be_bytes().to_vec();
    key.extend_from_slice(&second.to_be_bytes());
    key
}

fn counter(partition: PartitionId, tag: u8) -> Vec<u8> {
    let mut key = partition.0.to_be_bytes().to_vec();
    key.push(tag);
    key
}

/// Encodes a signed time as bytes that sort as the time does.
pub(crate) fn ordered(time: Millis) -> [u8; 8] {
    (time ^ Millis::MIN).to_be_bytes()
}

pub(crate) fn from_ordered(bytes: [u8; 8]) -> Millis {
    Millis::from_be_bytes(bytes) ^ Millis::MIN
}

#[cfg(test)]
mod tests {
    use super::*;

    const P: PartitionId = PartitionId(7);

    fn id_key(effective: &EffectiveKey, key: &str, id: &str) -> Vec<u8> {
        let key = PartitionKey::from_header(key).expect("a valid key");
        Key::Id { partition: P, effective, key: &key, id }.encode().1
    }

    /// Every range of effective keys is one range of `Id` keys, whatever their lengths.
    #[test]
    fn effective_ranges_are_key_ranges() {
        let keys: Vec<EffectiveKey> = ["", "00", "0000", "01", "0100", "01FF", "02", "3F00", "3F0001", "FF"]
            .iter()
            .map(|hex| hex.parse().expect("hex"))
            .collect();
        for bound in &keys {
            for key in &keys {
                let in_range = effective_bound(P, bound) <= id_key(key, "[\"x\"]", "id");
                assert_eq!(in_range, bound <= key, "{bound} {key}");
            }
        }
    }

    #[test]
    fn a_logical_partition_is_a_prefix_of_its_ids_and_of_no_other() {
        let effective: EffectiveKey = "3A00".parse().expect("hex");
        let key = PartitionKey::from_header(r#"["a"]"#).expect("a valid key");
        let prefix = logical_partition(P, &effective, &key);
        assert!(id_key(&effective, r#"["a"]"#, "x").starts_with(&prefix));
        for other in [r#"["aa"]"#, r#"["b"]"#, r#"["a","b"]"#, "[1]", "[{}]"] {
            assert!(!id_key(&effective, other, "x").starts_with(&prefix), "{other}");
        }
    }

    #[test]
    fn queues_are_ordered_by_base_then_number() {
        let entry = |base, number| {
            Key::Queue { partition: P, queue: Queue::Own, base, number: ItemNumber(number) }.encode().1
        };
        let ordered = [
            entry(Millis::MIN, 0),
            entry(-1, 9),
            entry(0, 0),
            entry(0, 1),
            entry(5, 0),
            entry(Millis::MAX, 0),
        ];
        assert!(ordered.is_sorted());
        assert_eq!(queue_entry(&entry(-1, 9)).expect("a queue key"), (-1, ItemNumber(9)));
        assert!(queue_entry(&ordered[0][1..]).is_err());
    }

    /// The prefix test: no two kinds of key in one keyspace can be confused.
    #[test]
    fn kinds_of_keys_are_disjoint() {
        let bucket = Key::Bucket { partition: P, queue: Queue::Own, grain: Grain::Hour, start: 0 };
        let kinds = [
            Key::LastNumber,
            Key::Database(7),
            Key::Container { database: 7, container: 7 },
            Key::Policy(P),
            Key::Dropped(P),
            Key::Retired(P),
            Key::Watch(b"x"),
            Key::WatchLog(Position::before(7)),
            Key::IndexState(P),
            Key::IndexPolicy(P, Generation(7)),
            Key::Resource { kind: 0, parent: 7, number: 7 },
            Key::Total(P),
            bucket,
            Key::PurgeCursor(P, Queue::Own),
            Key::HistoryState(P),
            Key::HistoryChange(P, Position::before(7)),
            Key::HistoryExpiry(P, Position::before(7)),
            Key::Held(P, ItemNumber(7)),
            Key::SlidingRenewal(P, ItemNumber(7)),
            Key::Unarchived { partition: P, expired_at: 7, number: ItemNumber(7) },
            Key::UnarchivedTotal(P),
            Key::DeletionHead(P),
            Key::Deletion(P, 7),
            Key::ShapeCount(P, Generation(7), [7; 16]),
            Key::ShapePlaces(P, Generation(7), [7; 16]),
        ];
        for (at, one) in kinds.iter().enumerate() {
            for other in &kinds[at + 1..] {
                let ((keyspace, key), (other_keyspace, other_key)) = (one.encode(), other.encode());
                let disjoint = !key.starts_with(&other_key) && !other_key.starts_with(&key);
                assert!(keyspace != other_keyspace || disjoint, "{one:?} {other:?}");
            }
        }
    }
}

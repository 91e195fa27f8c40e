//! Decodes keys: which kind of entry a key belongs to. The reverse of [`Key`](crate::keys::Key); no version of the engine writes
//! a key of an unknown kind.

use document::ItemNumber;

use crate::expiry::{Millis, Queue};
use crate::keys::{self, Generation, Grain, PartitionId};

/// A key in `Catalog`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CatalogKey {
    LastNumber,
    Database(u32),
    Container { database: u32, container: u32 },
    Collection { database: u32, container: u32 },
    CollectionIndexes(PartitionId),
    Policy(PartitionId),
    Dropped(PartitionId),
    Retired(PartitionId),
    Watch,
    WatchLog,
    IndexState(PartitionId),
    IndexPolicy(PartitionId, Generation),
    Resource { kind: u8, parent: u32, number: u32 },
    Watermark,
}

impl CatalogKey {
    pub(super) fn parse(key: &[u8]) -> Option<CatalogKey> {
        let (tag, rest) = key.split_first()?;
        let one = || Some(u32::from_be_bytes(rest.try_into().ok()?));
        let two = || {
            let (first, second) = rest.split_first_chunk()?;
            Some((u32::from_be_bytes(*first), u32::from_be_bytes(second.try_into().ok()?)))
        };
        let partition = || one().map(PartitionId);
        Some(match *tag {
            keys::LAST_NUMBER if rest.is_empty() => CatalogKey::LastNumber,
            keys::DATABASE => CatalogKey::Database(one()?),
            keys::CONTAINER => {
                two().map(|(database, container)| CatalogKey::Container { database, container })?
            }
            keys::COLLECTION => {
                two().map(|(database, container)| CatalogKey::Collection { database, container })?
            }
            keys::COLLECTION_INDEXES => CatalogKey::CollectionIndexes(partition()?),
            keys::POLICY => CatalogKey::Policy(partition()?),
            keys::DROPPED => CatalogKey::Dropped(partition()?),
            keys::RETIRED => CatalogKey::Retired(partition()?),
            keys::WATCH => CatalogKey::Watch,
            keys::WATCH_EVENT if rest.len() == 16 => CatalogKey::WatchLog,
            keys::INDEX_STATE => CatalogKey::IndexState(partition()?),
            keys::INDEX_POLICY => two()
                .map(|(id, generation)| CatalogKey::IndexPolicy(PartitionId(id), Generation(generation)))?,
            keys::WATERMARK => partition().map(|_| CatalogKey::Watermark)?,
            keys::RESOURCE => {
                let (kind, rest) = rest.split_first()?;
                let (owner, number) = rest.split_first_chunk()?;
                let number = u32::from_be_bytes(number.try_into().ok()?);
                CatalogKey::Resource { kind: *kind, parent: u32::from_be_bytes(*owner), number }
            }
            _ => return None,
        })
    }
}

/// A key in `Counter`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CounterKey {
    Total,
    Bucket { queue: Queue, grain: Grain, start: Millis },
    PurgeCursor(Queue),
    ShapeCount(Generation, [u8; 16]),
    ShapePlaces(Generation, [u8; 16]),
    Held(ItemNumber),
    UnarchivedTotal,
    SlidingRenewal(ItemNumber),
    SetAside(ItemNumber),
}

impl CounterKey {
    pub(super) fn parse(key: &[u8]) -> Option<CounterKey> {
        let (tag, rest) = key.get(4..)?.split_first()?;
        let queue = |bytes: &[u8; 2]| Queue::from_number(u16::from_be_bytes(*bytes));
        let number = || Some(ItemNumber(u64::from_be_bytes(rest.try_into().ok()?)));
        let shape = || {
            let (generation, shape) = rest.split_first_chunk()?;
            Some((Generation(u32::from_be_bytes(*generation)), shape.try_into().ok()?))
        };
        Some(match *tag {
            keys::TOTAL if rest.is_empty() => CounterKey::Total,
            keys::UNARCHIVED_TOTAL if rest.is_empty() => CounterKey::UnarchivedTotal,
            keys::BUCKET => {
                let (number, rest) = rest.split_first_chunk()?;
                let (grain, start) = rest.split_first()?;
                let grains = [Grain::Hour, Grain::Second, Grain::Milli];
                let grain = grains.into_iter().find(|known| *known as u8 == *grain)?;
                let start = keys::from_ordered(start.try_into().ok()?);
                CounterKey::Bucket { queue: queue(number)?, grain, start }
            }
            keys::PURGE_CURSOR => CounterKey::PurgeCursor(queue(rest.try_into().ok()?)?),
            keys::SHAPE_COUNT => {
                shape().map(|(generation, shape)| CounterKey::ShapeCount(generation, shape))?
            }
            keys::SHAPE_PLACES => {
                shape().map(|(generation, shape)| CounterKey::ShapePlaces(generation, shape))?
            }
            keys::HELD => CounterKey::Held(number()?),
            keys::SLIDING_RENEWAL => CounterKey::SlidingRenewal(number()?),
            keys::SET_ASIDE => CounterKey::SetAside(number()?),
            _ => return None,
        })
    }
}

/// Returns queue, base and number of a key in `Queue`.
pub(super) fn queue_key(key: &[u8]) -> Option<(Queue, Millis, ItemNumber)> {
    let (queue, _) = key.get(4..)?.split_first_chunk()?;
    let (base, number) = keys::queue_entry(key).ok()?;
    Some((Queue::from_number(u16::from_be_bytes(*queue))?, base, number))
}

/// Returns the partition of a key of a partitioned keyspace.
pub(super) fn partition(key: &[u8]) -> Option<PartitionId> {
    key.first_chunk().map(|bytes| PartitionId(u32::from_be_bytes(*bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Key;
    use crate::keys::Position;

    const P: PartitionId = PartitionId(7);

    #[test]
    fn keys_of_the_catalog_read_back_and_others_are_told() {
        let pairs = [
            (Key::LastNumber, CatalogKey::LastNumber),
            (Key::Database(3), CatalogKey::Database(3)),
            (
                Key::Container { database: 3, container: 4 },
                CatalogKey::Container { database: 3, container: 4 },
            ),
            (
                Key::Collection { database: 3, container: 4 },
                CatalogKey::Collection { database: 3, container: 4 },
            ),
            (Key::CollectionIndexes(P), CatalogKey::CollectionIndexes(P)),
            (Key::Policy(P), CatalogKey::Policy(P)),
            (Key::Dropped(P), CatalogKey::Dropped(P)),
            (Key::Retired(P), CatalogKey::Retired(P)),
            (Key::Watch(b"db"), CatalogKey::Watch),
            (Key::WatchLog(Position::before(9)), CatalogKey::WatchLog),
            (Key::IndexState(P), CatalogKey::IndexState(P)),
            (Key::IndexPolicy(P, Generation(2)), CatalogKey::IndexPolicy(P, Generation(2))),
            (
                Key::Resource { kind: 4, parent: 5, number: 6 },
                CatalogKey::Resource { kind: 4, parent: 5, number: 6 },
            ),
        ];
        for (key, expected) in pairs {
            let (_, bytes) = key.encode();
            assert_eq!(CatalogKey::parse(&bytes), Some(expected), "{key:?}");
            if expected != CatalogKey::Watch {
                assert_eq!(CatalogKey::parse(&[&bytes[..], &[0]].concat()), None, "{key:?} and a byte");
            }
        }
        let watermark = [&[storage::WATERMARK][..], &P.0.to_be_bytes()].concat();
        assert_eq!(CatalogKey::parse(&watermark), Some(CatalogKey::Watermark));
        assert_eq!(CatalogKey::parse(&[0xEE]), None);
    }

    #[test]
    fn keys_of_counters_read_back_and_others_are_told() {
        let bucket = (Queue::Own, Grain::Second, -1000);
        let pairs = [
            (Key::Total(P), CounterKey::Total),
            (
                Key::Bucket { partition: P, queue: bucket.0, grain: bucket.1, start: bucket.2 },
                CounterKey::Bucket { queue: bucket.0, grain: bucket.1, start: bucket.2 },
            ),
            (Key::PurgeCursor(P, Queue::Date(16)), CounterKey::PurgeCursor(Queue::Date(16))),
            (Key::ShapeCount(P, Generation(2), [9; 16]), CounterKey::ShapeCount(Generation(2), [9; 16])),
            (Key::ShapePlaces(P, Generation(2), [9; 16]), CounterKey::ShapePlaces(Generation(2), [9; 16])),
            (Key::Held(P, ItemNumber(8)), CounterKey::Held(ItemNumber(8))),
            (Key::SlidingRenewal(P, ItemNumber(8)), CounterKey::SlidingRenewal(ItemNumber(8))),
            (Key::SetAside(P, ItemNumber(8)), CounterKey::SetAside(ItemNumber(8))),
            (Key::UnarchivedTotal(P), CounterKey::UnarchivedTotal),
        ];
        for (key, expected) in pairs {
            let (_, bytes) = key.encode();
            assert_eq!(CounterKey::parse(&bytes), Some(expected), "{key:?}");
            assert_eq!(CounterKey::parse(&[&bytes[..], &[0]].concat()), None, "{key:?} and a byte");
        }
        let (_, queue) =
            Key::Queue { partition: P, queue: Queue::Stamp, base: -5, number: ItemNumber(4) }.encode();
        assert_eq!(queue_key(&queue), Some((Queue::Stamp, -5, ItemNumber(4))));
        assert_eq!(queue_key(&queue[..21]), None);
    }
}

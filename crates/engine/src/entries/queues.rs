//! The queues of expiry, divided by the purge's cursors: before a queue's cursor there are only entries of items that
//! were set aside.

use std::ops::Bound;

use document::ItemNumber;
use storage::{Direction, KeyRange, Keyspace, Read, Time, Transaction};

use super::set_aside;
use crate::expiry::{Millis, Policy, Queue, QueuePosition, QueuePositions};
use crate::keys::{self, Key, PartitionId};
use crate::types::error::Result;

/// Returns whether a queue has an entry up to `through` that the purge has not passed.
pub(crate) fn is_waiting(
    reader: &dyn Read,
    partition: PartitionId,
    queue: Queue,
    through: Millis,
) -> Result<bool> {
    has_entry(reader, from_cursor(reader, partition, queue, through)?)
}

/// Returns whether a queue has an entry up to `through`, those of items that are set aside included: these have to
/// stay expired when rules change (T13), though the purge has passed them.
pub(crate) fn is_occupied(
    reader: &dyn Read,
    partition: PartitionId,
    queue: Queue,
    through: Millis,
) -> Result<bool> {
    has_entry(reader, with_set_aside(reader, partition, queue, through)?)
}

fn has_entry(reader: &dyn Read, range: KeyRange) -> Result<bool> {
    Ok(reader.scan(Keyspace::Queue, range, Direction::Forward).next().transpose()?.is_some())
}

/// Returns the part of a queue that may have entries, up to and including `through`: from the cursor on, or all of it
/// where items are set aside, whose entries are before the cursor.
pub(crate) fn with_set_aside(
    reader: &dyn Read,
    partition: PartitionId,
    queue: Queue,
    through: Millis,
) -> Result<KeyRange> {
    if set_aside::is_empty(reader, partition)? {
        return from_cursor(reader, partition, queue, through);
    }
    Ok(through_base(partition, queue, keys::queue_prefix(partition, queue), through))
}

/// Returns the part of a queue from the cursor on, up to and including `through`. Before the cursor there are only
/// entries of items that are set aside.
pub(crate) fn from_cursor(
    reader: &dyn Read,
    partition: PartitionId,
    queue: Queue,
    through: Millis,
) -> Result<KeyRange> {
    let (keyspace, key) = Key::PurgeCursor(partition, queue).encode();
    let cursor = reader.get(keyspace, &key)?;
    let start = cursor.map_or_else(|| keys::queue_prefix(partition, queue), |cursor| cursor.to_vec());
    Ok(through_base(partition, queue, start, through))
}

/// Returns the part of a queue that the purge's cursor has passed. Only items that are set aside have entries in it.
pub(crate) fn before_cursor(reader: &dyn Read, partition: PartitionId, queue: Queue) -> Result<KeyRange> {
    let start = keys::queue_prefix(partition, queue);
    let (keyspace, key) = Key::PurgeCursor(partition, queue).encode();
    let cursor = reader.get(keyspace, &key)?.map_or_else(|| start.clone(), |cursor| cursor.to_vec());
    Ok(KeyRange { start: Bound::Included(start.clone()), end: Bound::Excluded(cursor.max(start)) })
}

/// Returns the part of a queue from a key on, up to and including `through`.
fn through_base(partition: PartitionId, queue: Queue, start: Vec<u8>, through: Millis) -> KeyRange {
    let end = match through.checked_add(1) {
        Some(base) => Bound::Excluded(keys::queue_base(partition, queue, base).max(start.clone())),
        None => KeyRange::prefix(keys::queue_prefix(partition, queue)).end,
    };
    KeyRange { start: Bound::Included(start), end }
}

/// Moves the cursors back for an item that joins date queues: its date may be before a cursor, and no entry may be except
/// those of items that are set aside. In the other queues no item joins the expired prefix.
pub(crate) fn rewind_cursor(
    tx: &mut Transaction<'_>,
    partition: PartitionId,
    places: &QueuePositions,
    number: ItemNumber,
) -> Result<()> {
    for QueuePosition { queue, base } in &places.dates {
        let (keyspace, cursor) = Key::PurgeCursor(partition, *queue).encode();
        let entry = Key::Queue { partition, queue: *queue, base: *base, number }.encode().1;
        if tx.get(keyspace, &cursor)?.is_some_and(|stands| *stands > *entry) {
            tx.put(keyspace, cursor, entry);
        }
    }
    Ok(())
}

/// Returns when the first entry of any queue expires.
pub(crate) fn next_due(reader: &dyn Read, id: PartitionId, policy: &Policy) -> Result<Option<Time>> {
    let mut earliest: Option<Time> = None;
    for queue in policy.queues() {
        let range = from_cursor(reader, id, queue, Millis::MAX)?;
        let Some(entry) = reader.scan(Keyspace::Queue, range, Direction::Forward).next() else { continue };
        let (base, _) = keys::queue_entry(&entry?.0)?;
        earliest = policy.due(QueuePosition { queue, base }).into_iter().chain(earliest).min();
    }
    Ok(earliest)
}

//! Expired items that cannot be removed, because their bytes or the entries beside them are damaged.
//!
//! A sweep that meets such an item rolls back what it began to do to it, leaves a note and continues: one damaged
//! item must not keep others from being purged. The purge's cursor passes its queue entry, so that later sweeps do
//! not begin at it again. The item stays hidden: a change of rules leaves a cutoff for it, and the cutoff that keeps
//! it expired is not dropped (T13). It counts as late for the retention promise once its bound has passed (T24).
//! The note survives restarts. A repair removes the note of an item that can be read again and sets the cursor back.

use std::collections::BTreeSet;

use document::ItemNumber;
use storage::{Direction, KeyRange, Keyspace, Read, Transaction};

use super::queues::before_cursor;
use crate::entries::counters::Tally;
use crate::expiry::header::decode_header;
use crate::expiry::{Millis, Queue};
use crate::keys::{self, Key, PartitionId};
use crate::types::error::{Error, Result};
use crate::types::limits::SET_ASIDE_MAX;

/// How many bytes of items are read to learn their sizes: the figures are read several times a second.
pub(crate) const MEASURED_BYTES_MAX: usize = 1024 * 1024;

/// The longest reason that is stored, in bytes.
const REASON_BYTES_MAX: usize = 512;

/// An item that a sweep has set aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SetAside {
    pub(crate) number: ItemNumber,
    pub(crate) reason: String,
}

/// Returns the items of a partition that are set aside; there are few.
pub(crate) fn numbers(reader: &(impl Read + ?Sized), partition: PartitionId) -> Result<BTreeSet<ItemNumber>> {
    let notes = KeyRange::prefix(keys::set_aside(partition));
    let scan = reader.scan(Keyspace::Counter, notes, Direction::Forward);
    scan.map(|note| keys::set_aside_number(&note?.0)).collect()
}

/// Returns whether no item of a partition is set aside.
pub(crate) fn is_empty(reader: &(impl Read + ?Sized), partition: PartitionId) -> Result<bool> {
    let notes = KeyRange::prefix(keys::set_aside(partition));
    Ok(reader.scan(Keyspace::Counter, notes, Direction::Forward).next().transpose()?.is_none())
}

/// Returns the entries of a queue that belong to items that are set aside: those that the purge's cursor has passed.
pub(crate) fn passed(
    reader: &dyn Read,
    partition: PartitionId,
    queue: Queue,
) -> Result<impl Iterator<Item = Result<(Millis, ItemNumber)>>> {
    let range = before_cursor(reader, partition, queue)?;
    let scan = reader.scan(Keyspace::Queue, range, Direction::Forward);
    Ok(scan.map(|entry| keys::queue_entry(&entry?.0)))
}

/// Returns the bases of the items of a queue that are set aside.
pub(crate) fn bases(reader: &dyn Read, partition: PartitionId, queue: Queue) -> Result<Vec<Millis>> {
    if is_empty(reader, partition)? {
        return Ok(Vec::new());
    }
    passed(reader, partition, queue)?.map(|entry| Ok(entry?.0)).collect()
}

/// Returns how many items of a partition are set aside.
pub(crate) fn count(reader: &dyn Read, partition: PartitionId) -> Result<u64> {
    Ok(numbers(reader, partition)?.len() as u64)
}

/// Returns how many items of a partition are set aside, and their bytes as far as they are known. The size of an item
/// is known only by reading it, so items behind the first [`MEASURED_BYTES_MAX`] count without bytes.
pub(crate) fn tally(reader: &dyn Read, partition: PartitionId) -> Result<Tally> {
    let numbers = numbers(reader, partition)?;
    let (mut tally, mut read) = (Tally { items: numbers.len() as u64, bytes: 0 }, 0);
    for number in numbers {
        if read >= MEASURED_BYTES_MAX {
            break;
        }
        let (keyspace, key) = Key::Item(partition, number).encode();
        let Some(value) = reader.get(keyspace, &key)? else { continue };
        read += value.len();
        let header = decode_header(number, &value).map_or(0, |(_, length)| length);
        tally.bytes += value.len().saturating_sub(header) as u64;
    }
    Ok(tally)
}

/// Sets an item aside. Returns `None` if it already is. Fails if there are too many: then the partition as a whole is
/// damaged.
pub(crate) fn put(
    tx: &mut Transaction<'_>,
    partition: PartitionId,
    number: ItemNumber,
    why: &str,
) -> Result<Option<SetAside>> {
    let known = numbers(tx, partition)?;
    if known.contains(&number) {
        return Ok(None);
    }
    if known.len() >= SET_ASIDE_MAX {
        let what =
            format!("more than {SET_ASIDE_MAX} expired items cannot be removed, the last because of: {why}");
        return Err(Error::Corrupt(what));
    }
    let reason = why[..why.floor_char_boundary(REASON_BYTES_MAX)].to_owned();
    let (keyspace, key) = Key::SetAside(partition, number).encode();
    tx.put(keyspace, key, reason.clone().into_bytes());
    Ok(Some(SetAside { number, reason }))
}

/// Runs the removal of one item. Returns its result, or the damage that prevents it, with all its changes undone.
/// Other errors end the transaction.
pub(crate) fn attempt<R>(
    tx: &mut Transaction<'_>,
    removal: impl FnOnce(&mut Transaction<'_>) -> Result<R>,
) -> Result<std::result::Result<R, String>> {
    match tx.attempt(removal) {
        Ok(removed) => Ok(Ok(removed)),
        Err(Error::Corrupt(why)) => Ok(Err(why)),
        Err(error) => Err(error),
    }
}

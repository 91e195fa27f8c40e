//! Expired items that cannot be removed, because their bytes or the entries beside them are damaged.
//!
//! A sweep that meets one takes back what it began to do to it, leaves a note and goes on: one damaged item keeps no other from
//! being purged. The purge's cursor passes its queue entry, so that later sweeps do not begin at it again; the item stays
//! hidden: a change of rules leaves a cutoff for it, and the cutoff that keeps it expired is not forgotten (T13). It counts as
//! late for the retention promise once its bound has passed (T24). Restarts find the note. A repair removes the note of an item
//! that can be read again and sets the cursor back.

use std::collections::{BTreeMap, BTreeSet};

use document::ItemNumber;
use storage::{Direction, KeyRange, Keyspace, Read, Time, Transaction};

use super::{before_hand, death_at};
use crate::archive::unarchived;
use crate::counters::Tally;
use crate::error::{Error, Result};
use crate::expiry::{Millis, Place, Queue};
use crate::gate::Gate;
use crate::header::decode_header;
use crate::keys::{self, Key, PartitionId};
use crate::limits::SET_ASIDE_MAX;

/// Bytes of items that are read to learn how large they are: figures are asked for several times a second.
pub(super) const MEASURED_BYTES_MAX: usize = 1024 * 1024;

/// The longest reason that is kept.
const REASON_BYTES_MAX: usize = 512;

/// An item that a sweep has set aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SetAside {
    pub(super) number: ItemNumber,
    pub(super) reason: String,
}

/// The items of a partition that are set aside; there are few.
pub(crate) fn numbers(reader: &(impl Read + ?Sized), partition: PartitionId) -> Result<BTreeSet<ItemNumber>> {
    let notes = KeyRange::prefix(keys::set_aside(partition));
    let scan = reader.scan(Keyspace::Counter, notes, Direction::Forward);
    scan.map(|note| keys::set_aside_number(&note?.0)).collect()
}

/// Whether no item of a partition is set aside.
pub(super) fn is_empty(reader: &(impl Read + ?Sized), partition: PartitionId) -> Result<bool> {
    let notes = KeyRange::prefix(keys::set_aside(partition));
    Ok(reader.scan(Keyspace::Counter, notes, Direction::Forward).next().transpose()?.is_none())
}

/// The entries of a queue that belong to items which are set aside: those that the purge's cursor has passed.
fn passed(
    reader: &dyn Read,
    partition: PartitionId,
    queue: Queue,
) -> Result<impl Iterator<Item = Result<(Millis, ItemNumber)>>> {
    let range = before_hand(reader, partition, queue)?;
    let scan = reader.scan(Keyspace::Queue, range, Direction::Forward);
    Ok(scan.map(|entry| keys::queue_entry(&entry?.0)))
}

/// The bases of the items of a queue that are set aside.
pub(super) fn bases(reader: &dyn Read, partition: PartitionId, queue: Queue) -> Result<Vec<Millis>> {
    if is_empty(reader, partition)? {
        return Ok(Vec::new());
    }
    passed(reader, partition, queue)?.map(|entry| Ok(entry?.0)).collect()
}

/// When the items that are set aside expired, those that writes had moved aside before included.
pub(super) fn expiries(reader: &dyn Read, gate: &Gate) -> Result<Vec<Time>> {
    let numbers = numbers(reader, gate.partition)?;
    if numbers.is_empty() {
        return Ok(Vec::new());
    }
    let mut expiries: BTreeMap<ItemNumber, Time> = BTreeMap::new();
    let mut note = |number, at: Time| {
        expiries.entry(number).and_modify(|known| *known = at.min(*known)).or_insert(at);
    };
    for queue in gate.policy.queues() {
        for entry in passed(reader, gate.partition, queue)? {
            let (base, number) = entry?;
            if let Some(at) = death_at(gate, Place { queue, base }) {
                note(number, at);
            }
        }
    }
    for entry in unarchived::entries(reader, gate.partition) {
        let (died, number) = keys::unarchived_entry(&entry?.0)?;
        if numbers.contains(&number) {
            note(number, Time::from_millis(died.max(0).unsigned_abs()));
        }
    }
    Ok(expiries.into_values().collect())
}

/// How many items of a partition are set aside.
pub(super) fn count(reader: &dyn Read, partition: PartitionId) -> Result<u64> {
    Ok(numbers(reader, partition)?.len() as u64)
}

/// How many items of a partition are set aside, and the bytes that are known of them. An item has to be read for its size, so
/// those behind the first [`MEASURED_BYTES_MAX`] count without bytes.
pub(super) fn tally(reader: &dyn Read, partition: PartitionId) -> Result<Tally> {
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

/// Sets an item aside; none if it is already. Too many of them are damage of the partition.
pub(super) fn put(
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

/// Runs the removal of one item: its result, or the damage that prevents it, with nothing of it done. Other errors end the
/// transaction.
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

//! The first items of a partition: once a sweep has removed them, no item with a lower number is left, and a watermark records that
//! (`storage`, `watermark.rs`).
//!
//! Numbers are given in the order of creation and never reused. So if items expire in that order, no item and no entry is left up to
//! the number of the last removed one: every key of the index, of the queues and of the feed ends with the number of an item, or with
//! the sequence of a write of it, which is not lower. An item that expires later than its successors holds the front back; then
//! removals are made entry by entry.

use std::collections::HashSet;

use bytes::Bytes;
use document::ItemNumber;
use storage::{Direction, KeyRange, Keyspace, Read, Scan, Transaction, watermark};

use crate::entries::queues::from_cursor;
use crate::entries::set_aside;
use crate::expiry::{Millis, Policy};
use crate::keys::{self, Key, PartitionId};
use crate::types::error::Result;
use crate::types::events;

/// A scan over the first items of a partition, as far as the removals reach.
pub(super) struct FrontScan<'a> {
    items: Scan<'a>,
    head: Option<(ItemNumber, Bytes)>,
}

impl<'a> FrontScan<'a> {
    /// Begins at the partition's watermark.
    pub(super) fn open(reader: &'a dyn Read, partition: PartitionId) -> Result<FrontScan<'a>> {
        let below = ItemNumber(watermark(reader, partition.0.to_be_bytes())?);
        let mut range = KeyRange::prefix(keys::partition(partition));
        range.start = std::ops::Bound::Included(Key::Item(partition, below).encode().1);
        let mut scan =
            FrontScan { items: reader.scan(Keyspace::Item, range, Direction::Forward), head: None };
        scan.step()?;
        Ok(scan)
    }

    fn step(&mut self) -> Result<Option<(ItemNumber, Bytes)>> {
        let next = self.items.next().transpose()?;
        let next =
            next.map(|(key, bytes)| Ok::<_, crate::Error>((keys::item_number(&key)?, bytes))).transpose()?;
        Ok(std::mem::replace(&mut self.head, next))
    }

    /// Returns the stored bytes of an item if it is the next one.
    pub(super) fn bytes_of(&self, number: ItemNumber) -> Option<Bytes> {
        self.head.as_ref().filter(|(next, _)| *next == number).map(|(_, bytes)| bytes.clone())
    }
}

/// The first items of a partition.
#[derive(Debug, Default)]
pub(super) struct Front {
    /// In ascending order, without a gap.
    numbers: Vec<ItemNumber>,
    removed: HashSet<ItemNumber>,
    /// Whether no item follows them.
    are_all: bool,
}

impl Front {
    /// Adds the next items of the scan, as long as they are to be removed.
    pub(super) fn extend(
        &mut self,
        scan: &mut FrontScan<'_>,
        is_to_be_removed: impl Fn(&ItemNumber) -> bool,
    ) -> Result<()> {
        while scan.head.as_ref().is_some_and(|(next, _)| is_to_be_removed(next)) {
            self.numbers.extend(scan.step()?.map(|(number, _)| number));
        }
        self.are_all = scan.head.is_none();
        Ok(())
    }

    /// Records that an item was removed.
    pub(super) fn removed(&mut self, number: ItemNumber) {
        self.removed.insert(number);
    }

    /// Sets the watermark above the first items that were removed, or, if the partition is empty now, above everything that was ever
    /// written to it, changes of its items included.
    pub(super) fn set_watermark(
        &self,
        tx: &mut Transaction<'_>,
        partition: PartitionId,
        policy: &Policy,
    ) -> Result<()> {
        let removed = self.numbers.iter().take_while(|number| self.removed.contains(number)).count();
        let Some(last) = removed.checked_sub(1).map(|last| self.numbers[last]) else { return Ok(()) };
        let is_empty = self.are_all
            && removed == self.numbers.len()
            && no_item_behind(tx, partition, last)?
            && no_item_waits(tx, partition, policy)?;
        let below = if is_empty { events::last_of_commit(tx.last_sequence()).0 } else { last.0 };
        // A damaged item may have lost its bytes and still have entries.
        let damaged = set_aside::numbers(tx, partition)?.first().map_or(u64::MAX, |number| number.0);
        Ok(tx.set_watermark(partition.0.to_be_bytes(), damaged.min(below + 1))?)
    }
}

/// Returns whether a partition has no item with a higher number.
fn no_item_behind(reader: &dyn Read, partition: PartitionId, number: ItemNumber) -> Result<bool> {
    let behind = KeyRange::prefix(keys::partition(partition)).after(Key::Item(partition, number).encode().1);
    Ok(reader.scan(Keyspace::Item, behind, Direction::Forward).next().transpose()?.is_none())
}

/// Returns whether the purge has visited every item in the queues: an item that it has not visited may be damaged.
fn no_item_waits(reader: &dyn Read, partition: PartitionId, policy: &Policy) -> Result<bool> {
    for queue in policy.queues() {
        let waiting = from_cursor(reader, partition, queue, Millis::MAX)?;
        if reader.scan(Keyspace::Queue, waiting, Direction::Forward).next().transpose()?.is_some() {
            return Ok(false);
        }
    }
    Ok(true)
}

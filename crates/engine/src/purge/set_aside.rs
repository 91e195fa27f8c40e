//! Expired items that cannot be removed, because their bytes or the entries beside them are damaged.
//!
//! A sweep that meets one takes back what it began to do to it, leaves a note and goes on: one damaged item keeps no other from
//! being purged. The purge's cursor passes its queue entry, so that later sweeps do not begin at it again; the item stays
//! hidden: a change of rules leaves a cutoff for it, and cutoffs that may cover it are not forgotten (T13). Restarts find the note. A repair removes the note of an item
//! that can be read again and sets the cursor back.

use std::collections::BTreeSet;

use document::ItemNumber;
use storage::{Direction, KeyRange, Keyspace, Read, Transaction};

use crate::error::{Error, Result};
use crate::keys::{self, Key, PartitionId};
use crate::limits::SET_ASIDE_MAX;

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

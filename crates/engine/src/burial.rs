//! What is owed to a dead item by whoever removes it: its expiry in the feed of all versions (T28), its line in the archive
//! (T32), its entry in the deletion record; each where the owner asks for it, all in the transaction that removes it.
//!
//! The purge has written the line before. A write that finds a dead item in its way has not, and writes no files: it moves the
//! item aside, and the entry in the deletion record waits until the bytes are dropped. So it does in a held container, where
//! not even the dead may go (T31): their names are free all the same (T15).

use storage::{Time, Transaction};

use crate::archive::unarchived::{self, Unarchived};
use crate::charge::Charge;
use crate::container::Partition;
use crate::deletions;
use crate::error::Result;
use crate::expiry::Millis;
use crate::gate::Gate;
use crate::header::Record;
use crate::history;
use crate::obituary::{Keeper, Obituary};
use crate::purge::Removed;

/// The purge removes an item. Returns how many entries' worth of work it was.
pub(crate) fn by_purge<K: Keeper>(
    tx: &mut Transaction<'_>,
    gate: &Gate,
    keeper: &K,
    dead: &Record<K::Body>,
) -> Result<usize> {
    let work = history::expired(tx, gate, dead)?;
    if !gate.policy.lifecycle.deletion_record {
        return Ok(work);
    }
    let obituary = Obituary::new(keeper, &gate.policy, dead, None)?;
    deletions::purged(tx, gate.partition, &obituary)?;
    Ok(work + 1)
}

/// A write removes an item that it found in its way. Returns when the purge has something to do with it.
pub(crate) fn by_write<K: Keeper>(
    tx: &mut Transaction<'_>,
    gate: &Gate,
    keeper: &K,
    partition: &Partition,
    dead: &Record<K::Body>,
) -> Result<Option<Time>> {
    history::expired(tx, gate, dead)?;
    settle(tx, gate, keeper, partition, dead, None)
}

/// An item is removed by the write or the lift that has killed it: it was overdue when it came.
pub(crate) fn on_arrival<K: Keeper>(
    tx: &mut Transaction<'_>,
    gate: &Gate,
    keeper: &K,
    partition: &Partition,
    dead: &Record<K::Body>,
) -> Result<Option<Time>> {
    let now = Millis::try_from(tx.trusted_time().millis()).unwrap_or(Millis::MAX);
    settle(tx, gate, keeper, partition, dead, Some(now))
}

fn settle<K: Keeper>(
    tx: &mut Transaction<'_>,
    gate: &Gate,
    keeper: &K,
    partition: &Partition,
    dead: &Record<K::Body>,
    now: Option<Millis>,
) -> Result<Option<Time>> {
    let lifecycle = &gate.policy.lifecycle;
    let is_archived = |directory| partition.archive.has(directory, dead.number, dead.header.sequence);
    let has_no_line = lifecycle.archive.as_ref().is_some_and(|directory| !is_archived(directory));
    let waits = has_no_line || lifecycle.hold.is_some();
    if !waits {
        match now {
            Some(_) => partition.remains.note(gate.now),
            None => partition.remains.note_burial(gate, &dead.header),
        }
        if !lifecycle.deletion_record {
            return Ok(None);
        }
    }
    let obituary = Obituary::new(keeper, &gate.policy, dead, now)?;
    if waits {
        Unarchived { obituary, record: dead.clone() }.put(tx, gate.partition)?;
        return Ok(Some(gate.now));
    }
    deletions::purged(tx, gate.partition, &obituary)?;
    Ok(None)
}

/// The purge removes an item that was moved aside. None if it is gone already.
pub(crate) fn of_aside(tx: &mut Transaction<'_>, gate: &Gate, key: &[u8]) -> Result<Option<Removed>> {
    let Some(value) = unarchived::remove(tx, gate.partition, key)? else { return Ok(None) };
    let (obituary, image) = unarchived::split(key, &value)?;
    if gate.policy.lifecycle.deletion_record {
        deletions::purged(tx, gate.partition, &obituary)?;
    }
    let bytes = image.len() as u64;
    let died = Some(Time::from_millis(obituary.died.max(0).unsigned_abs()));
    Ok(Some(Removed { died, bytes, entries: 2, charge: Charge::write(bytes, 0) }))
}

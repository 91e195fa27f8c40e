//! Removal of an expired item: records its expiry in the feed of all versions (T28), archives it (T32) and adds it to
//! the deletion record, each where the owner asks for it, all in the transaction that removes the item.
//!
//! The purge has already written the archive's line. A write that claims the id or a unique value of an expired item has
//! not, and must not write files. It moves the item aside instead, and the entry in the deletion record waits until the
//! bytes are removed. The same happens in a held container, where even expired items must stay (T31): their ids are free
//! all the same (T15).

use storage::{Time, Transaction};

use crate::access::gate::Gate;
use crate::catalog::container::Partition;
use crate::evidence::archive::unarchived::{self, Unarchived};
use crate::evidence::deletions;
use crate::evidence::expiry_record::{EvidenceSource, ExpiryRecord};
use crate::expiry::Millis;
use crate::expiry::header::Record;
use crate::feed::history;
use crate::types::charge::Charge;
use crate::types::error::Result;

/// One removed item.
pub(crate) struct Removed {
    /// When it had expired.
    pub(crate) expired_at: Option<Time>,
    pub(crate) bytes: u64,
    pub(crate) entries: usize,
    pub(crate) charge: Charge,
}

/// Removes an item on behalf of the purge. Returns how many entries' worth of work it was.
pub(crate) fn by_purge<K: EvidenceSource>(
    tx: &mut Transaction<'_>,
    gate: &Gate,
    source: &K,
    expired: &Record<K::Body>,
) -> Result<usize> {
    let work = history::expired(tx, gate, expired)?;
    if !gate.policy.lifecycle.deletion_record {
        return Ok(work);
    }
    let expiry_record = ExpiryRecord::new(source, &gate.policy, expired, None)?;
    deletions::purged(tx, gate.partition, &expiry_record)?;
    Ok(work + 1)
}

/// Removes an expired item whose id or unique value a write claims. Returns when the purge has to visit because of it.
pub(crate) fn by_write<K: EvidenceSource>(
    tx: &mut Transaction<'_>,
    gate: &Gate,
    source: &K,
    partition: &Partition,
    expired: &Record<K::Body>,
) -> Result<Option<Time>> {
    history::expired(tx, gate, expired)?;
    settle(tx, gate, source, partition, expired, None)
}

/// Removes an item that was overdue as it came under the rules, on behalf of the write or the lift that caused it.
pub(crate) fn on_arrival<K: EvidenceSource>(
    tx: &mut Transaction<'_>,
    gate: &Gate,
    source: &K,
    partition: &Partition,
    expired: &Record<K::Body>,
) -> Result<Option<Time>> {
    let now = Millis::try_from(tx.trusted_time().millis()).unwrap_or(Millis::MAX);
    settle(tx, gate, source, partition, expired, Some(now))
}

fn settle<K: EvidenceSource>(
    tx: &mut Transaction<'_>,
    gate: &Gate,
    source: &K,
    partition: &Partition,
    expired: &Record<K::Body>,
    now: Option<Millis>,
) -> Result<Option<Time>> {
    let lifecycle = &gate.policy.lifecycle;
    let is_archived = |directory| partition.archive.has(directory, expired.number, expired.header.sequence);
    let has_no_line = lifecycle.archive.as_ref().is_some_and(|directory| !is_archived(directory));
    let waits = has_no_line || lifecycle.hold.is_some();
    if !waits {
        match now {
            Some(_) => partition.unscrubbed.note(gate.now),
            None => gate
                .expiry_time_of(&expired.header)
                .into_iter()
                .for_each(|expired_at| partition.unscrubbed.note(expired_at)),
        }
        if !lifecycle.deletion_record {
            return Ok(None);
        }
    }
    let expiry_record = ExpiryRecord::new(source, &gate.policy, expired, now)?;
    if waits {
        Unarchived { expiry_record, record: expired.clone() }.put(tx, gate.partition)?;
        return Ok(Some(gate.now));
    }
    deletions::purged(tx, gate.partition, &expiry_record)?;
    Ok(None)
}

/// Removes an item that was moved aside, on behalf of the purge. Returns `None` if it is already removed.
pub(crate) fn of_aside(tx: &mut Transaction<'_>, gate: &Gate, key: &[u8]) -> Result<Option<Removed>> {
    let Some(value) = unarchived::remove(tx, gate.partition, key)? else { return Ok(None) };
    let (expiry_record, image) = unarchived::split(key, &value)?;
    if gate.policy.lifecycle.deletion_record {
        deletions::purged(tx, gate.partition, &expiry_record)?;
    }
    let bytes = image.len() as u64;
    let expired_at = Some(Time::from_millis(expiry_record.expired_at.max(0).unsigned_abs()));
    Ok(Some(Removed { expired_at, bytes, entries: 2, charge: Charge::write(bytes, 0) }))
}

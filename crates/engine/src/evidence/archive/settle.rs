//! Archives the expired items of a container or collection that is about to be dropped.
//!
//! The living items of a dropped container are deleted by its owner, and need no archive. The expired ones do. So a
//! drop runs the purge there first, and is refused as long as the archive cannot be written. The transaction that
//! drops cannot write lines, and where items expire every moment, some would always expire in between: items that
//! expire within a second after the last check are dropped with the container.

use storage::{Read, Time, Transaction};

use super::unarchived;
use crate::Engine;
use crate::access::gate::View;
use crate::catalog::container::Partition;
use crate::catalog::load_policy;
use crate::catalog::owner::Owner;
use crate::entries::queues;
use crate::expiry::Policy;
use crate::keys::PartitionId;
use crate::types::error::{Error, Result};
use crate::types::limits::{ARCHIVE_BATCH_ITEMS, SETTLE_STEPS_MAX};

impl Engine {
    /// Archives and purges the expired items of an owner that is about to be dropped, as far as possible.
    pub(crate) fn settle(&self, owner: &Owner) -> Result<()> {
        let lifecycle = owner.lifecycle();
        if lifecycle.archive.is_none() || lifecycle.hold.is_some() {
            return Ok(());
        }
        self.retry_archives(Some(owner))?;
        for _ in 0..SETTLE_STEPS_MAX {
            for partition in owner.partitions() {
                // The background may have taken the due visit and not finished it.
                partition.next_due.at_once();
            }
            // An item may expire during each step; only items that had expired before the step count. So steps are
            // short.
            let before = self.store.now()?;
            self.purge_at_once(Some(owner), ARCHIVE_BATCH_ITEMS)?;
            if self.is_purge_stopped()? || self.is_settled(owner, before)? {
                break;
            }
        }
        Ok(())
    }

    /// Returns whether another step is useless: all items that had expired by then are removed, or their archive
    /// cannot be written.
    fn is_settled(&self, owner: &Owner, by: Time) -> Result<bool> {
        for partition in owner.partitions() {
            if partition.archive.is_failing() {
                return Ok(true);
            }
            let View { snapshot, gate, .. } = View::open(&*self.store, partition)?;
            if has_expired(&*snapshot, gate.partition, &gate.policy, by)? {
                return Ok(false);
            }
            partition.archive.settled(by);
        }
        Ok(true)
    }
}

/// Refuses to drop a partition whose expired items are not archived.
pub(crate) fn check_drop(tx: &Transaction<'_>, partition: &Partition) -> Result<()> {
    let policy = load_policy(tx, partition.id)?;
    let by = partition.archive.owed_until(tx.trusted_time());
    if policy.lifecycle.archive.is_some() && has_expired(tx, partition.id, &policy, by)? {
        return Err(Error::Unarchived);
    }
    Ok(())
}

/// Returns whether an item that has expired by then is still there, in its place or moved aside, and can be removed.
/// Items that the purge has set aside do not count: no line can be written for them.
fn has_expired(reader: &dyn Read, partition: PartitionId, policy: &Policy, by: Time) -> Result<bool> {
    if unarchived::oldest(reader, partition)?.is_some_and(|expired_at| expired_at <= by) {
        return Ok(true);
    }
    for queue in policy.queues() {
        if let Some(through) = policy.expired_through(queue, by)
            && queues::is_waiting(reader, partition, queue, through)?
        {
            return Ok(true);
        }
    }
    Ok(false)
}

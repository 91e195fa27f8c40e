//! What is dropped as a whole: its dead are archived first.
//!
//! The living of a dropped container are deleted by its owner, and no archive is owed to them. The dead are owed one, so a drop
//! runs the purge there, and is refused as long as the archive does not take them. Lines are not written in the transaction that
//! drops, and where something dies every moment there would always be somebody who died in between: whoever dies within a
//! second after the last look goes with the drop.

use storage::{Read, Time, Transaction};

use super::unarchived;
use crate::Engine;
use crate::catalog::load_policy;
use crate::container::Partition;
use crate::error::{Error, Result};
use crate::expiry::Policy;
use crate::gate::View;
use crate::holder::Holder;
use crate::keys::PartitionId;
use crate::limits::{ARCHIVE_BATCH_ITEMS, SETTLE_STEPS_MAX};
use crate::purge;

impl Engine {
    /// Archives and purges what is dead in something that is about to be dropped, as far as that can be done.
    pub(crate) fn settle(&self, holder: &Holder) -> Result<()> {
        let lifecycle = holder.lifecycle();
        if lifecycle.archive.is_none() || lifecycle.hold.is_some() {
            return Ok(());
        }
        self.retry_archives(Some(holder))?;
        for _ in 0..SETTLE_STEPS_MAX {
            for partition in holder.partitions() {
                // The background may have taken the look that was due, and do something with it later.
                partition.next_look.at_once();
            }
            // Somebody may die while a step runs, each time; what counts is who was dead before it. So steps are short.
            let before = self.store.now()?;
            self.purge_at_once(Some(holder), ARCHIVE_BATCH_ITEMS)?;
            if self.is_purge_stopped()? || self.is_settled(holder, before)? {
                break;
            }
        }
        Ok(())
    }

    /// Whether another step is in vain: all who were dead by then are gone, or their archive cannot be written.
    fn is_settled(&self, holder: &Holder, by: Time) -> Result<bool> {
        for partition in holder.partitions() {
            if partition.archive.is_failing() {
                return Ok(true);
            }
            let View { snapshot, gate, .. } = View::open(&*self.store, partition)?;
            if has_dead(&*snapshot, gate.partition, &gate.policy, by)? {
                return Ok(false);
            }
            partition.archive.settled(by);
        }
        Ok(true)
    }
}

/// Refuses to drop a partition whose dead are not archived.
pub(crate) fn check_drop(tx: &Transaction<'_>, partition: &Partition) -> Result<()> {
    let policy = load_policy(tx, partition.id)?;
    let by = partition.archive.owed_until(tx.trusted_time());
    if policy.lifecycle.archive.is_some() && has_dead(tx, partition.id, &policy, by)? {
        return Err(Error::Unarchived);
    }
    Ok(())
}

/// Whether an item that has expired by then is still there, in its place or moved aside, and can be removed: no line can be
/// owed to one that the purge has set aside.
fn has_dead(reader: &dyn Read, partition: PartitionId, policy: &Policy, by: Time) -> Result<bool> {
    if unarchived::oldest(reader, partition)?.is_some_and(|died| died <= by) {
        return Ok(true);
    }
    for queue in policy.queues() {
        if let Some(through) = policy.dead_through(queue, by)
            && purge::is_waiting(reader, partition, queue, through)?
        {
            return Ok(true);
        }
    }
    Ok(false)
}

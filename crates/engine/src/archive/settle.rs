//! What is dropped as a whole: its dead are archived first.
//!
//! The living of a dropped container are deleted by its owner, and no archive is owed to them. The dead are owed one, so a drop
//! runs the purge there, and is refused as long as the archive does not take them.

use storage::{Read, Time, Transaction};

use super::unarchived;
use crate::Engine;
use crate::catalog::load_policy;
use crate::error::{Error, Result};
use crate::expiry::Policy;
use crate::gate::View;
use crate::holder::Holder;
use crate::keys::PartitionId;
use crate::limits::{LIFT_STEP, LIFT_STEPS_MAX};
use crate::purge;

impl Engine {
    /// Archives and purges what is dead in something that is about to be dropped, as far as that can be done.
    pub(crate) fn settle(&self, holder: &Holder) -> Result<()> {
        let lifecycle = holder.lifecycle();
        if lifecycle.archive.is_none() || lifecycle.hold.is_some() {
            return Ok(());
        }
        self.retry_archives(Some(holder))?;
        for _ in 0..LIFT_STEPS_MAX {
            for partition in holder.partitions() {
                // The background may have taken the look that was due, and do something with it later.
                partition.next_look.at_once();
            }
            self.purge_at_once(Some(holder), LIFT_STEP)?;
            if self.is_purge_stopped()? || self.is_settled(holder)? {
                break;
            }
        }
        Ok(())
    }

    /// Whether another step would do nothing: all the dead are gone, or their archive cannot be written.
    fn is_settled(&self, holder: &Holder) -> Result<bool> {
        for partition in holder.partitions() {
            if partition.archive.is_failing() {
                return Ok(true);
            }
            let View { snapshot, gate, .. } = View::open(&*self.store, partition)?;
            if has_dead(&*snapshot, gate.partition, &gate.policy, gate.now)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Refuses to drop a partition whose dead are not archived.
pub(crate) fn check_drop(tx: &Transaction<'_>, partition: PartitionId) -> Result<()> {
    let policy = load_policy(tx, partition)?;
    if policy.lifecycle.archive.is_some() && has_dead(tx, partition, &policy, tx.trusted_time())? {
        return Err(Error::Unarchived);
    }
    Ok(())
}

/// Whether anything dead is still there, in its place or aside.
fn has_dead(reader: &dyn Read, partition: PartitionId, policy: &Policy, now: Time) -> Result<bool> {
    if unarchived::sum(reader, partition)?.items > 0 {
        return Ok(true);
    }
    for queue in policy.queues() {
        if let Some(through) = policy.dead_through(queue, now)
            && purge::is_occupied(reader, partition, queue, through)?
        {
            return Ok(true);
        }
    }
    Ok(false)
}

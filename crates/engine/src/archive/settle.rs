//! What is dropped as a whole: its dead are archived first.
//!
//! The living of a dropped container are deleted by its owner, and no archive is owed to them. The dead are owed one, so a drop
//! runs the purge there, and is refused as long as the archive does not take them.

use storage::Transaction;

use super::unarchived;
use crate::Engine;
use crate::catalog::load_policy;
use crate::error::{Error, Result};
use crate::holder::Holder;
use crate::keys::PartitionId;
use crate::limits::{LIFT_STEP, LIFT_STEPS_MAX};
use crate::purge;

impl Engine {
    /// Archives and purges what is dead in something that is about to be dropped, as far as that can be done.
    pub(crate) fn settle(&self, holder: &Holder) -> Result<()> {
        if holder.lifecycle().archive.is_none() {
            return Ok(());
        }
        self.retry_archives(Some(holder))?;
        for _ in 0..LIFT_STEPS_MAX {
            if self.purge_at_once(Some(holder), LIFT_STEP)?.purged_items == 0 {
                break;
            }
        }
        Ok(())
    }
}

/// Refuses to drop a partition whose dead are not archived.
pub(crate) fn check_drop(tx: &Transaction<'_>, partition: PartitionId) -> Result<()> {
    let policy = load_policy(tx, partition)?;
    if policy.lifecycle.archive.is_none() {
        return Ok(());
    }
    let mut waits = unarchived::sum(tx, partition)?.items > 0;
    for queue in policy.queues() {
        if let Some(through) = policy.dead_through(queue, tx.trusted_time()) {
            waits |= purge::is_occupied(tx, partition, queue, through)?;
        }
    }
    if waits { Err(Error::Unarchived) } else { Ok(()) }
}

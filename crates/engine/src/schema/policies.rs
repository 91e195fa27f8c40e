//! Changes of a partition's policy: its expiry rules and lifecycle settings.

use storage::Transaction;

use crate::catalog::{load_policy, put};
use crate::entries::queues;
use crate::evidence::deletions;
use crate::expiry::{Change, Millis, Policy, Queue};
use crate::feed::history;
use crate::keys::{Key, PartitionId};
use crate::types::error::{Error, Result};
use crate::types::events::Events;

/// Applies changes to the rules of a partition. Returns the policy, which is written if it differs. The caller holds
/// the partition's policy lock, see `gate`.
pub(crate) fn change_policy(
    tx: &mut Transaction<'_>,
    partition: PartitionId,
    changes: &[Change],
) -> Result<Policy> {
    let before = load_policy(tx, partition)?;
    let (mut next, mut events) = (before.clone(), Events::default());
    for change in changes {
        if !next.differs(change) {
            continue;
        }
        if tx.clock_is_suspect() && next.judges(change) {
            return Err(Error::ClockSuspect { what: "an expiry rule is changed" });
        }
        let sequence = events.next(tx);
        let occupied = |queue: Queue, through: Millis| queues::is_occupied(tx, partition, queue, through);
        // A change that does not decide which items have expired is made even while the clock is suspect: it uses the
        // trusted time.
        let policy = next.change(change.clone(), tx.trusted_time(), sequence, occupied)?;
        history::follow(tx, partition, &next, &policy, sequence)?;
        next = policy;
    }
    if next.version != before.version {
        put(tx, Key::Policy(partition), next.encode());
        deletions::follow(tx, partition, &before, &next)?;
    }
    Ok(next)
}

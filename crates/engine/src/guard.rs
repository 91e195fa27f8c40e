//! The guard against changes of rules that kill many at once (T30): `maxInstantExpiry`.
//!
//! Whether a change kills too many is counted inside its own transaction, so nothing lies between the count and the change.

use storage::Transaction;

use crate::catalog::{change_policy, load_policy};
use crate::counters::{self, Count, Tally};
use crate::error::{Error, Result};
use crate::expiry::{Change, Policy};
use crate::keys::PartitionId;

/// Whether whoever changes a rule has said that items may expire at once by it, however many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// No: the guard decides.
    NotGiven,
    /// Yes.
    Given,
}

/// Changes the rules of all partitions of a container or collection, unless that would kill more of the living at once than
/// their owner wants. Whoever calls holds the partitions' policy locks, see `gate`.
pub(crate) fn change_policies(
    tx: &mut Transaction<'_>,
    partitions: &[PartitionId],
    changes: &[Change],
    consent: Consent,
) -> Result<Vec<Policy>> {
    let before = partitions.iter().map(|id| load_policy(tx, *id)).collect::<Result<Vec<_>>>()?;
    let next = partitions.iter().map(|id| change_policy(tx, *id, changes)).collect::<Result<Vec<_>>>()?;
    let limit = before.first().and_then(|policy| policy.lifecycle.max_instant_expiry);
    if let (Some(limit), Consent::NotGiven) = (limit, consent)
        && before != next
    {
        check(tx, partitions, (&before, &next), changes, limit)?;
    }
    Ok(next)
}

fn check(
    tx: &Transaction<'_>,
    partitions: &[PartitionId],
    (before, next): (&[Policy], &[Policy]),
    changes: &[Change],
    limit: u32,
) -> Result<()> {
    let (mut living, mut dying) = (Tally::default(), Count::default());
    for ((id, before), next) in partitions.iter().zip(before).zip(next) {
        let dead = counters::dead(tx, *id, before, tx.time())?;
        let alive = counters::total(tx, *id)?.minus(dead)?;
        let after = counters::dead_at_most(tx, *id, next, tx.time())?;
        living = living.plus(alive);
        dying = dying.plus(Count { tally: after.tally.minus(dead)?, ..after });
    }
    let share = f64::from(limit) / 1_000_000.0;
    let unknown = changes.iter().any(|change| matches!(change, Change::AddRule { .. }));
    if unknown && living.items > 0 {
        return Err(Error::NotConfirmed {
            what: format!(
                "it cannot be told how many of {} living items a new date rule would make expire at once; \
                 maxInstantExpiry allows a share of {share}",
                living.items
            ),
        });
    }
    if u128::from(dying.tally.items) * 1_000_000 > u128::from(limit) * u128::from(living.items) {
        let at_most = if dying.exact { "" } else { "up to " };
        return Err(Error::NotConfirmed {
            what: format!(
                "{at_most}{} of {} living items ({at_most}{} of {} bytes) would expire at once; maxInstantExpiry \
                 allows a share of {share}",
                dying.tally.items, living.items, dying.tally.bytes, living.bytes
            ),
        });
    }
    Ok(())
}

//! The guard against changes of rules that expire many items at once (T30): `maxInstantExpiry`.
//!
//! The items that a change would expire are counted inside the transaction of the change, so no write can come in
//! between.

use storage::Transaction;

use super::policies::change_policy;
use crate::catalog::load_policy;
use crate::entries::counters::{self, Count, Tally};
use crate::expiry::{Change, Policy};
use crate::keys::PartitionId;
use crate::types::error::{Error, Result};

/// Whether the caller has confirmed that the change may expire any number of items at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// Not confirmed: the guard decides.
    NotGiven,
    /// Confirmed.
    Given,
}

/// Changes the rules of all partitions of a container or collection, unless that would expire more of the living
/// items at once than their owner allows. The caller holds the partitions' policy locks, see `gate`.
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
    let (mut living, mut expiring) = (Tally::default(), Count::default());
    for ((id, before), next) in partitions.iter().zip(before).zip(next) {
        let expired = counters::expired(tx, *id, before, tx.time())?;
        let living_now = counters::total(tx, *id)?.minus(expired)?;
        let after = counters::expired_at_most(tx, *id, next, tx.time())?;
        living = living.plus(living_now);
        expiring = expiring.plus(Count { tally: after.tally.minus(expired)?, ..after });
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
    if u128::from(expiring.tally.items) * 1_000_000 > u128::from(limit) * u128::from(living.items) {
        let at_most = if expiring.exact { "" } else { "up to " };
        return Err(Error::NotConfirmed {
            what: format!(
                "{at_most}{} of {} living items ({at_most}{} of {} bytes) would expire at once; maxInstantExpiry \
                 allows a share of {share}",
                expiring.tally.items, living.items, expiring.tally.bytes, living.bytes
            ),
        });
    }
    Ok(())
}

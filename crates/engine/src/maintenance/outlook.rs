//! Counts the items that an irreversible action of an operator would expire: moving the clock, or lifting a hold. It
//! reads no items, and the counts are shown before the action.

use storage::{Time, transact};

use crate::Engine;
use crate::access::gate::View;
use crate::catalog::owner::Owner;
use crate::entries::counters::{self, Count};
use crate::expiry::Policy;
use crate::maintenance::hold::LocatedItem;
use crate::types::error::Result;
use crate::types::item_address::ItemAddress;

impl Engine {
    /// Counts the living items of all containers and collections that will have expired by a later time, under the
    /// present rules.
    pub fn expiring_until(&self, until: Time) -> Result<Count> {
        let catalog = self.catalog();
        let mut sum = Count::default();
        for (_, partition) in catalog.owned_partitions() {
            let view = View::open(&*self.store, partition)?;
            sum = sum.plus(view.expiring(view.gate.now, &view.gate.policy, until)?);
        }
        Ok(sum)
    }

    /// Counts the items that an operator destroys by accepting the time of a suspect clock: those that have not
    /// expired by the trusted time and have by the accepted one, hidden already or not (T34). The count is zero while
    /// the clock is not suspect.
    pub fn expiring_by_acceptance(&self) -> Result<Count> {
        let status = self.store.clock_status()?;
        let Some(suspicion) = status.suspect else { return Ok(Count::default()) };
        let catalog = self.catalog();
        let mut sum = Count::default();
        for (_, partition) in catalog.owned_partitions() {
            let view = View::open(&*self.store, partition)?;
            sum = sum.plus(view.expiring(status.trusted, &view.gate.policy, suspicion.accepted)?);
        }
        Ok(sum)
    }

    /// Counts the items of a held container or collection that are overdue: they expire when its hold is lifted (T31).
    pub fn overdue_under_hold(&self, owner: &Owner) -> Result<Count> {
        let mut sum = Count::default();
        for view in View::open_all(&*self.store, owner.partitions())? {
            let mut policy = (*view.gate.policy).clone();
            policy.lifecycle.hold = None;
            sum = sum.plus(view.expiring(view.gate.now, &policy, view.gate.now)?);
        }
        Ok(sum)
    }

    /// Returns whether an item that is held individually is overdue: it expires when its hold is lifted (T31). Fails
    /// if the item is not held.
    pub fn is_overdue_under_hold(&self, owner: &Owner, item: &ItemAddress) -> Result<bool> {
        let target = LocatedItem::new(owner, item)?;
        transact(&*self.store, target.lane(), move |tx| target.is_overdue(tx)).wait()
    }
}

impl View {
    /// Counts the items that have not expired by a time under the policy in force and have by another time under another
    /// policy.
    fn expiring(&self, since: Time, policy: &Policy, until: Time) -> Result<Count> {
        let View { snapshot, gate, .. } = self;
        let then = counters::expired_at_most(&**snapshot, gate.partition, policy, until)?;
        let before = counters::expired_at_most(&**snapshot, gate.partition, &gate.policy, since)?;
        let tally = then.tally.saturating_minus(before.tally);
        Ok(Count { tally, exact: then.exact && before.exact })
    }
}

//! Reads one item by its name, and the figures of a container. Queries have their own folder.

use document::PartitionKey;

use crate::Engine;
use crate::access::gate::{Gate, Usage, View};
use crate::access::outcome::Outcome;
use crate::access::outcome::read_outcome;
use crate::access::renewal::{self, SlidingRenewal};
use crate::catalog::container::Container;
use crate::catalog::home::{home_of_key, is_at_home};
use crate::entries::renewals;
use crate::expiry::header::Record;
use crate::expiry::item::Item;
use crate::types::error::{Error, Result};
use crate::types::request::{ItemName, Precondition, Scope};

impl Engine {
    /// Reads one item. Where reads restart the countdown, the outcome has the renewal that the caller has to run.
    pub fn read(
        &self,
        container: &Container,
        key: &PartitionKey,
        name: &ItemName,
        precondition: &Precondition,
    ) -> Result<Outcome> {
        let home = home_of_key(container, Some(key.clone()))?;
        let partition = container.partition_of(&home.effective);
        let pending = self.admit(container, partition)?;
        let view = View::open(&*self.store, partition)?;
        let record = match name {
            ItemName::Id(id) => view.by_id_key(&home.id_key(id)),
            ItemName::Number(number) => view
                .by_number(*number)
                .map(|found| found.filter(|record| is_at_home(&home, container, record))),
        };
        let record = record.map_err(|error| error.at_item(format_args!("item '{name}'")))?;
        let Record { number, mut header, body } = record.ok_or_else(|| Error::no_item(name))?;
        let Gate { policy, now, .. } = &view.gate;
        let renewal = SlidingRenewal::of(partition, &view.gate, number, &header);
        match &renewal {
            // The base that the renewal will set, whatever earlier renewals have set.
            Some(_) => header.renewed_at = renewal::restarted(policy, &header, *now),
            None => renewals::look_up(&*view.snapshot, partition.id, number, &mut header)?,
        }
        let seconds_left = policy.seconds_left(&header, *now);
        let item = Item::new(container.rid, Record { number, header, body });
        // The version may belong to a commit that is durable but not acknowledged yet.
        let range = partition.show(view.range.lsn.max(item.lsn));
        let outcome = read_outcome(item, precondition, range)?;
        pending.pay(outcome.charge);
        Ok(Outcome { seconds_left, renewal, ..outcome })
    }

    /// Returns exact figures of a container (T18).
    pub fn usage(&self, container: &Container) -> Result<Usage> {
        View::usage_of_all(&*self.store, &container.partitions)
    }
}

/// Returns whether an item is in the scope. A scan may visit others: two partition keys may share a hash, and the
/// queues are not sorted by key.
pub(crate) fn in_scope(scope: &Scope, container: &Container, record: &Record) -> bool {
    if scope.key.is_none() && scope.range.is_none() {
        return true;
    }
    let (definition, item) = (&container.definition.partition_key, record.body.root());
    if scope.key.as_ref().is_some_and(|key| !key.is_prefix_of_item(definition, item)) {
        return false;
    }
    scope.range.as_ref().is_none_or(|range| {
        let key = PartitionKey::extract(definition, item);
        key.is_ok_and(|key| range.contains(&key.effective(definition)))
    })
}

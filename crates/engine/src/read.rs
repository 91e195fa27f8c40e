//! Reading one item by its name, and the figures of a container. Queries have a room of their own.

use document::PartitionKey;

use crate::Engine;
use crate::container::{Container, Partition};
use crate::error::{Error, Result};
use crate::footprint::Home;
use crate::gate::{Gate, Usage, View};
use crate::header::Record;
use crate::item::Item;
use crate::operation::{ItemName, Outcome, Precondition, Scope};
use crate::touch::{self, Touch};
use crate::write::{home_of_key, is_at_home, read_outcome};

impl Engine {
    /// Reads one item. Where reads restart the countdown, the outcome has the touch that does it.
    pub fn read(
        &self,
        container: &Container,
        key: &PartitionKey,
        name: &ItemName,
        precondition: &Precondition,
    ) -> Result<Outcome> {
        let home = home_of_key(container, Some(key.clone()))?;
        let partition = container.partition_of(&home.effective);
        let toll = self.admit(container, partition)?;
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
        let touch = Touch::of(partition, &view.gate, number, &header);
        match &touch {
            // What the touch will make of it, whatever earlier ones have.
            Some(_) => header.touched = touch::restarted(policy, &header, *now),
            None => touch::look_up(&*view.snapshot, partition.id, number, &mut header)?,
        }
        let seconds_left = policy.seconds_left(&header, *now);
        let item = Item::new(container.rid, Record { number, header, body });
        // The version may be of a commit that is durable and not answered yet.
        let range = partition.show(view.range.lsn.max(item.lsn));
        let outcome = read_outcome(item, precondition, range)?;
        toll.pay(outcome.charge);
        Ok(Outcome { seconds_left, touch, ..outcome })
    }

    /// Exact figures of a container (T18).
    pub fn usage(&self, container: &Container) -> Result<Usage> {
        View::usage_of_all(&*self.store, &container.partitions)
    }
}

/// Whether an item lies in the scope. A walk may pass neighbours: two keys may share a hash, and the queues know no keys.
pub(crate) fn in_scope(scope: &Scope, container: &Container, partition: &Partition, record: &Record) -> bool {
    if scope.key.is_none() && scope.range.is_none() {
        return true;
    }
    Home::of(partition.id, &container.definition, record).is_ok_and(|home| {
        scope.key.as_ref().is_none_or(|key| key.is_prefix_of(&home.key))
            && scope.range.as_ref().is_none_or(|range| range.contains(&home.effective))
    })
}

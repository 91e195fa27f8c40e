//! Removals worked out before the transaction that makes them.
//!
//! What an item leaves in the store follows from its body: index terms have to be extracted, the partition key to be hashed.
//! Inside the transaction every writer waits for that, outside nobody does. So a sweep first reads the items that it expects
//! to remove at a snapshot and works out their footprints. The transaction still finds and judges every item by itself, and
//! uses a footprint only if item and index generations are exactly those that it was made from; for all others it makes its
//! own. So a wrong expectation costs time and nothing else. Reading ahead also brings the blocks into the cache that the
//! transaction needs.

use std::collections::HashMap;

use document::ItemNumber;
use storage::{Direction, Keyspace};

use super::from_hand;
use crate::container::{Container, Partition};
use crate::error::Result;
use crate::footprint::{Footprint, Home};
use crate::gate::{Found, View};
use crate::header::Record;
use crate::index::{Drafted, Upkeep};
use crate::keys;

/// Footprints of items that are expected to be removed.
#[derive(Debug, Default)]
pub(super) struct Prepared {
    /// The index generations that they are made for.
    upkeep: Option<Upkeep>,
    footprints: HashMap<ItemNumber, (Record, Footprint)>,
}

impl Prepared {
    /// Reads up to `limit` expired items of a partition, in the order in which a sweep removes them. Stops at the first item
    /// that cannot be read: the sweep will say what is wrong with it.
    pub(super) fn read(view: &View, container: &Container, partition: &Partition, limit: usize) -> Prepared {
        let mut prepared = Prepared::default();
        let _ = prepared.fill(view, container, partition, limit);
        prepared
    }

    fn fill(
        &mut self,
        view: &View,
        container: &Container,
        partition: &Partition,
        limit: usize,
    ) -> Result<()> {
        let (snapshot, gate) = (&*view.snapshot, &view.gate);
        let upkeep = self.upkeep.insert(Upkeep::load(snapshot, partition)?);
        for queue in gate.policy.queues() {
            let Some(through) = gate.policy.dead_through(queue, gate.now) else { continue };
            let range = from_hand(snapshot, gate.partition, queue, through)?;
            for entry in snapshot.scan(Keyspace::Queue, range, Direction::Forward) {
                if self.footprints.len() >= limit {
                    return Ok(());
                }
                let (_, number) = keys::queue_entry(&entry?.0)?;
                let Found::Dead(record) = gate.by_number(snapshot, number)? else { continue };
                let home = Home::of(gate.partition, &container.definition, &record)?;
                let footprint =
                    Footprint::new(&home, &container.definition, upkeep, &record, Drafted::default());
                self.footprints.insert(number, (record, footprint));
            }
        }
        Ok(())
    }

    /// The footprint of an item as a transaction has found it, if it is one of these.
    pub(super) fn take(&mut self, record: &Record, upkeep: &Upkeep) -> Option<Footprint> {
        let (expected, footprint) = self.footprints.remove(&record.number)?;
        let is_same = self.upkeep.as_ref().is_some_and(|known| known.is_for_the_same_as(upkeep));
        let is_unchanged =
            expected.header == record.header && expected.body.as_bytes() == record.body.as_bytes();
        (is_same && is_unchanged).then_some(footprint)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use document::{Document, Sequence, parse_json};
    use storage::{ClockOptions, ManualClock, MemoryStore, Time};

    use super::*;
    use crate::{ContainerDefinition, Engine, Operation};

    #[test]
    fn t22_a_prepared_removal_is_used_only_for_exactly_the_item_that_it_was_prepared_from() {
        let clock = Arc::new(ManualClock::new(Time::from_seconds(1_700_000_000)));
        let store = MemoryStore::new(ClockOptions::new(clock.clone())).expect("a store");
        let engine = Engine::open(Arc::new(store)).expect("an engine");
        let database = engine.create_database("db", None).expect("a database");
        let definition = parse_json(br#"{"id":"c","partitionKey":{"paths":["/pk"]},"defaultTtl":10}"#);
        let definition = ContainerDefinition::from_value(&definition.expect("JSON")).expect("valid");
        let container = engine.create_container(&database, definition, None).expect("made");
        for id in ["a", "b", "c"] {
            let body = Document::from_json(format!(r#"{{"id":"{id}","pk":"x"}}"#).as_bytes()).expect("JSON");
            engine.write(&container, None, Operation::Create { body }).wait().expect("created");
        }
        let partition = &container.partitions[0];
        let read = |limit| {
            let view = View::open(&*engine.store, partition).expect("a view");
            Prepared::read(&view, &container, partition, limit)
        };
        assert!(read(9).footprints.is_empty(), "nothing has expired");
        clock.advance(Duration::from_secs(10));
        assert_eq!(read(2).footprints.len(), 2, "no more than asked for");

        let mut prepared = read(9);
        let view = View::open(&*engine.store, partition).expect("a view");
        let upkeep = Upkeep::load(&*view.snapshot, partition).expect("a state");
        let mut numbers: Vec<ItemNumber> = prepared.footprints.keys().copied().collect();
        numbers.sort();
        let record = |number: ItemNumber| match view.gate.by_number(&*view.snapshot, number) {
            Ok(Found::Dead(record)) => record,
            other => panic!("{other:?}"),
        };
        let [first, second, third] = numbers[..] else { panic!("{numbers:?}") };
        assert!(prepared.take(&record(first), &upkeep).is_some());
        assert!(prepared.take(&record(first), &upkeep).is_none(), "an item is removed once");
        let mut changed: Record = record(second);
        changed.header.sequence = Sequence(changed.header.sequence.0 + 1);
        assert!(prepared.take(&changed, &upkeep).is_none(), "another version");
        let mut changed: Record = record(third);
        changed.body = Document::from_json(br#"{"id":"c","pk":"y"}"#).expect("JSON");
        assert!(prepared.take(&changed, &upkeep).is_none(), "another body");
    }
}

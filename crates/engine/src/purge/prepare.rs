//! Removals worked out before the transaction that makes them.
//!
//! What an item leaves in the store follows from its body: it has to be read, index terms to be extracted, the partition key to be
//! hashed. Inside the transaction every writer waits for that, outside nobody does. So a sweep first reads the items that it
//! expects to remove at a snapshot and works out their footprints.
//!
//! The transaction still finds the entries of the queue by itself, and need not read what stands behind one of them again: an expired
//! item is never changed (T15), so it is what the snapshot had if it is still there, and if it is, its id leads to it. That entry
//! is looked at in any case. Policy and index generations must be those of the snapshot; for whatever is not as expected the
//! transaction makes its own footprint. So a wrong expectation costs time and nothing else.

use std::collections::HashMap;
use std::sync::Arc;

use document::ItemNumber;
use storage::{Direction, Keyspace};

use super::from_hand;
use crate::container::{Container, Partition};
use crate::error::Result;
use crate::expiry::Policy;
use crate::footprint::{Footprint, Home};
use crate::gate::{Found, Gate, View};
use crate::header::Record;
use crate::index::Upkeep;
use crate::keys;
use crate::limits::{ITEM_BYTES_MAX, SWEEP_ENTRIES};

/// What the items that are prepared at once may hold; the last one may be larger than what is left.
const BYTES_MAX: u64 = 4 * ITEM_BYTES_MAX as u64;

/// Footprints of items that are expected to be removed.
#[derive(Debug, Default)]
pub(super) struct Prepared {
    /// What they are made by.
    basis: Option<(Arc<Policy>, Upkeep)>,
    removals: HashMap<ItemNumber, Removal>,
}

/// An item and what it leaves in the store.
#[derive(Debug)]
pub(super) struct Removal {
    pub(super) record: Record,
    pub(super) footprint: Footprint,
}

impl Removal {
    pub(super) fn new(
        gate: &Gate,
        container: &Container,
        upkeep: &Upkeep,
        record: Record,
    ) -> Result<Removal> {
        let home = Home::of(gate.partition, &container.definition, &record)?;
        let footprint = Footprint::to_remove(&home, &container.definition, upkeep, &record);
        Ok(Removal { record, footprint })
    }
}

impl Prepared {
    /// Reads up to `limit` expired items of a partition, in the order in which a sweep removes them, and no more than a sweep has
    /// entries for or [`BYTES_MAX`] holds. Stops at the first item that cannot be read: the sweep will say what is wrong with it.
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
        let basis = (Arc::clone(&gate.policy), Upkeep::load(snapshot, partition)?);
        let (policy, upkeep) = &*self.basis.insert(basis);
        let (mut entries, mut bytes) = (0, 0);
        for queue in policy.queues() {
            let Some(through) = policy.dead_through(queue, gate.now) else { continue };
            let range = from_hand(snapshot, gate.partition, queue, through)?;
            for entry in snapshot.scan(Keyspace::Queue, range, Direction::Forward) {
                if self.removals.len() >= limit || entries >= SWEEP_ENTRIES || bytes >= BYTES_MAX {
                    return Ok(());
                }
                let (_, number) = keys::queue_entry(&entry?.0)?;
                let Found::Dead(record) = gate.by_number(snapshot, number)? else { continue };
                let removal = Removal::new(gate, container, upkeep, record)?;
                entries += removal.footprint.entries();
                bytes += removal.record.size();
                self.removals.insert(number, removal);
            }
        }
        Ok(())
    }

    /// These if they hold by the policy and the index generations that a transaction finds, else none.
    pub(super) fn under(self, gate: &Gate, upkeep: &Upkeep) -> Prepared {
        let is_same = |(policy, known): &(Arc<Policy>, Upkeep)| {
            *policy == gate.policy && known.is_for_the_same_as(upkeep)
        };
        if self.basis.as_ref().is_some_and(is_same) { self } else { Prepared::default() }
    }

    /// The removal of an item if it is one of these.
    pub(super) fn take(&mut self, number: ItemNumber) -> Option<Removal> {
        self.removals.remove(&number)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use document::{Document, PartitionKey, ValueRef, parse_json};
    use storage::{ClockOptions, ManualClock, MemoryStore, Time};

    use super::*;
    use crate::{ContainerDefinition, Engine, Operation};

    /// An engine with a container of three items that expire after ten seconds.
    fn three_items() -> (Engine, Arc<Container>, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::new(Time::from_seconds(1_700_000_000)));
        let store = MemoryStore::new(ClockOptions::new(clock.clone())).expect("a store");
        let engine = Engine::open(Arc::new(store)).expect("an engine");
        let database = engine.create_database("db", None).expect("a database");
        let definition = parse_json(br#"{"id":"c","partitionKey":{"paths":["/pk"]},"defaultTtl":10}"#);
        let definition = ContainerDefinition::from_value(&definition.expect("JSON")).expect("valid");
        let container = engine.create_container(&database, definition, None).expect("made");
        for id in ["a", "b", "c"] {
            create(&engine, &container, id);
        }
        (engine, container, clock)
    }

    fn create(engine: &Engine, container: &Arc<Container>, id: &str) {
        let body = Document::from_json(format!(r#"{{"id":"{id}","pk":"x"}}"#).as_bytes()).expect("JSON");
        engine.write(container, None, Operation::Create { body }).wait().expect("created");
    }

    fn read(engine: &Engine, container: &Container, limit: usize) -> Prepared {
        let partition = &container.partitions[0];
        let view = View::open(&*engine.store, partition).expect("a view");
        Prepared::read(&view, container, partition, limit)
    }

    #[test]
    fn t22_as_many_expired_items_are_prepared_as_asked_for_and_each_is_removed_once() {
        let (engine, container, clock) = three_items();
        assert!(read(&engine, &container, 9).removals.is_empty(), "nothing has expired");
        clock.advance(Duration::from_secs(10));
        let mut prepared = read(&engine, &container, 2);
        let numbers: Vec<ItemNumber> = prepared.removals.keys().copied().collect();
        assert_eq!(numbers.len(), 2);
        assert!(prepared.take(numbers[0]).is_some());
        assert!(prepared.take(numbers[0]).is_none());
    }

    #[test]
    fn t20_large_items_are_prepared_by_their_bytes() {
        let (engine, container, clock) = three_items();
        let text = "x".repeat(ITEM_BYTES_MAX - 4096);
        for id in 0..6 {
            let body = format!(r#"{{"id":"large {id}","pk":"x","text":"{text}"}}"#);
            let body = Document::from_json(body.as_bytes()).expect("JSON");
            engine.write(&container, None, Operation::Create { body }).wait().expect("created");
        }
        clock.advance(Duration::from_secs(10));
        let prepared = read(&engine, &container, 9).removals.len();
        assert_eq!(prepared, 3 + 5, "the small ones, almost eight megabytes and one more");
        let purged = engine.purge_step(9).expect("a step");
        assert_eq!(purged.purged_items, 9, "the rest is worked out in the transaction");
    }

    #[test]
    fn t22_a_removal_is_made_only_while_the_id_leads_to_the_item() {
        let (engine, container, clock) = three_items();
        clock.advance(Duration::from_secs(10));
        let prepared = read(&engine, &container, 9);
        // A write takes the id of an expired item, and its place (T15); another one takes an id and gives it up.
        create(&engine, &container, "a");
        create(&engine, &container, "b");
        let name = crate::ItemName::Id("b".into());
        let key = PartitionKey::extract(
            &container.definition.partition_key,
            Document::from_json(br#"{"pk":"x"}"#).expect("JSON").root(),
        );
        let delete = Operation::Delete { name, precondition: crate::Precondition::None };
        engine.write(&container, Some(key.expect("a key")), delete).wait().expect("deleted");
        let before = engine.usage(&container).expect("figures");
        assert_eq!((before.living.items, before.dead.items), (1, 1));
        let removed = engine.change(move |tx| {
            let mut removed = Vec::new();
            for (_, Removal { record, footprint }) in prepared.removals {
                if footprint.remove_if_named(tx)? {
                    let id = record.body.get("id").and_then(ValueRef::as_str);
                    removed.push(id.unwrap_or_default().to_owned());
                }
            }
            Ok(removed)
        });
        assert_eq!(removed.expect("committed"), ["c"]);
        let after = engine.usage(&container).expect("figures");
        assert_eq!((after.living, after.dead.items), (before.living, 0));
        engine.check_index(&container).expect("an index as the items call for");
    }

    #[test]
    fn t22_nothing_prepared_is_used_under_another_policy_or_other_index_generations() {
        let (engine, container, clock) = three_items();
        clock.advance(Duration::from_secs(10));
        let partition = &container.partitions[0];
        let under = |change: fn(&mut Gate)| {
            let prepared = read(&engine, &container, 9);
            let mut view = View::open(&*engine.store, partition).expect("a view");
            let upkeep = Upkeep::load(&*view.snapshot, partition).expect("a state");
            change(&mut view.gate);
            prepared.under(&view.gate, &upkeep).removals.len()
        };
        assert_eq!(under(|_| {}), 3);
        let longer = |gate: &mut Gate| Arc::make_mut(&mut gate.policy).version += 1;
        assert_eq!(under(longer), 0);
        let prepared = read(&engine, &container, 9);
        let view = View::open(&*engine.store, partition).expect("a view");
        let other = &engine
            .create_container(
                &engine.database("db").expect("it is there"),
                {
                    let text = parse_json(br#"{"id":"d","partitionKey":{"paths":["/pk"]}}"#).expect("JSON");
                    ContainerDefinition::from_value(&text).expect("valid")
                },
                None,
            )
            .expect("made")
            .partitions[0];
        let upkeep = Upkeep::load(&*view.snapshot, other).expect("a state");
        assert_eq!(prepared.under(&view.gate, &upkeep).removals.len(), 0);
    }
}

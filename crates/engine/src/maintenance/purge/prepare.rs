//! Removals that are computed before the transaction that makes them.
//!
//! The entries of an item follow from its body: the body has to be read, index terms have to be extracted, the partition
//! key has to be hashed. Inside the transaction every writer would wait for that. So a sweep first
//! reads the items that it expects to remove from a snapshot and computes their footprints.
//!
//! The transaction still finds the entries of the queue by itself, but need not read the item of an entry again. An
//! expired item is never changed (T15): if it is still there, it is as the snapshot has it, and its id leads to it,
//! which is verified in any case. Policy and index generations must be those of the snapshot. For an item that is not
//! as expected the transaction computes its own footprint, so a wrong expectation costs only time.

use std::collections::HashMap;
use std::sync::Arc;

use document::{Document, ItemNumber};
use storage::{Direction, Keyspace};

use super::front::{Front, FrontScan};
use crate::access::gate::{Gate, LookupResult, View};
use crate::catalog::container::{Container, Partition};
use crate::entries::queues::from_cursor;
use crate::expiry::Policy;
use crate::expiry::header::Record;
use crate::index::MaintainedIndexes;
use crate::index::footprint::Footprint;
use crate::keys;
use crate::types::error::Result;
use crate::types::limits::{ITEM_BYTES_MAX, SWEEP_ENTRIES};
use crate::write::container_schema::ContainerSchema;
use crate::write::schema::ItemSchema;

/// The bytes of the items that are prepared at once; the last one may exceed what is left.
const BYTES_MAX: u64 = 4 * ITEM_BYTES_MAX as u64;

/// Footprints of items that are expected to be removed.
#[derive(Debug, Default)]
pub(super) struct Prepared {
    /// The policy and index generations that they were computed with.
    basis: Option<(Arc<Policy>, ContainerSchema)>,
    removals: HashMap<ItemNumber, Removal>,
    /// Which of them are the first items of the partition.
    pub(super) front: Front,
}

/// An item and its footprint.
#[derive(Debug)]
pub(super) struct Removal<B = Document> {
    pub(super) record: Record<B>,
    pub(super) footprint: Footprint,
}

impl<B> Removal<B> {
    /// Returns the removal of an item of a container or collection.
    pub(super) fn new<S: ItemSchema<Body = B>>(schema: &S, record: Record<B>) -> Result<Removal<B>> {
        let footprint = schema.footprint_to_remove(&record)?;
        Ok(Removal { record, footprint })
    }
}

impl Prepared {
    /// Reads up to `limit` expired items of a partition, in the order in which a sweep removes them, and no more than a sweep has
    /// entries for or [`BYTES_MAX`] permits. Stops at the first item that cannot be read: the sweep will report what is wrong with it.
    pub(super) fn read(
        view: &View,
        container: &Arc<Container>,
        partition: &Arc<Partition>,
        limit: usize,
    ) -> Prepared {
        let mut prepared = Prepared::default();
        let _ = prepared.fill(view, container, partition, limit);
        prepared
    }

    fn fill(
        &mut self,
        view: &View,
        container: &Arc<Container>,
        partition: &Arc<Partition>,
        limit: usize,
    ) -> Result<()> {
        let (snapshot, gate) = (&*view.snapshot, &view.gate);
        let basis = (Arc::clone(&gate.policy), ContainerSchema::open(snapshot, container, partition)?);
        let (policy, schema) = &*self.basis.insert(basis);
        let (mut entries, mut bytes) = (0, 0);
        let mut first = FrontScan::open(snapshot, gate.partition)?;
        for queue in policy.queues() {
            let Some(through) = policy.expired_through(queue, gate.now) else { continue };
            let range = from_cursor(snapshot, gate.partition, queue, through)?;
            for entry in snapshot.scan(Keyspace::Queue, range, Direction::Forward) {
                if self.removals.len() >= limit || entries >= SWEEP_ENTRIES || bytes >= BYTES_MAX {
                    return Ok(());
                }
                let (_, number) = keys::queue_entry(&entry?.0)?;
                // Mostly items expire in the order of their numbers, and then the scan has their bytes already.
                let found = match first.bytes_of(number) {
                    Some(bytes) => gate.by_bytes(snapshot, number, &bytes)?,
                    None => gate.by_number(snapshot, number)?,
                };
                let LookupResult::Expired(record) = found else { continue };
                let removal = Removal::new(schema, record)?;
                entries += removal.footprint.entries();
                bytes += removal.record.size();
                self.removals.insert(number, removal);
                self.front.extend(&mut first, |number| self.removals.contains_key(number))?;
            }
        }
        Ok(())
    }

    /// Returns these removals if they are valid for the policy and the index generations of a transaction, else an empty list.
    pub(super) fn under(self, gate: &Gate, maintained: &MaintainedIndexes) -> Prepared {
        let is_same = |(policy, known): &(Arc<Policy>, ContainerSchema)| {
            *policy == gate.policy && known.maintained.is_for_the_same_as(maintained)
        };
        if self.basis.as_ref().is_some_and(is_same) { self } else { Prepared::default() }
    }

    /// Returns the removal of an item if it was prepared.
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

    /// Returns an engine with a container of three items that expire after ten seconds.
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

    fn read(engine: &Engine, container: &Arc<Container>, limit: usize) -> Prepared {
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
        // One write takes the id of an expired item (T15); another takes an id, and its item is deleted.
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
        assert_eq!((before.living.items, before.expired.items), (1, 1));
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
        assert_eq!((after.living, after.expired.items), (before.living, 0));
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
            let upkeep = partition.maintained_indexes(&*view.snapshot).expect("a state");
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
        let upkeep = other.maintained_indexes(&*view.snapshot).expect("a state");
        assert_eq!(prepared.under(&view.gate, &upkeep).removals.len(), 0);
    }
}

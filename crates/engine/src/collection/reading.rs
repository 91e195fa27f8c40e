//! Reading collections: one snapshot and one `now` over as many of them as a request names (T16).
//!
//! What leaves a reading has passed the gate. Each request opens its own, so that what died since the last one is not seen.

use std::sync::Arc;

use bson::ValueRef;
use document::ItemNumber;
use storage::{Direction, KeyRange, Keyspace, Read, Snapshot, Time};

use super::{BsonRecord, Collection, Found, keys};
use crate::Engine;
use crate::error::{Error, Result};
use crate::gate::{Gate, Usage, View};
use crate::keys::{self as all_keys, Key, PartitionId};

/// Several collections as they are at one instant.
pub struct Reading {
    snapshot: Arc<dyn Snapshot>,
    gates: Vec<Gate>,
    now: Time,
    sequence: u64,
}

impl Engine {
    /// Opens collections for reading, all at one snapshot and one `now`.
    pub fn reading(&self, collections: &[&Arc<Collection>]) -> Result<Reading> {
        let mut partitions: Vec<_> = collections.iter().map(|it| Arc::clone(&it.partition)).collect();
        // One order of locks for all, and none twice.
        partitions.sort_by_key(|partition| partition.id);
        partitions.dedup_by_key(|partition| partition.id);
        let views = View::open_all(&*self.store, &partitions)?;
        let gates: Vec<Gate> = views.iter().map(|view| view.gate.clone()).collect();
        if let Some(View { snapshot, gate, sequence }) = views.into_iter().next() {
            return Ok(Reading { snapshot, gates, now: gate.now, sequence });
        }
        let (sequence, snapshot) = (self.store.last_sequence(), self.store.snapshot()?);
        Ok(Reading { snapshot, gates, now: self.store.now()?, sequence })
    }
}

impl Reading {
    /// The time of the reading.
    pub fn now(&self) -> Time {
        self.now
    }

    /// The last commit that is surely in it.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The living item of that `_id`.
    pub fn by_id(&self, collection: &Collection, id: ValueRef<'_>) -> Result<Option<Found>> {
        let gate = self.gate(collection)?;
        let found = gate.by_id_key(
            self.reader(),
            &keys::id(collection.partition.id, id, &collection.definition.collation),
        )?;
        Ok(found.living().map(BsonRecord::into))
    }

    /// The living item of that number.
    pub fn by_number(&self, collection: &Collection, number: ItemNumber) -> Result<Option<Found>> {
        let found = self.gate(collection)?.by_number(self.reader(), number)?;
        Ok(found.living().map(BsonRecord::into))
    }

    /// The next living items in the order of their creation, or against it: up to so many, or until so many bytes are
    /// reached. None only if there are no more.
    pub fn natural(
        &self,
        collection: &Collection,
        after: Option<ItemNumber>,
        direction: Direction,
        max_items: usize,
        max_bytes: usize,
    ) -> Result<Vec<Found>> {
        let gate = self.gate(collection)?;
        let range = numbers(collection.partition.id, after, direction);
        let (mut all, mut bytes) = (Vec::new(), 0);
        for entry in self.reader().scan(Keyspace::Item, range, direction) {
            if all.len() >= max_items || bytes >= max_bytes {
                break;
            }
            let (key, value) = entry?;
            if let Some(record) = gate.judge(all_keys::item_number(&key)?, &value)? {
                bytes += value.len();
                all.push(BsonRecord::into(record));
            }
        }
        Ok(all)
    }

    /// What lives and what lies dead in a collection (T18).
    pub fn usage(&self, collection: &Collection) -> Result<Usage> {
        self.gate(collection)?.usage(self.reader())
    }

    fn reader(&self) -> &dyn Read {
        &*self.snapshot
    }

    fn gate(&self, collection: &Collection) -> Result<&Gate> {
        let id = collection.partition.id;
        let gate = self.gates.iter().find(|gate| gate.partition == id);
        gate.ok_or_else(|| {
            Error::invalid(format!("'{}' is not part of this reading", collection.namespace()))
        })
    }
}

/// Items behind one of them in a direction.
fn numbers(partition: PartitionId, after: Option<ItemNumber>, direction: Direction) -> KeyRange {
    let all = KeyRange::prefix(all_keys::partition(partition));
    let bound = |number| Key::Item(partition, number).encode().1;
    match (after, direction) {
        (None, _) => all,
        (Some(number), Direction::Forward) => all.after(bound(number)),
        (Some(number), Direction::Backward) => all.before(bound(number)),
    }
}

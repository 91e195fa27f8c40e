//! Every entry that an item leaves in the store, in one place.
//!
//! Insert puts the whole footprint, delete and purge remove it, replace writes the difference of two. So an entry that is
//! written is an entry that will be removed: a new kind of entry is added here and nowhere else, and the integrity check
//! compares the store with exactly this list.

use bytes::Bytes;
use document::{EffectiveKey, ItemNumber, PartitionKey, Path, ValueRef, encode_key};
use storage::{Keyspace, Read as _, Transaction};

use crate::check::{Claim, Claimed, ClaimedShape};
use crate::counters::{self, Weight};
use crate::definition::ContainerDefinition;
use crate::error::{Error, Result};
use crate::expiry::Place;
use crate::header::{Body, Record};
use crate::index::{Drafted, IndexFootprint, Upkeep};
use crate::keys::{self, Key, PartitionId};
use crate::purge;

/// The logical partition an item lives in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Home {
    pub(crate) partition: PartitionId,
    pub(crate) key: PartitionKey,
    pub(crate) effective: EffectiveKey,
}

impl Home {
    /// The home of a stored item, read from its body.
    pub(crate) fn of(
        partition: PartitionId,
        definition: &ContainerDefinition,
        record: &Record,
    ) -> Result<Home> {
        let key = PartitionKey::extract(&definition.partition_key, record.body.root())
            .map_err(|error| Error::Corrupt(format!("item {}: {error}", record.number.0)))?;
        let effective = key.effective(&definition.partition_key);
        Ok(Home { partition, key, effective })
    }

    /// The key of the entry that leads from an id to the item's number.
    pub(crate) fn id_key(&self, id: &str) -> Vec<u8> {
        let Home { partition, key, effective } = self;
        Key::Id { partition: *partition, effective, key, id }.encode().1
    }

    /// The key of a unique-key entry with its paths' values in `body`; a missing value counts as null.
    pub(crate) fn unique_key(&self, index: usize, paths: &[Path], record: &Record) -> Vec<u8> {
        let mut values = Vec::new();
        for path in paths {
            let value = path.read(record.body.root()).unwrap_or(ValueRef::Null);
            encode_key(Some(value), &mut values);
        }
        let Home { partition, key, effective } = self;
        Key::Unique { partition: *partition, effective, key, index: index as u8, values: &values }.encode().1
    }
}

/// What kind of event a write is in the feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum FeedEvent {
    Create = 0,
    Replace = 1,
}

/// One entry that belongs to an item.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    keyspace: Keyspace,
    key: Vec<u8>,
    value: Bytes,
}

impl Entry {
    /// Whether it lies in the store with this value.
    fn is_stored(&self, tx: &Transaction<'_>) -> Result<bool> {
        Ok(tx.get(self.keyspace, &self.key)?.is_some_and(|stored| stored == self.value))
    }
}

/// What every version of an item leaves, whatever the form of its body: the item itself, its places in the queues, its event
/// in the feed, its weight in the counters; and the entries that lead to it, which are added.
#[derive(Debug)]
pub(crate) struct Traces {
    entries: Vec<Entry>,
    weight: Weight,
    number: ItemNumber,
}

impl Traces {
    /// The traces of a version.
    pub(crate) fn new<B: Body>(partition: PartitionId, record: &Record<B>) -> Traces {
        Traces::with_item(partition, record, record.encode())
    }

    /// The traces of a version with these bytes for the item itself.
    fn with_item<B: Body>(partition: PartitionId, record: &Record<B>, item: Bytes) -> Traces {
        let number = record.number;
        let mut entries = Vec::with_capacity(6);
        let mut add = |(keyspace, key): (Keyspace, Vec<u8>), value: Bytes| {
            entries.push(Entry { keyspace, key, value });
        };
        add(Key::Item(partition, number).encode(), item);
        for place in record.header.mortal_places().chain(record.header.stamp_place()) {
            add(queue_key(partition, place, number).encode(), Bytes::new());
        }
        if let Some(touched) = record.header.touched {
            add(Key::Touch(partition, number).encode(), touched.to_be_bytes().to_vec().into());
        }
        let event = if record.header.sequence.0 == number.0 { FeedEvent::Create } else { FeedEvent::Replace };
        let mut feed = vec![event as u8];
        feed.extend_from_slice(&keys::number_value(number));
        add(Key::Feed(partition, record.header.sequence).encode(), feed.into());
        Traces { entries, weight: Weight::of(partition, record), number }
    }

    /// Adds an entry of `Id` or `Unique` that leads to the item.
    pub(crate) fn lead(&mut self, keyspace: Keyspace, key: Vec<u8>) {
        let value = keys::number_value(self.number).into();
        self.entries.push(Entry { keyspace, key, value });
    }

    /// The partition that they lie in.
    pub(crate) fn partition(&self) -> PartitionId {
        self.weight.partition
    }

    /// How many entries there are.
    pub(crate) fn entries(&self) -> usize {
        self.entries.len()
    }

    /// All of them, for the integrity check.
    pub(crate) fn claims(&self) -> impl Iterator<Item = Claim> {
        self.entries.iter().map(|Entry { keyspace, key, value }| Claim {
            keyspace: *keyspace,
            key: key.clone(),
            value: Claimed::Exactly(value.clone()),
        })
    }

    /// Writes those of a new item.
    pub(crate) fn insert(self, tx: &mut Transaction<'_>) -> Result<()> {
        counters::add(tx, &self.weight)?;
        purge::let_in(tx, self.weight.partition, &self.weight.places, self.number)?;
        for Entry { keyspace, key, value } in self.entries {
            tx.put(keyspace, key, value);
        }
        Ok(())
    }

    /// Turns those of `old` into `self`, leaving alone what both share.
    pub(crate) fn replace(self, old: &Traces, tx: &mut Transaction<'_>) -> Result<()> {
        debug_assert_eq!(self.number, old.number, "a replace keeps the item's number");
        counters::subtract(tx, &old.weight)?;
        counters::add(tx, &self.weight)?;
        purge::let_in(tx, self.weight.partition, &self.weight.places, self.number)?;
        let is_at = |entry: &Entry, other: &Entry| entry.keyspace == other.keyspace && entry.key == other.key;
        for gone in old.entries.iter().filter(|entry| !self.entries.iter().any(|new| is_at(new, entry))) {
            tx.remove(gone.keyspace, gone.key.clone());
        }
        for entry in self.entries {
            if !old.entries.contains(&entry) {
                tx.put(entry.keyspace, entry.key, entry.value);
            }
        }
        Ok(())
    }

    /// Whether the item's id leads to it.
    fn is_named(&self, tx: &Transaction<'_>) -> Result<bool> {
        match self.entries.iter().find(|entry| entry.keyspace == Keyspace::Id) {
            Some(entry) => entry.is_stored(tx),
            None => Ok(false),
        }
    }

    /// Removes every trace. An entry that names another item by now is left alone (T22).
    pub(crate) fn remove(self, tx: &mut Transaction<'_>) -> Result<()> {
        self.remove_named(tx, false)
    }

    /// The same where the item's id may be known to lead to it.
    fn remove_named(self, tx: &mut Transaction<'_>, is_named: bool) -> Result<()> {
        counters::subtract(tx, &self.weight)?;
        for entry in self.entries {
            let is_own = match entry.keyspace {
                Keyspace::Id => is_named || entry.is_stored(tx)?,
                Keyspace::Unique => entry.is_stored(tx)?,
                _ => true,
            };
            if is_own {
                tx.remove(entry.keyspace, entry.key);
            }
        }
        Ok(())
    }
}

/// Moves an item whose bytes stay in its queues.
pub(crate) fn put_places(tx: &mut Transaction<'_>, number: ItemNumber, before: &Weight, after: &Weight) {
    let is_in = |place: &Place, weight: &Weight| weight.places.iter().any(|other| other == *place);
    for place in before.places.iter().filter(|place| !is_in(place, after)) {
        let (keyspace, key) = queue_key(before.partition, place, number).encode();
        tx.remove(keyspace, key);
    }
    for place in after.places.iter().filter(|place| !is_in(place, before)) {
        let (keyspace, key) = queue_key(after.partition, place, number).encode();
        tx.put(keyspace, key, Bytes::new());
    }
}

fn queue_key(partition: PartitionId, place: Place, number: ItemNumber) -> Key<'static> {
    Key::Queue { partition, queue: place.queue, base: place.base, number }
}

/// All entries of one version of an item.
#[derive(Debug)]
pub(crate) struct Footprint {
    traces: Traces,
    index: IndexFootprint,
}

impl Footprint {
    /// The footprint of a version; what `drafted` has of its index terms need not be extracted again.
    pub(crate) fn new(
        home: &Home,
        definition: &ContainerDefinition,
        upkeep: &Upkeep,
        record: &Record,
        drafted: Drafted,
    ) -> Footprint {
        let traces = Traces::new(home.partition, record);
        Footprint::of(traces, home, definition, upkeep, record, drafted)
    }

    /// The footprint of a version that is going to be removed: without a copy of its bytes, which a removal does not look at.
    pub(crate) fn to_remove(
        home: &Home,
        definition: &ContainerDefinition,
        upkeep: &Upkeep,
        record: &Record,
    ) -> Footprint {
        let traces = Traces::with_item(home.partition, record, Bytes::new());
        Footprint::of(traces, home, definition, upkeep, record, Drafted::default())
    }

    fn of(
        mut traces: Traces,
        home: &Home,
        definition: &ContainerDefinition,
        upkeep: &Upkeep,
        record: &Record,
        drafted: Drafted,
    ) -> Footprint {
        let id = record.body.get("id").and_then(ValueRef::as_str).unwrap_or_default();
        traces.lead(Keyspace::Id, home.id_key(id));
        for (index, unique) in definition.unique_keys.iter().enumerate() {
            traces.lead(Keyspace::Unique, home.unique_key(index, &unique.paths, record));
        }
        Footprint { traces, index: IndexFootprint::new(upkeep, record, drafted) }
    }

    /// How many entries there are.
    pub(crate) fn entries(&self) -> usize {
        self.traces.entries() + self.index.entries()
    }

    /// How many index terms the version has, as a charge counts them.
    pub(crate) fn terms(&self) -> u64 {
        self.index.terms()
    }

    /// Every entry as it may lie in the store, for the integrity check.
    pub(crate) fn claims(&self) -> Vec<Claim> {
        let index = self.index.expected().map(|(key, mark)| Claim {
            keyspace: Keyspace::Index,
            key: key.to_vec(),
            value: Claimed::Bounded(mark),
        });
        self.traces.claims().chain(index).collect()
    }

    /// The shapes of the version, one in each generation that has one.
    pub(crate) fn shapes(&self) -> Vec<ClaimedShape> {
        self.index.shapes()
    }

    /// In how many index terms two versions differ, as a charge counts them.
    pub(crate) fn changed_terms(&self, old: &Footprint) -> u64 {
        self.index.changed_terms(&old.index)
    }

    /// Writes a new item.
    pub(crate) fn insert(self, tx: &mut Transaction<'_>) -> Result<()> {
        self.traces.insert(tx)?;
        self.index.insert(tx)
    }

    /// Turns the entries of `old` into those of `self`, leaving alone what both share.
    pub(crate) fn replace(self, old: Footprint, tx: &mut Transaction<'_>) -> Result<()> {
        self.traces.replace(&old.traces, tx)?;
        self.index.replace(old.index, tx)
    }

    /// Removes every trace.
    pub(crate) fn remove(self, tx: &mut Transaction<'_>) -> Result<()> {
        self.remove_named(tx, false)
    }

    /// Removes every trace if the item's id still leads to it; false, with nothing done, if not.
    pub(crate) fn remove_if_named(self, tx: &mut Transaction<'_>) -> Result<bool> {
        let is_named = self.traces.is_named(tx)?;
        if is_named {
            self.remove_named(tx, true)?;
        }
        Ok(is_named)
    }

    fn remove_named(self, tx: &mut Transaction<'_>, is_named: bool) -> Result<()> {
        self.traces.remove_named(tx, is_named)?;
        self.index.remove(tx)
    }
}

//! The entries that every version of an item leaves, whatever the form of its body, and the logical partition that it
//! belongs to.

use bytes::Bytes;
use document::{Document, EffectiveKey, ItemNumber, PartitionKey, Path, ValueRef, encode_key};
use storage::{Keyspace, Read as _, Transaction};

use crate::definition::ContainerDefinition;
use crate::entries::counters::{self, Weight};
use crate::entries::expected::{ExpectedEntry, ExpectedValue};
use crate::entries::queues;
use crate::expiry::QueuePosition;
use crate::expiry::header::{Body, Record};
use crate::keys::{self, Key, PartitionId};
use crate::types::error::{Error, Result};

/// The logical partition that an item belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Home {
    pub(crate) partition: PartitionId,
    pub(crate) key: PartitionKey,
    pub(crate) effective: EffectiveKey,
}

impl Home {
    /// Returns the logical partition of a stored item, read from its body.
    pub(crate) fn of(
        partition: PartitionId,
        definition: &ContainerDefinition,
        record: &Record,
    ) -> Result<Home> {
        let home = Home::of_body(partition, definition, &record.body);
        home.map_err(|error| Error::Corrupt(format!("item {}: {error}", record.number.0)))
    }

    /// Returns the logical partition of a body.
    pub(crate) fn of_body(
        partition: PartitionId,
        definition: &ContainerDefinition,
        body: &Document,
    ) -> document::Result<Home> {
        let key = PartitionKey::extract(&definition.partition_key, body.root())?;
        let effective = key.effective(&definition.partition_key);
        Ok(Home { partition, key, effective })
    }

    /// Returns the key of the entry that maps an id to the item's number.
    pub(crate) fn id_key(&self, id: &str) -> Vec<u8> {
        let Home { partition, key, effective } = self;
        Key::Id { partition: *partition, effective, key, id }.encode().1
    }

    /// Returns the key of a unique-key entry with its paths' values in `body`; a missing value counts as null.
    pub(crate) fn unique_key(&self, index: usize, paths: &[Path], body: &Document) -> Vec<u8> {
        let mut values = Vec::new();
        for path in paths {
            let value = path.read(body.root()).unwrap_or(ValueRef::Null);
            encode_key(Some(value), &mut values);
        }
        let Home { partition, key, effective } = self;
        Key::Unique { partition: *partition, effective, key, index: index as u8, values: &values }.encode().1
    }
}

/// The kind of event that a write is in the feed.
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
    /// Returns whether it is stored with this value.
    fn is_stored(&self, tx: &Transaction<'_>) -> Result<bool> {
        Ok(tx.get(self.keyspace, &self.key)?.is_some_and(|stored| stored == self.value))
    }
}

/// The entries of a version, whatever the form of its body: the item itself, its positions in the queues, its event
/// in the feed and its weight in the counters; and the entries that lead to it, which are added.
#[derive(Debug)]
pub(crate) struct Traces {
    entries: Vec<Entry>,
    weight: Weight,
    number: ItemNumber,
}

impl Traces {
    /// Returns the traces of a version.
    pub(crate) fn new<B: Body>(partition: PartitionId, record: &Record<B>) -> Traces {
        Traces::with_item(partition, record, record.encode())
    }

    /// Returns the traces of a version that is going to be removed: without a copy of its bytes, which a removal does not need.
    pub(crate) fn to_remove<B: Body>(partition: PartitionId, record: &Record<B>) -> Traces {
        Traces::with_item(partition, record, Bytes::new())
    }

    fn with_item<B: Body>(partition: PartitionId, record: &Record<B>, item: Bytes) -> Traces {
        let number = record.number;
        let mut entries = Vec::with_capacity(6);
        let mut add = |(keyspace, key): (Keyspace, Vec<u8>), value: Bytes| {
            entries.push(Entry { keyspace, key, value });
        };
        add(Key::Item(partition, number).encode(), item);
        for place in record.header.expiry_positions().chain(record.header.stamp_position()) {
            add(queue_key(partition, place, number).encode(), Bytes::new());
        }
        if let Some(renewed_at) = record.header.renewed_at {
            add(Key::SlidingRenewal(partition, number).encode(), renewed_at.to_be_bytes().to_vec().into());
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

    /// Returns how many entries there are.
    pub(crate) fn entries(&self) -> usize {
        self.entries.len()
    }

    /// Returns all of them, for the integrity check.
    pub(crate) fn expected(&self) -> impl Iterator<Item = ExpectedEntry> {
        self.entries.iter().map(|Entry { keyspace, key, value }| ExpectedEntry {
            keyspace: *keyspace,
            key: key.clone(),
            value: ExpectedValue::Exactly(value.clone()),
        })
    }

    /// Writes the traces of a new item.
    pub(crate) fn insert(self, tx: &mut Transaction<'_>) -> Result<()> {
        counters::add(tx, &self.weight)?;
        queues::rewind_cursor(tx, self.weight.partition, &self.weight.places, self.number)?;
        for Entry { keyspace, key, value } in self.entries {
            tx.put(keyspace, key, value);
        }
        Ok(())
    }

    /// Replaces the traces of `old` with these. Entries that both have are not written again.
    pub(crate) fn replace(self, old: &Traces, tx: &mut Transaction<'_>) -> Result<()> {
        debug_assert_eq!(self.number, old.number, "a replace keeps the item's number");
        counters::subtract(tx, &old.weight)?;
        counters::add(tx, &self.weight)?;
        queues::rewind_cursor(tx, self.weight.partition, &self.weight.places, self.number)?;
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

    /// Returns whether the item's id leads to it.
    pub(crate) fn is_named(&self, tx: &Transaction<'_>) -> Result<bool> {
        match self.entries.iter().find(|entry| entry.keyspace == Keyspace::Id) {
            Some(entry) => entry.is_stored(tx),
            None => Ok(false),
        }
    }

    /// Removes every trace. An entry that leads to another item by now is kept (T22). `is_named` says that the item's id is
    /// known to lead to it.
    pub(crate) fn remove_named(self, tx: &mut Transaction<'_>, is_named: bool) -> Result<()> {
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

/// Moves the queue positions of an item whose bytes do not change.
pub(crate) fn put_places(tx: &mut Transaction<'_>, number: ItemNumber, before: &Weight, after: &Weight) {
    let is_in = |place: &QueuePosition, weight: &Weight| weight.places.iter().any(|other| other == *place);
    for place in before.places.iter().filter(|place| !is_in(place, after)) {
        let (keyspace, key) = queue_key(before.partition, place, number).encode();
        tx.remove(keyspace, key);
    }
    for place in after.places.iter().filter(|place| !is_in(place, before)) {
        let (keyspace, key) = queue_key(after.partition, place, number).encode();
        tx.put(keyspace, key, Bytes::new());
    }
}

fn queue_key(partition: PartitionId, place: QueuePosition, number: ItemNumber) -> Key<'static> {
    Key::Queue { partition, queue: place.queue, base: place.base, number }
}

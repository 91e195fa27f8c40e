//! What the items of a collection call for, and the check that the front end offers.

use std::collections::BTreeMap;
use std::sync::Arc;

use document::ItemNumber;
use storage::{Direction, KeyRange, Keyspace, Read, Time};

use super::footprint::{DocumentKeys, ItemFootprint, split_entry};
use super::indexes::{CollectionIndex, ID_INDEX, IndexList, IndexState};
use super::{BsonRecord, Collection, keys};
use crate::Engine;
use crate::check::{Claim, Claimed, Claims};
use crate::definition::OwnTtl;
use crate::error::Result;
use crate::index::Mark;
use crate::keys::PartitionId;

/// What a check has found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CollectionCheck {
    /// Living items.
    pub items: u64,
    /// Entries of living items in each index, by number, that on `_id` included.
    pub entries: BTreeMap<u32, u64>,
    /// What is wrong, as far as it is told.
    pub faults: Vec<String>,
}

impl Engine {
    /// Compares everything that lies in the store for a collection with its items. It reads all of it.
    pub fn check_collection(&self, collection: &Arc<Collection>) -> Result<CollectionCheck> {
        let mut check = CollectionCheck::default();
        let report = self.inspect_collection(collection, &mut |inventory, claims, is_living| {
            if check.entries.is_empty() {
                check.entries.extend(inventory.list.iter().map(|index| (index.number, 0)));
            }
            if is_living {
                check.items += 1;
                for claim in &claims.entries {
                    let number = Inventory::index_of(claim);
                    *check.entries.entry(number).or_default() += u64::from(number != NO_INDEX);
                }
            }
        })?;
        check.entries.remove(&NO_INDEX);
        if check.entries.is_empty() {
            check.entries.extend(collection.indexes().iter().map(|index| (index.number, 0)));
        }
        check.faults = report.told.iter().map(ToString::to_string).collect();
        Ok(check)
    }
}

/// Stands for entries that are in no index.
const NO_INDEX: u32 = u32::MAX;

/// A collection as a reader of the store has it, for the integrity check.
pub(crate) struct Inventory {
    collection: Arc<Collection>,
    list: Arc<IndexList>,
    /// What has expired by then may be without entries in indexes that cannot hold it.
    now: Time,
}

/// Two living documents that one unique index should not have both.
pub(crate) struct Twins {
    pub(crate) index: String,
    pub(crate) numbers: (ItemNumber, ItemNumber),
}

impl Inventory {
    pub(crate) fn open(reader: &dyn Read, collection: &Arc<Collection>, now: Time) -> Result<Inventory> {
        Ok(Inventory { collection: Arc::clone(collection), list: collection.indexes_at(reader)?, now })
    }

    pub(crate) fn partition(&self) -> PartitionId {
        self.collection.partition.id
    }

    pub(crate) fn label(&self) -> String {
        format!("collection '{}'", self.collection.namespace())
    }

    pub(crate) fn names(&self) -> (String, String) {
        (self.collection.database.clone(), self.collection.name.clone())
    }

    /// The beginnings of the indexes that are being cleared away.
    pub(crate) fn clearing(&self) -> Vec<Vec<u8>> {
        self.list.clearing.iter().map(|number| keys::index(self.partition(), *number)).collect()
    }

    /// Everything that an item calls for.
    pub(crate) fn claims(&self, record: &BsonRecord) -> Claims {
        let (partition, number) = (self.partition(), record.number);
        let is_in = |index: &CollectionIndex| index.has(number);
        let document_keys = DocumentKeys::stored(&self.list, &record.body, is_in);
        let id = record.body.get("_id");
        let id_key =
            keys::id(partition, id.unwrap_or(bson::ValueRef::Null), &self.collection.definition.collation);
        let footprint = ItemFootprint::new(partition, &self.list, record, id_key, &document_keys, is_in);
        let mut faults = Vec::new();
        if id.is_none() {
            faults.push(("it has no _id".to_owned(), "nothing else tells which it was"));
        }
        if OwnTtl::of_bson(record.body.view()) != record.header.ttl {
            let what = "its header has another ttl than its body".to_owned();
            faults.push((what, "which of the two is right cannot be told"));
        }
        // A document that had expired when the index was built is rightly without an entry (T15).
        if !self.collection.partition.policy.read().is_dead(&record.header, self.now) {
            for index in document_keys.unfit().iter().filter_map(|number| self.list.get(*number)) {
                let what = format!("it lives, and the index '{}' cannot hold it", index.spec.name());
                faults.push((what, "change or delete the document, or drop the index"));
            }
        }
        let (entries, places) = footprint.expected();
        let indexed = entries.iter().map(|key| {
            let mark = Mark { places: places.clone(), inexact: false };
            Claim { keyspace: Keyspace::Index, key: key.clone(), value: Claimed::Bounded(mark) }
        });
        let name = id.map_or_else(String::new, |id| bson::to_extended_json(id, true));
        Claims {
            number,
            header: record.header.clone(),
            size: record.size(),
            name: format!("document with _id {name}"),
            entries: footprint.traces().claims().chain(indexed).collect(),
            shapes: Vec::new(),
            faults,
        }
    }

    /// The number of the index that an entry is in.
    fn index_of(claim: &Claim) -> u32 {
        match claim.keyspace {
            Keyspace::Id => ID_INDEX,
            Keyspace::Index => {
                let bytes = claim.key.get(4..).and_then(|rest| rest.first_chunk());
                bytes.map_or(NO_INDEX, |bytes| u32::from_be_bytes(*bytes))
            }
            _ => NO_INDEX,
        }
    }

    /// Items next to each other that have the same key in a unique index, both living.
    pub(crate) fn twins(
        &self,
        reader: &dyn Read,
        is_living: &dyn Fn(ItemNumber) -> Result<bool>,
        tell: &mut dyn FnMut(Twins),
    ) -> Result<()> {
        let unique = |index: &&CollectionIndex| index.spec.is_unique() && index.state == IndexState::Ready;
        for index in self.list.kept().filter(unique) {
            let prefix = keys::index(self.partition(), index.number);
            let (at, mut holder) = (prefix.len(), None::<(bytes::Bytes, ItemNumber, Option<bool>)>);
            for entry in reader.scan(Keyspace::Index, KeyRange::prefix(prefix), Direction::Forward) {
                let Some((key, number)) = split_entry(at, &entry?.0) else { continue };
                let Some((held, first, lives)) = holder.as_mut().filter(|(held, ..)| *held == key) else {
                    holder = Some((key, number, None));
                    continue;
                };
                let first_lives = match *lives {
                    Some(lives) => lives,
                    None => is_living(*first)?,
                };
                *lives = Some(first_lives);
                if !is_living(number)? {
                    continue;
                }
                if first_lives {
                    tell(Twins { index: index.spec.name().to_owned(), numbers: (*first, number) });
                } else {
                    let held = held.clone();
                    holder = Some((held, number, Some(true)));
                }
            }
        }
        Ok(())
    }
}

//! A collection under the integrity check, and the check that the front end offers.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use document::ItemNumber;
use storage::{Direction, KeyRange, Keyspace, Read, Time};

use super::finding::FindingLog;
use super::partition::{CheckedPartition, DuplicateKey, ExpectedItem, Fault, ItemState, item_state};
use super::{Inspection, Progress};
use crate::Engine;
use crate::catalog::collection_indexes::{CollectionIndex, ID_INDEX, IndexState};
use crate::catalog::container::Api;
use crate::collection::{self, BsonRecord, Collection, CollectionSchema, split_entry};
use crate::definition::OwnTtl;
use crate::entries::expected::ExpectedEntry;
use crate::keys::PartitionId;
use crate::types::error::Result;
use crate::write::schema::ItemSchema as _;

/// The result of a check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CollectionCheck {
    /// Living items.
    pub items: u64,
    /// Entries of living items in each index, by number, that on `_id` included.
    pub entries: BTreeMap<u32, u64>,
    /// The problems that are reported.
    pub faults: Vec<String>,
}

impl Engine {
    /// Compares everything that the store has of a collection with its items. Reads all of it.
    pub fn check_collection(&self, collection: &Arc<Collection>) -> Result<CollectionCheck> {
        let (sequence, snapshot, now) = self.store.snapshot_now()?;
        let checked = CheckedCollection::open(&*snapshot, collection, now)?;
        let (policy, indexes) = (checked.policy(&*snapshot)?, checked.schema.list().iter());
        let mut check = CollectionCheck::default();
        check.entries.extend(indexes.map(|index| (index.number, 0)));
        let mut silent = |_: Progress<'_>| ();
        let mut inspection = Inspection::new(&*snapshot, (sequence, now), FindingLog::new(None), &mut silent);
        inspection.partition(&checked, &mut |item: &ExpectedItem| {
            if !policy.is_expired(&item.header, now) {
                check.items += 1;
                for number in item.entries.iter().filter_map(index_of) {
                    *check.entries.entry(number).or_default() += 1;
                }
            }
        });
        check.faults = inspection.book.report.told.iter().map(ToString::to_string).collect();
        Ok(check)
    }
}

/// Returns the number of the index that an entry is in, if it is in one.
fn index_of(entry: &ExpectedEntry) -> Option<u32> {
    match entry.keyspace {
        Keyspace::Id => Some(ID_INDEX),
        Keyspace::Index => {
            entry.key.get(4..).and_then(|rest| rest.first_chunk()).map(|bytes| u32::from_be_bytes(*bytes))
        }
        _ => None,
    }
}

/// A collection as a reader of the store sees it.
pub(super) struct CheckedCollection {
    schema: CollectionSchema,
    /// Items that have expired by then may have no entries in indexes that cannot hold them.
    now: Time,
}

impl CheckedCollection {
    pub(super) fn open(
        reader: &dyn Read,
        collection: &Arc<Collection>,
        now: Time,
    ) -> Result<CheckedCollection> {
        Ok(CheckedCollection { schema: CollectionSchema::open(reader, collection)?, now })
    }

    fn describe(&self, record: &BsonRecord) -> (String, Vec<Fault>) {
        let (id, mut faults) = (record.body.get("_id"), Vec::new());
        if id.is_none() {
            faults.push(("it has no _id".to_owned(), "it cannot be derived from other data"));
        }
        if OwnTtl::of_bson(record.body.view()) != record.header.ttl {
            let what = "its header has another ttl than its body".to_owned();
            faults.push((what, "it is unknown which of the two is right"));
        }
        // A document that had expired when the index was built is rightly without an entry (T15).
        if !self.schema.partition().policy.read().is_expired(&record.header, self.now) {
            let keys = self.schema.extract_stored(record);
            for index in keys.unfit().iter().filter_map(|number| self.schema.list().get(*number)) {
                let what = format!("it is living, and the index '{}' cannot hold it", index.spec.name());
                faults.push((what, "change or delete the document, or drop the index"));
            }
        }
        let name = id.map_or_else(String::new, |id| bson::to_extended_json(id, true));
        (format!("document with _id {name}"), faults)
    }
}

impl CheckedPartition for CheckedCollection {
    fn id(&self) -> PartitionId {
        self.schema.partition().id
    }

    fn api(&self) -> Api {
        Api::MongoDb
    }

    fn label(&self) -> String {
        format!("collection '{}'", self.schema.collection().namespace())
    }

    fn names(&self) -> (String, String) {
        let collection = self.schema.collection();
        (collection.database.clone(), collection.name.clone())
    }

    fn clearing(&self) -> Vec<Vec<u8>> {
        let clearing = self.schema.list().clearing.iter();
        clearing.map(|number| collection::index_prefix(self.id(), *number)).collect()
    }

    fn read(&self, reader: &dyn Read, number: ItemNumber, bytes: &Bytes) -> Result<ItemState> {
        item_state(&self.schema, reader, number, bytes, |record| Ok(self.describe(record)))
    }

    fn duplicate_keys(
        &self,
        reader: &dyn Read,
        is_living: &dyn Fn(ItemNumber) -> Result<bool>,
        tell: &mut dyn FnMut(DuplicateKey),
    ) -> Result<()> {
        let unique = |index: &&CollectionIndex| index.spec.is_unique() && index.state == IndexState::Ready;
        for index in self.schema.list().kept().filter(unique) {
            let prefix = collection::index_prefix(self.id(), index.number);
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
                    tell(DuplicateKey { index: index.spec.name().to_owned(), numbers: (*first, number) });
                } else {
                    let held = held.clone();
                    holder = Some((held, number, Some(true)));
                }
            }
        }
        Ok(())
    }
}

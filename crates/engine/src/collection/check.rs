//! The integrity check of a collection: the store compared with what its items say should be there.
//!
//! Every entry that an item should have is looked up, and the entries that there are are counted: if nothing is missing and
//! the numbers agree, nothing is there that should not be.

use std::collections::BTreeMap;
use std::sync::Arc;

use storage::{Direction, KeyRange, Keyspace};

use super::footprint::{DocumentKeys, ItemFootprint};
use super::indexes::{CollectionIndex, ID_INDEX};
use super::{BsonRecord, Collection, Reading, keys};
use crate::Engine;
use crate::counters::{self, Tally};
use crate::error::Result;
use crate::index::Mark;
use crate::keys as all_keys;

/// How many faults are told.
const FAULTS_MAX: usize = 100;

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

impl CollectionCheck {
    fn fault(&mut self, text: impl FnOnce() -> String) {
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(text());
        }
    }
}

impl Engine {
    /// Compares everything that lies in the store for a collection with its items. It reads all of it.
    pub fn check_collection(&self, collection: &Arc<Collection>) -> Result<CollectionCheck> {
        self.reading(&[collection])?.check(collection)
    }
}

impl Reading<'_> {
    fn check(&self, collection: &Collection) -> Result<CollectionCheck> {
        let mut check = CollectionCheck::default();
        let list = self.indexes(collection)?;
        check.entries.extend(list.iter().map(|index| (index.number, 0)));
        let partition = collection.partition.id;
        let mut expected: BTreeMap<Keyspace, u64> = BTreeMap::new();
        let mut total = Tally::default();
        let items = KeyRange::prefix(all_keys::partition(partition));
        for entry in self.reader().scan(Keyspace::Item, items, Direction::Forward) {
            let (key, value) = entry?;
            let record = BsonRecord::decode(all_keys::item_number(&key)?, &value)?;
            let number = record.number;
            let is_in = |index: &CollectionIndex| index.has(number);
            let document_keys = DocumentKeys::extract(&list, &record.body, is_in)?;
            let id = record.body.get("_id").unwrap_or(bson::ValueRef::Null);
            let id_key = keys::id(partition, id, &collection.definition.collation);
            let footprint = ItemFootprint::new(partition, &list, &record, id_key, &document_keys, is_in);
            total = total.plus(Tally { items: 1, bytes: record.size() });
            self.check_item(&footprint, &record, &mut expected, &mut check)?;
            let gate = self.gate(collection)?;
            if !gate.policy.is_dead(&record.header, gate.now) {
                check.items += 1;
                *check.entries.entry(ID_INDEX).or_default() += 1;
                for index in list.kept().filter(|index| is_in(index)) {
                    let keys = document_keys.of(index.number).len() as u64;
                    *check.entries.entry(index.number).or_default() += keys;
                }
            }
        }
        self.check_counts(collection, &list.clearing, &expected, &mut check)?;
        let counted = counters::total(self.reader(), partition)?;
        if counted != total {
            check.fault(|| format!("the total says {counted:?}, the items are {total:?}"));
        }
        Ok(check)
    }

    /// Looks up everything that an item should have.
    fn check_item(
        &self,
        footprint: &ItemFootprint,
        record: &BsonRecord,
        expected: &mut BTreeMap<Keyspace, u64>,
        check: &mut CollectionCheck,
    ) -> Result<()> {
        let number = record.number.0;
        for (keyspace, key, value) in footprint.traces().iter() {
            *expected.entry(keyspace).or_default() += 1;
            if self.reader().get(keyspace, key)?.as_ref() != Some(value) {
                check.fault(|| {
                    format!("item {number}: its entry in {} is missing or another's", keyspace.name())
                });
            }
        }
        let (entries, places) = footprint.expected();
        for key in entries {
            *expected.entry(Keyspace::Index).or_default() += 1;
            let bounds = match self.reader().get(Keyspace::Index, key)? {
                None => false,
                Some(value) => Mark::decode(&value)?.places.bounds(places),
            };
            if !bounds {
                check.fault(|| {
                    format!("item {number}: an index entry is missing, or its mark is behind the item")
                });
            }
        }
        Ok(())
    }

    /// Counts what there is. Dropped indexes that are not cleared away yet do not count.
    fn check_counts(
        &self,
        collection: &Collection,
        clearing: &[u32],
        expected: &BTreeMap<Keyspace, u64>,
        check: &mut CollectionCheck,
    ) -> Result<()> {
        let partition = collection.partition.id;
        for keyspace in [Keyspace::Id, Keyspace::Index, Keyspace::Unique, Keyspace::Queue, Keyspace::Feed] {
            let mut found = 0;
            let all = KeyRange::prefix(all_keys::partition(partition));
            for entry in self.reader().scan(keyspace, all, Direction::Forward) {
                let (key, _) = entry?;
                let is_dropped = |number: &u32| key.starts_with(&keys::index(partition, *number));
                if keyspace != Keyspace::Index || !clearing.iter().any(is_dropped) {
                    found += 1;
                }
            }
            let wanted = expected.get(&keyspace).copied().unwrap_or_default();
            if found != wanted {
                check.fault(|| format!("{found} entries in {}, the items have {wanted}", keyspace.name()));
            }
        }
        Ok(())
    }
}

//! The indexes of a collection: their specifications, the state of each, and the dropped ones whose entries are still
//! to be removed.
//!
//! ```text
//!   created          build done          cleared
//!   -------> building --------> ready ...........> gone
//!               |                 |  dropped
//!               +-- duplicate ----+--> clearing
//! ```
//!
//! The list is one record of the partition that every write reads in its transaction, so that a change takes effect
//! without notifying writers. Parsed specifications are cached in memory until the record's version changes.

use std::sync::Arc;

use bson::{Binary, Collation, Document, DocumentRef, RawDocument, Value, ValueRef};
use bytes::Bytes;
use document::ItemNumber;
use mql::index::{IndexSpec, TextRules};
use parking_lot::{Mutex, RwLock};
use storage::{Read, Transaction};

use super::collection::number;
use crate::index::Build;
use crate::keys::{Key, PartitionId};
use crate::types::error::{Error, Result};

/// The number of the index on `_id`, which every collection has; its entries are in `Id`.
pub(crate) const ID_INDEX: u32 = 0;

/// An index of a collection.
#[derive(Debug, Clone)]
pub struct CollectionIndex {
    /// Its number in the collection, never reused.
    pub number: u32,
    /// What the user asked for.
    pub spec: Arc<IndexSpec>,
    /// Whether queries may use it.
    pub state: IndexState,
    /// Whether a document with an array at one of its paths was ever in it.
    pub multikey: bool,
    /// Whether it ever had a key that was too long to be stored whole: then it cannot serve a sort.
    pub cut: bool,
}

/// Whether an index has all items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexState {
    /// It has all items.
    Ready,
    /// The items that existed before it are being added.
    Building(Build),
}

impl CollectionIndex {
    pub(crate) fn new(number: u32, spec: Arc<IndexSpec>, state: IndexState) -> CollectionIndex {
        CollectionIndex { number, spec, state, multikey: false, cut: false }
    }

    /// Returns whether queries may use it: a TTL index on `_ts` has no entries, and one that is being built lacks
    /// some.
    pub fn is_searchable(&self) -> bool {
        self.state == IndexState::Ready && self.has_entries()
    }

    /// Returns whether it has entries at all, in `Index` or in `Id`.
    pub(crate) fn has_entries(&self) -> bool {
        !self.spec.is_collection_ttl()
    }

    /// Returns whether an item's entries are in it.
    pub(crate) fn has(&self, item: ItemNumber) -> bool {
        match self.state {
            IndexState::Ready => true,
            IndexState::Building(build) => build.has(item),
        }
    }
}

/// All indexes of a collection as of one commit.
#[derive(Debug, Clone)]
pub struct IndexList {
    /// Grows with every change, so that an older copy never replaces a newer one.
    pub(crate) version: u64,
    /// The last number that was assigned.
    pub(crate) last: u32,
    /// The index on `_id` first.
    pub(crate) indexes: Vec<CollectionIndex>,
    /// Dropped indexes that still have entries, in the order in which they are cleared.
    pub(crate) clearing: Vec<u32>,
    /// The last key removed of the first index in `clearing`.
    pub(crate) cleared: Vec<u8>,
}

impl IndexList {
    /// Returns the list of a new collection: the index on `_id` alone.
    pub(crate) fn new(collation: &Collation) -> IndexList {
        let spec = Arc::new(IndexSpec::id(collation.clone()));
        let id = CollectionIndex::new(ID_INDEX, spec, IndexState::Ready);
        IndexList { version: 0, last: ID_INDEX, indexes: vec![id], clearing: Vec::new(), cleared: Vec::new() }
    }

    /// Returns all indexes: that on `_id` first, then in the order of their creation.
    pub fn iter(&self) -> impl Iterator<Item = &CollectionIndex> {
        self.indexes.iter()
    }

    /// Returns the index of that number.
    pub fn get(&self, number: u32) -> Option<&CollectionIndex> {
        self.indexes.iter().find(|index| index.number == number)
    }

    /// Returns the index of that name.
    pub fn named(&self, name: &str) -> Option<&CollectionIndex> {
        self.indexes.iter().find(|index| index.spec.name() == name)
    }

    /// Returns the rules of the text index, if there is one.
    pub fn text_rules(&self) -> Option<Arc<TextRules>> {
        self.indexes.iter().find_map(|index| index.spec.text_rules().cloned()).map(Arc::new)
    }

    /// Returns the indexes whose entries are in `Index`.
    pub(crate) fn kept(&self) -> impl Iterator<Item = &CollectionIndex> {
        self.indexes.iter().filter(|index| index.number != ID_INDEX && index.has_entries())
    }

    /// Returns whether a background step has work to do.
    pub(crate) fn has_work(&self) -> bool {
        !self.clearing.is_empty() || self.indexes.iter().any(|index| index.state != IndexState::Ready)
    }

    /// Returns the list of a partition as `reader` sees it. Parsed specifications come from `known` where it has
    /// them.
    pub(crate) fn load(
        reader: &dyn Read,
        partition: PartitionId,
        collation: &Collation,
        known: &KnownIndexes,
    ) -> Result<Arc<IndexList>> {
        let (keyspace, key) = Key::CollectionIndexes(partition).encode();
        let installed = known.get();
        let Some(bytes) = reader.get(keyspace, &key)? else {
            let is_new = installed.version == 0;
            return Ok(if is_new { installed } else { Arc::new(IndexList::new(collation)) });
        };
        let damaged = || Error::Corrupt(format!("the indexes of partition {}", partition.0));
        let version = bytes.first_chunk().map(|version| u64::from_be_bytes(*version)).ok_or_else(damaged)?;
        if version == installed.version {
            return Ok(installed);
        }
        let mut recent = known.recent.lock();
        if let Some((_, list)) = recent.as_ref().filter(|(known, _)| *known == bytes) {
            return Ok(Arc::clone(list));
        }
        let list = IndexList::decode(version, &bytes, collation).map(Arc::new).ok_or_else(damaged)?;
        *recent = Some((bytes, Arc::clone(&list)));
        Ok(list)
    }

    /// Writes the list as the next version.
    pub(crate) fn store(&mut self, tx: &mut Transaction<'_>, partition: PartitionId) {
        self.version += 1;
        let (keyspace, key) = Key::CollectionIndexes(partition).encode();
        tx.put(keyspace, key, self.encode());
    }

    /// Writes the list into a draft in which the collection has no items yet, so that every index is ready.
    pub(crate) fn as_new(&self, tx: &mut Transaction<'_>, partition: PartitionId) {
        let mut list = self.clone();
        for index in &mut list.indexes {
            index.state = IndexState::Ready;
        }
        // A version of its own, so that no other reader mistakes this list for a committed one.
        list.version = u64::MAX / 2 + self.version;
        list.store(tx, partition);
    }

    fn encode(&self) -> Vec<u8> {
        let index = |index: &CollectionIndex| {
            let mut record =
                Document::new().with("number", i64::from(index.number)).with("spec", index.spec.to_stored());
            if let IndexState::Building(Build { through, until, built, total }) = index.state {
                let numbers = [through.0, until.0, built, total].map(|number| Value::Int64(number as i64));
                record.push("building", numbers.to_vec());
            }
            for (name, _) in [("multikey", index.multikey), ("cut", index.cut)].iter().filter(|(_, is)| *is) {
                record.push(*name, true);
            }
            Value::Document(record)
        };
        let clearing: Vec<Value> =
            self.clearing.iter().map(|number| Value::Int64(i64::from(*number))).collect();
        let record = Document::new()
            .with("last", i64::from(self.last))
            .with("indexes", self.indexes.iter().skip(1).map(index).collect::<Vec<_>>())
            .with("clearing", clearing)
            .with("cleared", Binary { subtype: 0, bytes: self.cleared.clone() })
            .with("cutIds", self.indexes.first().is_some_and(|id| id.cut));
        [&self.version.to_be_bytes(), RawDocument::from_document(&record).as_bytes()].concat()
    }

    fn decode(version: u64, bytes: &Bytes, collation: &Collation) -> Option<IndexList> {
        let record = RawDocument::parse(bytes.slice(8..)).ok()?;
        let mut list = IndexList { version, last: small(record.get("last"))?, ..IndexList::new(collation) };
        list.indexes[0].cut = is_set(record.get("cutIds"));
        for value in record.get("indexes")?.as_array()?.iter() {
            list.indexes.push(decode_index(value.as_document()?)?);
        }
        let clearing = record.get("clearing")?.as_array()?;
        list.clearing = clearing.iter().map(|value| small(Some(value))).collect::<Option<_>>()?;
        let Some(ValueRef::Binary(cleared)) = record.get("cleared") else { return None };
        list.cleared = cleared.bytes.to_vec();
        Some(list)
    }
}

/// Returns numbers and names of the indexes of a partition, as `reader` sees them.
pub(crate) fn index_names(reader: &dyn Read, partition: PartitionId) -> Result<Vec<(u32, String)>> {
    let (keyspace, key) = Key::CollectionIndexes(partition).encode();
    let Some(bytes) = reader.get(keyspace, &key)? else { return Ok(Vec::new()) };
    let list = IndexList::decode(0, &bytes, &Collation::default());
    let list = list.ok_or_else(|| Error::Corrupt(format!("the indexes of partition {}", partition.0)))?;
    Ok(list.iter().map(|index| (index.number, index.spec.name().to_owned())).collect())
}

fn decode_index(record: DocumentRef<'_>) -> Option<CollectionIndex> {
    let state = match record.get("building") {
        None => IndexState::Ready,
        Some(building) => {
            let numbers = building.as_array()?;
            let at = |position| number(numbers.get(position)).map(|number| number as u64);
            IndexState::Building(Build {
                through: ItemNumber(at(0)?),
                until: ItemNumber(at(1)?),
                built: at(2)?,
                total: at(3)?,
            })
        }
    };
    let spec = IndexSpec::parse_stored(record.get("spec")?.as_document()?).ok()?;
    let mut index = CollectionIndex::new(small(record.get("number"))?, Arc::new(spec), state);
    (index.multikey, index.cut) = (is_set(record.get("multikey")), is_set(record.get("cut")));
    Some(index)
}

fn small(value: Option<ValueRef<'_>>) -> Option<u32> {
    number(value).and_then(|number| u32::try_from(number).ok())
}

fn is_set(value: Option<ValueRef<'_>>) -> bool {
    value.and_then(ValueRef::as_bool).unwrap_or_default()
}

/// The indexes of a collection as cached in memory, shared by all handles of it.
#[derive(Debug)]
pub(crate) struct KnownIndexes {
    /// The newest list that is known to be committed.
    list: RwLock<Arc<IndexList>>,
    /// Another list that was read, perhaps not committed yet: the record's bytes and the parsed list.
    recent: Mutex<Option<(Bytes, Arc<IndexList>)>>,
    /// Builds that failed, for the callers that wait for them.
    failed: Mutex<Vec<(u32, Error)>>,
}

/// The number of failures that are kept when no caller asks for them.
const FAILED_MAX: usize = 64;

impl KnownIndexes {
    pub(crate) fn new(list: Arc<IndexList>) -> KnownIndexes {
        KnownIndexes { list: RwLock::new(list), recent: Mutex::default(), failed: Mutex::default() }
    }

    pub(crate) fn get(&self) -> Arc<IndexList> {
        Arc::clone(&self.list.read())
    }

    /// Keeps a committed list, unless a newer one is known.
    pub(crate) fn install(&self, list: Arc<IndexList>) {
        let mut current = self.list.write();
        if list.version > current.version {
            *current = list;
        }
    }

    pub(crate) fn fail(&self, numbers: &[u32], error: &Error) {
        let mut failed = self.failed.lock();
        let excess = (failed.len() + numbers.len()).saturating_sub(FAILED_MAX).min(failed.len());
        failed.drain(..excess);
        failed.extend(numbers.iter().map(|number| (*number, error.clone())));
    }

    /// Returns why one of these builds failed.
    pub(crate) fn failure(&self, numbers: &[u32]) -> Option<Error> {
        self.failed.lock().iter().find(|(number, _)| numbers.contains(number)).map(|(_, error)| error.clone())
    }
}

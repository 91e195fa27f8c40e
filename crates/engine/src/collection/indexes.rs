//! The indexes of a collection: which there are, what state each is in, and what of dropped ones is still to be cleared away.
//!
//! ```text
//!   created          build done          cleared
//!   -------> building --------> ready ...........> gone
//!               |                 |  dropped
//!               +-- duplicate ----+--> clearing
//! ```
//!
//! The list is one record of the partition that every write reads in its transaction, so that nobody has to tell writers of
//! a change. Parsed specifications come from memory as long as the record's version is the one known there.

use std::sync::Arc;

use bson::{Binary, Collation, Document, DocumentRef, RawDocument, Value, ValueRef};
use bytes::Bytes;
use document::ItemNumber;
use mql::index::{IndexSpec, TextRules};
use parking_lot::{Mutex, RwLock};
use storage::{Read, Transaction};

use super::definition::number;
use crate::error::{Error, Result};
use crate::keys::{Key, PartitionId};

/// The number of the index on `_id`, which every collection has; its entries lie in `Id`.
pub(super) const ID_INDEX: u32 = 0;

/// An index of a collection.
#[derive(Debug, Clone)]
pub struct CollectionIndex {
    /// Its number in the collection, never used again.
    pub number: u32,
    /// What the user asked for.
    pub spec: Arc<IndexSpec>,
    /// Whether queries may use it.
    pub state: IndexState,
    /// Whether a document was ever in it that has an array at one of its paths.
    pub multikey: bool,
    /// Whether a key was ever in it that was too long to be kept whole: then it serves no sort.
    pub cut: bool,
}

/// Whether an index has all items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexState {
    /// It has.
    Ready,
    /// Those that were there before it are being brought in.
    Building(Build),
}

/// How far a build has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Build {
    /// Items up to this number are in it,
    pub(super) through: ItemNumber,
    /// and items behind this one, because they were created since.
    pub(super) until: ItemNumber,
    /// Items brought in so far,
    pub built: u64,
    /// of so many.
    pub total: u64,
}

impl Build {
    /// Whether every item has been passed.
    pub(super) fn is_whole(&self) -> bool {
        self.through >= self.until
    }
}

impl CollectionIndex {
    pub(super) fn new(number: u32, spec: Arc<IndexSpec>, state: IndexState) -> CollectionIndex {
        CollectionIndex { number, spec, state, multikey: false, cut: false }
    }

    /// Whether queries may read through it: a TTL index on `_ts` has no entries, and one that is being built not all.
    pub fn is_searchable(&self) -> bool {
        self.state == IndexState::Ready && self.has_entries()
    }

    /// Whether it has entries at all, in `Index` or in `Id`.
    pub(super) fn has_entries(&self) -> bool {
        !self.spec.is_collection_ttl()
    }

    /// Whether an item's entries are in it.
    pub(super) fn has(&self, item: ItemNumber) -> bool {
        match self.state {
            IndexState::Ready => true,
            IndexState::Building(build) => item <= build.through || item > build.until,
        }
    }
}

/// All indexes of a collection as of one commit.
#[derive(Debug, Clone)]
pub struct IndexList {
    /// Grows with every change, so that an older copy never replaces a newer one.
    pub(super) version: u64,
    /// The last number that was given.
    pub(super) last: u32,
    /// That on `_id` first.
    pub(super) indexes: Vec<CollectionIndex>,
    /// Dropped ones that have entries, the first one first.
    pub(super) clearing: Vec<u32>,
    /// The last key removed of the first one of `clearing`.
    pub(super) cleared: Vec<u8>,
}

impl IndexList {
    /// The list of a new collection: the index on `_id` alone.
    pub(super) fn new(collation: &Collation) -> IndexList {
        let spec = Arc::new(IndexSpec::id(collation.clone()));
        let id = CollectionIndex::new(ID_INDEX, spec, IndexState::Ready);
        IndexList { version: 0, last: ID_INDEX, indexes: vec![id], clearing: Vec::new(), cleared: Vec::new() }
    }

    /// All of them, that on `_id` first, then in the order of their making.
    pub fn iter(&self) -> impl Iterator<Item = &CollectionIndex> {
        self.indexes.iter()
    }

    /// The index of that number.
    pub fn get(&self, number: u32) -> Option<&CollectionIndex> {
        self.indexes.iter().find(|index| index.number == number)
    }

    /// The index of that name.
    pub fn named(&self, name: &str) -> Option<&CollectionIndex> {
        self.indexes.iter().find(|index| index.spec.name() == name)
    }

    /// The rules of the text index, if there is one.
    pub fn text_rules(&self) -> Option<Arc<TextRules>> {
        self.indexes.iter().find_map(|index| index.spec.text_rules().cloned()).map(Arc::new)
    }

    /// Those whose entries lie in `Index`.
    pub(super) fn kept(&self) -> impl Iterator<Item = &CollectionIndex> {
        self.indexes.iter().filter(|index| index.number != ID_INDEX && index.has_entries())
    }

    /// Whether a background step has something to do.
    pub(super) fn has_work(&self) -> bool {
        !self.clearing.is_empty() || self.indexes.iter().any(|index| index.state != IndexState::Ready)
    }

    /// The list of a partition as `reader` has it; parsed specifications come from `known` where it has them.
    pub(super) fn load(
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
    pub(super) fn store(&mut self, tx: &mut Transaction<'_>, partition: PartitionId) {
        self.version += 1;
        let (keyspace, key) = Key::CollectionIndexes(partition).encode();
        tx.put(keyspace, key, self.encode());
    }

    /// Writes the list into a draft in which the collection has no items yet: every index is ready there.
    pub(super) fn as_new(&self, tx: &mut Transaction<'_>, partition: PartitionId) {
        let mut list = self.clone();
        for index in &mut list.indexes {
            index.state = IndexState::Ready;
        }
        // A version of its own: nobody else may take it for theirs.
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

/// Numbers and names of the indexes of a partition, as `reader` has them.
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

/// What is known of a collection's indexes in memory, for all handles of it.
#[derive(Debug)]
pub(crate) struct KnownIndexes {
    /// The newest one that is known to be committed.
    list: RwLock<Arc<IndexList>>,
    /// Another one that was read, perhaps not committed yet: the record's bytes and what they mean.
    recent: Mutex<Option<(Bytes, Arc<IndexList>)>>,
    /// Builds that failed, for whoever waits for them.
    failed: Mutex<Vec<(u32, Error)>>,
}

/// Failures that nobody asks for are not kept for ever.
const FAILED_MAX: usize = 64;

impl KnownIndexes {
    pub(super) fn new(list: Arc<IndexList>) -> KnownIndexes {
        KnownIndexes { list: RwLock::new(list), recent: Mutex::default(), failed: Mutex::default() }
    }

    pub(super) fn get(&self) -> Arc<IndexList> {
        Arc::clone(&self.list.read())
    }

    /// Keeps a committed list, unless a newer one is known.
    pub(super) fn install(&self, list: Arc<IndexList>) {
        let mut current = self.list.write();
        if list.version > current.version {
            *current = list;
        }
    }

    pub(super) fn fail(&self, numbers: &[u32], error: &Error) {
        let mut failed = self.failed.lock();
        let excess = (failed.len() + numbers.len()).saturating_sub(FAILED_MAX).min(failed.len());
        failed.drain(..excess);
        failed.extend(numbers.iter().map(|number| (*number, error.clone())));
    }

    /// Why one of these builds failed.
    pub(super) fn failure(&self, numbers: &[u32]) -> Option<Error> {
        self.failed.lock().iter().find(|(number, _)| numbers.contains(number)).map(|(_, error)| error.clone())
    }
}

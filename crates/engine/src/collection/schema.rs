//! How a collection stores its documents: an `_id`, keys in the indexes that users created, dates by which TTL indexes expire
//! them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use bson::{Document, KEY_BYTES_MAX, RawDocument, ValueRef};
use bytes::Bytes;
use document::ItemNumber;
use mql::Context;
use mql::index::ID_INDEX_NAME;
use storage::{Direction, KeyRange, Keyspace, Read, Transaction};

use super::document_keys::{DocumentKeys, split_entry};
use super::{BsonRecord, Collection, keys};
use crate::access::gate::{Gate, LookupResult};
use crate::catalog::collection_indexes::{CollectionIndex, ID_INDEX, IndexList};
use crate::catalog::container::Partition;
use crate::entries::traces::Traces;
use crate::evidence::expiry_record::CollectionSource;
use crate::expiry::Millis;
use crate::index::IndexFootprint;
use crate::index::footprint::Footprint;
use crate::types::error::{Error, Result};
use crate::write::context::{ValueClaim, WriteContext, missing_holder};
use crate::write::schema::{ItemSchema, NewVersion};

/// A collection with its indexes.
pub(crate) struct CollectionSchema {
    source: CollectionSource,
    /// Changes of indexes, by number: that they are multikey, that they have cut keys.
    noted: RefCell<BTreeMap<u32, (bool, bool)>>,
}

/// A write context of a collection.
pub(crate) type CollectionContext = WriteContext<CollectionSchema>;

impl CollectionContext {
    /// Opens a collection inside a transaction.
    pub(crate) fn open(tx: &Transaction<'_>, collection: &Arc<Collection>) -> Result<CollectionContext> {
        let gate = Gate::for_write(tx, collection.partition.id)?;
        Ok(WriteContext::new(gate, CollectionSchema::open(tx, collection)?))
    }
}

impl CollectionSchema {
    /// Opens a collection for a reader.
    pub(crate) fn open(reader: &dyn Read, collection: &Arc<Collection>) -> Result<CollectionSchema> {
        let source =
            CollectionSource { collection: Arc::clone(collection), indexes: collection.indexes_at(reader)? };
        Ok(CollectionSchema { source, noted: RefCell::default() })
    }

    pub(crate) fn collection(&self) -> &Arc<Collection> {
        &self.source.collection
    }

    /// Returns its indexes as of the transaction or snapshot.
    pub(crate) fn list(&self) -> &Arc<IndexList> {
        &self.source.indexes
    }

    /// Returns the documents that have a key in an index, expired ones included.
    fn holders(&self, tx: &Transaction<'_>, index: &CollectionIndex, key: &[u8]) -> Result<Vec<ItemNumber>> {
        let prefix = keys::entries(self.partition().id, index.number, key);
        let length = prefix.len();
        let scan = tx.scan(Keyspace::Index, KeyRange::prefix(prefix), Direction::Forward);
        let holder = |entry: storage::Result<(Bytes, Bytes)>| {
            let (key, _) = entry?;
            let number = split_entry(length, &key).filter(|(rest, _)| rest.is_empty());
            let number = number.map(|(_, number)| number);
            number.ok_or_else(|| Error::Corrupt("an entry of an index that continues another".into()))
        };
        scan.map(holder).collect()
    }

    /// Refuses to add a document to a unique index if living documents have its keys.
    pub(super) fn check_unique(
        &self,
        tx: &Transaction<'_>,
        gate: &Gate,
        index: &CollectionIndex,
        keys: &DocumentKeys,
        record: &BsonRecord,
    ) -> Result<()> {
        if !index.spec.is_unique() {
            return Ok(());
        }
        for key in keys.of(index.number) {
            for holder in self.holders(tx, index, key)? {
                if holder == record.number {
                    continue;
                }
                match gate.by_number::<RawDocument>(tx, holder)? {
                    LookupResult::Living(_) => return Err(duplicate(index, key, &record.body)?),
                    LookupResult::Expired(_) | LookupResult::Damaged(_) => {}
                    LookupResult::Absent => return Err(missing_holder(holder)),
                }
            }
        }
        Ok(())
    }

    /// Returns all entries of a version in the indexes of which `is_in` is true; a charge counts `charged` if those are
    /// others.
    pub(super) fn footprint_in(
        &self,
        mut traces: Traces,
        record: &BsonRecord,
        keys: &DocumentKeys,
        is_in: impl Fn(&CollectionIndex) -> bool,
        charged: Option<Vec<Vec<u8>>>,
    ) -> Footprint {
        traces.lead(Keyspace::Id, self.collection().id_key(id_of(&record.body)));
        let (partition, places) = (self.partition().id, record.header.places());
        let entries = keys.entries(partition, self.list(), record.number, is_in);
        Footprint { traces, index: IndexFootprint::of_document(partition, places, entries, charged) }
    }

    /// Returns the keys that a charge counts, if those are others than an item's entries: those in every index that there is,
    /// also in one whose build has not come to the item.
    fn charged_apart(&self, record: &BsonRecord) -> Option<Vec<Vec<u8>>> {
        let list = self.list();
        if list.kept().all(|index| index.has(record.number)) {
            return None;
        }
        let keys = DocumentKeys::ahead(list, &record.body);
        Some(keys.entries(self.partition().id, list, record.number, |_| true))
    }

    /// Notes changes of the indexes to which a document is added.
    pub(super) fn note_traits(&self, keys: &DocumentKeys) {
        let mut noted = self.noted.borrow_mut();
        for (number, entries) in keys.iter() {
            let Some(index) = self.list().get(number) else { continue };
            if (entries.multikey && !index.multikey) || (entries.cut && !index.cut) {
                let (multikey, cut) = noted.entry(number).or_default();
                (*multikey, *cut) = (*multikey || entries.multikey, *cut || entries.cut);
            }
        }
    }

    /// Adds the noted changes to a list.
    pub(super) fn add_traits(&self, list: &mut IndexList) {
        let noted = self.noted.take();
        for index in &mut list.indexes {
            if let Some((multikey, cut)) = noted.get(&index.number) {
                (index.multikey, index.cut) = (index.multikey || *multikey, index.cut || *cut);
            }
        }
    }
}

impl ItemSchema for CollectionSchema {
    type Body = RawDocument;
    type Source = CollectionSource;
    type Extracted = DocumentKeys;

    fn partition(&self) -> &Arc<Partition> {
        &self.source.collection.partition
    }

    fn source(&self) -> &CollectionSource {
        &self.source
    }

    fn id_key(&self, body: &RawDocument) -> Result<Vec<u8>> {
        Ok(self.collection().id_key(id_of(body)))
    }

    fn item_name(&self, body: &RawDocument) -> String {
        format!("document {}", bson::shell_text(id_of(body)))
    }

    fn id_taken(&self, body: &RawDocument) -> Error {
        let value = Document::new().with("_id", id_of(body).to_value());
        Error::DuplicateKey {
            index: ID_INDEX_NAME.into(),
            pattern: RawDocument::from_document(&Document::new().with("_id", 1)),
            value: RawDocument::from_document(&value),
        }
    }

    fn changes_id(&self, old: &RawDocument, new: &RawDocument) -> Result<bool> {
        if self.collection().id_key(id_of(old)) != self.collection().id_key(id_of(new)) {
            return Err(Error::invalid("a document cannot be given another '_id'"));
        }
        Ok(false)
    }

    fn refresh(
        &self,
        extracted: DocumentKeys,
        body: &RawDocument,
        old: Option<&BsonRecord>,
    ) -> Result<DocumentKeys> {
        // A new document is in all indexes, including those that are being built.
        extracted.current(self.list(), body, |index| old.is_none_or(|old| index.has(old.number)))
    }

    fn extract_stored(&self, record: &BsonRecord) -> DocumentKeys {
        DocumentKeys::stored(self.list(), &record.body, |index| index.has(record.number))
    }

    fn claim_unique_values(
        &self,
        context: &WriteContext<Self>,
        tx: &mut Transaction<'_>,
        (body, extracted): NewVersion<'_, Self>,
        old: Option<(ItemNumber, &DocumentKeys)>,
    ) -> Result<()> {
        let own = old.map(|(number, _)| number);
        let is_in = |index: &CollectionIndex| own.is_none_or(|number| index.has(number));
        for index in self.list().kept().filter(|index| index.spec.is_unique() && is_in(index)) {
            let known = old.map_or(&[][..], |(_, stored)| stored.of(index.number));
            for key in extracted.of(index.number).iter().filter(|key| !known.contains(key)) {
                for holder in self.holders(tx, index, key)? {
                    match context.claim_value(tx, holder, own)? {
                        ValueClaim::Granted => {}
                        ValueClaim::Taken => return Err(duplicate(index, key, body)?),
                        ValueClaim::HolderMissing => return Err(missing_holder(holder)),
                    }
                }
            }
        }
        Ok(())
    }

    fn date(&self, rule: u32, body: &RawDocument) -> Option<Millis> {
        self.list().get(rule)?.spec.earliest_date(body.view())
    }

    fn footprint(
        &self,
        traces: Traces,
        record: &BsonRecord,
        extracted: &mut DocumentKeys,
    ) -> Result<Footprint> {
        let (is_in, charged) =
            (|index: &CollectionIndex| index.has(record.number), self.charged_apart(record));
        Ok(self.footprint_in(traces, record, extracted, is_in, charged))
    }

    fn note_written(&self, record: &BsonRecord, extracted: &DocumentKeys) -> Result<()> {
        self.note_traits(extracted);
        // Only a long value can have a cut key, and few ids are long.
        if !self.list().indexes[0].cut && self.id_key(&record.body)?.len() > KEY_BYTES_MAX {
            self.noted.borrow_mut().entry(ID_INDEX).or_default().1 = true;
        }
        Ok(())
    }

    fn store_notes(&self, tx: &mut Transaction<'_>) {
        if self.noted.borrow().is_empty() {
            return;
        }
        let mut list = (**self.list()).clone();
        self.add_traits(&mut list);
        list.store(tx, self.partition().id);
    }
}

pub(super) fn id_of(body: &RawDocument) -> ValueRef<'_> {
    body.get("_id").unwrap_or(ValueRef::Null)
}

/// Returns the error about a key of a unique index that a living document has.
fn duplicate(index: &CollectionIndex, key: &[u8], document: &RawDocument) -> Result<Error> {
    let value = index.spec.key_value(document.view(), key, &Context::at(0))?;
    Ok(Error::DuplicateKey {
        index: index.spec.name().to_owned(),
        pattern: RawDocument::from_document(index.spec.key_pattern()),
        value: RawDocument::from_document(&value),
    })
}

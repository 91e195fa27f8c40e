//! What an item of a collection leaves in the store: the traces of every item, its `_id`, and its entries in the indexes.
//!
//! As in containers, an entry of an index carries a bound of the item's places in the queues of expiry, so that mostly the
//! entry alone tells whether its item lives (decision 0004).

use std::borrow::Cow;
use std::cmp::Ordering;

use bson::RawDocument;
use bytes::Bytes;
use document::ItemNumber;
use mql::Context;
use mql::index::Entries;
use storage::{Keyspace, Transaction};

use super::indexes::{CollectionIndex, IndexList};
use super::{BsonRecord, keys};
use crate::error::{Error, Result};
use crate::expiry::Places;
use crate::footprint::Traces;
use crate::index::{Mark, keys_apart};
use crate::keys::PartitionId;
use crate::limits::DOCUMENT_KEYS_BYTES_MAX;

/// The keys that a document has in each index, extracted for one version of the list.
#[derive(Debug, Clone, Default)]
pub(super) struct DocumentKeys {
    /// None if they have to be extracted yet.
    version: Option<u64>,
    /// Number of the index and what the document has in it, in the order of numbers.
    by_index: Vec<(u32, Entries)>,
    /// The indexes that cannot hold the document; only for a stored one.
    unfit: Vec<u32>,
}

impl DocumentKeys {
    /// Extracts the keys of a document for those of the kept indexes of which `is_in` is true.
    pub(super) fn extract(
        list: &IndexList,
        document: &RawDocument,
        is_in: impl Fn(&CollectionIndex) -> bool,
    ) -> Result<DocumentKeys> {
        // Bounded by the size of the document, and run where nobody could cancel it.
        let context = Context::at(0);
        let (mut by_index, mut bytes) = (Vec::new(), 0);
        for index in list.kept().filter(|index| is_in(index)) {
            if let Some(entries) = index.spec.entries(document.view(), &context)? {
                bytes += entries.keys.iter().map(Vec::len).sum::<usize>();
                if bytes > DOCUMENT_KEYS_BYTES_MAX {
                    let (actual, limit) = (bytes, DOCUMENT_KEYS_BYTES_MAX);
                    return Err(Error::TooLarge {
                        what: "the sum of the document's index keys",
                        actual,
                        limit,
                    });
                }
                by_index.push((index.number, entries));
            }
        }
        Ok(DocumentKeys { version: Some(list.version), by_index, unfit: Vec::new() })
    }

    /// Extracts the keys that a stored document has. It has none in an index that cannot hold it: only documents that had
    /// expired when the index was built are stored in spite of that (T15). The sum is not bounded, since it was when the
    /// document was written, and an expired document must not stop the build of another index.
    pub(super) fn stored(
        list: &IndexList,
        document: &RawDocument,
        is_in: impl Fn(&CollectionIndex) -> bool,
    ) -> DocumentKeys {
        let context = Context::at(0);
        let mut keys = DocumentKeys { version: Some(list.version), ..DocumentKeys::default() };
        for index in list.kept().filter(|index| is_in(index)) {
            match index.spec.entries(document.view(), &context) {
                Ok(Some(entries)) => keys.by_index.push((index.number, entries)),
                Ok(None) => {}
                Err(_) => keys.unfit.push(index.number),
            }
        }
        keys
    }

    /// The numbers of the indexes that cannot hold a stored document.
    pub(super) fn unfit(&self) -> &[u32] {
        &self.unfit
    }

    /// Extracts the keys of a document before its transaction, for all indexes that are known. What cannot be extracted is
    /// left to the transaction: it knows whether the index is still there.
    pub(super) fn ahead(list: &IndexList, document: &RawDocument) -> DocumentKeys {
        DocumentKeys::extract(list, document, |_| true).unwrap_or_default()
    }

    /// The same if they were extracted for this version of the list, else anew.
    pub(super) fn current(
        self,
        list: &IndexList,
        document: &RawDocument,
        is_in: impl Fn(&CollectionIndex) -> bool,
    ) -> Result<DocumentKeys> {
        if self.version == Some(list.version) {
            Ok(self)
        } else {
            DocumentKeys::extract(list, document, is_in)
        }
    }

    /// The keys in one index.
    pub(super) fn of(&self, index: u32) -> &[Vec<u8>] {
        let found = self.by_index.iter().find(|(number, _)| *number == index);
        found.map_or(&[], |(_, entries)| entries.keys.as_slice())
    }

    /// What the document has in each index.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Entries)> {
        self.by_index.iter().map(|(number, entries)| (*number, entries))
    }
}

/// Everything that one version of an item leaves.
pub(super) struct ItemFootprint {
    traces: Traces,
    /// Keys in `Index`, sorted.
    entries: Vec<Vec<u8>>,
    places: Places,
}

impl ItemFootprint {
    /// The footprint of a version in the indexes of which `is_in` is true.
    pub(super) fn new(
        partition: PartitionId,
        list: &IndexList,
        record: &BsonRecord,
        id_key: Vec<u8>,
        document_keys: &DocumentKeys,
        is_in: impl Fn(&CollectionIndex) -> bool,
    ) -> ItemFootprint {
        let mut traces = Traces::new(partition, record);
        traces.lead(Keyspace::Id, id_key);
        let mut entries = Vec::new();
        for index in list.kept().filter(|index| is_in(index)) {
            let keys = document_keys.of(index.number);
            entries.extend(keys.iter().map(|key| keys::entry(partition, index.number, key, record.number)));
        }
        entries.sort_unstable();
        ItemFootprint { traces, entries, places: record.header.places() }
    }

    /// How many entries there are.
    pub(super) fn entries(&self) -> usize {
        self.traces.entries() + self.entries.len()
    }

    /// The keys that a charge counts: those in every index that there is, also in one whose build has not come to the item.
    /// How far a build has come must not show in a charge, because it depends on what the purge has left to build.
    pub(super) fn charged_keys(&self, list: &IndexList, record: &BsonRecord) -> Cow<'_, [Vec<u8>]> {
        if list.kept().all(|index| index.has(record.number)) {
            return Cow::Borrowed(&self.entries);
        }
        let partition = self.traces.partition();
        let keys = DocumentKeys::ahead(list, &record.body);
        let all = ItemFootprint::new(partition, list, record, Vec::new(), &keys, |_| true);
        Cow::Owned(all.entries)
    }

    /// Writes a new item.
    pub(super) fn insert(self, tx: &mut Transaction<'_>) -> Result<()> {
        self.traces.insert(tx)?;
        let value = mark(&self.places);
        for key in self.entries {
            tx.put(Keyspace::Index, key, value.clone());
        }
        Ok(())
    }

    /// Turns the entries of `old` into those of `self`. What both share stays, unless the new version may die earlier than
    /// the entry's mark says, or by another rule.
    pub(super) fn replace(self, old: ItemFootprint, tx: &mut Transaction<'_>) -> Result<()> {
        let kept = old.places.bounds(&self.places);
        let value = mark(&self.places);
        let (mut new, mut old_entries) =
            (self.entries.into_iter().peekable(), old.entries.into_iter().peekable());
        loop {
            let order = match (new.peek(), old_entries.peek()) {
                (None, None) => break,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(new), Some(old)) => new.cmp(old),
            };
            let written = if order == Ordering::Greater { None } else { new.next() };
            let before = if order == Ordering::Less { None } else { old_entries.next() };
            match (written, before) {
                (Some(key), None) => tx.put(Keyspace::Index, key, value.clone()),
                (Some(key), Some(_)) if !kept => tx.put(Keyspace::Index, key, value.clone()),
                (None, Some(key)) => tx.remove(Keyspace::Index, key),
                (Some(_), Some(_)) | (None, None) => {}
            }
        }
        self.traces.replace(&old.traces, tx)
    }

    /// Removes every trace.
    pub(super) fn remove(self, tx: &mut Transaction<'_>) -> Result<()> {
        for key in self.entries {
            tx.remove(Keyspace::Index, key);
        }
        self.traces.remove(tx)
    }

    /// What lies outside of the indexes.
    pub(super) fn traces(&self) -> &Traces {
        &self.traces
    }

    /// All keys in `Index` with the places that bound their marks from above, for the integrity check.
    pub(super) fn expected(&self) -> (&[Vec<u8>], &Places) {
        (&self.entries, &self.places)
    }
}

/// How many of the keys that a charge counts two versions do not share.
pub(super) fn changed_terms(new: &[Vec<u8>], old: &[Vec<u8>]) -> u64 {
    keys_apart(new.iter().map(Vec::as_slice), old.iter().map(Vec::as_slice))
}

fn mark(places: &Places) -> Bytes {
    Mark { places: places.clone(), inexact: false }.encode().into()
}

/// The item of an index entry, and the bytes of its key between the prefix and the item's number.
pub(super) fn split_entry(prefix: usize, key: &Bytes) -> Option<(Bytes, ItemNumber)> {
    let end = key.len().checked_sub(8).filter(|end| *end >= prefix)?;
    let number = u64::from_be_bytes(*key[end..].first_chunk()?);
    Some((key.slice(prefix..end), ItemNumber(number)))
}

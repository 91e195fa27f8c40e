//! The keys that a document has in the indexes of its collection, extracted before the transaction that writes it where that
//! is possible.

use bson::RawDocument;
use bytes::Bytes;
use document::ItemNumber;
use mql::Context;
use mql::index::Entries;

use super::keys;
use crate::catalog::collection_indexes::{CollectionIndex, IndexList};
use crate::keys::PartitionId;
use crate::types::error::{Error, Result};
use crate::types::limits::DOCUMENT_KEYS_BYTES_MAX;

/// The keys that a document has in each index, extracted for one version of the list.
#[derive(Debug, Clone, Default)]
pub(crate) struct DocumentKeys {
    /// `None` if they are not extracted yet.
    version: Option<u64>,
    /// The number of each index and the document's keys in it, in the order of numbers.
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
        // Bounded by the size of the document, and run where no caller could cancel it.
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

    /// Extracts the keys of a stored document. It has none in an index that cannot hold it: only documents that had expired when the
    /// index was built are stored in spite of that (T15). Their total is not bounded here: it was when the document was written,
    /// and an expired document must not stop the build of another index.
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

    /// Returns the numbers of the indexes that cannot hold a stored document.
    pub(crate) fn unfit(&self) -> &[u32] {
        &self.unfit
    }

    /// Extracts the keys of a document before its transaction, for all known indexes. Keys that cannot be extracted are left to
    /// the transaction, which reads whether the index still exists.
    pub(super) fn ahead(list: &IndexList, document: &RawDocument) -> DocumentKeys {
        DocumentKeys::extract(list, document, |_| true).unwrap_or_default()
    }

    /// Returns the same keys if they were extracted for this version of the list, else extracts them again.
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

    /// Returns the keys in one index.
    pub(super) fn of(&self, index: u32) -> &[Vec<u8>] {
        let found = self.by_index.iter().find(|(number, _)| *number == index);
        found.map_or(&[], |(_, entries)| entries.keys.as_slice())
    }

    /// Returns the keys in `Index` of a document's entries in the indexes of which `is_in` is true.
    pub(super) fn entries(
        &self,
        partition: PartitionId,
        list: &IndexList,
        item: ItemNumber,
        is_in: impl Fn(&CollectionIndex) -> bool,
    ) -> Vec<Vec<u8>> {
        let entry = |index: u32, key: &Vec<u8>| keys::entry(partition, index, key, item);
        let of_index = |index: &CollectionIndex| {
            let number = index.number;
            self.of(number).iter().map(move |key| entry(number, key))
        };
        list.kept().filter(|index| is_in(index)).flat_map(of_index).collect()
    }

    /// Returns the document's keys in each index.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Entries)> {
        self.by_index.iter().map(|(number, entries)| (*number, entries))
    }
}

/// Returns the item of an index entry, and the bytes of its key between the prefix and the item's number.
pub(crate) fn split_entry(prefix: usize, key: &Bytes) -> Option<(Bytes, ItemNumber)> {
    let end = key.len().checked_sub(8).filter(|end| *end >= prefix)?;
    let number = u64::from_be_bytes(*key[end..].first_chunk()?);
    Some((key.slice(prefix..end), ItemNumber(number)))
}

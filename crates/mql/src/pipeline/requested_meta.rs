//! The metadata that a pipeline or a projection requests by `$meta`: some of it has to be kept with each row, and some only
//! exists if there is a search.

use bson::{DocumentRef, ValueRef};

use crate::error::{Error, Result};
use crate::filter::Filter;

/// The keywords of `$meta` for which sources or stages have to keep metadata.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequestedMeta {
    /// `sortKey`: sorts keep what they sorted by.
    pub sort_key: bool,
    /// `indexKey`: the index key by which the source found a document.
    pub index_key: bool,
    /// `textScore`: there must be a `$text`.
    pub text_score: bool,
}

impl RequestedMeta {
    /// Returns the metadata that these documents request, at any depth. Pipelines over other collections request their own.
    pub fn of<'a>(documents: impl IntoIterator<Item = DocumentRef<'a>>) -> RequestedMeta {
        let mut requested_meta = RequestedMeta::default();
        documents.into_iter().for_each(|document| requested_meta.look_into(document));
        requested_meta
    }

    /// Returns the union of both.
    #[must_use]
    pub(crate) fn and(self, other: RequestedMeta) -> RequestedMeta {
        RequestedMeta {
            sort_key: self.sort_key || other.sort_key,
            index_key: self.index_key || other.index_key,
            text_score: self.text_score || other.text_score,
        }
    }

    fn look_into(&mut self, document: DocumentRef<'_>) {
        for (name, value) in document.iter() {
            match (name, value) {
                ("$meta", ValueRef::String("sortKey")) => self.sort_key = true,
                ("$meta", ValueRef::String("indexKey")) => self.index_key = true,
                ("$meta", ValueRef::String("textScore")) => self.text_score = true,
                ("$literal" | "$const" | "$lookup" | "$unionWith", _) => {}
                (_, value) => self.look_into_value(value),
            }
        }
    }

    fn look_into_value(&mut self, value: ValueRef<'_>) {
        match value {
            ValueRef::Document(document) => self.look_into(document),
            ValueRef::Array(items) => items.iter().for_each(|item| self.look_into_value(item)),
            _ => {}
        }
    }

    /// Refuses a request for the score without a search.
    pub fn check(self, filter: &Filter) -> Result<()> {
        if self.text_score && filter.text().is_none() {
            let message = "query requires text score metadata, but it is not available";
            return Err(Error::location(40218, message));
        }
        Ok(())
    }
}

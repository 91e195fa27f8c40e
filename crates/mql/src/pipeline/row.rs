//! The rows between stages: a document, its origin, and the metadata of a search.

use bson::limits::DEPTH_MAX;
use bson::{Document, DocumentRef, RawDocument, ValueRef};

use crate::error::{Code, Error, Result};
pub(crate) use crate::size::{document_bytes, value_bytes};

/// A document on its way through a pipeline.
#[derive(Debug, Clone)]
pub struct Row {
    /// The document itself.
    pub body: Body,
    /// The number of the item of the leading collection from which this row is made, one row from one item (or several,
    /// after `$unwind`). Every stage that only changes rows keeps it, and those that make new rows of many lose it
    /// (`$group`). A cursor that keeps rows checks by it whether the item has expired (T16).
    pub origin: Option<u64>,
    /// The metadata of a search, for `$meta`, one field for each keyword (`textScore`, `geoNearDistance`, `geoNearPoint`).
    pub meta: Option<Box<Document>>,
}

/// A document as bytes, as it comes from a collection, or as a tree, as stages make it.
#[derive(Debug, Clone)]
pub enum Body {
    /// Bytes, shared.
    Raw(RawDocument),
    /// A tree.
    Tree(Document),
}

impl Row {
    /// Returns a row that is made from an item of the leading collection.
    pub fn of_item(document: RawDocument, number: u64) -> Row {
        Row { body: Body::Raw(document), origin: Some(number), meta: None }
    }

    /// Returns the reader.
    pub fn view(&self) -> DocumentRef<'_> {
        self.body.view()
    }

    /// Creates the same row with another document.
    #[must_use]
    pub(crate) fn with_body(self, document: Document) -> Row {
        Row { body: Body::Tree(document), ..self }
    }

    /// Returns a row of a document that a stage has made, which must not be nested too deeply.
    pub(crate) fn made(document: Document) -> Result<Row> {
        Row::from(Document::new()).with_made(document)
    }

    /// Creates the same row with a document that a stage has made, which must not be nested too deeply.
    pub(crate) fn with_made(self, document: Document) -> Result<Row> {
        if !document.view().iter().all(|(_, value)| is_at_most(value, DEPTH_MAX - 1)) {
            let message =
                format!("a stage would make a document that is nested more than {DEPTH_MAX} levels deep");
            return Err(Error::new(Code::OVERFLOW, message));
        }
        Ok(self.with_body(document))
    }

    /// Returns how many bytes this row takes while it is kept, roughly.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Row>() + self.body.bytes()
    }
}

impl Body {
    /// Returns the reader.
    pub fn view(&self) -> DocumentRef<'_> {
        match self {
            Body::Raw(document) => document.view(),
            Body::Tree(document) => document.view(),
        }
    }

    /// Returns how many bytes it takes, roughly.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Body::Raw(document) => document.as_bytes().len(),
            Body::Tree(document) => document_bytes(document.view()),
        }
    }

    /// Returns the document as bytes.
    pub fn into_raw(self) -> RawDocument {
        match self {
            Body::Raw(document) => document,
            Body::Tree(document) => RawDocument::from_document(&document),
        }
    }

    /// Returns the document as a tree.
    pub fn into_tree(self) -> Document {
        match self {
            Body::Raw(document) => document.to_document(),
            Body::Tree(document) => document,
        }
    }
}

impl From<RawDocument> for Row {
    fn from(document: RawDocument) -> Row {
        Row { body: Body::Raw(document), origin: None, meta: None }
    }
}

impl From<Document> for Row {
    fn from(document: Document) -> Row {
        Row { body: Body::Tree(document), origin: None, meta: None }
    }
}

/// Returns `true` if a value is nested at most that deep. Deeper levels are not examined.
fn is_at_most(value: ValueRef<'_>, levels: usize) -> bool {
    match value {
        ValueRef::Document(document) => {
            levels > 0 && document.iter().all(|(_, value)| is_at_most(value, levels - 1))
        }
        ValueRef::Array(items) => levels > 0 && items.iter().all(|value| is_at_most(value, levels - 1)),
        _ => true,
    }
}

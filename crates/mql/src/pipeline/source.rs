//! The interface through which a pipeline reads and writes collections.
//!
//! The caller implements [`Source`] over its collections for each request: one request, one time, one snapshot. Scans
//! outlive the requests of a cursor, by their ids: a scan that an earlier request opened continues where it stopped.

use std::sync::Arc;

use bson::{Document, RawDocument};

use crate::context::Context;
use crate::error::Result;
use crate::filter::Filter;
use crate::pipeline::merge::Merge;
use crate::pipeline::row::Row;
use crate::sort::Sort;
use crate::text::TextRules;

/// A collection by its name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Namespace {
    /// The database.
    pub database: String,
    /// The collection.
    pub collection: String,
}

impl std::fmt::Display for Namespace {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}.{}", self.database, self.collection)
    }
}

/// A read of a collection.
#[derive(Debug, Clone)]
pub struct Scan {
    /// Its name. A collection that does not exist is an empty one.
    pub collection: Namespace,
    /// Its purpose.
    pub part: Part,
    /// The conditions that every row meets. The source evaluates them; the pipeline does not.
    pub filter: Arc<Filter>,
    /// An order for rows if it costs nothing: the source may return them in it, and then says so. It must serve `$natural`.
    pub sort: Option<Arc<Sort>>,
    /// The largest number of rows needed, in that order if there is one. The source need not stop there.
    pub limit: Option<u64>,
    /// Whether each row has the index key by which it was found: `indexKey` in its meta.
    pub tells_index_key: bool,
}

/// The part that a collection plays in a pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The collection that the pipeline is run on; a hint applies to it.
    Leading,
    /// Another one, which a stage reads (or the same one once more).
    Foreign,
}

/// A scan that was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ScanId(pub u64);

/// The order in which the rows of a scan come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// In any.
    Any,
    /// In that of [`Scan::sort`]; without one, nearest first if the filter asks for that ([`Filter::near`]).
    Sorted,
}

/// The descriptions that stages can request besides documents.
#[derive(Debug, Clone)]
pub enum Description {
    /// `$collStats`: its options.
    Collection(Document),
    /// `$indexStats`.
    Indexes,
    /// `$currentOp`: its options.
    Operations(Document),
    /// `$listLocalSessions`.
    Sessions,
}

/// The collections, as one request sees them.
pub trait Source {
    /// Begins to read. The id stays good until `close`, over any number of requests.
    fn open(&mut self, scan: &Scan) -> Result<(ScanId, Order)>;

    /// Returns the next row. Its origin is the number of its item; scores and distances may be absent.
    fn next(&mut self, scan: ScanId) -> Result<Option<Row>>;

    /// Forgets a scan, finished or not.
    fn close(&mut self, scan: ScanId);

    /// Returns whether an index of the collection serves the filter: then a join looks up each row separately.
    fn is_served(&mut self, collection: &Namespace, filter: &Filter) -> Result<bool>;

    /// Returns the field with the only geospatial index of a collection, for a `$geoNear` without `key`. An error if there
    /// is none, or more than one.
    fn geospatial_field(&mut self, collection: &Namespace) -> Result<String>;

    /// Returns the rules of a collection's text index, if it has one, for a `$text` in a pipeline within a pipeline.
    fn text_rules(&mut self, collection: &Namespace) -> Result<Option<Arc<TextRules>>>;

    /// Describes a collection, its indexes, or running operations.
    fn describe(&mut self, collection: &Namespace, what: &Description) -> Result<Vec<Document>>;

    /// `$out`: some of the documents that will replace a collection, in order. They are invisible before
    /// `replace_collection`; if that is never called, they are dropped.
    fn stage_documents(&mut self, target: &Namespace, documents: Vec<RawDocument>) -> Result<()>;

    /// `$out`: the staged documents, perhaps none, become the collection at once; its indexes and options stay.
    fn replace_collection(&mut self, target: &Namespace) -> Result<()>;

    /// `$merge`: merges one document with its counterpart: [`Merge::counterpart`] finds it, [`Merge::decide`] decides what
    /// happens.
    fn merge(&mut self, merge: &Arc<Merge>, document: RawDocument, context: &Context) -> Result<()>;
}

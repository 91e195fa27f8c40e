//! What a caller asks of items and what it gets back. Plain data; the work is done in `write` and `read`.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use document::{Document, Etag, ItemNumber, PartitionKey, Value};
use query::Query;

use crate::charge::Charge;
use crate::error::{Error, Result};
use crate::item::Item;
use crate::lsn::RangeLsn;
use crate::patch::Patch;
use crate::touch::Touch;

/// How an item is addressed inside its logical partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ItemName {
    /// By the user's `id`.
    Id(String),
    /// By the number inside its resource id.
    Number(ItemNumber),
}

impl std::fmt::Display for ItemName {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ItemName::Id(id) => out.write_str(id),
            ItemName::Number(number) => write!(out, "#{}", number.0),
        }
    }
}

/// A condition on the item's current version. Etags are opaque text, quotes included.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Precondition {
    /// No condition.
    #[default]
    None,
    /// The item must be at this etag.
    IfMatch(String),
    /// The item must exist, at whatever version (`If-Match: *`).
    IfExists,
    /// The item must not be at this etag.
    IfNoneMatch(String),
    /// The item must not exist (`If-None-Match: *`).
    IfAbsent,
}

impl Precondition {
    /// Whether a thing that exists at `etag` meets the condition.
    pub(crate) fn admits(&self, etag: &Etag) -> bool {
        match self {
            Precondition::None | Precondition::IfExists => true,
            Precondition::IfMatch(wanted) => *wanted == etag.to_string(),
            Precondition::IfNoneMatch(unwanted) => *unwanted != etag.to_string(),
            Precondition::IfAbsent => false,
        }
    }

    /// Whether the condition demands that the thing exists.
    pub(crate) fn needs_existence(&self) -> bool {
        matches!(self, Precondition::IfMatch(_) | Precondition::IfExists)
    }

    /// [`Precondition::admits`] as an error.
    pub(crate) fn check(&self, etag: &Etag, what: impl std::fmt::Display) -> Result<()> {
        if self.admits(etag) {
            return Ok(());
        }
        Err(Error::PreconditionFailed { what: what.to_string() })
    }
}

/// One operation on one item.
#[derive(Debug, Clone)]
pub enum Operation {
    /// Insert; refused if a living item has the id.
    Create {
        /// The item as the client sent it.
        body: Document,
    },
    /// Insert, or replace the living item of that id.
    Upsert {
        /// The item as the client sent it.
        body: Document,
        /// Checked only if a living item is there.
        precondition: Precondition,
    },
    /// Replace a living item.
    Replace {
        /// Which item.
        name: ItemName,
        /// Its new body, with the same id and partition key.
        body: Document,
        /// Condition on the current version.
        precondition: Precondition,
    },
    /// Change parts of a living item.
    Patch {
        /// Which item.
        name: ItemName,
        /// The operations and their condition.
        patch: Patch,
        /// Condition on the current version.
        precondition: Precondition,
    },
    /// Remove a living item.
    Delete {
        /// Which item.
        name: ItemName,
        /// Condition on the current version.
        precondition: Precondition,
    },
    /// Read a living item (in a batch: as its neighbours left it).
    Read {
        /// Which item.
        name: ItemName,
        /// `IfNoneMatch` turns an unchanged item into [`Effect::NotModified`].
        precondition: Precondition,
    },
}

/// What an operation did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// A new item exists.
    Created,
    /// A living item has a new version.
    Replaced,
    /// A living item is gone.
    Deleted,
    /// Nothing changed; the item is in the outcome.
    Read,
    /// The caller's copy is current.
    NotModified,
}

/// A successful operation.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// What happened.
    pub effect: Effect,
    /// The item after the operation; none after a delete.
    pub item: Option<Item>,
    /// What it cost.
    pub charge: Charge,
    /// The range that it was in, at the LSN that a session must have seen to see this outcome.
    pub range: RangeLsn,
    /// In how many seconds the item will die, begun ones included; none if no rule will kill it (T33).
    pub seconds_left: Option<u64>,
    /// The countdown that the read has to restart.
    pub touch: Option<Touch>,
}

/// Why a transactional batch did nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchError {
    /// The operation that failed; none if the batch as a whole did.
    pub index: Option<usize>,
    /// Why.
    pub error: Error,
}

impl From<Error> for BatchError {
    fn from(error: Error) -> BatchError {
        BatchError { index: None, error }
    }
}

impl From<storage::Error> for BatchError {
    fn from(error: storage::Error) -> BatchError {
        Error::from(error).into()
    }
}

/// The slice of a container that a query or listing looks at.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// One logical partition, or the prefix of a hierarchical key.
    pub key: Option<PartitionKey>,
    /// A range of effective partition keys.
    pub range: Option<document::EffectiveRange>,
}

/// What a page of a query is asked with.
#[derive(Debug, Clone)]
pub struct QueryRequest<'q> {
    /// The query; none for all items as they are.
    pub query: Option<&'q Query>,
    /// Where to look.
    pub scope: Scope,
    /// At most this many rows; the engine may stop earlier.
    pub max_items: usize,
    /// The token of the page before.
    pub continuation: Option<String>,
    /// Where an ordered query begins, in a client's own words; a token knows better.
    pub resume_filter: Option<ResumeFilter>,
    /// What `RAND` begins with.
    pub seed: u64,
    /// Set when nobody waits for the answer any more.
    pub cancel: Arc<AtomicBool>,
}

impl<'q> QueryRequest<'q> {
    /// The first page of a query over a whole container.
    pub fn new(query: Option<&'q Query>, max_items: usize) -> QueryRequest<'q> {
        QueryRequest {
            query,
            scope: Scope::default(),
            max_items,
            continuation: None,
            resume_filter: None,
            seed: 1,
            cancel: Arc::default(),
        }
    }
}

/// A row of an ordered query to begin with.
#[derive(Debug, Clone, PartialEq)]
pub struct ResumeFilter {
    /// The values of its `ORDER BY` keys; none is undefined.
    pub values: Vec<Option<Value>>,
    /// Its item; without one the first item with these values.
    pub number: Option<ItemNumber>,
    /// Whether to begin behind it.
    pub exclude: bool,
}

/// One page of a query or listing.
#[derive(Debug, Clone)]
pub struct QueryPage {
    /// The rows, each as JSON text.
    pub rows: Vec<Vec<u8>>,
    /// Present when there may be more.
    pub continuation: Option<String>,
    /// What it cost.
    pub charge: Charge,
    /// One of the ranges that were read, at the LSN that a session must have seen to see this page.
    pub range: RangeLsn,
    /// What was looked at to answer; the dead are not counted (T14).
    pub metrics: QueryMetrics,
    /// The indexes that helped, and those that would have.
    pub index: IndexUse,
    /// The countdowns that the page has to restart.
    pub touches: Vec<Touch>,
}

/// Figures about a query; only the living count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueryMetrics {
    /// Index entries that were walked along.
    pub index_entries: u64,
    /// Items loaded.
    pub loaded_items: u64,
    /// Their bytes.
    pub loaded_bytes: u64,
    /// Rows in the answer.
    pub output_items: u64,
    /// Their bytes.
    pub output_bytes: u64,
}

/// Which indexes a query used or could use, as an indexing policy names them: `/a/?`, and `/a ASC` in composite ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IndexUse {
    /// Paths whose entries were used.
    pub utilized_single: Vec<String>,
    /// Paths that are not indexed and would help.
    pub potential_single: Vec<String>,
    /// Composite indexes that were used.
    pub utilized_composite: Vec<Vec<String>>,
    /// Composite indexes that would help.
    pub potential_composite: Vec<Vec<String>>,
}

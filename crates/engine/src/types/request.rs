//! How callers name items, the conditions and scope of requests, and the metrics of a query.

use document::{Etag, ItemNumber, PartitionKey};

use crate::types::error::{Error, Result};

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
    /// Returns whether a thing that exists at `etag` meets the condition.
    pub(crate) fn admits(&self, etag: &Etag) -> bool {
        match self {
            Precondition::None | Precondition::IfExists => true,
            Precondition::IfMatch(wanted) => *wanted == etag.to_string(),
            Precondition::IfNoneMatch(unwanted) => *unwanted != etag.to_string(),
            Precondition::IfAbsent => false,
        }
    }

    /// Does what [`Precondition::admits`] does, as an error.
    pub(crate) fn check(&self, etag: &Etag, what: impl std::fmt::Display) -> Result<()> {
        if self.admits(etag) {
            return Ok(());
        }
        Err(Error::PreconditionFailed { what: what.to_string() })
    }
}

/// The part of a container that a query or listing reads.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// One logical partition, or the prefix of a hierarchical key.
    pub key: Option<PartitionKey>,
    /// A range of effective partition keys.
    pub range: Option<document::EffectiveRange>,
}

/// Metrics of a query; only living items and their entries count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueryMetrics {
    /// Index entries read.
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

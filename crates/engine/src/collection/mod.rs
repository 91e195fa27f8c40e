//! Collections: containers of BSON items, for the MongoDB API.
//!
//! A collection is a container with one physical partition, whose items are found by `_id`, by number in the order of their
//! creation, and through the indexes that the user made. Header, queues, counters, feed, gate and purge are those of every
//! container; what differs is in here: what leads to an item, and how it is written.
//!
//! Reads go through a [`Reading`]: one snapshot and one `now` over as many collections as a request names. Writes are
//! functions ([`Engine::modify`](crate::Engine::modify)) that see the living item inside the store's transaction and say what
//! becomes of it, so that there is nothing to retry and no window in which it could die between the look and the write.
//!
//! Nothing here knows filters, updates or commands: those are the front end's, and come in as functions and documents.

mod build;
mod catalog;
mod check;
mod claims;
mod definition;
mod footprint;
mod index_changes;
mod indexes;
mod keys;
mod reading;
mod receipts;
mod reliance;
#[cfg(test)]
mod tests;
mod usage;
mod workspace;
mod write;

pub use build::BuildProgress;
pub use check::CollectionCheck;
pub(crate) use check::{Inventory, Twins};
pub(crate) use claims::Claims;
pub use claims::ReleaseWait;
pub use definition::{Collection, CollectionDefinition};
pub(crate) use indexes::index_names;
pub use indexes::{Build, CollectionIndex, IndexList, IndexState};
pub use reading::{Aside, Hit, Reading};
pub use receipts::{Receipt, Receipts};
pub(crate) use receipts::{ReceiptEntry, read_receipt};
pub use usage::IndexUsage;
pub use workspace::Workspace;
pub(crate) use write::Desk;
pub use write::{Decision, Inserted, Modified, Target, Verdict};

use bson::RawDocument;
use document::{ItemNumber, Sequence};

use crate::header::Record;

/// A living item. Only the gate makes one.
#[derive(Debug, Clone)]
pub struct Found {
    /// Its number: the order of creation.
    pub number: ItemNumber,
    /// The sequence of its last write: its version, and its place among all changes.
    pub sequence: Sequence,
    /// What the user stored.
    pub document: RawDocument,
}

/// A stored item of a collection.
pub(crate) type BsonRecord = Record<RawDocument>;

impl Found {
    /// Whether it was never changed since it was created.
    pub fn is_first_version(&self) -> bool {
        self.sequence.0 == self.number.0
    }
}

impl From<BsonRecord> for Found {
    fn from(record: BsonRecord) -> Found {
        Found { number: record.number, sequence: record.header.sequence, document: record.body }
    }
}

//! Collections: containers of BSON items, for the MongoDB API.
//!
//! A collection is a container with one physical partition, whose items are found by `_id`, by number in the order of their
//! creation, and through the indexes that users created. Header, queues, counters, feed, gate and purge are those of every
//! container; this folder has the differences: the entries that lead to an item, and how it is written.
//!
//! Reads go through a [`Reading`]: one snapshot and one `now` over as many collections as a request names. Writes are
//! functions ([`Engine::modify`](crate::Engine::modify)) that see the living item inside the store's transaction and decide how
//! to change it, so there is nothing to retry and no window in which it could expire between the read and the write.
//!
//! This folder has no filters, updates or commands: those belong to the front end, which passes functions and documents.

mod build;
mod catalog;
mod claims;
mod document_keys;
mod index_changes;
mod keys;
mod reading;
mod receipts;
mod reliance;
mod schema;
#[cfg(test)]
mod tests;
mod usage;
mod workspace;
mod write;

pub use crate::catalog::collection::{Collection, CollectionDefinition};
pub use crate::catalog::collection_indexes::{CollectionIndex, IndexList, IndexState};
pub use build::BuildProgress;
pub(crate) use claims::Claims;
pub use claims::ReleaseWait;
pub(crate) use document_keys::split_entry;
pub(crate) use keys::index as index_prefix;
pub use reading::{Aside, Hit, Reading};
pub use receipts::{Receipt, Receipts};
pub(crate) use receipts::{ReceiptEntry, read_receipt};
pub(crate) use schema::{CollectionContext, CollectionSchema};
pub use usage::IndexUsage;
pub use workspace::Workspace;
pub use write::{Decision, Inserted, Modified, Target, Verdict};

pub(crate) use crate::access::document::BsonRecord;
pub use crate::access::document::LivingDocument;
pub use crate::index::Build;

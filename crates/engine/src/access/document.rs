//! A living document of a collection, as callers see it.

use bson::RawDocument;
use document::{ItemNumber, Sequence};

use crate::expiry::header::Record;

/// A living document. Only the gate makes one.
#[derive(Debug, Clone)]
pub struct LivingDocument {
    /// Its number: the order of creation.
    pub number: ItemNumber,
    /// The sequence of its last write: its version, and its position among all changes.
    pub sequence: Sequence,
    /// What the user stored.
    pub document: RawDocument,
}

/// A stored item of a collection.
pub(crate) type BsonRecord = Record<RawDocument>;

impl LivingDocument {
    /// Returns whether it has not been changed since it was created.
    pub fn is_first_version(&self) -> bool {
        self.sequence.0 == self.number.0
    }
}

impl From<BsonRecord> for LivingDocument {
    fn from(record: BsonRecord) -> LivingDocument {
        LivingDocument { number: record.number, sequence: record.header.sequence, document: record.body }
    }
}

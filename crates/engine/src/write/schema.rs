//! What differs between writing the items of a container and the documents of a collection.
//!
//! | | container (`container_schema`) | collection (`collection/schema`) |
//! |---|---|---|
//! | body | JSON | BSON |
//! | id | `id`, unique within a partition key | `_id`, unique within the collection, equal under its collation |
//! | unique values | one entry of `Unique` for each unique key | entries of unique indexes, several for an array |
//! | index entries | generations of one path index, with shapes | the indexes that users made, which become multikey |
//! | dates by which an item expires | none | those of TTL indexes |
//!
//! Everything else is the same and written once, in [`context`](super::context).

use std::sync::Arc;

use document::ItemNumber;
use storage::Transaction;

use super::context::WriteContext;
use crate::catalog::container::Partition;
use crate::definition::OwnTtl;
use crate::entries::traces::Traces;
use crate::evidence::expiry_record::EvidenceSource;
use crate::expiry::Millis;
use crate::expiry::header::{Body, Record};
use crate::index::footprint::Footprint;
use crate::types::error::{Error, Result};

/// An owner of items with its indexes as one transaction or snapshot has them: everything that determines an item's entries.
pub(crate) trait ItemSchema: Sized {
    /// The form of the items.
    type Body: Body + Clone;

    /// The owner as evidence names it.
    type Source: EvidenceSource<Body = Self::Body>;

    /// The terms or keys extracted from a body for its index entries, so that this is not done twice, or inside a transaction.
    type Extracted: Default;

    /// Returns the physical partition of the items.
    fn partition(&self) -> &Arc<Partition>;

    /// Returns the owner as evidence names it.
    fn source(&self) -> &Self::Source;

    /// Returns the key of the entry that leads from a body's id to the item.
    fn id_key(&self, body: &Self::Body) -> Result<Vec<u8>>;

    /// Returns the item of a body, for messages.
    fn item_name(&self, body: &Self::Body) -> String;

    /// Returns the error about an id that a living item has.
    fn id_taken(&self, body: &Self::Body) -> Error;

    /// Returns whether a new version changes the id; fails if it must not.
    fn changes_id(&self, old: &Self::Body, new: &Self::Body) -> Result<bool>;

    /// Updates what was extracted from a new version to the current indexes; `old` is the version it replaces. Missing parts may be
    /// left to [`footprint`](ItemSchema::footprint).
    fn refresh(
        &self,
        extracted: Self::Extracted,
        _body: &Self::Body,
        _old: Option<&Record<Self::Body>>,
    ) -> Result<Self::Extracted> {
        Ok(extracted)
    }

    /// Extracts what the footprint of a stored version needs.
    fn extract_stored(&self, _record: &Record<Self::Body>) -> Self::Extracted {
        Self::Extracted::default()
    }

    /// Claims through the context every unique value that a new version has and the old one has not. Fails if a living item has
    /// one.
    fn claim_unique_values(
        &self,
        context: &WriteContext<Self>,
        tx: &mut Transaction<'_>,
        new: NewVersion<'_, Self>,
        old: Option<(ItemNumber, &Self::Extracted)>,
    ) -> Result<()>;

    /// Returns the date by which a rule makes an item expire.
    fn date(&self, _rule: u32, _body: &Self::Body) -> Option<Millis> {
        None
    }

    /// Returns all entries of a version, with these traces.
    fn footprint(
        &self,
        traces: Traces,
        record: &Record<Self::Body>,
        extracted: &mut Self::Extracted,
    ) -> Result<Footprint>;

    /// Notes how a written version changes the state of the indexes.
    fn note_written(&self, _record: &Record<Self::Body>, _extracted: &Self::Extracted) -> Result<()> {
        Ok(())
    }

    /// Stores the notes.
    fn store_notes(&self, _tx: &mut Transaction<'_>) {}

    /// Returns all entries of a stored version.
    fn stored_footprint(&self, record: &Record<Self::Body>) -> Result<Footprint> {
        let traces = Traces::new(self.partition().id, record);
        self.footprint(traces, record, &mut self.extract_stored(record))
    }

    /// Returns all entries of a stored version that will be removed.
    fn footprint_to_remove(&self, record: &Record<Self::Body>) -> Result<Footprint> {
        let traces = Traces::to_remove(self.partition().id, record);
        self.footprint(traces, record, &mut self.extract_stored(record))
    }
}

/// A body that may be stored: valid and within limits.
pub(crate) struct Draft<S: ItemSchema> {
    pub(crate) body: S::Body,
    pub(crate) ttl: OwnTtl,
    pub(crate) extracted: S::Extracted,
}

/// A version that will be written, and what was extracted from it.
pub(crate) type NewVersion<'a, S> = (&'a <S as ItemSchema>::Body, &'a <S as ItemSchema>::Extracted);

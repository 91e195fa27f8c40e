//! The path index: finds the items of a partition by the values at their paths.
//!
//! An index holds what the container's indexing policy asks for ([`policy`]): an entry for every scalar of an item
//! under its path, an entry in every composite index, and the item's shape ([`terms`], [`shape`]). Every entry
//! carries a bound of the item's queue positions, so that mostly the entry alone shows whether its item is living
//! ([`entry`]). The index is maintained in the commit of every write ([`maintained`]), and rebuilt in the background as a
//! new *generation* when the policy changes ([`state`], [`build`]). Queries find their ranges of keys in [`scan`].
//!
//! The index does not provide an order of arrays and objects, the difference between `1` and `1.0`, or the end of a
//! long string. Where it has less information than the item, the entry says so. Decision 0006 has the reasons.

pub(crate) mod build;
mod entry;
pub(crate) mod footprint;
mod index_footprint;
mod maintained;
mod path;
mod policy;
mod scan;
mod shape;
mod state;
mod term;
mod terms;
#[cfg(test)]
mod tests;

use storage::Read;

use crate::keys::{self, Generation, PartitionId};
use crate::types::error::Result;

pub use build::Build;
pub(crate) use entry::IndexEntry;
pub(crate) use index_footprint::IndexFootprint;
pub(crate) use maintained::{ExtractedTerms, MaintainedIndexes};
pub(crate) use path::PathKey;
pub(crate) use policy::{Composite, CompositePart, Source};
pub(crate) use scan::{Index, PartValue};
pub(crate) use shape::{ExpectedShape, Kind, ShapeHash, decode_count};
pub(crate) use state::{Building, IndexState, Indexes, follow, forget};
pub(crate) use term::{Term, kept_of_text};

/// Returns the prefix of the entries of all shapes of a generation; the shape and the item's number follow.
pub(crate) fn shapes_prefix(partition: PartitionId, generation: Generation) -> Vec<u8> {
    [&keys::index_generation(partition, generation)[..], &[terms::SHAPE]].concat()
}

/// Returns the generation that queries may use at a snapshot, or `None` if no generation is complete.
pub(crate) fn serving(reader: &dyn Read, partition: PartitionId, known: &Indexes) -> Result<Option<Index>> {
    let Some(state) = IndexState::load(reader, partition)? else { return Ok(None) };
    let indexes = Indexes::complete(reader, partition, state, known)?;
    Ok(indexes.serving().map(|(generation, coverage)| Index {
        partition,
        generation,
        coverage: coverage.clone(),
    }))
}

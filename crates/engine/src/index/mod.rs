//! The path index: where in a partition the items lie that have a value at a path.
//!
//! An index holds what the container's indexing policy asks for ([`policy`]): an entry for every scalar of an item under its
//! path, its place in every composite index, and its shape ([`terms`], [`shape`]). Every entry carries a bound of the item's
//! place in the queues of expiry, so that mostly the entry alone tells whether its item lives ([`entry`]). It is kept in the
//! commit of every write ([`upkeep`]), and rebuilt in the background as a new *generation* when the policy changes
//! ([`state`], [`build`]). Queries find their ranges of keys in [`scan`].
//!
//! What an index does not promise: an order of arrays and objects, the difference between `1` and `1.0`, the end of a long
//! string. Where it tells less than the item, the entry says so. Decision 0006 tells why things are as they are.

mod build;
mod entry;
mod path;
mod policy;
mod scan;
mod shape;
mod state;
mod term;
mod terms;
#[cfg(test)]
mod tests;
mod upkeep;

use storage::Read;

use crate::container::Partition;
use crate::error::Result;
use crate::keys::{self, Generation, PartitionId};
use state::IndexState;

pub use build::IndexReport;
pub(crate) use build::IndexTurn;
pub(crate) use entry::{IndexEntry, Mark};
pub(crate) use path::PathKey;
pub(crate) use policy::{Composite, CompositePart, Source};
pub(crate) use scan::{Index, PartValue};
pub(crate) use shape::{Kind, ShapeHash, decode_count};
pub(crate) use state::{Indexes, follow, forget};
pub(crate) use term::{Term, kept_of_text};
pub(crate) use upkeep::{Drafted, IndexFootprint, Upkeep, keys_apart};

/// What the entries of all shapes of a generation begin with; the shape and the item's number follow.
pub(crate) fn shapes_prefix(partition: PartitionId, generation: Generation) -> Vec<u8> {
    [&keys::index_generation(partition, generation)[..], &[terms::SHAPE]].concat()
}

/// The generation that queries may use at a snapshot; none if there is none that is whole.
pub(crate) fn serving(reader: &dyn Read, partition: &Partition) -> Result<Option<Index>> {
    let Some(state) = IndexState::load(reader, partition.id)? else { return Ok(None) };
    let indexes = Indexes::complete(reader, partition.id, state, &partition.indexes())?;
    Ok(indexes.serving().map(|(generation, coverage)| Index {
        partition: partition.id,
        generation,
        coverage: coverage.clone(),
    }))
}

//! The sizes of a collection's indexes.
//!
//! There is no counter for them: one more entry for each index with every write would cost more than the figures are worth. They
//! are computed from living items, so that they do not reveal whether the purge has run: exactly for a small collection, and as
//! an estimate from the oldest and the newest items for a large one.

use mql::Context;
use storage::Direction;

use super::{Collection, LivingDocument, Reading};
use crate::catalog::collection_indexes::{CollectionIndex, ID_INDEX};
use crate::types::error::Result;
use crate::types::limits::INDEX_USAGE_ITEMS;

/// The most bytes that are read for the figures.
const BYTES_MAX: usize = 16 * 1024 * 1024;
/// The bytes of an entry besides its key: the index, the item, and a mark.
const ENTRY_BYTES: u64 = 4 + 8 + 9;

/// The size of an index, by living items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexUsage {
    /// The number of the index.
    pub number: u32,
    /// Entries.
    pub entries: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Reading<'_> {
    /// Returns how much each index holds, in the order of [`indexes`](Reading::indexes).
    pub fn index_usage(&self, collection: &Collection) -> Result<Vec<IndexUsage>> {
        let living = self.usage(collection)?.living.items;
        let sample = self.sample(collection, living)?;
        let list = self.indexes(collection)?;
        list.iter().map(|index| usage(collection, index, &sample, living)).collect()
    }

    /// Returns all items if they are few, otherwise the oldest and the newest.
    fn sample(&self, collection: &Collection, living: u64) -> Result<Vec<LivingDocument>> {
        let walk = |direction, items, bytes| self.natural(collection, None, direction, items, bytes);
        if living <= INDEX_USAGE_ITEMS as u64 {
            let all = walk(Direction::Forward, INDEX_USAGE_ITEMS, BYTES_MAX)?;
            if all.len() as u64 == living {
                return Ok(all);
            }
        }
        let mut sample = walk(Direction::Forward, INDEX_USAGE_ITEMS / 2, BYTES_MAX / 2)?;
        sample.extend(walk(Direction::Backward, INDEX_USAGE_ITEMS / 2, BYTES_MAX / 2)?);
        Ok(sample)
    }
}

fn usage(
    collection: &Collection,
    index: &CollectionIndex,
    sample: &[LivingDocument],
    living: u64,
) -> Result<IndexUsage> {
    let context = Context::at(0);
    let (mut entries, mut bytes) = (0, 0);
    for found in sample {
        if index.number == ID_INDEX {
            let id = found.document.get("_id").unwrap_or(bson::ValueRef::Null);
            let key = collection.id_key(id);
            entries += 1;
            bytes += key.len() as u64 + ENTRY_BYTES;
        } else if index.has(found.number) {
            let keys = index.spec.keys(found.document.view(), &context)?.unwrap_or_default();
            entries += keys.len() as u64;
            bytes += keys.iter().map(|key| key.len() as u64 + ENTRY_BYTES).sum::<u64>();
        }
    }
    let of_all = |of_sample: u64| {
        let sampled = (sample.len() as u128).max(1);
        u64::try_from(u128::from(of_sample) * u128::from(living) / sampled).unwrap_or(u64::MAX)
    };
    Ok(IndexUsage { number: index.number, entries: of_all(entries), bytes: of_all(bytes) })
}

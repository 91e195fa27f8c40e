//! How often each index was used, for `$indexStats`: since the process began, of commands that read or looked for something to
//! change.

use std::collections::HashMap;

use engine::collection::Collection;
use parking_lot::Mutex;

/// The number of indexes whose uses are counted; further indexes are not.
const INDEXES_MAX: usize = 100_000;

/// The uses of all indexes, by the `uuid` of the collection and the number of the index.
#[derive(Debug, Default)]
pub(crate) struct IndexUses {
    counts: Mutex<HashMap<([u8; 16], u32), u64>>,
}

impl IndexUses {
    /// Counts a use.
    pub(crate) fn note(&self, collection: &Collection, index: u32) {
        let mut counts = self.counts.lock();
        let full = counts.len() >= INDEXES_MAX;
        let key = (collection.definition.uuid, index);
        match counts.get_mut(&key) {
            Some(count) => *count += 1,
            None if full => {}
            None => {
                counts.insert(key, 1);
            }
        }
    }

    /// Counts a use of the index on `_id`.
    pub(crate) fn note_id(&self, collection: &Collection) {
        if let Some(index) = collection.indexes().iter().find(|index| index.spec.is_id()) {
            self.note(collection, index.number);
        }
    }

    /// Returns how often an index was used.
    pub(crate) fn of(&self, collection: &Collection, index: u32) -> u64 {
        self.counts.lock().get(&(collection.definition.uuid, index)).copied().unwrap_or(0)
    }
}

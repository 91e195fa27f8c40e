//! Every entry that an item has in the store, in one place, for containers and collections alike.
//!
//! Insert puts the whole footprint, delete and purge remove it, replace writes the difference of two. So every entry that is
//! written will be removed: a new kind of entry is added here and nowhere else, and the integrity check compares the store with
//! exactly this list. The owner's `ItemSchema` (`write`) makes footprints.

use storage::Transaction;

use super::index_footprint::IndexFootprint;
use crate::entries::expected::ExpectedEntry;
use crate::entries::traces::Traces;
use crate::types::error::Result;

/// All entries of one version of an item.
#[derive(Debug)]
pub(crate) struct Footprint {
    /// Its entries outside of the index.
    pub(crate) traces: Traces,
    /// Its entries in the index.
    pub(crate) index: IndexFootprint,
}

impl Footprint {
    /// Returns how many entries there are.
    pub(crate) fn entries(&self) -> usize {
        self.traces.entries() + self.index.entries()
    }

    /// Returns every entry as the store may have it, for the integrity check.
    pub(crate) fn expected(&self) -> Vec<ExpectedEntry> {
        self.traces.expected().chain(self.index.expected()).collect()
    }

    /// Writes a new item.
    pub(crate) fn insert(self, tx: &mut Transaction<'_>) -> Result<()> {
        self.traces.insert(tx)?;
        self.index.insert(tx)
    }

    /// Replaces the entries of `old` by those of `self` and leaves shared ones alone.
    pub(crate) fn replace(self, old: Footprint, tx: &mut Transaction<'_>) -> Result<()> {
        self.traces.replace(&old.traces, tx)?;
        self.index.replace(old.index, tx)
    }

    /// Removes every entry.
    pub(crate) fn remove(self, tx: &mut Transaction<'_>) -> Result<()> {
        self.remove_named(tx, false)
    }

    /// Removes every entry if the item's id still leads to it. Otherwise changes nothing and returns false.
    pub(crate) fn remove_if_named(self, tx: &mut Transaction<'_>) -> Result<bool> {
        let is_named = self.traces.is_named(tx)?;
        if is_named {
            self.remove_named(tx, true)?;
        }
        Ok(is_named)
    }

    fn remove_named(self, tx: &mut Transaction<'_>, is_named: bool) -> Result<()> {
        self.traces.remove_named(tx, is_named)?;
        self.index.remove(tx)
    }
}

//! Builds an index over stored items, and removes the entries of a dropped one, in bounded pieces of one transaction each. It
//! serves the generations of a container's index and the indexes of a collection.

use document::ItemNumber;
use storage::{Direction, KeyRange, Keyspace, Read, Transaction};

use crate::expiry::header::{Body, Record};
use crate::keys::{self, Key, PartitionId};
use crate::types::error::Result;
use crate::types::limits::{INDEX_BUILD_BYTES, INDEX_BUILD_ENTRIES};

/// The progress of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Build {
    /// Items up to this number are in the index,
    pub(crate) through: ItemNumber,
    /// and items behind this one, because they were created since.
    pub(crate) until: ItemNumber,
    /// Items added so far,
    pub built: u64,
    /// of this many.
    pub total: u64,
}

/// Returns the build to continue, or `None` if entries are to be cleared away instead: work that frees space does not wait for
/// work that needs it.
pub(crate) fn build_now<B, C>(tx: &Transaction<'_>, building: Option<B>, clearing: &[C]) -> Option<B> {
    building.filter(|_| tx.require_free_space().is_ok() || clearing.is_empty())
}

/// The result of one piece of a build.
pub(crate) struct BuiltPiece {
    pub(crate) build: Build,
    /// Items added.
    pub(crate) items: usize,
    /// Entries that they have in the index.
    pub(crate) entries: usize,
    /// Whether there is no further item to add.
    pub(crate) is_last: bool,
}

impl Build {
    /// Creates a build over the existing items, whose numbers are up to `until`.
    pub(crate) fn begin(until: ItemNumber, total: u64) -> Build {
        Build { through: ItemNumber(0), until, built: 0, total }
    }

    /// Returns whether an item's entries are in the index.
    pub(crate) fn has(&self, number: ItemNumber) -> bool {
        number <= self.through || number > self.until
    }

    /// Returns whether every item has been visited.
    pub(crate) fn is_whole(&self) -> bool {
        self.through >= self.until
    }

    /// Adds the next items, in the order of their numbers: at most `limit`, and not much more than a transaction should
    /// read or write. `bring_in` returns how many entries an item has in the index.
    ///
    /// Expired items that are not purged are added too: the purge removes an item's whole footprint and need not know how
    /// far a build has come.
    pub(crate) fn piece<B: Body>(
        mut self,
        tx: &mut Transaction<'_>,
        partition: PartitionId,
        limit: usize,
        mut bring_in: impl FnMut(&mut Transaction<'_>, &Record<B>) -> Result<usize>,
    ) -> Result<BuiltPiece> {
        let (records, reaches_end) = self.next_records(tx, partition, limit)?;
        let (count, mut items, mut entries) = (records.len(), 0, 0);
        for record in records {
            if entries >= INDEX_BUILD_ENTRIES {
                break;
            }
            entries += bring_in(tx, &record)?;
            items += 1;
            self.through = record.number;
            self.built += 1;
        }
        Ok(BuiltPiece { build: self, items, entries, is_last: reaches_end && items == count })
    }

    /// Returns the next items, and whether they are the last.
    fn next_records<B: Body>(
        &self,
        tx: &Transaction<'_>,
        partition: PartitionId,
        limit: usize,
    ) -> Result<(Vec<Record<B>>, bool)> {
        let bound = |number| Key::Item(partition, number).encode().1;
        let range = KeyRange::prefix(keys::partition(partition));
        let range = if self.through.0 == 0 { range } else { range.after(bound(self.through)) };
        let range = range.before([bound(self.until), vec![0]].concat());
        let (mut records, mut bytes) = (Vec::new(), 0);
        for entry in tx.scan(Keyspace::Item, range, Direction::Forward).take(limit) {
            let (key, value) = entry?;
            bytes += value.len();
            records.push(Record::decode(keys::item_number(&key)?, &value)?);
            if bytes > INDEX_BUILD_BYTES {
                return Ok((records, false));
            }
        }
        let reaches_end = records.len() < limit;
        Ok((records, reaches_end))
    }
}

/// Removes up to `room` entries under a prefix, after the key `cleared` if that is not empty, and moves `cleared` to the last
/// one removed. Returns how many were removed.
pub(crate) fn clear_piece(
    tx: &mut Transaction<'_>,
    keyspace: Keyspace,
    prefix: Vec<u8>,
    cleared: &mut Vec<u8>,
    room: usize,
) -> Result<usize> {
    let range = KeyRange::prefix(prefix);
    let range = if cleared.is_empty() { range } else { range.after(cleared.clone()) };
    let scan = tx.scan(keyspace, range, Direction::Forward).take(room);
    let keys = scan.map(|entry| Ok(entry?.0)).collect::<Result<Vec<_>>>()?;
    for key in &keys {
        tx.remove(keyspace, key.to_vec());
    }
    if let Some(last) = keys.last() {
        *cleared = last.to_vec();
    }
    Ok(keys.len())
}

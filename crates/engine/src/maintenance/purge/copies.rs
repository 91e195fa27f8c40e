//! Copies of items in files outside of the store: rows that a sort of the MongoDB front end moved to scratch files.
//!
//! An idle cursor holds no snapshot, so a scrub does not wait for it, but its files still hold items that the scrub
//! removes from the store. A file that was written from a snapshot at `as_of` holds no item that had expired then, so its
//! bytes break the promise of [`maxPurgeDelay`](crate::Lifecycle::max_purge_delay) at `as_of` plus that bound at the
//! earliest. The engine therefore has every copy removed when three quarters of the smallest bound among its sources
//! have passed (T24).

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use storage::Time;

use super::retention::bound_ms;
use crate::Engine;
use crate::catalog::collection::Collection;
use crate::catalog::container::Partition;
use crate::keys::PartitionId;

/// Removes the files of a copy.
type Remove = Arc<dyn Fn() + Send + Sync>;

/// A copy that is registered with the engine. The owner drops this value when the copy has been removed.
pub struct DiskCopy {
    copies: Arc<Copies>,
    number: u64,
}

/// All registered copies.
#[derive(Default)]
pub(super) struct Copies(Mutex<Known>);

#[derive(Default)]
struct Known {
    last_number: u64,
    by_number: BTreeMap<u64, Copy>,
}

struct Copy {
    /// The partitions that it was read from, whose promises hold for it as well.
    partitions: Vec<Arc<Partition>>,
    as_of: Time,
    remove: Remove,
}

/// The result of removing the copies that were due.
#[derive(Debug, Default)]
pub(super) struct RemovedCopies {
    /// Partitions whose bound had already passed since a copy was read, and when it was read.
    pub(super) late: Vec<(PartitionId, Time)>,
    /// When the next copy is due.
    pub(super) next_due: Option<Time>,
}

impl Engine {
    /// Registers that items of these collections, read at `as_of`, are copied to a file. `remove` is called when the
    /// copy has to be removed because of a promise about its bytes; it must not call the engine.
    pub fn note_copy(
        &self,
        collections: &[Arc<Collection>],
        as_of: Time,
        remove: impl Fn() + Send + Sync + 'static,
    ) -> DiskCopy {
        let partitions = collections.iter().map(|collection| Arc::clone(&collection.partition)).collect();
        let copy = Copy { partitions, as_of, remove: Arc::new(remove) };
        let is_promised = copy.due().is_some();
        let number = self.purge.copies.add(copy);
        if is_promised {
            // The retention loop may sleep past its due time.
            self.alarm.ring();
        }
        DiskCopy { copies: Arc::clone(&self.purge.copies), number }
    }
}

impl Copies {
    fn add(&self, copy: Copy) -> u64 {
        let mut known = self.0.lock();
        known.last_number += 1;
        let number = known.last_number;
        known.by_number.insert(number, copy);
        number
    }

    /// Removes the copies that are due at `now`. Promises may have been made and changed since the copies were
    /// registered.
    pub(super) fn remove_due(&self, now: Time) -> RemovedCopies {
        let mut removed = RemovedCopies::default();
        let mut due = Vec::new();
        self.0.lock().by_number.retain(|_, copy| {
            let Some(at) = copy.due() else { return true };
            if at > now {
                removed.next_due = removed.next_due.into_iter().chain([at]).min();
                return true;
            }
            removed.late.extend(copy.late(now).map(|partition| (partition, copy.as_of)));
            due.push(Arc::clone(&copy.remove));
            false
        });
        // Not under the lock: closing a large file takes a while.
        for remove in due {
            remove();
        }
        removed
    }
}

impl Copy {
    /// Returns when it has to be removed, or `None` as long as no promise holds for its sources.
    fn due(&self) -> Option<Time> {
        let bound = self.partitions.iter().filter_map(|partition| bound_ms(partition)).min()?;
        Some(self.as_of.plus_millis(bound / 4 * 3))
    }

    /// Returns the partitions whose bound has passed since it was read.
    fn late(&self, now: Time) -> impl Iterator<Item = PartitionId> {
        let has_passed = move |bound| self.as_of.plus_millis(bound) <= now;
        let late =
            self.partitions.iter().filter(move |partition| bound_ms(partition).is_some_and(has_passed));
        late.map(|partition| partition.id)
    }
}

impl Drop for DiskCopy {
    fn drop(&mut self) {
        let gone = self.copies.0.lock().by_number.remove(&self.number);
        drop(gone);
    }
}

impl std::fmt::Debug for Copies {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Copies").field("count", &self.0.lock().by_number.len()).finish()
    }
}

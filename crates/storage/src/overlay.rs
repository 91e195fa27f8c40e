//! The writes of a group that are not committed yet, laid over the state they will be committed onto.
//!
//! A job writes straight into the group's overlay, so that a reader merges only two layers. Each entry records the job
//! that wrote it last, and a job keeps the earlier jobs' entries that it overwrites, so that a failed job leaves no
//! trace. Undoing scans the whole overlay; failures after a write are rare, and a log of every key would cost every
//! successful write an allocation. The alternative, a third layer per job that is copied down when the job succeeds,
//! costs every scan and every successful write something.

use crate::{Direction, KeyRange, Keyspace, Read, Result, Scan};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::iter::Peekable;

/// The new value of an entry; `None` removes it.
pub(crate) type Change = Option<Bytes>;

/// Uncommitted writes of all keyspaces.
#[derive(Debug, Default)]
pub(crate) struct Overlay {
    maps: [BTreeMap<Bytes, Written>; Keyspace::ALL.len()],
    bytes: usize,
    jobs: u64,
}

/// The new value of an entry, and the job that wrote it.
#[derive(Debug, Clone)]
struct Written {
    change: Change,
    job: u64,
}

/// How to undo the writes of one job, or of a part of it.
#[derive(Debug)]
pub(crate) struct Undo {
    job: u64,
    /// Whether it wrote keys that no earlier job had written.
    wrote_new: bool,
    /// The earlier jobs' entries that it overwrote.
    overwritten: Vec<(Keyspace, Bytes, Written)>,
}

impl Overlay {
    /// Begins another job, or a part of the running one.
    pub(crate) fn begin(&mut self) -> Undo {
        self.jobs += 1;
        Undo { job: self.jobs, wrote_new: false, overwritten: Vec::new() }
    }

    pub(crate) fn get(&self, keyspace: Keyspace, key: &[u8]) -> Option<&Change> {
        self.maps[keyspace.number()].get(key).map(|written| &written.change)
    }

    pub(crate) fn set(&mut self, keyspace: Keyspace, key: Bytes, change: Change, undo: &mut Undo) {
        self.bytes += key.len() + change.as_ref().map_or(0, Bytes::len);
        let written = Written { change, job: undo.job };
        match self.maps[keyspace.number()].entry(key) {
            Entry::Vacant(place) => {
                undo.wrote_new = true;
                place.insert(written);
            }
            Entry::Occupied(mut place) => {
                let before = place.insert(written);
                // Larger numbers belong to parts of this job that have succeeded.
                if before.job < undo.job {
                    undo.overwritten.push((keyspace, place.key().clone(), before));
                }
            }
        }
    }

    /// Undoes everything that the job or part of `undo` wrote, which must be the last that began. The byte count stays:
    /// it only bounds the group.
    pub(crate) fn take_back(&mut self, undo: Undo) {
        for (keyspace, key, before) in undo.overwritten {
            self.maps[keyspace.number()].insert(key, before);
        }
        if undo.wrote_new {
            for map in &mut self.maps {
                map.retain(|_, written| written.job < undo.job);
            }
        }
    }

    /// Merges the writes of a part into those of its job.
    pub(crate) fn merge(part: Undo, job: &mut Undo) {
        job.wrote_new |= part.wrote_new;
        let of_others = |(_, _, before): &(Keyspace, Bytes, Written)| before.job < job.job;
        job.overwritten.extend(part.overwritten.into_iter().filter(of_others));
    }

    /// Returns the bytes written so far, overwritten ones included.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.maps.iter().all(BTreeMap::is_empty)
    }

    pub(crate) fn into_changes(self) -> impl Iterator<Item = (Keyspace, Bytes, Change)> {
        Keyspace::ALL.into_iter().zip(self.maps).flat_map(|(keyspace, map)| {
            map.into_iter().map(move |(key, written)| (keyspace, key, written.change))
        })
    }

    /// Returns the changes with keys and small values of a keyspace in one allocation. A memtable that keeps them is
    /// built and freed in fewer pieces, which is a good part of the cost of a small entry.
    pub(crate) fn into_packed_changes(self) -> impl Iterator<Item = (Keyspace, Bytes, Change)> {
        Keyspace::ALL.into_iter().zip(self.maps).flat_map(|(keyspace, map)| {
            let mut pack = Pack::of(&map);
            map.into_iter().map(move |(key, written)| {
                let key = pack.take(&key);
                let change = written.change.map(|value| pack.take_small(value));
                (keyspace, key, change)
            })
        })
    }

    /// Leaves out the removals of a keyspace for which `leave_out` returns true.
    pub(crate) fn retain_removals(&mut self, keyspace: Keyspace, mut leave_out: impl FnMut(&[u8]) -> bool) {
        self.maps[keyspace.number()].retain(|key, written| written.change.is_some() || !leave_out(key));
    }

    /// Returns the new values of a range of a keyspace.
    pub(crate) fn puts(
        &self,
        keyspace: Keyspace,
        range: &KeyRange,
    ) -> impl Iterator<Item = (&Bytes, &Bytes)> {
        let written = self.maps[keyspace.number()].range::<[u8], _>(range.bounds());
        written.filter_map(|(key, written)| Some((key, written.change.as_ref()?)))
    }

    /// Returns the number of entries.
    pub(crate) fn len(&self) -> usize {
        self.maps.iter().map(BTreeMap::len).sum()
    }

    /// Returns the entries of `base` as they will be once this overlay is committed.
    pub(crate) fn scan<'a>(
        &'a self,
        base: &'a dyn Read,
        keyspace: Keyspace,
        range: KeyRange,
        direction: Direction,
    ) -> Scan<'a> {
        if range.is_empty() {
            return Box::new(std::iter::empty());
        }
        let map = &self.maps[keyspace.number()];
        if map.is_empty() {
            return base.scan(keyspace, range, direction);
        }
        let changes = map.range::<[u8], _>(range.bounds()).map(|(key, written)| (key, &written.change));
        let changes: Box<dyn Iterator<Item = (&Bytes, &Change)>> = match direction {
            Direction::Forward => Box::new(changes),
            Direction::Backward => Box::new(changes.rev()),
        };
        let base = base.scan(keyspace, range, direction);
        Box::new(Merge { changes: changes.peekable(), base: base.peekable(), direction })
    }
}

/// The largest value that is packed; larger ones keep their own allocation.
const SMALL_VALUE_BYTES: usize = 1024;

/// Keys and small values in one allocation, taken out in the same order.
struct Pack(Bytes);

impl Pack {
    fn of(map: &BTreeMap<Bytes, Written>) -> Pack {
        let parts = || {
            map.iter().flat_map(|(key, written)| {
                let value = written.change.as_ref().filter(|value| is_small(value));
                std::iter::once(key).chain(value)
            })
        };
        let mut bytes = Vec::with_capacity(parts().map(Bytes::len).sum());
        parts().for_each(|part| bytes.extend_from_slice(part));
        Pack(bytes.into())
    }

    /// Returns the packed copy of `next`.
    fn take(&mut self, next: &Bytes) -> Bytes {
        let taken = self.0.split_to(next.len());
        debug_assert_eq!(taken, next, "entries are taken in the order in which they were packed");
        taken
    }

    fn take_small(&mut self, next: Bytes) -> Bytes {
        if is_small(&next) { self.take(&next) } else { next }
    }
}

fn is_small(value: &Bytes) -> bool {
    value.len() <= SMALL_VALUE_BYTES
}

/// Merges two scans in the same direction; the overlay's entries take precedence.
struct Merge<'a> {
    changes: Peekable<Box<dyn Iterator<Item = (&'a Bytes, &'a Change)> + 'a>>,
    base: Peekable<Scan<'a>>,
    direction: Direction,
}

impl Merge<'_> {
    /// Returns whether the base's next entry comes strictly before the overlay's, and whether both have the same key.
    fn base_is_next(&mut self) -> (bool, bool) {
        let Some(base) = self.base.peek() else { return (false, false) };
        let Ok((base_key, _)) = base else { return (true, false) };
        let Some((key, _)) = self.changes.peek() else { return (true, false) };
        let base_is_before = match self.direction {
            Direction::Forward => base_key < *key,
            Direction::Backward => base_key > *key,
        };
        (base_is_before, base_key == *key)
    }
}

impl Iterator for Merge<'_> {
    type Item = Result<(Bytes, Bytes)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (base_is_before, same_key) = self.base_is_next();
            if base_is_before {
                return self.base.next();
            }
            if same_key {
                self.base.next();
            }
            let (key, change) = self.changes.next()?;
            if let Some(value) = change {
                return Some(Ok((key.clone(), value.clone())));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Change, Overlay, SMALL_VALUE_BYTES};
    use crate::Keyspace;
    use bytes::Bytes;

    #[test]
    fn packed_changes_are_the_same_changes() {
        let fill = || {
            let (mut overlay, large) = (Overlay::default(), vec![7; SMALL_VALUE_BYTES + 1]);
            let mut undo = overlay.begin();
            let values: [Change; 5] =
                [None, Some(Bytes::new()), Some("v".into()), Some(large.into()), Some(vec![8; 100].into())];
            for keyspace in [Keyspace::Item, Keyspace::Queue] {
                for (number, value) in values.iter().enumerate() {
                    overlay.set(keyspace, vec![number as u8; 3].into(), value.clone(), &mut undo);
                }
            }
            overlay
        };
        assert_eq!(fill().len(), 10);
        assert!(fill().into_packed_changes().eq(fill().into_changes()));
        assert_eq!(fill().into_packed_changes().count(), 10);
    }
}

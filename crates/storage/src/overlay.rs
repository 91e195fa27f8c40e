//! The writes of a group that are not committed yet, laid over the state they will be committed onto.
//!
//! A job writes straight into the group's overlay and keeps an undo log, so that a reader needs to merge
//! two layers only and a job that fails leaves no trace. The alternative, a third layer per job that is
//! copied down when the job succeeds, costs every scan and every successful write something; failures are rare.

use crate::{Direction, KeyRange, Keyspace, Read, Result, Scan};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::iter::Peekable;

/// What an entry will be: a value, or gone.
pub(crate) type Change = Option<Bytes>;

/// Uncommitted writes of all keyspaces.
#[derive(Debug, Default)]
pub(crate) struct Overlay {
    maps: [BTreeMap<Bytes, Change>; Keyspace::ALL.len()],
    bytes: usize,
}

/// How to take back what one job wrote, newest last.
#[derive(Debug, Default)]
pub(crate) struct Undo(Vec<(Keyspace, Bytes, Option<Change>)>);

impl Overlay {
    pub(crate) fn get(&self, keyspace: Keyspace, key: &[u8]) -> Option<&Change> {
        self.maps[keyspace.number()].get(key)
    }

    pub(crate) fn set(&mut self, keyspace: Keyspace, key: Bytes, change: Change, undo: &mut Undo) {
        self.bytes += key.len() + change.as_ref().map_or(0, Bytes::len);
        let before = self.maps[keyspace.number()].insert(key.clone(), change);
        undo.0.push((keyspace, key, before));
    }

    /// Takes back everything in `undo`. The byte count stays: it only bounds the group.
    pub(crate) fn take_back(&mut self, undo: Undo) {
        for (keyspace, key, before) in undo.0.into_iter().rev() {
            let map = &mut self.maps[keyspace.number()];
            match before {
                Some(change) => map.insert(key, change),
                None => map.remove(&key),
            };
        }
    }

    /// Bytes written so far, overwritten ones included.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.maps.iter().all(BTreeMap::is_empty)
    }

    pub(crate) fn into_changes(self) -> impl Iterator<Item = (Keyspace, Bytes, Change)> {
        Keyspace::ALL
            .into_iter()
            .zip(self.maps)
            .flat_map(|(keyspace, map)| map.into_iter().map(move |(key, change)| (keyspace, key, change)))
    }

    /// The entries of `base` as they will be once this overlay is committed.
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
        let changes = map.range::<[u8], _>(range.bounds());
        let changes: Box<dyn Iterator<Item = (&Bytes, &Change)>> = match direction {
            Direction::Forward => Box::new(changes),
            Direction::Backward => Box::new(changes.rev()),
        };
        let base = base.scan(keyspace, range, direction);
        Box::new(Merge { changes: changes.peekable(), base: base.peekable(), direction })
    }
}

/// Two walks in the same direction as one; the overlay's word counts.
struct Merge<'a> {
    changes: Peekable<Box<dyn Iterator<Item = (&'a Bytes, &'a Change)> + 'a>>,
    base: Peekable<Scan<'a>>,
    direction: Direction,
}

impl Merge<'_> {
    /// Whether the base's next entry comes strictly before the overlay's, and whether both are the same key.
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

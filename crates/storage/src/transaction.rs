//! What a job sees while it runs: the current state, its own writes, one time and the next sequences.

use crate::overlay::{Overlay, Undo};
use crate::{Direction, Error, KeyRange, Keyspace, Read, Result, Scan, Time};
use bytes::Bytes;

/// A running transaction. Its reads include its own writes and those of the jobs before it.
pub struct Transaction<'a> {
    base: &'a dyn Read,
    overlay: &'a mut Overlay,
    undo: Undo,
    moment: Moment,
    sequence: u64,
}

/// The clock as one job sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) now: Time,
    pub(crate) trusted: Time,
    pub(crate) suspect: bool,
}

impl<'a> Transaction<'a> {
    pub(crate) fn new(base: &'a dyn Read, overlay: &'a mut Overlay, moment: Moment, sequence: u64) -> Self {
        Self { base, overlay, undo: Undo::default(), moment, sequence }
    }

    /// The store's time, the same during the whole job and not before any time shown earlier.
    pub fn time(&self) -> Time {
        self.moment.now
    }

    /// The time by which data may be destroyed: [`time`](Self::time), unless the clock is suspect (T34).
    pub fn trusted_time(&self) -> Time {
        self.moment.trusted
    }

    /// Whether the clock is suspect: nothing may be destroyed until an operator has decided (T34).
    pub fn clock_is_suspect(&self) -> bool {
        self.moment.suspect
    }

    /// Takes the next sequence. It is kept only if the job commits.
    pub fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// The last sequence taken, by this job or before it.
    pub fn last_sequence(&self) -> u64 {
        self.sequence
    }

    /// Stores `value` under `key`.
    pub fn put(&mut self, keyspace: Keyspace, key: impl Into<Vec<u8>>, value: impl Into<Bytes>) {
        self.overlay.set(keyspace, Bytes::from(key.into()), Some(value.into()), &mut self.undo);
    }

    /// Removes `key`; nothing happens if it is not there.
    pub fn remove(&mut self, keyspace: Keyspace, key: impl Into<Vec<u8>>) {
        self.overlay.set(keyspace, Bytes::from(key.into()), None, &mut self.undo);
    }

    /// Makes sure that `key` still has the value that was read from a snapshot before.
    pub fn expect(&self, keyspace: Keyspace, key: &[u8], expected: Option<&[u8]>) -> Result<()> {
        if self.get(keyspace, key)?.as_deref() == expected {
            Ok(())
        } else {
            Err(Error::Conflict { keyspace: keyspace.name() })
        }
    }

    /// Keeps the writes and says which sequence was the last.
    pub(crate) fn keep(self) -> u64 {
        self.sequence
    }

    /// Takes the writes back.
    pub(crate) fn drop_writes(self) {
        self.overlay.take_back(self.undo);
    }
}

impl Read for Transaction<'_> {
    fn get(&self, keyspace: Keyspace, key: &[u8]) -> Result<Option<Bytes>> {
        match self.overlay.get(keyspace, key) {
            Some(change) => Ok(change.clone()),
            None => self.base.get(keyspace, key),
        }
    }

    fn scan(&self, keyspace: Keyspace, range: KeyRange, direction: Direction) -> Scan<'_> {
        self.overlay.scan(self.base, keyspace, range, direction)
    }
}

//! A transaction: a job's view of the current state, its own writes, one time and the next sequences.

use crate::clock::Moment;
use crate::overlay::{Change, Overlay, Undo};
use crate::{Direction, Error, FreeSpace, KeyRange, Keyspace, Read, Result, Scan, Time, watermark};
use bytes::Bytes;

/// A running transaction. Its reads include its own writes and those of the jobs before it.
pub struct Transaction<'a> {
    base: &'a dyn Read,
    overlay: &'a mut Overlay,
    undo: Undo,
    /// How to undo the parts that contain the running one, the job itself first.
    outer: Vec<Undo>,
    moment: Moment,
    sequence: u64,
    free_space: Option<FreeSpace>,
    /// Whether it stores data of users, which takes space until they remove it.
    grows: bool,
    /// The first entry that no store can hold; it fails the job.
    oversized: Option<Error>,
}

/// The longest key; a key has at least one byte.
pub const MAX_KEY_BYTES: usize = u16::MAX as usize;
/// The longest value.
pub const MAX_VALUE_BYTES: usize = 64 << 20;

/// Every write needs space twice for a while: in the journal and in a table.
const COPIES: u64 = 2;

impl<'a> Transaction<'a> {
    pub(crate) fn new(base: &'a dyn Read, overlay: &'a mut Overlay, moment: Moment, sequence: u64) -> Self {
        let undo = overlay.begin();
        Self {
            base,
            overlay,
            undo,
            outer: Vec::new(),
            moment,
            sequence,
            free_space: None,
            grows: false,
            oversized: None,
        }
    }

    /// Sets the free space of the disk.
    pub(crate) fn with_free_space(self, free_space: Option<FreeSpace>) -> Self {
        Self { free_space, ..self }
    }

    /// Returns the store's time, constant during the whole job and not before any time shown earlier.
    pub fn time(&self) -> Time {
        self.moment.now
    }

    /// Returns the time by which data may be destroyed: [`time`](Self::time), unless the clock is suspect (T34).
    pub fn trusted_time(&self) -> Time {
        self.moment.trusted
    }

    /// Returns whether the clock is suspect: nothing may be destroyed until the operator has decided (T34).
    pub fn clock_is_suspect(&self) -> bool {
        self.moment.suspect
    }

    /// Returns the time without the test clock's advance, for what must not follow it: sessions, timeouts (T29).
    pub fn real_time(&self) -> Time {
        Time::from_millis(self.moment.now.millis().saturating_sub(self.moment.advanced_ms))
    }

    /// Takes the next sequence. It is kept only if the job commits.
    pub fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// Returns the last sequence taken, by this job or before it.
    pub fn last_sequence(&self) -> u64 {
        self.sequence
    }

    /// Stores `value` under `key`. An empty key, or one beyond [`MAX_KEY_BYTES`] or a value beyond
    /// [`MAX_VALUE_BYTES`], fails the job when it ends: callers bound their input long before.
    pub fn put(&mut self, keyspace: Keyspace, key: impl Into<Vec<u8>>, value: impl Into<Bytes>) {
        self.set(keyspace, key.into(), Some(value.into()));
    }

    /// Removes `key`; does nothing if it is not there.
    pub fn remove(&mut self, keyspace: Keyspace, key: impl Into<Vec<u8>>) {
        self.set(keyspace, key.into(), None);
    }

    /// States that this job or earlier ones have removed every entry under a prefix whose number is below `number`, in the
    /// keyspaces whose keys end with a number: items, index, queues and feed. No such entry may be written
    /// again. A store may then leave out the single removals. Does nothing if the watermark is as high already.
    ///
    /// Under such a prefix every key in these keyspaces must have a number, made of a sequence that was taken and
    /// [`SLOT_BITS`](crate::SLOT_BITS) more bits.
    pub fn set_watermark(&mut self, prefix: [u8; 4], number: u64) -> Result<()> {
        if watermark::watermark(self, prefix)? < number {
            self.put(Keyspace::Catalog, watermark::key(prefix), number.to_be_bytes().to_vec());
        }
        Ok(())
    }

    fn set(&mut self, keyspace: Keyspace, key: Vec<u8>, change: Change) {
        let value_bytes = change.as_ref().map_or(0, Bytes::len);
        if key.is_empty() || key.len() > MAX_KEY_BYTES || value_bytes > MAX_VALUE_BYTES {
            self.oversized.get_or_insert_with(|| Error::Internal {
                message: format!(
                    "an entry of {} and {value_bytes} bytes for keyspace {}",
                    key.len(),
                    keyspace.name()
                ),
            });
            return;
        }
        self.grows |= change.is_some() && keyspace.holds_user_data();
        self.overlay.set(keyspace, Bytes::from(key), change, &mut self.undo);
    }

    /// Returns an error if writes that make the store larger are refused now: for jobs that will need the space later.
    pub fn require_free_space(&self) -> Result<()> {
        self.free_space.map_or(Ok(()), FreeSpace::require)
    }

    /// Returns an error if the disk has no space for what was written so far. The store checks again when the job ends;
    /// a job that reports its outcome earlier must call this first.
    pub fn check_free_space(&self) -> Result<()> {
        let Some(free_space) = self.free_space else { return Ok(()) };
        let wanted = COPIES * self.overlay.bytes() as u64;
        free_space
            .check(wanted, if self.grows { free_space.reserved_bytes } else { free_space.unwritten_bytes })
    }

    /// Lets everything the job has written so far use the reserved space.
    pub fn use_reserve(&mut self) {
        self.grows = false;
    }

    /// Returns [`Error::Conflict`] unless `key` still has the value that was read from an earlier snapshot.
    pub fn expect(&self, keyspace: Keyspace, key: &[u8], expected: Option<&[u8]>) -> Result<()> {
        if self.get(keyspace, key)?.as_deref() == expected {
            Ok(())
        } else {
            Err(Error::Conflict { keyspace: keyspace.name() })
        }
    }

    /// Runs a part of the job. If the part fails, its writes and sequences are undone, and the job continues as if the
    /// part had not run.
    pub fn attempt<R, E>(
        &mut self,
        part: impl FnOnce(&mut Self) -> std::result::Result<R, E>,
    ) -> std::result::Result<R, E> {
        let undo = self.overlay.begin();
        self.outer.push(std::mem::replace(&mut self.undo, undo));
        let (sequence, grows, oversized) = (self.sequence, self.grows, self.oversized.clone());
        let outcome = part(self);
        let job = self.outer.pop().expect("it was just pushed");
        let undo = std::mem::replace(&mut self.undo, job);
        if outcome.is_ok() {
            Overlay::merge(undo, &mut self.undo);
        } else {
            self.overlay.take_back(undo);
            (self.sequence, self.grows, self.oversized) = (sequence, grows, oversized);
        }
        outcome
    }

    /// Keeps the writes and returns the last sequence, unless an entry was impossible or there is no space for them.
    pub(crate) fn keep(mut self) -> Result<u64> {
        let possible = self.oversized.take().map_or(Ok(()), Err);
        match possible.and_then(|()| self.check_free_space()) {
            Ok(()) => Ok(self.sequence),
            Err(error) => {
                self.drop_writes();
                Err(error)
            }
        }
    }

    /// Undoes the writes.
    pub(crate) fn drop_writes(self) {
        // After a panic some parts may not have ended.
        for undo in std::iter::once(self.undo).chain(self.outer.into_iter().rev()) {
            self.overlay.take_back(undo);
        }
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

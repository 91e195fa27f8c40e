//! The one gate: no code obtains a stored item without a policy and a `now`.
//!
//! A read takes policy, snapshot and `now`, in that order and all under the partition's policy lock (`order_of_a_view` tests
//! each reason):
//!
//! - `now` after the snapshot, and no commit in between: what the snapshot holds was written at or before `now`, what it does
//!   not hold is written at or after it, and a node that has answered "expired" did so at a time not after this `now` (T17).
//! - Under the lock, which a policy change holds from before it takes its time until it is in force: no reader judges by an
//!   old rule at a time when a newer one was already in force, which would show an item as expired and later as living (T13).
//! - The policy before the snapshot: the purge drops a cutoff only when the items that it covered are removed, so a reader that
//!   sees a policy without the cutoff must not read a state that still has the items.
//!
//! A write opens its gate inside its transaction: policy from the transaction, time of the transaction. There is no
//! window between check and commit.

use std::marker::PhantomData;
use std::sync::Arc;

use document::{Document, ItemNumber};
use storage::{Direction, KeyRange, Keyspace, Read, Scan, Snapshot, Store, Time, Transaction};

use crate::catalog::container::Partition;
use crate::entries::counters::{self, Tally};
use crate::entries::mark::Mark;
use crate::entries::renewals;
use crate::expiry::header::{Body, Header, Record, decode_header};
use crate::expiry::{Policy, QueuePosition};
use crate::index::{self, Index};
use crate::keys::{self, Key, PartitionId};
use crate::types::error::{Error, Result};
use crate::types::lsn::RangeLsn;

/// One partition as it is at one instant. It has no reader of its own, so that a transaction can write meanwhile.
#[derive(Debug, Clone)]
pub(crate) struct Gate {
    pub(crate) partition: PartitionId,
    pub(crate) policy: Arc<Policy>,
    pub(crate) now: Time,
}

/// The result of a look-up by name.
#[derive(Debug)]
pub(crate) enum LookupResult<B = Document> {
    /// There is no item.
    Absent,
    /// A living item.
    Living(Record<B>),
    /// An expired item that the purge has not reached. Only a write may see it, to remove it.
    Expired(Record<B>),
    /// An expired item whose body cannot be read. Its id is free like that of any other (T15), but its entries are not known: it
    /// stays as it is, and the purge sets it aside.
    Damaged(Damaged),
}

/// An expired item whose body cannot be read.
#[derive(Debug)]
pub(crate) struct Damaged {
    pub(crate) header: Header,
    /// What is wrong with it.
    pub(crate) why: String,
}

impl<B> LookupResult<B> {
    /// Returns the item if it is living.
    pub(crate) fn living(self) -> Option<Record<B>> {
        match self {
            LookupResult::Living(record) => Some(record),
            LookupResult::Absent | LookupResult::Expired(_) | LookupResult::Damaged(_) => None,
        }
    }

    /// Returns the item if it has expired, for the purge, which needs all of it.
    pub(crate) fn expired(self) -> Result<Option<Record<B>>> {
        match self {
            LookupResult::Expired(record) => Ok(Some(record)),
            LookupResult::Damaged(Damaged { why, .. }) => Err(Error::Corrupt(why)),
            LookupResult::Absent | LookupResult::Living(_) => Ok(None),
        }
    }
}

/// A stored item in a scan.
#[derive(Debug)]
pub(crate) struct ScannedItem<B = Document> {
    pub(crate) number: ItemNumber,
    /// The number of its stored bytes.
    pub(crate) bytes: usize,
    /// The item if it is living; `None` for an expired one that is not purged.
    pub(crate) living: Option<Record<B>>,
}

/// The stored items of a partition, in the order of their numbers or against it.
pub(crate) struct ItemScan<'a, B = Document> {
    gate: &'a Gate,
    reader: &'a dyn Read,
    scan: Scan<'a>,
    form: PhantomData<fn() -> B>,
}

impl<B: Body> Iterator for ItemScan<'_, B> {
    type Item = Result<ScannedItem<B>>;

    fn next(&mut self) -> Option<Result<ScannedItem<B>>> {
        let entry = self.scan.next()?;
        Some(entry.map_err(Error::from).and_then(|(key, value)| {
            let number = keys::item_number(&key)?;
            let living = self.gate.judge(self.reader, number, &value)?;
            Ok(ScannedItem { number, bytes: value.len(), living })
        }))
    }
}

/// Returns the keys of the items of a partition that follow one of them in a direction.
pub(crate) fn item_range(
    partition: PartitionId,
    after: Option<ItemNumber>,
    direction: Direction,
) -> KeyRange {
    let all = KeyRange::prefix(keys::partition(partition));
    let bound = |number| Key::Item(partition, number).encode().1;
    match (after, direction) {
        (None, _) => all,
        (Some(number), Direction::Forward) => all.after(bound(number)),
        (Some(number), Direction::Backward) => all.before(bound(number)),
    }
}

/// A consistent reading of the store together with the gate to it.
pub(crate) struct View {
    pub(crate) snapshot: Arc<dyn Snapshot>,
    pub(crate) gate: Gate,
    /// The last sequence that is surely in the snapshot.
    pub(crate) sequence: u64,
    /// The range with its last LSN that is surely in the snapshot.
    pub(crate) range: RangeLsn,
}

impl View {
    /// Opens a gate to one partition for reading.
    pub(crate) fn open(store: &dyn Store, partition: &Partition) -> Result<View> {
        let policy = partition.policy.read();
        let range = partition.range_lsn();
        let (sequence, snapshot, now) = store.snapshot_now()?;
        let gate = Gate { partition: partition.id, policy: policy.clone(), now };
        Ok(View { snapshot, gate, sequence, range })
    }

    /// Opens gates to several partitions at one snapshot and one `now` (T16). Policy changes take the locks in the same
    /// order.
    pub(crate) fn open_all(store: &dyn Store, partitions: &[Arc<Partition>]) -> Result<Vec<View>> {
        let policies: Vec<_> = partitions.iter().map(|partition| partition.policy.read()).collect();
        let ranges: Vec<_> = partitions.iter().map(|partition| partition.range_lsn()).collect();
        let (sequence, snapshot, now) = store.snapshot_now()?;
        let view = |((partition, policy), range): ((&Arc<Partition>, &Arc<Policy>), RangeLsn)| {
            let gate = Gate { partition: partition.id, policy: Arc::clone(policy), now };
            View { snapshot: Arc::clone(&snapshot), gate, sequence, range }
        };
        let policies = policies.iter().map(|policy| &**policy);
        Ok(partitions.iter().zip(policies).zip(ranges).map(view).collect())
    }

    /// Returns the figures of living items and of expired ones that are not purged, of several partitions together.
    pub(crate) fn usage_of_all(store: &dyn Store, partitions: &[Arc<Partition>]) -> Result<Usage> {
        let mut sum = Usage::default();
        for view in View::open_all(store, partitions)? {
            let usage = view.usage()?;
            sum = Usage { living: sum.living.plus(usage.living), expired: sum.expired.plus(usage.expired) };
        }
        Ok(sum)
    }

    /// Returns the living item of that number. Its record of a renewal is read only if the item would have expired without it.
    pub(crate) fn by_number(&self, number: ItemNumber) -> Result<Option<Record>> {
        let (keyspace, key) = Key::Item(self.gate.partition, number).encode();
        match self.snapshot.get(keyspace, &key)? {
            Some(bytes) => self.judge(number, &bytes),
            None => Ok(None),
        }
    }

    /// Returns the item with these stored bytes, if it is living.
    pub(crate) fn judge(&self, number: ItemNumber, bytes: &bytes::Bytes) -> Result<Option<Record>> {
        self.gate.judge(&*self.snapshot, number, bytes)
    }

    /// Returns the living item under an `Id` key, as by number.
    pub(crate) fn by_id_key(&self, id_key: &[u8]) -> Result<Option<Record>> {
        match self.snapshot.get(Keyspace::Id, id_key)? {
            Some(value) => self.by_number(keys::number_from_value(&value)?),
            None => Ok(None),
        }
    }

    /// Returns whether the item of an index entry is living. Mostly the entry's mark is enough; otherwise the item's header
    /// decides.
    pub(crate) fn is_living(&self, number: ItemNumber, mark: &Mark) -> Result<bool> {
        self.gate.is_living(&*self.snapshot, number, mark)
    }

    /// Returns whether the item of that number is living, for callers without an index entry.
    pub(crate) fn is_number_living(&self, number: ItemNumber) -> Result<bool> {
        self.gate.is_number_living(&*self.snapshot, number)
    }

    /// Returns the index as queries may use it: every item of the snapshot is in it. `None` if the container has no index, or
    /// no complete one.
    pub(crate) fn index(&self, partition: &Partition) -> Result<Option<Index>> {
        index::serving(&*self.snapshot, partition.id, &partition.indexes())
    }

    /// Returns the figures of living items and of expired ones that are not purged.
    pub(crate) fn usage(&self) -> Result<Usage> {
        self.gate.usage(&*self.snapshot)
    }
}

/// Exact figures of a container or partition at one instant (T18).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Living items, which requests see.
    pub living: Tally,
    /// Expired items that the purge has not removed.
    pub expired: Tally,
}

impl Gate {
    /// Opens a gate inside a transaction. A partition without a policy belongs to a container that was dropped.
    pub(crate) fn for_write(tx: &Transaction<'_>, partition: PartitionId) -> Result<Gate> {
        let (keyspace, key) = Key::Policy(partition).encode();
        let Some(bytes) = tx.get(keyspace, &key)? else {
            return Err(Error::OwnerNotFound { what: "the container".into() });
        };
        let policy = Arc::new(Policy::decode(&bytes)?);
        Ok(Gate { partition, policy, now: tx.time() })
    }

    /// Returns when an expired item expired.
    pub(crate) fn expiry_time_of(&self, header: &Header) -> Option<Time> {
        let expiries =
            header.expiry_positions().filter_map(|place| self.policy.instant(place, header.sequence));
        expiries.min().map(|moment| Time::from_millis(moment.time.max(0).unsigned_abs()))
    }

    /// Returns the figures of living items and of expired ones that are not purged.
    pub(crate) fn usage(&self, reader: &dyn Read) -> Result<Usage> {
        let expired = counters::expired(reader, self.partition, &self.policy, self.now)?;
        let living = counters::total(reader, self.partition)?.minus(expired)?;
        Ok(Usage { living, expired })
    }

    /// Returns the items behind one of them in a direction.
    pub(crate) fn items<'a, B: Body>(
        &'a self,
        reader: &'a dyn Read,
        after: Option<ItemNumber>,
        direction: Direction,
    ) -> ItemScan<'a, B> {
        let range = item_range(self.partition, after, direction);
        let scan = reader.scan(Keyspace::Item, range, direction);
        ItemScan { gate: self, reader, scan, form: PhantomData }
    }

    /// Returns the item with these stored bytes, if it is living.
    fn judge<B: Body>(
        &self,
        reader: &(impl Read + ?Sized),
        number: ItemNumber,
        bytes: &bytes::Bytes,
    ) -> Result<Option<Record<B>>> {
        let (mut header, length) = decode_header(number, bytes)?;
        // Before the body is decoded: an expired item is absent, even if its body is damaged (T14).
        if self.is_expired(reader, number, &mut header)? {
            return Ok(None);
        }
        let body = Record::decode_body(number, bytes, length)?;
        Ok(Some(Record { number, header, body }))
    }

    /// Returns whether a stored item has expired: its record of a renewal is looked up only if the item has expired by its header.
    fn is_expired(
        &self,
        reader: &(impl Read + ?Sized),
        number: ItemNumber,
        header: &mut Header,
    ) -> Result<bool> {
        if !self.policy.is_expired(header, self.now) {
            return Ok(false);
        }
        renewals::look_up(reader, self.partition, number, header)?;
        Ok(self.policy.is_expired(header, self.now))
    }

    /// Looks up an item by its number, with its record of a renewal: a change must know its queue positions.
    pub(crate) fn by_number<B: Body>(
        &self,
        reader: &(impl Read + ?Sized),
        number: ItemNumber,
    ) -> Result<LookupResult<B>> {
        let (keyspace, key) = Key::Item(self.partition, number).encode();
        match reader.get(keyspace, &key)? {
            Some(bytes) => self.by_bytes(reader, number, &bytes),
            None => Ok(LookupResult::Absent),
        }
    }

    /// Looks up an item whose stored bytes are known, as [`by_number`](Gate::by_number) does.
    pub(crate) fn by_bytes<B: Body>(
        &self,
        reader: &(impl Read + ?Sized),
        number: ItemNumber,
        bytes: &bytes::Bytes,
    ) -> Result<LookupResult<B>> {
        let (mut header, length) = decode_header(number, bytes)?;
        renewals::look_up(reader, self.partition, number, &mut header)?;
        let expired = self.policy.is_expired(&header, self.now);
        match Record::decode_body(number, bytes, length) {
            Ok(body) if expired => Ok(LookupResult::Expired(Record { number, header, body })),
            Ok(body) => Ok(LookupResult::Living(Record { number, header, body })),
            Err(Error::Corrupt(why)) if expired => Ok(LookupResult::Damaged(Damaged { header, why })),
            Err(error) => Err(error),
        }
    }

    /// Returns whether the item of an index entry is living. A mark is a lower bound of the item's queue positions, so an item
    /// whose mark has not expired is living.
    pub(crate) fn is_living(
        &self,
        reader: &(impl Read + ?Sized),
        number: ItemNumber,
        mark: &Mark,
    ) -> Result<bool> {
        let surely_lives = |place: QueuePosition| {
            self.policy.expired_through(place.queue, self.now).is_none_or(|through| place.base > through)
        };
        if mark.places.iter().all(surely_lives) {
            return Ok(true);
        }
        self.is_number_living(reader, number)
    }

    /// Returns whether the item of an entry is living, by its header.
    pub(crate) fn is_number_living(&self, reader: &(impl Read + ?Sized), number: ItemNumber) -> Result<bool> {
        let (keyspace, key) = Key::Item(self.partition, number).encode();
        let Some(bytes) = reader.get(keyspace, &key)? else {
            return Err(Error::Corrupt(format!("an index entry of item {}, which is not there", number.0)));
        };
        let (mut header, _) = decode_header(number, &bytes)?;
        Ok(!self.is_expired(reader, number, &mut header)?)
    }

    /// Looks an item up by the key of its `Id` entry.
    pub(crate) fn by_id_key<B: Body>(
        &self,
        reader: &(impl Read + ?Sized),
        id_key: &[u8],
    ) -> Result<LookupResult<B>> {
        match reader.get(Keyspace::Id, id_key)? {
            Some(value) => self.by_number(reader, keys::number_from_value(&value)?),
            None => Ok(LookupResult::Absent),
        }
    }

    /// Refuses a write over an item that only a suspect clock calls expired (T34).
    pub(crate) fn check_expired(&self, tx: &Transaction<'_>, header: &Header) -> Result<()> {
        if self.may_destroy(tx, header) {
            return Ok(());
        }
        Err(Error::ClockSuspect { what: "an expired item is replaced" })
    }

    /// Returns whether an expired item may be destroyed: not while only a suspect clock calls it expired (T34).
    pub(crate) fn may_destroy(&self, tx: &Transaction<'_>, header: &Header) -> bool {
        self.policy.is_expired(header, tx.trusted_time())
    }
}

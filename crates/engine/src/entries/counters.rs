//! How many items and bytes there are, exact at every instant and without a scan (T18).
//!
//! The total counts what is stored and, in containers, the commits of the partition ([`lsn`]). Buckets count each
//! expiring queue by base time, by the hour and by the second. The expired items are a prefix of a queue, so their
//! number is the sum over whole hours and over the seconds of one hour; the living items are the total less the
//! expired ones. A change of `D` ends the prefix elsewhere and changes no counter (T11).
//!
//! `_ts` and ttl are whole seconds; dates are not. A base within a second is counted by the millisecond too, and the
//! part of the last second that lies behind the end of the prefix is subtracted again:
//!
//! ```text
//!   hours         | h0    | h1    |               whole hours before the one that the prefix ends in
//!   seconds                       | s0 | s1 | s2 |    of that hour, the one that the prefix ends in included
//!   milliseconds                              xx      behind the end of the prefix: subtracted
//! ```

use storage::{Direction, KeyRange, Keyspace, Read, Transaction};

use crate::entries::queues;
use crate::entries::renewals;
use crate::expiry::header::{Body, Header, Record};
use crate::expiry::{Millis, Policy, Queue, QueuePosition, QueuePositions};
use crate::keys::{self, Grain, Key, PartitionId};
use crate::types::error::{Error, Result};
use crate::types::limits::COUNTED_ITEMS_MAX;
use crate::types::lsn;

/// The contribution of one item to the counters.
#[derive(Debug, Clone)]
pub(crate) struct Weight {
    pub(crate) partition: PartitionId,
    pub(crate) places: QueuePositions,
    pub(crate) bytes: u64,
}

/// A number of items and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// The number of items.
    pub items: u64,
    /// Their total size.
    pub bytes: u64,
}

impl Tally {
    pub(crate) fn decode(value: &[u8]) -> Result<Tally> {
        match value.split_first_chunk::<8>() {
            Some((items, bytes)) if bytes.len() == 8 => Ok(Tally {
                items: u64::from_be_bytes(*items),
                bytes: u64::from_be_bytes(bytes.try_into().expect("the length was checked")),
            }),
            _ => Err(wrong_length()),
        }
    }

    pub(crate) fn encode(self) -> Vec<u8> {
        [self.items.to_be_bytes(), self.bytes.to_be_bytes()].concat()
    }

    /// Returns the sum.
    #[must_use]
    pub fn plus(self, other: Tally) -> Tally {
        Tally { items: self.items + other.items, bytes: self.bytes + other.bytes }
    }

    /// Returns the difference, at least zero.
    pub(crate) fn saturating_minus(self, other: Tally) -> Tally {
        let (items, bytes) = (self.items.saturating_sub(other.items), self.bytes.saturating_sub(other.bytes));
        Tally { items, bytes }
    }

    /// Returns the difference. An error means that entries and counters disagree.
    pub(crate) fn minus(self, other: Tally) -> Result<Tally> {
        match (self.items.checked_sub(other.items), self.bytes.checked_sub(other.bytes)) {
            (Some(items), Some(bytes)) => Ok(Tally { items, bytes }),
            _ => Err(Error::Corrupt(format!("a counter would fall below zero: {self:?} - {other:?}"))),
        }
    }
}

/// The value of a partition's total.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Total {
    /// All items, expired ones that are not purged included.
    pub(crate) tally: Tally,
    /// The LSN of its last commit. A collection has none, and neither has a partition of an older store until the
    /// store is opened.
    pub(crate) lsn: Option<u64>,
}

impl Total {
    pub(crate) fn decode(value: &[u8]) -> Result<Total> {
        let Some((tally, lsn)) = value.split_at_checked(16) else {
            return Tally::decode(value).map(Total::of);
        };
        let lsn = match lsn.len() {
            0 => None,
            _ => Some(lsn.try_into().map(u64::from_be_bytes).map_err(|_| wrong_length())?),
        };
        Ok(Total { tally: Tally::decode(tally)?, lsn })
    }

    pub(crate) fn encode(self) -> Vec<u8> {
        let mut out = self.tally.encode();
        out.extend(self.lsn.into_iter().flat_map(u64::to_be_bytes));
        out
    }

    fn of(tally: Tally) -> Total {
        Total { tally, lsn: None }
    }

    fn load(reader: &(impl Read + ?Sized), partition: PartitionId) -> Result<Total> {
        let (keyspace, key) = Key::Total(partition).encode();
        reader.get(keyspace, &key)?.map_or(Ok(Total::default()), |value| Total::decode(&value))
    }

    fn store(self, tx: &mut Transaction<'_>, partition: PartitionId) {
        let (keyspace, key) = Key::Total(partition).encode();
        if self == Total::default() {
            tx.remove(keyspace, key);
        } else {
            tx.put(keyspace, key, self.encode());
        }
    }
}

fn wrong_length() -> Error {
    Error::Corrupt("a counter of wrong length".into())
}

impl Weight {
    /// Returns what a version adds.
    pub(crate) fn of<B: Body>(partition: PartitionId, record: &Record<B>) -> Weight {
        Weight { partition, places: record.header.places(), bytes: record.size() }
    }

    /// Returns the keys of all buckets that count this item.
    fn buckets(&self) -> impl Iterator<Item = (Keyspace, Vec<u8>)> + '_ {
        let partition = self.partition;
        self.places.iter().flat_map(move |place| {
            grains(place.base).iter().map(move |grain| {
                let start = bucket_start(place.base, *grain);
                Key::Bucket { partition, queue: place.queue, grain: *grain, start }.encode()
            })
        })
    }
}

/// Counts an item that is being written.
pub(crate) fn add(tx: &mut Transaction<'_>, weight: &Weight) -> Result<()> {
    update(tx, weight, |tally, item| Ok(tally.plus(item)))
}

/// Stops counting an item that is being removed.
pub(crate) fn subtract(tx: &mut Transaction<'_>, weight: &Weight) -> Result<()> {
    update(tx, weight, Tally::minus)
}

fn update(
    tx: &mut Transaction<'_>,
    weight: &Weight,
    change: impl Fn(Tally, Tally) -> Result<Tally>,
) -> Result<()> {
    let item = Tally { items: 1, bytes: weight.bytes };
    let total = Total::load(tx, weight.partition)?;
    Total { tally: change(total.tally, item)?, ..total }.store(tx, weight.partition);
    for (keyspace, key) in weight.buckets() {
        let before = tx.get(keyspace, &key)?.map_or(Ok(Tally::default()), |value| Tally::decode(&value))?;
        let after = change(before, item)?;
        if after == Tally::default() {
            tx.remove(keyspace, key);
        } else {
            tx.put(keyspace, key, after.encode());
        }
    }
    Ok(())
}

/// Returns all items of a partition, expired ones that are not purged included.
pub(crate) fn total(reader: &dyn Read, partition: PartitionId) -> Result<Tally> {
    Ok(Total::load(reader, partition)?.tally)
}

/// Returns the LSN of a partition's last commit, or `None` if its commits are not counted.
pub(crate) fn lsn(reader: &(impl Read + ?Sized), partition: PartitionId) -> Result<Option<u64>> {
    Ok(Total::load(reader, partition)?.lsn)
}

/// Starts to count the commits of a partition.
pub(crate) fn begin_lsns(tx: &mut Transaction<'_>, partition: PartitionId, lsn: u64) -> Result<()> {
    let total = Total::load(tx, partition)?;
    Total { lsn: Some(lsn), ..total }.store(tx, partition);
    Ok(())
}

/// Assigns the next LSN of a partition to a commit of this number.
pub(crate) fn next_lsn(tx: &mut Transaction<'_>, partition: PartitionId, commit: u64) -> Result<u64> {
    let total = Total::load(tx, partition)?;
    let Some(last) = total.lsn else {
        return Err(Error::Corrupt(format!("the commits of partition {} are not counted", partition.0)));
    };
    let next = last.saturating_add(1);
    if next > commit {
        return Err(lsn::ahead(next, commit));
    }
    Total { lsn: Some(next), ..total }.store(tx, partition);
    Ok(next)
}

/// A number of items that may be an upper bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// The number, or its upper bound.
    pub tally: Tally,
    /// Whether the number is exact.
    pub exact: bool,
}

impl Default for Count {
    fn default() -> Count {
        Count { tally: Tally::default(), exact: true }
    }
}

impl Count {
    pub(crate) fn plus(self, other: Count) -> Count {
        Count { tally: self.tally.plus(other.tally), exact: self.exact && other.exact }
    }
}

/// Returns the expired items of a partition that the purge has not removed yet.
pub(crate) fn expired(
    reader: &dyn Read,
    partition: PartitionId,
    policy: &Policy,
    now: storage::Time,
) -> Result<Tally> {
    Ok(count_expired(reader, partition, policy, now, usize::MAX)?.tally)
}

/// Returns the same without reading more than a few items: an upper bound where exactness would require more. The
/// rules may differ from those in force.
pub(crate) fn expired_at_most(
    reader: &dyn Read,
    partition: PartitionId,
    policy: &Policy,
    now: storage::Time,
) -> Result<Count> {
    count_expired(reader, partition, policy, now, COUNTED_ITEMS_MAX)
}

/// Within a group of queues no item is counted twice, so if only one group has expired items, they are summed up from
/// counters alone. An item may have expired by several groups, though. Then the group with the most expired items is
/// summed up, and the expired entries of the others are scanned, to count those items that are not in the prefix of
/// an earlier group. If there are more than `room` of them, all of them are counted.
fn count_expired(
    reader: &dyn Read,
    partition: PartitionId,
    policy: &Policy,
    now: storage::Time,
    room: usize,
) -> Result<Count> {
    let mut groups = Vec::new();
    for queues in policy.groups() {
        let mut sum = Tally::default();
        for queue in &queues {
            if let Some(through) = policy.expired_through(*queue, now) {
                sum = sum.plus(prefix(reader, partition, *queue, through)?);
            }
        }
        if sum.items > 0 {
            groups.push((sum, queues));
        }
    }
    groups.sort_by_key(|(sum, _)| std::cmp::Reverse(sum.items));
    let mut expired = groups.first().map_or(Tally::default(), |(sum, _)| *sum);
    let others = groups.iter().skip(1).fold(Tally::default(), |all, (sum, _)| all.plus(*sum));
    if others.items > room as u64 {
        let (most, all) = (expired.plus(others), total(reader, partition)?);
        let tally = Tally { items: most.items.min(all.items), bytes: most.bytes.min(all.bytes) };
        return Ok(Count { tally, exact: false });
    }
    for at in 1..groups.len() {
        let (others, group) = (&groups[..at], &groups[at].1);
        let is_counted = |header: &Header| {
            let has_expired = |place: &QueuePosition| policy.expires(*place, header.sequence, now);
            let places = header.expiry_positions().filter(has_expired);
            places.into_iter().any(|place| others.iter().any(|(_, queues)| queues.contains(&place.queue)))
        };
        for queue in group {
            if let Some(through) = policy.expired_through(*queue, now) {
                expired = expired.plus(walk(reader, partition, *queue, through, is_counted)?);
            }
        }
    }
    Ok(Count { tally: expired, exact: true })
}

/// Counts the items of a queue up to and including `through` that are not counted already.
fn walk(
    reader: &dyn Read,
    partition: PartitionId,
    queue: Queue,
    through: Millis,
    is_counted: impl Fn(&Header) -> bool,
) -> Result<Tally> {
    let mut sum = Tally::default();
    let range = queues::with_set_aside(reader, partition, queue, through)?;
    for entry in reader.scan(Keyspace::Queue, range, Direction::Forward) {
        let (_, number) = keys::queue_entry(&entry?.0)?;
        let (keyspace, key) = Key::Item(partition, number).encode();
        // An item that cannot be read may be in one of the earlier groups; the purge sets it aside.
        let Some(bytes) = reader.get(keyspace, &key)? else { continue };
        let Ok((mut header, body)) = Header::decode(&bytes) else { continue };
        if renewals::look_up(reader, partition, number, &mut header).is_ok() && !is_counted(&header) {
            sum = sum.plus(Tally { items: 1, bytes: (bytes.len() - body) as u64 });
        }
    }
    Ok(sum)
}

/// Returns the sum of a queue up to and including `through`.
fn prefix(reader: &dyn Read, partition: PartitionId, queue: Queue, through: Millis) -> Result<Tally> {
    Ok(prefixes(reader, partition, queue, &[through])?.first().copied().unwrap_or_default())
}

/// Returns the sums of a queue up to and including each of several bases, which must not decrease. No bucket is read
/// twice.
pub(crate) fn prefixes(
    reader: &dyn Read,
    partition: PartitionId,
    queue: Queue,
    bases: &[Millis],
) -> Result<Vec<Tally>> {
    let sum = |grain, starts| sum_buckets(reader, partition, queue, grain, starts);
    let (mut hour, mut whole_hours) = (Millis::MIN, Tally::default());
    let (mut second, mut seconds) = (Millis::MIN, Tally::default());
    let mut sums = Vec::with_capacity(bases.len());
    for &through in bases {
        let next = bucket_start(through, Grain::Hour);
        if next > hour {
            whole_hours = whole_hours.plus(sum(Grain::Hour, hour..next)?);
            (hour, second, seconds) = (next, next, Tally::default());
        }
        let end = bucket_start(through, Grain::Second).saturating_add(Grain::Second.millis());
        if end > second {
            seconds = seconds.plus(sum(Grain::Second, second..end)?);
            second = end;
        }
        let beyond = match queue {
            Queue::Date(_) => sum(Grain::Milli, through.saturating_add(1)..end)?,
            Queue::Inherit | Queue::Own | Queue::Stamp => Tally::default(),
        };
        sums.push(whole_hours.plus(seconds).minus(beyond)?);
    }
    Ok(sums)
}

fn sum_buckets(
    reader: &dyn Read,
    partition: PartitionId,
    queue: Queue,
    grain: Grain,
    starts: std::ops::Range<Millis>,
) -> Result<Tally> {
    let bound = |start| Key::Bucket { partition, queue, grain, start }.encode().1;
    let range = KeyRange::between(bound(starts.start), bound(starts.end));
    let mut sum = Tally::default();
    for entry in reader.scan(Keyspace::Counter, range, Direction::Forward) {
        sum = sum.plus(Tally::decode(&entry?.1)?);
    }
    Ok(sum)
}

/// Returns the buckets that count an entry: one of each grain down to the one at whose start its base is.
pub(crate) fn grains(base: Millis) -> &'static [Grain] {
    match base.rem_euclid(Grain::Second.millis()) {
        0 => &[Grain::Hour, Grain::Second],
        _ => &[Grain::Hour, Grain::Second, Grain::Milli],
    }
}

pub(crate) fn bucket_start(base: Millis, grain: Grain) -> Millis {
    base.div_euclid(grain.millis()).saturating_mul(grain.millis())
}

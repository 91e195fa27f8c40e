//! Counters, purge cursors, holds and sliding renewals of a partition, and the shapes of its index: the sums and notes beside
//! items.
//!
//! Queues are ordered by base, so the buckets that count them are summed up one after the other, without a table of all of
//! them. An error in a queue or an index would show again in its sums, so those are compared once it is repaired.

use document::ItemNumber;
use storage::{Direction, KeyRange, Keyspace};

use super::finding::{Fix, Subject};
use super::items::{Seen, is_counted, strange};
use super::names::{self, CounterKey};
use super::partition::{CheckedPartition, ItemState};
use super::{Inspection, LOST_HERE};
use crate::catalog::container::Api;
use crate::catalog::hold_note;
use crate::entries::counters::{self, Tally, Total};
use crate::entries::set_aside;
use crate::evidence::archive::unarchived;
use crate::expiry::header::Header;
use crate::expiry::{Millis, Queue};
use crate::index::{ShapeHash, decode_count, shapes_prefix};
use crate::keys::{self, Generation, Grain, Key, PartitionId};
use crate::types::error::Result;

/// The bucket that is being summed up, for each grain.
#[derive(Default)]
struct Open([Option<(Queue, Millis, Tally)>; 3]);

const GRAINS: [Grain; 3] = [Grain::Hour, Grain::Second, Grain::Milli];

impl Inspection<'_> {
    /// Compares all sums and notes beside the items of a partition.
    pub(super) fn figures(&mut self, checked: &dyn CheckedPartition, seen: &Seen) -> Result<()> {
        let (label, partition) = (checked.label(), checked.id());
        let buckets = if seen.is_sound(Keyspace::Queue) {
            self.total(checked, &label, seen)?;
            Some(self.buckets(partition, &label)?)
        } else {
            self.book.report.unchecked.push(format!("the counters of {label}"));
            None
        };
        if seen.is_sound(Keyspace::Index) {
            for generation in checked.shaped() {
                self.shapes(checked, generation, &label)?;
            }
        } else if !checked.shaped().is_empty() {
            self.book.report.unchecked.push(format!("the shapes of {label}"));
        }
        let found = self.counter_entries(checked, &label)?;
        if buckets.is_some_and(|present| present != found) {
            self.stray_buckets(partition, &label)?;
        }
        self.moved_aside(partition, &label)
    }

    /// Compares the total of a partition, and the LSN in it: none of its items may have a higher one, and it may not exceed the
    /// number of commits. The store's last sequence is an LSN that no client's is ahead of.
    fn total(&mut self, checked: &dyn CheckedPartition, label: &str, seen: &Seen) -> Result<()> {
        let (keyspace, key) = Key::Total(checked.id()).encode();
        let found = self.reader.get(keyspace, &key)?;
        let found = found.map_or(Ok(Total::default()), |value| Total::decode(&value));
        let lsn = found.as_ref().ok().and_then(|total| total.lsn);
        let is_right = match (checked.api(), lsn) {
            (Api::MongoDb, lsn) => lsn.is_none(),
            (Api::NoSql, Some(lsn)) => seen.lsn <= lsn && lsn <= self.sequence,
            // Counting begins when the store is opened by a version that counts.
            (Api::NoSql, None) => found.is_ok() && !seen.is_counted,
        };
        let lsn = match checked.api() {
            Api::MongoDb => None,
            Api::NoSql if is_right => lsn,
            Api::NoSql => Some(self.sequence),
        };
        let expected = Total { tally: seen.total, lsn };
        let fix = if expected == Total::default() {
            Fix::Remove(keyspace, key)
        } else {
            Fix::Put(keyspace, key, expected.encode().into())
        };
        if !found.as_ref().is_ok_and(|total| total.tally == expected.tally) {
            let said = match &found {
                Ok(total) => format!("says {}", words(total.tally)),
                Err(_) => "is unreadable".to_owned(),
            };
            let what =
                format!("the number of its items and bytes {said}, there are {}", words(expected.tally));
            self.book.fix(Subject::Counter, label, what, [fix])?;
        } else if !is_right {
            let what = "its LSN is missing, behind that of an item or ahead of the store";
            self.book.fix(Subject::Counter, label, what, [fix])?;
        }
        Ok(())
    }

    /// Compares one counter; returns whether it is there.
    fn tally(&mut self, key: Key<'_>, label: &str, what: &str, expected: Tally) -> Result<bool> {
        let (keyspace, key) = key.encode();
        let found = self.reader.get(keyspace, &key)?;
        let tally = found.as_ref().map_or(Ok(Tally::default()), |value| Tally::decode(value));
        if tally != Ok(expected) {
            let said =
                tally.map_or_else(|_| "is unreadable".to_owned(), |tally| format!("says {}", words(tally)));
            let fix = match expected {
                Tally { items: 0, bytes: 0 } => Fix::Remove(keyspace, key),
                _ => Fix::Put(keyspace, key, expected.encode().into()),
            };
            let what = format!("{what} {said}, there are {}", words(expected));
            self.book.fix(Subject::Counter, label, what, [fix])?;
        }
        Ok(found.is_some())
    }

    /// Sums up every queue; returns how many of the expected buckets exist.
    fn buckets(&mut self, partition: PartitionId, label: &str) -> Result<u64> {
        let (reader, mut open, mut present) = (self.reader, Open::default(), 0);
        let all = KeyRange::prefix(keys::partition(partition));
        for entry in reader.scan(Keyspace::Queue, all, Direction::Forward) {
            let (key, _) = entry?;
            let Some((queue, base, number)) = names::queue_key(&key).filter(|(queue, ..)| is_counted(*queue))
            else {
                continue;
            };
            let (keyspace, key) = Key::Item(partition, number).encode();
            let Some(bytes) = reader.get(keyspace, &key)? else { continue };
            let Ok((_, body)) = Header::decode(&bytes) else { continue };
            let weight = Tally { items: 1, bytes: (bytes.len() - body) as u64 };
            for grain in counters::grains(base) {
                let (slot, start) = (*grain as usize - 1, counters::bucket_start(base, *grain));
                match &mut open.0[slot] {
                    Some((known, at, sum)) if (*known, *at) == (queue, start) => *sum = sum.plus(weight),
                    other => {
                        let full = other.replace((queue, start, weight));
                        present += self.bucket(partition, label, *grain, full)?;
                    }
                }
            }
        }
        for (grain, last) in GRAINS.into_iter().zip(open.0) {
            present += self.bucket(partition, label, grain, last)?;
        }
        Ok(present)
    }

    fn bucket(
        &mut self,
        partition: PartitionId,
        label: &str,
        grain: Grain,
        sum: Option<(Queue, Millis, Tally)>,
    ) -> Result<u64> {
        let Some((queue, start, sum)) = sum else { return Ok(0) };
        let what = format!("the counter of queue {} by the {} from {start}", queue.number(), unit(grain));
        let key = Key::Bucket { partition, queue, grain, start };
        Ok(u64::from(self.tally(key, label, &what, sum)?))
    }

    /// Removes counters that count nothing.
    fn stray_buckets(&mut self, partition: PartitionId, label: &str) -> Result<()> {
        let reader = self.reader;
        let all = KeyRange::prefix(keys::partition(partition));
        for entry in reader.scan(Keyspace::Counter, all, Direction::Forward) {
            let (key, _) = entry?;
            let Some(CounterKey::Bucket { queue, grain, start }) = CounterKey::parse(&key) else { continue };
            let end = keys::queue_base(partition, queue, start.saturating_add(grain.millis()));
            let range = KeyRange::between(keys::queue_base(partition, queue, start), end);
            let is_used = is_counted(queue)
                && (grain != Grain::Milli || start.rem_euclid(Grain::Second.millis()) != 0)
                && counters::bucket_start(start, grain) == start
                && reader.scan(Keyspace::Queue, range, Direction::Forward).next().transpose()?.is_some();
            if !is_used {
                let what = format!(
                    "a counter of queue {} by the {} from {start}, which counts no item",
                    queue.number(),
                    unit(grain)
                );
                let fix = Fix::Remove(Keyspace::Counter, key.to_vec());
                self.book.fix(Subject::Counter, label, what, [fix])?;
            }
        }
        Ok(())
    }

    /// Goes through all entries of `Counter`; returns how many of them are buckets.
    fn counter_entries(&mut self, checked: &dyn CheckedPartition, label: &str) -> Result<u64> {
        let (reader, partition, mut buckets) = (self.reader, checked.id(), 0);
        let all = KeyRange::prefix(keys::partition(partition));
        for entry in reader.scan(Keyspace::Counter, all, Direction::Forward) {
            let (key, value) = entry?;
            let remove = Fix::Remove(Keyspace::Counter, key.to_vec());
            match CounterKey::parse(&key) {
                None => self.book.refuse(Subject::Key, label, strange(Keyspace::Counter, &key), LOST_HERE),
                Some(CounterKey::Bucket { .. }) => buckets += 1,
                Some(CounterKey::Total | CounterKey::UnarchivedTotal) => {}
                Some(CounterKey::PurgeCursor(queue)) => self.cursor(partition, queue, &value, label)?,
                Some(
                    CounterKey::ShapeCount(generation, shape) | CounterKey::ShapePlaces(generation, shape),
                ) => {
                    self.shape_is_used(checked, (generation, shape), remove, label)?;
                }
                Some(CounterKey::Held(number)) => self.hold(checked, number, &value, remove, label)?,
                Some(CounterKey::SlidingRenewal(number)) => {
                    self.renew(checked, number, &value, remove, label)?;
                }
                Some(CounterKey::SetAside(number)) => {
                    self.set_aside(checked, number, &value, remove, label)?;
                }
            }
        }
        Ok(buckets)
    }

    /// Checks that no entry of a queue lies before the purge cursor, except those of items that the purge has set aside.
    fn cursor(&mut self, partition: PartitionId, queue: Queue, cursor: &[u8], label: &str) -> Result<()> {
        let all = KeyRange::prefix(keys::queue_prefix(partition, queue));
        let set_aside = set_aside::numbers(self.reader, partition)?;
        let is_waiting = |key: &[u8]| !names::queue_key(key).is_some_and(|(.., it)| set_aside.contains(&it));
        let mut entries = self.reader.scan(Keyspace::Queue, all, Direction::Forward);
        let first = entries.find(|entry| entry.as_ref().map_or(true, |(key, _)| is_waiting(key)));
        let first = first.transpose()?;
        let is_of_queue = names::queue_key(cursor).is_some_and(|(of, ..)| of == queue)
            && names::partition(cursor) == Some(partition);
        if is_of_queue && first.is_none_or(|(key, _)| *key >= *cursor) {
            return Ok(());
        }
        let what = format!(
            "the purge cursor of queue {} has passed items, which would never be purged",
            queue.number()
        );
        let (keyspace, key) = Key::PurgeCursor(partition, queue).encode();
        self.book.fix(Subject::Hand, label, what, [Fix::Remove(keyspace, key)])
    }

    /// Releases set-aside items that can be read again or are gone: the purge retries them.
    fn set_aside(
        &mut self,
        checked: &dyn CheckedPartition,
        number: ItemNumber,
        reason: &[u8],
        remove: Fix,
        label: &str,
    ) -> Result<()> {
        let reason = String::from_utf8_lossy(reason);
        match checked.look_up(self.reader, number)? {
            ItemState::Present(item) => {
                let place = format!("{label}, {}", item.name);
                self.book.fix(
                    Subject::Hand,
                    &place,
                    format!("the purge has set it aside: {reason}"),
                    [remove],
                )
            }
            // The read error is reported.
            ItemState::Damaged(_) => Ok(()),
            ItemState::Absent => {
                let what = format!("the purge has set item {} aside, which is not there: {reason}", number.0);
                self.book.fix(Subject::Hand, label, what, [remove])
            }
        }
    }

    /// Checks that a note of a hold belongs to an item whose header says that it is held.
    fn hold(
        &mut self,
        checked: &dyn CheckedPartition,
        number: ItemNumber,
        note: &[u8],
        remove: Fix,
        label: &str,
    ) -> Result<()> {
        match checked.look_up(self.reader, number)? {
            ItemState::Present(item) if item.header.held => {
                if hold_note::is_note(note) {
                    return Ok(());
                }
                let place = format!("{label}, {}", item.name);
                let (keyspace, key) = Key::Held(checked.id(), number).encode();
                let fix = Fix::Put(keyspace, key, hold_note::lost_note(self.now).into());
                self.book.fix(Subject::Hold, &place, "the note of its hold is unreadable", [fix])
            }
            ItemState::Present(item) => {
                let place = format!("{label}, {}", item.name);
                self.book.fix(Subject::Hold, &place, "the note of a hold, and it is not held", [remove])
            }
            ItemState::Damaged(_) => Ok(()),
            ItemState::Absent => {
                let what = format!("the note of a hold on item {}, which is not there", number.0);
                self.book.fix(Subject::Hold, label, what, [remove])
            }
        }
    }

    /// Checks that a record of a renewal belongs to an item whose countdown reads restart.
    fn renew(
        &mut self,
        checked: &dyn CheckedPartition,
        number: ItemNumber,
        value: &[u8],
        remove: Fix,
        label: &str,
    ) -> Result<()> {
        match checked.look_up(self.reader, number)? {
            ItemState::Present(item) => {
                if item.header.slides() && value.len() == size_of::<Millis>() {
                    return Ok(());
                }
                let place = format!("{label}, {}", item.name);
                let what = "the record of its last read is unreadable, or reads do not restart its countdown";
                self.book.fix(Subject::Touch, &place, what, [remove])
            }
            ItemState::Damaged(_) => Ok(()),
            ItemState::Absent => {
                let what = format!("the record of a read of item {}, which is not there", number.0);
                self.book.fix(Subject::Touch, label, what, [remove])
            }
        }
    }

    /// Compares how often each shape is counted with how many entries it has, and its places with those of an item.
    fn shapes(&mut self, checked: &dyn CheckedPartition, generation: Generation, label: &str) -> Result<()> {
        let (reader, partition) = (self.reader, checked.id());
        let prefix = shapes_prefix(partition, generation);
        let (at, mut open) = (prefix.len(), None::<(ShapeHash, ItemNumber, u64)>);
        for entry in reader.scan(Keyspace::Index, KeyRange::prefix(prefix), Direction::Forward) {
            let (key, _) = entry?;
            let parsed = key.get(at..at + 16).zip(key.last_chunk::<8>());
            let Some((shape, number)) = parsed else { continue };
            let shape: ShapeHash = shape.try_into().expect("it has 16 bytes");
            match &mut open {
                Some((known, _, count)) if *known == shape => *count += 1,
                other => {
                    let full = other.replace((shape, ItemNumber(u64::from_be_bytes(*number)), 1));
                    self.shape(checked, generation, full, label)?;
                }
            }
        }
        self.shape(checked, generation, open, label)
    }

    fn shape(
        &mut self,
        checked: &dyn CheckedPartition,
        generation: Generation,
        sum: Option<(ShapeHash, ItemNumber, u64)>,
        label: &str,
    ) -> Result<()> {
        let (Some((shape, number, items)), partition) = (sum, checked.id()) else { return Ok(()) };
        let (keyspace, key) = Key::ShapeCount(partition, generation, shape).encode();
        let counted = self.reader.get(keyspace, &key)?.and_then(|value| decode_count(&value).ok());
        if counted != Some(items) {
            let said = counted.map_or_else(|| "not at all".to_owned(), |counted| format!("as {counted}"));
            let what = format!("a shape of {items} items is counted {said}");
            let fix = Fix::Put(keyspace, key, items.to_be_bytes().to_vec().into());
            self.book.fix(Subject::Shape, label, what, [fix])?;
        }
        let ItemState::Present(item) = checked.look_up(self.reader, number)? else { return Ok(()) };
        let claimed = item.shapes.iter().find(|(of, hash, _)| (*of, *hash) == (generation, shape));
        let Some((.., places)) = claimed else { return Ok(()) };
        let (keyspace, key) = Key::ShapePlaces(partition, generation, shape).encode();
        if self.reader.get(keyspace, &key)?.as_deref() != Some(places.as_slice()) {
            let fix = Fix::Put(keyspace, key, places.clone().into());
            self.book.fix(Subject::Shape, label, "the places of a shape are missing or wrong", [fix])?;
        }
        Ok(())
    }

    /// Checks that a counted shape has entries, in an existing generation.
    fn shape_is_used(
        &mut self,
        checked: &dyn CheckedPartition,
        (generation, shape): (Generation, ShapeHash),
        remove: Fix,
        label: &str,
    ) -> Result<()> {
        if checked.is_cleared(generation) {
            return Ok(());
        }
        let prefix = [&shapes_prefix(checked.id(), generation)[..], &shape].concat();
        let range = KeyRange::prefix(prefix);
        let first = self.reader.scan(Keyspace::Index, range, Direction::Forward).next().transpose()?;
        if first.is_some() && checked.shaped().contains(&generation) {
            return Ok(());
        }
        self.book.fix(Subject::Shape, label, "a shape is counted that no item has", [remove])
    }

    /// Compares the items that wait to be archived with their sum.
    fn moved_aside(&mut self, partition: PartitionId, label: &str) -> Result<()> {
        let mut sum = Tally::default();
        for entry in unarchived::entries(self.reader, partition) {
            sum = sum.plus(Tally { items: 1, bytes: entry?.1.len() as u64 });
        }
        let what = "the number of expired items that wait to be archived";
        self.tally(Key::UnarchivedTotal(partition), label, what, sum).map(drop)
    }
}

fn words(tally: Tally) -> String {
    format!("{} items of {} bytes", tally.items, tally.bytes)
}

fn unit(grain: Grain) -> &'static str {
    match grain {
        Grain::Hour => "hour",
        Grain::Second => "second",
        Grain::Milli => "millisecond",
    }
}

//! The items of a partition, and the entries that lead to them.
//!
//! Every entry of an item's footprint is looked up, and the existing entries are counted: if none is missing and the numbers
//! agree, there is no surplus entry, and none has to be decoded. Only if they disagree, the item of each entry is looked up.
//! So memory is bounded, however many items there are, and a sound store is read once.

use std::collections::BTreeMap;

use bytes::Bytes;
use document::ItemNumber;
use storage::{Direction, KeyRange, Keyspace, watermark};

use super::finding::{Fix, Subject};
use super::names;
use super::partition::{CheckedPartition, ExpectedItem, ItemState};
use super::{Inspection, LOST_HERE};
use crate::catalog::hold_note;
use crate::entries::counters::Tally;
use crate::entries::expected::ExpectedEntry;
use crate::expiry::header::decode_header;
use crate::expiry::{Queue, QueuePosition};
use crate::keys::{self, Key, PartitionId};
use crate::types::error::Result;
use crate::types::events;

/// The keyspaces whose entries each belong to one item.
pub(super) const LEADING: [Keyspace; 5] =
    [Keyspace::Id, Keyspace::Unique, Keyspace::Queue, Keyspace::Feed, Keyspace::Index];

/// The result of the pass over a partition's items.
#[derive(Default)]
pub(super) struct Seen {
    /// Entries that were looked up and found, by keyspace.
    found: BTreeMap<Keyspace, u64>,
    /// Items and their bytes.
    pub(super) total: Tally,
    /// The highest LSN of an item.
    pub(super) lsn: u64,
    /// Whether an item has an LSN other than the number of its commit.
    pub(super) is_counted: bool,
    /// Items that cannot be read.
    pub(super) damaged: u64,
    /// Keyspaces with findings.
    pub(super) wrong: Vec<Keyspace>,
}

impl Seen {
    /// Returns whether a keyspace has no findings.
    pub(super) fn is_sound(&self, keyspace: Keyspace) -> bool {
        self.damaged == 0 && !self.wrong.contains(&keyspace)
    }
}

const TWO_OF_A_KIND: &str = "two items claim it; delete one of them";

impl Inspection<'_> {
    /// Goes through all items and looks up their entries; calls `visit` with every item.
    pub(super) fn items(
        &mut self,
        checked: &dyn CheckedPartition,
        seen: &mut Seen,
        visit: &mut dyn FnMut(&ExpectedItem),
    ) -> Result<()> {
        let (reader, partition, label) = (self.reader, checked.id(), checked.label());
        let all = KeyRange::prefix(keys::partition(partition));
        for entry in reader.scan(Keyspace::Item, all, Direction::Forward) {
            let (key, value) = entry?;
            self.step(&label);
            let Ok(number) = keys::item_number(&key) else {
                self.book.refuse(Subject::Key, &label, strange(Keyspace::Item, &key), LOST_HERE);
                continue;
            };
            match checked.read(reader, number, &value)? {
                ItemState::Present(item) => {
                    seen.total = seen.total.plus(Tally { items: 1, bytes: item.size });
                    seen.lsn = seen.lsn.max(item.header.lsn);
                    seen.is_counted |= item.header.number().behind() > 0;
                    self.item(checked, &item, seen)?;
                    visit(&item);
                }
                ItemState::Damaged(error) => {
                    seen.damaged += 1;
                    let reason =
                        "it cannot be derived from other data; restore it from a backup or an export";
                    self.book.refuse(
                        Subject::Item,
                        &label,
                        format!("item {} cannot be read: {error}", number.0),
                        reason,
                    );
                }
                ItemState::Absent => {}
            }
        }
        Ok(())
    }

    fn item(&mut self, checked: &dyn CheckedPartition, item: &ExpectedItem, seen: &mut Seen) -> Result<()> {
        let place = format!("{}, {}", checked.label(), item.name);
        for (what, reason) in &item.faults {
            self.book.refuse(Subject::Item, &place, what.clone(), reason);
        }
        let sequence = item.header.sequence;
        if sequence.0 < item.number.0 || events::commit_of(sequence) > self.sequence {
            let what = format!("its version {} belongs to no commit of this store", sequence.0);
            self.book.refuse(Subject::Item, &place, what, "when it was written is unknown");
        }
        if item.header.held {
            let (keyspace, key) = Key::Held(checked.id(), item.number).encode();
            if self.reader.get(keyspace, &key)?.is_none() {
                let fix = Fix::Put(keyspace, key, hold_note::lost_note(self.now).into());
                self.book.fix(
                    Subject::Hold,
                    &place,
                    "it is held, and the note of its hold is missing",
                    [fix],
                )?;
            }
        }
        for expected in &item.entries {
            self.book.report.entries += 1;
            self.entry(checked, item, expected, &place, seen)?;
        }
        Ok(())
    }

    /// Looks up one entry of an item's footprint.
    fn entry(
        &mut self,
        checked: &dyn CheckedPartition,
        item: &ExpectedItem,
        expected: &ExpectedEntry,
        place: &str,
        seen: &mut Seen,
    ) -> Result<()> {
        let ExpectedEntry { keyspace, key, value } = expected;
        let Some(found) = self.reader.get(*keyspace, key)? else {
            seen.wrong.push(*keyspace);
            seen.wrong.dedup();
            let fix = Fix::Put(*keyspace, key.clone(), value.bytes());
            return self.book.fix(
                subject(*keyspace),
                place,
                format!("its {} is missing", entry(*keyspace)),
                [fix],
            );
        };
        *seen.found.entry(*keyspace).or_default() += 1;
        if value.admits(&found) {
            return Ok(());
        }
        if self.is_superseded(checked, item, expected, &found)? {
            // The entry belongs to the later item, and is counted with it.
            *seen.found.entry(*keyspace).or_default() -= 1;
            return Ok(());
        }
        seen.wrong.push(*keyspace);
        seen.wrong.dedup();
        if *keyspace == Keyspace::Item {
            let what = "it is stored in another form than this version writes";
            self.book.refuse(Subject::Item, place, what, "which program wrote it is unknown");
            return Ok(());
        }
        if let Some(other) = self.other_claimant(checked, item, expected, &found)? {
            let what = format!("its {} is also that of {other}", entry(*keyspace));
            self.book.refuse(subject(*keyspace), place, what, TWO_OF_A_KIND);
            return Ok(());
        }
        let fix = Fix::Put(*keyspace, key.clone(), value.bytes());
        self.book.fix(
            subject(*keyspace),
            place,
            format!("its {} belongs to another item or is damaged", entry(*keyspace)),
            [fix],
        )
    }

    /// Returns whether a later item has taken the place of one that had expired and could not be removed then (T15).
    fn is_superseded(
        &mut self,
        checked: &dyn CheckedPartition,
        item: &ExpectedItem,
        expected: &ExpectedEntry,
        found: &Bytes,
    ) -> Result<bool> {
        let Some(other) = number_of(expected.keyspace, &expected.key, found) else { return Ok(false) };
        Ok(self.is_later(checked, other, item)?
            && checked.policy(self.reader)?.is_expired(&item.header, self.now)
            && self.other_claimant(checked, item, expected, found)?.is_some())
    }

    /// Returns whether the version of another item is later than that of an item. A replace keeps its item's number, so
    /// numbers decide only if nothing else can be read.
    fn is_later(
        &self,
        checked: &dyn CheckedPartition,
        other: ItemNumber,
        than: &ExpectedItem,
    ) -> Result<bool> {
        let (keyspace, key) = Key::Item(checked.id(), other).encode();
        let Some(bytes) = self.reader.get(keyspace, &key)? else { return Ok(false) };
        Ok(match decode_header(other, &bytes) {
            Ok((header, _)) => header.sequence > than.header.sequence,
            Err(_) => other > than.number,
        })
    }

    /// Returns another item whose footprint has the same entry, if the entry leads to it. Entries whose key names their item
    /// have no other.
    fn other_claimant(
        &mut self,
        checked: &dyn CheckedPartition,
        item: &ExpectedItem,
        expected: &ExpectedEntry,
        found: &Bytes,
    ) -> Result<Option<String>> {
        let Some(number) = number_of(expected.keyspace, &expected.key, found) else { return Ok(None) };
        if number == item.number {
            return Ok(None);
        }
        Ok(match checked.look_up(self.reader, number)? {
            ItemState::Present(other) => has(&other, expected.keyspace, &expected.key).then_some(other.name),
            ItemState::Damaged(_) => Some(format!("item {}, which cannot be read", number.0)),
            ItemState::Absent => None,
        })
    }

    /// Compares the number of entries that a keyspace has of the partition with that of its items' footprints, and checks each
    /// entry if the numbers differ.
    pub(super) fn leading(
        &mut self,
        checked: &dyn CheckedPartition,
        keyspace: Keyspace,
        seen: &mut Seen,
    ) -> Result<()> {
        let (reader, clearing) = (self.reader, checked.clearing());
        let is_clearing =
            |key: &[u8]| keyspace == Keyspace::Index && clearing.iter().any(|prefix| key.starts_with(prefix));
        let all = KeyRange::prefix(keys::partition(checked.id()));
        let mut count = 0;
        for entry in reader.scan(keyspace, all.clone(), Direction::Forward) {
            count += u64::from(!is_clearing(&entry?.0));
        }
        let expected = seen.found.get(&keyspace).copied().unwrap_or_default();
        if count == expected && seen.is_sound(keyspace) {
            return Ok(());
        }
        let (label, mut last) = (checked.label(), None);
        for entry in reader.scan(keyspace, all, Direction::Forward) {
            let (key, value) = entry?;
            if !is_clearing(&key) && !self.belongs(checked, (keyspace, &key, &value), &label, &mut last)? {
                seen.wrong.push(keyspace);
                seen.wrong.dedup();
            }
        }
        Ok(())
    }

    /// Returns whether an entry belongs to an existing item; `last` is the item that was read before.
    fn belongs(
        &mut self,
        checked: &dyn CheckedPartition,
        (keyspace, key, value): (Keyspace, &Bytes, &Bytes),
        label: &str,
        last: &mut Option<(ItemNumber, ItemState)>,
    ) -> Result<bool> {
        let Some(number) = number_of(keyspace, key, value) else {
            self.book.refuse(Subject::Key, label, strange(keyspace, key), LOST_HERE);
            return Ok(false);
        };
        if last.as_ref().is_none_or(|(known, _)| *known != number) {
            *last = Some((number, checked.look_up(self.reader, number)?));
        }
        let standing = &last.as_ref().expect("it was just looked up").1;
        let remove = Fix::Remove(keyspace, key.to_vec());
        match standing {
            ItemState::Present(item) if has(item, keyspace, key) => Ok(true),
            // Its entries are kept.
            ItemState::Damaged(_) => Ok(true),
            ItemState::Present(item) => {
                let place = format!("{label}, {}", item.name);
                if let Some(renewal) = lost_touch(item, keyspace, key, checked.id()) {
                    self.book.fix(
                        Subject::Touch,
                        &place,
                        "the record of its last read is missing",
                        [renewal],
                    )?;
                    return Ok(false);
                }
                let what = format!("{} that it does not call for", a(keyspace));
                self.book.fix(subject(keyspace), &place, what, [remove])?;
                Ok(false)
            }
            ItemState::Absent if number.0 < watermark(self.reader, checked.id().0.to_be_bytes())? => {
                let what = format!("{} of item {}, which a watermark hides", a(keyspace), number.0);
                self.book.refuse(
                    subject(keyspace),
                    label,
                    what,
                    "whether the item exists is unknown; restore a backup",
                );
                Ok(false)
            }
            ItemState::Absent => {
                let what = format!("{} of item {}, which is not there", a(keyspace), number.0);
                self.book.fix(subject(keyspace), label, what, [remove])?;
                Ok(false)
            }
        }
    }
}

fn has(item: &ExpectedItem, keyspace: Keyspace, key: &[u8]) -> bool {
    item.entries.iter().any(|expected| expected.keyspace == keyspace && expected.key == key)
}

/// Returns the number of the item that an entry names.
fn number_of(keyspace: Keyspace, key: &[u8], value: &[u8]) -> Option<ItemNumber> {
    match keyspace {
        Keyspace::Id | Keyspace::Unique => keys::number_from_value(value).ok(),
        Keyspace::Queue => names::queue_key(key).map(|(_, _, number)| number),
        Keyspace::Feed => keys::feed_entry(key, value).ok().map(|(_, number)| number),
        _ => key.last_chunk().filter(|_| key.len() > 16).map(|bytes| ItemNumber(u64::from_be_bytes(*bytes))),
    }
}

/// Returns the renewal that a queue entry implies: the entry is where a read has put it, and the record of the renewal is
/// missing. Without the record the item would expire earlier than was promised.
fn lost_touch(item: &ExpectedItem, keyspace: Keyspace, key: &[u8], partition: PartitionId) -> Option<Fix> {
    let (queue, base, number) = names::queue_key(key).filter(|_| keyspace == Keyspace::Queue)?;
    let QueuePosition { queue: wanted, base: written } = item.header.ttl_position()?;
    let is_lost =
        item.header.slides() && item.header.renewed_at.is_none() && queue == wanted && base > written;
    let renewed_at = item.header.written_from().saturating_add(base.saturating_sub(written));
    let (keyspace, key) = Key::SlidingRenewal(partition, number).encode();
    is_lost.then(|| Fix::Put(keyspace, key, renewed_at.to_be_bytes().to_vec().into()))
}

fn subject(keyspace: Keyspace) -> Subject {
    match keyspace {
        Keyspace::Id => Subject::Id,
        Keyspace::Unique => Subject::Unique,
        Keyspace::Queue => Subject::Queue,
        Keyspace::Feed => Subject::Feed,
        Keyspace::Index => Subject::Index,
        Keyspace::Counter => Subject::Touch,
        _ => Subject::Item,
    }
}

fn entry(keyspace: Keyspace) -> &'static str {
    match keyspace {
        Keyspace::Id => "entry by id",
        Keyspace::Unique => "unique key",
        Keyspace::Queue => "position in an expiry queue",
        Keyspace::Feed => "event in the change feed",
        Keyspace::Index => "entry in an index",
        _ => "stored form",
    }
}

fn a(keyspace: Keyspace) -> String {
    let entry = entry(keyspace);
    let article = if entry.starts_with(['e', 'i']) { "an" } else { "a" };
    format!("{article} {entry}")
}

pub(super) fn strange(keyspace: Keyspace, key: &[u8]) -> String {
    let shown = &key[..key.len().min(40)];
    format!("a key of no known kind in keyspace {}: {shown:02x?}", keyspace.name())
}

/// Returns whether a queue is counted: that by `_ts` only serves queries.
pub(super) fn is_counted(queue: Queue) -> bool {
    queue != Queue::Stamp
}

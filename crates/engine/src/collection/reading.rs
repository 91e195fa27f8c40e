//! Reading collections: one snapshot and one `now` over as many of them as a request names (T16).
//!
//! Every item from a reading has passed the gate. Each request opens its own reading, so that it does not see items that have
//! expired since the last one.

use std::ops::{Bound, ControlFlow};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use bson::{RawDocument, ValueRef};
use bytes::Bytes;
use document::{ItemNumber, Sequence};
use storage::{Direction, KeyRange, Keyspace, Read, Snapshot, Time};

use super::document_keys::split_entry;
use super::{BsonRecord, Collection, LivingDocument, Workspace, keys};
use crate::Engine;
use crate::access::gate::{Gate, ScannedItem, Usage, View};
use crate::catalog::collection_indexes::{ID_INDEX, IndexList};
use crate::entries::mark::Mark;
use crate::keys::{self as all_keys, Key, PartitionId};
use crate::types::error::{Error, Result};
use crate::types::events;
use crate::types::request::QueryMetrics;

/// An entry of an index, of a living item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// The key, as the index's specification makes it of a document.
    pub key: Bytes,
    /// The item.
    pub number: ItemNumber,
}

/// Several collections as they are at one instant.
pub struct Reading<'a> {
    source: Source<'a>,
    gates: Vec<Gate>,
    /// For each gate the indexes, once they were read.
    indexes: Vec<OnceLock<Arc<IndexList>>>,
    now: Time,
    sequence: u64,
    touched: ReadFigures,
    aside: Aside,
}

/// Runs work that turns out long: other work may be waiting for the reader's thread.
pub type Aside = fn(&mut dyn FnMut());

/// The number of entries that may be examined before the work counts as long. Many of them may have expired.
const FEW_ENTRIES: usize = 256;

/// The living items and entries that a reading has examined; they are charged.
#[derive(Default)]
struct ReadFigures {
    entries: AtomicU64,
    items: AtomicU64,
    bytes: AtomicU64,
}

impl ReadFigures {
    fn item(&self, found: &LivingDocument) {
        self.items.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(found.document.as_bytes().len() as u64, Ordering::Relaxed);
    }
}

/// The state that is read: the store at a snapshot, or the draft of a transaction.
enum Source<'a> {
    Snapshot(Arc<dyn Snapshot>),
    Draft(&'a Workspace),
}

impl Engine {
    /// Opens collections for reading, all at one snapshot and one `now`.
    pub fn reading(&self, collections: &[&Arc<Collection>]) -> Result<Reading<'static>> {
        let mut partitions: Vec<_> = collections.iter().map(|it| Arc::clone(&it.partition)).collect();
        // All callers lock in the same order, and no lock twice.
        partitions.sort_by_key(|partition| partition.id);
        partitions.dedup_by_key(|partition| partition.id);
        let views = View::open_all(&*self.store, &partitions)?;
        let gates: Vec<Gate> = views.iter().map(|view| view.gate.clone()).collect();
        let (sequence, snapshot, now) = match views.into_iter().next() {
            Some(View { snapshot, gate, sequence, .. }) => (sequence, snapshot, gate.now),
            None => self.store.snapshot_now()?,
        };
        Ok(Reading::new(Source::Snapshot(snapshot), gates, now, sequence))
    }
}

impl<'a> Reading<'a> {
    /// Opens collections in the draft of a transaction, under the draft's rules.
    pub(super) fn of_draft(
        workspace: &'a Workspace,
        collections: &[&Arc<Collection>],
        sequence: u64,
    ) -> Result<Reading<'a>> {
        let gates = collections.iter().map(|collection| workspace.gate(collection));
        let gates = gates.collect::<Result<Vec<_>>>()?;
        Ok(Reading::new(Source::Draft(workspace), gates, workspace.now(), sequence))
    }

    fn new(source: Source<'a>, gates: Vec<Gate>, now: Time, sequence: u64) -> Reading<'a> {
        let indexes = gates.iter().map(|_| OnceLock::new()).collect();
        Reading {
            source,
            gates,
            indexes,
            now,
            sequence,
            touched: ReadFigures::default(),
            aside: |work| work(),
        }
    }

    /// Returns the same reading, with long work run by `aside`.
    #[must_use]
    pub fn stepping_aside(self, aside: Aside) -> Reading<'a> {
        Reading { aside, ..self }
    }

    /// Runs long work, so that other work need not wait for the thread.
    pub(crate) fn aside(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let mut outcome = Ok(());
        (self.aside)(&mut || outcome = work());
        outcome
    }

    /// Takes entries until `take` reports the last one; beyond the first few the work counts as long.
    fn each_entry<T>(
        &self,
        mut entries: impl Iterator<Item = Result<T>>,
        mut take: impl FnMut(T) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let mut take_some = |most: usize| -> Result<ControlFlow<()>> {
            for _ in 0..most {
                let Some(entry) = entries.next() else { return Ok(ControlFlow::Break(())) };
                if take(entry?)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            Ok(ControlFlow::Continue(()))
        };
        let mut outcome = take_some(FEW_ENTRIES);
        if matches!(outcome, Ok(ControlFlow::Continue(()))) {
            (self.aside)(&mut || outcome = take_some(usize::MAX));
        }
        outcome.map(drop)
    }

    /// Notes that the caller relies on an item of this reading: if it expires before the transaction that has read it commits, the
    /// transaction conflicts (T16). Outside of transactions this has no effect.
    pub fn rely_on(&self, collection: &Collection, number: ItemNumber) -> Result<()> {
        match &self.source {
            Source::Snapshot(_) => Ok(()),
            Source::Draft(workspace) => workspace.rely_on(collection, self.gate(collection)?, number),
        }
    }

    /// Returns the time of the reading.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Returns the last commit that is certainly in it.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Returns the items and entries examined so far; expired items are not counted (T21).
    pub fn metrics(&self) -> QueryMetrics {
        QueryMetrics {
            index_entries: self.touched.entries.load(Ordering::Relaxed),
            loaded_items: self.touched.items.load(Ordering::Relaxed),
            loaded_bytes: self.touched.bytes.load(Ordering::Relaxed),
            ..QueryMetrics::default()
        }
    }

    fn loaded(&self, record: BsonRecord) -> LivingDocument {
        let found = LivingDocument::from(record);
        self.touched.item(&found);
        found
    }

    /// Returns the living item of that `_id`.
    pub fn by_id(&self, collection: &Collection, id: ValueRef<'_>) -> Result<Option<LivingDocument>> {
        let gate = self.gate(collection)?;
        let found = gate.by_id_key(self.reader(), &collection.id_key(id))?;
        Ok(found.living().map(|record| self.loaded(record)))
    }

    /// Returns the living item of that number.
    pub fn by_number(&self, collection: &Collection, number: ItemNumber) -> Result<Option<LivingDocument>> {
        let found = self.gate(collection)?.by_number(self.reader(), number)?;
        Ok(found.living().map(|record| self.loaded(record)))
    }

    /// Returns the next living items in the order of their creation, or against it: up to so many, or until so many bytes are
    /// reached. None only if there are no more.
    pub fn natural(
        &self,
        collection: &Collection,
        after: Option<ItemNumber>,
        direction: Direction,
        max_items: usize,
        max_bytes: usize,
    ) -> Result<Vec<LivingDocument>> {
        let gate = self.gate(collection)?;
        let (mut all, mut bytes) = (Vec::new(), 0);
        self.each_entry(gate.items(self.reader(), after, direction), |item: ScannedItem<RawDocument>| {
            if let Some(record) = item.living {
                bytes += item.bytes;
                all.push(self.loaded(record));
            }
            Ok(enough(all.len() >= max_items || bytes >= max_bytes))
        })?;
        Ok(all)
    }

    /// Returns the next living items in the order of their last writes, behind a sequence: up to so many, or until so many bytes
    /// are reached. None only if there are no more.
    pub fn changes(
        &self,
        collection: &Collection,
        after: Sequence,
        max_items: usize,
        max_bytes: usize,
    ) -> Result<Vec<LivingDocument>> {
        let gate = self.gate(collection)?;
        let id = collection.partition.id;
        let range = KeyRange::prefix(all_keys::partition(id)).after(Key::Feed(id, after).encode().1);
        let (mut all, mut bytes) = (Vec::new(), 0);
        for entry in self.reader().scan(Keyspace::Feed, range, Direction::Forward) {
            if all.len() >= max_items || bytes >= max_bytes {
                break;
            }
            let (key, value) = entry?;
            let (_, number) = all_keys::feed_entry(&key, &value)?;
            if let Some(record) = gate.by_number::<RawDocument>(self.reader(), number)?.living() {
                bytes += record.body.as_bytes().len();
                all.push(self.loaded(record));
            }
        }
        Ok(all)
    }

    /// Returns the sequence after which [`changes`](Reading::changes) returns what comes after this reading.
    pub fn last_change(&self) -> Sequence {
        events::last_of_commit(self.sequence)
    }

    /// Returns the indexes as they are at the reading's snapshot: only these may be read through here.
    pub fn indexes(&self, collection: &Collection) -> Result<Arc<IndexList>> {
        let known = &self.indexes[self.place(collection)?];
        if let Some(known) = known.get() {
            return Ok(Arc::clone(known));
        }
        let list = collection.indexes_at(self.reader())?;
        Ok(Arc::clone(known.get_or_init(|| list)))
    }

    /// Returns the next living entries of an index between two keys, the first one included and the last one not, behind one of
    /// them in a direction: up to so many. An empty `upper` is the end of the index. None only if there are no more. The index must
    /// be one of [`indexes`](Reading::indexes) that is searchable.
    pub fn index(
        &self,
        collection: &Collection,
        number: u32,
        span: (&[u8], &[u8]),
        after: Option<&Hit>,
        direction: Direction,
        max_hits: usize,
    ) -> Result<Vec<Hit>> {
        let gate = self.gate(collection)?;
        let is_living = |number| Ok(gate.is_number_living(self.reader(), number)?.then_some(()));
        let hits = self.hits(collection, number, (span, after), direction, max_hits, is_living)?;
        Ok(hits.into_iter().map(|(hit, _)| hit).collect())
    }

    /// Returns the same entries for a reader that needs the items, too. An entry on `_id` does not show whether its item is living,
    /// so the item has to be read: it is returned with the entry and need not be looked up again.
    pub fn index_with_items(
        &self,
        collection: &Collection,
        number: u32,
        span: (&[u8], &[u8]),
        after: Option<&Hit>,
        direction: Direction,
        max_hits: usize,
    ) -> Result<Vec<(Hit, Option<LivingDocument>)>> {
        let gate = self.gate(collection)?;
        let load = |number| {
            let found = gate.by_number(self.reader(), number)?;
            Ok(found.living().map(|record| self.loaded(record)))
        };
        self.hits(collection, number, (span, after), direction, max_hits, load)
    }

    /// Returns living entries, with the result of `look` for the items that have to be read.
    fn hits<T>(
        &self,
        collection: &Collection,
        number: u32,
        (span, after): ((&[u8], &[u8]), Option<&Hit>),
        direction: Direction,
        max_hits: usize,
        look: impl Fn(ItemNumber) -> Result<Option<T>>,
    ) -> Result<Vec<(Hit, Option<T>)>> {
        let gate = self.gate(collection)?;
        let place = EntryRange::new(collection.partition.id, number);
        let range = place.range(span, after, direction);
        let mut hits = Vec::new();
        let entries = self.reader().scan(place.keyspace, range, direction);
        self.each_entry(entries.map(|entry| place.read(entry?)), |(hit, mark)| {
            let (is_living, looked) = if let Some(mark) = mark {
                (gate.is_living(self.reader(), hit.number, &mark)?, None)
            } else {
                let looked = look(hit.number)?;
                (looked.is_some(), looked)
            };
            if is_living {
                self.touched.entries.fetch_add(1, Ordering::Relaxed);
                hits.push((hit, looked));
            }
            Ok(enough(hits.len() >= max_hits))
        })?;
        Ok(hits)
    }

    /// Returns the figures of living items and of expired ones that are not purged, of a collection (T18).
    pub fn usage(&self, collection: &Collection) -> Result<Usage> {
        self.gate(collection)?.usage(self.reader())
    }

    pub(super) fn reader(&self) -> &dyn Read {
        match &self.source {
            Source::Snapshot(snapshot) => &**snapshot,
            Source::Draft(workspace) => workspace.draft(),
        }
    }

    pub(super) fn gate(&self, collection: &Collection) -> Result<&Gate> {
        Ok(&self.gates[self.place(collection)?])
    }

    /// Returns the position of the collection among those that are read.
    fn place(&self, collection: &Collection) -> Result<usize> {
        let id = collection.partition.id;
        let place = self.gates.iter().position(|gate| gate.partition == id);
        place.ok_or_else(|| {
            Error::invalid(format!("'{}' is not part of this reading", collection.namespace()))
        })
    }
}

fn enough(is_enough: bool) -> ControlFlow<()> {
    if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// The keyspace and prefix of an index's entries: those on `_id` are in `Id`, with the item's number as value, all others in `Index`.
struct EntryRange {
    keyspace: Keyspace,
    prefix: Vec<u8>,
}

impl EntryRange {
    fn new(partition: PartitionId, number: u32) -> EntryRange {
        if number == ID_INDEX {
            EntryRange { keyspace: Keyspace::Id, prefix: all_keys::partition(partition) }
        } else {
            EntryRange { keyspace: Keyspace::Index, prefix: keys::index(partition, number) }
        }
    }

    /// Returns the entries of a span behind one of them in a direction.
    fn range(&self, (lower, upper): (&[u8], &[u8]), after: Option<&Hit>, direction: Direction) -> KeyRange {
        let at = |key: &[u8]| [&self.prefix, key].concat();
        let mut range = KeyRange::prefix(self.prefix.clone());
        range.start = Bound::Included(at(lower));
        if !upper.is_empty() {
            range.end = Bound::Excluded(at(upper));
        }
        let after = after.map(|hit| match self.keyspace {
            Keyspace::Id => at(&hit.key),
            _ => [&at(&hit.key), &hit.number.0.to_be_bytes()[..]].concat(),
        });
        // An entry outside of the span does not make it wider.
        match (after, direction) {
            (Some(entry), Direction::Forward) if entry >= at(lower) => range.after(entry),
            (Some(entry), Direction::Backward) if upper.is_empty() || entry < at(upper) => {
                range.before(entry)
            }
            _ => range,
        }
    }

    /// Returns an entry, and its mark, if it has one.
    fn read(&self, (key, value): (Bytes, Bytes)) -> Result<(Hit, Option<Mark>)> {
        let at = self.prefix.len();
        if self.keyspace == Keyspace::Id {
            return Ok((Hit { key: key.slice(at..), number: all_keys::number_from_value(&value)? }, None));
        }
        let entry = split_entry(at, &key);
        let (key, number) = entry.ok_or_else(|| Error::Corrupt("an index key of wrong length".into()))?;
        Ok((Hit { key, number }, Some(Mark::decode(&value)?)))
    }
}

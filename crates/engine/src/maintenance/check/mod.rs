//! The integrity check: compares the store with what follows from its items and its catalog, and repairs derived entries.
//!
//! It reads everything at one snapshot, in bounded memory. The items are authoritative: entries that lead to them, order them or
//! count them are derived from them and can be rebuilt. Damage in anything else (an unreadable item, a record of the catalog,
//! evidence) is reported and left as it is.
//!
//! | file | what |
//! |---|---|
//! | `catalog.rs` | databases, containers, their rules; unknown partitions |
//! | `partition.rs` | the expected entries of a partition's items, for both APIs |
//! | `container.rs`, `collection.rs` | the same for a container's partition, and for a collection |
//! | `items.rs` | items, and the entries that lead to them |
//! | `figures.rs` | counters, shapes, purge cursors, holds, sliding renewals |
//! | `records.rs` | feeds of all versions, deletion records, receipts |
//! | `names.rs` | decoding of keys |
//! | `finding.rs` | findings, and the entries that repair them |
//!
//! A repair is the same pass with writes: it writes missing entries and removes surplus ones, in bounded transactions, and repeats
//! the pass until it finds none, because an error in a queue hides errors in its counters. No other process may write meanwhile.

mod catalog;
mod collection;
mod container;
mod figures;
mod finding;
mod items;
mod names;
mod partition;
mod records;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use storage::{Direction, KeyRange, Keyspace, Read, Store, Time};

use crate::Engine;
use crate::catalog::container::{Api, Container};
use crate::entries::counters;
use crate::keys;
use crate::types::error::{Error, Result};
use crate::write::container_schema::ContainerSchema;
use catalog::Layout;
pub use collection::CollectionCheck;
use finding::FindingLog;
pub use finding::{Finding, Remedy, Report, Subject};
use items::{LEADING, Seen};
use partition::{CheckedPartition, DuplicateKey, ExpectedItem, ItemState};

/// The most passes of a repair: each pass hides less from the next.
const WALKS_MAX: usize = 6;

/// The largest number of pairs of documents with one unique key that are reported for a collection.
const DUPLICATES_MAX: usize = 1000;

/// Why an entry of no known kind stays.
const LOST_HERE: &str = "this version writes no such key, so its meaning is unknown";

/// The progress of a check.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// The container or collection that is being checked.
    pub place: &'a str,
    /// Items checked so far,
    pub items: u64,
    /// of about so many.
    pub of: u64,
}

/// The result of a repair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    /// The findings of the first pass.
    pub before: Report,
    /// How many findings were repaired.
    pub repaired: u64,
    /// The remaining findings.
    pub after: Report,
}

/// Checks a whole store at one snapshot. A finding is not an error; a failed check is.
pub fn check(store: &dyn Store, progress: &mut dyn FnMut(Progress<'_>)) -> Result<Report> {
    Ok(walk(store, None, progress)?.0)
}

/// Repairs what is derived from the items, and checks again. No other process may write to the store meanwhile.
pub fn repair(store: &dyn Store, progress: &mut dyn FnMut(Progress<'_>)) -> Result<Repair> {
    let (mut before, mut repaired) = (None, 0);
    for _ in 0..WALKS_MAX {
        let (found, mended) = walk(store, Some(store), progress)?;
        repaired += mended;
        let before = before.get_or_insert_with(|| found.clone());
        if mended == 0 {
            return Ok(Repair { before: before.clone(), repaired, after: found });
        }
    }
    let after = walk(store, None, progress)?.0;
    Ok(Repair { before: before.unwrap_or_default(), repaired, after })
}

/// Makes one pass through the store, with repairs if wanted. Returns what was found, and how much of it was repaired.
fn walk(
    store: &dyn Store,
    pen: Option<&dyn Store>,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<(Report, u64)> {
    let (sequence, snapshot, now) = store.snapshot_now()?;
    let mut inspection = Inspection::new(&*snapshot, (sequence, now), FindingLog::new(pen), progress);
    inspection.all();
    let mut book = inspection.book;
    book.write()?;
    Ok((book.report, book.repaired))
}

/// One pass through the store.
struct Inspection<'a> {
    reader: &'a dyn Read,
    /// The last sequence that the store has issued.
    sequence: u64,
    now: Time,
    book: FindingLog<'a>,
    progress: &'a mut dyn FnMut(Progress<'_>),
    of: u64,
}

impl<'a> Inspection<'a> {
    fn new<'b: 'a>(
        reader: &'a dyn Read,
        (sequence, now): (u64, Time),
        book: FindingLog<'b>,
        progress: &'a mut dyn FnMut(Progress<'_>),
    ) -> Inspection<'a> {
        Inspection { reader, sequence, now, book, progress, of: 0 }
    }

    fn all(&mut self) {
        let mut layout = Layout::default();
        self.guarded("the catalog", "it", |me| {
            layout = me.catalog()?;
            Ok(())
        });
        for partition in &layout.checked {
            self.of += counters::total(self.reader, partition.id()).map_or(0, |total| total.items);
        }
        for partition in &layout.checked {
            self.partition(&**partition, &mut |_| ());
        }
        for (partition, name) in &layout.retired {
            let place = format!("collection '{name}', which is gone");
            self.guarded(&place, "its feed", |me| me.history_of(*partition, &place, Api::MongoDb));
        }
        self.guarded("the store", "a keyspace", |me| me.leftovers(&layout));
        self.guarded("the deletion records", "a record", |me| me.deletions(&layout));
        self.guarded("the receipts of sessions", "one", Inspection::receipts);
    }

    /// Checks one partition.
    fn partition(&mut self, partition: &dyn CheckedPartition, visit: &mut dyn FnMut(&ExpectedItem)) {
        let (label, mut seen) = (partition.label(), Seen::default());
        self.guarded(&label, "an item", |me| me.items(partition, &mut seen, visit));
        for keyspace in LEADING {
            let what = format!("keyspace {}", keyspace.name());
            self.guarded(&label, &what, |me| me.leading(partition, keyspace, &mut seen));
        }
        self.guarded(&label, "a counter", |me| me.figures(partition, &seen));
        self.guarded(&label, "its feed of all versions", |me| me.history(partition));
        self.guarded(&label, "a unique index", |me| me.duplicate_keys(partition));
    }

    /// Checks for pairs of living documents with one key of a unique index.
    fn duplicate_keys(&mut self, partition: &dyn CheckedPartition) -> Result<()> {
        let (reader, now, policy) = (self.reader, self.now, partition.policy(self.reader)?);
        let is_living = |number| {
            Ok(match partition.look_up(reader, number)? {
                ItemState::Present(item) => !policy.is_expired(&item.header, now),
                ItemState::Absent | ItemState::Damaged(_) => false,
            })
        };
        let mut found = Vec::new();
        partition.duplicate_keys(reader, &is_living, &mut |duplicate| {
            if found.len() < DUPLICATES_MAX {
                found.push(duplicate);
            }
        })?;
        for DuplicateKey { index, numbers: (first, second) } in found {
            let name = |number| match partition.look_up(reader, number) {
                Ok(ItemState::Present(item)) => item.name,
                _ => String::new(),
            };
            let what =
                format!("{} and {} have one key of the unique index '{index}'", name(first), name(second));
            let reason = "it is unknown which of them to keep; delete one of them";
            self.book.refuse(Subject::Unique, &partition.label(), what, reason);
        }
        Ok(())
    }

    /// Does a part of the check; its failure is a finding.
    fn guarded(&mut self, place: &str, what: &str, work: impl FnOnce(&mut Self) -> Result<()>) {
        if let Err(error) = work(self) {
            self.book.unreadable(place, what, &error);
        }
    }

    /// Counts another item.
    fn step(&mut self, place: &str) {
        self.book.report.items += 1;
        (self.progress)(Progress { place, items: self.book.report.items, of: self.of });
    }
}

impl Engine {
    /// Checks the whole store at one snapshot, while it is used.
    pub fn check(&self) -> Result<Report> {
        check(&*self.store, &mut |_| ())
    }

    /// Compares everything that the store has of a container with its items, and returns how many entries its index has, including
    /// those of generations being built or cleared. The first problem is an error. Reads all of it.
    pub fn check_index(&self, container: &Container) -> Result<u64> {
        let (sequence, snapshot, now) = self.store.snapshot_now()?;
        let (mut silent, mut entries) = (|_: Progress<'_>| (), 0);
        let mut inspection = Inspection::new(&*snapshot, (sequence, now), FindingLog::new(None), &mut silent);
        let container = Arc::new(container.clone());
        for partition in &container.partitions {
            let schema = ContainerSchema::open(&*snapshot, &container, partition)?;
            inspection.partition(&schema, &mut |_| ());
            let all = KeyRange::prefix(keys::partition(partition.id));
            entries += snapshot.scan(Keyspace::Index, all, Direction::Forward).count() as u64;
        }
        match inspection.book.report.told.first() {
            None => Ok(entries),
            Some(finding) => Err(Error::Corrupt(finding.to_string())),
        }
    }
}

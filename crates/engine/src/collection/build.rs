//! Building indexes over items that are there already, and clearing away dropped ones, in bounded steps.
//!
//! A step is one transaction. It brings the next items, in the order of their numbers, into all indexes whose builds stand at
//! the same place; writes keep what is in them meanwhile, and everything that is created later, so that a build ends however
//! fast items come in. Dead items that are not purged are brought in too: the purge removes an item's whole footprint and
//! need not know how far a build has come. They count for nothing, though: not in a unique index (T15), and a rule by date
//! leaves their headers alone.
//!
//! A TTL index on a date makes the headers of living items tell the date, without touching their sequence or `_ts`: nobody
//! has written them. The rule comes into force when the build is whole, under the partition's policy lock (see `gate`).
//!
//! A build that finds a duplicate, or a document that the index cannot hold, ends its index; whoever waits for it is told.
//! Steps go on after a restart, driven by the background.

use std::sync::Arc;

use mql::index::TtlRule;
use storage::{Direction, KeyRange, Keyspace, Lanes, Read, Transaction, transact};

use super::footprint::DocumentKeys;
use super::indexes::{Build, CollectionIndex, IndexList, IndexState};
use super::write::Desk;
use super::{BsonRecord, Collection, keys};
use crate::Engine;
use crate::catalog::change_policy;
use crate::error::{Error, Result};
use crate::expiry::{Change, Policy};
use crate::index::IndexReport;
use crate::keys as all_keys;
use crate::keys::Key;
use crate::limits::{DROP_CHUNK, INDEX_BUILD_BYTES, INDEX_BUILD_ENTRIES};

/// How far builds have come that somebody waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuildProgress {
    /// Whether all of them are ready.
    pub done: bool,
    /// Items brought in so far by the first that is not,
    pub built: u64,
    /// of so many.
    pub total: u64,
}

impl Engine {
    /// Does a bounded piece of the builds of a collection, at most `limit` items, and tells of those with these numbers. An
    /// error if one of them has failed: then it is gone.
    pub fn build_indexes_step(
        &self,
        collection: &Arc<Collection>,
        numbers: &[u32],
        limit: usize,
    ) -> Result<BuildProgress> {
        let list = collection.indexes();
        let is_building = |index: &&CollectionIndex| index.state != IndexState::Ready;
        if list.iter().any(|index| is_building(&index)) {
            self.index_work(collection, limit)?;
        }
        if let Some(error) = collection.known.failure(numbers) {
            return Err(error);
        }
        let list = collection.indexes();
        let waiting = list.iter().filter(is_building).find(|index| numbers.contains(&index.number));
        Ok(match waiting.map(|index| index.state) {
            Some(IndexState::Building(Build { built, total, .. })) => {
                BuildProgress { done: false, built, total }
            }
            Some(IndexState::Ready) | None => BuildProgress { done: true, built: 0, total: 0 },
        })
    }

    /// Builds or clears away a bounded piece of one collection's indexes.
    pub(crate) fn collection_index_step(&self, limit: usize) -> Result<IndexReport> {
        let catalog = self.catalog();
        let waiting = catalog.collections.values().filter(|collection| collection.known.get().has_work());
        let mut waiting: Vec<_> = waiting.collect();
        let mut last = self.collection_turn.lock();
        waiting.sort_by_key(|collection| (Some(collection.partition.id) <= *last, collection.partition.id));
        let Some(&collection) = waiting.first() else { return Ok(IndexReport::default()) };
        *last = Some(collection.partition.id);
        drop(last);
        let entries = self.index_work(collection, limit)?;
        let more = waiting.len() > 1 || collection.known.get().has_work();
        Ok(IndexReport { entries, more })
    }

    /// One piece of work on a collection's indexes; says how many entries it touched.
    fn index_work(&self, collection: &Arc<Collection>, limit: usize) -> Result<u64> {
        let list = collection.indexes();
        let is_whole =
            |index: &CollectionIndex| matches!(index.state, IndexState::Building(build) if build.is_whole());
        if list.iter().any(is_whole) {
            return match self.put_into_service(collection) {
                Ok(()) => Ok(0),
                Err(Error::OwnerNotFound { .. }) => Ok(forget(collection)),
                Err(error) => Err(error),
            };
        }
        let (working, limit) = (Arc::clone(collection), limit.max(1));
        let lane = Lanes::one(u64::from(collection.partition.id.0));
        let worked = transact(&*self.store, lane, move |tx| work(tx, &working, limit)).wait();
        let Worked { list, policy, entries, failed } = match worked {
            Err(Error::OwnerNotFound { .. }) => return Ok(forget(collection)),
            worked => worked?,
        };
        if let Some((numbers, error)) = failed {
            collection.known.fail(&numbers, &error);
        }
        if let Some(policy) = policy {
            collection.partition.install(policy);
        }
        collection.known.install(list);
        Ok(entries)
    }

    /// Lets queries use the indexes whose builds are whole, and puts their rules into force.
    fn put_into_service(&self, collection: &Arc<Collection>) -> Result<()> {
        let _change = self.changes.lock();
        let partition = &collection.partition;
        // Readers wait from before the change takes its time until it is in force: see `gate`.
        let mut lock = partition.policy.write();
        let working = Arc::clone(collection);
        let (list, policy) = self.change(move |tx| put_into_service(tx, &working))?;
        *lock = Arc::new(policy);
        drop(lock);
        collection.known.install(list);
        partition.next_look.at_once();
        self.alarm.ring();
        Ok(())
    }
}

/// The collection is gone, and with it everything that was to be done.
fn forget(collection: &Collection) -> u64 {
    let mut gone = IndexList::new(&collection.definition.collation);
    gone.version = u64::MAX;
    collection.known.install(Arc::new(gone));
    0
}

/// What one piece of work did.
struct Worked {
    list: Arc<IndexList>,
    policy: Option<Policy>,
    entries: u64,
    failed: Option<(Vec<u32>, Error)>,
}

fn work(tx: &mut Transaction<'_>, collection: &Arc<Collection>, limit: usize) -> Result<Worked> {
    let desk = Desk::open(tx, collection)?;
    let building = desk.list.iter().find_map(|index| match index.state {
        IndexState::Building(build) if !build.is_whole() => Some(build),
        _ => None,
    });
    match building {
        // What makes room does not wait for what needs it.
        Some(build) if tx.require_room().is_ok() || desk.list.clearing.is_empty() => {
            build_step(tx, &desk, build, limit)
        }
        Some(_) | None => clear_step(tx, &desk, limit),
    }
}

/// The indexes whose builds stand at the same place.
fn is_in_step(index: &CollectionIndex, build: Build) -> bool {
    matches!(index.state, IndexState::Building(other) if (other.through, other.until) == (build.through, build.until))
}

/// Brings the next items into the indexes of a build, or ends them if one cannot hold an item.
fn build_step(tx: &mut Transaction<'_>, desk: &Desk, build: Build, limit: usize) -> Result<Worked> {
    let id = desk.gate.partition;
    let mut list = (*desk.list).clone();
    let numbers: Vec<u32> =
        list.iter().filter(|index| is_in_step(index, build)).map(|index| index.number).collect();
    match bring_in(tx, desk, build, &numbers, limit) {
        Ok((next, entries)) => {
            for index in list.indexes.iter_mut().filter(|index| numbers.contains(&index.number)) {
                index.state = IndexState::Building(next);
            }
            desk.add_traits(&mut list);
            list.store(tx, id);
            Ok(Worked { list: Arc::new(list), policy: None, entries, failed: None })
        }
        Err(error @ (Error::DuplicateKey { .. } | Error::Language(_) | Error::TooLarge { .. })) => {
            list.indexes.retain(|index| !numbers.contains(&index.number));
            list.clearing.extend(&numbers);
            list.store(tx, id);
            // Their rules have killed nobody, so nobody can tell when they go.
            let changes: Vec<Change> = numbers.iter().map(|&id| Change::DropRule { id }).collect();
            let policy = Some(change_policy(tx, id, &changes)?);
            Ok(Worked { list: Arc::new(list), policy, entries: 0, failed: Some((numbers, error)) })
        }
        Err(error) => Err(error),
    }
}

fn bring_in(
    tx: &mut Transaction<'_>,
    desk: &Desk,
    mut build: Build,
    numbers: &[u32],
    limit: usize,
) -> Result<(Build, u64)> {
    let id = desk.gate.partition;
    let bound = |number| Key::Item(id, number).encode().1;
    let range = KeyRange::prefix(all_keys::partition(id));
    let range = if build.through.0 == 0 { range } else { range.after(bound(build.through)) };
    let range = range.before([bound(build.until), vec![0]].concat());
    let (mut records, mut bytes) = (Vec::new(), 0);
    for entry in tx.scan(Keyspace::Item, range, Direction::Forward).take(limit) {
        let (key, value) = entry?;
        bytes += value.len();
        records.push(BsonRecord::decode(all_keys::item_number(&key)?, &value)?);
        if bytes > INDEX_BUILD_BYTES {
            break;
        }
    }
    let exhausted = records.len() < limit && bytes <= INDEX_BUILD_BYTES;
    let (mut entries, mut all) = (0, true);
    for record in records {
        if entries >= INDEX_BUILD_ENTRIES {
            all = false;
            break;
        }
        entries += desk.bring_in(tx, &record, numbers)?;
        build.through = record.number;
        build.built += 1;
    }
    if exhausted && all {
        build.through = build.until;
    }
    Ok((build, entries as u64))
}

impl Desk {
    /// Brings one stored item into some indexes; returns how many entries it has there.
    fn bring_in(&self, tx: &mut Transaction<'_>, record: &BsonRecord, numbers: &[u32]) -> Result<usize> {
        let was_in = |index: &CollectionIndex| index.has(record.number);
        let is_in = |index: &CollectionIndex| was_in(index) || numbers.contains(&index.number);
        let is_living = !self.gate.policy.is_dead(&record.header, self.gate.now);
        // An item that only a suspect clock calls expired may come back (T34), and must have its date and its keys then.
        let may_live = !self.gate.may_destroy(tx, &record.header);
        let document_keys = match (is_living, may_live) {
            (true, _) => DocumentKeys::extract(&self.list, &record.body, is_in)?,
            (false, true) => {
                DocumentKeys::extract(&self.list, &record.body, is_in).map_err(without_contents)?
            }
            (false, false) => DocumentKeys::stored(&self.list, &record.body, is_in),
        };
        let mut next = record.clone();
        for number in numbers {
            let Some(index) = self.list.get(*number) else { continue };
            if is_living {
                self.check_unique(tx, index, &document_keys, record)?;
            }
            if may_live && matches!(index.spec.ttl_rule(), Some(TtlRule::Field { .. })) {
                let date = index.spec.earliest_date(record.body.view());
                next.header.bases = self.gate.policy.rebase(&next.header, *number, date);
            }
        }
        let before = self.footprint_in(record, &document_keys, was_in);
        let after = self.footprint_in(&next, &document_keys, is_in);
        self.note_traits(&document_keys, bson::ValueRef::Null);
        let entries = numbers.iter().map(|number| document_keys.of(*number).len()).sum();
        after.replace(before, tx)?;
        Ok(entries)
    }
}

/// The error about a hidden item that an index cannot hold: what is in the item is not told (T14).
fn without_contents(error: Error) -> Error {
    match error {
        Error::Language(error) => Error::Language(mql::Error::new(
            error.code,
            "the index cannot hold a document that a suspect clock calls expired: accept or reject the clock's time first",
        )),
        other => other,
    }
}

fn put_into_service(
    tx: &mut Transaction<'_>,
    collection: &Arc<Collection>,
) -> Result<(Arc<IndexList>, Policy)> {
    let desk = Desk::open(tx, collection)?;
    let mut list = (*desk.list).clone();
    let mut changes = Vec::new();
    for index in &mut list.indexes {
        if matches!(index.state, IndexState::Building(build) if build.is_whole()) {
            index.state = IndexState::Ready;
            changes.extend(rule_in_force(index));
        }
    }
    list.store(tx, desk.gate.partition);
    let policy = change_policy(tx, desk.gate.partition, &changes)?;
    Ok((Arc::new(list), policy))
}

/// The change that puts the rule of a TTL index into force.
pub(super) fn rule_in_force(index: &CollectionIndex) -> Option<Change> {
    match index.spec.ttl_rule()? {
        TtlRule::Field { seconds } => {
            Some(Change::SetDelay { id: index.number, delay_ms: i64::from(seconds).saturating_mul(1000) })
        }
        TtlRule::Collection { .. } | TtlRule::Ineffective => None,
    }
}

/// Removes the next entries of the first index that is to be cleared away.
fn clear_step(tx: &mut Transaction<'_>, desk: &Desk, limit: usize) -> Result<Worked> {
    let mut list = (*desk.list).clone();
    let Some(&number) = list.clearing.first() else {
        return Ok(Worked { list: Arc::clone(&desk.list), policy: None, entries: 0, failed: None });
    };
    let room = limit.clamp(1, DROP_CHUNK);
    let range = KeyRange::prefix(keys::index(desk.gate.partition, number));
    let range = if list.cleared.is_empty() { range } else { range.after(list.cleared.clone()) };
    let scan = tx.scan(Keyspace::Index, range, Direction::Forward).take(room);
    let doomed = scan.map(|entry| Ok(entry?.0)).collect::<Result<Vec<_>>>()?;
    let entries = doomed.len();
    for key in doomed {
        list.cleared = key.to_vec();
        tx.remove(Keyspace::Index, key.to_vec());
    }
    if entries < room {
        list.clearing.remove(0);
        list.cleared.clear();
    }
    list.store(tx, desk.gate.partition);
    Ok(Worked { list: Arc::new(list), policy: None, entries: entries as u64, failed: None })
}

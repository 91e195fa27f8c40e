//! Builds indexes of collections over existing items, and removes the entries of dropped ones, in bounded steps
//! ([`index::build`](crate::index::build)).
//!
//! A step is one transaction. It adds the next items, in the order of their numbers, to all indexes whose builds are at the same
//! position. Meanwhile writes maintain the items that are in them, and all items created later, so that a build ends however
//! fast items are inserted. Expired items that are not purged are added too, but have no effect: neither in a unique index
//! (T15) nor by a date rule, which leaves their headers alone.
//!
//! The build of a TTL index on a date puts the date into the headers of living items, without a change of their sequence or
//! `_ts`: that is not a write. The rule comes into force when the build is complete, under the partition's policy lock (see
//! `gate`).
//!
//! A build that finds a duplicate, or a document that the index cannot hold, drops its index; a caller that waits for it gets the error.
//! After a restart the background work continues the steps.

use std::sync::Arc;

use mql::index::TtlRule;
use storage::{Keyspace, Lanes, Transaction, transact};

use super::document_keys::DocumentKeys;
use super::schema::CollectionContext;
use super::{BsonRecord, Collection, keys};
use crate::Engine;
use crate::catalog::collection_indexes::{CollectionIndex, IndexList, IndexState};
use crate::entries::traces::Traces;
use crate::expiry::{Change, Policy};
use crate::index::Build;
use crate::index::build::{BuiltPiece, build_now, clear_piece};
use crate::schema::policies::change_policy;
use crate::types::error::{Error, Result};
use crate::types::index_report::IndexReport;
use crate::types::limits::DROP_CHUNK;

/// The progress of builds that a caller waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuildProgress {
    /// Whether all of them are ready.
    pub done: bool,
    /// Items added so far by the first that is not,
    pub built: u64,
    /// of this many.
    pub total: u64,
}

impl Engine {
    /// Does a bounded part of the builds of a collection, at most `limit` items, and returns the progress of those with these
    /// numbers. An error if one of them has failed: its index was dropped.
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

    /// Builds or clears a bounded part of one collection's indexes.
    pub(crate) fn collection_index_step(&self, limit: usize) -> Result<IndexReport> {
        let catalog = self.catalog();
        let waiting = catalog.collections.values().filter(|collection| collection.known.get().has_work());
        let next = self.collection_turn.next(waiting, |collection| collection.partition.id);
        let Some((collection, others)) = next else { return Ok(IndexReport::default()) };
        let entries = self.index_work(collection, limit)?;
        let more = others > 0 || collection.known.get().has_work();
        Ok(IndexReport { entries, more })
    }

    /// Does one piece of work on a collection's indexes; returns how many entries it changed.
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

    /// Lets queries use the indexes whose builds are complete, and puts their rules into force.
    fn put_into_service(&self, collection: &Arc<Collection>) -> Result<()> {
        let _change = self.changes.lock();
        let partition = &collection.partition;
        // Readers wait from before the change takes its time until it is in force; see `gate`.
        let mut lock = partition.policy.write();
        let working = Arc::clone(collection);
        let (list, policy) = self.change(move |tx| put_into_service(tx, &working))?;
        *lock = Arc::new(policy);
        drop(lock);
        collection.known.install(list);
        partition.next_due.at_once();
        self.alarm.ring();
        Ok(())
    }
}

/// Drops the state of a collection that was dropped with all pending work; returns 0.
fn forget(collection: &Collection) -> u64 {
    let mut gone = IndexList::new(&collection.definition.collation);
    gone.version = u64::MAX;
    collection.known.install(Arc::new(gone));
    0
}

/// The result of one piece of work.
struct Worked {
    list: Arc<IndexList>,
    policy: Option<Policy>,
    entries: u64,
    failed: Option<(Vec<u32>, Error)>,
}

fn work(tx: &mut Transaction<'_>, collection: &Arc<Collection>, limit: usize) -> Result<Worked> {
    let context = CollectionContext::open(tx, collection)?;
    let building = context.schema.list().iter().find_map(|index| match index.state {
        IndexState::Building(build) if !build.is_whole() => Some(build),
        _ => None,
    });
    match build_now(tx, building, &context.schema.list().clearing) {
        Some(build) => build_step(tx, &context, build, limit),
        None => clear_step(tx, &context, limit),
    }
}

/// Returns whether an index is being built and its build is at this position.
fn is_in_step(index: &CollectionIndex, build: Build) -> bool {
    matches!(index.state, IndexState::Building(other) if (other.through, other.until) == (build.through, build.until))
}

/// Adds the next items to the indexes of a build, or ends the builds if an index cannot hold an item.
fn build_step(
    tx: &mut Transaction<'_>,
    context: &CollectionContext,
    build: Build,
    limit: usize,
) -> Result<Worked> {
    let id = context.gate.partition;
    let mut list = (**context.schema.list()).clone();
    let numbers: Vec<u32> =
        list.iter().filter(|index| is_in_step(index, build)).map(|index| index.number).collect();
    let piece = build.piece(tx, id, limit, |tx, record| context.bring_in(tx, record, &numbers));
    match piece {
        Ok(BuiltPiece { build, entries, is_last, .. }) => {
            let next = if is_last { Build { through: build.until, ..build } } else { build };
            for index in list.indexes.iter_mut().filter(|index| numbers.contains(&index.number)) {
                index.state = IndexState::Building(next);
            }
            context.schema.add_traits(&mut list);
            list.store(tx, id);
            let (list, entries) = (Arc::new(list), entries as u64);
            Ok(Worked { list, policy: None, entries, failed: None })
        }
        Err(error @ (Error::DuplicateKey { .. } | Error::Language(_) | Error::TooLarge { .. })) => {
            list.indexes.retain(|index| !numbers.contains(&index.number));
            list.clearing.extend(&numbers);
            list.store(tx, id);
            // Their rules were never in force, so removing them changes no item's expiry.
            let changes: Vec<Change> = numbers.iter().map(|&id| Change::DropRule { id }).collect();
            let policy = Some(change_policy(tx, id, &changes)?);
            Ok(Worked { list: Arc::new(list), policy, entries: 0, failed: Some((numbers, error)) })
        }
        Err(error) => Err(error),
    }
}

impl CollectionContext {
    /// Adds one stored item to some indexes; returns how many entries it has there.
    fn bring_in(&self, tx: &mut Transaction<'_>, record: &BsonRecord, numbers: &[u32]) -> Result<usize> {
        let (list, was_in) = (self.schema.list(), |index: &CollectionIndex| index.has(record.number));
        let is_in = |index: &CollectionIndex| was_in(index) || numbers.contains(&index.number);
        let is_living = !self.gate.policy.is_expired(&record.header, self.gate.now);
        // An item that only a suspect clock calls expired may become visible again (T34), and must have its date and its keys then.
        let may_live = !self.gate.may_destroy(tx, &record.header);
        let document_keys = match (is_living, may_live) {
            (true, _) => DocumentKeys::extract(list, &record.body, is_in)?,
            (false, true) => DocumentKeys::extract(list, &record.body, is_in).map_err(without_contents)?,
            (false, false) => DocumentKeys::stored(list, &record.body, is_in),
        };
        let mut next = record.clone();
        for number in numbers {
            let Some(index) = list.get(*number) else { continue };
            if is_living {
                self.schema.check_unique(tx, &self.gate, index, &document_keys, record)?;
            }
            if may_live && matches!(index.spec.ttl_rule(), Some(TtlRule::Field { .. })) {
                let date = index.spec.earliest_date(record.body.view());
                next.header.bases = self.gate.policy.rebase(&next.header, *number, date);
            }
        }
        // A build is charged to no request.
        let traces = |record| Traces::new(self.gate.partition, record);
        let before = self.schema.footprint_in(traces(record), record, &document_keys, was_in, None);
        let after = self.schema.footprint_in(traces(&next), &next, &document_keys, is_in, None);
        self.schema.note_traits(&document_keys);
        let entries = numbers.iter().map(|number| document_keys.of(*number).len()).sum();
        after.replace(before, tx)?;
        Ok(entries)
    }
}

/// Returns the error about a hidden item that an index cannot hold: it does not reveal the item's content (T14).
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
    let context = CollectionContext::open(tx, collection)?;
    let mut list = (**context.schema.list()).clone();
    let mut changes = Vec::new();
    for index in &mut list.indexes {
        if matches!(index.state, IndexState::Building(build) if build.is_whole()) {
            index.state = IndexState::Ready;
            changes.extend(rule_in_force(index));
        }
    }
    list.store(tx, context.gate.partition);
    let policy = change_policy(tx, context.gate.partition, &changes)?;
    Ok((Arc::new(list), policy))
}

/// Returns the change that puts the rule of a TTL index into force.
pub(super) fn rule_in_force(index: &CollectionIndex) -> Option<Change> {
    match index.spec.ttl_rule()? {
        TtlRule::Field { seconds } => {
            Some(Change::SetDelay { id: index.number, delay_ms: i64::from(seconds).saturating_mul(1000) })
        }
        TtlRule::Collection { .. } | TtlRule::Ineffective => None,
    }
}

/// Removes the next entries of the first dropped index.
fn clear_step(tx: &mut Transaction<'_>, context: &CollectionContext, limit: usize) -> Result<Worked> {
    let mut list = (**context.schema.list()).clone();
    let Some(&number) = list.clearing.first() else {
        return Ok(Worked {
            list: Arc::clone(context.schema.list()),
            policy: None,
            entries: 0,
            failed: None,
        });
    };
    let room = limit.clamp(1, DROP_CHUNK);
    let prefix = keys::index(context.gate.partition, number);
    let entries = clear_piece(tx, Keyspace::Index, prefix, &mut list.cleared, room)?;
    if entries < room {
        list.clearing.remove(0);
        list.cleared.clear();
    }
    list.store(tx, context.gate.partition);
    Ok(Worked { list: Arc::new(list), policy: None, entries: entries as u64, failed: None })
}

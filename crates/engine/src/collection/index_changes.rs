//! Creates, drops and changes indexes: one commit each, whatever the number of items; builds follow in steps.
//!
//! A TTL index on `_ts` has no entries: it is the collection's `D` (T26). A TTL index on another field is an ordinary index
//! with a rule by date (T27).

use std::sync::Arc;

use document::ItemNumber;
use mql::index::{IndexSpec, Relation, TtlRule, compare_specs};
use parking_lot::RwLockWriteGuard;
use storage::{Lanes, Transaction, transact};

use super::Collection;
use super::build::rule_in_force;
use super::schema::CollectionContext;
use crate::Engine;
use crate::catalog::collection_indexes::{CollectionIndex, ID_INDEX, IndexList, IndexState};
use crate::definition::DefaultTtl;
use crate::entries::counters;
use crate::expiry::{Change, Policy};
use crate::index::Build;
use crate::keys::PartitionId;
use crate::schema::guard::{Consent, change_policies};
use crate::types::error::{Error, Result};
use crate::types::events;
use crate::types::limits::INDEXES_MAX;

impl Engine {
    /// Does what [`create_indexes_with`](Engine::create_indexes_with) does, without consent.
    pub fn create_indexes(&self, collection: &Arc<Collection>, specs: Vec<IndexSpec>) -> Result<Vec<u32>> {
        self.create_indexes_with(collection, specs, Consent::NotGiven)
    }

    /// Creates indexes and returns their numbers; an existing one is returned as it is. Indexes of a collection with items
    /// are built in steps, by a caller of [`build_indexes_step`](Engine::build_indexes_step) or in the background.
    pub fn create_indexes_with(
        &self,
        collection: &Arc<Collection>,
        specs: Vec<IndexSpec>,
        consent: Consent,
    ) -> Result<Vec<u32>> {
        self.change_indexes(collection, consent, move |tx, context, list| {
            let mut changes = Vec::new();
            let numbers = add_all(tx, context.gate.partition, list, specs, &mut changes)?;
            Ok((numbers, changes))
        })
    }

    /// Replaces all indexes of a collection, except that on `_id`, by a list and returns their numbers. Indexes that are in the list
    /// unchanged stay. All or nothing; builds follow as they do for [`create_indexes_with`](Engine::create_indexes_with).
    pub fn replace_indexes(
        &self,
        collection: &Arc<Collection>,
        specs: Vec<IndexSpec>,
        consent: Consent,
    ) -> Result<Vec<u32>> {
        self.change_indexes(collection, consent, move |tx, context, list| {
            let mut changes = Vec::new();
            let wanted: Vec<_> = specs.iter().map(IndexSpec::to_document).collect();
            let stays = |spec: &IndexSpec| spec.is_id() || wanted.contains(&spec.to_document());
            for index in context.schema.list().iter().filter(|index| !stays(&index.spec)) {
                remove(list, index, &mut changes);
            }
            let numbers = add_all(tx, context.gate.partition, list, specs, &mut changes)?;
            Ok((numbers, changes))
        })
    }

    /// Drops indexes by their numbers. That on `_id` stays.
    pub fn drop_indexes(&self, collection: &Arc<Collection>, numbers: &[u32]) -> Result<()> {
        let numbers = numbers.to_vec();
        self.change_indexes(collection, Consent::NotGiven, move |_, _, list| {
            let mut changes = Vec::new();
            for number in numbers {
                if number == ID_INDEX {
                    return Err(Error::invalid("the index on _id cannot be dropped"));
                }
                let index = list.get(number).cloned();
                let index = index.ok_or_else(|| Error::NotFound { what: format!("index {number}") })?;
                remove(list, &index, &mut changes);
            }
            Ok(((), changes))
        })
    }

    /// Does what [`change_index_with`](Engine::change_index_with) does, without consent.
    pub fn change_index(&self, collection: &Arc<Collection>, number: u32, spec: IndexSpec) -> Result<u32> {
        self.change_index_with(collection, number, spec, Consent::NotGiven)
    }

    /// Gives an index another specification of the same key: hidden or not, another number of seconds. Returns its number, which
    /// is a new one if the index has become a TTL index and must be built again.
    pub fn change_index_with(
        &self,
        collection: &Arc<Collection>,
        number: u32,
        spec: IndexSpec,
        consent: Consent,
    ) -> Result<u32> {
        self.change_indexes(collection, consent, move |tx, context, list| {
            let missing = || Error::NotFound { what: format!("index {number}") };
            let position =
                list.indexes.iter().position(|index| index.number == number).ok_or_else(missing)?;
            let before = list.indexes[position].clone();
            let mut changes = Vec::new();
            let is_dated = |spec: &IndexSpec| matches!(spec.ttl_rule(), Some(TtlRule::Field { .. }));
            if is_dated(&before.spec) != is_dated(&spec)
                || before.spec.is_collection_ttl() != spec.is_collection_ttl()
            {
                remove(list, &before, &mut changes);
                let number = add(tx, context.gate.partition, list, spec, &mut changes)?;
                return Ok((number, changes));
            }
            let after = CollectionIndex { spec: Arc::new(spec), ..before };
            if let Some(TtlRule::Collection { seconds }) = after.spec.ttl_rule() {
                changes.push(Change::DefaultTtl(default_ttl(seconds)));
            }
            if after.state == IndexState::Ready {
                changes.extend(rule_in_force(&after));
            }
            list.indexes[position] = after;
            Ok((number, changes))
        })
    }

    /// Changes the list of indexes and the rules that depend on it, in one commit.
    fn change_indexes<R: Send + 'static>(
        &self,
        collection: &Arc<Collection>,
        consent: Consent,
        change: impl FnOnce(&mut Transaction<'_>, &CollectionContext, &mut IndexList) -> Result<(R, Vec<Change>)>
        + Send
        + 'static,
    ) -> Result<R> {
        let _change = self.changes.lock();
        let current = self.current(collection)?;
        let partition = &current.partition;
        // Readers wait from before the change takes its time until it is in force; see `gate`.
        let mut lock: RwLockWriteGuard<'_, Arc<Policy>> = partition.policy.write();
        let changing = Arc::clone(&current);
        let changed = transact(&*self.store, Lanes::all(), move |tx| {
            let context = CollectionContext::open(tx, &changing)?;
            let mut list = (**context.schema.list()).clone();
            let (answer, changes) = change(tx, &context, &mut list)?;
            list.store(tx, context.gate.partition);
            let policies = change_policies(tx, &[context.gate.partition], &changes, consent)?;
            Ok::<_, Error>((answer, list, policies))
        });
        let (answer, list, policies) = changed.wait()?;
        *lock = policies.into_iter().next().map(Arc::new).expect("one partition has one policy");
        drop(lock);
        current.known.install(Arc::new(list));
        partition.next_due.at_once();
        self.alarm.ring();
        Ok(answer)
    }
}

/// Returns the number of exactly this index, if it exists; an error if it conflicts with an existing one.
fn existing(list: &IndexList, spec: &IndexSpec) -> Result<Option<u32>> {
    let mut found = None;
    for index in list.iter() {
        match compare_specs(&index.spec, spec) {
            Relation::Different => {}
            Relation::Identical => found = Some(index.number),
            Relation::Conflict(error) => return Err(Error::Language(error)),
        }
    }
    Ok(found)
}

/// Adds the missing indexes to the list; returns the numbers of all of them.
fn add_all(
    tx: &Transaction<'_>,
    partition: PartitionId,
    list: &mut IndexList,
    specs: Vec<IndexSpec>,
    changes: &mut Vec<Change>,
) -> Result<Vec<u32>> {
    let add_missing = |spec| match existing(list, &spec)? {
        Some(number) => Ok(number),
        None => add(tx, partition, list, spec, changes),
    };
    specs.into_iter().map(add_missing).collect()
}

/// Adds an index to the list, and the change of the rules that follows to `changes`.
fn add(
    tx: &Transaction<'_>,
    partition: PartitionId,
    list: &mut IndexList,
    spec: IndexSpec,
    changes: &mut Vec<Change>,
) -> Result<u32> {
    if list.indexes.len() >= INDEXES_MAX {
        let (actual, limit) = (list.indexes.len() + 1, INDEXES_MAX);
        return Err(Error::TooLarge { what: "the number of indexes", actual, limit });
    }
    let next = list.last.checked_add(1);
    list.last = next.ok_or_else(|| Error::Unavailable("no more numbers for indexes".into()))?;
    let total = counters::total(tx, partition)?.items;
    let state = if total == 0 || spec.is_collection_ttl() {
        IndexState::Ready
    } else {
        // Its build will need the space. After this error the index must not exist, or its rule would expire items later on.
        tx.require_free_space()?;
        // Every item created from now on has a higher number.
        let until = ItemNumber(events::last_of_commit(tx.last_sequence()).0);
        IndexState::Building(Build::begin(until, total))
    };
    let index = CollectionIndex::new(list.last, Arc::new(spec), state);
    match index.spec.ttl_rule() {
        Some(TtlRule::Collection { seconds }) => changes.push(Change::DefaultTtl(default_ttl(seconds))),
        Some(TtlRule::Field { .. }) => {
            changes.push(Change::AddRule { id: index.number });
            if index.state == IndexState::Ready {
                changes.extend(rule_in_force(&index));
            }
        }
        Some(TtlRule::Ineffective) | None => {}
    }
    list.indexes.push(index);
    Ok(list.last)
}

/// Removes an index from the list, and adds the change of the rules that follows to `changes`.
fn remove(list: &mut IndexList, index: &CollectionIndex, changes: &mut Vec<Change>) {
    list.indexes.retain(|other| other.number != index.number);
    if index.has_entries() {
        list.clearing.push(index.number);
    }
    match index.spec.ttl_rule() {
        Some(TtlRule::Collection { .. }) => changes.push(Change::DefaultTtl(DefaultTtl::Off)),
        Some(TtlRule::Field { .. }) => changes.push(Change::DropRule { id: index.number }),
        Some(TtlRule::Ineffective) | None => {}
    }
}

fn default_ttl(seconds: i32) -> DefaultTtl {
    u32::try_from(seconds).map_or(DefaultTtl::Never, DefaultTtl::Seconds)
}

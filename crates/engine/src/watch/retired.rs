//! Dropped collections whose feed may still be read.
//!
//! Their policy is gone from the catalog, so nothing writes to them; it lies in their own record, because instants of death
//! follow from it. When the feed is too old they become dropped partitions like all others.

use std::collections::BTreeMap;
use std::sync::Arc;

use bson::{Binary, Document, RawDocument, ValueRef};
use bytes::Bytes;
use document::{ContainerRid, EffectiveRange, Sequence};
use storage::{Direction, KeyRange, Keyspace, Read, Time, Transaction};

use super::{WATCH_MS, log};
use crate::Engine;
use crate::catalog::{close_partition, put, remove};
use crate::collection::Collection;
use crate::container::Partition;
use crate::error::{Error, Result};
use crate::expiry::Policy;
use crate::history::Position;
use crate::index::Indexes;
use crate::keys::{self, Key, PartitionId};

/// A collection that is not there any more.
#[derive(Debug)]
pub(crate) struct Retired {
    pub(crate) collection: Arc<Collection>,
    /// Nothing happened to its items from here on.
    pub(crate) dropped: Position,
}

impl Retired {
    /// When its feed is too old to be told.
    fn due(&self) -> Time {
        self.dropped.time().plus_millis(WATCH_MS)
    }

    fn encode(&self, policy: &Policy) -> Vec<u8> {
        let binary = |bytes: Vec<u8>| Binary { subtype: 0, bytes };
        let record = Document::new()
            .with("database", self.collection.database.as_str())
            .with("databaseNumber", i64::from(self.collection.rid.database))
            .with("number", i64::from(self.collection.rid.container))
            .with("dropped", binary(self.dropped.to_bytes().to_vec()))
            .with("policy", binary(policy.encode()))
            .with("collection", binary(self.collection.encode()));
        RawDocument::from_document(&record).as_bytes().to_vec()
    }

    fn decode(partition: PartitionId, value: Bytes) -> Option<Retired> {
        let record = RawDocument::parse(value).ok()?;
        let binary = |name: &str| match record.get(name) {
            Some(ValueRef::Binary(binary)) => Some(binary.bytes),
            _ => None,
        };
        let number = |name: &str| match record.get(name) {
            Some(ValueRef::Int64(number)) => u32::try_from(number).ok(),
            _ => None,
        };
        let rid = ContainerRid { database: number("databaseNumber")?, container: number("number")? };
        let policy = Policy::decode(binary("policy")?).ok()?;
        let partition = Partition::new(partition, 0, EffectiveRange::all(), policy, Indexes::default());
        let database = record.get("database")?.as_str()?;
        let body = RawDocument::parse(Bytes::copy_from_slice(binary("collection")?)).ok()?;
        let collection = Collection::decode(rid, database, &body, Arc::new(partition))?;
        let dropped = Position::from_bytes(binary("dropped")?.try_into().ok()?);
        Some(Retired { collection: Arc::new(collection), dropped })
    }
}

/// Takes a watched collection out of use: its entries stay for as long as its feed may be read.
pub(crate) fn retire(
    tx: &mut Transaction<'_>,
    collection: &Arc<Collection>,
    sequence: Sequence,
) -> Result<Arc<Retired>> {
    let id = collection.partition.id;
    let dropped = Position::of_change(tx.trusted_time(), sequence);
    let retired = Retired { collection: Arc::clone(collection), dropped };
    let policy = close_partition(tx, &collection.partition)?;
    put(tx, Key::Retired(id), retired.encode(&policy));
    Ok(Arc::new(retired))
}

/// The name of a retired collection; none if its record cannot be read.
pub(super) fn name(partition: PartitionId, value: Bytes) -> Option<String> {
    Retired::decode(partition, value).map(|retired| retired.collection.namespace())
}

pub(super) fn load(reader: &dyn Read) -> Result<BTreeMap<PartitionId, Arc<Retired>>> {
    let mut all = BTreeMap::new();
    for entry in
        reader.scan(Keyspace::Catalog, KeyRange::prefix(keys::RETIRED_PARTITIONS), Direction::Forward)
    {
        let (key, value) = entry?;
        let damaged = || Error::Corrupt("the record of a retired collection".into());
        let partition = keys::dropped_partition(&key).ok_or_else(damaged)?;
        let retired = Retired::decode(partition, value).ok_or_else(damaged)?;
        all.insert(partition, Arc::new(retired));
    }
    Ok(all)
}

impl Engine {
    /// Lets go of retired collections whose time is over and of old entries of the log; says when the next one is due.
    pub(crate) fn release_retired(&self, limit: usize) -> Result<(u64, Option<Time>)> {
        let now = self.store.now()?;
        let is_due = |retired: &Arc<Retired>| retired.due() <= now;
        let log_due = || log::trim_due(&*self.store.snapshot()?);
        let mut entries = 0;
        if self.catalog().retired.values().any(is_due) || log_due()?.is_some_and(|due| due <= now) {
            let _change = self.changes.lock();
            let due: Vec<_> = self.catalog().retired.values().filter(|it| is_due(it)).cloned().collect();
            let ids: Vec<_> = due.iter().map(|retired| retired.collection.partition.id).collect();
            let doomed = ids.clone();
            entries += self.change(move |tx| {
                for id in doomed {
                    remove(tx, Key::Retired(id));
                    put(tx, Key::Dropped(id), Vec::new());
                }
                log::trim(tx, limit)
            })?;
            self.update(|catalog| catalog.retired.retain(|id, _| !ids.contains(id)));
        }
        let retired = self.catalog().retired.values().map(|retired| retired.due()).min();
        Ok((entries, retired.into_iter().chain(log_due()?).min()))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use storage::{ClockOptions, ManualClock, MemoryStore};

    use super::*;
    use crate::{CollectionDefinition, Watch};

    /// Also where no collection was dropped, so that nothing is retired.
    #[test]
    fn t28_the_log_of_watched_collections_is_trimmed_when_it_is_too_old() {
        let clock = Arc::new(ManualClock::new(Time::from_seconds(1_700_000_000)));
        let store = MemoryStore::new(ClockOptions::new(clock.clone())).expect("a store");
        let engine = Engine::open(Arc::new(store)).expect("an engine");
        engine.watch(&Watch::Database("db".into())).expect("watched");
        for name in ["a", "b"] {
            engine.create_collection("db", name, CollectionDefinition::default(), None).expect("made");
        }
        let due = log::trim_due(&*engine.store.snapshot().expect("a snapshot")).expect("a log");
        let due = due.expect("two were made");
        let next_due = engine.purge_step(100).expect("a step").next_due;
        assert!(next_due.is_some_and(|next| next <= due), "{next_due:?}");
        clock.advance(Duration::from_millis(due.millis_since(engine.now().expect("a time"))));
        assert_eq!(engine.release_retired(1), Ok((1, Some(due))), "bounded");
        assert_eq!(engine.release_retired(100), Ok((1, None)));
        assert_eq!(engine.release_retired(100), Ok((0, None)));
    }
}

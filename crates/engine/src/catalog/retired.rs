//! Dropped collections whose feed can still be read.

use std::collections::BTreeMap;
use std::sync::Arc;

use bson::{Binary, Document, RawDocument, ValueRef};
use bytes::Bytes;
use document::{ContainerRid, EffectiveRange};
use storage::{Direction, KeyRange, Keyspace, Read, Time};

use super::watch::WATCH_MS;
use crate::catalog::collection::Collection;
use crate::catalog::container::Partition;
use crate::expiry::Policy;
use crate::index::Indexes;
use crate::keys::{self, PartitionId, Position};
use crate::types::error::{Error, Result};

/// A collection that was dropped.
#[derive(Debug)]
pub(crate) struct Retired {
    pub(crate) collection: Arc<Collection>,
    /// The position of its drop: nothing happened to its items from here on.
    pub(crate) dropped: Position,
}

impl Retired {
    /// Returns when its feed is past its retention.
    pub(crate) fn due(&self) -> Time {
        self.dropped.time().plus_millis(WATCH_MS)
    }

    pub(crate) fn encode(&self, policy: &Policy) -> Vec<u8> {
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

    pub(crate) fn decode(partition: PartitionId, value: Bytes) -> Option<Retired> {
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

/// Returns the name of a retired collection, or `None` if its record cannot be read.
pub(crate) fn name(partition: PartitionId, value: Bytes) -> Option<String> {
    Retired::decode(partition, value).map(|retired| retired.collection.namespace())
}

pub(crate) fn load(reader: &dyn Read) -> Result<BTreeMap<PartitionId, Arc<Retired>>> {
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

//! A collection as a handle, and its record in the catalog.

use std::sync::Arc;

use bson::{Binary, Collation, Document, RawDocument, ValueRef};
use bytes::Bytes;
use document::{ContainerRid, EffectiveRange, Sequence};
use storage::Read;

use super::collection_indexes::{IndexList, KnownIndexes};
use crate::catalog::container::{Partition, Provision, Stamp};
use crate::catalog::load_policy;
use crate::definition::DefaultTtl;
use crate::index::Indexes;
use crate::keys::{self, PartitionId};
use crate::types::error::{Error, Result};
use crate::types::throughput::Throughput;

/// The user's definition of a collection. The engine stores the options; the front end interprets them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectionDefinition {
    /// The identity that clients see; it never changes.
    pub uuid: [u8; 16],
    /// Options as clients gave them: capped, validator, collation, and for a view its pipeline.
    pub options: RawDocument,
    /// The collation of `_id`, and of queries that name none.
    pub collation: Collation,
    /// The shard key of a sharded collection of the service; stored, and without effect on one partition.
    pub shard_key: Option<String>,
}

impl Default for CollectionDefinition {
    fn default() -> CollectionDefinition {
        let (options, collation) = (RawDocument::default(), Collation::simple());
        CollectionDefinition { uuid: [0; 16], options, collation, shard_key: None }
    }
}

/// A collection of the MongoDB API. Immutable and cheap to share; a change makes another handle.
#[derive(Debug, Clone)]
pub struct Collection {
    /// Its resource id.
    pub rid: ContainerRid,
    /// The name of its database.
    pub database: String,
    /// Its name.
    pub name: String,
    /// What the user defined.
    pub definition: CollectionDefinition,
    pub(crate) partition: Arc<Partition>,
    /// Its indexes as far as they are known in memory, the same for all handles.
    pub(crate) known: Arc<KnownIndexes>,
    pub(crate) stamp: Stamp,
    pub(crate) provision: Option<Provision>,
}

impl Collection {
    /// Returns whether a collection of that name is the system's own, and not for clients: it has what is derived from
    /// passwords.
    pub fn is_of_system(database: &str, name: &str) -> bool {
        database == "admin" && name.starts_with("system.")
    }

    /// `database.name`.
    pub fn namespace(&self) -> String {
        format!("{}.{}", self.database, self.name)
    }

    /// Returns the throughput that it was given.
    pub fn throughput(&self) -> Option<Throughput> {
        self.provision.map(|provision| provision.throughput)
    }

    /// Returns the key of the entry that leads from an `_id` to its item. Equal numbers of whatever type are one `_id`.
    pub(crate) fn id_key(&self, id: ValueRef<'_>) -> Vec<u8> {
        let mut key = keys::partition(self.partition.id);
        bson::encode_key(id, &self.definition.collation, &mut key);
        key
    }

    /// Returns its present indexes. A reader uses those of its own snapshot instead.
    pub fn indexes(&self) -> Arc<IndexList> {
        self.known.get()
    }

    /// Returns its indexes as `reader` sees them.
    pub(crate) fn indexes_at(&self, reader: &dyn Read) -> Result<Arc<IndexList>> {
        IndexList::load(reader, self.partition.id, &self.definition.collation, &self.known)
    }

    /// Returns the collection's `D` (T26).
    pub fn default_ttl(&self) -> DefaultTtl {
        self.partition.policy.read().default_ttl
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let CollectionDefinition { uuid, options, collation, shard_key } = &self.definition;
        let mut record = Document::new()
            .with("name", self.name.as_str())
            .with("uuid", Binary { subtype: 4, bytes: uuid.to_vec() })
            .with("options", options.to_document())
            .with("partition", i64::from(self.partition.id.0))
            .with("sequence", self.stamp.sequence.0 as i64)
            .with("ts", self.stamp.ts as i64);
        if !collation.is_simple() {
            record.push("collation", collation.to_stored());
        }
        if let Some(shard_key) = shard_key {
            record.push("shardKey", shard_key.as_str());
        }
        if let Some(Provision { throughput, stamp, .. }) = self.provision {
            let (name, rate) = match throughput {
                Throughput::Manual(rate) => ("manual", rate),
                Throughput::Autoscale { max, .. } => ("autoscale", max),
            };
            let provision = Document::new()
                .with(name, i64::from(rate))
                .with("sequence", stamp.sequence.0 as i64)
                .with("ts", stamp.ts as i64);
            record.push("provision", provision);
        }
        RawDocument::from_document(&record).as_bytes().to_vec()
    }

    /// Returns the partition that a record names.
    pub(crate) fn partition_of_record(bytes: &Bytes) -> Option<PartitionId> {
        let record = RawDocument::parse(bytes.clone()).ok()?;
        number(record.get("partition")).and_then(|id| u32::try_from(id).ok()).map(PartitionId)
    }

    /// Reads a record and what else a handle needs.
    pub(crate) fn load(
        rid: ContainerRid,
        database: &str,
        bytes: Bytes,
        reader: &dyn Read,
    ) -> Result<Collection> {
        let damaged = || Error::Corrupt(format!("the record of collection {}", rid.container));
        let record = RawDocument::parse(bytes).map_err(|_| damaged())?;
        let id = number(record.get("partition")).and_then(|id| u32::try_from(id).ok()).ok_or_else(damaged)?;
        let id = PartitionId(id);
        let policy = load_policy(reader, id)?;
        let partition = Partition::new(id, 0, EffectiveRange::all(), policy, Indexes::default());
        let collection =
            Collection::decode(rid, database, &record, Arc::new(partition)).ok_or_else(damaged)?;
        collection.known.install(collection.indexes_at(reader)?);
        Ok(collection)
    }

    pub(crate) fn decode(
        rid: ContainerRid,
        database: &str,
        record: &RawDocument,
        partition: Arc<Partition>,
    ) -> Option<Collection> {
        let Some(ValueRef::Binary(uuid)) = record.get("uuid") else { return None };
        let definition = CollectionDefinition {
            uuid: uuid.bytes.try_into().ok()?,
            options: RawDocument::from_view(record.get("options")?.as_document()?),
            collation: match record.get("collation") {
                None => Collation::simple(),
                Some(collation) => Collation::parse_stored(collation.as_document()?).ok()?,
            },
            shard_key: record.get("shardKey").and_then(ValueRef::as_str).map(str::to_owned),
        };
        let known = KnownIndexes::new(Arc::new(IndexList::new(&definition.collation)));
        let stamp = |sequence, ts| {
            Some(Stamp { sequence: Sequence(number(sequence)? as u64), ts: number(ts)? as u64 })
        };
        let provision = match record.get("provision").and_then(ValueRef::as_document) {
            None => None,
            Some(provision) => {
                let rate = |name| number(provision.get(name)).and_then(|rate| u32::try_from(rate).ok());
                let throughput = rate("manual").map(Throughput::Manual);
                let throughput = throughput.or_else(|| Some(Throughput::autoscale(rate("autoscale")?)))?;
                let stamp = stamp(provision.get("sequence"), provision.get("ts"))?;
                Some(Provision::new(throughput, stamp))
            }
        };
        Some(Collection {
            rid,
            database: database.to_owned(),
            name: record.get("name")?.as_str()?.to_owned(),
            definition,
            partition,
            known: Arc::new(known),
            stamp: stamp(record.get("sequence"), record.get("ts"))?,
            provision,
        })
    }
}

/// Reads a whole number of a record.
pub(crate) fn number(value: Option<ValueRef<'_>>) -> Option<i64> {
    match value? {
        ValueRef::Int64(number) => Some(number),
        ValueRef::Int32(number) => Some(i64::from(number)),
        _ => None,
    }
}

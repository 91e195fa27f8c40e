//! Databases, containers and their physical partitions as handles: cheap to clone, and immutable except for what a
//! partition keeps in memory, such as its policy and when the purge should visit it.

use std::sync::Arc;

use document::{
    ContainerRid, DatabaseRid, Document, EffectiveKey, EffectiveRange, Etag, Object, Sequence, Value,
};
use parking_lot::{Mutex, RwLock};
use storage::Read;

use crate::catalog::archive_state::ArchiveState;
use crate::catalog::budget::SharedBucket;
use crate::catalog::entry_floors::EntryFloors;
use crate::catalog::feed_end::FeedEnd;
use crate::catalog::next_due::NextDue;
use crate::catalog::purged::Purged;
use crate::catalog::renewed::RenewedVersions;
use crate::catalog::unscrubbed::UnscrubbedRemovals;
use crate::definition::ContainerDefinition;
use crate::expiry::{Countdown, Policy};
use crate::index::{ExtractedTerms, Indexes, MaintainedIndexes};
use crate::keys::PartitionId;
use crate::types::error::{Error, Result};
use crate::types::lsn::KnownLsn;
use crate::types::request::Scope;
use crate::types::throughput::{PerformanceLevel, Throughput};

/// The name of the MongoDB API in a database's record; the record of a database of the NoSQL API names none.
const MONGODB: &str = "mongodb";

/// Version, time of change and throughput, which every catalog record has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) sequence: Sequence,
    pub(crate) ts: u64,
}

impl Stamp {
    pub(crate) fn etag(self) -> Etag {
        Etag::new(self.sequence, self.ts)
    }

    pub(crate) fn to_value(self) -> Value {
        let parts = [("sequence", self.sequence.0), ("ts", self.ts)];
        Value::Object(parts.into_iter().map(|(name, n)| (name.to_owned(), Value::Int(n as i64))).collect())
    }

    pub(crate) fn from_value(value: &Value) -> Option<Stamp> {
        let number = |name| value.get(name).and_then(Value::as_i64).map(|n| n as u64);
        Some(Stamp { sequence: Sequence(number("sequence")?), ts: number("ts")? })
    }
}

/// A provision and when it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Provision {
    pub(crate) throughput: Throughput,
    pub(crate) stamp: Stamp,
    /// The most that was ever provisioned, in units a second.
    pub(crate) highest: u32,
    pub(crate) level: PerformanceLevel,
}

impl Provision {
    /// Returns the first provision.
    pub(crate) fn new(throughput: Throughput, stamp: Stamp) -> Provision {
        Provision { throughput, stamp, highest: throughput.most(), level: PerformanceLevel::None }
    }

    /// Returns the provision that replaces this one.
    pub(crate) fn replaced(self, throughput: Throughput, stamp: Stamp) -> Provision {
        Provision { throughput, stamp, highest: self.highest.max(throughput.most()), level: self.level }
    }

    pub(crate) fn to_value(self) -> Value {
        let mut value = object([
            ("throughput", self.throughput.to_value()),
            ("stamp", self.stamp.to_value()),
            ("highest", Value::Int(i64::from(self.highest))),
        ]);
        if self.level != PerformanceLevel::None
            && let Some(members) = value.as_object_mut()
        {
            members.insert("level", self.level.name());
        }
        value
    }

    pub(crate) fn from_value(value: &Value) -> Option<Provision> {
        let throughput = Throughput::from_value(value.get("throughput")?)?;
        let first = Provision::new(throughput, Stamp::from_value(value.get("stamp")?)?);
        let highest = value.get("highest").and_then(Value::as_i64).and_then(|n| u32::try_from(n).ok());
        let level = value.get("level").and_then(Value::as_str).and_then(PerformanceLevel::from_name);
        Some(Provision {
            highest: highest.unwrap_or(first.highest).max(first.highest),
            level: level.unwrap_or_default(),
            ..first
        })
    }
}

/// The API that a database and everything in it belong to. Each API has names of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// Its databases have containers.
    NoSql,
    /// Its databases have collections.
    MongoDb,
}

/// A database.
#[derive(Debug, Clone)]
pub struct Database {
    /// Its id, as the user chose it.
    pub name: String,
    /// Its resource id.
    pub rid: DatabaseRid,
    /// The API that it belongs to.
    pub api: Api,
    /// Whether the database stays when its last collection is dropped: it was created explicitly, not with a
    /// collection.
    pub(crate) kept: bool,
    pub(crate) stamp: Stamp,
    pub(crate) provision: Option<Provision>,
    /// What is left of the provision, shared by everything in the database that has none of its own.
    pub(crate) bucket: SharedBucket,
}

impl Database {
    /// Returns the version of the database record.
    pub fn etag(&self) -> Etag {
        self.stamp.etag()
    }

    /// Returns the time of its last change, seconds since 1970.
    pub fn ts(&self) -> u64 {
        self.stamp.ts
    }

    /// Returns the throughput that it shares among its containers.
    pub fn throughput(&self) -> Option<Throughput> {
        self.provision.map(|provision| provision.throughput)
    }

    /// `dbs/…/`.
    pub fn self_link(&self) -> String {
        format!("dbs/{}/", self.rid)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut members = Object::default();
        members.insert("name", Value::String(self.name.clone()));
        members.insert("stamp", self.stamp.to_value());
        if self.api == Api::MongoDb {
            members.insert("api", Value::String(MONGODB.to_owned()));
            members.insert("kept", Value::Bool(self.kept));
        }
        if let Some(provision) = self.provision {
            members.insert("provision", provision.to_value());
        }
        encode(members)
    }

    pub(crate) fn decode(number: u32, bytes: &[u8]) -> Result<Database> {
        let value = decode(bytes)?;
        let read = || {
            let (api, kept) = match value.get("api") {
                None => (Api::NoSql, true),
                Some(api) if api.as_str() == Some(MONGODB) => {
                    (Api::MongoDb, value.get("kept") == Some(&Value::Bool(true)))
                }
                Some(_) => return None,
            };
            Some(Database {
                name: value.get("name")?.as_str()?.to_owned(),
                rid: DatabaseRid(number),
                api,
                kept,
                stamp: Stamp::from_value(value.get("stamp")?)?,
                provision: value.get("provision").and_then(Provision::from_value),
                bucket: SharedBucket::default(),
            })
        };
        read().ok_or_else(|| Error::Corrupt(format!("the record of database {number}")))
    }
}

/// A container.
#[derive(Debug, Clone)]
pub struct Container {
    /// Its resource id.
    pub rid: ContainerRid,
    /// The id of its database.
    pub database: String,
    /// What the user defined; its id is the container's.
    pub definition: ContainerDefinition,
    /// Its physical partitions, in the order of their ranges, which cover all effective keys without gap or overlap.
    pub partitions: Vec<Arc<Partition>>,
    pub(crate) stamp: Stamp,
    pub(crate) provision: Option<Provision>,
}

impl Container {
    /// Returns its id, as the user chose it.
    pub fn name(&self) -> &str {
        &self.definition.id
    }

    /// Returns whether the feed of all versions shows the version that a replace ended; for a delete it always does.
    pub fn shows_previous_images(&self) -> bool {
        self.partitions.first().is_some_and(|partition| partition.policy.read().lifecycle.previous_images)
    }

    /// Returns the version of the container record.
    pub fn etag(&self) -> Etag {
        self.stamp.etag()
    }

    /// Returns the time of its last change, seconds since 1970.
    pub fn ts(&self) -> u64 {
        self.stamp.ts
    }

    /// `dbs/…/colls/…/`.
    pub fn self_link(&self) -> String {
        format!("dbs/{}/colls/{}/", self.rid.database_rid(), self.rid)
    }

    /// Returns whether a write may treat a countdown like this without a change of policy first; see
    /// [`prepare_ttl_modes`](crate::Engine::prepare_ttl_modes).
    pub fn is_prepared_for(&self, countdown: Countdown) -> bool {
        match countdown {
            Countdown::Restart => true,
            Countdown::Keep => {
                self.partitions.iter().all(|partition| partition.policy.read().has_ttl_modes())
            }
        }
    }

    /// Returns the partition that holds an effective key.
    pub fn partition_of(&self, effective: &EffectiveKey) -> &Arc<Partition> {
        self.partitions
            .iter()
            .find(|partition| partition.range.contains(effective))
            .expect("the ranges cover every effective key")
    }

    /// Returns the partitions that overlap a scope, in the order of their ranges.
    pub fn partitions_in(&self, scope: &Scope) -> Vec<&Arc<Partition>> {
        let key = scope.key.as_ref().map(|key| key.effective_range(&self.definition.partition_key));
        let is_in = |partition: &&Arc<Partition>| {
            let stretches = key.iter().chain(&scope.range);
            stretches.into_iter().all(|stretch| partition.range.overlaps(stretch))
        };
        self.partitions.iter().filter(is_in).collect()
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let partitions = self.partitions.iter().map(|partition| partition.to_value()).collect();
        let mut members = Object::default();
        members.insert("definition", self.definition.to_value());
        members.insert("stamp", self.stamp.to_value());
        members.insert("partitions", Value::Array(partitions));
        if let Some(provision) = self.provision {
            members.insert("provision", provision.to_value());
        }
        encode(members)
    }

    /// Reads a record; `rules` returns each partition's policy and the state of its index.
    pub(crate) fn decode(
        rid: ContainerRid,
        database: &str,
        bytes: &[u8],
        rules: impl Fn(PartitionId) -> Result<(Policy, Indexes)>,
    ) -> Result<Container> {
        let damaged = || Error::Corrupt(format!("the record of container {rid}"));
        let value = decode(bytes)?;
        let definition = value.get("definition").ok_or_else(damaged)?;
        let definition = ContainerDefinition::from_value(definition).map_err(|_| damaged())?;
        let mut partitions = Vec::new();
        for entry in value.get("partitions").and_then(Value::as_array).ok_or_else(damaged)? {
            let (id, range) = Partition::from_value(entry).ok_or_else(damaged)?;
            let (policy, indexes) = rules(id)?;
            partitions.push(Arc::new(Partition::new(id, partitions.len(), range, policy, indexes)));
        }
        let stamp = value.get("stamp").and_then(Stamp::from_value).ok_or_else(damaged)?;
        let provision = value.get("provision").and_then(Provision::from_value);
        Ok(Container { rid, database: database.to_owned(), definition, partitions, stamp, provision })
    }
}

/// A physical partition: a range of effective keys with its own policy, queues, counters and purge cursors.
#[derive(Debug)]
pub struct Partition {
    /// Its number in the key space.
    pub id: PartitionId,
    /// Its position in the container; on the wire this is the range id.
    pub index: usize,
    /// The effective keys that it holds.
    pub range: EffectiveRange,
    /// The policy in force. `gate` explains when the lock is held.
    pub(crate) policy: RwLock<Arc<Policy>>,
    /// When the purge should visit the partition next.
    pub(crate) next_due: NextDue,
    /// What is left of its share of the throughput.
    pub(crate) bucket: SharedBucket,
    /// What the purge has removed from it.
    pub(crate) purged: Purged,
    /// Removed items whose bytes may still be in files.
    pub(crate) unscrubbed: UnscrubbedRemovals,
    /// The state of its archive.
    pub(crate) archive: ArchiveState,
    /// The sliding renewals of the current second.
    pub(crate) renewed: RenewedVersions,
    /// The LSN of its last commit; see `lsn`.
    pub(crate) known_lsn: KnownLsn,
    /// Where its feed ends.
    pub(crate) feed_end: FeedEnd,
    /// The numbers of its index entries that recent queries have counted.
    pub(crate) entry_floors: EntryFloors,
    /// Held during a sweep, from taking the due visit until the next one is scheduled.
    pub(crate) sweeping: Mutex<()>,
    /// The generations of its index as of a recent commit; a transaction reads the current ones from the store.
    indexes: RwLock<Arc<Indexes>>,
}

impl Partition {
    pub(crate) fn new(
        id: PartitionId,
        index: usize,
        range: EffectiveRange,
        policy: Policy,
        indexes: Indexes,
    ) -> Partition {
        Partition {
            id,
            index,
            range,
            policy: RwLock::new(Arc::new(policy)),
            next_due: NextDue::default(),
            bucket: SharedBucket::default(),
            purged: Purged::default(),
            unscrubbed: UnscrubbedRemovals::default(),
            archive: ArchiveState::default(),
            renewed: RenewedVersions::default(),
            known_lsn: KnownLsn::default(),
            feed_end: FeedEnd::default(),
            entry_floors: EntryFloors::default(),
            sweeping: Mutex::default(),
            indexes: RwLock::new(Arc::new(indexes)),
        }
    }

    /// Marks a partition that was just created: nothing was ever removed from it.
    pub(crate) fn newborn(self) -> Partition {
        Partition { unscrubbed: UnscrubbedRemovals::nothing(), ..self }
    }

    /// Returns the state of its index as of a recent commit.
    pub(crate) fn indexes(&self) -> Arc<Indexes> {
        Arc::clone(&self.indexes.read())
    }

    /// Returns the index generations that a transaction has to maintain.
    pub(crate) fn maintained_indexes(&self, reader: &dyn Read) -> Result<MaintainedIndexes> {
        MaintainedIndexes::load(reader, self.id, self.indexes())
    }

    /// Returns the index terms of a body that is about to be written.
    pub(crate) fn extract_terms(&self, body: &Document) -> ExtractedTerms {
        ExtractedTerms::new(self.id, &self.indexes(), body)
    }

    /// Stores a committed state of the index, unless a newer one is known.
    pub(crate) fn install_indexes(&self, indexes: Indexes) {
        let mut current = self.indexes.write();
        if indexes.state.version > current.state.version {
            *current = Arc::new(indexes);
        }
    }

    /// Puts a committed policy in force, unless a newer one already is.
    pub(crate) fn install(&self, policy: Policy) {
        let mut current = self.policy.write();
        if policy.version > current.version {
            *current = Arc::new(policy);
        }
    }

    fn to_value(&self) -> Value {
        object([
            ("id", Value::Int(i64::from(self.id.0))),
            ("min", Value::String(self.range.min.to_string())),
            ("max", Value::String(self.range.max.to_string())),
        ])
    }

    fn from_value(value: &Value) -> Option<(PartitionId, EffectiveRange)> {
        let bound = |name| value.get(name)?.as_str()?.parse::<EffectiveKey>().ok();
        let id = u32::try_from(value.get("id")?.as_i64()?).ok()?;
        Some((PartitionId(id), EffectiveRange { min: bound("min")?, max: bound("max")? }))
    }
}

fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

fn encode(members: Object) -> Vec<u8> {
    let document =
        Document::from_value(&Value::Object(members)).expect("a definition was checked for depth and size");
    document.as_bytes().to_vec()
}

fn decode(bytes: &[u8]) -> Result<Value> {
    let document = Document::from_stored(bytes::Bytes::copy_from_slice(bytes));
    document
        .map(|document| document.to_value())
        .map_err(|error| Error::Corrupt(format!("a catalog record: {error}")))
}

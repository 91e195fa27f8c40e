//! Databases, containers and their physical partitions as handles: cheap to clone, immutable but for what a partition
//! keeps in memory (its policy and when the purge should look at it).

use std::sync::Arc;

use document::{
    ContainerRid, DatabaseRid, Document, EffectiveKey, EffectiveRange, Etag, Object, Sequence, Value,
};
use parking_lot::{Mutex, RwLock};

use crate::archive::ArchiveState;
use crate::budget::SharedBucket;
use crate::definition::ContainerDefinition;
use crate::error::{Error, Result};
use crate::expiry::{Countdown, Policy};
use crate::index::Indexes;
use crate::keys::PartitionId;
use crate::lsn::KnownLsn;
use crate::operation::Scope;
use crate::purge::{NextLook, Purged, Remains};
use crate::throughput::Throughput;
use crate::touch::Touching;

/// How the record of a database of the MongoDB API names it; one of the NoSQL API names none.
const MONGODB: &str = "mongodb";

/// Version, time of change and throughput: what every catalog record carries.
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
}

impl Provision {
    /// The first provision.
    pub(crate) fn new(throughput: Throughput, stamp: Stamp) -> Provision {
        Provision { throughput, stamp, highest: throughput.most() }
    }

    /// The provision in the place of this one.
    pub(crate) fn replaced(self, throughput: Throughput, stamp: Stamp) -> Provision {
        Provision { throughput, stamp, highest: self.highest.max(throughput.most()) }
    }

    pub(crate) fn to_value(self) -> Value {
        object([
            ("throughput", self.throughput.to_value()),
            ("stamp", self.stamp.to_value()),
            ("highest", Value::Int(i64::from(self.highest))),
        ])
    }

    pub(crate) fn from_value(value: &Value) -> Option<Provision> {
        let throughput = Throughput::from_value(value.get("throughput")?)?;
        let first = Provision::new(throughput, Stamp::from_value(value.get("stamp")?)?);
        let highest = value.get("highest").and_then(Value::as_i64).and_then(|n| u32::try_from(n).ok());
        Some(Provision { highest: highest.unwrap_or(first.highest).max(first.highest), ..first })
    }
}

/// The API that a database belongs to, with everything in it. Names of one API mean nothing in the other.
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
    /// Whether it stays when its last collection goes: it was made by itself, not by the way.
    pub(crate) kept: bool,
    pub(crate) stamp: Stamp,
    pub(crate) provision: Option<Provision>,
    /// What is left of the provision, for all that is in it and has none of its own.
    pub(crate) bucket: SharedBucket,
}

impl Database {
    /// Version of the database record.
    pub fn etag(&self) -> Etag {
        self.stamp.etag()
    }

    /// Last change, seconds since 1970.
    pub fn ts(&self) -> u64 {
        self.stamp.ts
    }

    /// What it was given for all that is in it.
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
    /// Its physical partitions, in the order of their ranges, which cover everything without gap or overlap.
    pub partitions: Vec<Arc<Partition>>,
    pub(crate) stamp: Stamp,
    pub(crate) provision: Option<Provision>,
}

impl Container {
    /// Its id, as the user chose it.
    pub fn name(&self) -> &str {
        &self.definition.id
    }

    /// Whether the feed of all versions shows what a replaced item was before; a deleted one always shows it.
    pub fn shows_previous_images(&self) -> bool {
        self.partitions.first().is_some_and(|partition| partition.policy.read().lifecycle.previous_images)
    }

    /// Version of the container record.
    pub fn etag(&self) -> Etag {
        self.stamp.etag()
    }

    /// Last change, seconds since 1970.
    pub fn ts(&self) -> u64 {
        self.stamp.ts
    }

    /// `dbs/…/colls/…/`.
    pub fn self_link(&self) -> String {
        format!("dbs/{}/colls/{}/", self.rid.database_rid(), self.rid)
    }

    /// Whether a write may do this to a countdown without further ado: see
    /// [`prepare_countings`](crate::Engine::prepare_countings).
    pub fn is_prepared_for(&self, countdown: Countdown) -> bool {
        match countdown {
            Countdown::Restart => true,
            Countdown::Keep => {
                self.partitions.iter().all(|partition| partition.policy.read().has_countings())
            }
        }
    }

    /// The partition that holds an effective key.
    pub fn partition_of(&self, effective: &EffectiveKey) -> &Arc<Partition> {
        self.partitions
            .iter()
            .find(|partition| partition.range.contains(effective))
            .expect("the ranges cover every effective key")
    }

    /// The partitions that a scope lies in, in the order of their ranges.
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

    /// Reads a record; `rules` fetches each partition's policy and what there is of its index.
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

/// A physical partition: a range of effective keys with a policy, queues, counters and hands of its own.
#[derive(Debug)]
pub struct Partition {
    /// Its number in the key space.
    pub id: PartitionId,
    /// Its position in the container; the wire calls this the range id.
    pub index: usize,
    /// The effective keys that it holds.
    pub range: EffectiveRange,
    /// The policy in force. See `gate` for who holds the lock when.
    pub(crate) policy: RwLock<Arc<Policy>>,
    /// When the purge should look at it next.
    pub(crate) next_look: NextLook,
    /// What is left of its share of the throughput.
    pub(crate) bucket: SharedBucket,
    /// What the purge has removed from it.
    pub(crate) purged: Purged,
    /// What was removed from it and may still be in files.
    pub(crate) remains: Remains,
    /// What of its dead is in the archive.
    pub(crate) archive: ArchiveState,
    /// Which items' countdowns are being restarted.
    pub(crate) touching: Touching,
    /// The LSN of its last commit; see `lsn`.
    pub(crate) known_lsn: KnownLsn,
    /// Held by whoever sweeps, from taking the look that is due to saying when the next one is.
    pub(crate) sweeping: Mutex<()>,
    /// The generations of its index as of some recent commit; a transaction asks the store for the current ones.
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
            next_look: NextLook::default(),
            bucket: SharedBucket::default(),
            purged: Purged::default(),
            remains: Remains::default(),
            archive: ArchiveState::default(),
            touching: Touching::default(),
            known_lsn: KnownLsn::default(),
            sweeping: Mutex::default(),
            indexes: RwLock::new(Arc::new(indexes)),
        }
    }

    /// One that is made just now: nothing was ever removed from it.
    pub(crate) fn newborn(self) -> Partition {
        Partition { remains: Remains::nothing(), ..self }
    }

    /// What is known of its index.
    pub(crate) fn indexes(&self) -> Arc<Indexes> {
        Arc::clone(&self.indexes.read())
    }

    /// Keeps a committed state of the index, unless a newer one is known.
    pub(crate) fn install_indexes(&self, indexes: Indexes) {
        let mut current = self.indexes.write();
        if indexes.state.version > current.state.version {
            *current = Arc::new(indexes);
        }
    }

    /// Puts a committed policy in force, unless a newer one is already.
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

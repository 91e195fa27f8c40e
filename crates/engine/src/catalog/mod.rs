//! Databases and containers: their changes, and the copy in memory by which every request resolves names.
//!
//! Changes are rare and run one at a time. Each is one commit, and the copy is updated before the change is
//! acknowledged.

pub(crate) mod archive_state;
pub(crate) mod budget;
pub(crate) mod collection;
pub(crate) mod collection_indexes;
pub(crate) mod container;
pub(crate) mod entry_floors;
pub(crate) mod feed_end;
pub(crate) mod hold_note;
pub(crate) mod home;
mod lsn;
pub(crate) mod next_due;
pub(crate) mod owner;
pub(crate) mod purged;
pub(crate) mod renewed;
pub(crate) mod resources;
pub(crate) mod retired;
pub(crate) mod turn;
pub(crate) mod unscrubbed;
pub(crate) mod watch;

use std::collections::BTreeMap;
use std::sync::Arc;

use document::{ContainerRid, DatabaseRid, OfferRid};
use storage::{Direction, KeyRange, Keyspace, Lanes, Read, Transaction, transact};

use self::retired::Retired;
use self::watch::{Watch, WatchState};
use crate::Engine;
use crate::catalog::collection::Collection;
use crate::catalog::container::{Api, Container, Database, Partition, Provision, Stamp};
use crate::catalog::owner::Owner;
use crate::entries::counters;
use crate::expiry::Policy;
use crate::index::Indexes;
use crate::keys::{self, Key, PartitionId};
use crate::types::error::{Error, Result};
use crate::types::events::Events;
use crate::types::limits::RESOURCES_MAX;
use crate::types::throughput::Offer;

/// Every database, container and collection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Catalog {
    pub(crate) databases: BTreeMap<String, Arc<Database>>,
    pub(crate) containers: BTreeMap<(DatabaseRid, String), Arc<Container>>,
    /// Those of the MongoDB API; `collection::catalog` changes them.
    pub(crate) collection_databases: BTreeMap<String, Arc<Database>>,
    pub(crate) collections: BTreeMap<(DatabaseRid, String), Arc<Collection>>,
    /// What clients watch of them, and which dropped collections still have a readable feed.
    pub(crate) watches: BTreeMap<Watch, WatchState>,
    pub(crate) retired: BTreeMap<PartitionId, Arc<Retired>>,
}

impl Catalog {
    /// Reads the whole catalog.
    pub(crate) fn load(reader: &dyn Read) -> Result<Catalog> {
        let mut catalog = Catalog::default();
        let mut names = BTreeMap::new();
        for entry in reader.scan(Keyspace::Catalog, KeyRange::prefix(keys::DATABASES), Direction::Forward) {
            let (key, value) = entry?;
            let number = number_at(&key, 1)?;
            let database = Arc::new(Database::decode(number, &value)?);
            names.insert(number, database.name.clone());
            let databases = match database.api {
                Api::NoSql => &mut catalog.databases,
                Api::MongoDb => &mut catalog.collection_databases,
            };
            databases.insert(database.name.clone(), database);
        }
        for entry in reader.scan(Keyspace::Catalog, KeyRange::prefix(keys::CONTAINERS), Direction::Forward) {
            let (key, value) = entry?;
            let (database, container) = (number_at(&key, 1)?, number_at(&key, 5)?);
            let name = names
                .get(&database)
                .ok_or_else(|| Error::Corrupt(format!("container {container} has no database {database}")))?;
            let rid = ContainerRid { database, container };
            let rules = |partition| Ok((load_policy(reader, partition)?, Indexes::load(reader, partition)?));
            let container = Container::decode(rid, name, &value, rules)?;
            for partition in &container.partitions {
                partition.known_lsn.raise(counters::lsn(reader, partition.id)?.unwrap_or_default());
            }
            catalog.insert(Arc::new(container));
        }
        for entry in reader.scan(Keyspace::Catalog, KeyRange::prefix(keys::COLLECTIONS), Direction::Forward) {
            let (key, value) = entry?;
            let rid = ContainerRid { database: number_at(&key, 1)?, container: number_at(&key, 5)? };
            let database = names.get(&rid.database).ok_or_else(|| {
                Error::Corrupt(format!("collection {} has no database {}", rid.container, rid.database))
            })?;
            let collection = Collection::load(rid, database, value, reader)?;
            catalog.insert_collection(Arc::new(collection));
        }
        catalog.watches = watch::load(reader)?;
        catalog.retired = retired::load(reader)?;
        Ok(catalog)
    }

    pub(crate) fn insert(&mut self, container: Arc<Container>) {
        let key = (container.rid.database_rid(), container.name().to_owned());
        self.containers.insert(key, container);
    }

    fn containers_of(&self, database: DatabaseRid) -> impl Iterator<Item = &Arc<Container>> {
        self.containers.values().filter(move |container| container.rid.database_rid() == database)
    }

    pub(crate) fn insert_collection(&mut self, collection: Arc<Collection>) {
        let key = (collection.rid.database_rid(), collection.name.clone());
        self.collections.insert(key, collection);
    }

    /// Returns the database of that name.
    pub(crate) fn database_of(&self, api: Api, name: &str) -> Option<Arc<Database>> {
        let databases = match api {
            Api::NoSql => &self.databases,
            Api::MongoDb => &self.collection_databases,
        };
        databases.get(name).cloned()
    }

    /// Removes all databases with everything in them.
    pub(crate) fn clear(&mut self) {
        self.databases.clear();
        self.containers.clear();
        self.collection_databases.clear();
        self.collections.clear();
    }

    /// Adds dropped collections whose feed can still be read.
    pub(crate) fn retire(&mut self, gone: impl IntoIterator<Item = Arc<Retired>>) {
        self.retired.extend(gone.into_iter().map(|retired| (retired.collection.partition.id, retired)));
    }

    /// Returns every partition of a container.
    pub(crate) fn partitions(&self) -> impl Iterator<Item = (&Arc<Container>, &Arc<Partition>)> {
        let of = |container| std::iter::repeat(container);
        self.containers.values().flat_map(move |container| of(container).zip(&container.partitions))
    }

    /// Returns every partition of both APIs, with its owner.
    pub(crate) fn owned_partitions(&self) -> impl Iterator<Item = (Owner, &Arc<Partition>)> {
        let of_containers = self
            .partitions()
            .map(|(container, partition)| (Owner::Container(Arc::clone(container)), partition));
        let of_collections = self
            .collections
            .values()
            .map(|collection| (Owner::Collection(Arc::clone(collection)), &collection.partition));
        of_containers.chain(of_collections)
    }
}

fn number_at(key: &[u8], offset: usize) -> Result<u32> {
    key.get(offset..)
        .and_then(|bytes| bytes.first_chunk())
        .map(|bytes| u32::from_be_bytes(*bytes))
        .ok_or_else(|| Error::Corrupt("a catalog key of wrong length".into()))
}

pub(crate) fn load_policy(reader: &dyn Read, partition: PartitionId) -> Result<Policy> {
    let (keyspace, key) = Key::Policy(partition).encode();
    match reader.get(keyspace, &key)? {
        Some(bytes) => Policy::decode(&bytes),
        None => Err(Error::Corrupt(format!("partition {} has no policy", partition.0))),
    }
}

/// Lookups.
impl Engine {
    /// Returns all databases, by name.
    pub fn databases(&self) -> Vec<Arc<Database>> {
        self.catalog().databases.values().cloned().collect()
    }

    /// Returns the database of that name.
    pub fn database(&self, name: &str) -> Result<Arc<Database>> {
        let found = self.catalog().databases.get(name).cloned();
        found.ok_or_else(|| Error::NotFound { what: format!("database '{name}'") })
    }

    /// Returns the database of that resource id.
    pub fn database_by_rid(&self, rid: DatabaseRid) -> Result<Arc<Database>> {
        let found = self.catalog().databases.values().find(|database| database.rid == rid).cloned();
        found.ok_or_else(|| Error::NotFound { what: format!("database {rid}") })
    }

    /// Returns all containers of a database, by name.
    pub fn containers(&self, database: &Database) -> Vec<Arc<Container>> {
        self.catalog().containers_of(database.rid).cloned().collect()
    }

    /// Returns the container of that name.
    pub fn container(&self, database: &Database, name: &str) -> Result<Arc<Container>> {
        let found = self.catalog().containers.get(&(database.rid, name.to_owned())).cloned();
        found.ok_or_else(|| Error::NotFound { what: format!("container '{name}'") })
    }

    /// Returns the container of that resource id.
    pub fn container_by_rid(&self, rid: ContainerRid) -> Result<Arc<Container>> {
        let catalog = self.catalog();
        let found = catalog.containers_of(rid.database_rid()).find(|container| container.rid == rid).cloned();
        found.ok_or_else(|| Error::NotFound { what: format!("container {rid}") })
    }

    /// Returns every offer, databases first.
    pub fn offers(&self) -> Vec<Offer> {
        let catalog = self.catalog();
        let databases = catalog.databases.values().filter_map(|database| {
            Some(offer(database.rid.0, database.self_link(), database.rid.to_string(), database.provision?))
        });
        let containers = catalog.containers.values().filter_map(|container| {
            let rid = container.rid;
            Some(offer(rid.container, container.self_link(), rid.to_string(), container.provision?))
        });
        databases.chain(containers).collect()
    }

    /// Returns the offer of that resource id.
    pub fn offer(&self, rid: OfferRid) -> Result<Offer> {
        let found = self.offers().into_iter().find(|offer| offer.rid == rid);
        found.ok_or_else(|| Error::NotFound { what: format!("offer {rid}") })
    }

    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog.read())
    }
}

fn offer(number: u32, resource: String, resource_rid: String, provision: Provision) -> Offer {
    let Provision { throughput, stamp, highest, level } = provision;
    let (rid, least) = (OfferRid(number), throughput.least(highest));
    Offer { rid, resource, resource_rid, throughput, level, least, highest, etag: stamp.etag(), ts: stamp.ts }
}

/// Changes.
impl Engine {
    pub(crate) fn change<R: Send + 'static>(
        &self,
        run: impl FnOnce(&mut Transaction<'_>) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        transact(&*self.store, Lanes::all(), run).wait()
    }

    pub(crate) fn update<R>(&self, change: impl FnOnce(&mut Catalog) -> R) {
        let mut catalog = self.catalog.write();
        change(Arc::make_mut(&mut catalog));
    }
}

/// Assigns the next number to a database, container or partition.
pub(crate) fn next_number(tx: &mut Transaction<'_>) -> Result<u32> {
    let (keyspace, key) = Key::LastNumber.encode();
    let last = tx.get(keyspace, &key)?.map_or(Ok(0), |value| number_at(&value, 0))?;
    let next = last.checked_add(1).filter(|next| *next <= RESOURCES_MAX);
    let next = next.ok_or_else(|| Error::Unavailable("no resource numbers are left".into()))?;
    tx.put(keyspace, key, next.to_be_bytes().to_vec());
    Ok(next)
}

pub(crate) fn stamp(tx: &mut Transaction<'_>) -> Stamp {
    Stamp { sequence: Events::default().next(tx), ts: tx.time().seconds() }
}

pub(crate) fn put(tx: &mut Transaction<'_>, key: Key<'_>, value: Vec<u8>) {
    let (keyspace, key) = key.encode();
    tx.put(keyspace, key, value);
}

pub(crate) fn remove(tx: &mut Transaction<'_>, key: Key<'_>) {
    let (keyspace, key) = key.encode();
    tx.remove(keyspace, key);
}

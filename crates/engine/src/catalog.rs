//! Databases and containers: the changes, and the copy in memory that every request resolves names with.
//!
//! Changes are rare and run one at a time; each is one commit and is put into the copy before it is acknowledged.

use std::collections::BTreeMap;
use std::sync::Arc;

use document::{ContainerRid, DatabaseRid, EffectiveRange, OfferRid, ScriptKind, check_resource_id};
use storage::{Direction, KeyRange, Keyspace, Lanes, Read, Transaction, transact};

use crate::Engine;
use crate::archive;
use crate::budget::SharedBucket;
use crate::collection::Collection;
use crate::container::{Api, Container, Database, Partition, Provision, Stamp};
use crate::counters;
use crate::definition::{ContainerDefinition, check_new, check_replacement};
use crate::deletions;
use crate::error::{Error, Result};
use crate::events::Events;
use crate::expiry::{Change, Lifecycle, Millis, Policy, Queue};
use crate::guard::{Consent, change_policies};
use crate::history;
use crate::hold;
use crate::holder::Holder;
use crate::index::{self, Indexes};
use crate::keys::{self, Key, PartitionId};
use crate::limits::RESOURCES_MAX;
use crate::operation::Precondition;
use crate::purge;
use crate::resources::{self, Owner};
use crate::throughput::{Offer, Throughput};
use crate::watch::{self, Retired, Watch, Watching};

/// Every database, container and collection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Catalog {
    databases: BTreeMap<String, Arc<Database>>,
    containers: BTreeMap<(DatabaseRid, String), Arc<Container>>,
    /// Those of the MongoDB API: `collection::catalog` looks after them.
    pub(crate) collection_databases: BTreeMap<String, Arc<Database>>,
    pub(crate) collections: BTreeMap<(DatabaseRid, String), Arc<Collection>>,
    /// What is watched of them, and which are gone and still told of.
    pub(crate) watches: BTreeMap<Watch, Watching>,
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
        catalog.retired = watch::load_retired(reader)?;
        Ok(catalog)
    }

    fn insert(&mut self, container: Arc<Container>) {
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

    /// The database of that name.
    pub(crate) fn database_of(&self, api: Api, name: &str) -> Option<Arc<Database>> {
        let databases = match api {
            Api::NoSql => &self.databases,
            Api::MongoDb => &self.collection_databases,
        };
        databases.get(name).cloned()
    }

    /// Forgets all databases with what is in them.
    pub(crate) fn clear(&mut self) {
        self.databases.clear();
        self.containers.clear();
        self.collection_databases.clear();
        self.collections.clear();
    }

    /// Remembers collections that are gone and still told of.
    pub(crate) fn retire(&mut self, gone: impl IntoIterator<Item = Arc<Retired>>) {
        self.retired.extend(gone.into_iter().map(|retired| (retired.collection.partition.id, retired)));
    }

    /// Every partition of a container.
    pub(crate) fn partitions(&self) -> impl Iterator<Item = (&Arc<Container>, &Arc<Partition>)> {
        let of = |container| std::iter::repeat(container);
        self.containers.values().flat_map(move |container| of(container).zip(&container.partitions))
    }

    /// Every partition of all, with what it belongs to.
    pub(crate) fn holdings(&self) -> impl Iterator<Item = (Holder, &Arc<Partition>)> {
        let of_containers = self
            .partitions()
            .map(|(container, partition)| (Holder::Container(Arc::clone(container)), partition));
        let of_collections = self
            .collections
            .values()
            .map(|collection| (Holder::Collection(Arc::clone(collection)), &collection.partition));
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

/// Looking things up.
impl Engine {
    /// All databases, by name.
    pub fn databases(&self) -> Vec<Arc<Database>> {
        self.catalog().databases.values().cloned().collect()
    }

    /// The database of that name.
    pub fn database(&self, name: &str) -> Result<Arc<Database>> {
        let found = self.catalog().databases.get(name).cloned();
        found.ok_or_else(|| Error::NotFound { what: format!("database '{name}'") })
    }

    /// The database of that resource id.
    pub fn database_by_rid(&self, rid: DatabaseRid) -> Result<Arc<Database>> {
        let found = self.catalog().databases.values().find(|database| database.rid == rid).cloned();
        found.ok_or_else(|| Error::NotFound { what: format!("database {rid}") })
    }

    /// All containers of a database, by name.
    pub fn containers(&self, database: &Database) -> Vec<Arc<Container>> {
        self.catalog().containers_of(database.rid).cloned().collect()
    }

    /// The container of that name.
    pub fn container(&self, database: &Database, name: &str) -> Result<Arc<Container>> {
        let found = self.catalog().containers.get(&(database.rid, name.to_owned())).cloned();
        found.ok_or_else(|| Error::NotFound { what: format!("container '{name}'") })
    }

    /// The container of that resource id.
    pub fn container_by_rid(&self, rid: ContainerRid) -> Result<Arc<Container>> {
        let catalog = self.catalog();
        let found = catalog.containers_of(rid.database_rid()).find(|container| container.rid == rid).cloned();
        found.ok_or_else(|| Error::NotFound { what: format!("container {rid}") })
    }

    /// Every offer, databases first.
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

    /// The offer of that resource id.
    pub fn offer(&self, rid: OfferRid) -> Result<Offer> {
        let found = self.offers().into_iter().find(|offer| offer.rid == rid);
        found.ok_or_else(|| Error::NotFound { what: format!("offer {rid}") })
    }

    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog.read())
    }
}

fn offer(number: u32, resource: String, resource_rid: String, provision: Provision) -> Offer {
    let Provision { throughput, stamp, highest } = provision;
    let (rid, least) = (OfferRid(number), throughput.least(highest));
    Offer { rid, resource, resource_rid, throughput, least, highest, etag: stamp.etag(), ts: stamp.ts }
}

/// Changing things. Each call returns when the change is durable.
impl Engine {
    /// Makes a database.
    pub fn create_database(&self, name: &str, throughput: Option<Throughput>) -> Result<Arc<Database>> {
        check_resource_id(name)?;
        throughput.map(Throughput::check).transpose()?;
        let _change = self.changes.lock();
        if self.catalog().databases.contains_key(name) {
            return Err(Error::Exists { what: format!("database '{name}'") });
        }
        let name = name.to_owned();
        let database = self.change(move |tx| {
            let stamp = stamp(tx);
            let provision = throughput.map(|throughput| Provision::new(throughput, stamp));
            let rid = DatabaseRid(next_number(tx)?);
            let database = Database {
                name,
                rid,
                api: Api::NoSql,
                kept: true,
                stamp,
                provision,
                bucket: SharedBucket::default(),
            };
            put(tx, Key::Database(database.rid.0), database.encode());
            Ok(Arc::new(database))
        })?;
        self.update(|catalog| catalog.databases.insert(database.name.clone(), Arc::clone(&database)));
        Ok(database)
    }

    /// Removes a database with all its containers.
    pub fn delete_database(&self, database: &Database, precondition: &Precondition) -> Result<()> {
        for container in self.containers(database) {
            self.settle(&Holder::Container(container))?;
        }
        let _change = self.changes.lock();
        let current = self.database_by_rid(database.rid)?;
        precondition.check(&current.etag(), format_args!("database '{}'", current.name))?;
        let containers = self.containers(&current);
        let (rid, doomed) = (current.rid, containers.clone());
        self.change(move |tx| {
            drop_database(tx, rid, &doomed)?;
            tx.next_sequence();
            Ok(())
        })?;
        self.update(|catalog| {
            catalog.databases.remove(&current.name);
            catalog.containers.retain(|(owner, _), _| *owner != rid);
        });
        self.alarm.ring();
        Ok(())
    }

    /// Makes a container, with as many physical partitions as its throughput asks for.
    pub fn create_container(
        &self,
        database: &Database,
        definition: ContainerDefinition,
        throughput: Option<Throughput>,
    ) -> Result<Arc<Container>> {
        let partitions = throughput.map_or(1, Throughput::partitions).max(self.options.partitions);
        let ranges = EffectiveRange::split(partitions, &definition.partition_key);
        self.create_partitioned(database, definition, throughput, ranges)
    }

    /// Makes a container with a physical partition for each of `ranges`, which must cover everything in order.
    pub(crate) fn create_partitioned(
        &self,
        database: &Database,
        definition: ContainerDefinition,
        throughput: Option<Throughput>,
        ranges: Vec<EffectiveRange>,
    ) -> Result<Arc<Container>> {
        check_resource_id(&definition.id)?;
        check_new(&definition)?;
        throughput.map(Throughput::check).transpose()?;
        let _change = self.changes.lock();
        let owner = self
            .database_by_rid(database.rid)
            .map_err(|_| Error::OwnerNotFound { what: format!("database '{}'", database.name) })?;
        if self.container(&owner, &definition.id).is_ok() {
            return Err(Error::Exists { what: format!("container '{}'", definition.id) });
        }
        let container = self.change(move |tx| {
            let stamp = stamp(tx);
            let rid = ContainerRid { database: owner.rid.0, container: next_number(tx)? };
            let mut partitions = Vec::with_capacity(ranges.len());
            for (position, range) in ranges.into_iter().enumerate() {
                let id = PartitionId(next_number(tx)?);
                put(tx, Key::Policy(id), Policy::new(definition.default_ttl).encode());
                let lsn = tx.last_sequence();
                counters::begin_lsns(tx, id, lsn)?;
                let (history_minutes, ttl_property_path) =
                    (definition.history_minutes(), definition.ttl_property_path());
                let wishes = Lifecycle { history_minutes, ttl_property_path, ..Lifecycle::default() };
                let wish = Change::Lifecycle(wishes);
                let policy = change_policy(tx, id, &[wish])?;
                let indexes = index::follow(tx, id, &definition.indexing)?;
                let partition = Partition::new(id, position, range, policy, indexes).newborn();
                partition.known_lsn.raise(lsn);
                partitions.push(Arc::new(partition));
            }
            let provision = throughput.map(|throughput| Provision::new(throughput, stamp));
            let database = owner.name.clone();
            let container = Container { rid, database, definition, partitions, stamp, provision };
            put_container(tx, &container);
            Ok(Arc::new(container))
        })?;
        self.update(|catalog| catalog.insert(Arc::clone(&container)));
        Ok(container)
    }

    /// As [`replace_container_with`](Engine::replace_container_with), without consent.
    pub fn replace_container(
        &self,
        container: &Container,
        definition: ContainerDefinition,
        precondition: &Precondition,
    ) -> Result<Arc<Container>> {
        self.replace_container_with(container, definition, precondition, Consent::NotGiven)
    }

    /// Replaces a container's definition. A change of `defaultTtl` costs the same however many items there are (T11), and a
    /// new indexing policy is built in the background while queries go on with the old one.
    pub fn replace_container_with(
        &self,
        container: &Container,
        mut definition: ContainerDefinition,
        precondition: &Precondition,
        consent: Consent,
    ) -> Result<Arc<Container>> {
        let _change = self.changes.lock();
        let current = self.container_by_rid(container.rid)?;
        definition.keep_what_clients_leave_out(&current.definition);
        check_replacement(&current.definition, &definition)?;
        precondition.check(&current.etag(), format_args!("container '{}'", current.name()))?;

        // Readers wait from before the change takes its time until it is in force: see `gate`.
        let mut locks: Vec<_> = current.partitions.iter().map(|partition| partition.policy.write()).collect();
        let lifecycle = locks.first().map(|policy| policy.lifecycle.clone()).unwrap_or_default();
        let doomed = Arc::clone(&current);
        let (replaced, policies, indexes) = self.change(move |tx| {
            let mut next = Container { definition, ..(*doomed).clone() };
            let ids: Vec<_> = next.partitions.iter().map(|partition| partition.id).collect();
            // The feed first: what the new rule kills at once is told in it.
            let wish = Change::Lifecycle(doomed.definition.wishes_after(&next.definition, lifecycle));
            let changes = [wish, Change::DefaultTtl(next.definition.default_ttl)];
            let policies = change_policies(tx, &ids, &changes, consent)?;
            let indexes = next
                .partitions
                .iter()
                .map(|partition| index::follow(tx, partition.id, &next.definition.indexing))
                .collect::<Result<Vec<_>>>()?;
            next.stamp = stamp(tx);
            put_container(tx, &next);
            Ok((Arc::new(next), policies, indexes))
        })?;
        for (lock, policy) in locks.iter_mut().zip(policies) {
            **lock = Arc::new(policy);
        }
        drop(locks);
        for (partition, indexes) in replaced.partitions.iter().zip(indexes) {
            partition.install_indexes(indexes);
            partition.next_look.at_once();
        }
        self.update(|catalog| catalog.insert(Arc::clone(&replaced)));
        self.alarm.ring();
        Ok(replaced)
    }

    /// Removes a container. Its items are gone at once; their bytes go in the background.
    pub fn delete_container(&self, container: &Container, precondition: &Precondition) -> Result<()> {
        self.settle(&Holder::Container(self.container_by_rid(container.rid)?))?;
        let _change = self.changes.lock();
        let current = self.container_by_rid(container.rid)?;
        precondition.check(&current.etag(), format_args!("container '{}'", current.name()))?;
        let doomed = Arc::clone(&current);
        self.change(move |tx| {
            drop_container(tx, &doomed)?;
            tx.next_sequence();
            Ok(())
        })?;
        let key = (current.rid.database_rid(), current.name().to_owned());
        self.update(|catalog| catalog.containers.remove(&key));
        self.alarm.ring();
        Ok(())
    }

    /// Gives a database or container another throughput.
    pub fn replace_offer(
        &self,
        rid: OfferRid,
        throughput: Throughput,
        precondition: &Precondition,
    ) -> Result<Offer> {
        let _change = self.changes.lock();
        let current = self.offer(rid)?;
        precondition.check(&current.etag, format_args!("offer {rid}"))?;
        throughput.check_least(current.highest)?;
        let catalog = self.catalog();
        let provision = move |tx: &mut Transaction<'_>, before: Option<Provision>| {
            before.map(|before| before.replaced(throughput, stamp(tx)))
        };
        let owner = |database: &&Arc<Database>| database.rid.0 == rid.0 && database.provision.is_some();
        if let Some(database) = catalog.databases.values().find(owner).cloned() {
            let next = self.change(move |tx| {
                let next = Database { provision: provision(tx, database.provision), ..(*database).clone() };
                put(tx, Key::Database(next.rid.0), next.encode());
                Ok(Arc::new(next))
            })?;
            self.update(|catalog| catalog.databases.insert(next.name.clone(), next));
        } else {
            let owner = |container: &&Arc<Container>| {
                container.rid.container == rid.0 && container.provision.is_some()
            };
            let Some(container) = catalog.containers.values().find(owner).cloned() else {
                return Err(Error::NotFound { what: format!("offer {rid}") });
            };
            let next = self.change(move |tx| {
                let next =
                    Container { provision: provision(tx, container.provision), ..(*container).clone() };
                put_container(tx, &next);
                Ok(Arc::new(next))
            })?;
            self.update(|catalog| catalog.insert(next));
        }
        self.offer(rid)
    }

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

/// The policy of a partition after changes of its rules, written if it differs. Whoever calls holds the partition's policy
/// lock, see `gate`.
pub(crate) fn change_policy(
    tx: &mut Transaction<'_>,
    partition: PartitionId,
    changes: &[Change],
) -> Result<Policy> {
    let before = load_policy(tx, partition)?;
    let (mut next, mut events) = (before.clone(), Events::default());
    for change in changes {
        if !next.differs(change) {
            continue;
        }
        if tx.clock_is_suspect() && next.judges(change) {
            return Err(Error::ClockSuspect { what: "an expiry rule is changed" });
        }
        let sequence = events.next(tx);
        let occupied = |queue: Queue, through: Millis| purge::is_occupied(tx, partition, queue, through);
        // A change that judges nobody is made while the clock is suspect, too: its instant is a trusted one.
        let policy = next.change(change.clone(), tx.trusted_time(), sequence, occupied)?;
        history::follow(tx, partition, &next, &policy, sequence)?;
        next = policy;
    }
    if next.version != before.version {
        put(tx, Key::Policy(partition), next.encode());
        deletions::follow(tx, partition, &before, &next)?;
    }
    Ok(next)
}

/// Removes a container's records and leaves a note for each partition that it is to be cleared away.
/// Removes a database and its containers.
pub(crate) fn drop_database(
    tx: &mut Transaction<'_>,
    database: DatabaseRid,
    containers: &[Arc<Container>],
) -> Result<()> {
    for container in containers {
        drop_container(tx, container)?;
    }
    resources::remove_all(tx, Owner::Database(database))?;
    remove(tx, Key::Database(database.0));
    Ok(())
}

fn drop_container(tx: &mut Transaction<'_>, container: &Container) -> Result<()> {
    for partition in &container.partitions {
        index::forget(tx, partition.id)?;
        drop_partition(tx, partition)?;
    }
    remove(tx, Key::Container { database: container.rid.database, container: container.rid.container });
    for kind in [ScriptKind::StoredProcedure, ScriptKind::Trigger, ScriptKind::Function] {
        resources::remove_all(tx, Owner::Container(container.rid, kind))?;
    }
    Ok(())
}

/// A partition takes no more writes, and what lies in it is to be cleared away.
pub(crate) fn drop_partition(tx: &mut Transaction<'_>, partition: &Partition) -> Result<()> {
    close_partition(tx, partition)?;
    put(tx, Key::Dropped(partition.id), Vec::new());
    Ok(())
}

/// A partition takes no more writes; returns the policy that it had. Refused if anything in it is held, or dead and not
/// archived.
pub(crate) fn close_partition(tx: &mut Transaction<'_>, partition: &Partition) -> Result<Policy> {
    let id = partition.id;
    hold::check_partition(tx, id)?;
    archive::check_drop(tx, partition)?;
    deletions::dropped(tx, id)?;
    let policy = load_policy(tx, id)?;
    remove(tx, Key::Policy(id));
    Ok(policy)
}

fn put_container(tx: &mut Transaction<'_>, container: &Container) {
    let key = Key::Container { database: container.rid.database, container: container.rid.container };
    put(tx, key, container.encode());
}

/// Takes the next number for a database, container or partition.
pub(crate) fn next_number(tx: &mut Transaction<'_>) -> Result<u32> {
    let (keyspace, key) = Key::LastNumber.encode();
    let last = tx.get(keyspace, &key)?.map_or(Ok(0), |value| number_at(&value, 0))?;
    let next = last.checked_add(1).filter(|next| *next <= RESOURCES_MAX);
    let next = next.ok_or_else(|| Error::Unavailable("no more resource numbers".into()))?;
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

//! Creates, changes and deletes databases, containers and offers.

use std::sync::Arc;

use document::{ContainerRid, DatabaseRid, EffectiveRange, OfferRid, ScriptKind, check_resource_id};
use storage::Transaction;

use super::guard::{Consent, change_policies};
use super::policies::change_policy;
use crate::Engine;
use crate::catalog::budget::SharedBucket;
use crate::catalog::container::{Api, Container, Database, Partition, Provision};
use crate::catalog::hold_note;
use crate::catalog::owner::Owner;
use crate::catalog::resources::{self, ResourceParent};
use crate::catalog::{load_policy, next_number, put, remove, stamp};
use crate::definition::{ContainerDefinition, check_new, check_replacement};
use crate::entries::counters;
use crate::evidence::archive;
use crate::evidence::deletions;
use crate::expiry::{Change, Lifecycle, Policy};
use crate::index;
use crate::keys::{Key, PartitionId};
use crate::types::error::{Error, Result};
use crate::types::request::Precondition;
use crate::types::throughput::{Offer, PerformanceLevel, Throughput};

/// Changes. Each call returns when the change is durable.
impl Engine {
    /// Creates a database.
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

    /// Deletes a database with all its containers.
    pub fn delete_database(&self, database: &Database, precondition: &Precondition) -> Result<()> {
        for container in self.containers(database) {
            self.settle(&Owner::Container(container))?;
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

    /// Creates a container, with as many physical partitions as its throughput requires.
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

    /// Creates a container with a physical partition for each of `ranges`, which must cover everything in order.
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
                let settings = Lifecycle { history_minutes, ttl_property_path, ..Lifecycle::default() };
                let edit = Change::Lifecycle(settings);
                let policy = change_policy(tx, id, &[edit])?;
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

    /// Does what [`replace_container_with`](Engine::replace_container_with) does, without consent.
    pub fn replace_container(
        &self,
        container: &Container,
        definition: ContainerDefinition,
        precondition: &Precondition,
    ) -> Result<Arc<Container>> {
        self.replace_container_with(container, definition, precondition, Consent::NotGiven)
    }

    /// Replaces a container's definition. A change of `defaultTtl` costs the same however many items there are (T11).
    /// A new indexing policy is built in the background while queries use the old one.
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

        // Readers wait from before the change takes its time until it is in force; see `gate`.
        let mut locks: Vec<_> = current.partitions.iter().map(|partition| partition.policy.write()).collect();
        let lifecycle = locks.first().map(|policy| policy.lifecycle.clone()).unwrap_or_default();
        let doomed = Arc::clone(&current);
        let (replaced, policies, indexes) = self.change(move |tx| {
            let mut next = Container { definition, ..(*doomed).clone() };
            let ids: Vec<_> = next.partitions.iter().map(|partition| partition.id).collect();
            // The feed is turned on first, so that it reports what the new rule expires at once.
            let edit = Change::Lifecycle(doomed.definition.lifecycle_after(&next.definition, lifecycle));
            let changes = [edit, Change::DefaultTtl(next.definition.default_ttl)];
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
            partition.next_due.at_once();
        }
        self.update(|catalog| catalog.insert(Arc::clone(&replaced)));
        self.alarm.ring();
        Ok(replaced)
    }

    /// Deletes a container. Its items are gone at once; their bytes are removed in the background.
    pub fn delete_container(&self, container: &Container, precondition: &Precondition) -> Result<()> {
        self.settle(&Owner::Container(self.container_by_rid(container.rid)?))?;
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
        level: Option<PerformanceLevel>,
        precondition: &Precondition,
    ) -> Result<Offer> {
        let _change = self.changes.lock();
        let current = self.offer(rid)?;
        precondition.check(&current.etag, format_args!("offer {rid}"))?;
        throughput.check_least(current.highest)?;
        let catalog = self.catalog();
        let provision = move |tx: &mut Transaction<'_>, before: Option<Provision>| {
            let before = before?;
            let level = level.unwrap_or(before.level);
            Some(Provision { level, ..before.replaced(throughput, stamp(tx)) })
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
}

/// Deletes a database and its containers.
pub(crate) fn drop_database(
    tx: &mut Transaction<'_>,
    database: DatabaseRid,
    containers: &[Arc<Container>],
) -> Result<()> {
    for container in containers {
        drop_container(tx, container)?;
    }
    resources::remove_all(tx, ResourceParent::Database(database))?;
    remove(tx, Key::Database(database.0));
    Ok(())
}

/// Removes a container's records and marks each of its partitions as dropped, so that the background removes its
/// entries.
fn drop_container(tx: &mut Transaction<'_>, container: &Container) -> Result<()> {
    for partition in &container.partitions {
        index::forget(tx, partition.id)?;
        drop_partition(tx, partition)?;
    }
    remove(tx, Key::Container { database: container.rid.database, container: container.rid.container });
    for kind in [ScriptKind::StoredProcedure, ScriptKind::Trigger, ScriptKind::Function] {
        resources::remove_all(tx, ResourceParent::Container(container.rid, kind))?;
    }
    Ok(())
}

/// Closes a partition to writes and marks it as dropped.
pub(crate) fn drop_partition(tx: &mut Transaction<'_>, partition: &Partition) -> Result<()> {
    close_partition(tx, partition)?;
    put(tx, Key::Dropped(partition.id), Vec::new());
    Ok(())
}

/// Closes a partition to writes and returns the policy that it had. Refused if an item in it is held, or has expired
/// and is not archived.
pub(crate) fn close_partition(tx: &mut Transaction<'_>, partition: &Partition) -> Result<Policy> {
    let id = partition.id;
    hold_note::check_partition(tx, id)?;
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

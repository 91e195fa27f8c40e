//! Databases and collections of the MongoDB API: looks them up, creates, renames and drops them.
//!
//! A database is created with its first collection and removed with its last, unless it was created explicitly.

use std::sync::Arc;

use document::{ContainerRid, DatabaseRid, EffectiveRange, Sequence};
use storage::Transaction;

use super::{Collection, CollectionDefinition};
use crate::Engine;
use crate::catalog::budget::SharedBucket;
use crate::catalog::collection_indexes::{IndexList, KnownIndexes};
use crate::catalog::container::{Api, Database, Partition, Provision};
use crate::catalog::hold_note;
use crate::catalog::owner::Owner;
use crate::catalog::retired::Retired;
use crate::catalog::{next_number, put, remove, stamp};
use crate::definition::DefaultTtl;
use crate::evidence::deletions;
use crate::expiry::{Change, Lifecycle, Policy};
use crate::feed::watch::{self, CatalogChange, LogEntry};
use crate::index::Indexes;
use crate::keys::Position;
use crate::keys::{Key, PartitionId};
use crate::schema::containers::drop_partition;
use crate::schema::policies::change_policy;
use crate::schema::retire::retire;
use crate::types::error::{Error, Result};
use crate::types::events::Events;
use crate::types::limits::{COLLECTION_NAME_BYTES_MAX, WATCH_MINUTES};
use crate::types::throughput::Throughput;

/// What happens to a collection whose name another one takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NameHolder {
    /// It keeps its name, and the other one is refused.
    Stays,
    /// It is dropped.
    Goes,
    /// It is dropped, and the other one takes over its settings for archive and deletion record.
    Bequeaths,
}

/// A database that is being dropped, as it was before the transaction.
pub(crate) struct DoomedDatabase {
    database: Arc<Database>,
    watched: bool,
    /// Its collections, and whether each is watched.
    collections: Vec<(Arc<Collection>, bool)>,
}

impl DoomedDatabase {
    /// Drops it with all its collections; those with a feed that can still be read remain as retired ones.
    pub(crate) fn drop(&self, tx: &mut Transaction<'_>, events: &mut Events) -> Result<Vec<Arc<Retired>>> {
        let mut retired = Vec::new();
        for (collection, watched) in &self.collections {
            retired.extend(drop_collection(tx, events, collection, *watched)?);
        }
        remove(tx, Key::Database(self.database.rid.0));
        let sequence = events.next(tx);
        if self.watched {
            let position = Position::of_change(tx.trusted_time(), sequence);
            let (change, database) = (CatalogChange::DropDatabase, self.database.name.clone());
            let (name, partition) = (String::new(), PartitionId(0));
            watch::record(tx, &LogEntry { position, change, database, name, partition });
        }
        Ok(retired)
    }
}

/// Lookups.
impl Engine {
    /// Returns all databases of the MongoDB API, by name.
    pub fn collection_databases(&self) -> Vec<Arc<Database>> {
        self.catalog().collection_databases.values().cloned().collect()
    }

    /// Returns the database of that name, of the MongoDB API.
    pub fn collection_database(&self, name: &str) -> Option<Arc<Database>> {
        self.catalog().collection_databases.get(name).cloned()
    }

    /// Returns all collections of a database, by name; none if there is no such database.
    pub fn collections(&self, database: &str) -> Vec<Arc<Collection>> {
        let catalog = self.catalog();
        let Some(database) = catalog.collection_databases.get(database) else { return Vec::new() };
        let first = (database.rid, String::new());
        let from_first = catalog.collections.range(first..);
        from_first
            .take_while(|((owner, _), _)| *owner == database.rid)
            .map(|(_, it)| Arc::clone(it))
            .collect()
    }

    /// Returns the collection of that name.
    pub fn collection(&self, database: &str, name: &str) -> Option<Arc<Collection>> {
        let catalog = self.catalog();
        let database = catalog.collection_databases.get(database)?;
        catalog.collections.get(&(database.rid, name.to_owned())).cloned()
    }
}

/// Changes. Each call returns when the change is durable.
impl Engine {
    /// Creates a database that stays when it has no collection.
    pub fn create_collection_database(
        &self,
        name: &str,
        throughput: Option<Throughput>,
    ) -> Result<Arc<Database>> {
        check_name("database", name)?;
        throughput.map(Throughput::check).transpose()?;
        let _change = self.changes.lock();
        if self.collection_database(name).is_some() {
            return Err(Error::Exists { what: format!("database '{name}'") });
        }
        let name = name.to_owned();
        let database = self.change(move |tx| {
            let mut database = new_database(tx, name, true)?;
            let stamp = database.stamp;
            database.provision = throughput.map(|throughput| Provision::new(throughput, stamp));
            put(tx, Key::Database(database.rid.0), database.encode());
            Ok(Arc::new(database))
        })?;
        self.update(|catalog| {
            catalog.collection_databases.insert(database.name.clone(), Arc::clone(&database))
        });
        Ok(database)
    }

    /// Gives a database another throughput; from then on it stays when it has no collection.
    pub fn change_collection_database(
        &self,
        name: &str,
        throughput: Option<Throughput>,
    ) -> Result<Arc<Database>> {
        throughput.map(Throughput::check).transpose()?;
        let _change = self.changes.lock();
        let Some(database) = self.collection_database(name) else {
            return Err(Error::NotFound { what: format!("database '{name}'") });
        };
        let changed = self.change(move |tx| {
            let stamp = stamp(tx);
            let provision = throughput.map(|throughput| Provision::new(throughput, stamp));
            let changed = Database { kept: true, stamp, provision, ..(*database).clone() };
            put(tx, Key::Database(changed.rid.0), changed.encode());
            Ok(Arc::new(changed))
        })?;
        self.update(|catalog| {
            catalog.collection_databases.insert(changed.name.clone(), Arc::clone(&changed))
        });
        Ok(changed)
    }

    /// Returns a database with its collections, for dropping it. The caller holds the lock of changes.
    pub(crate) fn doomed(&self, database: Arc<Database>) -> Result<DoomedDatabase> {
        let mut collections = Vec::new();
        for collection in self.collections(&database.name) {
            let watched = self.is_watched(&database.name, &collection.name)?;
            collections.push((collection, watched));
        }
        let watched = self.is_database_watched(&database.name)?;
        Ok(DoomedDatabase { database, watched, collections })
    }

    /// Removes a database with all its collections.
    pub fn drop_collection_database(&self, name: &str) -> Result<()> {
        for collection in self.collections(name) {
            self.settle(&Owner::Collection(collection))?;
        }
        let _change = self.changes.lock();
        let Some(database) = self.collection_database(name) else {
            return Err(Error::NotFound { what: format!("database '{name}'") });
        };
        let rid = database.rid;
        let doomed = self.doomed(database)?;
        let retired = self.change(move |tx| doomed.drop(tx, &mut Events::default()))?;
        self.update(|catalog| {
            catalog.collection_databases.remove(name);
            catalog.collections.retain(|(owner, _), _| *owner != rid);
            catalog.retire(retired);
        });
        self.alarm.ring();
        Ok(())
    }

    /// Creates a collection, and its database if it does not exist.
    pub fn create_collection(
        &self,
        database: &str,
        name: &str,
        definition: CollectionDefinition,
        throughput: Option<Throughput>,
    ) -> Result<Arc<Collection>> {
        check_name("database", database)?;
        check_name("collection", name)?;
        throughput.map(Throughput::check).transpose()?;
        let _change = self.changes.lock();
        if self.collection(database, name).is_some() {
            return Err(Error::Exists { what: format!("collection '{database}.{name}'") });
        }
        let (owner, watched) = (self.collection_database(database), self.is_watched(database, name)?);
        let (database, name) = (database.to_owned(), name.to_owned());
        let (owner, collection) = self.change(move |tx| {
            let owner = owner_of(tx, owner, database)?;
            let stamp = stamp(tx);
            let rid = ContainerRid { database: owner.rid.0, container: next_number(tx)? };
            let id = PartitionId(next_number(tx)?);
            let mut policy = Policy::new(DefaultTtl::Off);
            if watched {
                watch::born_watched(tx, id, &mut policy, stamp.sequence)?;
            }
            put(tx, Key::Policy(id), policy.encode());
            let partition =
                Partition::new(id, 0, EffectiveRange::all(), policy, Indexes::default()).newborn();
            let known = KnownIndexes::new(Arc::new(IndexList::new(&definition.collation)));
            let collection = Collection {
                rid,
                database: owner.name.clone(),
                name,
                definition,
                partition: Arc::new(partition),
                known: Arc::new(known),
                stamp,
                provision: throughput.map(|throughput| Provision::new(throughput, stamp)),
            };
            put_collection(tx, &collection);
            if watched {
                log(tx, &collection, stamp.sequence, CatalogChange::Create);
            }
            Ok((owner, Arc::new(collection)))
        })?;
        self.update(|catalog| {
            catalog.collection_databases.insert(owner.name.clone(), owner);
            catalog.insert_collection(Arc::clone(&collection));
        });
        Ok(collection)
    }

    /// Removes a collection. Its items are gone at once; their bytes are removed in the background.
    pub fn drop_collection(&self, collection: &Collection) -> Result<()> {
        self.settle(&Owner::Collection(self.current(collection)?))?;
        let _change = self.changes.lock();
        let current = self.current(collection)?;
        let emptied = self.emptied_by(&current);
        let watched = self.is_watched(&current.database, &current.name)?;
        let (doomed, gone) = (Arc::clone(&current), emptied.clone());
        let retired = self.change(move |tx| {
            let retired = drop_collection(tx, &mut Events::default(), &doomed, watched)?;
            if let Some(database) = gone {
                remove(tx, Key::Database(database.rid.0));
            }
            Ok(retired)
        })?;
        self.update(|catalog| {
            catalog.retire(retired);
            catalog.collections.remove(&(current.rid.database_rid(), current.name.clone()));
            if let Some(database) = emptied {
                catalog.collection_databases.remove(&database.name);
            }
        });
        self.alarm.ring();
        Ok(())
    }

    /// Gives a collection another name, perhaps in another database. Fails if a collection has that name, unless that one may be
    /// dropped; then it is dropped in the same commit.
    pub fn rename_collection(
        &self,
        collection: &Collection,
        database: &str,
        name: &str,
        drop_target: bool,
    ) -> Result<Arc<Collection>> {
        let item_owner = if drop_target { NameHolder::Goes } else { NameHolder::Stays };
        self.rename(collection, database, name, item_owner)
    }

    /// Gives a collection the name of another, which is dropped if it exists. The collection takes over the other's settings for
    /// archive and deletion record.
    pub fn replace_collection(
        &self,
        collection: &Collection,
        database: &str,
        name: &str,
    ) -> Result<Arc<Collection>> {
        self.rename(collection, database, name, NameHolder::Bequeaths)
    }

    fn rename(
        &self,
        collection: &Collection,
        database: &str,
        name: &str,
        item_owner: NameHolder,
    ) -> Result<Arc<Collection>> {
        let drop_target = item_owner != NameHolder::Stays;
        check_name("database", database)?;
        check_name("collection", name)?;
        if let Some(target) = self.collection(database, name).filter(|_| drop_target) {
            self.settle(&Owner::Collection(target))?;
        }
        let _change = self.changes.lock();
        let current = self.current(collection)?;
        let target = self.collection(database, name);
        if let Some(target) = target.as_ref().filter(|target| !drop_target || target.rid == current.rid) {
            return Err(Error::Exists { what: format!("collection '{}'", target.namespace()) });
        }
        let owner = self.collection_database(database);
        let emptied = if current.database == database { None } else { self.emptied_by(&current) };
        let (database, name) = (database.to_owned(), name.to_owned());
        let (before, gone) = (Arc::clone(&current), emptied.clone());
        let into_watched = self.is_watched(&database, &name)?;
        let watched = into_watched || self.is_watched(&current.database, &current.name)?;
        // From here on the feed has the collection's events. Readers wait meanwhile: see `gate`.
        let mut policy_in_force = current.partition.policy.write();
        let begins = into_watched && !watch::keeps_feed(&policy_in_force);
        let replaced = target.as_ref().filter(|_| item_owner == NameHolder::Bequeaths);
        let replaced = replaced.map(|target| target.partition.policy.read().lifecycle.clone());
        let settings = settings_by_name(&policy_in_force.lifecycle, begins, replaced);
        let opens = settings.deletion_record && !policy_in_force.lifecycle.deletion_record;
        let change = (settings != policy_in_force.lifecycle).then_some([Change::Lifecycle(settings)]);
        let (owner, renamed, retired, policy) = self.change(move |tx| {
            hold_note::check_partition(tx, before.partition.id)?;
            let owner = owner_of(tx, owner, database)?;
            let mut retired = None;
            if let Some(target) = &target {
                retired = displace(tx, target, into_watched)?;
            }
            remove(tx, record_key(before.rid));
            if let Some(database) = gone {
                remove(tx, Key::Database(database.rid.0));
            }
            let policy = change.map(|change| change_policy(tx, before.partition.id, &change)).transpose()?;
            let rid = ContainerRid { database: owner.rid.0, container: before.rid.container };
            let database = owner.name.clone();
            let renamed = Collection { rid, database, name, stamp: stamp(tx), ..(*before).clone() };
            put_collection(tx, &renamed);
            let renamed = Arc::new(renamed);
            deletions::renamed(tx, renamed.partition.id, &renamed.database, &renamed.name)?;
            if let Some(policy) = policy.as_ref().filter(|_| opens) {
                deletions::opened(tx, &Owner::Collection(Arc::clone(&renamed)), 0, policy)?;
            }
            if watched {
                let (database, name) = (renamed.database.clone(), renamed.name.clone());
                let rename = CatalogChange::Rename { database, name, begins };
                log(tx, &before, renamed.stamp.sequence, rename);
            }
            Ok((owner, renamed, retired, policy))
        })?;
        if let Some(policy) = policy {
            *policy_in_force = Arc::new(policy);
        }
        drop(policy_in_force);
        current.partition.next_due.at_once();
        self.update(|catalog| {
            catalog.retire(retired);
            catalog.collections.remove(&(current.rid.database_rid(), current.name.clone()));
            if let Some(database) = emptied {
                catalog.collection_databases.remove(&database.name);
            }
            catalog.collection_databases.insert(owner.name.clone(), owner);
            catalog.insert_collection(Arc::clone(&renamed));
        });
        self.alarm.ring();
        Ok(renamed)
    }

    /// Gives a collection other options, or another throughput. Its `uuid` and its collation stay.
    pub fn change_collection(
        &self,
        collection: &Collection,
        definition: CollectionDefinition,
        throughput: Option<Throughput>,
    ) -> Result<Arc<Collection>> {
        throughput.map(Throughput::check).transpose()?;
        let _change = self.changes.lock();
        let current = self.current(collection)?;
        let changed = self.change(move |tx| {
            let stamp = stamp(tx);
            let CollectionDefinition { uuid, collation, .. } = current.definition.clone();
            let definition = CollectionDefinition { uuid, collation, ..definition };
            let provision = if throughput == current.throughput() {
                current.provision
            } else {
                throughput.map(|throughput| Provision::new(throughput, stamp))
            };
            let changed = Collection { definition, stamp, provision, ..(*current).clone() };
            put_collection(tx, &changed);
            Ok(Arc::new(changed))
        })?;
        self.update(|catalog| catalog.insert_collection(Arc::clone(&changed)));
        Ok(changed)
    }

    /// Returns the newest handle of a collection.
    pub(crate) fn current(&self, collection: &Collection) -> Result<Arc<Collection>> {
        let catalog = self.catalog();
        let found = catalog.collections.values().find(|it| it.rid.container == collection.rid.container);
        let missing = || Error::NotFound { what: format!("collection '{}'", collection.namespace()) };
        found.cloned().ok_or_else(missing)
    }

    /// Returns the database that is dropped together with this collection, its last.
    fn emptied_by(&self, collection: &Collection) -> Option<Arc<Database>> {
        let database = self.collection_database(&collection.database)?;
        (!database.kept && self.collections(&collection.database).len() == 1).then_some(database)
    }
}

/// Returns the database of a new collection, creating it if it does not exist.
fn owner_of(tx: &mut Transaction<'_>, owner: Option<Arc<Database>>, name: String) -> Result<Arc<Database>> {
    if let Some(owner) = owner {
        return Ok(owner);
    }
    let made = new_database(tx, name, false)?;
    put(tx, Key::Database(made.rid.0), made.encode());
    Ok(Arc::new(made))
}

fn new_database(tx: &mut Transaction<'_>, name: String, kept: bool) -> Result<Database> {
    let stamp = stamp(tx);
    let rid = DatabaseRid(next_number(tx)?);
    Ok(Database {
        name,
        rid,
        api: Api::MongoDb,
        kept,
        stamp,
        provision: None,
        bucket: SharedBucket::default(),
    })
}

fn record_key(rid: ContainerRid) -> Key<'static> {
    Key::Collection { database: rid.database, container: rid.container }
}

pub(super) fn put_collection(tx: &mut Transaction<'_>, collection: &Collection) {
    put(tx, record_key(collection.rid), collection.encode());
}

/// Removes a collection; one that is watched and keeps a feed is retired.
fn drop_collection(
    tx: &mut Transaction<'_>,
    events: &mut Events,
    collection: &Arc<Collection>,
    watched: bool,
) -> Result<Option<Arc<Retired>>> {
    let sequence = events.next(tx);
    if watched {
        log(tx, collection, sequence, CatalogChange::Drop);
    }
    take_out(tx, collection, watched, sequence)
}

/// Removes a collection whose name another one takes.
fn displace(
    tx: &mut Transaction<'_>,
    collection: &Arc<Collection>,
    watched: bool,
) -> Result<Option<Arc<Retired>>> {
    let sequence = Events::default().next(tx);
    take_out(tx, collection, watched, sequence)
}

fn take_out(
    tx: &mut Transaction<'_>,
    collection: &Arc<Collection>,
    watched: bool,
    sequence: Sequence,
) -> Result<Option<Arc<Retired>>> {
    remove(tx, Key::CollectionIndexes(collection.partition.id));
    remove(tx, record_key(collection.rid));
    if watched && watch::keeps_feed(&collection.partition.policy.read()) {
        return retire(tx, collection, sequence).map(Some);
    }
    drop_partition(tx, &collection.partition)?;
    Ok(None)
}

/// Logs an event of a collection for its watches.
fn log(tx: &mut Transaction<'_>, collection: &Collection, sequence: Sequence, change: CatalogChange) {
    let position = Position::of_change(tx.trusted_time(), sequence);
    let (database, name) = (collection.database.clone(), collection.name.clone());
    let partition = collection.partition.id;
    watch::record(tx, &LogEntry { position, change, database, name, partition });
}

/// Checks the length of a name. The front end decides which characters it may have.
fn check_name(what: &'static str, name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Error::invalid(format!("A {what} must have a name.")));
    }
    if name.len() > COLLECTION_NAME_BYTES_MAX {
        let what = if what == "database" { "the name of the database" } else { "the name of the collection" };
        return Err(Error::TooLarge { what, actual: name.len(), limit: COLLECTION_NAME_BYTES_MAX });
    }
    Ok(())
}

/// Returns the lifecycle settings of a collection with its new name: with a feed if that begins now, and with the settings that it
/// takes over from the collection that had the name.
fn settings_by_name(own: &Lifecycle, begins: bool, replaced: Option<Lifecycle>) -> Lifecycle {
    let mut settings = own.clone();
    if begins {
        settings.history_minutes = Some(WATCH_MINUTES);
    }
    if let Some(replaced) = replaced {
        (settings.archive, settings.deletion_record) = (replaced.archive, replaced.deletion_record);
    }
    settings
}

//! The catalog: every record can be read, belongs to something that exists, and contradicts no other record.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use document::{ContainerRid, Document, EffectiveKey};
use storage::{Direction, KeyRange, Keyspace};

use super::collection::CheckedCollection;
use super::finding::{Fix, Subject};
use super::items::strange;
use super::names::{self, CatalogKey};
use super::partition::CheckedPartition;
use super::{Inspection, LOST_HERE};
use crate::catalog::container::{Api, Container, Database};
use crate::catalog::load_policy;
use crate::catalog::retired;
use crate::catalog::watch::is_watch;
use crate::collection::Collection;
use crate::definition::DefaultTtl;
use crate::expiry::Policy;
use crate::feed::watch;
use crate::index::Indexes;
use crate::keys::{Generation, Key, PARTITIONED, PartitionId};
use crate::types::error::{Error, Result};
use crate::write::container_schema::ContainerSchema;

/// What exists according to the catalog.
#[derive(Default)]
pub(super) struct Layout {
    /// Partitions whose items can be checked.
    pub(super) checked: Vec<Box<dyn CheckedPartition>>,
    /// Dropped collections whose feed is still kept.
    pub(super) retired: Vec<(PartitionId, String)>,
    /// Every partition that some record names, and what it is.
    partitions: BTreeMap<PartitionId, Role>,
    databases: BTreeMap<u32, (String, Api)>,
    containers: BTreeSet<u32>,
    users: BTreeSet<u32>,
    highest: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// It accepts writes.
    InUse,
    /// Its entries are being removed.
    Dropped,
    /// Its feed may still be read.
    Retired,
}

const MADE_BY_USERS: &str = "users' definitions cannot be derived from other data; restore a backup";
const MAYBE_ALL_THAT_IS_LEFT: &str =
    "it may be all that is left of a container whose record is lost; restore a backup";
const CATALOG: &str = "the catalog";

impl Inspection<'_> {
    /// Reads the whole catalog.
    pub(super) fn catalog(&mut self) -> Result<Layout> {
        let (reader, mut layout) = (self.reader, Layout::default());
        let mut holders = Vec::new();
        let mut others = Vec::new();
        for entry in reader.scan(Keyspace::Catalog, KeyRange::all(), Direction::Forward) {
            let (key, value) = entry?;
            match CatalogKey::parse(&key) {
                None => self.book.refuse(Subject::Key, CATALOG, strange(Keyspace::Catalog, &key), LOST_HERE),
                Some(CatalogKey::Database(number)) => self.database(number, &value, &mut layout),
                Some(CatalogKey::Container { database, container }) => {
                    holders.push((Api::NoSql, ContainerRid { database, container }, value));
                }
                Some(CatalogKey::Collection { database, container }) => {
                    holders.push((Api::MongoDb, ContainerRid { database, container }, value));
                }
                Some(other) => others.push((other, key, value)),
            }
        }
        for (api, rid, value) in holders {
            self.holder(api, rid, value, &mut layout);
        }
        let notes: Vec<_> = others.iter().map(|(key, ..)| *key).collect();
        for key in notes {
            match key {
                CatalogKey::Dropped(partition) => self.role(partition, Role::Dropped, &mut layout),
                CatalogKey::Retired(partition) => self.role(partition, Role::Retired, &mut layout),
                CatalogKey::Resource { kind: 0, number, .. } => {
                    layout.users.insert(number);
                }
                _ => {}
            }
        }
        for (parsed, key, value) in others {
            self.record(parsed, &key, value, &mut layout)?;
        }
        self.last_number(&layout)?;
        Ok(layout)
    }

    fn database(&mut self, number: u32, value: &[u8], layout: &mut Layout) {
        layout.highest = layout.highest.max(number);
        match Database::decode(number, value) {
            Ok(database) => {
                let place = format!("database '{}'", database.name);
                let named = (database.name, database.api);
                if layout.databases.values().any(|known| *known == named) {
                    self.book.refuse(Subject::Catalog, &place, "two databases have this name", MADE_BY_USERS);
                }
                layout.databases.insert(number, named);
            }
            Err(error) => {
                self.book.refuse(
                    Subject::Catalog,
                    CATALOG,
                    format!("database {number}: {error}"),
                    MADE_BY_USERS,
                );
            }
        }
    }

    /// Reads a container or a collection.
    fn holder(&mut self, api: Api, rid: ContainerRid, value: Bytes, layout: &mut Layout) {
        layout.highest = layout.highest.max(rid.container);
        layout.containers.insert(rid.container);
        let Some((database, owner)) = layout.databases.get(&rid.database).cloned() else {
            let what = format!(
                "container {} belongs to database {}, which is not there",
                rid.container, rid.database
            );
            self.book.refuse(Subject::Catalog, CATALOG, what, MADE_BY_USERS);
            return;
        };
        if owner != api {
            let what = format!("container {} belongs to a database of the other API", rid.container);
            self.book.refuse(Subject::Catalog, &format!("database '{database}'"), what, MADE_BY_USERS);
        }
        let before = layout.partitions.len();
        let read = match api {
            Api::NoSql => self.container(rid, &database, &value, layout),
            Api::MongoDb => self.collection(rid, &database, value, layout),
        };
        if let Err(error) = read {
            let place = format!("database '{database}'");
            let partitions = layout.partitions.len() - before;
            let what =
                format!("container {} ({partitions} partitions) cannot be read: {error}", rid.container);
            self.book.refuse(Subject::Catalog, &place, what, MADE_BY_USERS);
        }
    }

    fn container(
        &mut self,
        rid: ContainerRid,
        database: &str,
        value: &[u8],
        layout: &mut Layout,
    ) -> Result<()> {
        let reader = self.reader;
        let bare = Container::decode(rid, database, value, |_| {
            Ok((Policy::new(DefaultTtl::Off), Indexes::default()))
        })?;
        for partition in &bare.partitions {
            self.role(partition.id, Role::InUse, layout);
        }
        let rules = |partition| Ok((load_policy(reader, partition)?, Indexes::load(reader, partition)?));
        let container = Arc::new(Container::decode(rid, database, value, rules)?);
        let place = format!("container '{database}/{}'", container.name());
        let ranges: Vec<_> = container.partitions.iter().map(|partition| &partition.range).collect();
        let is_whole = ranges.first().is_some_and(|first| first.min == EffectiveKey::min())
            && ranges.last().is_some_and(|last| last.max == EffectiveKey::max())
            && ranges.windows(2).all(|pair| pair[0].max == pair[1].min);
        if !is_whole {
            self.book.refuse(Subject::Catalog, &place, "its ranges leave gaps or overlap", MADE_BY_USERS);
        }
        for partition in &container.partitions {
            if partition.policy.read().default_ttl != container.definition.default_ttl {
                let what = format!(
                    "its definition and the rules of range {} disagree on defaultTtl",
                    partition.index
                );
                let reason = "it is unknown which is right; set defaultTtl again";
                self.book.refuse(Subject::Policy, &place, what, reason);
            }
            let schema = ContainerSchema::open(reader, &container, partition)?;
            layout.checked.push(Box::new(schema));
        }
        Ok(())
    }

    fn collection(
        &mut self,
        rid: ContainerRid,
        database: &str,
        value: Bytes,
        layout: &mut Layout,
    ) -> Result<()> {
        if let Some(partition) = Collection::partition_of_record(&value) {
            self.role(partition, Role::InUse, layout);
        }
        let collection = Arc::new(Collection::load(rid, database, value, self.reader)?);
        let checked = CheckedCollection::open(self.reader, &collection, self.now)?;
        layout.checked.push(Box::new(checked));
        Ok(())
    }

    fn role(&mut self, partition: PartitionId, role: Role, layout: &mut Layout) {
        layout.highest = layout.highest.max(partition.0);
        if layout.partitions.insert(partition, role).is_some() {
            let what = format!("partition {} belongs to two records of the catalog", partition.0);
            self.book.refuse(Subject::Catalog, CATALOG, what, MADE_BY_USERS);
        }
    }

    /// Checks every record that is neither a database nor a container.
    fn record(&mut self, parsed: CatalogKey, key: &[u8], value: Bytes, layout: &mut Layout) -> Result<()> {
        let role = |partition: PartitionId| layout.partitions.get(&partition).copied();
        match parsed {
            CatalogKey::Policy(partition) if role(partition) != Some(Role::InUse) => {
                let what = format!("rules of partition {}, which no container has", partition.0);
                self.book.refuse(Subject::Policy, CATALOG, what, MAYBE_ALL_THAT_IS_LEFT);
            }
            CatalogKey::CollectionIndexes(partition) | CatalogKey::IndexState(partition) => {
                self.belongs_to(partition, role(partition));
            }
            CatalogKey::IndexPolicy(partition, generation) => {
                self.belongs_to(partition, role(partition));
                self.index_policy(partition, generation, key, layout)?;
            }
            CatalogKey::Resource { kind, parent, number } => {
                layout.highest = layout.highest.max(number);
                self.resource(kind, parent, value, layout);
            }
            CatalogKey::Retired(partition) => match retired::name(partition, value) {
                Some(name) => layout.retired.push((partition, name)),
                None => self.unreadable_record("a dropped collection"),
            },
            CatalogKey::Watermark if value.len() != 8 => self.unreadable_record("a watermark"),
            CatalogKey::Watch if !is_watch(key, &value) => self.unreadable_record("a watch"),
            CatalogKey::WatchLog if !watch::is_log_entry(key, value) => {
                self.unreadable_record("an entry of the log of watched collections");
            }
            _ => {}
        }
        Ok(())
    }

    fn unreadable_record(&mut self, what: &str) {
        let what = format!("the record of {what} cannot be read");
        self.book.refuse(Subject::Catalog, CATALOG, what, "it cannot be derived from other data");
    }

    fn belongs_to(&mut self, partition: PartitionId, role: Option<Role>) {
        if role != Some(Role::InUse) {
            let what = format!("an index of partition {}, which no container has", partition.0);
            self.book.refuse(Subject::Catalog, CATALOG, what, MAYBE_ALL_THAT_IS_LEFT);
        }
    }

    /// Checks that only existing generations have a policy.
    fn index_policy(
        &mut self,
        partition: PartitionId,
        generation: Generation,
        key: &[u8],
        layout: &Layout,
    ) -> Result<()> {
        let checked = layout.checked.iter().find(|checked| checked.id() == partition);
        let is_known =
            checked.is_none_or(|it| it.shaped().contains(&generation) || it.is_cleared(generation));
        if is_known {
            return Ok(());
        }
        let place = checked.map_or_else(|| CATALOG.to_owned(), |checked| checked.label());
        let what = format!("the policy of generation {} of its index, which is not there", generation.0);
        let fix = Fix::Remove(Keyspace::Catalog, key.to_vec());
        self.book.fix(Subject::Catalog, &place, what, [fix])
    }

    fn resource(&mut self, kind: u8, parent: u32, value: Bytes, layout: &Layout) {
        let has_parent = match kind {
            0 => layout.databases.contains_key(&parent),
            1..=3 => layout.containers.contains(&parent),
            4 => layout.users.contains(&parent),
            _ => false,
        };
        let record = Document::from_stored(value).ok().map(|record| record.to_value());
        let is_whole = record.is_some_and(|record| {
            record.get("definition").is_some_and(|definition| definition.as_object().is_some())
        });
        if !is_whole {
            self.unreadable_record("a user, permission or script");
        } else if !has_parent {
            let what = "a user, permission or script belongs to a parent that does not exist";
            self.book.refuse(Subject::Catalog, CATALOG, what, MADE_BY_USERS);
        }
    }

    /// Checks that no number is used twice.
    fn last_number(&mut self, layout: &Layout) -> Result<()> {
        let (keyspace, key) = Key::LastNumber.encode();
        let last = self.reader.get(keyspace, &key)?;
        let last = last.map_or(Some(0), |value| value.as_ref().try_into().ok().map(u32::from_be_bytes));
        if last.is_some_and(|last| last >= layout.highest) {
            return Ok(());
        }
        let what = format!("the last number given is lower than {}, which is in use", layout.highest);
        let fix = Fix::Put(keyspace, key, layout.highest.to_be_bytes().to_vec().into());
        self.book.fix(Subject::Catalog, CATALOG, what, [fix])
    }

    /// Checks that every entry of a partition belongs to a partition in the catalog.
    pub(super) fn leftovers(&mut self, layout: &Layout) -> Result<()> {
        let reader = self.reader;
        for keyspace in PARTITIONED {
            let mut range = KeyRange::all();
            while let Some(entry) = reader.scan(keyspace, range, Direction::Forward).next() {
                let (key, _) = entry?;
                let Some(partition) = names::partition(&key) else {
                    self.book.refuse(Subject::Key, "the store", strange(keyspace, &key), LOST_HERE);
                    range = KeyRange::all().after(key.to_vec());
                    continue;
                };
                if !layout.partitions.contains_key(&partition) {
                    let what = format!(
                        "entries in keyspace {} of a partition that no container has",
                        keyspace.name()
                    );
                    let place = format!("partition {}", partition.0);
                    self.book.refuse(Subject::Partition, &place, what, MAYBE_ALL_THAT_IS_LEFT);
                }
                let Some(next) = partition.0.checked_add(1) else { break };
                range = KeyRange::from(next.to_be_bytes());
            }
        }
        Ok(())
    }
}

/// Returns whether an error means damage, which is reported and does not stop the check.
pub(super) fn is_damage(error: &Error) -> bool {
    matches!(error, Error::Corrupt(_))
}

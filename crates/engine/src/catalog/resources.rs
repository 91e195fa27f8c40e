//! Resources without items: the users of a database, their permissions, and the scripts of a container.
//!
//! They are stored and returned. This module neither runs JavaScript nor grants access: the front end enforces
//! permissions.

use document::{
    ContainerRid, DatabaseRid, Document, Etag, Object, PermissionRid, ScriptKind, ScriptRid, UserRid, Value,
    check_resource_id,
};
use storage::{Direction, KeyRange, Keyspace, Read, Transaction};

use crate::Engine;
use crate::catalog::container::Stamp;
use crate::catalog::{next_number, put, remove, stamp};
use crate::expiry::item::SYSTEM_PROPERTIES;
use crate::keys::{self, Key};
use crate::types::error::{Error, Result};
use crate::types::limits::{RESOURCE_BYTES_MAX, RESOURCES_PER_OWNER_MAX};
use crate::types::request::Precondition;

/// The parent of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceParent {
    /// Users belong to a database.
    Database(DatabaseRid),
    /// Permissions belong to a user.
    User(UserRid),
    /// Scripts belong to a container.
    Container(ContainerRid, ScriptKind),
}

impl ResourceParent {
    /// Returns the kind's number in the key, and the parent's.
    fn key(self) -> (u8, u32) {
        match self {
            ResourceParent::Database(rid) => (0, rid.0),
            ResourceParent::Container(rid, ScriptKind::StoredProcedure) => (1, rid.container),
            ResourceParent::Container(rid, ScriptKind::Trigger) => (2, rid.container),
            ResourceParent::Container(rid, ScriptKind::Function) => (3, rid.container),
            ResourceParent::User(rid) => (4, rid.user),
        }
    }

    fn kind_name(self) -> &'static str {
        match self {
            ResourceParent::Database(_) => "user",
            ResourceParent::User(_) => "permission",
            ResourceParent::Container(_, ScriptKind::StoredProcedure) => "stored procedure",
            ResourceParent::Container(_, ScriptKind::Trigger) => "trigger",
            ResourceParent::Container(_, ScriptKind::Function) => "user defined function",
        }
    }

    fn list_name(self) -> &'static str {
        match self {
            ResourceParent::Database(_) => "the number of users",
            ResourceParent::User(_) => "the number of permissions",
            ResourceParent::Container(..) => "the number of scripts of this kind",
        }
    }

    /// Returns the members that a definition must have, all strings.
    fn required_members(self) -> &'static [&'static str] {
        match self {
            ResourceParent::Database(_) => &["id"],
            ResourceParent::User(_) => &["id", "permissionMode", "resource"],
            ResourceParent::Container(_, ScriptKind::StoredProcedure | ScriptKind::Function) => {
                &["id", "body"]
            }
            ResourceParent::Container(_, ScriptKind::Trigger) => {
                &["id", "body", "triggerType", "triggerOperation"]
            }
        }
    }

    /// Returns the resource id of the parent's resource of that number.
    fn rid(self, number: u32) -> String {
        match self {
            ResourceParent::Database(database) => user_rid(database, number).to_string(),
            ResourceParent::User(user) => PermissionRid { user, number: u64::from(number) }.to_string(),
            ResourceParent::Container(container, kind) => {
                ScriptRid { container, kind, number: u64::from(number) }.to_string()
            }
        }
    }
}

/// A user or script.
#[derive(Debug, Clone)]
pub struct Resource {
    /// Its resource id.
    pub rid: String,
    /// What the client defined, `id` included, without system properties.
    pub definition: Object,
    /// Its number, unique in the store; a part of the resource id.
    pub number: u32,
    stamp: Stamp,
}

impl Resource {
    /// Returns its id, as the client chose it.
    pub fn name(&self) -> &str {
        self.definition.get("id").and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the version of the record.
    pub fn etag(&self) -> Etag {
        self.stamp.etag()
    }

    /// Returns the time of its last change, seconds since 1970.
    pub fn ts(&self) -> u64 {
        self.stamp.ts
    }
}

impl Engine {
    /// Returns all resources of a parent, in the order of their creation.
    pub fn resources(&self, parent: ResourceParent) -> Result<Vec<Resource>> {
        load(&*self.store.snapshot()?, parent)
    }

    /// Returns the resource of that id or resource id.
    pub fn resource(&self, parent: ResourceParent, name: &str) -> Result<Resource> {
        let all = self.resources(parent)?;
        let by_name = all.iter().find(|it| it.name() == name);
        let found = by_name.or_else(|| all.iter().find(|it| it.rid == name)).cloned();
        found.ok_or_else(|| Error::NotFound { what: format!("{} '{name}'", parent.kind_name()) })
    }

    /// Creates a resource.
    pub fn create_resource(&self, parent: ResourceParent, definition: Object) -> Result<Resource> {
        let definition = check(parent, definition)?;
        let _change = self.changes.lock();
        self.check_owner(parent)?;
        self.change(move |tx| {
            let count = load(tx, parent)?.len();
            if count >= RESOURCES_PER_OWNER_MAX {
                let limit = RESOURCES_PER_OWNER_MAX;
                return Err(Error::TooLarge { what: parent.list_name(), actual: count + 1, limit });
            }
            check_name_is_free(tx, parent, &definition, None)?;
            let number = next_number(tx)?;
            write(tx, parent, number, definition)
        })
    }

    /// Gives a resource another definition, and perhaps another id.
    pub fn replace_resource(
        &self,
        parent: ResourceParent,
        name: &str,
        definition: Object,
        precondition: &Precondition,
    ) -> Result<Resource> {
        let definition = check(parent, definition)?;
        let _change = self.changes.lock();
        let current = self.resource(parent, name)?;
        precondition.check(&current.etag(), format_args!("{} '{name}'", parent.kind_name()))?;
        self.change(move |tx| {
            check_name_is_free(tx, parent, &definition, Some(current.number))?;
            write(tx, parent, current.number, definition)
        })
    }

    /// Removes a resource.
    pub fn delete_resource(
        &self,
        parent: ResourceParent,
        name: &str,
        precondition: &Precondition,
    ) -> Result<()> {
        let _change = self.changes.lock();
        let current = self.resource(parent, name)?;
        precondition.check(&current.etag(), format_args!("{} '{name}'", parent.kind_name()))?;
        self.change(move |tx| {
            tx.next_sequence();
            if let ResourceParent::Database(database) = parent {
                remove_all(tx, ResourceParent::User(user_rid(database, current.number)))?;
            }
            let (kind, parent) = parent.key();
            remove(tx, Key::Resource { kind, parent, number: current.number });
            Ok(())
        })
    }

    fn check_owner(&self, parent: ResourceParent) -> Result<()> {
        match parent {
            ResourceParent::Database(rid) => self.database_by_rid(rid).map(drop),
            ResourceParent::User(rid) => {
                let users = ResourceParent::Database(DatabaseRid(rid.database));
                self.resource(users, &rid.to_string()).map(drop)
            }
            ResourceParent::Container(rid, _) => self.container_by_rid(rid).map(drop),
        }
    }
}

/// Removes every resource of a parent that is being removed, and the resources below them.
pub(crate) fn remove_all(tx: &mut Transaction<'_>, parent: ResourceParent) -> Result<()> {
    let (kind, owner_number) = parent.key();
    for Resource { number, .. } in load(tx, parent)? {
        if let ResourceParent::Database(database) = parent {
            remove_all(tx, ResourceParent::User(user_rid(database, number)))?;
        }
        remove(tx, Key::Resource { kind, parent: owner_number, number });
    }
    Ok(())
}

fn user_rid(database: DatabaseRid, user: u32) -> UserRid {
    UserRid { database: database.0, user }
}

fn load(reader: &dyn Read, parent: ResourceParent) -> Result<Vec<Resource>> {
    let (kind, number) = parent.key();
    let range = KeyRange::prefix(keys::resources(kind, number));
    reader
        .scan(Keyspace::Catalog, range, Direction::Forward)
        .map(|entry| {
            let (key, value) = entry?;
            decode(parent, &key, value).ok_or_else(|| Error::Corrupt(format!("a {}", parent.kind_name())))
        })
        .collect()
}

fn decode(parent: ResourceParent, key: &[u8], value: bytes::Bytes) -> Option<Resource> {
    let number = u32::from_be_bytes(*key.last_chunk()?);
    let record = Document::from_stored(value).ok()?.to_value();
    let definition = record.get("definition")?.as_object()?.clone();
    let stamp = Stamp::from_value(record.get("stamp")?)?;
    Some(Resource { rid: parent.rid(number), definition, number, stamp })
}

fn write(
    tx: &mut Transaction<'_>,
    parent: ResourceParent,
    number: u32,
    definition: Object,
) -> Result<Resource> {
    let stamp = stamp(tx);
    let members = [
        ("definition".to_owned(), Value::Object(definition.clone())),
        ("stamp".to_owned(), stamp.to_value()),
    ];
    let record = Document::from_value(&Value::Object(members.into_iter().collect()))?;
    let (actual, limit) = (record.as_bytes().len(), RESOURCE_BYTES_MAX);
    if actual > limit {
        return Err(Error::TooLarge { what: "the definition", actual, limit });
    }
    let (kind, owner_number) = parent.key();
    put(tx, Key::Resource { kind, parent: owner_number, number }, record.as_bytes().to_vec());
    Ok(Resource { rid: parent.rid(number), definition, number, stamp })
}

fn check(parent: ResourceParent, mut definition: Object) -> Result<Object> {
    for name in SYSTEM_PROPERTIES {
        definition.remove(name);
    }
    for name in parent.required_members() {
        if definition.get(name).and_then(Value::as_str).is_none() {
            return Err(Error::invalid(format!("A {} must have '{name}' as a string.", parent.kind_name())));
        }
    }
    check_resource_id(definition.get("id").and_then(Value::as_str).unwrap_or_default())?;
    Ok(definition)
}

/// Fails if a resource other than `except` has the definition's id.
fn check_name_is_free(
    reader: &dyn Read,
    parent: ResourceParent,
    definition: &Object,
    except: Option<u32>,
) -> Result<()> {
    let name = definition.get("id").and_then(Value::as_str).unwrap_or_default();
    let taken = load(reader, parent)?.iter().any(|it| it.name() == name && Some(it.number) != except);
    if taken { Err(Error::Exists { what: format!("{} '{name}'", parent.kind_name()) }) } else { Ok(()) }
}

//! The small things that carry no items: users of a database, their permissions, and the scripts of a container.
//!
//! They are kept and returned. Nothing here runs JavaScript or grants anything: what a permission is worth is the front
//! end's business.

use document::{
    ContainerRid, DatabaseRid, Document, Etag, Object, PermissionRid, ScriptKind, ScriptRid, UserRid, Value,
    check_resource_id,
};
use storage::{Direction, KeyRange, Keyspace, Read, Transaction};

use crate::Engine;
use crate::catalog::{next_number, put, remove, stamp};
use crate::container::Stamp;
use crate::error::{Error, Result};
use crate::item::SYSTEM_PROPERTIES;
use crate::keys::{self, Key};
use crate::limits::{RESOURCE_BYTES_MAX, RESOURCES_PER_OWNER_MAX};
use crate::operation::Precondition;

/// What a resource hangs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// Users hang on a database.
    Database(DatabaseRid),
    /// Permissions hang on a user.
    User(UserRid),
    /// Scripts hang on a container.
    Container(ContainerRid, ScriptKind),
}

impl Owner {
    /// The kind's number in the key, and the owner's.
    fn key(self) -> (u8, u32) {
        match self {
            Owner::Database(rid) => (0, rid.0),
            Owner::Container(rid, ScriptKind::StoredProcedure) => (1, rid.container),
            Owner::Container(rid, ScriptKind::Trigger) => (2, rid.container),
            Owner::Container(rid, ScriptKind::Function) => (3, rid.container),
            Owner::User(rid) => (4, rid.user),
        }
    }

    fn kind_name(self) -> &'static str {
        match self {
            Owner::Database(_) => "user",
            Owner::User(_) => "permission",
            Owner::Container(_, ScriptKind::StoredProcedure) => "stored procedure",
            Owner::Container(_, ScriptKind::Trigger) => "trigger",
            Owner::Container(_, ScriptKind::Function) => "user defined function",
        }
    }

    fn list_name(self) -> &'static str {
        match self {
            Owner::Database(_) => "the number of users",
            Owner::User(_) => "the number of permissions",
            Owner::Container(..) => "the number of scripts of this kind",
        }
    }

    /// The members that a definition must have, all strings.
    fn required_members(self) -> &'static [&'static str] {
        match self {
            Owner::Database(_) => &["id"],
            Owner::User(_) => &["id", "permissionMode", "resource"],
            Owner::Container(_, ScriptKind::StoredProcedure | ScriptKind::Function) => &["id", "body"],
            Owner::Container(_, ScriptKind::Trigger) => &["id", "body", "triggerType", "triggerOperation"],
        }
    }

    /// The resource id of the owner's `number`-th resource.
    fn rid(self, number: u32) -> String {
        match self {
            Owner::Database(database) => user_rid(database, number).to_string(),
            Owner::User(user) => PermissionRid { user, number: u64::from(number) }.to_string(),
            Owner::Container(container, kind) => {
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
    /// Its number, unique in the store; part of the resource id.
    pub number: u32,
    stamp: Stamp,
}

impl Resource {
    /// Its id, as the client chose it.
    pub fn name(&self) -> &str {
        self.definition.get("id").and_then(Value::as_str).unwrap_or_default()
    }

    /// Version of the record.
    pub fn etag(&self) -> Etag {
        self.stamp.etag()
    }

    /// Last change, seconds since 1970.
    pub fn ts(&self) -> u64 {
        self.stamp.ts
    }
}

impl Engine {
    /// All resources of an owner, in the order of their making.
    pub fn resources(&self, owner: Owner) -> Result<Vec<Resource>> {
        load(&*self.store.snapshot()?, owner)
    }

    /// The resource of that id or resource id.
    pub fn resource(&self, owner: Owner, name: &str) -> Result<Resource> {
        let all = self.resources(owner)?;
        let by_name = all.iter().find(|it| it.name() == name);
        let found = by_name.or_else(|| all.iter().find(|it| it.rid == name)).cloned();
        found.ok_or_else(|| Error::NotFound { what: format!("{} '{name}'", owner.kind_name()) })
    }

    /// Makes a resource.
    pub fn create_resource(&self, owner: Owner, definition: Object) -> Result<Resource> {
        let definition = check(owner, definition)?;
        let _change = self.changes.lock();
        self.check_owner(owner)?;
        self.change(move |tx| {
            let count = load(tx, owner)?.len();
            if count >= RESOURCES_PER_OWNER_MAX {
                let limit = RESOURCES_PER_OWNER_MAX;
                return Err(Error::TooLarge { what: owner.list_name(), actual: count + 1, limit });
            }
            check_name_is_free(tx, owner, &definition, None)?;
            let number = next_number(tx)?;
            write(tx, owner, number, definition)
        })
    }

    /// Gives a resource another definition, perhaps another id.
    pub fn replace_resource(
        &self,
        owner: Owner,
        name: &str,
        definition: Object,
        precondition: &Precondition,
    ) -> Result<Resource> {
        let definition = check(owner, definition)?;
        let _change = self.changes.lock();
        let current = self.resource(owner, name)?;
        precondition.check(&current.etag(), format_args!("{} '{name}'", owner.kind_name()))?;
        self.change(move |tx| {
            check_name_is_free(tx, owner, &definition, Some(current.number))?;
            write(tx, owner, current.number, definition)
        })
    }

    /// Removes a resource.
    pub fn delete_resource(&self, owner: Owner, name: &str, precondition: &Precondition) -> Result<()> {
        let _change = self.changes.lock();
        let current = self.resource(owner, name)?;
        precondition.check(&current.etag(), format_args!("{} '{name}'", owner.kind_name()))?;
        self.change(move |tx| {
            tx.next_sequence();
            if let Owner::Database(database) = owner {
                remove_all(tx, Owner::User(user_rid(database, current.number)))?;
            }
            let (kind, owner) = owner.key();
            remove(tx, Key::Resource { kind, owner, number: current.number });
            Ok(())
        })
    }

    fn check_owner(&self, owner: Owner) -> Result<()> {
        match owner {
            Owner::Database(rid) => self.database_by_rid(rid).map(drop),
            Owner::User(rid) => {
                let users = Owner::Database(DatabaseRid(rid.database));
                self.resource(users, &rid.to_string()).map(drop)
            }
            Owner::Container(rid, _) => self.container_by_rid(rid).map(drop),
        }
    }
}

/// Removes every resource of an owner that is going away, and what hangs on those.
pub(crate) fn remove_all(tx: &mut Transaction<'_>, owner: Owner) -> Result<()> {
    let (kind, owner_number) = owner.key();
    for Resource { number, .. } in load(tx, owner)? {
        if let Owner::Database(database) = owner {
            remove_all(tx, Owner::User(user_rid(database, number)))?;
        }
        remove(tx, Key::Resource { kind, owner: owner_number, number });
    }
    Ok(())
}

fn user_rid(database: DatabaseRid, user: u32) -> UserRid {
    UserRid { database: database.0, user }
}

fn load(reader: &dyn Read, owner: Owner) -> Result<Vec<Resource>> {
    let (kind, number) = owner.key();
    let range = KeyRange::prefix(keys::resources(kind, number));
    reader
        .scan(Keyspace::Catalog, range, Direction::Forward)
        .map(|entry| {
            let (key, value) = entry?;
            decode(owner, &key, value).ok_or_else(|| Error::Corrupt(format!("a {}", owner.kind_name())))
        })
        .collect()
}

fn decode(owner: Owner, key: &[u8], value: bytes::Bytes) -> Option<Resource> {
    let number = u32::from_be_bytes(*key.last_chunk()?);
    let record = Document::from_stored(value).ok()?.to_value();
    let definition = record.get("definition")?.as_object()?.clone();
    let stamp = Stamp::from_value(record.get("stamp")?)?;
    Some(Resource { rid: owner.rid(number), definition, number, stamp })
}

fn write(tx: &mut Transaction<'_>, owner: Owner, number: u32, definition: Object) -> Result<Resource> {
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
    let (kind, owner_number) = owner.key();
    put(tx, Key::Resource { kind, owner: owner_number, number }, record.as_bytes().to_vec());
    Ok(Resource { rid: owner.rid(number), definition, number, stamp })
}

fn check(owner: Owner, mut definition: Object) -> Result<Object> {
    for name in SYSTEM_PROPERTIES {
        definition.remove(name);
    }
    for name in owner.required_members() {
        if definition.get(name).and_then(Value::as_str).is_none() {
            return Err(Error::invalid(format!("A {} must have '{name}' as a string.", owner.kind_name())));
        }
    }
    check_resource_id(definition.get("id").and_then(Value::as_str).unwrap_or_default())?;
    Ok(definition)
}

/// No other resource than `except` may have the definition's id.
fn check_name_is_free(
    reader: &dyn Read,
    owner: Owner,
    definition: &Object,
    except: Option<u32>,
) -> Result<()> {
    let name = definition.get("id").and_then(Value::as_str).unwrap_or_default();
    let taken = load(reader, owner)?.iter().any(|it| it.name() == name && Some(it.number) != except);
    if taken { Err(Error::Exists { what: format!("{} '{name}'", owner.kind_name()) }) } else { Ok(()) }
}

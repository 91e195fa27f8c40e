//! Resolves names in a path or link: ids first, resource ids second, so that the `_self` links which SDKs send back
//! work everywhere.
//!
//! Handlers and the check of resource tokens both resolve names here. If they read a name differently, a token for
//! one resource could open another.

use std::sync::Arc;

use document::{ContainerRid, DatabaseRid, ItemRid, UserRid};
use engine::{Container, Database, Engine, Error, ItemName, ResourceParent};

use crate::protocol::path::ResourcePath;
use crate::protocol::script_kind::script_kind;

/// Returns the database with this id or resource id.
pub(crate) fn database(engine: &Engine, name: &str) -> Result<Arc<Database>, Error> {
    match engine.database(name) {
        Err(Error::NotFound { what }) => name
            .parse::<DatabaseRid>()
            .ok()
            .and_then(|rid| engine.database_by_rid(rid).ok())
            .ok_or(Error::NotFound { what }),
        other => other,
    }
}

/// Returns the container with this id or resource id in a database.
pub(crate) fn container(engine: &Engine, database: &Database, name: &str) -> Result<Arc<Container>, Error> {
    match engine.container(database, name) {
        Err(Error::NotFound { what }) => name
            .parse::<ContainerRid>()
            .ok()
            .and_then(|rid| engine.container_by_rid(rid).ok())
            .filter(|container| container.rid.database_rid() == database.rid)
            .ok_or(Error::NotFound { what }),
        other => other,
    }
}

/// Returns the container whose items a path is about, if it exists.
pub(crate) fn items_of(engine: &Engine, path: &ResourcePath) -> Option<Arc<Container>> {
    if path.at(4) != "docs" {
        return None;
    }
    container(engine, &*database(engine, path.at(1)).ok()?, path.at(3)).ok()
}

/// Returns whether every name in a path is the resource id of its target, each including those before it. For a missing
/// target a resource id is enough: it gives access to nothing.
pub(crate) fn are_resource_ids(engine: &Engine, path: &ResourcePath) -> Result<bool, Error> {
    let segments: Vec<&str> = path.segments().iter().map(String::as_str).collect();
    let named = match segments[..] {
        [ref owner @ .., "operations", _] if segments.len() == 6 => owner,
        _ => &segments[..segments.len() / 2 * 2],
    };
    let ["dbs", name, ref inner @ ..] = *named else { return Ok(false) };
    let Ok(rid) = name.parse::<DatabaseRid>() else { return Ok(false) };
    let Some(database) = there(database(engine, name))? else { return Ok(true) };
    if database.rid != rid {
        return Ok(false);
    }
    let is_resource = |owner, name: &str| {
        there(engine.resource(owner, name)).map(|found| found.is_none_or(|it| it.rid == name))
    };
    match *inner {
        [] => Ok(true),
        ["users", user] => is_resource(ResourceParent::Database(rid), user),
        ["users", user, "permissions", permission] => {
            let Ok(owner) = user.parse::<UserRid>() else { return Ok(false) };
            Ok(is_resource(ResourceParent::Database(rid), user)?
                && is_resource(ResourceParent::User(owner), permission)?)
        }
        ["colls", name, ref inner @ ..] => {
            let Ok(rid) = name.parse::<ContainerRid>() else { return Ok(false) };
            let Some(container) = there(container(engine, &database, name))? else { return Ok(true) };
            Ok(container.rid == rid
                && match *inner {
                    [] => true,
                    ["docs", id] => matches!(item(&container, name, id), ItemName::Number(_)),
                    [kind, script] => match script_kind(kind) {
                        Some((kind, _)) => is_resource(ResourceParent::Container(rid, kind), script)?,
                        None => false,
                    },
                    _ => false,
                })
        }
        _ => Ok(false),
    }
}

/// Turns "not found" into `None`.
fn there<T>(found: Result<T, Error>) -> Result<Option<T>, Error> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(Error::NotFound { .. } | Error::OwnerNotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the name of an item. Only a link that names its container by resource id can use one for the item: an id may
/// look like a resource id.
pub(crate) fn item(container: &Container, container_name: &str, name: &str) -> ItemName {
    if container_name != container.name()
        && let Ok(rid) = name.parse::<ItemRid>()
        && rid.container == container.rid
    {
        return ItemName::Number(rid.item_number());
    }
    ItemName::Id(name.to_owned())
}

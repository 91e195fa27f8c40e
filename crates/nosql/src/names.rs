//! What the names in a path or link stand for: ids first, resource ids second, so that the `_self` links which SDKs
//! send back work everywhere.
//!
//! Handlers and the check of resource tokens both resolve names here. If they read a name differently, a token for
//! one resource could open another.

use std::sync::Arc;

use document::{ContainerRid, DatabaseRid, ItemRid};
use engine::{Container, Database, Engine, Error, ItemName};

/// The database of that id or resource id.
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

/// The container of that id or resource id in a database.
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

/// The item of that name. Only a link that names its container by resource id can name the item so: an id may look
/// like a resource id.
pub(crate) fn item(container: &Container, container_name: &str, name: &str) -> ItemName {
    if container_name != container.name()
        && let Ok(rid) = name.parse::<ItemRid>()
        && rid.container == container.rid
    {
        return ItemName::Number(rid.item_number());
    }
    ItemName::Id(name.to_owned())
}

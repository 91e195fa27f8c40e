//! `rolesInfo`: the roles that exist. There are only the built-in ones.

use bson::{Document, Value, ValueRef};

use crate::auth::{Role, built_in};
use crate::call::Call;
use crate::error::Result;
use crate::reply::{Reply, list};

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let shows_built_in = call.fields().is_set("showBuiltinRoles")?;
    let roles = match call.argument() {
        ValueRef::Array(items) => items.iter().filter_map(|item| named(item, &call.database)).collect(),
        one @ (ValueRef::String(_) | ValueRef::Document(_)) => {
            named(one, &call.database).into_iter().collect()
        }
        _ if shows_built_in => built_in(&call.database),
        _ => Vec::new(),
    };
    Ok(Document::new().with("roles", list(roles.iter().map(show))).into())
}

/// A role that exists.
fn named(value: ValueRef<'_>, database: &str) -> Option<Role> {
    Role::parse(value, database).ok()
}

fn show(role: &Role) -> Document {
    role.to_document()
        .with("isBuiltin", true)
        .with("roles", Value::Array(Vec::new()))
        .with("inheritedRoles", Value::Array(Vec::new()))
}

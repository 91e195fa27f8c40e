//! `rolesInfo`: the roles that exist. There are only the built-in ones.

use bson::{Document, Value, ValueRef};

use crate::protocol::error::Result;
use crate::protocol::reply::{Reply, list};
use crate::rights::{Role, privileges};
use crate::service::call::Call;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let shows_built_in = call.fields().is_set("showBuiltinRoles")?;
    let shows_privileges = call.fields().is_set("showPrivileges")?;
    let roles = match call.argument() {
        ValueRef::Array(items) => items.iter().filter_map(|item| named(item, &call.database)).collect(),
        one @ (ValueRef::String(_) | ValueRef::Document(_)) => {
            named(one, &call.database).into_iter().collect()
        }
        _ if shows_built_in => Role::all(&call.database),
        _ => Vec::new(),
    };
    Ok(Document::new().with("roles", list(roles.iter().map(|role| show(role, shows_privileges)))).into())
}

/// Returns a role that exists.
fn named(value: ValueRef<'_>, database: &str) -> Option<Role> {
    Role::parse(value, database).ok()
}

fn show(role: &Role, shows_privileges: bool) -> Document {
    let mut shown = role
        .to_document()
        .with("isBuiltin", true)
        .with("roles", Value::Array(Vec::new()))
        .with("inheritedRoles", Value::Array(Vec::new()));
    if shows_privileges {
        let allowed = list(privileges(std::slice::from_ref(role)));
        shown.push("privileges", allowed.clone());
        shown.push("inheritedPrivileges", allowed);
    }
    shown
}

//! `connectionStatus`: who has authenticated on this connection.

use bson::{Document, Value};

use crate::auth::{Identity, Role};
use crate::call::Call;
use crate::error::Result;
use crate::reply::{Reply, list};

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let identity = call.connection.client.lock().identity.clone();
    let users = identity.iter().map(|identity| {
        Document::new().with("user", identity.user.as_str()).with("db", identity.database.as_str())
    });
    let roles = match &identity {
        Some(identity) => roles(call, identity)?,
        None => Vec::new(),
    };
    let mut info = Document::new()
        .with("authenticatedUsers", list(users))
        .with("authenticatedUserRoles", list(roles.iter().map(Role::to_document)));
    if call.fields().is_set("showPrivileges")? {
        // Roles are not enforced yet, so there is nothing to tell.
        info.push("authenticatedUserPrivileges", Value::Array(Vec::new()));
    }
    Ok(Document::new().with("authInfo", info).into())
}

/// The account may do everything; others have what they were given.
fn roles(call: &Call, identity: &Identity) -> Result<Vec<Role>> {
    let users = call.service.users();
    if users.is_account(&identity.user) {
        return Ok(vec![Role { name: "root".to_owned(), database: "admin".to_owned() }]);
    }
    Ok(users.find(&identity.user, &identity.database)?.map(|user| user.roles).unwrap_or_default())
}

//! `connectionStatus`: the identity of this connection, and what it may do.

use bson::Document;

use crate::protocol::error::Result;
use crate::protocol::reply::{Reply, list};
use crate::rights::{Role, privileges};
use crate::service::call::Call;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let identity = call.connection.client.lock().identity.clone();
    let users = identity.iter().map(|identity| {
        Document::new().with("user", identity.user.as_str()).with("db", identity.database.as_str())
    });
    let rights = call.service.rights(&call.connection)?;
    let roles = if identity.is_some() { rights.roles() } else { Vec::new() };
    let mut info = Document::new()
        .with("authenticatedUsers", list(users))
        .with("authenticatedUserRoles", list(roles.iter().map(Role::to_document)));
    if call.fields().is_set("showPrivileges")? {
        info.push("authenticatedUserPrivileges", list(privileges(&roles)));
    }
    Ok(Document::new().with("authInfo", info).into())
}

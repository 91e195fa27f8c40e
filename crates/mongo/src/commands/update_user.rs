//! `updateUser`: another password, other roles, other data.

use mql::Code;

use crate::auth::User;
use crate::commands::create_user::{derive, mechanisms, name, refuse_restrictions, roles};
use crate::protocol::error::{Error, Result};
use crate::protocol::reply::Reply;
use crate::service::call::Call;

const FIELDS: [&str; 7] = [
    "updateUser",
    "pwd",
    "roles",
    "mechanisms",
    "customData",
    "digestPassword",
    "authenticationRestrictions",
];

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let fields = call.fields();
    fields.only(&FIELDS)?;
    refuse_restrictions(fields)?;
    let name = name(call)?;
    let user = call.service.users().find(name, &call.database)?.ok_or_else(|| not_found(call, name))?;
    let roles = fields.array("roles")?.map(|items| roles(items, &call.database)).transpose()?;
    let custom_data = fields.document("customData")?.map(bson::DocumentRef::to_document);
    let wanted = mechanisms(fields)?;
    let credentials = match (fields.text("pwd")?, wanted) {
        (Some(password), wanted) => {
            let wanted = wanted.unwrap_or_else(|| user.credentials.mechanisms());
            Some(derive(call, name, password, &wanted)?)
        }
        (None, Some(wanted)) => Some(user.credentials.only(&wanted).ok_or_else(|| {
            Error::bad_value("mechanisms field must be a subset of previously set mechanisms")
        })?),
        (None, None) => None,
    };
    if roles.is_none() && custom_data.is_none() && credentials.is_none() {
        return Err(Error::bad_value("Must specify at least one field to update in updateUser"));
    }
    let change = move |user: User| User {
        roles: roles.unwrap_or(user.roles),
        custom_data: custom_data.or(user.custom_data),
        credentials: credentials.unwrap_or(user.credentials),
        ..user
    };
    change_user(call, name, change).await
}

/// Changes a user that must be there.
pub(super) async fn change_user(
    call: &Call,
    name: &str,
    change: impl FnOnce(User) -> User + Send + 'static,
) -> Result<Reply> {
    let changed = call.service.users().change(name, &call.database, change).await?;
    if changed { Ok(Reply::ok()) } else { Err(not_found(call, name)) }
}

pub(super) fn not_found(call: &Call, name: &str) -> Error {
    let text = format!("User '{name}@{}' not found", call.database);
    Error::new(Code::USER_NOT_FOUND, text)
}

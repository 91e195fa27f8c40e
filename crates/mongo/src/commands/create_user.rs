//! `createUser`: a user of the command's database. Only what SCRAM derives from the password is kept.

use bson::ArrayRef;
use mql::Code;

use crate::auth::{Credentials, Mechanism, User};
use crate::protocol::error::{Error, Result};
use crate::protocol::fields::Fields;
use crate::protocol::random;
use crate::protocol::reply::Reply;
use crate::rights::Role;
use crate::service::call::Call;

const FIELDS: [&str; 8] = [
    "createUser",
    "pwd",
    "roles",
    "mechanisms",
    "customData",
    "digestPassword",
    "authenticationRestrictions",
    "passwordDigestor",
];

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let fields = call.fields();
    fields.only(&FIELDS)?;
    refuse_restrictions(fields)?;
    let name = name(call)?.to_owned();
    if call.database == "$external" {
        return Err(Error::not_supported("a user of an outside directory"));
    }
    let password = fields.text("pwd")?.ok_or_else(|| {
        Error::bad_value(
            "Must provide a 'pwd' field for all user documents, except those with '$external' as the user's source db",
        )
    })?;
    let roles = roles(fields.required("roles", fields.array("roles")?)?, &call.database)?;
    let mechanisms = mechanisms(fields)?.unwrap_or_else(|| Mechanism::ALL.to_vec());
    let user = User {
        id: random::uuid(),
        credentials: derive(call, &name, password, &mechanisms)?,
        name,
        database: call.database.clone(),
        roles,
        custom_data: fields.document("customData")?.map(bson::DocumentRef::to_document),
    };
    call.service.users().create(user).await?;
    Ok(Reply::ok())
}

/// Returns the user that a command names as its argument.
pub(super) fn name(call: &Call) -> Result<&str> {
    match call.argument().as_str() {
        Some("") => Err(Error::bad_value("User document needs 'user' field to be non-empty")),
        Some(name) if name.len() > 1024 || name.contains('\0') => {
            Err(Error::bad_value("this is no name for a user"))
        }
        Some(name) => Ok(name),
        None => {
            let found = call.argument().kind().alias();
            let text = format!(
                "BSON field '{}' is the wrong type '{found}', expected type 'string'",
                call.command.name
            );
            Err(Error::new(Code::TYPE_MISMATCH, text))
        }
    }
}

pub(super) fn roles(items: ArrayRef<'_>, database: &str) -> Result<Vec<Role>> {
    let mut roles: Vec<Role> = Vec::new();
    for item in items.iter() {
        let role = Role::parse(item, database)?;
        if !roles.contains(&role) {
            roles.push(role);
        }
    }
    Ok(roles)
}

pub(super) fn mechanisms(fields: Fields<'_>) -> Result<Option<Vec<Mechanism>>> {
    let Some(items) = fields.array("mechanisms")? else { return Ok(None) };
    let mut mechanisms = Vec::new();
    for item in items.iter() {
        let name = item.as_str().unwrap_or("");
        let mechanism = Mechanism::from_name(name);
        let mechanism =
            mechanism.ok_or_else(|| Error::bad_value(format!("Unknown auth mechanism '{name}'")))?;
        if !mechanisms.contains(&mechanism) {
            mechanisms.push(mechanism);
        }
    }
    if mechanisms.is_empty() {
        return Err(Error::bad_value("mechanisms field must not be empty"));
    }
    Ok(Some(mechanisms))
}

/// Refuses restrictions: addresses are not checked, so a user cannot be restricted to some.
pub(super) fn refuse_restrictions(fields: Fields<'_>) -> Result<()> {
    if fields.array("authenticationRestrictions")?.is_some_and(|list| !list.is_empty()) {
        return Err(Error::not_supported("'authenticationRestrictions'"));
    }
    if fields.boolean("digestPassword")? == Some(false) {
        return Err(Error::not_supported("'digestPassword: false'"));
    }
    Ok(())
}

pub(super) fn derive(
    call: &Call,
    name: &str,
    password: &str,
    mechanisms: &[Mechanism],
) -> Result<Credentials> {
    if password.is_empty() {
        return Err(Error::bad_value("User passwords must not be empty"));
    }
    let salt = |mechanism: Mechanism| random::bytes::<28>()[..mechanism.salt_bytes()].to_vec();
    let derived = call.blocking(|| Credentials::derive(name, password, mechanisms, salt));
    derived.ok_or_else(|| Error::bad_value("the password has signs that no password may have"))
}

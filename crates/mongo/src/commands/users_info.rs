//! `usersInfo`: users created by `createUser`. The account is not one of them.

use bson::{Document, Value, ValueRef};

use crate::auth::{Mechanism, User};
use crate::protocol::error::{Error, Result};
use crate::protocol::reply::{Reply, list};
use crate::rights::privileges;
use crate::service::call::Call;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let fields = call.fields();
    let (credentials, shows_privileges) =
        (fields.is_set("showCredentials")?, fields.is_set("showPrivileges")?);
    let wanted = Wanted::parse(call.argument(), &call.database)?;
    let users = call.service.users();
    let users = call.blocking(|| users.list(|user| wanted.fits(user)))?;
    let shown = users.iter().map(|user| show(user, credentials, shows_privileges));
    Ok(Document::new().with("users", list(shown)).into())
}

/// Which users are asked for.
enum Wanted {
    All,
    Database(String),
    Named(Vec<(String, String)>),
}

impl Wanted {
    fn parse(argument: ValueRef<'_>, database: &str) -> Result<Wanted> {
        match argument {
            ValueRef::Int32(_) | ValueRef::Int64(_) | ValueRef::Double(_) => {
                Ok(Wanted::Database(database.to_owned()))
            }
            ValueRef::Document(document) if document.get("forAllDBs").is_some() => Ok(Wanted::All),
            ValueRef::Array(items) => items
                .iter()
                .map(|item| Wanted::name(item, database))
                .collect::<Result<_>>()
                .map(Wanted::Named),
            one => Ok(Wanted::Named(vec![Wanted::name(one, database)?])),
        }
    }

    fn name(value: ValueRef<'_>, database: &str) -> Result<(String, String)> {
        let text = |name| value.as_document().and_then(|it| it.get(name)).and_then(ValueRef::as_str);
        match (value.as_str(), text("user"), text("db")) {
            (Some(name), ..) => Ok((name.to_owned(), database.to_owned())),
            (None, Some(name), Some(database)) => Ok((name.to_owned(), database.to_owned())),
            _ => Err(Error::bad_value("a user is named by a string or by {user, db}")),
        }
    }

    fn fits(&self, user: &User) -> bool {
        match self {
            Wanted::All => true,
            Wanted::Database(database) => user.database == *database,
            Wanted::Named(names) => names.iter().any(|(name, db)| user.name == *name && user.database == *db),
        }
    }
}

fn show(user: &User, credentials: bool, shows_privileges: bool) -> Document {
    let mut shown = user.to_document();
    if !credentials {
        shown.remove("credentials");
    }
    shown.push("mechanisms", list(user.credentials.mechanisms().into_iter().map(Mechanism::name)));
    if shows_privileges {
        shown.push("inheritedRoles", shown.get("roles").cloned().unwrap_or(Value::Null));
        shown.push("inheritedPrivileges", list(privileges(&user.roles)));
    }
    shown
}

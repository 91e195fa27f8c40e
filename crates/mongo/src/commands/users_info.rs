//! `usersInfo`: users created by `createUser`. The account is not one of them.

use std::collections::BTreeSet;

use bson::{Document, Value, ValueRef};

use crate::auth::{Mechanism, User, Users};
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
    let users = call.blocking(|| wanted.find(&users))?;
    let shown = users.iter().map(|user| show(user, credentials, shows_privileges));
    Ok(Document::new().with("users", list(shown)).into())
}

/// Which users are asked for.
enum Wanted {
    All,
    Database(String),
    /// By database and name. A user may ask for itself, in a list that names it a million times.
    Named(BTreeSet<(String, String)>),
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
            one => Ok(Wanted::Named(BTreeSet::from([Wanted::name(one, database)?]))),
        }
    }

    fn name(value: ValueRef<'_>, database: &str) -> Result<(String, String)> {
        let text = |name| value.as_document().and_then(|it| it.get(name)).and_then(ValueRef::as_str);
        match (value.as_str(), text("user"), text("db")) {
            (Some(name), ..) => Ok((database.to_owned(), name.to_owned())),
            (None, Some(name), Some(database)) => Ok((database.to_owned(), name.to_owned())),
            _ => Err(Error::bad_value("a user is named by a string or by {user, db}")),
        }
    }

    /// Returns those that there are. Named ones are looked up, without a search through the others.
    fn find(&self, users: &Users<'_>) -> Result<Vec<User>> {
        match self {
            Wanted::All => users.list(|_| true),
            Wanted::Database(database) => users.list(|user| user.database == *database),
            Wanted::Named(names) => {
                let found = names.iter().map(|(database, name)| users.find(name, database));
                found.filter_map(Result::transpose).collect()
            }
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

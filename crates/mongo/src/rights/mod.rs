//! What a client may do: the roles of who has authenticated, what commands need, and the one place where both meet.
//!
//! `commands` says in each row of its table what the command needs; `needs` has the answers that depend on what is asked;
//! `built_in` knows what roles allow. [`check`] is asked once for every command, before it does anything, and leaves what it
//! found in the call: a cursor is gone on with only as long as its owner has what it was opened with.
//!
//! Roles and keys are looked up anew for every command, so that a change of them, or the end of a user, holds from the next
//! command on.

mod action;
mod built_in;
mod needs;
mod redacted;
mod role;

use std::sync::Arc;

use account::Right;
use bson::Document;
use mql::Code;

use crate::auth::Who;
use crate::call::Call;
use crate::commands::Access;
use crate::connection::Connection;
use crate::error::{Error, Result};
use crate::service::Service;

pub(crate) use action::Action;
pub(crate) use needs::{
    aggregate, bulk_write, change_view, create, create_user, current_op, custom_action, explain,
    find_and_modify, get_more, grant_roles, insert, kill_op, list_collections, list_databases,
    rename_collection, revoke_roles, roles_info, update, update_user, users_info,
};
pub(crate) use redacted::redacted;
pub(crate) use role::Role;

/// The most of a command that a refusal repeats.
const SHOWN_BYTES_MAX: usize = 1024;

/// What something is done to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Resource {
    /// The server itself.
    Cluster,
    /// A database and what is in it.
    Database(String),
    /// All databases at once, those that will be made too.
    EveryDatabase,
}

/// Something that a command does, and to what.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Need {
    pub(crate) action: Action,
    pub(crate) on: Resource,
}

impl Need {
    pub(crate) fn on(database: &str, action: Action) -> Need {
        Need { action, on: Resource::Database(database.to_owned()) }
    }

    pub(crate) fn cluster(action: Action) -> Need {
        Need { action, on: Resource::Cluster }
    }
}

/// What a client may do.
#[derive(Debug, Clone)]
pub(crate) enum Rights {
    /// Whoever has a key of the account that is good for everything, and everybody where nobody needs to authenticate.
    Everything,
    /// A user, or whoever has a key that is good for reading.
    Roles(Arc<[Role]>),
    /// Somebody who has not authenticated and must, or did so as a user or with a key that is no more.
    Nothing,
}

impl Rights {
    /// The rights of a connection at this moment.
    pub(crate) fn of(service: &Service, connection: &Connection) -> Result<Rights> {
        let Some(identity) = connection.client.lock().identity.clone() else {
            let open = !service.requires_authentication();
            return Ok(if open { Rights::Everything } else { Rights::Nothing });
        };
        match identity.who {
            Who::Account(holder) => {
                let holder = service.settings.account.keys.holder(holder.key.reveal());
                Ok(holder.map_or(Rights::Nothing, |holder| Rights::of_key(holder.right())))
            }
            // One of the same name that was made later is somebody else.
            Who::User(id) => {
                let user = service.users().find(&identity.user, &identity.database)?;
                let user = user.filter(|user| user.id == id);
                Ok(user.map_or(Rights::Nothing, |user| Rights::Roles(user.roles.into())))
            }
        }
    }

    /// What the holder of a key of the account may do.
    fn of_key(right: Right) -> Rights {
        match right {
            Right::ReadWrite => Rights::Everything,
            Right::ReadOnly => Rights::Roles(
                [("readAnyDatabase", "admin"), ("read", "config"), ("read", "local")]
                    .map(|(name, database)| Role::new(name, database))
                    .into(),
            ),
        }
    }

    pub(crate) fn allow(&self, need: &Need) -> bool {
        match self {
            Rights::Everything => true,
            Rights::Roles(roles) => built_in::allows(roles, need),
            Rights::Nothing => false,
        }
    }

    /// Whether there is anything to do in a database.
    pub(crate) fn reach(&self, database: &str) -> bool {
        match self {
            Rights::Everything => true,
            Rights::Roles(roles) => built_in::reaches(roles, database),
            Rights::Nothing => false,
        }
    }

    /// The roles behind it; the account has all rights that a role could give.
    pub(crate) fn roles(&self) -> Vec<Role> {
        match self {
            Rights::Everything => vec![Role::new("root", "admin")],
            Rights::Roles(roles) => roles.to_vec(),
            Rights::Nothing => Vec::new(),
        }
    }
}

/// What roles allow, for clients that ask.
pub(crate) fn privileges(roles: &[Role]) -> Vec<Document> {
    built_in::privileges(roles)
}

/// Refuses a command to whoever may not run it; else what it needs, which somebody who may do everything is not asked for.
pub(crate) fn check(call: &Call) -> Result<Arc<[Need]>> {
    match (&call.rights, call.command.access) {
        (Rights::Everything, _) | (_, Access::Everybody) => return Ok(Arc::default()),
        (Rights::Nothing, _) => {
            let text = format!("Command {} requires authentication", call.command.name);
            return Err(Error::new(Code::UNAUTHORIZED, text));
        }
        (Rights::Roles(_), _) => {}
    }
    let needs = needs::of(call)?;
    match needs.iter().find(|need| !call.rights.allow(need)) {
        None => Ok(needs.into()),
        Some(need) => Err(refuse(call, need)),
    }
}

/// The refusal, in the words that tools look for, and a line in the log.
fn refuse(call: &Call, missing: &Need) -> Error {
    let identity = call.connection.client.lock().identity.clone();
    let user = identity.as_ref().map_or("", |identity| &identity.user);
    let of = identity.as_ref().map_or("", |identity| &identity.database);
    let (peer, command, action) = (call.connection.peer, call.command.name, missing.action.name());
    tracing::info!(%peer, ?user, ?of, database = ?call.database, command, action, "refused: no role allows it");
    let mut shown = bson::shell_text(bson::ValueRef::Document(redacted(call.body.view()).view()));
    if shown.len() > SHOWN_BYTES_MAX {
        let end = (0..=SHOWN_BYTES_MAX).rev().find(|end| shown.is_char_boundary(*end)).unwrap_or(0);
        shown.truncate(end);
        shown.push_str("...");
    }
    let text = format!("not authorized on {} to execute command {shown}", call.database);
    Error::new(Code::UNAUTHORIZED, text)
}

//! Rights: actions, the roles that grant them, and the rights of a client.
//!
//! `commands` says in each row of its table what the command needs, and `commands::needs` what depends on the request; `built_in`
//! knows what roles allow; `dispatch::authorization` is the one place where both meet.

mod action;
mod built_in;
mod role;

use std::sync::Arc;

use account::Right;
use bson::Document;

pub(crate) use action::Action;
pub(crate) use role::Role;

/// What an action is done to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Resource {
    /// The server itself.
    Cluster,
    /// A database and what is in it.
    Database(String),
    /// All databases at once, those that will be made too.
    EveryDatabase,
}

/// An action on a resource: what a command needs and a role grants.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Privilege {
    pub(crate) action: Action,
    pub(crate) on: Resource,
}

impl Privilege {
    pub(crate) fn on(database: &str, action: Action) -> Privilege {
        Privilege { action, on: Resource::Database(database.to_owned()) }
    }

    pub(crate) fn cluster(action: Action) -> Privilege {
        Privilege { action, on: Resource::Cluster }
    }
}

/// What a client may do.
#[derive(Debug, Clone)]
pub(crate) enum Rights {
    /// All: for the holder of a read-write key of the account, and for every client where none needs to authenticate.
    Everything,
    /// Those of a user's roles, or of a key for reading.
    Roles(Arc<[Role]>),
    /// None: for a client that has not authenticated and must, or whose user or key exists no longer.
    Nothing,
}

impl Rights {
    /// Returns what the holder of a key of the account may do.
    pub(crate) fn of_key(right: Right) -> Rights {
        match right {
            Right::ReadWrite => Rights::Everything,
            Right::ReadOnly => Rights::Roles(
                [("readAnyDatabase", "admin"), ("read", "config"), ("read", "local")]
                    .map(|(name, database)| Role::new(name, database))
                    .into(),
            ),
        }
    }

    pub(crate) fn allow(&self, need: &Privilege) -> bool {
        match self {
            Rights::Everything => true,
            Rights::Roles(roles) => built_in::allows(roles, need),
            Rights::Nothing => false,
        }
    }

    /// Whether the client may do anything in a database.
    pub(crate) fn reach(&self, database: &str) -> bool {
        match self {
            Rights::Everything => true,
            Rights::Roles(roles) => built_in::reaches(roles, database),
            Rights::Nothing => false,
        }
    }

    /// Returns the roles behind it; the account has all rights that a role could give.
    pub(crate) fn roles(&self) -> Vec<Role> {
        match self {
            Rights::Everything => vec![Role::new("root", "admin")],
            Rights::Roles(roles) => roles.to_vec(),
            Rights::Nothing => Vec::new(),
        }
    }
}

/// Returns what roles allow, for clients that ask.
pub(crate) fn privileges(roles: &[Role]) -> Vec<Document> {
    built_in::privileges(roles)
}

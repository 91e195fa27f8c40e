//! Authentication: SCRAM exchanges, the users they are about, and what a connection remembers of them.
//!
//! Two kinds of users: the account, whose password is any of its keys and which is found under any database, so that a
//! Cosmos connection string works as it is; and those made by `createUser`, which belong to a database. No password is ever
//! stored, only what SCRAM derives from it.

mod account;
mod conversation;
mod credential;
mod scram;
mod users;

use ::account::{AuthenticatedKey, Right};
use sha2::{Digest, Sha256};

pub(crate) use account::AccountKeys;
pub(crate) use conversation::{Conversation, Step};
pub(crate) use credential::{Credentials, Mechanism};
pub(crate) use scram::read_exchange;
pub(crate) use users::{User, Users};

/// An authenticated client.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) user: String,
    pub(crate) database: String,
    pub(crate) principal: Principal,
    /// Short for the names, where only the same user may continue.
    pub(crate) digest: [u8; 32],
}

/// What a name stands for.
#[derive(Debug, Clone)]
pub(crate) enum Principal {
    /// The user of that number. One of the same name that is made later has another.
    User([u8; 16]),
    /// A holder of that key of the account.
    Account(AuthenticatedKey),
}

impl Identity {
    pub(crate) fn new(user: &str, database: &str, principal: Principal) -> Identity {
        let digest = match &principal {
            // The account is on every database, and one user on all of them. Sessions and cursors of clients that may
            // do everything are not for others.
            Principal::Account(holder) if holder.right() == Right::ReadOnly => {
                // No user has such a name.
                digest(&format!("\0{user}"), "admin")
            }
            Principal::Account(_) => digest(user, "admin"),
            Principal::User(_) => digest(user, database),
        };
        Identity { user: user.to_owned(), database: database.to_owned(), principal, digest }
    }
}

/// Returns what stands for a user where only the same user may continue.
pub(crate) fn digest(user: &str, database: &str) -> [u8; 32] {
    Sha256::digest(format!("{user}@{database}")).into()
}

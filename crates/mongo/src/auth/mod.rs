//! Who a client is: SCRAM exchanges, the users they are about, and what a connection remembers of it.
//!
//! Two kinds of users: the account, whose password is any of its keys and which is found under any database, so that a
//! Cosmos connection string works as it is; and those made by `createUser`, which belong to a database. No password is ever
//! stored, only what SCRAM derives from it.

mod account;
mod conversation;
mod credential;
mod scram;
mod users;

use ::account::{Holder, Right};
use sha2::{Digest, Sha256};

pub(crate) use account::AccountKeys;
pub(crate) use conversation::{Conversation, Step};
pub(crate) use credential::{Credentials, Mechanism};
pub(crate) use scram::read_exchange;
pub(crate) use users::{User, Users};

/// Somebody who has proved who they are.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) user: String,
    pub(crate) database: String,
    pub(crate) who: Who,
    /// Short for the names, where only the same user may go on.
    pub(crate) digest: [u8; 32],
}

/// Who is behind a name.
#[derive(Debug, Clone)]
pub(crate) enum Who {
    /// The user of that number. One of the same name that is made later has another.
    User([u8; 16]),
    /// Whoever has that key of the account.
    Account(Holder),
}

impl Identity {
    pub(crate) fn new(user: &str, database: &str, who: Who) -> Identity {
        let digest = match &who {
            // The account is on every database, and one user on all of them. Sessions and cursors of those who may do
            // everything are not for others.
            Who::Account(holder) if holder.right() == Right::ReadOnly => {
                // No user has such a name.
                digest(&format!("\0{user}"), "admin")
            }
            Who::Account(_) => digest(user, "admin"),
            Who::User(_) => digest(user, database),
        };
        Identity { user: user.to_owned(), database: database.to_owned(), who, digest }
    }
}

/// What stands for a user where only the same user may go on.
pub(crate) fn digest(user: &str, database: &str) -> [u8; 32] {
    Sha256::digest(format!("{user}@{database}")).into()
}

//! Who a client is: SCRAM exchanges, the users they are about, and what a connection remembers of it.
//!
//! Two kinds of users: the account, whose password is the account key and which is found under any database, so that a
//! Cosmos connection string works as it is; and those made by `createUser`, which belong to a database. No password is ever
//! stored, only what SCRAM derives from it.

mod conversation;
mod credential;
mod scram;
mod users;

use sha2::{Digest, Sha256};

pub(crate) use conversation::{Conversation, Step};
pub(crate) use credential::{Credentials, Mechanism};
pub(crate) use users::{AccountCredentials, User, Users};

/// Somebody who has proved who they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) user: String,
    pub(crate) database: String,
    /// Which user of that name, for those made by `createUser`; the account has none.
    pub(crate) id: Option<[u8; 16]>,
    /// Short for both names, where only the same user may go on.
    pub(crate) digest: [u8; 32],
}

impl Identity {
    pub(crate) fn new(user: &str, database: &str, id: Option<[u8; 16]>) -> Identity {
        Identity { user: user.to_owned(), database: database.to_owned(), id, digest: digest(user, database) }
    }
}

/// What stands for a user where only the same user may go on.
pub(crate) fn digest(user: &str, database: &str) -> [u8; 32] {
    Sha256::digest(format!("{user}@{database}")).into()
}

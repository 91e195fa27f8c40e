//! Errors, grouped by what the caller can do about them.
//!
//! No variant has a status code of a protocol: each front end maps this enum once, in its own `error.rs`, as an
//! exhaustive match.

use bson::RawDocument;

use crate::types::definition_error::DefinitionError;
use crate::types::patch_error::PatchError;

/// The result of every engine call.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a call failed. Whatever the variant, the store is as it was before the call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The resource does not exist, or has expired (T15).
    #[error("{what} does not exist")]
    NotFound {
        /// What was looked up, with its name.
        what: String,
    },
    /// The database or container that should have the resource does not exist.
    #[error("{what} does not exist")]
    OwnerNotFound {
        /// The owner that is missing.
        what: String,
    },
    /// A resource of that name already exists.
    #[error("{what} exists already")]
    Exists {
        /// What exists.
        what: String,
    },
    /// Another living item of the logical partition has the same unique-key values.
    #[error("another item of this partition key has the same value at {paths}")]
    UniqueKeyTaken {
        /// The unique key's paths, comma separated.
        paths: String,
    },
    /// The caller's condition on the current version does not hold.
    #[error("{what} is not at the version that the condition names")]
    PreconditionFailed {
        /// What the condition was about.
        what: String,
    },
    /// The request is wrong; the message names the offending part and what would be accepted.
    #[error("{message}")]
    Invalid {
        /// The whole explanation.
        message: String,
    },
    /// A continuation token is not as it was issued, or was issued for something else.
    #[error("the continuation token is invalid: {why}")]
    InvalidContinuation {
        /// What is wrong with it.
        why: &'static str,
    },
    /// The item's own `ttl` is not acceptable (T5).
    #[error("the input ttl '{text}' is invalid")]
    InvalidTtl {
        /// The offending JSON text.
        text: String,
    },
    /// The partition key given beside the item is not the one in the item.
    #[error("partition key {given} does not match {expected}")]
    KeyMismatch {
        /// The key that came with the request.
        given: String,
        /// The key that was expected.
        expected: String,
    },
    /// More bytes or operations than the stated limit.
    #[error("{what} is {actual}, the limit is {limit}")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// Its size.
        actual: usize,
        /// The limit.
        limit: usize,
    },
    /// Understood, but not supported (yet).
    #[error("{what} is not supported")]
    NotSupported {
        /// The construct, as the user wrote it where possible.
        what: String,
    },
    /// The query text is wrong.
    #[error(transparent)]
    Query(#[from] query::Error),
    /// The query exceeds what one request may do, or what these items allow.
    #[error(transparent)]
    Fault(query::Fault),
    /// The container definition is wrong.
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    /// The patch cannot be applied.
    #[error(transparent)]
    Patch(#[from] PatchError),
    /// Another living item of the collection has the same key in a unique index.
    #[error("the key {value:?} is taken in the unique index '{index}'")]
    DuplicateKey {
        /// The index's name.
        index: String,
        /// Its key pattern.
        pattern: RawDocument,
        /// The values that are taken, under the pattern's names.
        value: RawDocument,
    },
    /// Something that the transaction depends on was changed or removed or has expired since it began: the
    /// transaction may be retried.
    #[error("{what} has changed since the transaction began")]
    Conflict {
        /// What has changed.
        what: String,
    },
    /// A write of a session that has continued with later ones.
    #[error("the session has continued with number {last}: {number} is too old")]
    TooOld {
        /// The number that was given.
        number: i64,
        /// The session's last one.
        last: i64,
    },
    /// The request is wrong in MongoDB's language.
    #[error(transparent)]
    Language(#[from] mql::Error),
    /// The item or its container is held: nothing of it may be changed or deleted (T31).
    #[error("{what} is under a hold ({reason}) and cannot be changed or deleted")]
    Held {
        /// What is held.
        what: &'static str,
        /// The reason of the hold.
        reason: String,
    },
    /// The change would make more items expire at once than the owner allows, and was not confirmed (T30).
    #[error("the change is not confirmed: {what}")]
    NotConfirmed {
        /// The figures.
        what: String,
    },
    /// The events behind the position that a reader of the feed of all versions resumes from are not kept any more.
    #[error("the change feed does not go back that far: older events are past its retention")]
    HistoryGone,
    /// The provisioned throughput is spent; the same call will be admitted after a while.
    #[error("the request rate is larger than the provisioned throughput, try again in {retry_after_ms} ms")]
    TooManyRequests {
        /// How long the caller should wait.
        retry_after_ms: u64,
    },
    /// The clock is suspect (T34), and the call would destroy something that has expired only by the suspect time.
    #[error("the clock is suspect: an operator must accept or reject the time before {what}")]
    ClockSuspect {
        /// What was refused.
        what: &'static str,
    },
    /// Its expired items have not been archived yet (T32), so it cannot be dropped; the call may be retried.
    #[error("its expired items are not in the archive yet, so it cannot be dropped")]
    Unarchived,
    /// The client does not wait for the answer any more.
    #[error("the request was cancelled")]
    Cancelled,
    /// The disk is nearly full, and the call would make the store larger.
    #[error("{0}")]
    NoRoom(String),
    /// The store cannot take writes or serve this call now.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// The store has bytes that it cannot have written.
    #[error("the store is damaged: {0}")]
    Corrupt(String),
}

impl Error {
    pub(crate) fn invalid(message: impl Into<String>) -> Error {
        Error::Invalid { message: message.into() }
    }

    /// Adds the name of the damaged item and what an operator can do about it.
    #[must_use]
    pub(crate) fn at_item(self, item: impl std::fmt::Display) -> Error {
        match self {
            Error::Corrupt(why) => {
                let advice = "stop the server and run bolide check --repair";
                Error::Corrupt(format!("{item} cannot be read: {why}; {advice}"))
            }
            other => other,
        }
    }

    pub(crate) fn no_item(name: impl std::fmt::Display) -> Error {
        Error::NotFound { what: format!("item '{name}'") }
    }
}

impl From<storage::Error> for Error {
    fn from(error: storage::Error) -> Error {
        match error {
            storage::Error::Corrupt { what } => Error::Corrupt(what),
            error @ storage::Error::DiskFull { .. } => Error::NoRoom(error.to_string()),
            other => Error::Unavailable(other.to_string()),
        }
    }
}

impl From<query::Fault> for Error {
    fn from(fault: query::Fault) -> Error {
        match fault {
            query::Fault::Cancelled => Error::Cancelled,
            fault => Error::Fault(fault),
        }
    }
}

impl From<document::Error> for Error {
    fn from(error: document::Error) -> Error {
        Error::invalid(error.to_string())
    }
}

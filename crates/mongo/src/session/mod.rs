//! Sessions, which span connections, and the numbered statements of their commands.
//!
//! A client creates a session by sending its id; the session is kept for thirty minutes after its last use. That time is
//! real time and not that of the engine's clock, because drivers count it so: a test clock that leaps ahead a year must not
//! end the sessions of its own clients (T29).

pub(crate) mod cursors;
mod sessions;
pub(crate) mod shares;
pub(crate) mod sweep_result;
pub(crate) mod transactions;

use std::sync::{Arc, Weak};
use std::time::Duration;

use bson::{Binary, BinaryRef, Document, DocumentRef, ValueRef};
use mql::Code;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::protocol::error::{Error, Result};
use crate::protocol::fields::Fields;
use crate::protocol::limits::SESSION_MINUTES;
use crate::protocol::settings::Profile;
pub(crate) use crate::session::sessions::Sessions;

/// How long a session is remembered after its last use.
pub(crate) const SESSION_LIFETIME: Duration = Duration::from_mins(SESSION_MINUTES as u64);

/// A session's name: the client's sixteen bytes and its user, so that no client reaches another user's session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct SessionId {
    pub(crate) uuid: [u8; 16],
    /// Digest of the user; zeros for a client that has not authenticated.
    pub(crate) user: [u8; 32],
}

impl SessionId {
    /// Reads an `lsid`.
    pub(crate) fn parse(lsid: DocumentRef<'_>, user: [u8; 32]) -> Result<SessionId> {
        match lsid.get("id") {
            Some(ValueRef::Binary(BinaryRef { subtype: 4, bytes })) => {
                let uuid = bytes.try_into().map_err(|_| {
                    Error::new(Code::BAD_VALUE, "uuid must be a 16-byte binary field with UUID (4) subtype")
                })?;
                Ok(SessionId { uuid, user })
            }
            Some(other) => Err(Error::new(
                Code::TYPE_MISMATCH,
                format!(
                    "BSON field 'lsid.id' is the wrong type '{}', expected type 'binData'",
                    other.kind().alias()
                ),
            )),
            None => Err(Error::location(40414, "BSON field 'lsid.id' is missing but a required field")),
        }
    }

    /// As clients see it.
    pub(crate) fn to_document(&self) -> Document {
        Document::new().with("id", Binary { subtype: 4, bytes: self.uuid.to_vec() })
    }

    /// As a few bytes, for what is stored by session.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        [&self.uuid[..], &self.user].concat()
    }
}

/// A session that has not ended.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    used: Mutex<Instant>,
}

impl Session {
    /// Returns a sign that something of the session is open: as long as it exists, no new session takes this one's place.
    pub(crate) fn hold(self: &Arc<Self>) -> SessionHold {
        SessionHold(Arc::downgrade(self))
    }

    /// Whether a command uses the session.
    pub(crate) fn is_in_use(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) > 1
    }

    /// Whether the session has a cursor or an open transaction.
    pub(crate) fn holds_something(self: &Arc<Self>) -> bool {
        Arc::weak_count(self) > 0
    }
}

/// The sign of an open cursor or transaction that its session holds something. It does not prolong the session.
#[derive(Debug, Clone)]
pub(crate) struct SessionHold(#[expect(dead_code, reason = "it is counted")] Weak<Session>);

/// The owner of a cursor. Only the owner may continue it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    /// The session in which it was opened, if any.
    pub(crate) session: Option<SessionId>,
    /// Digest of the user.
    pub(crate) user: [u8; 32],
}

/// The role of a command in a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InTransaction {
    /// It may be part of one.
    Allowed,
    /// It may be part of one that has begun.
    AllowedLater,
    /// It may not.
    Refused,
    /// It ends one.
    Ends,
}

/// The numbered statement of a session that a command is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TxnNumber {
    /// A write that the client may retry, and that must happen once.
    Retryable {
        /// Grows from write to write.
        number: i64,
    },
    /// A part of a transaction.
    Transaction {
        /// Grows from transaction to transaction.
        number: i64,
        /// Whether this command is the first one.
        starts: bool,
    },
}

impl TxnNumber {
    /// Reads `txnNumber` and the fields beside it; `command` is the role of the command in a transaction.
    pub(crate) fn parse(
        fields: Fields<'_>,
        command: InTransaction,
        profile: &Profile,
    ) -> Result<Option<TxnNumber>> {
        let invalid = |text: &str| Err(Error::new(Code::INVALID_OPTIONS, text));
        let (number, autocommit) = (fields.integer("txnNumber")?, fields.boolean("autocommit")?);
        let starts = fields.boolean("startTransaction")?;
        let Some(number) = number else {
            return match (autocommit, starts) {
                (None, None) => Ok(None),
                _ => invalid("'autocommit' and 'startTransaction' need a transaction number"),
            };
        };
        if fields.value("lsid").is_none() {
            return invalid("Transaction number requires a session ID to be specified");
        }
        if *profile == Profile::Standalone {
            let text = "Transaction numbers are only allowed on a replica set member or mongos";
            return Err(Error::new(Code::ILLEGAL_OPERATION, text));
        }
        if number < 0 {
            return invalid("Transaction number cannot be negative");
        }
        match (autocommit, starts) {
            (None, None) => Ok(Some(TxnNumber::Retryable { number })),
            (None, Some(_)) => invalid("'startTransaction' needs 'autocommit: false'"),
            (Some(true), _) => invalid("Specifying autocommit=true is not allowed."),
            (Some(false), Some(false)) => invalid("Specifying startTransaction=false is not allowed."),
            (Some(false), starts) => {
                check_in_transaction(fields, command, starts.is_some())?;
                Ok(Some(TxnNumber::Transaction { number, starts: starts.is_some() }))
            }
        }
    }
}

/// Refuses a command that may not be part of a transaction, or not with these fields.
fn check_in_transaction(fields: Fields<'_>, command: InTransaction, starts: bool) -> Result<()> {
    if command == InTransaction::Refused {
        let text = format!("Cannot run '{}' in a multi-document transaction.", fields.owner);
        return Err(Error::new(Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION, text));
    }
    if starts && command == InTransaction::AllowedLater {
        let text =
            format!("Cannot run {} as the first operation in a multi-document transaction.", fields.owner);
        return Err(Error::new(Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION, text));
    }
    let ends = command == InTransaction::Ends;
    if !ends && fields.value("writeConcern").is_some() {
        let text = format!("{} is not allowed to have a writeConcern in a transaction", fields.owner);
        return Err(Error::new(Code::INVALID_OPTIONS, text));
    }
    if !starts && !ends && fields.document("readConcern")?.is_some_and(|concern| !concern.is_empty()) {
        let text = "Only the first command in a transaction may specify a readConcern";
        return Err(Error::new(Code::INVALID_OPTIONS, text));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(byte: u8) -> SessionId {
        SessionId { uuid: [byte; 16], user: [0; 32] }
    }

    #[test]
    fn an_lsid_is_a_uuid() {
        let lsid = |bytes: Vec<u8>, subtype| Document::new().with("id", Binary { subtype, bytes });
        assert_eq!(SessionId::parse(lsid(vec![7; 16], 4).view(), [0; 32]), Ok(id(7)));
        assert_eq!(SessionId::parse(id(7).to_document().view(), [0; 32]), Ok(id(7)));
        assert!(SessionId::parse(lsid(vec![7; 15], 4).view(), [0; 32]).is_err());
        assert!(SessionId::parse(lsid(vec![7; 16], 3).view(), [0; 32]).is_err());
        assert!(SessionId::parse(Document::new().view(), [0; 32]).is_err());
    }
}

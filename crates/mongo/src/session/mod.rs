//! Sessions, which span connections, and the numbered statements of their commands.
//!
//! A client creates a session by sending its id; the session is kept for thirty minutes after its last use. That time is
//! real time and not that of the engine's clock, because drivers count it so: a test clock that leaps ahead a year must not
//! end the sessions of its own clients (T29).

pub(crate) mod cursors;
pub(crate) mod shares;
pub(crate) mod sweep_result;
pub(crate) mod transactions;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bson::{Binary, BinaryRef, Document, DocumentRef, ValueRef};
use mql::Code;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::protocol::error::{Error, Result};
use crate::protocol::fields::Fields;
use crate::protocol::limits::{SESSION_MINUTES, SESSIONS};
use crate::protocol::settings::Profile;
use crate::session::sweep_result::SweepResult;

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

/// All sessions that have not ended.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    known: Mutex<HashMap<SessionId, Arc<Session>>>,
}

impl Sessions {
    /// Returns the session of that name, created if necessary, and marks it as used. If there is no space for another one, also
    /// returns the expired sessions, for the caller to clean up.
    pub(crate) fn touch(&self, id: SessionId, now: Instant) -> Result<(Arc<Session>, Vec<Arc<Session>>)> {
        let mut known = self.known.lock();
        if let Some(session) = known.get(&id) {
            *session.used.lock() = now;
            return Ok((Arc::clone(session), Vec::new()));
        }
        let expired = if known.len() >= SESSIONS { expired(&mut known, now, SESSIONS) } else { Vec::new() };
        if known.len() >= SESSIONS {
            let text = format!("cannot add session to the cache: there are {SESSIONS} already");
            return Err(Error::new(Code::TOO_MANY_LOGICAL_SESSIONS, text));
        }
        let session = Arc::new(Session { id: id.clone(), used: Mutex::new(now) });
        known.insert(id, Arc::clone(&session));
        Ok((session, expired))
    }

    /// Forgets sessions.
    pub(crate) fn end(&self, which: impl Fn(&SessionId) -> bool) -> Vec<Arc<Session>> {
        let mut known = self.known.lock();
        known.extract_if(|id, _| which(id)).map(|(_, session)| session).collect()
    }

    /// Forgets sessions that have exceeded their lifetime, at most so many.
    pub(crate) fn sweep(&self, now: Instant, most: usize) -> SweepResult<Arc<Session>> {
        let mut known = self.known.lock();
        let expired = expired(&mut known, now, most);
        // A session in use ends no earlier than its command.
        let due = |session: &Arc<Session>| {
            let used = if is_in_use(session) { now } else { *session.used.lock() };
            used + SESSION_LIFETIME
        };
        let next_due = known.values().map(due).min();
        SweepResult { expired, next_due }
    }

    /// Returns the ids of all.
    pub(crate) fn list(&self) -> Vec<SessionId> {
        self.known.lock().keys().cloned().collect()
    }

    /// Returns how many there are.
    pub(crate) fn count(&self) -> usize {
        self.known.lock().len()
    }
}

/// Takes out sessions that have exceeded their lifetime and that no command uses, at most so many.
fn expired(known: &mut HashMap<SessionId, Arc<Session>>, now: Instant, most: usize) -> Vec<Arc<Session>> {
    let is_expired = |session: &Arc<Session>| {
        let unused = now.saturating_duration_since(*session.used.lock());
        unused >= SESSION_LIFETIME && !is_in_use(session)
    };
    known.extract_if(|_, session| is_expired(session)).map(|(_, session)| session).take(most).collect()
}

/// Whether a command uses the session.
fn is_in_use(session: &Arc<Session>) -> bool {
    Arc::strong_count(session) > 1
}

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
    fn a_session_is_remembered_for_half_an_hour_after_its_last_use() {
        let sessions = Sessions::default();
        let start = Instant::now();
        let at = |minutes| start + Duration::from_mins(minutes);
        let touch = |byte, minutes| drop(sessions.touch(id(byte), at(minutes)).unwrap());
        let sweep = |minutes| {
            let SweepResult { expired, next_due } = sessions.sweep(at(minutes), 100);
            (expired.iter().map(|session| session.id.uuid[0]).collect::<Vec<_>>(), next_due)
        };
        assert_eq!(sweep(0), (vec![], None));
        touch(1, 0);
        touch(1, 20);
        touch(2, 20);
        touch(2, 49);
        touch(3, 50);
        assert_eq!(sweep(49), (vec![], Some(at(50))));
        assert_eq!(sweep(50), (vec![1], Some(at(79))));
        assert_eq!(sessions.count(), 2);
        assert_eq!(sessions.end(|id| id.uuid[0] == 2).len(), 1);
        assert_eq!(sessions.count(), 1);
    }

    #[test]
    fn a_session_that_a_command_uses_for_long_is_not_due_before_a_lifetime_has_passed() {
        let sessions = Sessions::default();
        let start = Instant::now();
        let (used, _) = sessions.touch(id(1), start).unwrap();
        let later = start + 2 * SESSION_LIFETIME;
        let sweep_result = sessions.sweep(later, 100);
        assert!(sweep_result.expired.is_empty());
        assert_eq!(
            sweep_result.next_due,
            Some(later + SESSION_LIFETIME),
            "the step does not run again and again"
        );
        drop(used);
        assert_eq!(sessions.sweep(later, 100).expired.len(), 1);
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

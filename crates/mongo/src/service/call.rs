//! One command as its handler gets it: its client, its target, its fields.

use std::sync::Arc;
use std::time::Duration;

use bson::{DocumentRef, RawDocument, Timestamp, ValueRef};
use engine::Engine;
use engine::collection::{Receipt, Receipts};
use mql::Code;
use storage::Time;
use tokio::time::Instant;

use crate::access::executor::Executor;
use crate::diagnostics::fail_points::Name;
use crate::protocol::cancellation::Cancellation;
use crate::protocol::error::{Error, Result};
use crate::protocol::fields::{Fields, whole};
use crate::protocol::random;
use crate::rights::{Privilege, Rights};
use crate::service::Service;
use crate::service::command::{CollectionName, Command, RunsOn};
use crate::service::connection::Connection;
use crate::session::{Owner, Session, SessionId, TxnNumber};
use crate::wire::Sequence;

/// A command that may run: known, allowed, and complete.
pub(crate) struct Call {
    pub(crate) engine: Arc<Engine>,
    pub(crate) service: Arc<Service>,
    pub(crate) connection: Arc<Connection>,
    pub(crate) command: &'static Command,
    /// `$db`.
    pub(crate) database: String,
    /// The command document; its first field is the command's name as the client spelled it.
    pub(crate) body: RawDocument,
    pub(crate) sequences: Vec<Sequence>,
    pub(crate) session: Option<Arc<Session>>,
    /// `txnNumber` and what goes with it.
    pub(crate) txn_number: Option<TxnNumber>,
    /// The time of this command: one command, one now (T16).
    pub(crate) now: Time,
    /// The logical time of this command; a write's own.
    pub(crate) timestamp: Timestamp,
    /// The time behind the last commit when it began.
    pub(crate) began: Timestamp,
    /// Reads and writes: on the database, or in its transaction.
    pub(crate) executor: Executor,
    /// What the client may do.
    pub(crate) rights: Rights,
    /// What the command needs, where that was asked.
    pub(crate) needs: Arc<[Privilege]>,
    pub(crate) cancellation: Cancellation,
    /// When its `maxTimeMS` is over.
    pub(crate) deadline: Option<Instant>,
}

impl Call {
    /// Returns the command's fields.
    pub(crate) fn fields(&self) -> Fields<'_> {
        Fields::new(self.command.name, self.body.view())
    }

    /// Returns a call of another command, for the same client at the same moment: the command that `explain` explains.
    pub(crate) fn about(&self, command: &'static Command, body: RawDocument) -> Call {
        Call {
            engine: Arc::clone(&self.engine),
            service: Arc::clone(&self.service),
            connection: Arc::clone(&self.connection),
            command,
            database: self.database.clone(),
            body,
            sequences: Vec::new(),
            session: None,
            txn_number: None,
            now: self.now,
            timestamp: self.timestamp,
            began: self.began,
            executor: self.executor.clone(),
            rights: self.rights.clone(),
            needs: Arc::clone(&self.needs),
            cancellation: self.cancellation.clone(),
            deadline: self.deadline,
        }
    }

    /// Returns the command's name as the client spelled it.
    pub(crate) fn spelled(&self) -> &str {
        self.body.view().iter().next().map_or("", |(name, _)| name)
    }

    /// Returns the value behind the command's name.
    pub(crate) fn argument(&self) -> ValueRef<'_> {
        self.body.view().iter().next().map_or(ValueRef::Null, |(_, value)| value)
    }

    /// Returns what stands where the command names its collection, if it names one: on `admin` alone it is about none.
    pub(crate) fn named_collection(&self) -> Option<ValueRef<'_>> {
        if self.command.runs_on == RunsOn::Admin {
            return None;
        }
        match self.command.traits.collection {
            CollectionName::Argument => Some(self.argument()),
            CollectionName::Namespace => None,
            CollectionName::Field(name) => self.body.get(name),
        }
    }

    /// Returns the collection that the command names as its argument.
    pub(crate) fn collection(&self) -> Result<&str> {
        match self.argument() {
            ValueRef::String(name) | ValueRef::Symbol(name) => check_collection(&self.database, name),
            other => Err(Error::new(
                Code::INVALID_NAMESPACE,
                format!("collection name has invalid type {}", other.kind().alias()),
            )),
        }
    }

    /// `database.collection` of the collection that the command names.
    pub(crate) fn namespace(&self) -> Result<String> {
        Ok(format!("{}.{}", self.database, self.collection()?))
    }

    /// Returns the documents of an array that travels in the command or beside it; none if there is no such array.
    pub(crate) fn documents(&self, name: &str) -> Result<Option<Vec<RawDocument>>> {
        if let Some(sequence) = self.sequences.iter().find(|sequence| sequence.name == name) {
            return Ok(Some(sequence.documents.clone()));
        }
        let Some(items) = self.fields().array(name)? else { return Ok(None) };
        let mut documents = Vec::new();
        for (position, item) in items.iter().enumerate() {
            let document = item.as_document().ok_or_else(|| {
                Error::new(
                    Code::TYPE_MISMATCH,
                    format!(
                        "BSON field '{}.{name}.{position}' is the wrong type '{}', expected type 'object'",
                        self.command.name,
                        item.kind().alias()
                    ),
                )
            })?;
            documents.push(RawDocument::from_view(document));
        }
        Ok(Some(documents))
    }

    /// Returns the documents of such an array, without copying them; other values are left out.
    pub(crate) fn each_document(&self, name: &str) -> impl Iterator<Item = DocumentRef<'_>> {
        let beside = self.sequences.iter().find(|sequence| sequence.name == name);
        let within = match beside {
            Some(_) => None,
            None => self.body.get(name).and_then(ValueRef::as_array),
        };
        let beside = beside.into_iter().flat_map(|sequence| sequence.documents.iter().map(RawDocument::view));
        beside.chain(within.into_iter().flat_map(|items| items.iter().filter_map(ValueRef::as_document)))
    }

    /// Returns how many documents such an array has, without copying them.
    pub(crate) fn documents_count(&self, name: &str) -> usize {
        match self.sequences.iter().find(|sequence| sequence.name == name) {
            Some(sequence) => sequence.documents.len(),
            None => self.body.get(name).and_then(ValueRef::as_array).map_or(0, bson::ArrayRef::len),
        }
    }

    /// Returns how much the client has sent.
    pub(crate) fn bytes(&self) -> usize {
        let documents = self.sequences.iter().flat_map(|sequence| &sequence.documents);
        self.body.as_bytes().len() + documents.map(|document| document.as_bytes().len()).sum::<usize>()
    }

    /// Returns the evaluation context of this command, without scratch files.
    pub(crate) fn context(&self) -> mql::Context {
        let millis = i64::try_from(self.now.millis()).unwrap_or(i64::MAX);
        mql::Context::new(millis, self.timestamp, random::seed(), Arc::clone(&self.cancellation.flag))
            .with_stage_bytes_max(self.service.settings.limits.stage_bytes)
            .yielding()
    }

    /// Returns the owner of a cursor that this command opens.
    pub(crate) fn owner(&self) -> Owner {
        Owner {
            session: self.session.as_ref().map(|session| session.id.clone()),
            user: self.connection.user_digest(),
        }
    }

    /// Returns the transaction that the command is part of, or ends: its session and its number.
    pub(crate) fn transaction(&self) -> Option<(&SessionId, i64)> {
        match (self.txn_number, &self.session) {
            (Some(TxnNumber::Transaction { number, .. }), Some(session)) => Some((&session.id, number)),
            _ => None,
        }
    }

    /// Returns the receipt of a statement that must not run twice.
    pub(crate) fn receipt(&self, statement: i32) -> Option<Receipt> {
        let Receipts { session, number, .. } = self.receipts(Vec::new())?;
        Some(Receipt { session, number, statement: self.statement(statement) })
    }

    /// Returns the receipts of statements that must not run twice.
    pub(crate) fn receipts(&self, statements: Vec<i32>) -> Option<Receipts> {
        match (self.txn_number, &self.session) {
            (Some(TxnNumber::Retryable { number }), Some(session)) => Some(Receipts {
                session: session.id.to_bytes(),
                number,
                statements: statements.into_iter().map(|statement| self.statement(statement)).collect(),
            }),
            _ => None,
        }
    }

    /// Returns the client's number for a statement: its own if it gives one, else its position.
    fn statement(&self, position: i32) -> i32 {
        let given = self.body.get("stmtIds").and_then(ValueRef::as_array);
        let given = given.and_then(|ids| ids.get(usize::try_from(position).unwrap_or(usize::MAX)));
        let first = self.body.get("stmtId").and_then(whole).and_then(|first| i32::try_from(first).ok());
        match (given.and_then(whole).and_then(|id| i32::try_from(id).ok()), first) {
            (Some(id), _) => id,
            (None, Some(first)) => first.saturating_add(position),
            (None, None) => position,
        }
    }

    /// Ends the transaction that the command is part of, if any: a statement of it has failed.
    pub(crate) fn abort_transaction(&self) {
        if self.executor.is_transaction()
            && let Some((session, number)) = self.transaction()
        {
            // It may have ended meanwhile.
            let _ = self.service.transactions.abort(session, number, &self.cancellation);
        }
    }

    /// Returns the time limit, unless a fail point overrides it.
    pub(crate) fn limited(&self, limit: Duration) -> Result<Option<Duration>> {
        if self.service.settings.test_commands {
            if self.service.fail_points.strikes(Name::MaxTimeAlwaysTimeOut) {
                return Err(Error::new(Code::MAX_TIME_MS_EXPIRED, "operation exceeded time limit"));
            }
            if self.service.fail_points.strikes(Name::MaxTimeNeverTimeOut) {
                return Ok(None);
            }
        }
        Ok(Some(limit))
    }

    /// Runs work that may scan or wait, without holding up other connections.
    #[expect(clippy::unused_self, reason = "work belongs to a command")]
    pub(crate) fn blocking<T>(&self, work: impl FnOnce() -> T) -> T {
        tokio::task::block_in_place(work)
    }
}

/// Checks a database's name.
pub(crate) fn check_database(name: &str) -> Result<&str> {
    let wrong = name.is_empty()
        || name.len() > 63
        || name.chars().any(|sign| matches!(sign, '/' | '\\' | '.' | '"' | '$' | ' ' | '\0'));
    // Some tools name external references of sessions and cursors so.
    if wrong && name != "$external" {
        return Err(Error::new(Code::INVALID_NAMESPACE, format!("Invalid database name: '{name}'")));
    }
    Ok(name)
}

/// Checks a collection's name.
pub(crate) fn check_collection<'a>(database: &str, name: &'a str) -> Result<&'a str> {
    let namespace = format!("{database}.{name}");
    let wrong = name.is_empty() || name.starts_with('.') || name.ends_with('.') || name.contains(['\0', '$']);
    if wrong || namespace.len() > 255 {
        let text = format!("Invalid namespace specified '{namespace}'");
        return Err(Error::new(Code::INVALID_NAMESPACE, text));
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked() {
        assert_eq!(check_database("test"), Ok("test"));
        for wrong in ["", "a.b", "a b", "a$", "a/b", "a\\b", "a\"b", &"x".repeat(64)] {
            assert_eq!(check_database(wrong).unwrap_err().code, Code::INVALID_NAMESPACE, "{wrong}");
        }
        assert_eq!(check_collection("db", "a.b"), Ok("a.b"));
        for wrong in ["", ".a", "a.", "a$b", "a\0", &"x".repeat(253)] {
            assert_eq!(check_collection("db", wrong).unwrap_err().code, Code::INVALID_NAMESPACE, "{wrong}");
        }
    }
}

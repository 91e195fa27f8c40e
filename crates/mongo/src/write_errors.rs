//! How a write tells of the statements that failed: the command itself has succeeded.

use bson::{Document, Value};

use crate::error::Error;

/// The failures of one command, by the position of their statement.
#[derive(Debug, Default)]
pub(crate) struct WriteErrors(Vec<Value>);

impl WriteErrors {
    /// Adds a failure.
    pub(crate) fn push(&mut self, index: usize, error: &Error) {
        let mut entry = Document::new().with("index", index as i32).with("code", error.code.0);
        for (name, value) in error.extra.iter() {
            entry.push(name, value.clone());
        }
        entry.push("errmsg", error.message.as_str());
        self.0.push(Value::Document(entry));
    }

    /// Whether nothing failed.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// These failures and others, by position.
    pub(crate) fn merged(mut self, others: WriteErrors) -> WriteErrors {
        self.0.extend(others.0);
        let position =
            |failure: &Value| failure.as_document().and_then(|failure| failure.get("index").cloned());
        self.0.sort_by_key(|failure| match position(failure) {
            Some(Value::Int32(position)) => position,
            _ => i32::MAX,
        });
        self
    }

    /// Adds the failures to a reply. An empty list must not be there: one driver cannot read it.
    pub(crate) fn add_to(self, reply: &mut Document) {
        if !self.0.is_empty() {
            reply.push("writeErrors", Value::Array(self.0));
        }
    }
}

/// Whether an error ends the whole command rather than one statement: a transaction fails as a whole, and so does what has
/// nothing to do with the statement.
pub(crate) fn is_fatal(error: &Error, in_transaction: bool) -> bool {
    use mql::Code;
    in_transaction
        || matches!(
            error.code,
            Code::MAX_TIME_MS_EXPIRED
                | Code::INTERNAL_ERROR
                | Code::TRANSACTION_TOO_OLD
                | Code::INCOMPLETE_TRANSACTION_HISTORY
                | Code::NO_SUCH_TRANSACTION
                | Code::SHUTDOWN_IN_PROGRESS
                | Code(11601)
        )
}

//! How a write tells of the statements that failed: the command itself has succeeded.

use bson::{Document, Value};
use mql::Code;

use crate::error::Error;

/// The failures of one command, by the position of their statement.
#[derive(Debug, Default)]
pub(crate) struct WriteErrors(Vec<(usize, Error)>);

impl WriteErrors {
    /// Adds a failure.
    pub(crate) fn push(&mut self, index: usize, error: Error) {
        self.0.push((index, error));
    }

    /// Whether nothing failed.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The failures.
    pub(crate) fn into_vec(self) -> Vec<(usize, Error)> {
        self.0
    }

    /// These failures and others, by position.
    pub(crate) fn merged(mut self, others: WriteErrors) -> WriteErrors {
        self.0.extend(others.0);
        self.0.sort_by_key(|(index, _)| *index);
        self
    }

    /// Adds the failures to a reply. An empty list must not be there: one driver cannot read it.
    pub(crate) fn add_to(self, reply: &mut Document) {
        if !self.0.is_empty() {
            let entries = self.0.into_iter().map(|(index, error)| Value::Document(entry(index, &error)));
            reply.push("writeErrors", Value::Array(entries.collect()));
        }
    }
}

fn entry(index: usize, error: &Error) -> Document {
    let mut entry = Document::new().with("index", index as i32).with("code", error.code.0);
    for (name, value) in error.extra.iter() {
        entry.push(name, value.clone());
    }
    entry.with("errmsg", error.message.as_str())
}

/// Whether an error ends the whole command rather than one statement: what has nothing to do with the statement does, and in a
/// transaction also what the client answers by running the whole transaction again.
pub(crate) fn is_fatal(error: &Error, in_transaction: bool) -> bool {
    in_transaction && error.code == Code::WRITE_CONFLICT
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

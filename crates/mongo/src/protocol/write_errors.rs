//! How a write reports the statements that failed: the command itself has succeeded.

use std::sync::atomic::{AtomicUsize, Ordering};

use bson::{Document, RawDocument, Value};
use mql::Code;

use crate::protocol::error::Error;

/// How many bytes of messages all failures of a command have together: a reply is bounded, and a hundred thousand
/// statements may fail. Failures beyond report only the code, as in MongoDB.
const TEXT_BYTES_MAX: usize = 1024 * 1024;

/// The failures of one command, by the position of their statement.
#[derive(Debug, Default)]
pub(crate) struct WriteErrors {
    all: Vec<(usize, Error)>,
    text_budget: TextBudget,
}

/// The bytes of messages that are left for failures.
#[derive(Debug, Default)]
pub(crate) struct TextBudget {
    used_bytes: usize,
}

/// The bytes that details of refused documents may take in one command. Beyond the bound on all failures nothing is
/// explained: it would not be reported.
#[derive(Debug, Default)]
pub(crate) struct DetailBudget {
    used_bytes: AtomicUsize,
}

impl DetailBudget {
    /// Whether no further details are reported.
    pub(crate) fn is_spent(&self) -> bool {
        self.used_bytes.load(Ordering::Relaxed) >= TEXT_BYTES_MAX
    }

    /// Counts details that are reported.
    pub(crate) fn spend(&self, details: &Document) {
        self.used_bytes.fetch_add(RawDocument::from_document(details).as_bytes().len(), Ordering::Relaxed);
    }
}

impl TextBudget {
    /// Returns the failure to report: without a message if the budget is spent.
    pub(crate) fn fit(&mut self, mut error: Error) -> Error {
        if self.used_bytes < TEXT_BYTES_MAX {
            let bytes = error.message.len() + RawDocument::from_document(&error.extra).as_bytes().len();
            self.used_bytes = self.used_bytes.saturating_add(bytes);
        }
        if self.used_bytes >= TEXT_BYTES_MAX {
            (error.message, error.extra) = (String::new(), Document::new());
        }
        error
    }
}

impl WriteErrors {
    /// Adds a failure.
    pub(crate) fn push(&mut self, index: usize, error: Error) {
        let error = self.text_budget.fit(error);
        self.all.push((index, error));
    }

    /// Whether nothing failed.
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns the failures.
    pub(crate) fn into_vec(self) -> Vec<(usize, Error)> {
        self.all
    }

    /// These failures and others, by position.
    pub(crate) fn merged(mut self, others: WriteErrors) -> WriteErrors {
        self.all.extend(others.all);
        self.all.sort_by_key(|(index, _)| *index);
        self
    }

    /// Adds the failures to a reply. An empty list must be absent: one driver cannot read it.
    pub(crate) fn add_to(self, reply: &mut Document) {
        if !self.all.is_empty() {
            let entries = self.all.into_iter().map(|(index, error)| Value::Document(entry(index, &error)));
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

/// Whether the first statement was refused for its rate: then the whole command is, which drivers know how to repeat.
pub(crate) fn is_throttled(error: &Error, done: usize, failures: &WriteErrors) -> bool {
    error.code == Code::TOO_MANY_REQUESTS && done == 0 && failures.is_empty()
}

/// Whether an error ends the whole command rather than one statement: errors that do not depend on the statement do, and in
/// a transaction also those after which the client runs the whole transaction again.
pub(crate) fn is_fatal(error: &Error, in_transaction: bool) -> bool {
    in_transaction && error.code == Code::WRITE_CONFLICT
        || matches!(
            error.code,
            Code::MAX_TIME_MS_EXPIRED
                | Code::INTERNAL_ERROR
                | Code::OUT_OF_DISK_SPACE
                | Code::TRANSACTION_TOO_OLD
                | Code::INCOMPLETE_TRANSACTION_HISTORY
                | Code::NO_SUCH_TRANSACTION
                | Code::SHUTDOWN_IN_PROGRESS
                | Code(11601)
        )
}

//! What is noted of a command when it has ended: for the figures, and for the log of slow operations.
//!
//! The log never shows what commands that carry secrets were sent with: only fields of queries are looked at, and of these the
//! shape alone unless the operator wants more.

use std::sync::Arc;
use std::time::Duration;

use bson::{DocumentRef, RawDocument, ValueRef, to_extended_json};
use engine::Charge;
use mql::Code;
use telemetry::{
    Ending, FrontEnd, Kind, Observed, OperationId, Outcome, Page, Registry, SlowOperation, Texts,
};
use tokio::time::Instant;

use crate::audit;
use crate::call::Call;
use crate::commands::{self, Effect, Place};
use crate::error::Error;
use crate::service::Service;

/// The fields of commands in which queries stand. None of them ever holds a password.
const QUERY_FIELDS: [&str; 5] = ["filter", "query", "pipeline", "sort", "projection"];

/// The commands that have such fields.
const QUERY_COMMANDS: [&str; 8] =
    ["find", "aggregate", "count", "distinct", "update", "delete", "findAndModify", "explain"];

/// How deep a shape goes, and how many items of an array it shows.
const SHAPE_DEPTH: usize = 8;
const SHAPE_ITEMS: usize = 8;

/// The figures of this front end, and where they are kept together with those of others.
pub(crate) struct Traffic {
    pub(crate) registry: Arc<Registry>,
    pub(crate) front_end: Arc<FrontEnd>,
}

impl Traffic {
    pub(crate) fn new(registry: Arc<Registry>) -> Traffic {
        let front_end = registry.register("mongodb", commands::all().iter().map(|command| command.name));
        Traffic { registry, front_end }
    }

    /// Counts a command that was refused before it ran.
    pub(crate) fn refused(&self, operation: OperationId, error: &Error, duration: Duration) {
        let charge_hundredths = Charge::MINIMUM.0;
        self.front_end
            .record(operation, &Ending { outcome: outcome(error.code), duration, charge_hundredths });
    }

    /// Counts a command whose handler panicked.
    pub(crate) fn panicked(&self) {
        let error = Error::new(Code::INTERNAL_ERROR, "");
        self.refused(OperationId::UNKNOWN, &error, Duration::ZERO);
    }
}

/// A command that has run.
pub(crate) struct Ran<'a> {
    pub(crate) call: &'a Call,
    pub(crate) operation: OperationId,
    pub(crate) ended: Instant,
    pub(crate) duration: Duration,
    pub(crate) charge: Charge,
    /// Why it failed, if it did.
    pub(crate) failed: Option<Code>,
    /// None if the connection was to break.
    pub(crate) reply: Option<&'a RawDocument>,
}

impl Ran<'_> {
    /// Counts the command, and logs it if it took long. The time in which it only waited for news is not counted.
    pub(crate) fn record(&self) {
        let Traffic { registry, front_end } = &self.call.service.traffic;
        let code = self.failed.or_else(|| self.first_write_error());
        let ending = Ending {
            outcome: code.map_or(Outcome::Ok, outcome),
            duration: self.duration.saturating_sub(self.call.room.meter().waited()),
            charge_hundredths: self.charge.0,
        };
        front_end.record(self.operation, &ending);
        registry.slow().look(front_end, self.operation, &ending, self.ended.into_std(), |texts| {
            SlowOperation { status: code.map(|code| code.0.into()), ..self.describe(texts) }
        });
        audit::ran(self.call, self.failed, self.reply.map(RawDocument::view));
    }

    /// A write that fails is told of in an answer that is well otherwise.
    fn first_write_error(&self) -> Option<Code> {
        if self.call.command.effect == Effect::Reads {
            return None;
        }
        let errors = self.reply?.get("writeErrors")?.as_array()?;
        match errors.iter().next()?.as_document()?.get("code")? {
            ValueRef::Int32(code) => Some(Code(code)),
            _ => None,
        }
    }

    fn describe(&self, texts: Texts) -> SlowOperation {
        let call = self.call;
        let collection = match call.command.name {
            "getMore" => call.body.get("collection"),
            _ if call.command.place == Place::Admin => None,
            _ => Some(call.argument()),
        };
        // What stands there need not be the name of a collection: it may be that of a user.
        let is_there = |name: &&str| call.engine.collection(&call.database, name).is_some();
        let work = call.room.meter().work();
        SlowOperation {
            database: Some(call.database.clone()),
            container: collection.and_then(ValueRef::as_str).filter(is_there).map(str::to_owned),
            activity: Some(format!("connection {}", call.connection.id)),
            items_examined: work.read.map(|read| read.loaded_items),
            index_entries_examined: work.read.map(|read| read.index_entries),
            items_returned: self.reply.and_then(returned),
            plan: work.plan,
            query: query(call, texts),
            ..SlowOperation::default()
        }
    }
}

/// How many documents an answer brings, or tells to have changed.
fn returned(reply: &RawDocument) -> Option<u64> {
    if let Some(cursor) = reply.get("cursor").and_then(ValueRef::as_document) {
        let batch = cursor.get("firstBatch").or_else(|| cursor.get("nextBatch"));
        return batch.and_then(ValueRef::as_array).map(|documents| documents.iter().count() as u64);
    }
    match reply.get("n")? {
        ValueRef::Int32(count) => u64::try_from(count).ok(),
        ValueRef::Int64(count) => u64::try_from(count).ok(),
        _ => None,
    }
}

/// What a command asks for.
fn query(call: &Call, texts: Texts) -> Option<String> {
    if !QUERY_COMMANDS.contains(&call.command.name) {
        return None;
    }
    let mut text = String::new();
    show_query(call.body.view(), texts, &mut text);
    for name in ["updates", "deletes"] {
        let beside = call.sequences.iter().find(|sequence| sequence.name == name);
        let first = match beside {
            Some(sequence) => sequence.documents.first().map(RawDocument::view),
            None => call
                .body
                .get(name)
                .and_then(ValueRef::as_array)
                .and_then(|all| all.iter().next()?.as_document()),
        };
        if let Some(condition) = first.and_then(|statement| statement.get("q")) {
            show("q", condition, texts, &mut text);
        }
    }
    (!text.is_empty()).then_some(text)
}

fn show_query(body: DocumentRef<'_>, texts: Texts, text: &mut String) {
    for (name, value) in body.iter() {
        if QUERY_FIELDS.contains(&name) {
            show(name, value, texts, text);
        } else if let ("explain", ValueRef::Document(inner)) = (name, value) {
            show_query(inner, texts, text);
        }
    }
}

fn show(name: &str, value: ValueRef<'_>, texts: Texts, text: &mut String) {
    if !text.is_empty() {
        text.push(' ');
    }
    text.push_str(name);
    text.push_str(": ");
    match texts {
        Texts::Shapes => shape(value, SHAPE_DEPTH, text),
        Texts::Whole => text.push_str(&to_extended_json(value, true)),
    }
}

/// Names of fields and operators, and a question mark for each value.
fn shape(value: ValueRef<'_>, depth: usize, text: &mut String) {
    let (open, close) = match value {
        ValueRef::Document(_) => ('{', '}'),
        ValueRef::Array(_) => ('[', ']'),
        _ => return text.push('?'),
    };
    if depth == 0 {
        return text.push('…');
    }
    text.push(open);
    match value {
        ValueRef::Document(document) => {
            for (position, (name, value)) in document.iter().enumerate() {
                text.push_str(if position == 0 { "" } else { ", " });
                text.push_str(name);
                text.push_str(": ");
                shape(value, depth - 1, text);
            }
        }
        ValueRef::Array(items) => {
            for (position, item) in items.iter().take(SHAPE_ITEMS + 1).enumerate() {
                text.push_str(if position == 0 { "" } else { ", " });
                if position == SHAPE_ITEMS {
                    text.push('…');
                } else {
                    shape(item, depth - 1, text);
                }
            }
        }
        _ => {}
    }
    text.push(close);
}

/// What the number of an error means.
fn outcome(code: Code) -> Outcome {
    match code {
        Code::AUTHENTICATION_FAILED => Outcome::Unauthorized,
        Code::UNAUTHORIZED => Outcome::Forbidden,
        Code::NAMESPACE_NOT_FOUND
        | Code::INDEX_NOT_FOUND
        | Code::CURSOR_NOT_FOUND
        | Code::USER_NOT_FOUND
        | Code::ROLE_NOT_FOUND
        | Code::NO_MATCHING_DOCUMENT
        | Code::NO_SUCH_TRANSACTION => Outcome::NotFound,
        Code::DUPLICATE_KEY
        | Code::WRITE_CONFLICT
        | Code::NAMESPACE_EXISTS
        | Code::INDEX_ALREADY_EXISTS
        | Code::INDEX_OPTIONS_CONFLICT
        | Code::INDEX_KEY_SPECS_CONFLICT
        | Code::TRANSACTION_TOO_OLD => Outcome::Conflict,
        Code::BSON_OBJECT_TOO_LARGE | Code::EXCEEDED_MEMORY_LIMIT | Code::QUERY_EXCEEDED_MEMORY_LIMIT => {
            Outcome::TooLarge
        }
        Code::TOO_MANY_REQUESTS => Outcome::Throttled,
        Code::MAX_TIME_MS_EXPIRED | Code::EXCEEDED_TIME_LIMIT | Code::TRANSACTION_EXCEEDED_LIFETIME => {
            Outcome::Timeout
        }
        Code::INTERRUPTED | Code::QUERY_PLAN_KILLED => Outcome::Abandoned,
        Code::HOST_UNREACHABLE
        | Code::SHUTDOWN_IN_PROGRESS
        | Code::INTERRUPTED_AT_SHUTDOWN
        | Code::NOT_WRITABLE_PRIMARY
        | Code::OUT_OF_DISK_SPACE
        | Code::TOO_MANY_LOGICAL_SESSIONS => Outcome::Unavailable,
        Code::INTERNAL_ERROR => Outcome::Failed,
        _ => Outcome::Invalid,
    }
}

impl Observed for Service {
    fn write(&self, page: &mut Page) {
        let figures: [(_, _, usize); 5] = [
            (
                "bolide_mongo_cursors_open",
                "Cursors of MongoDB clients that are open.",
                self.cursors.figures().open,
            ),
            ("bolide_mongo_sessions_open", "Sessions of MongoDB clients.", self.sessions.count()),
            (
                "bolide_mongo_transactions_open",
                "Transactions of MongoDB clients that are open.",
                self.transactions.open_count(),
            ),
            ("bolide_mongo_commands_running", "MongoDB commands that run.", self.operations.list().len()),
            (
                "bolide_mongo_idle_bytes",
                "Bytes that rest in open cursors and transactions of MongoDB clients.",
                self.shares.bytes(),
            ),
        ];
        for (name, help, count) in figures {
            page.plain(name, Kind::Gauge, help, count);
        }
        let counters = [
            (
                "bolide_mongo_idle_ended_total",
                "Idle cursors and transactions of MongoDB clients that were ended because their user held too much.",
                self.shares.ended.get(),
            ),
            (
                "bolide_mongo_authentication_failures_total",
                "Wrong passwords of MongoDB clients.",
                self.wrong_proofs.get(),
            ),
        ];
        for (name, help, count) in counters {
            page.plain(name, Kind::Counter, help, count);
        }
    }
}

#[cfg(test)]
mod tests {
    use bson::parse_extended_json;

    use super::*;

    #[test]
    fn a_shape_has_no_value_in_it() {
        let long: String = vec!["7"; 20].join(",");
        for (json, expected) in [
            (
                r#"{"a": "secret", "b": {"$gt": 5}, "$or": [{"c": null}, {"d": {"e": true}}]}"#.to_owned(),
                "{a: ?, b: {$gt: ?}, $or: [{c: ?}, {d: {e: ?}}]}",
            ),
            ("{}".to_owned(), "{}"),
            (format!(r#"{{"$in": [{long}]}}"#), "{$in: [?, ?, ?, ?, ?, ?, ?, ?, …]}"),
            (
                r#"{"a":{"a":{"a":{"a":{"a":{"a":{"a":{"a":{"a":1}}}}}}}}}"#.to_owned(),
                "{a: {a: {a: {a: {a: {a: {a: {a: …}}}}}}}}",
            ),
        ] {
            let mut text = String::new();
            shape(parse_extended_json(&json).unwrap().view(), SHAPE_DEPTH, &mut text);
            assert_eq!(text, expected);
        }
    }

    #[test]
    fn errors_have_outcomes() {
        for (code, expected) in [
            (Code::DUPLICATE_KEY, Outcome::Conflict),
            (Code::TOO_MANY_REQUESTS, Outcome::Throttled),
            (Code::OUT_OF_DISK_SPACE, Outcome::Unavailable),
            (Code::UNAUTHORIZED, Outcome::Forbidden),
            (Code::COMMAND_NOT_FOUND, Outcome::Invalid),
            (Code(40571), Outcome::Invalid),
        ] {
            assert_eq!(outcome(code), expected, "{code}");
        }
    }
}

//! Records a command that has ended: for the figures, and for the log of slow operations.
//!
//! The log never shows secrets: it reads only fields of queries, and of these the shape alone unless the operator wants
//! more.

use std::time::Duration;

use bson::{DocumentRef, RawDocument, ValueRef, to_extended_json};
use engine::Charge;
use mql::Code;
use telemetry::{OperationId, Outcome, RequestSummary, SlowOperation, Texts};
use tokio::time::Instant;

use crate::dispatch::audit;
use crate::service::call::Call;
use crate::service::command::{Effect, QueryLog};
use crate::service::metrics::{FrontEndMetrics, outcome};

/// The fields of commands in which queries stand. None of them ever holds a password.
const QUERY_FIELDS: [&str; 5] = ["filter", "query", "pipeline", "sort", "projection"];

/// How deep a shape goes, and how many items of an array it shows.
const SHAPE_DEPTH: usize = 8;
const SHAPE_ITEMS: usize = 8;

/// A command that has run.
pub(crate) struct CompletedCommand<'a> {
    pub(crate) call: &'a Call,
    pub(crate) operation: OperationId,
    pub(crate) ended: Instant,
    pub(crate) duration: Duration,
    pub(crate) charge: Charge,
    /// Why it failed, if it did.
    pub(crate) failed: Option<Code>,
    /// None if a fail point broke the connection.
    pub(crate) reply: Option<&'a RawDocument>,
}

impl CompletedCommand<'_> {
    /// Counts the command, and logs it if it was slow. Time spent only waiting for changes does not count.
    pub(crate) fn record(&self) {
        let FrontEndMetrics { registry, front_end } = &self.call.service.metrics;
        let code = self.failed.or_else(|| self.first_write_error());
        let ending = RequestSummary {
            outcome: code.map_or(Outcome::Ok, outcome),
            duration: self.duration.saturating_sub(self.call.executor.meter().waited()),
            charge_hundredths: self.charge.0,
        };
        front_end.record(self.operation, &ending);
        registry.slow().record(front_end, self.operation, &ending, self.ended.into_std(), |texts| {
            SlowOperation { status: code.map(|code| code.0.into()), ..self.describe(texts) }
        });
        audit::ran(self.call, self.failed, self.reply.map(RawDocument::view));
    }

    /// Returns the first error of a write whose answer is a success otherwise.
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
        // The name there need not be a collection's: it may be a user's.
        let is_there = |name: &&str| call.engine.collection(&call.database, name).is_some();
        let work = call.executor.meter().work();
        SlowOperation {
            database: Some(call.database.clone()),
            container: call.named_collection().and_then(ValueRef::as_str).filter(is_there).map(str::to_owned),
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

/// Returns how many documents an answer has, or reports as changed.
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

/// Returns the query of a command, for the log.
fn query(call: &Call, texts: Texts) -> Option<String> {
    let mut text = String::new();
    match call.command.traits.query_log {
        QueryLog::Nothing => return None,
        QueryLog::Queries => show_query(call.body.view(), texts, &mut text),
        QueryLog::QueriesOfArgument => show_query(call.argument().as_document()?, texts, &mut text),
    }
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
    for (name, value) in body.iter().filter(|(name, _)| QUERY_FIELDS.contains(name)) {
        show(name, value, texts, text);
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

/// Writes the names of fields and operators, and a question mark for each value.
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
}

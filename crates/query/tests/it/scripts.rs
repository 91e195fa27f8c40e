//! Golden scripts: what each query gives on a few items, or why it is refused.
//!
//! A script is a transcript, as `golden` describes it; `UPDATE_GOLDEN=1 cargo test` writes what was found into the files.
//!
//! ```text
//! # a comment
//! item {"id":"1","n":5}              an item, known to all queries below
//! forget                             forgets all items and settings
//! computed low SELECT VALUE LOWER(c.name) FROM c
//! embedding /vector euclidean        parts of the container's definition
//! key /tenant /user                  the partition key; from here on the access is shown too
//!
//! > SELECT c.n FROM c                a query; indented lines continue it
//!   WHERE c.n = @n
//! @n 5                               its parameters
//! {"n":5}                            its rows, "none" without any, or "error start..end code message"
//!
//! ? FROM c WHERE c.n = 5             a bare filter, and the ids of the items that fulfil it
//! 1
//!
//! 1 + 1 => 2                         an expression and its value
//! c.n => 5 | undefined               one that names the item: its value for each item
//! ```
//!
//! Every query runs over trees and over stored documents, in one page and in pages of one and of two rows, and all of
//! that must agree.

use document::{PartitionKeyDefinition, Value, parse_json};
use golden::Transcript;
use query::{Access, Code, Dialect, Error, Report};

use crate::runner::{context, rows};

#[test]
fn scripts_hold() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scripts");
    golden::check(folder, |script, transcript| State::default().run(&script.text, transcript));
}

/// What a script has set up so far.
#[derive(Default)]
struct State {
    items: Vec<Value>,
    dialect: Dialect,
    key: Option<PartitionKeyDefinition>,
}

impl State {
    fn run(mut self, script: &str, transcript: &mut Transcript) {
        let mut lines = script.lines().peekable();
        while let Some(line) = lines.next() {
            if self.setting(line) {
                transcript.input(line);
            } else if let Some(text) = line.strip_prefix("> ").or(line.strip_prefix("? ")) {
                transcript.input(line);
                let mut text = text.to_owned();
                while let Some(more) = lines.next_if(|line| line.starts_with("  ")) {
                    transcript.input(more);
                    text = text + "\n" + more;
                }
                let mut parameters = Vec::new();
                while let Some(parameter) = lines.next_if(|line| line.starts_with('@')) {
                    transcript.input(parameter);
                    let (name, json) = parameter.split_once(' ').expect("a name and a value");
                    parameters.push((name.to_owned(), value(json)));
                }
                while lines.next_if(|line| !line.is_empty()).is_some() {}
                let is_query = line.starts_with('>');
                transcript.answer(if is_query {
                    self.query(&text, &parameters)
                } else {
                    self.filter(&text, &parameters)
                });
            } else if let Some((expression, _)) = line.rsplit_once("=>") {
                let expression = expression.trim_end();
                let value = self.value_of(expression);
                transcript.answer([format!("{expression} => {value}")]);
            } else {
                panic!("no part of a script: {line:?}");
            }
        }
    }

    /// Takes a line that says what there is.
    fn setting(&mut self, line: &str) -> bool {
        match line.split_once(' ').unwrap_or((line, "")) {
            ("" | "#", _) => {}
            ("item", json) => self.items.push(value(json)),
            ("forget", _) => {
                self.items.clear();
                self.dialect = Dialect::default();
                self.key = None;
            }
            ("computed", definition) => {
                let (name, text) = definition.split_once(' ').expect("a name and a query");
                self.dialect.computed.push((name.to_owned(), text.to_owned()));
            }
            ("embedding", definition) => {
                let (path, function) = definition.split_once(' ').expect("a path and a function");
                self.dialect.embeddings.push((path.parse().expect("a path"), function.to_owned()));
            }
            ("key", paths) => self.key = Some(key(paths)),
            _ => return false,
        }
        true
    }

    fn query(&self, text: &str, parameters: &[(String, Value)]) -> Vec<String> {
        let query = match query::parse(text, parameters, &self.dialect) {
            Ok(query) => query,
            Err(error) => return describe_error(&error),
        };
        let mut lines = match rows(&query, &self.items) {
            Ok(rows) if rows.is_empty() => vec!["none".to_owned()],
            Ok(rows) => rows,
            Err(fault) => vec![format!("fault {fault}")],
        };
        if let Some(key) = &self.key {
            lines.push(format!("access {}", describe_access(&query.access(key))));
        }
        lines
    }

    fn filter(&self, text: &str, parameters: &[(String, Value)]) -> Vec<String> {
        match query::parse_filter(text, parameters, query::Surface::Globe) {
            Ok(query) => {
                let matching = self.items.iter().filter(|item| query.matches(*item, &context()));
                let ids: Vec<_> =
                    matching.map(|item| item.get("id").and_then(Value::as_str).expect("an id")).collect();
                vec![if ids.is_empty() { "none".to_owned() } else { ids.join(" ") }]
            }
            Err(error) => describe_error(&error),
        }
    }

    /// Returns the value of an expression, for each item if it names the item.
    fn value_of(&self, expression: &str) -> String {
        let over_items = !self.items.is_empty() && expression.contains("c.") || expression.contains("c[");
        let from = if over_items { " FROM c" } else { "" };
        let text = format!("SELECT [{expression}]{from}");
        let query = match query::parse(&text, &[], &self.dialect) {
            Ok(query) => query,
            Err(error) => return describe_error(&error).join(" "),
        };
        let values = rows(&query, &self.items)
            .map(|rows| rows.iter().map(|row| show_value(&value(row))).collect::<Vec<_>>().join(" | "));
        values.unwrap_or_else(|fault| format!("fault {fault}"))
    }
}

/// Returns the value inside `{"$1":[value]}`.
fn show_value(row: &Value) -> String {
    let values = row.get("$1").and_then(Value::as_array).expect("an array");
    values.first().map_or("undefined".to_owned(), Value::to_json)
}

fn describe_error(error: &Error) -> Vec<String> {
    let describe = |report: &Report| {
        let place = report.location.map(|(start, end)| format!("{start}..{end} ")).unwrap_or_default();
        let code = match report.code {
            Code::Text(code) => code.to_owned(),
            Code::Number(code) => code.to_string(),
        };
        format!("error {place}{code} {}", report.message)
    };
    error.reports().iter().map(describe).collect()
}

fn describe_access(access: &Access) -> String {
    if access.is_nothing() {
        return "nothing".to_owned();
    }
    let ids = access.ids.as_ref().map(|ids| format!("ids {}", ids.join(",")));
    let keys = access.keys.as_ref().map(|keys| {
        format!("keys {}", keys.iter().map(document::PartitionKey::to_json).collect::<Vec<_>>().join(","))
    });
    let bound = |bound: Option<u64>| bound.map(|bound| bound.to_string()).unwrap_or_default();
    let stamps = (access.stamps != query::Stamps::default())
        .then(|| format!("_ts {}..={}", bound(access.stamps.from), bound(access.stamps.to)));
    let parts = [ids, keys, stamps].into_iter().flatten().collect::<Vec<_>>();
    if parts.is_empty() { "everything".to_owned() } else { parts.join(" ") }
}

fn value(json: &str) -> Value {
    parse_json(json.as_bytes()).expect("a script holds valid JSON")
}

fn key(paths: &str) -> PartitionKeyDefinition {
    let kind = if paths.contains(' ') { "MultiHash" } else { "Hash" };
    let paths = paths.split(' ').map(|path| format!("{path:?}")).collect::<Vec<_>>().join(",");
    let json = format!(r#"{{"paths":[{paths}],"kind":"{kind}","version":2}}"#);
    PartitionKeyDefinition::from_value(&value(&json)).expect("a script defines a valid key")
}

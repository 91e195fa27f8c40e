//! The questions of scripts. One row here and one file for each group of verbs.

mod aggregate;
mod expression;
mod find;
mod update;

use std::sync::Arc;

use bson::{Collation, Document, Value};
use mql::Context;
use mql::filter::Settings;
use mql::index::IndexSpec;

use crate::script::{Answer, State};

/// A verb: answers its arguments.
type Verb = fn(&mut State, &[Value]) -> Answer;

/// All verbs.
pub(crate) const VERBS: &[(&str, Verb)] = &[
    ("aggregate", aggregate::aggregate),
    ("collection", aggregate::collection),
    ("expr", expression::expr),
    ("find", find::find),
    ("ids", find::ids),
    ("project", find::project),
    ("sort", find::sort),
    ("update", update::update),
    ("upsert", update::upsert),
];

/// The time of all scripts.
const NOW_MILLIS: i64 = 1_700_000_000_000;

/// Returns the context of one question.
pub(crate) fn context() -> Context {
    Context::at(NOW_MILLIS)
}

/// Returns an argument that is a document; an empty one if it is not given.
pub(crate) fn document(arguments: &[Value], position: usize) -> Document {
    match arguments.get(position) {
        None => Document::new(),
        Some(Value::Document(document)) => document.clone(),
        Some(other) => panic!("argument {position} is not a document: {other:?}"),
    }
}

/// Returns the settings in the options of a question: `{collation: .., let: .., text: a text index}`.
pub(crate) fn settings(options: &Document) -> Settings {
    let collation = match options.get("collation") {
        Some(Value::Document(collation)) => Collation::parse(collation.view()).unwrap(),
        _ => Collation::simple(),
    };
    let variables = options.get("let").and_then(Value::as_document).cloned().unwrap_or_default();
    let text = options.get("text").and_then(Value::as_document).map(|index| {
        let spec = IndexSpec::parse(index.view()).unwrap();
        Arc::new(spec.text_rules().unwrap().clone())
    });
    Settings { collation, variables: Arc::new(variables), text, ..Settings::default() }
}

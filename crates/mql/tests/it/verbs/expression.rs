//! `expr <expression> [<document>] [{collation, let, meta}]`: the value of an expression, for a document or for all of the
//! `docs` block. A missing value is answered as undefined.

use bson::{Document, RawDocument, Value};
use mql::expression::{Expression, Scope, Variables};

use super::{context, document, settings};
use crate::script::{Answer, State};

pub(crate) fn expr(state: &mut State, arguments: &[Value]) -> Answer {
    let settings = settings(&document(arguments, 2));
    let expression =
        Expression::parse(arguments[0].view(), &Variables::of(&settings.variables, &settings.patterns))?;
    let documents = match arguments.get(1) {
        Some(_) => vec![RawDocument::from_document(&document(arguments, 1))],
        None if state.documents.is_empty() => vec![RawDocument::default()],
        None => state.documents.clone(),
    };
    let options = document(arguments, 2);
    let meta = options.get("meta").and_then(Value::as_document).cloned().unwrap_or_else(Document::new);
    let context = context();
    let mut values = Vec::new();
    for document in &documents {
        let scope = Scope::root(document.view())
            .with_variables(&settings.variables)
            .with_collation(&settings.collation)
            .with_meta(&meta);
        values.push(expression.evaluate(&scope, &context)?.unwrap_or(Value::Undefined));
    }
    Ok(values)
}

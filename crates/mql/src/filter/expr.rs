//! The conditions of an `$expr` on single fields: equalities, which an index can serve.
//!
//! An expression compares whole values: `{$eq: ["$a", 5]}` holds for `{a: 5}` and not for `{a: [5]}`. So it implies the
//! condition `{a: 5}` of filters, which an index can answer, and no condition implies it; the expression itself is always
//! evaluated too.

use bson::{Document, Value, ValueRef};

use super::node::{Comparison, Node, Test};
use crate::path::FieldPath;

/// Returns the fields that an expression compares, and the values: those of an `$eq`, alone or within `$and`.
pub(crate) fn equalities(expression: ValueRef<'_>) -> Vec<(&str, ValueRef<'_>)> {
    let mut found = Vec::new();
    collect(expression, &mut found);
    found
}

fn collect<'e>(expression: ValueRef<'e>, found: &mut Vec<(&'e str, ValueRef<'e>)>) {
    let ValueRef::Document(document) = expression else { return };
    let mut operators = document.iter();
    match (operators.next(), operators.next()) {
        (Some(("$and", ValueRef::Array(parts))), None) => parts.iter().for_each(|part| collect(part, found)),
        (Some(("$eq", ValueRef::Array(sides))), None) => {
            let (Some(left), Some(right)) = (sides.get(0), sides.get(1)) else { return };
            for (side, other) in [(left, right), (right, left)] {
                found.extend(field(side).map(|path| (path, other)));
            }
        }
        _ => {}
    }
}

/// Returns the path of `"$a.b"`.
fn field(side: ValueRef<'_>) -> Option<&str> {
    let path = side.as_str()?.strip_prefix('$')?;
    (!path.is_empty() && !path.starts_with('$')).then_some(path)
}

/// Returns the conditions on fields that hold wherever an expression is true.
pub(super) fn implied(expression: ValueRef<'_>, variables: &Document) -> Vec<Node> {
    let condition = |(path, other): (&str, ValueRef<'_>)| {
        let value = constant(other, variables).filter(is_comparable)?;
        let path = FieldPath::parse(path).ok()?;
        Some(Node::Field { path, test: Test::Compare(Comparison::Equal, value) })
    };
    equalities(expression).into_iter().filter_map(condition).collect()
}

/// Returns a value that is the same for all documents.
fn constant(side: ValueRef<'_>, variables: &Document) -> Option<Value> {
    match side {
        ValueRef::String(text) if text.starts_with("$$") => variables.get(&text[2..]).cloned(),
        ValueRef::String(text) if text.starts_with('$') => None,
        ValueRef::Document(document) => document.get("$literal").map(ValueRef::to_value),
        other => Some(other.to_value()),
    }
}

/// Returns `true` if equality means the same to expressions and to filters. An array may be the result of a path through
/// many documents, and for a filter a pattern is no value.
fn is_comparable(value: &Value) -> bool {
    !matches!(value, Value::Array(_) | Value::Undefined | Value::Regex(_))
}

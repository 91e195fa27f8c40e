//! Expressions over one item, in the three-valued logic of the language.
//!
//! `None` is *undefined*: the value of a property that is not there, and of everything computed from one.
//!
//! | | |
//! |---|---|
//! | `=`, `!=` | undefined operand: undefined; different types: different; numbers by value, `1 = 1.0` |
//! | `<`, `<=`, `>`, `>=` | undefined unless both are of one scalar type |
//! | `AND` | false wins over undefined, undefined over true |
//! | `OR` | true wins over undefined, undefined over false |
//! | `NOT` | undefined stays undefined |
//! | non-boolean in `AND`, `OR`, `NOT` | counts as undefined |
//!
//! That values of different types compare as *different*, and not as undefined, is what makes the common
//! `c.x != null` find the items whose `x` is a string.

use std::cmp::Ordering;

use document::{Object, Value, ValueRef};

use crate::Query;
use crate::expression::Expression;
use crate::function::Function;
use crate::logical::Comparison;
use crate::row::{Operand, Row};

impl Query {
    /// Whether the filter is true for this item; undefined is not enough.
    pub fn matches(&self, item: &dyn Row) -> bool {
        self.filter.as_ref().is_none_or(|filter| truth(filter, item) == Some(true))
    }
}

/// The value of an expression, `None` if undefined.
pub(crate) fn evaluate<'a>(expression: &'a Expression, row: &'a dyn Row) -> Option<Operand<'a>> {
    match expression {
        Expression::Literal(value) => Some(Operand::Borrowed(value.view())),
        Expression::Undefined => None,
        Expression::Path(path) => row.get(path),
        Expression::Array(items) => {
            let items = items.iter().filter_map(|item| Some(evaluate(item, row)?.view().to_value()));
            Some(Operand::Owned(Value::Array(items.collect())))
        }
        Expression::Object(members) => {
            let members = members
                .iter()
                .filter_map(|(name, member)| Some((name.as_str(), evaluate(member, row)?.view().to_value())));
            Some(Operand::Owned(Value::Object(members.collect::<Object>())))
        }
        Expression::Not(_)
        | Expression::And(_)
        | Expression::Or(_)
        | Expression::Compare { .. }
        | Expression::In { .. }
        | Expression::Between { .. }
        | Expression::Call(Function::IsDefined | Function::IsNull, _) => {
            truth(expression, row).map(|truth| Operand::Borrowed(ValueRef::Bool(truth)))
        }
    }
}

/// The value of an expression as a condition: anything but a boolean is undefined.
fn truth(expression: &Expression, row: &dyn Row) -> Option<bool> {
    match expression {
        Expression::Not(inner) => truth(inner, row).map(|truth| !truth),
        Expression::And(parts) => decide(parts, row, false),
        Expression::Or(parts) => decide(parts, row, true),
        Expression::Compare { operator, left, right } => {
            compare(*operator, evaluate(left, row)?.view(), evaluate(right, row)?.view())
        }
        Expression::In { value, list } => is_in(value, list, row),
        Expression::Between { value, low, high } => between(value, low, high, row),
        Expression::Call(Function::IsDefined, arguments) => {
            Some(arguments.iter().all(|argument| evaluate(argument, row).is_some()))
        }
        Expression::Call(Function::IsNull, arguments) => {
            let is_null = |argument| evaluate(argument, row).is_some_and(|value| value.view().is_null());
            Some(arguments.iter().all(is_null))
        }
        Expression::Literal(_)
        | Expression::Undefined
        | Expression::Path(_)
        | Expression::Array(_)
        | Expression::Object(_) => evaluate(expression, row)?.view().as_bool(),
    }
}

/// `AND` (decided by the first false) or `OR` (decided by the first true).
fn decide(parts: &[Expression], row: &dyn Row, deciding: bool) -> Option<bool> {
    let mut outcome = Some(!deciding);
    for part in parts {
        match truth(part, row) {
            Some(truth) if truth == deciding => return Some(deciding),
            Some(_) => {}
            None => outcome = None,
        }
    }
    outcome
}

fn is_in(value: &Expression, list: &[Expression], row: &dyn Row) -> Option<bool> {
    let value = evaluate(value, row)?;
    let mut outcome = Some(false);
    for item in list {
        match evaluate(item, row) {
            Some(item) if document::equal(value.view(), item.view()) => return Some(true),
            Some(_) => {}
            None => outcome = None,
        }
    }
    outcome
}

/// `low <= value AND value <= high`, with the same say for undefined.
fn between(value: &Expression, low: &Expression, high: &Expression, row: &dyn Row) -> Option<bool> {
    let value = evaluate(value, row)?;
    let above = evaluate(low, row).and_then(|low| compare(Comparison::LessOrEqual, low.view(), value.view()));
    let below =
        evaluate(high, row).and_then(|high| compare(Comparison::LessOrEqual, value.view(), high.view()));
    match (above, below) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

/// Compares two defined values.
pub(crate) fn compare(operator: Comparison, left: ValueRef<'_>, right: ValueRef<'_>) -> Option<bool> {
    let order = || match left {
        ValueRef::Array(_) | ValueRef::Object(_) => None,
        _ => document::compare(left, right),
    };
    Some(match operator {
        Comparison::Equal => document::equal(left, right),
        Comparison::NotEqual => !document::equal(left, right),
        Comparison::Less => order()? == Ordering::Less,
        Comparison::LessOrEqual => order()? != Ordering::Greater,
        Comparison::Greater => order()? == Ordering::Greater,
        Comparison::GreaterOrEqual => order()? != Ordering::Less,
    })
}

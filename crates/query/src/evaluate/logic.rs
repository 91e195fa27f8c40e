//! Conditions: true, false or undefined.

use std::cmp::Ordering;

use document::ValueRef;

use super::relate::{equal, is_among, relate};
use super::{Environment, evaluate};
use crate::functions::context::{Context, Fault};
use crate::functions::like::{self, Like};
use crate::logical::{Comparison, Expression};

/// Longest pattern that may come from a row, in bytes: as long as the text of a query may be.
const PATTERN_BYTES_MAX: usize = 256 * 1024;

/// Parts of an `AND` or `OR` that are not charged separately.
const PARTS_FREE: usize = 8;

/// Returns the value of an expression as a condition: anything but a boolean is undefined.
pub(crate) fn truth(
    expression: &Expression,
    environment: &Environment<'_>,
    context: &Context,
) -> Option<bool> {
    match expression {
        Expression::Not(inner) => truth(inner, environment, context).map(|truth| !truth),
        Expression::And(parts) => decide(parts, environment, context, false),
        Expression::Or(parts) => decide(parts, environment, context, true),
        Expression::Compare { operator, left, right } => {
            let left = evaluate(left, environment, context)?;
            let right = evaluate(right, environment, context)?;
            relate(*operator, left.view(), right.view(), context)
        }
        Expression::In { value, list } => is_in(value, list, environment, context),
        Expression::InConstants { value, list } => {
            let value = evaluate(value, environment, context)?;
            is_among(value.view(), list, context)
        }
        Expression::Between { value, low, high } => between([value, low, high], environment, context),
        Expression::Like { value, pattern } => {
            let value = evaluate(value, environment, context)?;
            matches(pattern, value.view(), context)
        }
        Expression::LikeComputed { value, pattern, escape } => {
            let value = evaluate(value, environment, context)?;
            let pattern = evaluate(pattern, environment, context)?;
            let pattern = pattern.view().as_str()?;
            pay_for_pattern(pattern, context)?;
            matches(&like::compile(pattern, *escape)?, value.view(), context)
        }
        _ => evaluate(expression, environment, context)?.view().as_bool(),
    }
}

/// Charges the compilation of a pattern, which takes some dozens of bytes for each of its letters.
fn pay_for_pattern(pattern: &str, context: &Context) -> Option<()> {
    if pattern.len() > PATTERN_BYTES_MAX {
        let what = "one computed pattern of LIKE";
        context.fail(Fault::OutOfMemory { what, limit: PATTERN_BYTES_MAX });
        return None;
    }
    context.spend(pattern.len() as u64 + 1).then_some(())
}

fn matches(pattern: &Like, value: ValueRef<'_>, context: &Context) -> Option<bool> {
    let text = value.as_str()?;
    context.spend(pattern.steps(text)).then(|| pattern.matches(text))
}

/// Evaluates `AND` (decided by the first false) or `OR` (decided by the first true).
fn decide(
    parts: &[Expression],
    environment: &Environment<'_>,
    context: &Context,
    deciding: bool,
) -> Option<bool> {
    // The charge for the row covers few parts.
    if parts.len() > PARTS_FREE && !context.spend(parts.len() as u64) {
        return None;
    }
    let mut outcome = Some(!deciding);
    for part in parts {
        match truth(part, environment, context) {
            Some(truth) if truth == deciding => return Some(deciding),
            Some(_) => {}
            None => outcome = None,
        }
    }
    outcome
}

fn is_in(
    value: &Expression,
    list: &[Expression],
    environment: &Environment<'_>,
    context: &Context,
) -> Option<bool> {
    let value = evaluate(value, environment, context)?;
    if !context.spend(list.len() as u64) {
        return None;
    }
    let mut outcome = Some(false);
    for item in list {
        match evaluate(item, environment, context) {
            Some(item) if equal(value.view(), item.view(), context)? => return Some(true),
            Some(_) => {}
            None => outcome = None,
        }
    }
    outcome
}

/// Evaluates `low <= value AND value <= high`, with the same rules for undefined.
fn between(
    [value, low, high]: [&Expression; 3],
    environment: &Environment<'_>,
    context: &Context,
) -> Option<bool> {
    let value = evaluate(value, environment, context)?;
    let not_beyond = |bound: &Expression, operator| {
        let bound = evaluate(bound, environment, context)?;
        relate(operator, value.view(), bound.view(), context)
    };
    match (not_beyond(low, Comparison::GreaterOrEqual), not_beyond(high, Comparison::LessOrEqual)) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

/// Compares two defined values without a charge, for constants.
pub(crate) fn compare(operator: Comparison, left: ValueRef<'_>, right: ValueRef<'_>) -> Option<bool> {
    Some(match operator {
        Comparison::Equal => document::equal(left, right),
        Comparison::NotEqual => !document::equal(left, right),
        Comparison::Less => document::compare(left, right)? == Ordering::Less,
        Comparison::LessOrEqual => document::compare(left, right)? != Ordering::Greater,
        Comparison::Greater => document::compare(left, right)? == Ordering::Greater,
        Comparison::GreaterOrEqual => document::compare(left, right)? != Ordering::Less,
    })
}

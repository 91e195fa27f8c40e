//! Comparisons that are charged by the size of the values.
//!
//! `c.a = 5` is cheap, but `c.a = c.b` may traverse two items: large values are compared here, part by part, each
//! charged to the budget of the request. The order is [`document::total_order`]. Where the budget ends, the outcome is
//! undefined and the context has the fault.

use std::cell::Cell;
use std::cmp::Ordering;

use document::{ObjectRef, Value, ValueRef, total_order};

use super::logic::compare;
use crate::functions::context::Context;
use crate::logical::Comparison;

/// Bytes of text that cost one step; shorter texts are free.
const TEXT_STEP: usize = 64;

/// Compares two defined values.
pub(super) fn relate(
    operator: Comparison,
    left: ValueRef<'_>,
    right: ValueRef<'_>,
    context: &Context,
) -> Option<bool> {
    // A comparison with a small value is cheap. Constants are mostly on the right.
    if is_small(right) || is_small(left) {
        return compare(operator, left, right);
    }
    match operator {
        Comparison::Equal => equal(left, right, context),
        Comparison::NotEqual => equal(left, right, context).map(|equal| !equal),
        _ => {
            pay_for_text(left, right, context)?;
            compare(operator, left, right)
        }
    }
}

/// Returns whether two values are equal.
pub(super) fn equal(left: ValueRef<'_>, right: ValueRef<'_>, context: &Context) -> Option<bool> {
    if is_small(right) || is_small(left) {
        return Some(document::equal(left, right));
    }
    match (left, right) {
        (ValueRef::String(left), ValueRef::String(right)) if left.len() != right.len() => Some(false),
        (ValueRef::Array(left), ValueRef::Array(right)) if left.len() != right.len() => Some(false),
        (ValueRef::Object(left), ValueRef::Object(right)) if left.len() != right.len() => Some(false),
        _ => order(left, right, context).map(Ordering::is_eq),
    }
}

/// Returns whether a value is in a list that is in order.
pub(super) fn is_among(value: ValueRef<'_>, list: &[Value], context: &Context) -> Option<bool> {
    if is_small(value) {
        return Some(list.binary_search_by(|item| total_order(Some(item.view()), Some(value))).is_ok());
    }
    let failed = Cell::new(false);
    let found = list.binary_search_by(|item| {
        order(item.view(), value, context).unwrap_or_else(|| {
            failed.set(true);
            Ordering::Equal
        })
    });
    (!failed.get()).then_some(found.is_ok())
}

fn is_small(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::String(text) => text.len() < TEXT_STEP,
        ValueRef::Array(_) | ValueRef::Object(_) => false,
        ValueRef::Null | ValueRef::Bool(_) | ValueRef::Int(_) | ValueRef::Double(_) => true,
    }
}

fn pay_for_text(left: ValueRef<'_>, right: ValueRef<'_>, context: &Context) -> Option<()> {
    match (left, right) {
        (ValueRef::String(left), ValueRef::String(right)) => {
            context.spend((left.len().min(right.len()) / TEXT_STEP) as u64).then_some(())
        }
        _ => Some(()),
    }
}

/// Compares two values in the total order.
fn order(left: ValueRef<'_>, right: ValueRef<'_>, context: &Context) -> Option<Ordering> {
    match (left, right) {
        (ValueRef::Array(left), ValueRef::Array(right)) => {
            for (one, other) in left.iter().zip(right.iter()) {
                context.spend(1).then_some(())?;
                let found = order(one, other, context)?;
                if found.is_ne() {
                    return Some(found);
                }
            }
            Some(left.len().cmp(&right.len()))
        }
        (ValueRef::Object(left), ValueRef::Object(right)) => {
            // Both are sorted by name in any case.
            context.spend(left.len() as u64 + right.len() as u64).then_some(())?;
            let (one, other) = (members(left), members(right));
            for ((name, value), (other_name, other_value)) in one.iter().zip(&other) {
                let found = match name.as_bytes().cmp(other_name.as_bytes()) {
                    Ordering::Equal => order(*value, *other_value, context)?,
                    different => different,
                };
                if found.is_ne() {
                    return Some(found);
                }
            }
            Some(left.len().cmp(&right.len()))
        }
        _ => {
            pay_for_text(left, right, context)?;
            Some(total_order(Some(left), Some(right)))
        }
    }
}

fn members(object: ObjectRef<'_>) -> Vec<(&str, ValueRef<'_>)> {
    let mut members: Vec<_> = object.iter().collect();
    members.sort_by(|one, other| one.0.as_bytes().cmp(other.0.as_bytes()));
    members
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values() -> Vec<Value> {
        let long = "x".repeat(200);
        let texts = [
            "null",
            "true",
            "1",
            "1.0",
            "\"a\"",
            "[]",
            "[1]",
            "[1,2]",
            "[1,[2,{\"b\":3}]]",
            "[1,[2,{\"b\":4}]]",
            "{}",
            "{\"a\":1}",
            "{\"a\":1,\"b\":2}",
            "{\"b\":2,\"a\":1}",
            "{\"a\":1,\"c\":2}",
            "{\"a\":[1],\"b\":2}",
            &format!("\"{long}\""),
            &format!("\"{long}y\""),
            &format!("[\"{long}\"]"),
        ];
        texts.map(|text| document::parse_json(text.as_bytes()).expect("JSON")).to_vec()
    }

    #[test]
    fn paying_changes_no_outcome() {
        let context = Context::new(0, 1);
        for left in values() {
            for right in values() {
                let (left, right) = (left.view(), right.view());
                let pair = format!("{left:?} {right:?}");
                let expected = total_order(Some(left), Some(right));
                assert_eq!(order(left, right, &context), Some(expected), "{pair}");
                assert_eq!(equal(left, right, &context), Some(document::equal(left, right)), "{pair}");
                for operator in [Comparison::Equal, Comparison::NotEqual, Comparison::Less] {
                    let expected = compare(operator, left, right);
                    assert_eq!(relate(operator, left, right, &context), expected, "{pair}");
                }
            }
        }
        let mut list = values();
        list.sort_by(|one, other| total_order(Some(one.view()), Some(other.view())));
        for value in values() {
            assert_eq!(is_among(value.view(), &list, &context), Some(true), "{value:?}");
        }
        assert_eq!(is_among(Value::Array(vec![Value::Null]).view(), &list, &context), Some(false));
    }

    #[test]
    fn what_is_large_is_paid_for_and_what_is_small_is_not() {
        let numbers = Value::Array((0..1000).map(Value::Int).collect());
        let nested = Value::Array(vec![numbers.clone()]);
        let text = Value::from("x".repeat(64_000));
        for value in [&numbers, &nested, &text] {
            let poor = Context::new(0, 1).with_budget(900);
            assert_eq!(relate(Comparison::Equal, value.view(), value.view(), &poor), None);
            assert_eq!(poor.fault(), Some(crate::Fault::OutOfBudget));
            let poor = Context::new(0, 1).with_budget(900);
            assert_eq!(is_among(value.view(), std::slice::from_ref(value), &poor), None);
        }
        let poor = Context::new(0, 1).with_budget(900);
        assert_eq!(relate(Comparison::LessOrEqual, text.view(), text.view(), &poor), None);
        let none = Context::new(0, 1).with_budget(0);
        for value in [&numbers, &text] {
            assert_eq!(relate(Comparison::Equal, value.view(), ValueRef::Int(1), &none), Some(false));
        }
        assert_eq!(relate(Comparison::Equal, numbers.view(), nested.view(), &none), Some(false));
    }
}

//! Arrays as sets: an element counts once, order does not matter for what is equal. Results keep the order in which
//! elements first occur.
//!
//! Elements are compared by the bytes of their keys, which are equal exactly when the values are, so that the work
//! grows with the size of the arrays and not with its square.

use std::collections::BTreeSet;

use document::{ArrayRef, Value, ValueRef, encode_key};

use super::list::{List, weight};
use super::{Arg, Entry, bounds};
use crate::functions::context::Context;

/// The functions of this file.
pub(crate) const TABLE: &[Entry] = &[
    Entry { name: "SETDIFFERENCE", least: 2, most: 2, run: |a, context| select(a, false, context) },
    Entry { name: "SETEQUAL", least: 2, most: 2, run: equal_sets },
    Entry { name: "SETINTERSECT", least: 2, most: 2, run: |a, context| select(a, true, context) },
    Entry { name: "SETUNION", least: 2, most: 2, run: union },
];

/// Returns the key of a value, after charging it.
fn key(value: ValueRef<'_>, context: &Context) -> Option<Vec<u8>> {
    bounds::walk(weight(value), context)?;
    let mut key = Vec::new();
    encode_key(Some(value), &mut key);
    Some(key)
}

fn keys(items: ArrayRef<'_>, context: &Context) -> Option<BTreeSet<Vec<u8>>> {
    items.iter().map(|item| key(item, context)).collect()
}

fn both<'a>(arguments: &[Arg<'a>]) -> Option<(ArrayRef<'a>, ArrayRef<'a>)> {
    Some((arguments[0]?.as_array()?, arguments[1]?.as_array()?))
}

/// Returns the elements of the first that are, or are not, in the second.
fn select(arguments: &[Arg<'_>], wanted: bool, context: &Context) -> Option<Value> {
    let (first, second) = both(arguments)?;
    let second = keys(second, context)?;
    let mut seen = BTreeSet::new();
    let mut list = List::new(context);
    for item in first.iter() {
        let key = key(item, context)?;
        if second.contains(&key) == wanted && seen.insert(key) {
            list.push(item)?;
        }
    }
    Some(list.finish())
}

fn union(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    let (first, second) = both(arguments)?;
    let mut seen = BTreeSet::new();
    let mut list = List::new(context);
    for item in first.iter().chain(second.iter()) {
        if seen.insert(key(item, context)?) {
            list.push(item)?;
        }
    }
    Some(list.finish())
}

fn equal_sets(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    let (first, second) = both(arguments)?;
    Some(Value::Bool(keys(first, context)? == keys(second, context)?))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{call_in, check};
    use super::*;
    use crate::functions::context::Fault;

    #[test]
    fn sets() {
        check(&[
            ("SETDIFFERENCE", "[1, 2, 3, 4], [3, 4, 5]", "[1,2]"),
            ("SETDIFFERENCE", "[1, 1, 2], [3]", "[1,2]"),
            ("SETDIFFERENCE", "[1.0, 2], [1]", "[2]"),
            ("SETDIFFERENCE", r#"[1, "1", [1], null], ["1", [1.0]]"#, "[1,null]"),
            ("SETDIFFERENCE", "[], [1]", "[]"),
            ("SETDIFFERENCE", "[1], 1", "undefined"),
            ("SETDIFFERENCE", "undefined, [1]", "undefined"),
            ("SETINTERSECT", "[1, 2, 3, 4], [5, 4, 3]", "[3,4]"),
            ("SETINTERSECT", "[1, 2, 3, 4], [1, 1, 1, 1]", "[1]"),
            ("SETINTERSECT", "[1, 1], [1]", "[1]"),
            ("SETINTERSECT", r#"[{"a": 1, "b": 2}], [{"b": 2.0, "a": 1}]"#, r#"[{"a":1,"b":2}]"#),
            ("SETINTERSECT", r#"["abc"], ["ABC"]"#, "[]"),
            ("SETINTERSECT", "[1], null", "undefined"),
            ("SETUNION", "[1, 2, 3, 4], [1, 1, 1, 1]", "[1,2,3,4]"),
            ("SETUNION", "[2, 1.0], [1, 3]", "[2,1.0,3]"),
            ("SETUNION", r#"["a"], ["A"]"#, r#"["a","A"]"#),
            ("SETUNION", "[], []", "[]"),
            ("SETUNION", "[], undefined", "undefined"),
            ("SETEQUAL", "[1, 2, 3], [3, 2, 1]", "true"),
            ("SETEQUAL", "[1, 1, 2], [2, 1]", "true"),
            ("SETEQUAL", "[1], [1.0]", "true"),
            ("SETEQUAL", r#"[1], ["1"]"#, "false"),
            ("SETEQUAL", "[], []", "true"),
            ("SETEQUAL", "[1, 2], [1]", "false"),
            ("SETEQUAL", "[1], {}", "undefined"),
        ]);
    }

    #[test]
    fn large_sets_are_paid_for_and_not_quadratic() {
        let long: Vec<String> = (0..100_000).map(|n| n.to_string()).collect();
        let long = format!("[{}]", long.join(","));
        let arguments = format!("{long}, {long}");
        assert_eq!(call_in(&Context::new(0, 1), "SETDIFFERENCE", &arguments), Some(Value::Array(Vec::new())));
        let context = Context::new(0, 1).with_budget(1_000);
        assert_eq!(call_in(&context, "SETEQUAL", &arguments), None);
        assert_eq!(context.fault(), Some(Fault::OutOfBudget));
    }
}

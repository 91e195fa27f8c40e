//! Functions of arrays, and `CHOOSE` and `OBJECTTOARRAY`.
//!
//! Elements are equal as a query's `=` means it: `1` is `1.0`, objects in any order of members. An array never holds
//! undefined; where a sought value is undefined the answer is three-valued, as `AND` and `OR` would give it.

use std::cmp::Ordering;

use document::{ArrayRef, Value, ValueRef, equal, total_order};

use super::list::{List, weight};
use super::{Arg, Entry, bounds, number, text};
use crate::functions::context::Context;

/// The functions of this file.
pub(crate) const TABLE: &[Entry] = &[
    Entry { name: "ARRAY_AVG", least: 1, most: 1, run: average },
    Entry { name: "ARRAY_CONCAT", least: 2, most: usize::MAX, run: concat },
    Entry { name: "ARRAY_CONTAINS", least: 2, most: 3, run: contains },
    Entry { name: "ARRAY_CONTAINS_ALL", least: 2, most: usize::MAX, run: contains_all },
    Entry { name: "ARRAY_CONTAINS_ANY", least: 2, most: usize::MAX, run: contains_any },
    Entry { name: "ARRAY_LENGTH", least: 1, most: 1, run: length },
    Entry { name: "ARRAY_MAX", least: 1, most: 1, run: |a, context| extreme(a, Ordering::Greater, context) },
    Entry { name: "ARRAY_MEDIAN", least: 1, most: 1, run: median },
    Entry { name: "ARRAY_MIN", least: 1, most: 1, run: |a, context| extreme(a, Ordering::Less, context) },
    Entry { name: "ARRAY_SLICE", least: 2, most: 3, run: slice },
    Entry { name: "ARRAY_SUM", least: 1, most: 1, run: sum },
    Entry { name: "CHOOSE", least: 2, most: usize::MAX, run: choose },
    Entry { name: "OBJECTTOARRAY", least: 1, most: 3, run: object_to_array },
];

/// Returns the argument's items, after charging the walk over them.
pub(super) fn items<'a>(argument: Arg<'a>, context: &Context) -> Option<ArrayRef<'a>> {
    let items = argument?.as_array()?;
    bounds::walk(items.len().saturating_mul(size_of::<Value>()), context)?;
    Some(items)
}

/// Returns the items as numbers; undefined when one of them is none.
fn numbers(argument: Arg<'_>, context: &Context) -> Option<Vec<f64>> {
    items(argument, context)?.iter().map(ValueRef::as_f64).collect()
}

fn sum(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    number(numbers(arguments[0], context)?.iter().sum::<f64>() + 0.0)
}

fn average(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    let numbers = numbers(arguments[0], context)?;
    number(numbers.iter().sum::<f64>() / numbers.len() as f64)
}

/// Returns the median: the middle item, or the mean of the two in the middle.
fn median(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    let mut numbers = numbers(arguments[0], context)?;
    let count = numbers.len();
    if count == 0 {
        return None;
    }
    let (below, upper, _) = numbers.select_nth_unstable_by(count / 2, f64::total_cmp);
    if count % 2 == 1 {
        return number(*upper);
    }
    let lower = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum = lower + *upper;
    number(if sum.is_finite() { sum / 2.0 } else { lower / 2.0 + *upper / 2.0 })
}

/// Returns the last or the first of the items in the order of all values; an array or object among them has no place there.
fn extreme(arguments: &[Arg<'_>], wanted: Ordering, context: &Context) -> Option<Value> {
    let mut best: Option<ValueRef<'_>> = None;
    for item in items(arguments[0], context)?.iter() {
        if matches!(item, ValueRef::Array(_) | ValueRef::Object(_)) {
            return None;
        }
        if best.is_none() || total_order(Some(item), best) == wanted {
            best = Some(item);
        }
    }
    best.map(ValueRef::to_value)
}

fn length(arguments: &[Arg<'_>], _: &Context) -> Option<Value> {
    Some(Value::Int(arguments[0]?.as_array()?.len() as i64))
}

fn concat(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    // A wrong argument makes the whole undefined, so all are checked before building.
    let arrays: Vec<ArrayRef<'_>> =
        arguments.iter().map(|argument| (*argument)?.as_array()).collect::<Option<_>>()?;
    let mut list = List::new(context);
    for item in arrays.iter().flat_map(|array| array.iter()) {
        list.push(item)?;
    }
    Some(list.finish())
}

fn contains(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    let (items, sought) = (arguments[0]?.as_array()?, arguments[1]?);
    let partial = arguments.get(2).map_or(Some(false), |partial| (*partial)?.as_bool())?;
    if partial { includes_one(items, sought, context) } else { holds(items, sought, context) }
        .map(Value::Bool)
}

/// Returns whether an item is equal to the sought value; `None` if the budget is used up. The charge is by the size of the
/// sought value, which bounds each comparison.
fn holds(items: ArrayRef<'_>, sought: ValueRef<'_>, context: &Context) -> Option<bool> {
    let each = if matches!(sought, ValueRef::Array(_) | ValueRef::Object(_)) { weight(sought) } else { 1 };
    bounds::walk(items.len().saturating_mul(size_of::<Value>().max(each)), context)?;
    let matches = |item| match (item, sought) {
        // Comparing objects sorts their members; this skips objects that cannot be equal.
        (ValueRef::Object(item), ValueRef::Object(sought)) if item.len() != sought.len() => false,
        _ => equal(item, sought),
    };
    Some(items.iter().any(matches))
}

/// Returns whether an item includes the sought value.
fn includes_one(items: ArrayRef<'_>, sought: ValueRef<'_>, context: &Context) -> Option<bool> {
    if !matches!(sought, ValueRef::Object(_)) {
        return holds(items, sought, context);
    }
    for item in items.iter() {
        if includes(item, sought, context)? {
            return Some(true);
        }
    }
    Some(false)
}

/// Returns whether an object has all that the sought one has, in its members likewise; anything else must be equal.
fn includes(item: ValueRef<'_>, sought: ValueRef<'_>, context: &Context) -> Option<bool> {
    let (ValueRef::Object(item), ValueRef::Object(sought)) = (item, sought) else {
        bounds::walk(weight(sought), context)?;
        return Some(equal(item, sought));
    };
    // Each name is sought among all.
    bounds::walk(item.len().saturating_mul(sought.len()), context)?;
    for (name, sought) in sought.iter() {
        let Some(member) = item.get(name) else { return Some(false) };
        if !includes(member, sought, context)? {
            return Some(false);
        }
    }
    Some(true)
}

fn contains_all(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    contains_each(arguments, false, context)
}

fn contains_any(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    contains_each(arguments, true, context)
}

/// Evaluates a test over several sought values. One whose answer is `decisive` decides; otherwise an undefined one
/// makes the result undefined.
fn contains_each(arguments: &[Arg<'_>], decisive: bool, context: &Context) -> Option<Value> {
    let items = arguments[0]?.as_array()?;
    let mut unknown = false;
    for sought in &arguments[1..] {
        let Some(sought) = *sought else {
            unknown = true;
            continue;
        };
        if holds(items, sought, context)? == decisive {
            return Some(Value::Bool(decisive));
        }
    }
    (!unknown).then_some(Value::Bool(!decisive))
}

/// Returns at most `count` items from a start, which is counted from the end if negative.
fn slice(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    let (items, start) = (arguments[0]?.as_array()?, arguments[1]?.as_i64()?);
    let most = arguments.get(2).map_or(Some(i64::MAX), |most| (*most)?.as_i64())?;
    let start = if start < 0 { start.saturating_add(items.len() as i64).max(0) } else { start };
    let mut list = List::new(context);
    for item in items.iter().skip(start as usize).take(most.max(0) as usize) {
        list.push(item)?;
    }
    Some(list.finish())
}

/// Returns the argument at a position, the first being 1.
fn choose(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    let place = usize::try_from(arguments[0]?.as_i64()?).ok()?;
    let chosen = (*arguments[1..].get(place.checked_sub(1)?)?)?;
    bounds::walk(weight(chosen), context)?;
    Some(chosen.to_value())
}

/// Returns an object for each member, holding its name and its value.
fn object_to_array(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    let members = arguments[0]?.as_object()?;
    let named =
        |index: usize, default: &'static str| arguments.get(index).map_or(Some(default), |name| text(*name));
    let (name_of_name, name_of_value) = (named(1, "k")?, named(2, "v")?);
    let mut list = List::new(context);
    for (name, value) in members.iter() {
        list.push_pair((name_of_name, ValueRef::String(name)), (name_of_value, value))?;
    }
    Some(list.finish())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{call_in, check};
    use super::*;
    use crate::functions::context::Fault;

    #[test]
    fn figures_of_arrays() {
        check(&[
            ("ARRAY_SUM", "[1, 2, 3, 4]", "10"),
            ("ARRAY_SUM", "[1.5, -2.7]", "-1.2000000000000002"),
            ("ARRAY_SUM", "[]", "0"),
            ("ARRAY_SUM", r#"[1, "2"]"#, "undefined"),
            ("ARRAY_SUM", "[1e308, 1e308]", "undefined"),
            ("ARRAY_SUM", "undefined", "undefined"),
            ("ARRAY_AVG", "[1, 2, 3, 4]", "2.5"),
            ("ARRAY_AVG", "[5]", "5"),
            ("ARRAY_AVG", "[]", "undefined"),
            ("ARRAY_AVG", "[1, null]", "undefined"),
            ("ARRAY_AVG", "5", "undefined"),
            ("ARRAY_MEDIAN", "[4, 1, 3, 2]", "2.5"),
            ("ARRAY_MEDIAN", "[1.0, 2.0, 3.3, 4.7, 7.8]", "3.3"),
            ("ARRAY_MEDIAN", "[1, -2.7, 3, -4]", "-0.8500000000000001"),
            ("ARRAY_MEDIAN", "[7]", "7"),
            ("ARRAY_MEDIAN", "[1e308, 1.6e308]", "1.3e308"),
            ("ARRAY_MEDIAN", "[]", "undefined"),
            ("ARRAY_MEDIAN", r#"["abc"]"#, "undefined"),
            ("ARRAY_MAX", "[1, 4, 2.5]", "4"),
            ("ARRAY_MAX", r#"["abc", "ABC", "aBc"]"#, r#""abc""#),
            ("ARRAY_MAX", "[true, false]", "true"),
            ("ARRAY_MAX", "[null, null]", "null"),
            ("ARRAY_MAX", r#"[12, "abc", true, false, null]"#, r#""abc""#),
            ("ARRAY_MAX", "[]", "undefined"),
            ("ARRAY_MAX", "[1, []]", "undefined"),
            ("ARRAY_MIN", "[1, 4, 0.5]", "0.5"),
            ("ARRAY_MIN", r#"["abc", "ABC"]"#, r#""ABC""#),
            ("ARRAY_MIN", r#"[12, "abc", true, false, null]"#, "null"),
            ("ARRAY_MIN", "[{}]", "undefined"),
            ("ARRAY_MIN", "{}", "undefined"),
            ("ARRAY_LENGTH", "[70, 86, []]", "3"),
            ("ARRAY_LENGTH", "[]", "0"),
            ("ARRAY_LENGTH", r#""abc""#, "undefined"),
            ("ARRAY_LENGTH", "undefined", "undefined"),
        ]);
    }

    #[test]
    fn what_arrays_contain() {
        check(&[
            ("ARRAY_CONTAINS", r#"["coats", "jackets"], "coats""#, "true"),
            ("ARRAY_CONTAINS", r#"["coats", "jackets"], "hoodies""#, "false"),
            ("ARRAY_CONTAINS", "[1.0], 1", "true"),
            ("ARRAY_CONTAINS", "[[1, 2]], [1.0, 2]", "true"),
            ("ARRAY_CONTAINS", r#"[{"a": 1, "b": 2}], {"b": 2, "a": 1}"#, "true"),
            ("ARRAY_CONTAINS", r#"[{"a": 1, "b": 2}], {"a": 1}"#, "false"),
            ("ARRAY_CONTAINS", r#"[{"a": 1, "b": 2}], {"a": 1}, true"#, "true"),
            ("ARRAY_CONTAINS", r#"[{"a": 1, "b": 2}], {"a": 1}, false"#, "false"),
            ("ARRAY_CONTAINS", r#"[{"a": 1, "b": 2}], {"a": 2, "b": 2}, true"#, "false"),
            ("ARRAY_CONTAINS", r#"[{"a": {"b": 1, "c": 2}}], {"a": {"b": 1}}, true"#, "true"),
            ("ARRAY_CONTAINS", r#"[{"a": [1, 2]}], {"a": [1]}, true"#, "false"),
            ("ARRAY_CONTAINS", "[1, 2], 2, true", "true"),
            ("ARRAY_CONTAINS", "[null], null", "true"),
            ("ARRAY_CONTAINS", "[], 1", "false"),
            ("ARRAY_CONTAINS", "[1], 1, 1", "undefined"),
            ("ARRAY_CONTAINS", "[1], undefined", "undefined"),
            ("ARRAY_CONTAINS", r#""abc", "a""#, "undefined"),
            ("ARRAY_CONTAINS_ALL", r#"[1, true, "3", [1, 2, 3]], 1, true, "3", [1, 2, 3]"#, "true"),
            ("ARRAY_CONTAINS_ALL", "[1, 2, 3, 4], 2, 3, 4, 5", "false"),
            ("ARRAY_CONTAINS_ALL", "[1, 2, 3, 4], 1, undefined", "undefined"),
            ("ARRAY_CONTAINS_ALL", "[1, 2, 3, 4], 5, undefined", "false"),
            ("ARRAY_CONTAINS_ALL", "[], 1", "false"),
            ("ARRAY_CONTAINS_ALL", "1, 1", "undefined"),
            ("ARRAY_CONTAINS_ANY", r#"[1, true, "3"], 7, "3""#, "true"),
            ("ARRAY_CONTAINS_ANY", "[1, 2, 3, 4], 5, 6", "false"),
            ("ARRAY_CONTAINS_ANY", "[1, 2, 3, 4], undefined, 1", "true"),
            ("ARRAY_CONTAINS_ANY", "[1, 2, 3, 4], 5, undefined", "undefined"),
            ("ARRAY_CONTAINS_ANY", "[], 1", "false"),
            ("ARRAY_CONTAINS_ANY", "null, 1", "undefined"),
        ]);
    }

    #[test]
    fn arrays_of_arrays_and_objects() {
        check(&[
            ("ARRAY_CONCAT", r#"["a"], ["b", 1], []"#, r#"["a","b",1]"#),
            ("ARRAY_CONCAT", "[[1]], [[1]]", "[[1],[1]]"),
            ("ARRAY_CONCAT", "[1], 2", "undefined"),
            ("ARRAY_CONCAT", "[1], undefined", "undefined"),
            ("ARRAY_SLICE", "[70, 86, 92, 99], 0", "[70,86,92,99]"),
            ("ARRAY_SLICE", "[70, 86, 92, 99], 1", "[86,92,99]"),
            ("ARRAY_SLICE", "[70, 86, 92, 99], -2", "[92,99]"),
            ("ARRAY_SLICE", "[70, 86, 92, 99], -9", "[70,86,92,99]"),
            ("ARRAY_SLICE", "[70, 86, 92, 99], -2, 1", "[92]"),
            ("ARRAY_SLICE", "[70, 86, 92, 99], 1, 12", "[86,92,99]"),
            ("ARRAY_SLICE", "[70, 86], 5", "[]"),
            ("ARRAY_SLICE", "[70, 86], 0, -1", "[]"),
            ("ARRAY_SLICE", "[70, 86], -9223372036854775808, 9223372036854775807", "[70,86]"),
            ("ARRAY_SLICE", "[70, 86], 0.5", "undefined"),
            ("ARRAY_SLICE", r#"[70, 86], "0""#, "undefined"),
            ("ARRAY_SLICE", "[70, 86], 0, undefined", "undefined"),
            ("ARRAY_SLICE", "{}, 0", "undefined"),
            ("CHOOSE", r#"1, "abc", 1, true, [1]"#, r#""abc""#),
            ("CHOOSE", r#"4, "abc", 1, true, [1]"#, "[1]"),
            ("CHOOSE", r#"0, "abc", 1"#, "undefined"),
            ("CHOOSE", r#"5, "abc", 1"#, "undefined"),
            ("CHOOSE", r#"-1, "abc", 1"#, "undefined"),
            ("CHOOSE", r#"1.5, "abc", 1"#, "undefined"),
            ("CHOOSE", r#"2, "abc", undefined"#, "undefined"),
            ("CHOOSE", "undefined, 1", "undefined"),
            (
                "OBJECTTOARRAY",
                r#"{"a": "12345", "b": 67890}"#,
                r#"[{"k":"a","v":"12345"},{"k":"b","v":67890}]"#,
            ),
            ("OBJECTTOARRAY", r#"{"a": [1]}, "name""#, r#"[{"name":"a","v":[1]}]"#),
            ("OBJECTTOARRAY", r#"{"a": 1}, "name", "value""#, r#"[{"name":"a","value":1}]"#),
            ("OBJECTTOARRAY", "{}", "[]"),
            ("OBJECTTOARRAY", r#"{"a": 1}, 1"#, "undefined"),
            ("OBJECTTOARRAY", r#"{"a": 1}, undefined"#, "undefined"),
            ("OBJECTTOARRAY", "[1]", "undefined"),
        ]);
    }

    #[test]
    fn lists_that_grow_too_large_end_the_query() {
        let context = Context::new(0, 1);
        let long = format!("[{}0]", "0,".repeat(300_000));
        assert_eq!(call_in(&context, "ARRAY_CONCAT", &format!("{long}, {long}")), None);
        assert!(matches!(context.fault(), Some(Fault::OutOfMemory { .. })));
        let context = Context::new(0, 1);
        let members: Vec<String> = (0..2_000).map(|name| format!(r#""{name}":0"#)).collect();
        let arguments = format!(r#"{{{}}}, "{}""#, members.join(","), "k".repeat(10_000));
        assert_eq!(call_in(&context, "OBJECTTOARRAY", &arguments), None);
        assert!(matches!(context.fault(), Some(Fault::OutOfMemory { .. })));
        let context = Context::new(0, 1).with_budget(10);
        assert_eq!(call_in(&context, "ARRAY_CONTAINS", &format!("{long}, 1")), None);
        assert_eq!(context.fault(), Some(Fault::OutOfBudget));
    }
}

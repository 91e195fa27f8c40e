//! Order, equality and spelling of plain JSON values, written from the description of the language alone.
//!
//! `None` is undefined. Nothing here uses the crates `document` and `query`, so that their errors are not repeated
//! here.

use std::cmp::Ordering;

pub(super) use serde_json::Value as Json;

/// How many digits of numbers must agree in two answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Digits {
    /// All digits.
    All,
    /// Twelve: sums of doubles depend on the order of their parts.
    Twelve,
}

/// Whether the elements of lists must be in the same order in two answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lists {
    Ordered,
    /// They are collected from items, which are in any order.
    Collected,
}

/// How exactly two answers must agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spelling {
    pub(super) digits: Digits,
    pub(super) lists: Lists,
}

/// Returns the order of all values: undefined, null, false, true, numbers, strings, arrays, objects.
pub(super) fn order(one: Option<&Json>, other: Option<&Json>) -> Ordering {
    match (one, other) {
        (Some(Json::Number(one)), Some(Json::Number(other))) => numbers(one, other),
        (Some(Json::String(one)), Some(Json::String(other))) => one.as_bytes().cmp(other.as_bytes()),
        (Some(Json::Array(one)), Some(Json::Array(other))) => {
            let pairs = one.iter().zip(other).map(|(one, other)| order(Some(one), Some(other)));
            first_difference(pairs).then(one.len().cmp(&other.len()))
        }
        // The maps of `serde_json` are sorted by name.
        (Some(Json::Object(one)), Some(Json::Object(other))) => {
            let pairs = one.iter().zip(other).map(|((name, one), (other_name, other))| {
                name.as_bytes().cmp(other_name.as_bytes()).then_with(|| order(Some(one), Some(other)))
            });
            first_difference(pairs).then(one.len().cmp(&other.len()))
        }
        _ => rank(one).cmp(&rank(other)),
    }
}

fn first_difference(mut pairs: impl Iterator<Item = Ordering>) -> Ordering {
    pairs.find(|found| found.is_ne()).unwrap_or(Ordering::Equal)
}

fn rank(value: Option<&Json>) -> u8 {
    match value {
        None => 0,
        Some(Json::Null) => 1,
        Some(Json::Bool(false)) => 2,
        Some(Json::Bool(true)) => 3,
        Some(Json::Number(_)) => 4,
        Some(Json::String(_)) => 5,
        Some(Json::Array(_)) => 6,
        Some(Json::Object(_)) => 7,
    }
}

/// Returns whether two values are equal: 1 is 1.0, and the members of an object have no order.
pub(super) fn equal(one: &Json, other: &Json) -> bool {
    order(Some(one), Some(other)).is_eq()
}

/// `<` and its like: known only between two booleans, two numbers, two strings, or null and null.
pub(super) fn compare(one: &Json, other: &Json) -> Option<Ordering> {
    let comparable = matches!(
        (one, other),
        (Json::Null, Json::Null)
            | (Json::Bool(_), Json::Bool(_))
            | (Json::Number(_), Json::Number(_))
            | (Json::String(_), Json::String(_))
    );
    comparable.then(|| order(Some(one), Some(other)))
}

/// Returns the integer part of a number, rounded down, and the rest.
fn parts(number: &serde_json::Number) -> (i128, f64) {
    if let Some(whole) = number.as_i64() {
        return (i128::from(whole), 0.0);
    }
    if let Some(whole) = number.as_u64() {
        return (i128::from(whole), 0.0);
    }
    let number = number.as_f64().expect("a number that is no integer is a double");
    (number.floor() as i128, number - number.floor())
}

fn numbers(one: &serde_json::Number, other: &serde_json::Number) -> Ordering {
    let ((one, one_beyond), (other, other_beyond)) = (parts(one), parts(other));
    one.cmp(&other).then(one_beyond.total_cmp(&other_beyond))
}

/// Returns a number from a computation in doubles; undefined if it is not finite.
pub(super) fn double(number: f64) -> Option<Json> {
    serde_json::Number::from_f64(number).map(Json::Number)
}

/// Returns a spelling that equal values share.
pub(super) fn spelled(value: &Json, spelling: Spelling) -> String {
    same_spelling(value, spelling).to_string()
}

fn same_spelling(value: &Json, spelling: Spelling) -> Json {
    match value {
        Json::Number(number) => same_number(value, number, spelling.digits),
        Json::Array(items) => {
            let mut items: Vec<Json> = items.iter().map(|item| same_spelling(item, spelling)).collect();
            if spelling.lists == Lists::Collected {
                items.sort_by_cached_key(Json::to_string);
            }
            Json::Array(items)
        }
        Json::Object(members) => {
            members.iter().map(|(name, member)| (name.clone(), same_spelling(member, spelling))).collect()
        }
        other => other.clone(),
    }
}

fn same_number(value: &Json, number: &serde_json::Number, digits: Digits) -> Json {
    let rounded = || Json::String(format!("{:.11e}", number.as_f64().unwrap_or_default()));
    match (parts(number), digits) {
        ((whole, _), Digits::Twelve) if whole.abs() >= 1_000_000_000_000 => rounded(),
        ((whole, 0.0), _) => i64::try_from(whole).map_or_else(|_| value.clone(), Json::from),
        (_, Digits::All) => value.clone(),
        (_, Digits::Twelve) => rounded(),
    }
}

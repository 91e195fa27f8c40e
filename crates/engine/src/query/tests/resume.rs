//! The filter by which a client resumes an ordered query: what sorts behind the keys of a row, by the order of types.

use super::json::Json;

/// Whether rows with equal keys are among those to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Equal {
    With,
    Without,
}

/// A test for each type, in the order of types.
const TYPES: [&str; 7] =
    ["NOT IS_DEFINED", "IS_NULL", "IS_BOOL", "IS_NUMBER", "IS_STRING", "IS_ARRAY", "IS_OBJECT"];

/// Returns the sort keys of a row; `None` is undefined.
pub(super) fn values(row: &Json) -> Vec<Option<Json>> {
    row["orderByItems"].as_array().expect("a list").iter().map(|item| item.get("item").cloned()).collect()
}

/// Returns a condition for what sorts behind these values, or `None` where one of them is an array or object, which a
/// query text cannot compare.
pub(super) fn filter(
    keys: &[String],
    values: &[Option<Json>],
    descends: &[bool],
    equal: Equal,
) -> Option<String> {
    let types: Vec<usize> = values.iter().map(|value| place(value.as_ref())).collect::<Option<_>>()?;
    let same: Vec<String> =
        keys.iter().zip(values).map(|(key, value)| is_equal(key, value.as_ref())).collect();
    let mut parts = Vec::new();
    for (index, (key, value)) in keys.iter().zip(values).enumerate() {
        let behind = behind(key, value.as_ref(), types[index], descends[index]);
        let conjunction: Vec<&str> =
            same[..index].iter().map(String::as_str).chain([behind.as_str()]).collect();
        parts.push(format!("({})", conjunction.join(" AND ")));
    }
    if equal == Equal::With {
        parts.push(format!("({})", same.join(" AND ")));
    }
    Some(format!("({})", parts.join(" OR ")))
}

/// Returns the position of a value's type among the types.
fn place(value: Option<&Json>) -> Option<usize> {
    match value {
        None => Some(0),
        Some(Json::Null) => Some(1),
        Some(Json::Bool(_)) => Some(2),
        Some(Json::Number(_)) => Some(3),
        Some(Json::String(_)) => Some(4),
        Some(Json::Array(_) | Json::Object(_)) => None,
    }
}

fn is_equal(key: &str, value: Option<&Json>) -> String {
    match value {
        None => format!("NOT IS_DEFINED({key})"),
        Some(value) => format!("{key} = {value}"),
    }
}

/// Returns a condition for what sorts behind a value: larger or smaller ones of its type, and the types behind it.
fn behind(key: &str, value: Option<&Json>, place: usize, descends: bool) -> String {
    let types = if descends { &TYPES[..place] } else { &TYPES[place + 1..] };
    let mut parts: Vec<String> = types.iter().map(|check| format!("{check}({key})")).collect();
    if let Some(value @ (Json::Bool(_) | Json::Number(_) | Json::String(_))) = value {
        parts.push(format!("{key} {} {value}", if descends { "<" } else { ">" }));
    }
    if parts.is_empty() { "false".to_owned() } else { format!("({})", parts.join(" OR ")) }
}

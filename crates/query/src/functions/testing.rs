//! Tables of calls for the tests of functions: a name, arguments as JSON, the result as JSON.

use document::{Value, parse_json};

use super::{TABLES, find};
use crate::functions::context::Context;
use crate::surface::Surface;

/// The request's time in these tests: 2024-10-14T14:20:30.666Z.
pub(crate) const NOW_MILLIS: u64 = 1_728_915_630_666;

/// Checks rows of function, arguments and result. Arguments are separated by commas and may be `undefined`, as may
/// the result; numbers must be written the way they print.
pub(crate) fn check(rows: &[(&str, &str, &str)]) {
    let wrong: Vec<String> = rows
        .iter()
        .filter_map(|(name, arguments, expected)| {
            let found = call(name, arguments).map_or("undefined".to_owned(), |value| value.to_json());
            let expected = value(expected).map_or("undefined".to_owned(), |value| value.to_json());
            (found != expected).then(|| format!("{name}({arguments}) is {found}, not {expected}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Calls a function as a query would.
pub(crate) fn call(name: &str, arguments: &str) -> Option<Value> {
    call_in(&Context::new(NOW_MILLIS, 7), name, arguments)
}

/// Calls a function in a given context.
pub(crate) fn call_in(context: &Context, name: &str, arguments: &str) -> Option<Value> {
    call_on(Surface::Globe, context, name, arguments)
}

/// Calls a function with coordinates on that surface.
pub(crate) fn call_on(surface: Surface, context: &Context, name: &str, arguments: &str) -> Option<Value> {
    let entry = find(name, surface).unwrap_or_else(|| panic!("there is no function {name}"));
    let arguments: Vec<Option<Value>> = split(arguments).into_iter().map(value).collect();
    assert!((entry.least..=entry.most).contains(&arguments.len()), "{name} with {arguments:?}");
    let arguments: Vec<_> = arguments.iter().map(|argument| argument.as_ref().map(Value::view)).collect();
    (entry.run)(&arguments, context)
}

fn value(text: &str) -> Option<Value> {
    let parsed = || parse_json(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"));
    (text != "undefined").then(parsed)
}

/// Returns the pieces between the commas that are in no string and no brackets.
fn split(text: &str) -> Vec<&str> {
    let (mut pieces, mut start, mut depth) = (Vec::new(), 0, 0);
    let (mut quoted, mut escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth -= 1,
            b',' if depth == 0 => {
                pieces.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    if !text.trim().is_empty() {
        pieces.push(text[start..].trim());
    }
    pieces
}

#[test]
fn names_are_in_capitals_and_occur_once() {
    let mut names: Vec<&str> = TABLES.iter().flat_map(|table| table.iter()).map(|entry| entry.name).collect();
    assert!(names.iter().all(|name| !name.bytes().any(|byte| byte.is_ascii_lowercase())));
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
}

#[test]
fn no_function_panics_whatever_it_gets() {
    const ODD: &[&str] = &[
        "undefined",
        "null",
        "true",
        "0",
        "-1",
        "2.5",
        "9223372036854775807",
        "-9223372036854775808",
        "-1.7976931348623157e308",
        r#""""#,
        r#""\u0000é\ud83d\ude00 (.*)+ %_[""#,
        r#""2024-02-29T23:59:59.9999999Z""#,
        r#""yyyy""#,
        "[]",
        r#"[1, "a", null, [0], {"a": 1}]"#,
        r#"{"a": {"b": [1]}, "term": "red", "distance": 2}"#,
        r#"{"type": "Polygon", "coordinates": [[[0, 0], [90, 0], [0, 90], [0, 0]], [[1, 1], [1, 1], [1, 1], [1, 1]]]}"#,
        r#"{"type": "MultiPolygon", "coordinates": [[[[0, 0], [10, 10], [10, 0], [0, 10], [0, 0]]]]}"#,
        r#"{"type": "LineString", "coordinates": [[0, 90], [0, -90]]}"#,
    ];
    let odd: Vec<Option<Value>> = ODD.iter().map(|text| value(text)).collect();
    for entry in TABLES.iter().flat_map(|table| table.iter()) {
        for count in entry.least..=entry.most.min(entry.least + 2) {
            // Every pair as the first two arguments.
            for pair in 0..odd.len() * odd.len() {
                let pick = |place: usize| match place {
                    0 => pair % odd.len(),
                    1 => pair / odd.len(),
                    _ => (pair * 7 + place) % odd.len(),
                };
                let arguments: Vec<_> =
                    (0..count).map(|place| odd[pick(place)].as_ref().map(Value::view)).collect();
                let _ = (entry.run)(&arguments, &Context::new(NOW_MILLIS, 7));
            }
        }
    }
}

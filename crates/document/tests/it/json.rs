//! JSON text: what is accepted, how exact it is, what refusals say.

use document::{Document, Error, Value, equal, limits, parse_json, write_json};
use proptest::prelude::*;

use crate::strategies::value;

proptest! {
    #[test]
    fn a_value_survives_text_bit_by_bit(value in value()) {
        let text = value.to_json();
        let read = Document::from_json(text.as_bytes()).unwrap();
        // Stored bytes tell 1 from 1.0 and 0.0 from -0.0.
        prop_assert_eq!(read.clone(), Document::from_value(&value).unwrap());
        prop_assert_eq!(read.to_json(), text);
    }

    #[test]
    fn what_we_write_other_tools_read_alike(value in value()) {
        let theirs: serde_json::Value = serde_json::from_str(&value.to_json()).unwrap();
        let back = parse_json(theirs.to_string().as_bytes()).unwrap();
        // They sort the members, so the texts may differ; the values may not.
        prop_assert!(equal(back.view(), value.view()), "{} {}", back.to_json(), value.to_json());
    }
}

#[test]
fn text_round_trips_as_it_was_written() {
    for text in [
        "null",
        "true",
        "0",
        "1",
        "1.0",
        "-1",
        "-0.0",
        "1e+300",
        "1.5e-7",
        "5e-324",
        "1.7976931348623157e+308",
        "9223372036854775807",
        "-9223372036854775808",
        "9007199254740993",
        "0.1",
        "\"\"",
        r#""a\"b\\c\nd\u0000e\u001f/é🚀""#,
        "[]",
        "{}",
        r#"{"b":1,"a":[1,2.5,{"x":null}],"":""}"#,
    ] {
        assert_eq!(parse_json(text.as_bytes()).unwrap().to_json(), text);
        let mut out = b"kept".to_vec();
        write_json(Document::from_json(text.as_bytes()).unwrap().root(), &mut out);
        assert_eq!(out, [b"kept", text.as_bytes()].concat());
    }
}

#[test]
fn numbers_are_integers_only_if_written_so_and_fitting() {
    for (text, value) in [
        ("1", Value::Int(1)),
        ("1.0", Value::Double(1.0)),
        ("1e2", Value::Double(100.0)),
        ("9223372036854775807", Value::Int(i64::MAX)),
        ("9223372036854775808", Value::Double(9_223_372_036_854_775_808.0)),
        ("18446744073709551615", Value::Double(18_446_744_073_709_551_615.0)),
        ("-9223372036854775809", Value::Double(-9_223_372_036_854_775_808.0)),
        ("123456789012345678901234567890", Value::Double(1.234_567_890_123_456_8e29)),
        ("1e-400", Value::Double(0.0)),
    ] {
        assert_eq!(parse_json(text.as_bytes()).unwrap(), value, "{text}");
    }
    let zero = parse_json(b"-0").unwrap();
    assert!(zero.as_f64().is_some_and(f64::is_sign_negative), "{zero:?}");
}

#[test]
fn escapes_and_white_space_are_read() {
    let text = b" { \"a\\u0062\" : \"\\ud83d\\ude80\\/\\t\" ,\r\n\"c\":[ ] } ";
    assert_eq!(parse_json(text).unwrap().to_json(), "{\"ab\":\"🚀/\\t\",\"c\":[]}");
}

#[test]
fn refusals_say_where_and_what() {
    for (text, line, column, message) in [
        (&b""[..], 1, 0, "EOF"),
        (b"{\"a\":1,}", 1, 8, "trailing comma"),
        (b"{\n \"a\": tru }", 2, 10, "expected ident"),
        (b"[1] x", 1, 5, "trailing characters"),
        (b"1e400", 1, 5, "number out of range"),
        (b"-1e400", 1, 6, "number out of range"),
        (b"01", 1, 2, "invalid number"),
        (b"NaN", 1, 1, "expected value"),
        (b"\"a\nb\"", 2, 0, "control character"),
        (br#""\ud800""#, 1, 8, "hex escape"),
        (br#""\ud83d\u0041""#, 1, 13, "surrogate"),
        (b"\"\xff\"", 1, 2, "unicode"),
        (b"\xef\xbb\xbf{}", 1, 1, "expected value"),
        (br#"{"a":1,"b":2,"a":3}"#, 1, 16, "\"a\" occurs more than once"),
        (br#"{"x":{"a":1,"\u0061":3}}"#, 1, 20, "\"a\" occurs more than once"),
    ] {
        let name = String::from_utf8_lossy(text);
        match parse_json(text).unwrap_err() {
            Error::Json { line: l, column: c, message: m } => {
                assert!(m.contains(message), "{name}: {m}");
                assert_eq!((l, c), (line, column), "{name}: {m}");
            }
            other => panic!("{name}: {other}"),
        }
    }
}

#[test]
fn repeated_names_are_found_in_wide_objects_too() {
    let member = |i: usize| format!("\"name{i}\":{i}");
    let mut members: Vec<String> = (0..500).map(member).collect();
    assert!(parse_json(format!("{{{}}}", members.join(",")).as_bytes()).is_ok());
    members.push(member(250));
    let error = parse_json(format!("{{{}}}", members.join(",")).as_bytes()).unwrap_err();
    assert!(error.to_string().contains("\"name250\" occurs more than once"), "{error}");
}

#[test]
fn the_same_name_in_different_objects_is_fine() {
    let text = r#"{"a":{"a":{"a":1},"b":2},"b":[{"a":1},{"a":2}]}"#;
    assert_eq!(parse_json(text.as_bytes()).unwrap().to_json(), text);
}

#[test]
fn nesting_ends_at_the_limit() {
    let arrays = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let objects = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
    for make in [&arrays as &dyn Fn(usize) -> String, &objects] {
        let deepest = make(limits::NESTING_DEPTH);
        assert_eq!(limits::NESTING_DEPTH, 128);
        assert_eq!(parse_json(deepest.as_bytes()).unwrap().to_json(), deepest);
        for depth in [129, 10_000, 200_000] {
            let error = parse_json(make(depth).as_bytes()).unwrap_err().to_string();
            assert!(error.contains("nested more than 128 levels"), "{depth}: {error}");
        }
    }
}

//! Type checks. They are never undefined: a missing value is of no type.

use document::{Value, ValueRef};

use super::{Arg, Entry, Native, datetime};

/// The functions of this file.
pub(crate) const TABLE: &[Entry] = &[
    one("IS_ARRAY", |it, _| is(it, |value| matches!(value, ValueRef::Array(_)))),
    one("IS_BOOL", |it, _| is(it, |value| matches!(value, ValueRef::Bool(_)))),
    // Not documented; the Java client writes it to resume from a token of an ORDER BY.
    one("IS_BOOLEAN", |it, _| is(it, |value| matches!(value, ValueRef::Bool(_)))),
    one("IS_DATETIME", |it, _| is(it, |value| value.as_str().and_then(datetime::parse).is_some())),
    one("IS_DEFINED", |it, _| is(it, |_| true)),
    one("IS_FINITE_NUMBER", |it, _| is(it, |value| value.as_f64().is_some_and(f64::is_finite))),
    // A number of 64 bits with sign, however it was written: `5.0` is one.
    one("IS_INTEGER", |it, _| is(it, |value| value.as_i64().is_some())),
    one("IS_NULL", |it, _| is(it, |value| matches!(value, ValueRef::Null))),
    one("IS_NUMBER", |it, _| is(it, |value| matches!(value, ValueRef::Int(_) | ValueRef::Double(_)))),
    one("IS_OBJECT", |it, _| is(it, |value| matches!(value, ValueRef::Object(_)))),
    one("IS_PRIMITIVE", |it, _| is(it, |value| !matches!(value, ValueRef::Array(_) | ValueRef::Object(_)))),
    one("IS_STRING", |it, _| is(it, |value| matches!(value, ValueRef::String(_)))),
];

/// Returns a function of one argument.
const fn one(name: &'static str, run: Native) -> Entry {
    Entry { name, least: 1, most: 1, run }
}

/// Returns whether the only argument is defined and passes the test.
#[expect(clippy::unnecessary_wraps, reason = "the form of every function")]
fn is(arguments: &[Arg<'_>], test: fn(ValueRef<'_>) -> bool) -> Option<Value> {
    Some(Value::Bool(arguments[0].is_some_and(test)))
}

#[cfg(test)]
mod tests {
    use crate::functions::testing::{call, check};

    #[test]
    fn every_value_is_of_exactly_the_kinds_it_should_be() {
        const KINDS: [&str; 12] = [
            "IS_ARRAY",
            "IS_BOOL",
            "IS_BOOLEAN",
            "IS_DATETIME",
            "IS_DEFINED",
            "IS_FINITE_NUMBER",
            "IS_INTEGER",
            "IS_NULL",
            "IS_NUMBER",
            "IS_OBJECT",
            "IS_PRIMITIVE",
            "IS_STRING",
        ];
        let values: [(&str, &[&str]); 10] = [
            ("undefined", &[]),
            ("null", &["IS_DEFINED", "IS_NULL", "IS_PRIMITIVE"]),
            ("false", &["IS_BOOL", "IS_BOOLEAN", "IS_DEFINED", "IS_PRIMITIVE"]),
            ("1", &["IS_DEFINED", "IS_FINITE_NUMBER", "IS_INTEGER", "IS_NUMBER", "IS_PRIMITIVE"]),
            ("1.5", &["IS_DEFINED", "IS_FINITE_NUMBER", "IS_NUMBER", "IS_PRIMITIVE"]),
            (r#""""#, &["IS_DEFINED", "IS_PRIMITIVE", "IS_STRING"]),
            (r#""2026-01-02T03:04:05Z""#, &["IS_DATETIME", "IS_DEFINED", "IS_PRIMITIVE", "IS_STRING"]),
            ("[]", &["IS_ARRAY", "IS_DEFINED"]),
            ("[null]", &["IS_ARRAY", "IS_DEFINED"]),
            ("{}", &["IS_DEFINED", "IS_OBJECT"]),
        ];
        for (value, kinds) in values {
            for kind in KINDS {
                let found = call(kind, value).and_then(|found| found.as_bool());
                assert_eq!(found, Some(kinds.contains(&kind)), "{kind}({value})");
            }
        }
    }

    #[test]
    fn integers_are_those_of_64_bits() {
        check(&[
            ("IS_INTEGER", "3454.123", "false"),
            ("IS_INTEGER", "5523432", "true"),
            ("IS_INTEGER", "5.0", "true"),
            ("IS_INTEGER", "-9223372036854775808", "true"),
            ("IS_INTEGER", "9223372036854775807", "true"),
            ("IS_INTEGER", "18446744073709551615", "false"),
            ("IS_INTEGER", r#""5""#, "false"),
            ("IS_FINITE_NUMBER", "1.7e308", "true"),
            ("IS_FINITE_NUMBER", r#""1""#, "false"),
        ]);
    }
}

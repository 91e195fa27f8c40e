//! What kind of value something is. These functions are never undefined: what is missing is of no kind.

use document::{Value, ValueRef};

use super::{Arg, Entry};
use crate::context::Context;

/// The functions of this file.
pub(crate) const TABLE: &[Entry] = &[
    Entry { name: "IS_ARRAY", least: 1, most: 1, run: is_array },
    Entry { name: "IS_BOOL", least: 1, most: 1, run: is_bool },
    Entry { name: "IS_DEFINED", least: 1, most: 1, run: is_defined },
    Entry { name: "IS_FINITE_NUMBER", least: 1, most: 1, run: is_finite_number },
    Entry { name: "IS_INTEGER", least: 1, most: 1, run: is_integer },
    Entry { name: "IS_NULL", least: 1, most: 1, run: is_null },
    Entry { name: "IS_NUMBER", least: 1, most: 1, run: is_number },
    Entry { name: "IS_OBJECT", least: 1, most: 1, run: is_object },
    Entry { name: "IS_PRIMITIVE", least: 1, most: 1, run: is_primitive },
    Entry { name: "IS_STRING", least: 1, most: 1, run: is_string },
];

/// Whether the only argument is there and is as the test says.
fn is(arguments: &[Arg<'_>], test: impl FnOnce(ValueRef<'_>) -> bool) -> Option<Value> {
    Some(Value::Bool(arguments[0].is_some_and(test)))
}

fn is_array(arguments: &[Arg<'_>], _: &Context) -> Option<Value> {
    is(arguments, |value| matches!(value, ValueRef::Array(_)))
}

fn is_bool(arguments: &[Arg<'_>], _: &Context) -> Option<Value> {
    is(arguments, |value| matches!(value, ValueRef::Bool(_)))
}

fn is_defined(arguments: &[Arg<'_>], _: &Context) -> Option<Value> {
    is(arguments, |_| true)
}

fn is_finite_number(arguments: &[Arg<'_>], _: &Context) -> Option<Value> {
    is(arguments, |value| value.as_f64().is_some_and(f64::is_finite))
}

/// Whether the number is one of 64 bits with sign, however it was written: `5.0` is.
fn is_integer(arguments: &[Arg<'_>], _: &Context) -> Option<Value> {
    is(arguments, |value| value.as_i64().is_some())
}

fn is_null(arguments: &[Arg<'_>], _: &Context) -> Option<Value> {
    is(arguments, |value| matches!(value, ValueRef::Null))
}

fn is_number(arguments: &[Arg<'_>], _: &Context) -> Option<Value> {
    is(arguments, |value| matches!(value, ValueRef::Int(_) | ValueRef::Double(_)))
}

fn is_object(arguments: &[Arg<'_>], _: &Context) -> Option<Value> {
    is(arguments, |value| matches!(value, ValueRef::Object(_)))
}

fn is_primitive(arguments: &[Arg<'_>], _: &Context) -> Option<Value> {
    is(arguments, |value| !matches!(value, ValueRef::Array(_) | ValueRef::Object(_)))
}

fn is_string(arguments: &[Arg<'_>], _: &Context) -> Option<Value> {
    is(arguments, |value| matches!(value, ValueRef::String(_)))
}

#[cfg(test)]
mod tests {
    use crate::functions::testing::{call, check};

    #[test]
    fn every_value_is_of_exactly_the_kinds_it_should_be() {
        const KINDS: [&str; 10] = [
            "IS_ARRAY",
            "IS_BOOL",
            "IS_DEFINED",
            "IS_FINITE_NUMBER",
            "IS_INTEGER",
            "IS_NULL",
            "IS_NUMBER",
            "IS_OBJECT",
            "IS_PRIMITIVE",
            "IS_STRING",
        ];
        let values: [(&str, &[&str]); 9] = [
            ("undefined", &[]),
            ("null", &["IS_DEFINED", "IS_NULL", "IS_PRIMITIVE"]),
            ("false", &["IS_BOOL", "IS_DEFINED", "IS_PRIMITIVE"]),
            ("1", &["IS_DEFINED", "IS_FINITE_NUMBER", "IS_INTEGER", "IS_NUMBER", "IS_PRIMITIVE"]),
            ("1.5", &["IS_DEFINED", "IS_FINITE_NUMBER", "IS_NUMBER", "IS_PRIMITIVE"]),
            (r#""""#, &["IS_DEFINED", "IS_PRIMITIVE", "IS_STRING"]),
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

//! Functions between texts and other values. The text form is JSON, read strictly, with white space around it; a text
//! that does not parse as the wanted type is undefined.

use document::{Value, ValueRef, parse_json, write_json};

use super::{Arg, Entry, bounds, number, text};
use crate::functions::context::Context;

/// The functions of this file.
pub(crate) const TABLE: &[Entry] = &[
    Entry { name: "STRINGTOARRAY", least: 1, most: 1, run: to_array },
    Entry { name: "STRINGTOBOOLEAN", least: 1, most: 1, run: to_boolean },
    Entry { name: "STRINGTONULL", least: 1, most: 1, run: to_null },
    Entry { name: "STRINGTONUMBER", least: 1, most: 1, run: to_number },
    Entry { name: "STRINGTOOBJECT", least: 1, most: 1, run: to_object },
    Entry { name: "TOSTRING", least: 1, most: 1, run: to_text },
];

/// Returns the value that the only argument's text stands for.
fn read(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    let text = text(arguments[0])?;
    bounds::make(text.len(), context)?;
    parse_json(text.as_bytes()).ok()
}

fn to_array(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    read(arguments, context).filter(|value| value.as_array().is_some())
}

fn to_object(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    read(arguments, context).filter(|value| value.as_object().is_some())
}

fn to_boolean(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    read(arguments, context).filter(|value| value.as_bool().is_some())
}

fn to_null(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    read(arguments, context).filter(Value::is_null)
}

/// Converts a text to a number. Whole numbers of 64 bits stay exact; `1.000` is `1`.
fn to_number(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    match read(arguments, context)? {
        Value::Double(double) => number(double),
        value => value.as_f64().map(|_| value),
    }
}

/// Converts a value to text: a text is unchanged, any other value becomes JSON.
fn to_text(arguments: &[Arg<'_>], context: &Context) -> Option<Value> {
    if let Some(text) = text(arguments[0]) {
        bounds::walk(text.len(), context)?;
        return Some(text.into());
    }
    let mut out = Vec::new();
    write(arguments[0]?, &mut out, context)?;
    bounds::walk(out.len(), context)?;
    String::from_utf8(out).ok().map(Value::String)
}

/// Writes JSON like [`write_json`], but numbers print as computed ones do, and it stops if the text gets too long.
fn write(value: ValueRef<'_>, out: &mut Vec<u8>, context: &Context) -> Option<()> {
    match value {
        ValueRef::Double(double) => write_json(number(double)?.view(), out),
        ValueRef::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                out.extend_from_slice(if index > 0 { b"," } else { b"" });
                write(item, out, context)?;
            }
            out.push(b']');
        }
        ValueRef::Object(members) => {
            out.push(b'{');
            for (index, (name, member)) in members.iter().enumerate() {
                out.extend_from_slice(if index > 0 { b"," } else { b"" });
                write_json(ValueRef::String(name), out);
                out.push(b':');
                write(member, out, context)?;
            }
            out.push(b'}');
        }
        scalar => write_json(scalar, out),
    }
    bounds::limit_text(out.len(), context)
}

#[cfg(test)]
mod tests {
    use crate::functions::context::{Context, Fault};
    use crate::functions::testing::{call_in, check};

    #[test]
    fn a_text_reads_as_strict_json_of_the_wanted_type() {
        check(&[
            ("STRINGTONUMBER", r#""100""#, "100"),
            ("STRINGTONUMBER", r#""3.14""#, "3.14"),
            ("STRINGTONUMBER", r#""1.000000""#, "1"),
            ("STRINGTONUMBER", r#""-0""#, "0"),
            ("STRINGTONUMBER", r#""   60   ""#, "60"),
            ("STRINGTONUMBER", r#""-1.79769e+308""#, "-1.79769e308"),
            ("STRINGTONUMBER", r#""9223372036854775807""#, "9223372036854775807"),
            ("STRINGTONUMBER", r#""1e999""#, "undefined"),
            ("STRINGTONUMBER", r#""0xF""#, "undefined"),
            ("STRINGTONUMBER", r#""+1""#, "undefined"),
            ("STRINGTONUMBER", r#""01""#, "undefined"),
            ("STRINGTONUMBER", r#""99   54""#, "undefined"),
            ("STRINGTONUMBER", r#""NaN""#, "undefined"),
            ("STRINGTONUMBER", r#""""#, "undefined"),
            ("STRINGTONUMBER", r#""true""#, "undefined"),
            ("STRINGTONUMBER", "1", "undefined"),
            ("STRINGTONUMBER", "undefined", "undefined"),
            ("STRINGTOBOOLEAN", r#""true""#, "true"),
            ("STRINGTOBOOLEAN", r#""  false\n""#, "false"),
            ("STRINGTOBOOLEAN", r#""True""#, "undefined"),
            ("STRINGTOBOOLEAN", r#""tr ue""#, "undefined"),
            ("STRINGTOBOOLEAN", r#""1""#, "undefined"),
            ("STRINGTOBOOLEAN", "true", "undefined"),
            ("STRINGTONULL", r#""null""#, "null"),
            ("STRINGTONULL", r#""  null  ""#, "null"),
            ("STRINGTONULL", r#""NULL""#, "undefined"),
            ("STRINGTONULL", "null", "undefined"),
            ("STRINGTONULL", "undefined", "undefined"),
            ("STRINGTOARRAY", r#""[]""#, "[]"),
            ("STRINGTOARRAY", r#"" [1, \"b\", [null], {\"a\": false}] ""#, r#"[1,"b",[null],{"a":false}]"#),
            ("STRINGTOARRAY", r#""['a']""#, "undefined"),
            ("STRINGTOARRAY", r#""[1,]""#, "undefined"),
            ("STRINGTOARRAY", r#""[""#, "undefined"),
            ("STRINGTOARRAY", r#""{}""#, "undefined"),
            ("STRINGTOARRAY", "[]", "undefined"),
            ("STRINGTOOBJECT", r#""{}""#, "{}"),
            ("STRINGTOOBJECT", r#""{\"b\": [1, {\"a\": 2}], \"a\": null}""#, r#"{"b":[1,{"a":2}],"a":null}"#),
            ("STRINGTOOBJECT", r#""{a: 1}""#, "undefined"),
            ("STRINGTOOBJECT", r#""{'a': 1}""#, "undefined"),
            ("STRINGTOOBJECT", r#""}""#, "undefined"),
            ("STRINGTOOBJECT", r#""[]""#, "undefined"),
            ("STRINGTOOBJECT", "{}", "undefined"),
        ]);
    }

    #[test]
    fn every_value_has_a_text() {
        check(&[
            ("TOSTRING", "125", r#""125""#),
            ("TOSTRING", "-0.1234", r#""-0.1234""#),
            ("TOSTRING", "1.0000", r#""1""#),
            ("TOSTRING", "9223372036854775807", r#""9223372036854775807""#),
            ("TOSTRING", "false", r#""false""#),
            ("TOSTRING", "null", r#""null""#),
            ("TOSTRING", r#""Hello \"World\"""#, r#""Hello \"World\"""#),
            ("TOSTRING", r#""""#, r#""""#),
            ("TOSTRING", "[1, 2.0, [], {}]", r#""[1,2,[],{}]""#),
            ("TOSTRING", r#"{"b": 1.0, "a": ["x", null]}"#, r#""{\"b\":1,\"a\":[\"x\",null]}""#),
            ("TOSTRING", r#"["a\"b\n"]"#, r#""[\"a\\\"b\\n\"]""#),
            ("TOSTRING", "undefined", "undefined"),
        ]);
    }

    #[test]
    fn a_text_of_a_value_that_is_too_long_ends_the_query() {
        let context = Context::new(0, 1);
        let long = format!(r#""{}""#, "a".repeat(super::bounds::TEXT_BYTES / 2));
        assert_eq!(call_in(&context, "TOSTRING", &format!("[{long},{long}]")), None);
        assert!(matches!(context.fault(), Some(Fault::OutOfMemory { .. })));
    }
}

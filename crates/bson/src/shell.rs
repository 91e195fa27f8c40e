//! Values in the shell's syntax, for error messages and for `dup key` in a duplicate key error.
//!
//! The text is for people: long strings are truncated, and nothing parses it.

use std::fmt::Write as _;

use crate::shorten::{STRING_BYTES_MAX, shorten};
use crate::value::view::{BinaryRef, DocumentRef, RegexRef, ValueRef};

/// Bytes after which the whole text ends, give or take one value.
const TEXT_BYTES_MAX: usize = 64 * 1024;

/// Returns the value in the form of the shell: `{ a: 1, b: [ "x" ] }`, `ObjectId('..')`, `new Date(0)`.
pub fn shell_text(value: ValueRef<'_>) -> String {
    let mut out = String::new();
    write_value(value, &mut out);
    out
}

fn write_value(value: ValueRef<'_>, out: &mut String) {
    match value {
        ValueRef::Double(number) => write_double(number, out),
        ValueRef::String(text) | ValueRef::Symbol(text) => write_string(text, out),
        ValueRef::Document(document) => write_document(document, out),
        ValueRef::Array(items) => write_list(items.iter().map(|item| (None, item)), ['[', ']'], out),
        ValueRef::Binary(BinaryRef { subtype, bytes }) => {
            push(out, format_args!("BinData({subtype}, "));
            for byte in bytes.iter().take(STRING_BYTES_MAX / 2) {
                push(out, format_args!("{byte:02X}"));
            }
            out.push_str(if bytes.len() > STRING_BYTES_MAX / 2 { "...)" } else { ")" });
        }
        ValueRef::Undefined => out.push_str("undefined"),
        ValueRef::ObjectId(id) => push(out, format_args!("ObjectId('{id}')")),
        ValueRef::Bool(value) => push(out, format_args!("{value}")),
        ValueRef::DateTime(millis) => push(out, format_args!("new Date({millis})")),
        ValueRef::Null => out.push_str("null"),
        ValueRef::Regex(RegexRef { pattern, options }) => {
            push(out, format_args!("/{}/{}", shorten(pattern), shorten(options)));
        }
        ValueRef::DbPointer { namespace, id } => {
            push(out, format_args!("DBRef('{}', {id})", shorten(namespace)));
        }
        ValueRef::JavaScript(code) => out.push_str(shorten(code)),
        ValueRef::JavaScriptWithScope { code, scope } => {
            push(out, format_args!("CodeWScope( {}, ", shorten(code)));
            write_document(scope, out);
            out.push(')');
        }
        ValueRef::Int32(number) => push(out, format_args!("{number}")),
        ValueRef::Timestamp(time) => {
            push(out, format_args!("Timestamp({}, {})", time.seconds, time.increment));
        }
        ValueRef::Int64(number) => push(out, format_args!("{number}")),
        ValueRef::Decimal128(number) => push(out, format_args!("{number}")),
        ValueRef::MinKey => out.push_str("MinKey"),
        ValueRef::MaxKey => out.push_str("MaxKey"),
    }
}

fn push(out: &mut String, arguments: std::fmt::Arguments<'_>) {
    out.write_fmt(arguments).expect("a string takes everything");
}

fn write_string(text: &str, out: &mut String) {
    let shown = shorten(text);
    let dots = if shown.len() < text.len() { "..." } else { "" };
    push(out, format_args!("\"{shown}{dots}\""));
}

fn write_document(document: DocumentRef<'_>, out: &mut String) {
    write_list(document.iter().map(|(name, value)| (Some(name), value)), ['{', '}'], out);
}

fn write_list<'a>(
    fields: impl Iterator<Item = (Option<&'a str>, ValueRef<'a>)>,
    [open, close]: [char; 2],
    out: &mut String,
) {
    out.push(open);
    let mut separator = " ";
    for (name, value) in fields {
        out.push_str(separator);
        separator = ", ";
        if out.len() > TEXT_BYTES_MAX {
            out.push_str("...");
            break;
        }
        if let Some(name) = name {
            push(out, format_args!("{}: ", shorten(name)));
        }
        write_value(value, out);
    }
    if separator == ", " {
        out.push(' ');
    }
    out.push(close);
}

/// Writes a double, always with a point or an exponent, so that it differs from an integer.
fn write_double(number: f64, out: &mut String) {
    let size = number.abs();
    if number.is_nan() {
        out.push_str("nan");
    } else if number.is_infinite() {
        out.push_str(if number < 0.0 { "-inf" } else { "inf" });
    } else if size == 0.0 || (1e-5..1e16).contains(&size) {
        let text = number.to_string();
        let point = if text.contains('.') { "" } else { ".0" };
        push(out, format_args!("{text}{point}"));
    } else {
        let text = format!("{number:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        let sign = if exponent < 0 { '-' } else { '+' };
        push(out, format_args!("{digits}e{sign}{:02}", exponent.unsigned_abs()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Binary, Document, ObjectId, Regex, Timestamp, Value};

    #[test]
    fn every_type_has_its_form() {
        let id = ObjectId([0x65; 12]);
        let cases: Vec<(Value, &str)> = vec![
            (Value::Double(1.0), "1.0"),
            (Value::Double(-0.5), "-0.5"),
            (Value::Double(1e20), "1e+20"),
            (Value::Double(1.5e-7), "1.5e-07"),
            (Value::Double(f64::NAN), "nan"),
            ("x\"y".into(), "\"x\"y\""),
            (Value::Document(Document::new()), "{}"),
            (Document::new().with("a", 1).with("b", "x").into(), "{ a: 1, b: \"x\" }"),
            (Value::Array(vec![]), "[]"),
            (vec![Value::Int32(1), Value::Null].into(), "[ 1, null ]"),
            (Binary { subtype: 4, bytes: vec![0xAB, 1] }.into(), "BinData(4, AB01)"),
            (Value::Undefined, "undefined"),
            (id.into(), "ObjectId('656565656565656565656565')"),
            (Value::Bool(true), "true"),
            (Value::DateTime(-5), "new Date(-5)"),
            (Regex { pattern: "^a".into(), options: "i".into() }.into(), "/^a/i"),
            (Value::Int64(5_000_000_000), "5000000000"),
            (Timestamp { seconds: 7, increment: 1 }.into(), "Timestamp(7, 1)"),
            (Value::Decimal128("1.50".parse().expect("a number")), "1.50"),
            (Value::MinKey, "MinKey"),
        ];
        for (value, text) in cases {
            assert_eq!(shell_text(value.view()), text);
        }
    }

    #[test]
    fn long_texts_are_cut() {
        let long = Value::String("é".repeat(1000));
        assert_eq!(shell_text(long.view()), format!("\"{}...\"", "é".repeat(80)));
        let many = Value::Array(vec!["0123456789".into(); 1_000_000]);
        assert!(shell_text(many.view()).len() < TEXT_BYTES_MAX + 100);
    }
}

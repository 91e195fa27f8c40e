//! Values to Extended JSON.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::OLD_BINARY;
use super::time::format_date;
use crate::value::view::{BinaryRef, DocumentRef, RegexRef, ValueRef};

/// The last millisecond of the year 9999, the last that relaxed JSON writes as a date.
const LAST_DATE_MILLIS: i64 = 253_402_300_799_999;

/// Returns the value in Extended JSON v2. Relaxed writes ints, longs, finite doubles and dates from 1970 to 9999 in a plain
/// form.
pub fn to_extended_json(value: ValueRef<'_>, relaxed: bool) -> String {
    let mut printer = Printer { out: String::new(), relaxed };
    printer.value(value);
    printer.out
}

struct Printer {
    out: String,
    relaxed: bool,
}

impl Printer {
    fn value(&mut self, value: ValueRef<'_>) {
        match value {
            ValueRef::Double(number) => self.double(number),
            ValueRef::String(text) => self.string(text),
            ValueRef::Document(document) => self.document(document),
            ValueRef::Array(items) => {
                self.out.push('[');
                let mut separator = "";
                for item in items.iter() {
                    self.out.push_str(separator);
                    separator = ",";
                    self.value(item);
                }
                self.out.push(']');
            }
            ValueRef::Binary(BinaryRef { subtype, bytes }) => {
                let base64 = BASE64.encode(without_inner_length(subtype, bytes));
                self.push(format_args!(
                    "{{\"$binary\":{{\"base64\":\"{base64}\",\"subType\":\"{subtype:02x}\"}}}}"
                ));
            }
            ValueRef::Undefined => self.out.push_str("{\"$undefined\":true}"),
            ValueRef::ObjectId(id) => self.push(format_args!("{{\"$oid\":\"{id}\"}}")),
            ValueRef::Bool(value) => self.push(format_args!("{value}")),
            ValueRef::DateTime(millis) => self.date(millis),
            ValueRef::Null => self.out.push_str("null"),
            ValueRef::Regex(RegexRef { pattern, options }) => {
                self.text("{\"$regularExpression\":{\"pattern\":", pattern, ",\"options\":");
                self.text("", options, "}}");
            }
            ValueRef::DbPointer { namespace, id } => {
                self.text("{\"$dbPointer\":{\"$ref\":", namespace, ",\"$id\":");
                self.push(format_args!("{{\"$oid\":\"{id}\"}}}}}}"));
            }
            ValueRef::JavaScript(code) => self.text("{\"$code\":", code, "}"),
            ValueRef::Symbol(text) => self.text("{\"$symbol\":", text, "}"),
            ValueRef::JavaScriptWithScope { code, scope } => {
                self.text("{\"$code\":", code, ",\"$scope\":");
                self.document(scope);
                self.out.push('}');
            }
            ValueRef::Int32(number) => self.integer("$numberInt", number.into()),
            ValueRef::Timestamp(time) => self
                .push(format_args!("{{\"$timestamp\":{{\"t\":{},\"i\":{}}}}}", time.seconds, time.increment)),
            ValueRef::Int64(number) => self.integer("$numberLong", number),
            ValueRef::Decimal128(number) => self.push(format_args!("{{\"$numberDecimal\":\"{number}\"}}")),
            ValueRef::MinKey => self.out.push_str("{\"$minKey\":1}"),
            ValueRef::MaxKey => self.out.push_str("{\"$maxKey\":1}"),
        }
    }

    fn push(&mut self, arguments: std::fmt::Arguments<'_>) {
        self.out.write_fmt(arguments).expect("a string takes everything");
    }

    fn document(&mut self, document: DocumentRef<'_>) {
        self.out.push('{');
        let mut separator = "";
        for (name, value) in document.iter() {
            self.text(separator, name, ":");
            separator = ",";
            self.value(value);
        }
        self.out.push('}');
    }

    fn text(&mut self, before: &str, text: &str, after: &str) {
        self.out.push_str(before);
        self.string(text);
        self.out.push_str(after);
    }

    fn string(&mut self, text: &str) {
        self.out.push('"');
        for char in text.chars() {
            match char {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                control if control < ' ' => self.push(format_args!("\\u{:04x}", control as u32)),
                char => self.out.push(char),
            }
        }
        self.out.push('"');
    }

    fn integer(&mut self, kind: &str, number: i64) {
        if self.relaxed {
            self.push(format_args!("{number}"));
        } else {
            self.push(format_args!("{{\"{kind}\":\"{number}\"}}"));
        }
    }

    fn double(&mut self, number: f64) {
        match (number.is_finite(), self.relaxed) {
            (true, true) => self.push(format_args!("{number:?}")),
            (true, false) => self.push(format_args!("{{\"$numberDouble\":\"{number:?}\"}}")),
            (false, _) => {
                let name = if number.is_nan() {
                    "NaN"
                } else if number > 0.0 {
                    "Infinity"
                } else {
                    "-Infinity"
                };
                self.push(format_args!("{{\"$numberDouble\":\"{name}\"}}"));
            }
        }
    }

    fn date(&mut self, millis: i64) {
        if self.relaxed && (0..=LAST_DATE_MILLIS).contains(&millis) {
            let date = format_date(millis).replace(".000Z", "Z");
            self.push(format_args!("{{\"$date\":\"{date}\"}}"));
        } else {
            self.push(format_args!("{{\"$date\":{{\"$numberLong\":\"{millis}\"}}}}"));
        }
    }
}

/// Returns the bytes without the inner length that the old subtype has.
fn without_inner_length(subtype: u8, bytes: &[u8]) -> &[u8] {
    match bytes.split_first_chunk::<4>() {
        Some((length, rest))
            if subtype == OLD_BINARY && u32::from_le_bytes(*length) as usize == rest.len() =>
        {
            rest
        }
        _ => bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RawDocument, parse_extended_json};

    /// What is read, its canonical form, its relaxed form where that differs.
    const FORMS: &[(&str, &str, &str)] = &[
        (r#" { "a" : 1 } "#, r#"{"a":{"$numberInt":"1"}}"#, r#"{"a":1}"#),
        ("5000000000", r#"{"$numberLong":"5000000000"}"#, "5000000000"),
        ("1.0", r#"{"$numberDouble":"1.0"}"#, "1.0"),
        ("-0.0", r#"{"$numberDouble":"-0.0"}"#, "-0.0"),
        ("1e300", r#"{"$numberDouble":"1e300"}"#, "1e300"),
        ("9223372036854775808", r#"{"$numberDouble":"9.223372036854776e18"}"#, "9.223372036854776e18"),
        (r#"{"$numberDouble":"NaN"}"#, r#"{"$numberDouble":"NaN"}"#, ""),
        (r#"{"$numberDecimal":"1.50"}"#, r#"{"$numberDecimal":"1.50"}"#, ""),
        (
            r#"{"$date":"2012-12-24T12:15:30.501Z"}"#,
            r#"{"$date":{"$numberLong":"1356351330501"}}"#,
            r#"{"$date":"2012-12-24T12:15:30.501Z"}"#,
        ),
        (r#"{"$date":{"$numberLong":"-1"}}"#, r#"{"$date":{"$numberLong":"-1"}}"#, ""),
        (
            r#"{"$date":"1970-01-01T00:00:00Z"}"#,
            r#"{"$date":{"$numberLong":"0"}}"#,
            r#"{"$date":"1970-01-01T00:00:00Z"}"#,
        ),
        (r#"{"$oid":"56e1fc72e0c917e9c4714161"}"#, r#"{"$oid":"56e1fc72e0c917e9c4714161"}"#, ""),
        (
            r#"{"$uuid":"73ffd264-44b3-4c69-90e8-e7d1dfc035d4"}"#,
            r#"{"$binary":{"base64":"c//SZESzTGmQ6OfR38A11A==","subType":"04"}}"#,
            "",
        ),
        (
            r#"{"$binary":{"base64":"//8=","subType":"02"}}"#,
            r#"{"$binary":{"base64":"//8=","subType":"02"}}"#,
            "",
        ),
        (r#"{"$binary":"AQI=","$type":"80"}"#, r#"{"$binary":{"base64":"AQI=","subType":"80"}}"#, ""),
        (
            r#"{"$regularExpression":{"pattern":"a\"b","options":"xi"}}"#,
            r#"{"$regularExpression":{"pattern":"a\"b","options":"ix"}}"#,
            "",
        ),
        (r#"{"$regex":"^a","$options":"i"}"#, r#"{"$regex":"^a","$options":"i"}"#, ""),
        (r#"{"$timestamp":{"t":4294967295,"i":1}}"#, r#"{"$timestamp":{"t":4294967295,"i":1}}"#, ""),
        (r#"{"$code":"f()"}"#, r#"{"$code":"f()"}"#, ""),
        (r#"{"$code":"f()","$scope":{"x":true}}"#, r#"{"$code":"f()","$scope":{"x":true}}"#, ""),
        (r#"{"$symbol":"s"}"#, r#"{"$symbol":"s"}"#, ""),
        (
            r#"{"$dbPointer":{"$ref":"b","$id":{"$oid":"56e1fc72e0c917e9c4714161"}}}"#,
            r#"{"$dbPointer":{"$ref":"b","$id":{"$oid":"56e1fc72e0c917e9c4714161"}}}"#,
            "",
        ),
        (
            r#"[{"$minKey":1},{"$maxKey":1},{"$undefined":true},null]"#,
            r#"[{"$minKey":1},{"$maxKey":1},{"$undefined":true},null]"#,
            "",
        ),
        (r#""\u0001\ud83d\ude00\/\n""#, r#""\u0001😀/\n""#, ""),
        (r#"{"$ref":"c","$id":"x"}"#, r#"{"$ref":"c","$id":"x"}"#, ""),
    ];

    #[test]
    fn forms_are_read_and_written() {
        for (text, canonical, relaxed) in FORMS {
            let value = parse_extended_json(text).expect(text);
            assert_eq!(to_extended_json(value.view(), false), *canonical, "{text}");
            let relaxed = if relaxed.is_empty() { canonical } else { relaxed };
            assert_eq!(to_extended_json(value.view(), true), *relaxed, "{text}");
            let again = parse_extended_json(canonical).expect(canonical);
            assert_eq!(to_extended_json(again.view(), false), *canonical);
            let raw = RawDocument::from_document(&crate::Document::new().with("v", value));
            let from_bytes = raw.get("v").expect("the field");
            assert_eq!(to_extended_json(from_bytes, false), *canonical, "from bytes");
        }
    }

    #[test]
    fn wrong_texts_are_refused() {
        for text in [
            "",
            "{",
            "{\"a\"}",
            "{\"a\":1,}",
            "[1 2]",
            "1 2",
            "nul",
            "01x",
            "-",
            "1.",
            "\"a",
            "\"\\x\"",
            "\"\\ud800\"",
            "\"\n\"",
            "{\"a\\u0000\":1}",
            "{\"$oid\":\"x\"}",
            "{\"$numberInt\":\"9999999999\"}",
            "{\"$date\":true}",
            "{\"$binary\":{\"base64\":\"?\",\"subType\":\"00\"}}",
            "{\"$minKey\":2}",
        ] {
            assert!(parse_extended_json(text).is_err(), "{text}");
        }
        assert!(parse_extended_json(&"[".repeat(100_000)).is_err());
    }
}

//! JSON text in and out.
//!
//! In: text goes straight into the stored form, without a tree between. The grammar is serde_json's; what is
//! added here is a stated nesting limit, refusal of repeated member names (two readers would disagree about
//! which one counts) and of numbers beyond the range of a double.
//!
//! Out: compact, members in order, and exact: `1` was an integer and stays `1`, `1.0` stays `1.0`, doubles
//! print the shortest digits that read back as the same double. `-0` reads as the double `-0.0`.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use crate::binary::{Document, Encoder, too_deep};
use crate::error::{Error, Result};
use crate::limits;
use crate::value::Value;
use crate::view::ValueRef;

/// Parses one JSON text into a tree. Accepts exactly what [`Document::from_json`] accepts.
pub fn parse_json(text: &[u8]) -> Result<Value> {
    // Through the stored form on purpose: one set of rules cannot differ from itself.
    Ok(parse_document(text)?.to_value())
}

/// Appends the value as compact JSON.
pub fn write_json(value: ValueRef<'_>, out: &mut Vec<u8>) {
    match value {
        ValueRef::Null => out.extend_from_slice(b"null"),
        ValueRef::Bool(true) => out.extend_from_slice(b"true"),
        ValueRef::Bool(false) => out.extend_from_slice(b"false"),
        ValueRef::Int(i) => write_scalar(&i, out),
        ValueRef::Double(d) => write_scalar(&d, out),
        ValueRef::String(s) => write_text(s, out),
        ValueRef::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_json(item, out);
            }
            out.push(b']');
        }
        ValueRef::Object(members) => {
            out.push(b'{');
            for (index, (name, member)) in members.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_text(name, out);
                out.push(b':');
                write_json(member, out);
            }
            out.push(b'}');
        }
    }
}

/// Most strings need no escape; those are copied whole.
fn write_text(text: &str, out: &mut Vec<u8>) {
    if text.bytes().all(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\') {
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
    } else {
        write_scalar(text, out);
    }
}

fn write_scalar<T: serde::Serialize + ?Sized>(value: &T, out: &mut Vec<u8>) {
    serde_json::to_writer(out, value).expect("a scalar is written to memory without error");
}

pub(crate) fn parse_document(text: &[u8]) -> Result<Document> {
    if text.len() > limits::DOCUMENT_BYTES {
        return Err(Error::invalid(format!(
            "a JSON text of {} bytes is longer than the limit of {} bytes",
            text.len(),
            limits::DOCUMENT_BYTES
        )));
    }
    let mut parser = Parser { encoder: Encoder::with_capacity(text.len() + 64), names: Vec::new() };
    let mut source = serde_json::Deserializer::from_slice(text);
    // The limit is ours (`Parser` counts); serde_json's own is one level lower.
    source.disable_recursion_limit();
    ValueSeed { parser: &mut parser, depth: 0 }.deserialize(&mut source).map_err(|e| describe(&e))?;
    source.end().map_err(|e| describe(&e))?;
    parser.encoder.finish()
}

/// serde_json puts the position at the end of its message; we keep it in fields.
fn describe(error: &serde_json::Error) -> Error {
    let full = error.to_string();
    let message = full.split(" at line ").next().unwrap_or_default().to_owned();
    Error::Json { line: error.line(), column: error.column(), message }
}

/// What one parse shares between all levels.
struct Parser {
    encoder: Encoder,
    /// Where the names of the open objects stand in the output; one stack for all levels.
    names: Vec<(usize, usize)>,
}

/// Objects up to this size compare each new name with all earlier ones, larger ones sort at their end.
const FEW_NAMES: usize = 24;

impl Parser {
    fn name_bytes(&self, (start, end): (usize, usize)) -> &[u8] {
        &self.encoder.out[start..end]
    }

    /// A name met before among those from `base` on, where the last is the newest.
    fn repeats_newest(&self, base: usize) -> bool {
        let Some((&newest, earlier)) = self.names[base..].split_last() else { return false };
        let newest = self.name_bytes(newest);
        earlier.len() < FEW_NAMES && earlier.iter().any(|&name| self.name_bytes(name) == newest)
    }

    /// Sorts the names from `base` on and returns one that occurs twice.
    fn repeated(&mut self, base: usize) -> Option<String> {
        let out = &self.encoder.out;
        let names = &mut self.names[base..];
        names.sort_unstable_by(|a, b| out[a.0..a.1].cmp(&out[b.0..b.1]));
        let pair = names.windows(2).find(|pair| out[pair[0].0..pair[0].1] == out[pair[1].0..pair[1].1])?;
        Some(String::from_utf8_lossy(&out[pair[0].0..pair[0].1]).into_owned())
    }
}

fn repeated_name<E: serde::de::Error>(name: &str) -> E {
    E::custom(format_args!("the member name {name:?} occurs more than once in one object"))
}

/// Writes the next value of the text.
struct ValueSeed<'a> {
    parser: &'a mut Parser,
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> std::result::Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> std::result::Result<(), E> {
        self.parser.encoder.null();
        Ok(())
    }

    fn visit_bool<E>(self, value: bool) -> std::result::Result<(), E> {
        self.parser.encoder.bool(value);
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> std::result::Result<(), E> {
        self.parser.encoder.int(value);
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> std::result::Result<(), E> {
        match i64::try_from(value) {
            Ok(value) => self.parser.encoder.int(value),
            Err(_) => self.parser.encoder.double(value as f64),
        }
        Ok(())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> std::result::Result<(), E> {
        if !value.is_finite() {
            return Err(E::custom("number out of range"));
        }
        self.parser.encoder.double(value);
        Ok(())
    }

    fn visit_str<E>(self, value: &str) -> std::result::Result<(), E> {
        self.parser.encoder.string(value);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> std::result::Result<(), A::Error> {
        let ValueSeed { parser, depth } = self;
        if depth >= limits::NESTING_DEPTH {
            return Err(A::Error::custom(too_deep()));
        }
        let frame = parser.encoder.open_array();
        let mut count = 0;
        while items.next_element_seed(ValueSeed { parser, depth: depth + 1 })?.is_some() {
            count += 1;
        }
        parser.encoder.close(frame, count);
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> std::result::Result<(), A::Error> {
        let ValueSeed { parser, depth } = self;
        if depth >= limits::NESTING_DEPTH {
            return Err(A::Error::custom(too_deep()));
        }
        let frame = parser.encoder.open_object();
        let base = parser.names.len();
        while members.next_key_seed(NameSeed { parser, base })?.is_some() {
            members.next_value_seed(ValueSeed { parser, depth: depth + 1 })?;
        }
        let count = parser.names.len() - base;
        if count > FEW_NAMES
            && let Some(name) = parser.repeated(base)
        {
            return Err(repeated_name(&name));
        }
        parser.names.truncate(base);
        parser.encoder.close(frame, count);
        Ok(())
    }
}

/// Writes the next member's name of the object whose names start at `base`.
struct NameSeed<'a> {
    parser: &'a mut Parser,
    base: usize,
}

impl<'de> DeserializeSeed<'de> for NameSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> std::result::Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for NameSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member name")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> std::result::Result<(), E> {
        self.parser.encoder.name(name);
        let end = self.parser.encoder.out.len();
        self.parser.names.push((end - name.len(), end));
        if self.parser.repeats_newest(self.base) {
            return Err(repeated_name(name));
        }
        Ok(())
    }
}

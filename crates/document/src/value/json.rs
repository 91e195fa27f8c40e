//! JSON text in and out.
//!
//! In: text goes straight into the stored form, without a tree between. The grammar is `serde_json`'s; what is
//! added here is a stated nesting limit, refusal of repeated member names (two readers would disagree about
//! which one counts) and of numbers beyond the range of a double.
//!
//! Out: compact, members in order, and exact: `1` was an integer and stays `1`, `1.0` stays `1.0`, doubles
//! print the shortest digits that read back as the same double. `-0` reads as the double `-0.0`.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use crate::error::{Error, Result};
use crate::limits;
use crate::value::Value;
use crate::value::binary::{self, Document, too_deep};
use crate::value::encoder::{Encoder, Frame};
use crate::value::view::ValueRef;

/// Parses one JSON text into a tree. Accepts exactly what [`Document::from_json`] accepts.
pub fn parse_json(text: &[u8]) -> Result<Value> {
    // Goes through the stored form, so that there is only one set of rules.
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
        ValueRef::String(s) => write_text(s.as_bytes(), out),
        ValueRef::Array(items) => {
            out.push(b'[');
            match items.stored() {
                Some(body) => write_stored_items(body, out),
                None => write_list(items.iter(), out, write_json),
            }
            out.push(b']');
        }
        ValueRef::Object(members) => {
            out.push(b'{');
            match members.stored() {
                Some(body) => write_stored_members(body, out),
                None => write_list(members.iter(), out, |(name, member), out| {
                    write_text(name.as_bytes(), out);
                    out.push(b':');
                    write_json(member, out);
                }),
            }
            out.push(b'}');
        }
    }
}

fn write_list<T>(list: impl Iterator<Item = T>, out: &mut Vec<u8>, write: impl Fn(T, &mut Vec<u8>)) {
    for (index, entry) in list.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(entry, out);
    }
}

fn write_stored_items(mut body: &[u8], out: &mut Vec<u8>) {
    let begin = out.len();
    while !body.is_empty() {
        if out.len() > begin {
            out.push(b',');
        }
        let Some(rest) = write_stored(body, out) else { return };
        body = rest;
    }
}

fn write_stored_members(mut body: &[u8], out: &mut Vec<u8>) {
    let begin = out.len();
    while let Some((name, value)) = binary::read_name(body) {
        if out.len() > begin {
            out.push(b',');
        }
        write_text(name, out);
        out.push(b':');
        let Some(rest) = write_stored(value, out) else { return };
        body = rest;
    }
}

/// Writes the stored value at the start of `bytes` and returns what follows it. Text is not checked to be UTF-8: a
/// document is when it is made.
fn write_stored<'a>(bytes: &'a [u8], out: &mut Vec<u8>) -> Option<&'a [u8]> {
    if let Some((&binary::STRING, text)) = bytes.split_first() {
        let (text, rest) = binary::read_name(text)?;
        write_text(text, out);
        return Some(rest);
    }
    let (value, rest) = binary::read_value(bytes)?;
    write_json(value, out);
    Some(rest)
}

/// Writes a string. Most need no escape and are copied whole.
fn write_text(text: &[u8], out: &mut Vec<u8>) {
    if needs_escape(text) {
        return write_scalar(String::from_utf8_lossy(text).as_ref(), out);
    }
    out.push(b'"');
    out.extend_from_slice(text);
    out.push(b'"');
}

/// Returns whether a string needs an escape. It checks whole blocks without an early exit, so the compiler uses vector
/// instructions.
fn needs_escape(bytes: &[u8]) -> bool {
    let special = |byte: &u8| *byte < 0x20 || *byte == b'"' || *byte == b'\\';
    let any = |block: &[u8]| block.iter().fold(false, |found, byte| found | special(byte));
    let (blocks, rest) = bytes.as_chunks::<32>();
    let (small_blocks, tail) = rest.as_chunks::<8>();
    blocks.iter().any(|block| any(block)) || small_blocks.iter().any(|block| any(block)) || any(tail)
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
    let mut encoder = Encoder::with_capacity(text.len() + 64);
    let mut source = serde_json::Deserializer::from_slice(text);
    // `ValueSeed` enforces the nesting limit; serde_json's own is one level lower.
    source.disable_recursion_limit();
    ValueSeed { encoder: &mut encoder, depth: 0 }.deserialize(&mut source).map_err(|e| describe(&e))?;
    source.end().map_err(|e| describe(&e))?;
    encoder.finish()
}

/// Moves the position from the end of `serde_json`'s message into fields.
fn describe(error: &serde_json::Error) -> Error {
    let full = error.to_string();
    let message = full.split(" at line ").next().unwrap_or_default().to_owned();
    Error::Json { line: error.line(), column: error.column(), message }
}

/// Writes the next value of the text.
struct ValueSeed<'a> {
    encoder: &'a mut Encoder,
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
        self.encoder.null();
        Ok(())
    }

    fn visit_bool<E>(self, value: bool) -> std::result::Result<(), E> {
        self.encoder.bool(value);
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> std::result::Result<(), E> {
        self.encoder.int(value);
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> std::result::Result<(), E> {
        match i64::try_from(value) {
            Ok(value) => self.encoder.int(value),
            Err(_) => self.encoder.double(value as f64),
        }
        Ok(())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> std::result::Result<(), E> {
        if !value.is_finite() {
            return Err(E::custom("number out of range"));
        }
        self.encoder.double(value);
        Ok(())
    }

    fn visit_str<E>(self, value: &str) -> std::result::Result<(), E> {
        self.encoder.string(value);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> std::result::Result<(), A::Error> {
        let ValueSeed { encoder, depth } = self;
        if depth >= limits::NESTING_DEPTH {
            return Err(A::Error::custom(too_deep()));
        }
        let frame = encoder.open_array();
        let mut count = 0;
        while items.next_element_seed(ValueSeed { encoder, depth: depth + 1 })?.is_some() {
            count += 1;
        }
        encoder.close(frame, count);
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> std::result::Result<(), A::Error> {
        let ValueSeed { encoder, depth } = self;
        if depth >= limits::NESTING_DEPTH {
            return Err(A::Error::custom(too_deep()));
        }
        let frame = encoder.open_object();
        while members.next_key_seed(NameSeed { encoder, object: frame })?.is_some() {
            members.next_value_seed(ValueSeed { encoder, depth: depth + 1 })?;
        }
        encoder.close_object(frame).map_err(A::Error::custom)
    }
}

/// Writes the next member's name of an open object.
struct NameSeed<'a> {
    encoder: &'a mut Encoder,
    object: Frame,
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
        self.encoder.name(self.object, name).map_err(E::custom)
    }
}

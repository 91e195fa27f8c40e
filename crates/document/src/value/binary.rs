//! The stored form of a document, byte by byte.
//!
//! A document is one value, normally an object. Numbers are little-endian. Every value starts with a tag:
//!
//! ```text
//! tag   value           after the tag
//! 0x00  null            nothing
//! 0x01  false           nothing
//! 0x02  true            nothing
//! 0x03  integer         i8
//! 0x04  integer         i32
//! 0x05  integer         i64
//! 0x06  double          f64, finite
//! 0x07  string          length, then that many bytes of UTF-8
//! 0x08  array           u32 body length, u32 item count, then the items
//! 0x09  object          u32 body length, u32 member count, then the members
//!
//! length: one byte 0x00..=0xFE, or 0xFF and a u32
//! member: name (a length, then that many bytes of UTF-8) followed by a value
//! ```
//!
//! `{"id":"a","n":[1,true]}` is
//!
//! ```text
//! 09 14000000 02000000              object, 20 bytes of body, 2 members
//!    02 'i' 'd'  07 01 'a'          "id": "a"
//!    01 'n'      08 03000000 02000000  03 01  02
//! ```
//!
//! Three choices that are not obvious:
//!
//! - Arrays and objects carry their length, so a reader skips a value without looking inside it: finding a root
//!   member costs one step per member, however large the others are. There is no offset table; documents have
//!   tens of members, and a table would cost every document to help the rare wide one.
//! - The writer takes the shortest integer tag and the short length whenever it can, so equal values written by
//!   any path (JSON, binary JSON, a tree) have equal bytes. Readers accept the longer forms too.
//! - Tags 0x0A and up are free for the types of other protocols. An unknown tag is refused as corrupt, so an
//!   older program never guesses.
//!
//! A [`Document`] is only created by code that writes this form or by [`Document::from_stored`], which walks all of
//! it: tags, lengths, counts, UTF-8, finiteness, depth. The walk costs well under a microsecond per kilobyte, and in
//! return readers cannot fail. It does not look for repeated member names: they are harmless here (the first wins),
//! and the parsers of text refuse them.

use std::fmt;

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::limits;
use crate::value::Value;
use crate::value::cosmos_binary;
use crate::value::encoder::Encoder;
use crate::value::json;
use crate::value::view::{ArrayRef, ObjectRef, ValueRef};

pub(crate) const NULL: u8 = 0x00;
pub(crate) const FALSE: u8 = 0x01;
pub(crate) const TRUE: u8 = 0x02;
pub(crate) const INT8: u8 = 0x03;
pub(crate) const INT32: u8 = 0x04;
pub(crate) const INT64: u8 = 0x05;
pub(crate) const DOUBLE: u8 = 0x06;
pub(crate) const STRING: u8 = 0x07;
pub(crate) const ARRAY: u8 = 0x08;
pub(crate) const OBJECT: u8 = 0x09;

/// Tag, body length and count of an array or object.
pub(crate) const FRAME_BYTES: usize = 9;
/// The first byte of a length that does not fit one byte.
pub(crate) const LONG: u8 = 0xFF;

/// One value in its stored form, always well-formed. Cloning shares the bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Document(Bytes);

impl Document {
    /// Encodes a tree. Refuses nesting past the limit and numbers that are not finite.
    pub fn from_value(value: &Value) -> Result<Document> {
        Document::from_view(value.view())
    }

    /// Encodes a borrowed value, as [`Document::from_value`] does.
    pub fn from_view(value: ValueRef<'_>) -> Result<Document> {
        let mut encoder = Encoder::default();
        encode(value, 0, &mut encoder)?;
        encoder.finish()
    }

    /// Parses JSON text straight into the stored form; [`crate::parse_json`] accepts the same texts.
    pub fn from_json(text: &[u8]) -> Result<Document> {
        json::parse_document(text)
    }

    /// Decodes a Cosmos binary JSON body (first byte 0x80).
    pub fn from_cosmos_binary(body: &[u8]) -> Result<Document> {
        cosmos_binary::parse_document(body)
    }

    /// Decodes a request body in either form. The first byte decides: no JSON text starts with the byte that starts a
    /// binary body.
    pub fn decode_body(body: &[u8]) -> Result<Document> {
        if body.first() == Some(&cosmos_binary::PREAMBLE) {
            Document::from_cosmos_binary(body)
        } else {
            Document::from_json(body)
        }
    }

    /// Validates bytes that were read back from disk.
    pub fn from_stored(bytes: Bytes) -> Result<Document> {
        let end = check(&bytes, 0, 0)?;
        if end != bytes.len() {
            return Err(Error::corrupt(format!("{} bytes after the document", bytes.len() - end)));
        }
        Ok(Document(bytes))
    }

    /// Wraps bytes that an [`Encoder`] wrote.
    pub(crate) fn from_encoder(bytes: Vec<u8>) -> Document {
        Document(bytes.into())
    }

    /// Returns the stored bytes.
    pub fn as_bytes(&self) -> &Bytes {
        &self.0
    }

    /// Returns the same value in bytes of its own: stored bytes are part of a larger block, which they keep in memory.
    #[must_use]
    pub fn detached(&self) -> Document {
        Document(Bytes::copy_from_slice(&self.0))
    }

    /// Returns the whole value, for reading.
    pub fn root(&self) -> ValueRef<'_> {
        read_value(&self.0).map_or(ValueRef::Null, |(value, _)| value)
    }

    /// Returns the named member of the root object.
    pub fn get(&self, name: &str) -> Option<ValueRef<'_>> {
        self.root().get(name)
    }

    /// Returns an owned tree of the whole document.
    pub fn to_value(&self) -> Value {
        self.root().to_value()
    }

    /// Returns compact JSON text.
    pub fn to_json(&self) -> String {
        self.root().to_json()
    }

    /// Returns the document without these members of the root object; shares the bytes when it has none of them.
    #[must_use]
    pub fn without(&self, names: &[&str]) -> Document {
        let ValueRef::Object(root) = self.root() else { return self.clone() };
        if !names.iter().any(|name| root.get(name).is_some()) {
            return self.clone();
        }
        let mut encoder = Encoder::with_capacity(self.0.len());
        let frame = encoder.open_object();
        let (mut body, mut count) = (&self.0[FRAME_BYTES..], 0);
        while let Some((name, value)) = read_name(body) {
            let Some(length) = value_len(value) else { break };
            let rest = value.get(length..).unwrap_or_default();
            if !names.iter().any(|dropped| dropped.as_bytes() == name) {
                encoder.copy(&body[..body.len() - rest.len()]);
                count += 1;
            }
            body = rest;
        }
        encoder.close(frame, count);
        encoder.into_document()
    }
}

impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Document({})", self.to_json())
    }
}

fn encode(value: ValueRef<'_>, depth: usize, encoder: &mut Encoder) -> Result<()> {
    match value {
        ValueRef::Null => encoder.null(),
        ValueRef::Bool(b) => encoder.bool(b),
        ValueRef::Int(i) => encoder.int(i),
        ValueRef::Double(d) if d.is_finite() => encoder.double(d),
        ValueRef::Double(d) => return Err(Error::invalid(format!("a document cannot hold the number {d}"))),
        ValueRef::String(s) => encoder.string(s),
        ValueRef::Array(items) => {
            check_depth(depth)?;
            let frame = encoder.open_array();
            for item in items.iter() {
                encode(item, depth + 1, encoder)?;
            }
            encoder.close(frame, items.len());
        }
        ValueRef::Object(members) => {
            check_depth(depth)?;
            let frame = encoder.open_object();
            for (name, member) in members.iter() {
                encoder.new_name(name);
                encode(member, depth + 1, encoder)?;
            }
            encoder.close(frame, members.len());
        }
    }
    Ok(())
}

/// Refuses another array or object inside `depth` others if that is too deep.
fn check_depth(depth: usize) -> Result<()> {
    if depth >= limits::NESTING_DEPTH {
        return Err(Error::invalid(too_deep()));
    }
    Ok(())
}

/// Returns the message of every refusal for depth.
pub(crate) fn too_deep() -> String {
    format!("arrays and objects are nested more than {} levels deep", limits::NESTING_DEPTH)
}

/// Returns the value at the start of `bytes` and what follows it; `None` where no whole value starts.
pub(crate) fn read_value(bytes: &[u8]) -> Option<(ValueRef<'_>, &[u8])> {
    let length = value_len(bytes)?;
    let (whole, rest) = bytes.split_at_checked(length)?;
    let value = match whole[0] {
        NULL => ValueRef::Null,
        FALSE => ValueRef::Bool(false),
        TRUE => ValueRef::Bool(true),
        INT8 => ValueRef::Int(i8::from_le_bytes([whole[1]]).into()),
        INT32 => ValueRef::Int(i32::from_le_bytes(whole[1..].try_into().ok()?).into()),
        INT64 => ValueRef::Int(i64::from_le_bytes(whole[1..].try_into().ok()?)),
        DOUBLE => ValueRef::Double(f64::from_le_bytes(whole[1..].try_into().ok()?)),
        STRING => ValueRef::String(std::str::from_utf8(read_name(&whole[1..])?.0).ok()?),
        tag => {
            let count = u32_at(whole, 5)? as usize;
            let body = &whole[FRAME_BYTES..];
            if tag == ARRAY {
                ValueRef::Array(ArrayRef::of_stored(body, count))
            } else {
                ValueRef::Object(ObjectRef::of_stored(body, count))
            }
        }
    };
    Some((value, rest))
}

/// Returns the encoded length of the value at the start of `bytes`, as its header states it.
pub(crate) fn value_len(bytes: &[u8]) -> Option<usize> {
    match *bytes.first()? {
        NULL | FALSE | TRUE => Some(1),
        INT8 => Some(2),
        INT32 => Some(5),
        INT64 | DOUBLE => Some(9),
        STRING => {
            let (head, length) = read_length(&bytes[1..])?;
            Some(1 + head + length)
        }
        ARRAY | OBJECT => Some(FRAME_BYTES + u32_at(bytes, 1)? as usize),
        _ => None,
    }
}

/// Returns the length-prefixed bytes at the start of `bytes` and what follows them.
pub(crate) fn read_name(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (head, length) = read_length(bytes)?;
    bytes.get(head..)?.split_at_checked(length)
}

/// Returns how many bytes the length takes, and the length.
fn read_length(bytes: &[u8]) -> Option<(usize, usize)> {
    match *bytes.first()? {
        LONG => Some((5, u32_at(bytes, 1)? as usize)),
        short => Some((1, short.into())),
    }
}

fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(offset..offset + 4)?.try_into().ok()?))
}

/// Walks the value at `start` and returns where it ends.
fn check(bytes: &[u8], start: usize, depth: usize) -> Result<usize> {
    let cut = || Error::corrupt(format!("the value at byte {start} is cut short"));
    let value = bytes.get(start..).unwrap_or_default();
    let tag = *value.first().ok_or_else(cut)?;
    if tag > OBJECT {
        return Err(Error::corrupt(format!("unknown tag {tag:#04x} at byte {start}")));
    }
    let end = start + value_len(value).ok_or_else(cut)?;
    if end > bytes.len() {
        return Err(cut());
    }
    match tag {
        DOUBLE if !read_value(value).is_some_and(|(v, _)| v.as_f64().is_some_and(f64::is_finite)) => {
            Err(Error::corrupt(format!("the number at byte {start} is not finite")))
        }
        STRING => check_text(&bytes[start + 1..end], start).map(|_| end),
        ARRAY | OBJECT => check_body(&bytes[..end], start, depth).map(|()| end),
        _ => Ok(end),
    }
}

/// Walks the items or members of the frame at `start`, which ends where `bytes` ends.
fn check_body(bytes: &[u8], start: usize, depth: usize) -> Result<()> {
    if depth >= limits::NESTING_DEPTH {
        return Err(Error::corrupt(too_deep()));
    }
    let claimed = u32_at(bytes, start + 5).unwrap_or_default();
    let (mut at, mut count) = (start + FRAME_BYTES, 0);
    while at < bytes.len() {
        if bytes[start] == OBJECT {
            at += check_text(&bytes[at..], at)?;
        }
        at = check(bytes, at, depth + 1)?;
        count += 1;
    }
    if count != claimed {
        return Err(Error::corrupt(format!("{count} entries instead of {claimed} at byte {start}")));
    }
    Ok(())
}

/// Checks length-prefixed text and returns how many bytes it takes.
fn check_text(bytes: &[u8], at: usize) -> Result<usize> {
    let (text, rest) =
        read_name(bytes).ok_or_else(|| Error::corrupt(format!("the text at byte {at} is cut short")))?;
    // Most text is ASCII, which takes a fraction of the time to see.
    if !text.is_ascii() && std::str::from_utf8(text).is_err() {
        return Err(Error::corrupt(format!("the text at byte {at} is not UTF-8")));
    }
    Ok(bytes.len() - rest.len())
}

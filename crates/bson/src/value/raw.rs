//! A document as bytes: checked once, then read without failing.
//!
//! ```text
//! document   i32 length (all of it), elements, 00
//! element    type u8, name as a C string, value
//! ```
//!
//! The check walks everything: lengths against the bytes that are really there, UTF-8, terminators, nesting. It does not
//! look for repeated names, which BSON allows; the first wins, as everywhere.

use std::fmt;

use bytes::Bytes;

use crate::decimal::Decimal128;
use crate::error::{Error, Result};
use crate::limits;
use crate::object_id::ObjectId;
use crate::value::view::{ArrayRef, BinaryRef, DocumentRef, Kind, RegexRef, ValueRef};
use crate::value::write::Writer;
use crate::value::{Document, Timestamp};

/// The bytes of an empty document.
const EMPTY: [u8; 5] = [5, 0, 0, 0, 0];

/// A document in BSON, always well-formed. Cloning shares the bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct RawDocument(Bytes);

impl RawDocument {
    /// Validates bytes that must be exactly one document.
    pub fn parse(bytes: Bytes) -> Result<RawDocument> {
        let end = check_document(&bytes, 0, 0)?;
        if end != bytes.len() {
            return Err(Error::malformed(format!("{} bytes after the document", bytes.len() - end)));
        }
        Ok(RawDocument(bytes))
    }

    /// Wraps bytes that were a document when they were stored. Only the frame is checked again: a store has checksums, and a
    /// reader of damaged elements ends early.
    pub fn from_stored(bytes: Bytes) -> Result<RawDocument> {
        if framed(&bytes, 0, EMPTY.len(), "a document")? != bytes.len() || bytes[bytes.len() - 1] != 0 {
            return Err(Error::malformed("a stored document of wrong length"));
        }
        Ok(RawDocument(bytes))
    }

    /// Splits the document off the beginning of `bytes` and validates it.
    pub fn split_from(bytes: &mut Bytes) -> Result<RawDocument> {
        let end = check_document(bytes, 0, 0)?;
        Ok(RawDocument(bytes.split_to(end)))
    }

    /// Encodes a tree. Trees come from validated bytes or from code; a name with a zero byte is truncated there.
    pub fn from_document(document: &Document) -> RawDocument {
        RawDocument::from_view(document.view())
    }

    /// Encodes a borrowed document.
    pub fn from_view(document: DocumentRef<'_>) -> RawDocument {
        let mut writer = Writer::default();
        for (name, value) in document.iter() {
            writer.field(name, value);
        }
        writer.finish()
    }

    pub(crate) fn from_writer(bytes: Vec<u8>) -> RawDocument {
        RawDocument(bytes.into())
    }

    /// Returns the reader.
    pub fn view(&self) -> DocumentRef<'_> {
        DocumentRef::of_elements(self.0.get(4..self.0.len() - 1).unwrap_or_default())
    }

    /// Returns the value of a field.
    pub fn get(&self, name: &str) -> Option<ValueRef<'_>> {
        self.view().get(name)
    }

    /// Returns an owned tree.
    pub fn to_document(&self) -> Document {
        self.view().to_document()
    }

    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the bytes, shared.
    pub fn into_bytes(self) -> Bytes {
        self.0
    }
}

impl Default for RawDocument {
    fn default() -> RawDocument {
        RawDocument(Bytes::from_static(&EMPTY))
    }
}

impl From<&Document> for RawDocument {
    fn from(document: &Document) -> RawDocument {
        RawDocument::from_document(document)
    }
}

impl fmt::Debug for RawDocument {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_map().entries(self.view().iter()).finish()
    }
}

/// The elements of a checked document or array.
#[derive(Debug, Clone)]
pub(crate) struct Elements<'a>(&'a [u8]);

impl<'a> Elements<'a> {
    pub(crate) fn new(elements: &'a [u8]) -> Elements<'a> {
        Elements(elements)
    }

    /// Returns the value of a name. The elements before it are skipped without being decoded: dozens of names are looked up
    /// in a command.
    pub(crate) fn find(self, name: &str) -> Option<ValueRef<'a>> {
        let mut rest = self.0;
        loop {
            let (code, named) = rest.split_first()?;
            let kind = Kind::from_code(*code as i8)?;
            let end = named.iter().position(|byte| *byte == 0)?;
            let value = &named[end + 1..];
            if &named[..end] == name.as_bytes() {
                return Some(read(kind, value)?.0);
            }
            rest = value.get(length_of(kind, value)?..)?;
        }
    }
}

/// Returns the length of a value whose bytes were validated.
fn length_of(kind: Kind, bytes: &[u8]) -> Option<usize> {
    let c_string =
        |from: usize| bytes.get(from..)?.iter().position(|byte| *byte == 0).map(|at| from + at + 1);
    Some(match kind {
        Kind::Undefined | Kind::Null | Kind::MinKey | Kind::MaxKey => 0,
        Kind::Bool => 1,
        Kind::Int32 => 4,
        Kind::Double | Kind::DateTime | Kind::Timestamp | Kind::Int64 => 8,
        Kind::ObjectId => 12,
        Kind::Decimal128 => 16,
        Kind::String | Kind::JavaScript | Kind::Symbol => length_at(bytes)?.checked_add(4)?,
        Kind::Document | Kind::Array | Kind::JavaScriptWithScope => length_at(bytes)?,
        Kind::Binary => length_at(bytes)?.checked_add(5)?,
        Kind::DbPointer => length_at(bytes)?.checked_add(16)?,
        Kind::Regex => c_string(c_string(0)?)?,
    })
}

impl<'a> Iterator for Elements<'a> {
    type Item = (&'a str, ValueRef<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (code, rest) = self.0.split_first()?;
        let (name, rest) = c_string(rest)?;
        let (value, rest) = read(Kind::from_code(*code as i8)?, rest)?;
        self.0 = rest;
        Some((name, value))
    }
}

/// Reads one value whose bytes were checked, and what follows it.
fn read(kind: Kind, bytes: &[u8]) -> Option<(ValueRef<'_>, &[u8])> {
    let fixed = |value, length: usize| Some((value, bytes.get(length..)?));
    match kind {
        Kind::Double => fixed(ValueRef::Double(f64::from_le_bytes(*bytes.first_chunk()?)), 8),
        Kind::String => string(bytes).map(|(text, rest)| (ValueRef::String(text), rest)),
        Kind::JavaScript => string(bytes).map(|(code, rest)| (ValueRef::JavaScript(code), rest)),
        Kind::Symbol => string(bytes).map(|(text, rest)| (ValueRef::Symbol(text), rest)),
        Kind::Document => {
            elements(bytes).map(|(inner, rest)| (ValueRef::Document(DocumentRef::of_elements(inner)), rest))
        }
        Kind::Array => {
            elements(bytes).map(|(inner, rest)| (ValueRef::Array(ArrayRef::of_elements(inner)), rest))
        }
        Kind::Binary => {
            let length = length_at(bytes)?;
            let subtype = *bytes.get(4)?;
            let value = BinaryRef { subtype, bytes: bytes.get(5..5 + length)? };
            fixed(ValueRef::Binary(value), 5 + length)
        }
        Kind::Undefined => fixed(ValueRef::Undefined, 0),
        Kind::ObjectId => fixed(ValueRef::ObjectId(ObjectId(*bytes.first_chunk()?)), 12),
        Kind::Bool => fixed(ValueRef::Bool(*bytes.first()? != 0), 1),
        Kind::DateTime => fixed(ValueRef::DateTime(i64::from_le_bytes(*bytes.first_chunk()?)), 8),
        Kind::Null => fixed(ValueRef::Null, 0),
        Kind::Regex => {
            let (pattern, rest) = c_string(bytes)?;
            let (options, rest) = c_string(rest)?;
            Some((ValueRef::Regex(RegexRef { pattern, options }), rest))
        }
        Kind::DbPointer => {
            let (namespace, rest) = string(bytes)?;
            let (id, rest) = rest.split_first_chunk::<12>()?;
            Some((ValueRef::DbPointer { namespace, id: ObjectId(*id) }, rest))
        }
        Kind::JavaScriptWithScope => {
            let (code, rest) = string(bytes.get(4..)?)?;
            let (scope, rest) = elements(rest)?;
            let scope = DocumentRef::of_elements(scope);
            Some((ValueRef::JavaScriptWithScope { code, scope }, rest))
        }
        Kind::Int32 => fixed(ValueRef::Int32(i32::from_le_bytes(*bytes.first_chunk()?)), 4),
        Kind::Timestamp => {
            let bits = u64::from_le_bytes(*bytes.first_chunk()?);
            let timestamp = Timestamp { seconds: (bits >> 32) as u32, increment: bits as u32 };
            fixed(ValueRef::Timestamp(timestamp), 8)
        }
        Kind::Int64 => fixed(ValueRef::Int64(i64::from_le_bytes(*bytes.first_chunk()?)), 8),
        Kind::Decimal128 => fixed(ValueRef::Decimal128(Decimal128(*bytes.first_chunk()?)), 16),
        Kind::MinKey => fixed(ValueRef::MinKey, 0),
        Kind::MaxKey => fixed(ValueRef::MaxKey, 0),
    }
}

fn length_at(bytes: &[u8]) -> Option<usize> {
    usize::try_from(i32::from_le_bytes(*bytes.first_chunk()?)).ok()
}

fn c_string(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    Some((std::str::from_utf8(&bytes[..end]).ok()?, &bytes[end + 1..]))
}

fn string(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let length = length_at(bytes)?;
    let text = bytes.get(4..(4 + length).checked_sub(1)?)?;
    Some((std::str::from_utf8(text).ok()?, bytes.get(4 + length..)?))
}

/// Returns the inside of a document or array.
fn elements(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = length_at(bytes)?;
    Some((bytes.get(4..length.checked_sub(1)?)?, bytes.get(length..)?))
}

/// Checks the document that begins at `start` and returns its end.
fn check_document(bytes: &[u8], start: usize, depth: usize) -> Result<usize> {
    if depth >= limits::DEPTH_MAX {
        return Err(Error::TooDeep);
    }
    let end = framed(bytes, start, 5, "a document")?;
    if bytes[end - 1] != 0 {
        return Err(Error::malformed("a document does not end with a zero byte"));
    }
    let mut at = start + 4;
    let inner = &bytes[..end - 1];
    while at < inner.len() {
        let code = inner[at];
        let kind = Kind::from_code(code as i8)
            .ok_or_else(|| Error::malformed(format!("unknown element type 0x{code:02x}")))?;
        at = check_c_string(inner, at + 1)?;
        at = check_value(inner, at, kind, depth)?;
    }
    Ok(end)
}

fn check_value(bytes: &[u8], at: usize, kind: Kind, depth: usize) -> Result<usize> {
    let fixed = match kind {
        Kind::Undefined | Kind::Null | Kind::MinKey | Kind::MaxKey => 0,
        Kind::Bool => match bytes.get(at) {
            Some(0 | 1) => 1,
            _ => return Err(Error::malformed("a boolean that is neither 0 nor 1")),
        },
        Kind::Int32 => 4,
        Kind::Double | Kind::DateTime | Kind::Timestamp | Kind::Int64 => 8,
        Kind::ObjectId => 12,
        Kind::Decimal128 => 16,
        Kind::String | Kind::JavaScript | Kind::Symbol => return check_string(bytes, at),
        Kind::Document | Kind::Array => return check_document(bytes, at, depth + 1),
        Kind::Regex => return check_c_string(bytes, check_c_string(bytes, at)?),
        Kind::DbPointer => return skip(bytes, check_string(bytes, at)?, 12),
        Kind::Binary => {
            let length = declared(bytes, at, "binary data")?;
            return skip(bytes, at, 5 + length);
        }
        Kind::JavaScriptWithScope => {
            let end = framed(bytes, at, 14, "code with scope")?;
            let scope = check_string(&bytes[..end], at + 4)?;
            if check_document(&bytes[..end], scope, depth + 1)? != end {
                return Err(Error::malformed("the length of code with scope is wrong"));
            }
            return Ok(end);
        }
    };
    skip(bytes, at, fixed)
}

fn skip(bytes: &[u8], at: usize, length: usize) -> Result<usize> {
    match at.checked_add(length) {
        Some(end) if end <= bytes.len() => Ok(end),
        _ => Err(Error::malformed("a value is cut off")),
    }
}

fn declared(bytes: &[u8], at: usize, what: &str) -> Result<usize> {
    bytes
        .get(at..)
        .and_then(length_at)
        .ok_or_else(|| Error::malformed(format!("{what} without a length or with a negative one")))
}

/// Returns the end of something whose length counts itself.
fn framed(bytes: &[u8], start: usize, least: usize, what: &str) -> Result<usize> {
    let length = declared(bytes, start, what)?;
    if length < least || length > bytes.len() - start {
        return Err(Error::malformed(format!(
            "{what} claims {length} bytes, but {} are there",
            bytes.len() - start
        )));
    }
    Ok(start + length)
}

fn check_c_string(bytes: &[u8], at: usize) -> Result<usize> {
    let rest = bytes.get(at..).unwrap_or_default();
    let length =
        rest.iter().position(|byte| *byte == 0).ok_or_else(|| Error::malformed("a name without end"))?;
    std::str::from_utf8(&rest[..length]).map_err(|_| Error::malformed("a name that is not UTF-8"))?;
    Ok(at + length + 1)
}

fn check_string(bytes: &[u8], at: usize) -> Result<usize> {
    let length = declared(bytes, at, "a string")?;
    let end = skip(bytes, at, 4 + length)?;
    if length == 0 || bytes[end - 1] != 0 {
        return Err(Error::malformed("a string does not end with a zero byte"));
    }
    std::str::from_utf8(&bytes[at + 4..end - 1])
        .map_err(|_| Error::malformed("a string that is not UTF-8"))?;
    Ok(end)
}

//! Rows of any schema: a value or nothing for each field.

use crate::Error;
use crate::reader::{Reader, put_varuint};
use crate::schema::{Field, Kind, Schema, Storage};

/// The first byte of every row: version 1 of the format.
pub(crate) const VERSION: u8 = 0x81;

/// A value of a field. Texts and bytes are those of the input.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Value<'a> {
    Int32(i32),
    UInt32(u32),
    Float64(f64),
    Bool(bool),
    Utf8(&'a str),
    Binary(&'a [u8]),
}

/// The type codes of sparse fields.
const FALSE: u8 = 2;
const TRUE: u8 = 3;
const INT32: u8 = 7;
const UINT32: u8 = 11;
const FLOAT64: u8 = 16;
const UTF8: u8 = 20;
const BINARY: u8 = 21;

/// The values of a row, in the order of its schema's fields.
pub(crate) type Row<'a> = Vec<Option<Value<'a>>>;

/// Reads one row.
pub(crate) fn decode<'a>(
    reader: &mut Reader<'a>,
    schema: &Schema,
    has_sparse: bool,
) -> Result<Row<'a>, Error> {
    let version = reader.byte("a row's version")?;
    if version != VERSION {
        return Err(Error::Version { found: version });
    }
    let found = reader.u32("a row's schema")?;
    if found != schema.id {
        return Err(Error::Schema { expected: schema.id, found });
    }
    let mut presence = if schema.nullable { reader.byte("a row's presence bits")? } else { u8::MAX };
    let mut row: Row<'a> = Vec::with_capacity(schema.fields.len());
    for field in schema.fields {
        let value = match field.storage {
            Storage::Sparse => None,
            Storage::Fixed | Storage::Variable => {
                let is_present = presence & 1 == 1;
                presence >>= 1;
                if is_present { Some(positional(reader, field)?) } else { None }
            }
        };
        row.push(value);
    }
    if schema.nullable && presence != 0 {
        return Err(Error::Form { what: "presence bits beyond its schema's fields" });
    }
    while has_sparse && !reader.is_empty() {
        let (number, value) = sparse(reader, schema)?;
        if row[number].replace(value).is_some() {
            return Err(Error::Form { what: "a sparse field twice" });
        }
    }
    Ok(row)
}

/// Reads a fixed or variable field.
fn positional<'a>(reader: &mut Reader<'a>, field: &Field) -> Result<Value<'a>, Error> {
    let name = field.name;
    Ok(match field.kind {
        Kind::Int32 => Value::Int32(i32::from_le_bytes(reader.array(name)?)),
        Kind::UInt32 => Value::UInt32(reader.u32(name)?),
        Kind::Float64 => Value::Float64(f64::from_le_bytes(reader.array(name)?)),
        Kind::Bool => Value::Bool(reader.byte(name)? != 0),
        Kind::Utf8 => Value::Utf8(text(reader, name)?),
        Kind::Binary => Value::Binary(bytes(reader, name)?),
    })
}

/// Reads a sparse field; returns its place in the schema with its value.
fn sparse<'a>(reader: &mut Reader<'a>, schema: &Schema) -> Result<(usize, Value<'a>), Error> {
    let code = reader.byte("a sparse field's type")?;
    let token = reader.varuint("a sparse field's path")?;
    let number = usize::try_from(token).unwrap_or(usize::MAX).wrapping_sub(1);
    let field = schema.fields.get(number).filter(|field| field.storage == Storage::Sparse);
    let Some(field) = field else { return Err(Error::UnknownField { token }) };
    let value = match (field.kind, code) {
        (Kind::Bool, FALSE) => Value::Bool(false),
        (Kind::Bool, TRUE) => Value::Bool(true),
        (Kind::Int32, INT32)
        | (Kind::UInt32, UINT32)
        | (Kind::Float64, FLOAT64)
        | (Kind::Utf8, UTF8)
        | (Kind::Binary, BINARY) => positional(reader, field)?,
        (kind, code) => return Err(Error::Type { field: field.name, code, expected: kind.name() }),
    };
    Ok((number, value))
}

fn bytes<'a>(reader: &mut Reader<'a>, name: &'static str) -> Result<&'a [u8], Error> {
    let length = reader.varuint(name)?;
    reader.take(usize::try_from(length).unwrap_or(usize::MAX), name)
}

fn text<'a>(reader: &mut Reader<'a>, name: &'static str) -> Result<&'a str, Error> {
    std::str::from_utf8(bytes(reader, name)?)
        .map_err(|_| Error::Field { field: name, reason: "is not UTF-8" })
}

/// Appends one row.
pub(crate) fn encode(out: &mut Vec<u8>, row: &Row<'_>, schema: &Schema) {
    out.push(VERSION);
    out.extend_from_slice(&schema.id.to_le_bytes());
    let fields = || schema.fields.iter().zip(row).enumerate();
    if schema.nullable {
        let counted = fields().filter(|(_, (field, _))| field.storage != Storage::Sparse);
        let presence =
            counted.fold(0, |bits, (number, (_, value))| bits | u8::from(value.is_some()) << number);
        out.push(presence);
    }
    for (number, (field, value)) in fields() {
        let Some(value) = value else { continue };
        if field.storage == Storage::Sparse {
            out.push(type_code(value));
            put_varuint(out, number as u64 + 1);
            if matches!(value, Value::Bool(_)) {
                continue;
            }
        }
        put(out, value);
    }
}

fn put(out: &mut Vec<u8>, value: &Value<'_>) {
    match value {
        Value::Int32(number) => out.extend_from_slice(&number.to_le_bytes()),
        Value::UInt32(number) => out.extend_from_slice(&number.to_le_bytes()),
        Value::Float64(number) => out.extend_from_slice(&number.to_le_bytes()),
        Value::Bool(flag) => out.push(u8::from(*flag)),
        Value::Utf8(text) => put_bytes(out, text.as_bytes()),
        Value::Binary(bytes) => put_bytes(out, bytes),
    }
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varuint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn type_code(value: &Value<'_>) -> u8 {
    match value {
        Value::Int32(_) => INT32,
        Value::UInt32(_) => UINT32,
        Value::Float64(_) => FLOAT64,
        Value::Bool(false) => FALSE,
        Value::Bool(true) => TRUE,
        Value::Utf8(_) => UTF8,
        Value::Binary(_) => BINARY,
    }
}

/// The values of a row, taken in the order of the schema.
pub(crate) struct Values<'a>(std::vec::IntoIter<Option<Value<'a>>>);

impl<'a> Values<'a> {
    pub(crate) fn of(row: Row<'a>) -> Self {
        Self(row.into_iter())
    }

    fn next(&mut self) -> Option<Value<'a>> {
        self.0.next().flatten()
    }

    pub(crate) fn i32(&mut self) -> Option<i32> {
        self.next().and_then(|value| if let Value::Int32(number) = value { Some(number) } else { None })
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.next().and_then(|value| if let Value::UInt32(number) = value { Some(number) } else { None })
    }

    pub(crate) fn f64(&mut self) -> Option<f64> {
        self.next().and_then(|value| if let Value::Float64(number) = value { Some(number) } else { None })
    }

    pub(crate) fn bool(&mut self) -> Option<bool> {
        self.next().and_then(|value| if let Value::Bool(flag) = value { Some(flag) } else { None })
    }

    pub(crate) fn text(&mut self) -> Option<&'a str> {
        self.next().and_then(|value| if let Value::Utf8(text) = value { Some(text) } else { None })
    }

    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        self.next().and_then(|value| if let Value::Binary(bytes) = value { Some(bytes) } else { None })
    }
}

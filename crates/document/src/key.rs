//! Ordered keys: bytes that sort as the values do.
//!
//! An index is an ordered map of bytes, so the order of [`crate::total_order`] has to be the order of bytes.
//! Every key ends by itself (no key is the beginning of another), so keys can be put one after the other, and
//! turning every bit around gives the descending order.
//!
//! ```text
//! 0x01  undefined
//! 0x02  null
//! 0x03  false
//! 0x04  true
//! 0x05  number   8 bytes ordered double, big-endian, then the remainder (below)
//! 0x06  string   UTF-8 bytes, 0x00 written as 0x00 0xFF, then 0x00 0x00
//! 0x07  array    the items, then 0x00
//! 0x08  object   members sorted by name: 0x01, name as in a string without its tag, value; then 0x00
//! ```
//!
//! Ordered double: the IEEE bits with the sign bit set for positive numbers, all bits turned for negative ones.
//! Doubles hold integers exactly only up to 2^53, so a number is written as its nearest double and what the
//! integer has more or less than that:
//!
//! ```text
//! 0x80              the double is the number
//! 0x81 u16          the integer is larger by that much   (big-endian)
//! 0x7F u16          the integer is smaller: 65536 minus the difference
//! ```
//!
//! The difference is at most 512, half the step between doubles near 2^63. `1`, `1.0` are one key, and so are
//! `0.0` and `-0.0`: a key represents the number, not its spelling.

use crate::error::{Error, Result};
use crate::limits;
use crate::order::sorted_members;
use crate::value::view::{ValueRef, whole};
use crate::value::{Object, Value};

const END: u8 = 0x00;
const UNDEFINED: u8 = 0x01;
const NULL: u8 = 0x02;
const FALSE: u8 = 0x03;
const TRUE: u8 = 0x04;
const NUMBER: u8 = 0x05;
const STRING: u8 = 0x06;
const ARRAY: u8 = 0x07;
const OBJECT: u8 = 0x08;
const MEMBER: u8 = 0x01;
const ESCAPE: u8 = 0xFF;

const SMALLER: u8 = 0x7F;
const EXACT: u8 = 0x80;
const LARGER: u8 = 0x81;
const SIGN: u64 = 1 << 63;

/// Appends the key of a value; `None` is undefined.
pub fn encode_key(value: Option<ValueRef<'_>>, out: &mut Vec<u8>) {
    match value {
        None => out.push(UNDEFINED),
        Some(ValueRef::Null) => out.push(NULL),
        Some(ValueRef::Bool(false)) => out.push(FALSE),
        Some(ValueRef::Bool(true)) => out.push(TRUE),
        Some(ValueRef::Int(i)) => encode_int(i, out),
        Some(ValueRef::Double(d)) => encode_double(d, out),
        Some(ValueRef::String(s)) => encode_str(s, out),
        Some(ValueRef::Array(items)) => {
            out.push(ARRAY);
            for item in items.iter() {
                encode_key(Some(item), out);
            }
            out.push(END);
        }
        Some(ValueRef::Object(object)) => {
            out.push(OBJECT);
            for (name, member) in sorted_members(object) {
                out.push(MEMBER);
                encode_text(name, out);
                encode_key(Some(member), out);
            }
            out.push(END);
        }
    }
}

/// Appends the key that sorts the other way round.
pub fn encode_key_descending(value: Option<ValueRef<'_>>, out: &mut Vec<u8>) {
    let start = out.len();
    encode_key(value, out);
    for byte in &mut out[start..] {
        *byte = !*byte;
    }
}

/// Reads one key and returns what follows it. Numbers come back as integers where they are whole and fit, and
/// members in the order of their names.
pub fn decode_key(bytes: &[u8]) -> Result<(Option<Value>, &[u8])> {
    match bytes.split_first() {
        Some((&UNDEFINED, rest)) => Ok((None, rest)),
        _ => decode_value(bytes, 0).map(|(value, rest)| (Some(value), rest)),
    }
}

/// Reads one key written by [`encode_key_descending`].
pub fn decode_key_descending(bytes: &[u8]) -> Result<(Option<Value>, &[u8])> {
    let turned: Vec<u8> = bytes.iter().map(|byte| !byte).collect();
    let (value, rest) = decode_key(&turned)?;
    let used = bytes.len() - rest.len();
    Ok((value, &bytes[used..]))
}

pub(crate) fn encode_int(value: i64, out: &mut Vec<u8>) {
    let nearest = value as f64;
    let difference = i128::from(value) - nearest as i128;
    out.push(NUMBER);
    out.extend_from_slice(&ordered(nearest).to_be_bytes());
    match difference {
        0 => out.push(EXACT),
        1.. => out.push(LARGER),
        _ => out.push(SMALLER),
    }
    if difference != 0 {
        // Two's complement is exactly "65536 minus the difference" for the negative side.
        out.extend_from_slice(&(difference as u16).to_be_bytes());
    }
}

pub(crate) fn encode_double(value: f64, out: &mut Vec<u8>) {
    out.push(NUMBER);
    out.extend_from_slice(&ordered(value).to_be_bytes());
    out.push(EXACT);
}

pub(crate) fn encode_str(text: &str, out: &mut Vec<u8>) {
    out.push(STRING);
    encode_text(text, out);
}

fn encode_text(text: &str, out: &mut Vec<u8>) {
    let mut rest = text.as_bytes();
    while let Some(zero) = rest.iter().position(|&byte| byte == 0) {
        out.extend_from_slice(&rest[..=zero]);
        out.push(ESCAPE);
        rest = &rest[zero + 1..];
    }
    out.extend_from_slice(rest);
    out.extend_from_slice(&[END, END]);
}

/// Returns the bits of a double, turned so that unsigned order is numeric order.
fn ordered(value: f64) -> u64 {
    // Adding zero turns -0.0 into 0.0 and changes nothing else.
    let bits = (value + 0.0).to_bits();
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

fn unordered(bits: u64) -> f64 {
    f64::from_bits(if bits & SIGN == 0 { !bits } else { bits & !SIGN })
}

fn cut_short() -> Error {
    Error::corrupt("a key is cut short")
}

fn decode_value(bytes: &[u8], depth: usize) -> Result<(Value, &[u8])> {
    let (&tag, rest) = bytes.split_first().ok_or_else(cut_short)?;
    match tag {
        NULL => Ok((Value::Null, rest)),
        FALSE => Ok((Value::Bool(false), rest)),
        TRUE => Ok((Value::Bool(true), rest)),
        NUMBER => decode_number(rest),
        STRING => decode_text(rest).map(|(text, rest)| (Value::String(text), rest)),
        ARRAY | OBJECT if depth >= limits::NESTING_DEPTH => Err(Error::corrupt("a key is nested too deep")),
        ARRAY => decode_array(rest, depth),
        OBJECT => decode_object(rest, depth),
        _ => Err(Error::corrupt(format!("unknown tag {tag:#04x} in a key"))),
    }
}

fn decode_array(mut bytes: &[u8], depth: usize) -> Result<(Value, &[u8])> {
    let mut items = Vec::new();
    loop {
        if let Some((&END, rest)) = bytes.split_first() {
            return Ok((Value::Array(items), rest));
        }
        let (item, rest) = decode_value(bytes, depth + 1)?;
        items.push(item);
        bytes = rest;
    }
}

fn decode_object(mut bytes: &[u8], depth: usize) -> Result<(Value, &[u8])> {
    let mut members = Object::new();
    loop {
        match bytes.split_first().ok_or_else(cut_short)? {
            (&END, rest) => return Ok((Value::Object(members), rest)),
            (&MEMBER, rest) => {
                let (name, rest) = decode_text(rest)?;
                let (value, rest) = decode_value(rest, depth + 1)?;
                members.push_new(name, value);
                bytes = rest;
            }
            (tag, _) => {
                return Err(Error::corrupt(format!("unknown tag {tag:#04x} before a member in a key")));
            }
        }
    }
}

fn decode_number(bytes: &[u8]) -> Result<(Value, &[u8])> {
    let (bits, rest) = bytes.split_first_chunk::<8>().ok_or_else(cut_short)?;
    let double = unordered(u64::from_be_bytes(*bits));
    let (&remainder, rest) = rest.split_first().ok_or_else(cut_short)?;
    if remainder == EXACT {
        return Ok((whole(double).map_or(Value::Double(double), Value::Int), rest));
    }
    let (difference, rest) = rest.split_first_chunk::<2>().ok_or_else(cut_short)?;
    let difference = i128::from(u16::from_be_bytes(*difference));
    // Saturating, because a garbled double may stand for anything.
    let exact = match remainder {
        LARGER => (double as i128).saturating_add(difference),
        SMALLER => (double as i128).saturating_add(difference - 65_536),
        _ => return Err(Error::corrupt(format!("unknown remainder {remainder:#04x} in a key"))),
    };
    let exact = i64::try_from(exact).map_err(|_| Error::corrupt("an integer in a key is out of range"))?;
    Ok((Value::Int(exact), rest))
}

fn decode_text(bytes: &[u8]) -> Result<(String, &[u8])> {
    let mut text = Vec::new();
    let mut rest = bytes;
    loop {
        let zero = rest.iter().position(|&byte| byte == END).ok_or_else(cut_short)?;
        let after = *rest.get(zero + 1).ok_or_else(cut_short)?;
        match after {
            END => {
                text.extend_from_slice(&rest[..zero]);
                let text =
                    String::from_utf8(text).map_err(|_| Error::corrupt("text in a key is not UTF-8"))?;
                return Ok((text, &rest[zero + 2..]));
            }
            ESCAPE => text.extend_from_slice(&rest[..=zero]),
            _ => return Err(Error::corrupt("text in a key has a bad escape")),
        }
        rest = &rest[zero + 2..];
    }
}

//! Ordered keys: bytes that sort as the values do.
//!
//! An index is an ordered map of bytes, so the order of [`Collation::compare_values`] has to be the order of bytes. Every key
//! ends by itself (no key is the beginning of another), so keys can be put one after the other, and turning every bit around
//! gives the descending order. A key begins with its class, `Kind::class() + 1`:
//!
//! ```text
//! 01 MinKey, 02 undefined, 03 null, 11 MaxKey     nothing more
//! 04 number               8 bytes ordered double, big-endian, then what the number has beyond it (below)
//! 05 string, symbol       text: the sort key of the collation, 00 written as 00 FF, then 00 00
//! 06 document             fields, 00; a field is the class of its value, its name as text, the value without its class
//! 07 array                the items, 00
//! 08 binary               u32 length, subtype, bytes
//! 09 ObjectId             12 bytes
//! 0A bool                 00 or 01
//! 0B date                 8 bytes, sign bit turned
//! 0C timestamp            u32 seconds, u32 increment
//! 0D regex                pattern as text, flags as text (both without collation)
//! 0E DBPointer            u32 length, namespace, 12 bytes
//! 0F code                 text without collation
//! 10 code with scope      text without collation, then the scope as a document without its class
//! ```
//!
//! Numbers of all four types are one class and equal numbers are one key. The double is the one nearest to the number on the
//! side of zero; the bits have the sign bit set for positive numbers, all bits turned for negative ones, and NaN is eight
//! zeros. What follows says whether that is all:
//!
//! ```text
//! 80                          the double is the number
//! 81 u16 u120                 farther from zero: exponent and coefficient of the number as a decimal of 34 digits
//! 7E ~(u16 u120)              the same of a negative number
//! ```
//!
//! A number that is no double is an int, a long or a decimal, so 34 digits always hold it exactly. Negative zero is zero; the
//! bits of a negative zero stand for the negative decimals that are too small for a double.
//!
//! **Long values.** A key longer than [`KEY_BYTES_MAX`] is truncated there, and a hash of the rest is appended. Equal
//! values still have equal keys and different ones different keys, so such an index serves equality and uniqueness; a cut
//! key sorts correctly against every key that differs within the part that was kept. But values that share that part are in
//! the order of the hash: an index with cut keys does not serve a sort, and a range has to include everything that begins
//! as its bound does ([`Extent::Cut`] says so).

use sha2::{Digest as _, Sha256};

use crate::collation::Collation;
use crate::decimal::{DIGITS_MAX, Decimal128, EXPONENT_MIN, Parts};
use crate::value::view::{DocumentRef, Kind, ValueRef};

/// Bytes of a key that are kept as they are. Thirty-two such keys, as many as an index has fields, stay within the
/// storage's limit of one key.
pub const KEY_BYTES_MAX: usize = 1536;
/// Bytes of the hash that replaces the truncated part.
pub const KEY_HASH_BYTES: usize = 16;

const END: u8 = 0x00;
const ESCAPE: u8 = 0xFF;
const EXACT: u8 = 0x80;
const LARGER: u8 = 0x81;
const SIGN: u64 = 1 << 63;

/// Whether a key holds all of its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// The key sorts exactly as the value does.
    Whole,
    /// The value was too long: [`KEY_BYTES_MAX`] bytes of the key, then a hash.
    Cut,
}

/// Appends the key of a value.
pub fn encode_key(value: ValueRef<'_>, collation: &Collation, out: &mut Vec<u8>) -> Extent {
    let start = out.len();
    out.push(class_byte(value.kind()));
    encode_content(value, collation, out);
    cut(start, out)
}

/// Appends the key that sorts the other way round.
pub fn encode_key_descending(value: ValueRef<'_>, collation: &Collation, out: &mut Vec<u8>) -> Extent {
    let start = out.len();
    let extent = encode_key(value, collation, out);
    for byte in &mut out[start..] {
        *byte = !*byte;
    }
    extent
}

/// Returns the first byte of the keys of this type.
pub fn class_byte(kind: Kind) -> u8 {
    kind.class() + 1
}

/// Appends a text in the form that keys use: self-delimiting, and sorted byte by byte.
pub fn encode_key_text(text: &[u8], out: &mut Vec<u8>) -> Extent {
    let start = out.len();
    encode_text(text, out);
    cut(start, out)
}

/// Shortens the key that begins at `start`, if it is too long.
///
/// No marker is needed: a whole key is never the beginning of another, so no whole key begins like a cut one.
fn cut(start: usize, out: &mut Vec<u8>) -> Extent {
    if out.len() - start <= KEY_BYTES_MAX {
        return Extent::Whole;
    }
    let hash = Sha256::digest(&out[start + KEY_BYTES_MAX..]);
    out.truncate(start + KEY_BYTES_MAX);
    out.extend_from_slice(&hash[..KEY_HASH_BYTES]);
    Extent::Cut
}

fn encode_content(value: ValueRef<'_>, collation: &Collation, out: &mut Vec<u8>) {
    match value {
        ValueRef::MinKey | ValueRef::Undefined | ValueRef::Null | ValueRef::MaxKey => {}
        ValueRef::Double(number) => encode_double(number, out),
        ValueRef::Int32(number) => encode_integer(number.into(), out),
        ValueRef::Int64(number) => encode_integer(number, out),
        ValueRef::Decimal128(number) => encode_decimal(number, out),
        ValueRef::String(text) | ValueRef::Symbol(text) if collation.is_simple() => {
            encode_text(text.as_bytes(), out);
        }
        ValueRef::String(text) | ValueRef::Symbol(text) => {
            let mut sort_key = Vec::new();
            collation.sort_key(text, &mut sort_key);
            encode_text(&sort_key, out);
        }
        ValueRef::Document(document) => encode_fields(document, collation, out),
        ValueRef::Array(items) => {
            for item in items.iter() {
                out.push(class_byte(item.kind()));
                encode_content(item, collation, out);
            }
            out.push(END);
        }
        ValueRef::Binary(binary) => {
            out.extend_from_slice(&(binary.bytes.len() as u32).to_be_bytes());
            out.push(binary.subtype);
            out.extend_from_slice(binary.bytes);
        }
        ValueRef::ObjectId(id) => out.extend_from_slice(&id.0),
        ValueRef::Bool(value) => out.push(u8::from(value)),
        ValueRef::DateTime(millis) => out.extend_from_slice(&(millis as u64 ^ SIGN).to_be_bytes()),
        ValueRef::Timestamp(time) => {
            out.extend_from_slice(&time.seconds.to_be_bytes());
            out.extend_from_slice(&time.increment.to_be_bytes());
        }
        ValueRef::Regex(regex) => {
            encode_text(regex.pattern.as_bytes(), out);
            encode_text(regex.options.as_bytes(), out);
        }
        ValueRef::DbPointer { namespace, id } => {
            out.extend_from_slice(&(namespace.len() as u32).to_be_bytes());
            out.extend_from_slice(namespace.as_bytes());
            out.extend_from_slice(&id.0);
        }
        ValueRef::JavaScript(code) => encode_text(code.as_bytes(), out),
        ValueRef::JavaScriptWithScope { code, scope } => {
            encode_text(code.as_bytes(), out);
            encode_fields(scope, collation, out);
        }
    }
}

fn encode_fields(document: DocumentRef<'_>, collation: &Collation, out: &mut Vec<u8>) {
    for (name, value) in document.iter() {
        out.push(class_byte(value.kind()));
        encode_text(name.as_bytes(), out);
        encode_content(value, collation, out);
    }
    out.push(END);
}

fn encode_text(text: &[u8], out: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(zero) = rest.iter().position(|&byte| byte == 0) {
        out.extend_from_slice(&rest[..=zero]);
        out.push(ESCAPE);
        rest = &rest[zero + 1..];
    }
    out.extend_from_slice(rest);
    out.extend_from_slice(&[END, END]);
}

fn encode_double(number: f64, out: &mut Vec<u8>) {
    // Adding zero turns -0.0 into 0.0 and changes nothing else.
    let bits = if number.is_nan() { 0 } else { ordered(number + 0.0) };
    out.extend_from_slice(&bits.to_be_bytes());
    out.push(EXACT);
}

fn encode_integer(number: i64, out: &mut Vec<u8>) {
    let nearest = number as f64;
    let difference = i128::from(number) - nearest as i128;
    if difference == 0 {
        return encode_double(nearest, out);
    }
    let away_from_zero = (difference < 0) == (number > 0);
    let below = if away_from_zero { toward_zero(nearest) } else { nearest };
    encode_beyond(below, number < 0, u128::from(number.unsigned_abs()), 0, out);
}

fn encode_decimal(number: Decimal128, out: &mut Vec<u8>) {
    let (negative, coefficient, exponent) = match number.parts() {
        Parts::NaN => return encode_double(f64::NAN, out),
        Parts::Infinity { negative } => {
            return encode_double(if negative { f64::NEG_INFINITY } else { f64::INFINITY }, out);
        }
        Parts::Finite { coefficient: 0, .. } => return encode_double(0.0, out),
        Parts::Finite { negative, coefficient, exponent } => (negative, coefficient, exponent),
    };
    let sign = if negative { "-" } else { "" };
    let nearest: f64 = format!("{sign}{coefficient}e{exponent}").parse().unwrap_or(0.0);
    let order = number.compare_double(nearest);
    if order.is_eq() {
        return encode_double(nearest, out);
    }
    let away_from_zero = order.is_lt() != negative;
    let below = if away_from_zero { toward_zero(nearest) } else { nearest };
    encode_beyond(below, negative, coefficient, exponent, out);
}

/// Appends a number that is farther from zero than `below`, the nearest double on the side of zero.
fn encode_beyond(below: f64, negative: bool, coefficient: u128, exponent: i32, out: &mut Vec<u8>) {
    let digits = coefficient.checked_ilog10().map_or(0, |log| log + 1);
    let missing = DIGITS_MAX - digits.min(DIGITS_MAX);
    // One representation for all: 34 digits without a leading zero. The exponent may then be below the minimum by 33.
    let coefficient = coefficient * 10_u128.pow(missing);
    let exponent = exponent - missing as i32 - (EXPONENT_MIN - DIGITS_MAX as i32);
    out.extend_from_slice(&ordered(below).to_be_bytes());
    let start = out.len();
    out.push(LARGER);
    out.extend_from_slice(&(exponent as u16).to_be_bytes());
    out.extend_from_slice(&coefficient.to_be_bytes()[1..]);
    if negative {
        for byte in &mut out[start..] {
            *byte = !*byte;
        }
    }
}

/// Returns the next double on the way to zero; the number is not zero.
fn toward_zero(number: f64) -> f64 {
    f64::from_bits(number.to_bits() - 1)
}

/// Returns the bits of a double, turned so that unsigned order is numeric order.
fn ordered(number: f64) -> u64 {
    let bits = number.to_bits();
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

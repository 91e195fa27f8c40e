//! The encodings of a string.
//!
//! Packed forms exist because hex, dates, GUIDs and base64 are common in items; all of them are ASCII. In the
//! table forms and in GUID strings the low half of a byte is the first character.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

use super::reader::{Reader, Width};
use crate::error::{Error, Result};

/// The strings of markers 0x20 to 0x3F.
const WELL_KNOWN: [&str; 32] = [
    "$s",
    "$t",
    "$v",
    "_attachments",
    "_etag",
    "_rid",
    "_self",
    "_ts",
    "attachments/",
    "coordinates",
    "geometry",
    "GeometryCollection",
    "id",
    "url",
    "Value",
    "label",
    "LineString",
    "link",
    "MultiLineString",
    "MultiPoint",
    "MultiPolygon",
    "name",
    "Name",
    "Type",
    "Point",
    "Polygon",
    "properties",
    "type",
    "value",
    "Feature",
    "FeatureCollection",
    "_id",
];

const LOWER_HEX: &[u8; 16] = b"0123456789abcdef";
const UPPER_HEX: &[u8; 16] = b"0123456789ABCDEF";
const DATE_TIME: &[u8; 16] = b" 0123456789:-.TZ";

/// Reads the string that `marker`, at offset `start`, announces.
pub(super) fn read<'a>(reader: &mut Reader<'a>, marker: u8, start: usize) -> Result<Cow<'a, str>> {
    let length = match marker {
        0x80..=0xBF => usize::from(marker & 0x7F),
        0xC0 => reader.uint(Width::One)?,
        0xC1 => reader.uint(Width::Two)?,
        0xC2 => reader.uint(Width::Four)?,
        0xC3 => return referenced(reader, Width::One, start),
        0xC4 => return referenced(reader, Width::Two, start),
        0xC5 => return referenced(reader, Width::Three, start),
        0xC6 => return referenced(reader, Width::Four, start),
        0x20..=0x3F => return Ok(WELL_KNOWN[usize::from(marker - 0x20)].into()),
        _ => return packed(reader, marker, start).map(Cow::Owned),
    };
    let text = std::str::from_utf8(reader.bytes(length)?);
    text.map(Cow::Borrowed).map_err(|_| Error::binary(start, "a string is not UTF-8"))
}

/// Returns the string at an earlier offset. It must not be a reference itself, so there are no chains.
fn referenced<'a>(reader: &mut Reader<'a>, width: Width, start: usize) -> Result<Cow<'a, str>> {
    let target = reader.uint(width)?;
    if target == 0 || target >= start {
        return Err(Error::binary(start, format!("a reference to offset {target} does not point back")));
    }
    let mut earlier = reader.elsewhere(target);
    let marker = earlier.u8()?;
    if matches!(marker, 0xC3..=0xC6) {
        return Err(Error::binary(start, "a reference points at a reference"));
    }
    read(&mut earlier, marker, target)
}

fn packed(reader: &mut Reader<'_>, marker: u8, start: usize) -> Result<String> {
    match marker {
        0x40..=0x67 => Err(Error::binary(start, "strings of a user dictionary are not supported")),
        0x71 => base64_text(reader, Width::One, &STANDARD),
        0x72 => base64_text(reader, Width::Two, &STANDARD),
        0x73 => base64_text(reader, Width::One, &URL_SAFE),
        0x74 => base64_text(reader, Width::Two, &URL_SAFE),
        0x75 => Ok(guid_text(reader.array()?, LOWER_HEX)),
        0x76 => Ok(guid_text(reader.array()?, UPPER_HEX)),
        0x77 => Ok(format!("\"{}\"", guid_text(reader.array()?, LOWER_HEX))),
        0x78 => table_text(reader, LOWER_HEX),
        0x79 => table_text(reader, UPPER_HEX),
        0x7A => table_text(reader, DATE_TIME),
        0x7B => offset_text(reader, 4, Width::One),
        0x7C => offset_text(reader, 5, Width::One),
        0x7D => offset_text(reader, 6, Width::One),
        0x7E => offset_text(reader, 7, Width::One),
        0x7F => offset_text(reader, 7, Width::Two),
        0xD3 => Ok(guid_value(reader.array()?)),
        0xDD => binary_text(reader, Width::One),
        0xDE => binary_text(reader, Width::Two),
        0xDF => binary_text(reader, Width::Four),
        0xCF => Err(Error::binary(start, "16-bit floats are not supported")),
        _ => Err(Error::binary(start, format!("unexpected marker {marker:#04x}"))),
    }
}

fn binary_text(reader: &mut Reader<'_>, width: Width) -> Result<String> {
    let length = reader.uint(width)?;
    Ok(STANDARD.encode(reader.bytes(length)?))
}

/// Reads base64 text that is stored decoded: the number of groups of four, then how many of the last group are
/// padding. The padding's complement means that the text had no padding.
fn base64_text(reader: &mut Reader<'_>, width: Width, alphabet: &impl base64::Engine) -> Result<String> {
    let length = reader.uint(width)? * 4;
    let padding = reader.u8()?;
    let written = padding <= 2;
    let padding = usize::from(if written { padding } else { !padding });
    if padding > 2 || padding > length {
        return Err(reader.error("the padding of a base64 string is not 0, 1 or 2"));
    }
    let mut text = alphabet.encode(reader.bytes((length - padding) * 3 / 4)?);
    if !written {
        text.truncate(length - padding);
    }
    Ok(text)
}

/// Returns the letters of a GUID, in the order in which they are written.
fn guid_text(bytes: [u8; 16], digits: &[u8; 16]) -> String {
    let mut text = String::with_capacity(38);
    for (index, byte) in bytes.into_iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push(digits[usize::from(byte & 0x0F)].into());
        text.push(digits[usize::from(byte >> 4)].into());
    }
    text
}

/// Returns a GUID as a number: its first three fields are little-endian.
fn guid_value(bytes: [u8; 16]) -> String {
    let mut turned = bytes;
    turned[0..4].reverse();
    turned[4..6].reverse();
    turned[6..8].reverse();
    guid_text(turned.map(|byte| byte.rotate_left(4)), LOWER_HEX)
}

/// Reads text with two characters in a byte, by a table of sixteen.
fn table_text(reader: &mut Reader<'_>, table: &[u8; 16]) -> Result<String> {
    let length = reader.uint(Width::One)?;
    let bytes = reader.bytes(length.div_ceil(2))?;
    let halves = bytes.iter().flat_map(|byte| [byte & 0x0F, byte >> 4]);
    if halves.clone().skip(length).any(|half| half != 0) {
        return Err(reader.error("a packed string has something after its last character"));
    }
    Ok(halves.take(length).map(|half| char::from(table[usize::from(half)])).collect())
}

/// Reads characters of `bits` bits each, lowest bits first. Those of less than seven bits count from a base character.
fn offset_text(reader: &mut Reader<'_>, bits: usize, width: Width) -> Result<String> {
    let length = reader.uint(width)?;
    let base = if bits < 7 { reader.u8()? } else { 0 };
    let bytes = reader.bytes((length * bits).div_ceil(8))?;
    let mask = (1_u16 << bits) - 1;
    let mut text = String::with_capacity(length);
    for index in 0..length {
        let bit = index * bits;
        let low = bytes[bit / 8];
        let high = bytes.get(bit / 8 + 1).copied().unwrap_or_default();
        let code = (u16::from_le_bytes([low, high]) >> (bit % 8) & mask) + u16::from(base);
        let character = u8::try_from(code).ok().filter(u8::is_ascii);
        let character = character.ok_or_else(|| reader.error("a packed string holds more than ASCII"))?;
        text.push(character.into());
    }
    Ok(text)
}

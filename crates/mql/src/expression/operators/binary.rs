//! Strings as binary data and back: the `format` of `$convert`, and `$toUUID`.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use bson::{Binary, BinaryRef, Value, ValueRef};

use crate::error::{Code, Error, Result};

/// The subtype of a UUID.
pub(super) const UUID: u8 = 4;
/// How many bytes lie before each dash of a UUID.
const UUID_DASHES: [usize; 4] = [4, 6, 8, 10];
const UUID_BYTES: usize = 16;

/// How bytes are written as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Base64,
    Base64Url,
    Hex,
    Utf8,
    Uuid,
    /// As a UUID if it is one, in base64 otherwise. Only from binary data.
    Auto,
}

impl Format {
    /// Reads the parameter `format`.
    pub(super) fn parse(value: ValueRef<'_>) -> Result<Format> {
        Ok(match value.as_str() {
            Some("base64") => Format::Base64,
            Some("base64url") => Format::Base64Url,
            Some("hex") => Format::Hex,
            Some("utf8") => Format::Utf8,
            Some("uuid") => Format::Uuid,
            Some("auto") => Format::Auto,
            Some(other) => {
                let message = format!(
                    "Invalid 'format' argument for $convert: {other}, expected one of base64, base64url, hex, utf8, \
                     uuid, auto"
                );
                return Err(Error::location(4_341_125, message));
            }
            None => {
                let found = value.kind().alias();
                let message = format!("$convert requires that 'format' be a string, found: {found}");
                return Err(Error::location(4_341_114, message));
            }
        })
    }
}

fn failure(what: &str) -> Error {
    Error::new(Code::CONVERSION_FAILURE, format!("{what} in $convert with no onError value"))
}

/// Returns a value as binary data of a subtype.
pub(super) fn to_binary(value: ValueRef<'_>, subtype: u8, format: Option<Format>) -> Result<Value> {
    let bytes = match value {
        ValueRef::Binary(binary) if binary.subtype == subtype => return Ok(value.to_value()),
        ValueRef::Binary(binary) => {
            let own = binary.subtype;
            return Err(failure(&format!(
                "Conversions between different binData subtypes ({own} to {subtype})"
            )));
        }
        ValueRef::String(text) => from_text(text, subtype, format)?,
        other => {
            let from = other.kind().alias();
            return Err(failure(&format!("Unsupported conversion from {from} to binData")));
        }
    };
    Ok(Value::Binary(Binary { subtype, bytes }))
}

fn from_text(text: &str, subtype: u8, format: Option<Format>) -> Result<Vec<u8>> {
    let Some(format) = format else {
        return Err(failure("Unsupported conversion from string to binData without a 'format'"));
    };
    let is_uuid = format == Format::Uuid;
    if is_uuid != (subtype == UUID) {
        let message = format!(
            "The format 'uuid' goes with the binData subtype {UUID} and with no other, not {subtype}"
        );
        return Err(failure(&message));
    }
    let bytes = match format {
        Format::Base64 => STANDARD.decode(text).ok(),
        Format::Base64Url => URL_SAFE.decode(text).ok(),
        Format::Hex => from_hex(text),
        Format::Utf8 => Some(text.as_bytes().to_vec()),
        Format::Uuid => from_uuid(text),
        Format::Auto => {
            return Err(failure("The format 'auto' is not one of a conversion from string to binData"));
        }
    };
    bytes.ok_or_else(|| failure(&format!("Input string '{}' does not match the 'format'", shown(text))))
}

/// Binary data as a text.
pub(super) fn to_text(binary: BinaryRef<'_>, format: Option<Format>) -> Result<String> {
    let is_uuid = binary.subtype == UUID && binary.bytes.len() == UUID_BYTES;
    let format = match format {
        None => return Err(failure("Unsupported conversion from binData to string without a 'format'")),
        Some(Format::Auto) if is_uuid => Format::Uuid,
        Some(Format::Auto) => Format::Base64,
        Some(Format::Uuid) if !is_uuid => {
            return Err(failure("The format 'uuid' goes with 16 bytes of the binData subtype 4"));
        }
        Some(format) => format,
    };
    Ok(match format {
        Format::Base64 | Format::Auto => STANDARD.encode(binary.bytes),
        Format::Base64Url => URL_SAFE.encode(binary.bytes),
        Format::Hex => hex(binary.bytes).to_uppercase(),
        Format::Uuid => uuid(binary.bytes),
        Format::Utf8 => match std::str::from_utf8(binary.bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => return Err(failure("The bytes are not UTF-8")),
        },
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(16)).collect();
    let digits = digits.filter(|digits| digits.len().is_multiple_of(2))?;
    Some(digits.chunks_exact(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect())
}

fn uuid(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (place, byte) in bytes.iter().enumerate() {
        if UUID_DASHES.contains(&place) {
            text.push('-');
        }
        text.push_str(&hex(&[*byte]));
    }
    text
}

/// Returns the bytes of a UUID with its dashes in their places.
fn from_uuid(text: &str) -> Option<Vec<u8>> {
    let bytes = from_hex(&text.replace('-', ""))?;
    (bytes.len() == UUID_BYTES && uuid(&bytes).eq_ignore_ascii_case(text)).then_some(bytes)
}

fn shown(text: &str) -> String {
    text.chars().take(100).collect()
}

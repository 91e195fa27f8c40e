//! Decoding Cosmos binary JSON, the form in which some clients send items.
//!
//! A body is the byte 0x80 and one value; every value starts with a marker byte. Numbers and lengths are
//! little-endian. The decoder accepts everything that is self-contained; answers are text, so nothing is encoded
//! here.
//!
//! ```text
//! 00-1F     integer 0-31                    D0 D1 D2  null, false, true
//! 20-3F     well-known string               D3        GUID, shown as text
//! 40-67     string of a user's dictionary   D7-DC     u8, i8, i16, i32, i64, u32
//! 71-7F     packed strings                  DD DE DF  binary, length in 1, 2, 4 bytes, shown as base64
//! 80-BF     string of 0-63 bytes            E0 E1     empty array, array of one
//! C0 C1 C2  string, length in 1, 2, 4 bytes E2 E3 E4  array: byte length in 1, 2, 4 bytes
//! C3-C6     the string at that offset       E5 E6 E7  array: byte length, count
//! C7        u64                             E8-EF     objects, likewise; members are name, value
//! C8-CB     u8, i16, i32, i64               F0 F1     array of numbers: type, count in 1, 2 bytes
//! CC CD CE  f64, f32, f64                   F2 F3     array of such arrays: F0 or F1, type, inner count, count
//! ```
//!
//! Refused by name: strings of a user's dictionary (the dictionary is not in the body) and 16-bit floats, which
//! the clients' JSON libraries do not support either. Everything is bounded: depth as for text, and growth,
//! because back references and arrays of empty arrays stand for more bytes than they take.

mod reader;
mod text;

use crate::error::{Error, Result};
use crate::limits;
use crate::value::binary::{Document, too_deep};
use crate::value::encoder::Encoder;

use reader::{Reader, Width};

/// The first byte of every body; no JSON text starts with it.
pub(crate) const PREAMBLE: u8 = 0x80;

/// Decodes a whole body.
pub(crate) fn parse_document(body: &[u8]) -> Result<Document> {
    if body.len() > limits::EXPANDED_BYTES {
        return Err(too_large(0));
    }
    let mut decoder = Decoder { reader: Reader::new(body), encoder: Encoder::with_capacity(body.len() * 2) };
    if decoder.reader.u8()? != PREAMBLE {
        return Err(Error::binary(0, "the first byte is not 0x80"));
    }
    decoder.value(0)?;
    if decoder.reader.at() != body.len() {
        return Err(decoder
            .reader
            .error(format!("{} bytes after the value", body.len() - decoder.reader.at())));
    }
    decoder.encoder.finish()
}

fn too_large(offset: usize) -> Error {
    Error::binary(offset, format!("the body stands for more than {} bytes", limits::EXPANDED_BYTES))
}

struct Decoder<'a> {
    reader: Reader<'a>,
    encoder: Encoder,
}

impl Decoder<'_> {
    /// Decodes the next value, inside `depth` arrays and objects.
    fn value(&mut self, depth: usize) -> Result<()> {
        let start = self.reader.at();
        let marker = self.reader.u8()?;
        match marker {
            0x00..=0x1F => self.encoder.int(marker.into()),
            0xC7..=0xCE | 0xD7..=0xDC => self.number(marker)?,
            0xD0 => self.encoder.null(),
            0xD1 | 0xD2 => self.encoder.bool(marker == 0xD2),
            0xE0..=0xF3 if depth >= limits::NESTING_DEPTH => {
                return Err(Error::binary(start, too_deep()));
            }
            0xE0..=0xE7 => self.array(marker, depth)?,
            0xE8..=0xEF => self.object(marker, depth)?,
            0xF0 => self.numbers(Width::One)?,
            0xF1 => self.numbers(Width::Two)?,
            0xF2 => self.number_arrays(Width::One, 0xF0, depth)?,
            0xF3 => self.number_arrays(Width::Two, 0xF1, depth)?,
            _ => {
                let text = text::read(&mut self.reader, marker, start)?;
                self.encoder.string(&text);
            }
        }
        self.check_growth(start)
    }

    fn check_growth(&self, start: usize) -> Result<()> {
        if self.encoder.len() > limits::EXPANDED_BYTES {
            return Err(too_large(start));
        }
        Ok(())
    }

    fn number(&mut self, marker: u8) -> Result<()> {
        let reader = &mut self.reader;
        let value = match marker {
            0xC8 | 0xD7 => reader.u8()?.into(),
            0xC9 | 0xD9 => i16::from_le_bytes(reader.array()?).into(),
            0xCA | 0xDA => i32::from_le_bytes(reader.array()?).into(),
            0xCB | 0xDB => i64::from_le_bytes(reader.array()?),
            0xD8 => i8::from_le_bytes(reader.array()?).into(),
            0xDC => u32::from_le_bytes(reader.array()?).into(),
            0xC7 => {
                let wide = u64::from_le_bytes(reader.array()?);
                match i64::try_from(wide) {
                    Ok(value) => value,
                    Err(_) => return self.double(wide as f64),
                }
            }
            0xCD => {
                let narrow = f32::from_le_bytes(reader.array()?);
                return self.double(narrow.into());
            }
            0xCC | 0xCE => {
                let double = f64::from_le_bytes(reader.array()?);
                return self.double(double);
            }
            _ => return Err(reader.error(format!("marker {marker:#04x} is not a number"))),
        };
        self.encoder.int(value);
        Ok(())
    }

    fn double(&mut self, value: f64) -> Result<()> {
        if !value.is_finite() {
            return Err(self.reader.error(format!("JSON has no number {value}")));
        }
        self.encoder.double(value);
        Ok(())
    }

    /// Returns the end of an array or object and the number of entries that it declares. An array or object of one
    /// entry has no length and ends after that entry.
    fn frame(&mut self, kind: u8) -> Result<(usize, Option<usize>)> {
        let (width, counted) = match kind {
            0 => return Ok((self.reader.at(), Some(0))),
            1 => return Ok((usize::MAX, Some(1))),
            2 => (Width::One, false),
            3 => (Width::Two, false),
            4 => (Width::Four, false),
            5 => (Width::One, true),
            6 => (Width::Two, true),
            _ => (Width::Four, true),
        };
        let length = self.reader.uint(width)?;
        let count = if counted { Some(self.reader.uint(width)?) } else { None };
        let end = self.reader.at() + length;
        if end > self.reader.len() {
            return Err(self.reader.error(format!("a length of {length} bytes goes beyond the body")));
        }
        Ok((end, count))
    }

    /// Returns whether another entry follows; checks the declared length and count at the end.
    fn more(&self, (end, claimed): (usize, Option<usize>), count: usize) -> Result<bool> {
        let at = self.reader.at();
        if end == usize::MAX {
            return Ok(count == 0);
        }
        if at > end {
            return Err(self.reader.error("an entry goes beyond the end of its array or object"));
        }
        if at == end && claimed.is_some_and(|claimed| claimed != count) {
            return Err(self.reader.error(format!("{count} entries where another number was given")));
        }
        Ok(at < end)
    }

    fn array(&mut self, marker: u8, depth: usize) -> Result<()> {
        let promise = self.frame(marker - 0xE0)?;
        let frame = self.encoder.open_array();
        let mut count = 0;
        while self.more(promise, count)? {
            self.value(depth + 1)?;
            count += 1;
        }
        self.encoder.close(frame, count);
        Ok(())
    }

    fn object(&mut self, marker: u8, depth: usize) -> Result<()> {
        let promise = self.frame(marker - 0xE8)?;
        let frame = self.encoder.open_object();
        let mut count = 0;
        while self.more(promise, count)? {
            let start = self.reader.at();
            let marker = self.reader.u8()?;
            let name = text::read(&mut self.reader, marker, start)?;
            self.encoder.name(frame, &name).map_err(|error| Error::binary(start, error.to_string()))?;
            self.value(depth + 1)?;
            count += 1;
        }
        let end = self.reader.at();
        self.encoder.close_object(frame).map_err(|error| Error::binary(end, error.to_string()))
    }

    /// Decodes an array of numbers that share one marker.
    fn numbers(&mut self, width: Width) -> Result<()> {
        let marker = self.number_marker()?;
        let count = self.reader.uint(width)?;
        self.bare_numbers(marker, count)
    }

    fn number_marker(&mut self) -> Result<u8> {
        let marker = self.reader.u8()?;
        if !matches!(marker, 0xCD | 0xCE | 0xD7..=0xDC) {
            return Err(self
                .reader
                .error(format!("{marker:#04x} cannot be the type of an array of numbers")));
        }
        Ok(marker)
    }

    fn bare_numbers(&mut self, marker: u8, count: usize) -> Result<()> {
        let frame = self.encoder.open_array();
        for _ in 0..count {
            self.number(marker)?;
        }
        self.encoder.close(frame, count);
        Ok(())
    }

    /// Decodes an array of arrays of numbers, all of one length and one marker.
    fn number_arrays(&mut self, width: Width, inner_marker: u8, depth: usize) -> Result<()> {
        let start = self.reader.at();
        if depth + 1 >= limits::NESTING_DEPTH {
            return Err(Error::binary(start, too_deep()));
        }
        if self.reader.u8()? != inner_marker {
            return Err(Error::binary(
                start,
                format!("an array of number arrays must have {inner_marker:#04x} here"),
            ));
        }
        let marker = self.number_marker()?;
        let inner = self.reader.uint(width)?;
        let count = self.reader.uint(width)?;
        let frame = self.encoder.open_array();
        for _ in 0..count {
            self.bare_numbers(marker, inner)?;
            self.check_growth(start)?;
        }
        self.encoder.close(frame, count);
        Ok(())
    }
}

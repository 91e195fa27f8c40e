//! Decodes keys and values as `docs/file-format.md` describes them: a second reader of the format, so that the engine's
//! entries are compared with the page.

use document::{Document, PartitionKey, Value, decode_key, decode_key_descending};

use super::labels::instant;

/// A cursor over bytes; reading past the end fails the script.
pub(super) struct Bytes<'b>(pub(super) &'b [u8]);

impl<'b> Bytes<'b> {
    pub(super) fn take(&mut self, length: usize) -> &'b [u8] {
        let (taken, rest) = self.0.split_at(length);
        self.0 = rest;
        taken
    }

    pub(super) fn u8(&mut self) -> u8 {
        self.take(1)[0]
    }

    pub(super) fn u16(&mut self) -> u16 {
        u16::from_be_bytes(self.take(2).try_into().expect("two bytes"))
    }

    pub(super) fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.take(4).try_into().expect("four bytes"))
    }

    pub(super) fn u64(&mut self) -> u64 {
        u64::from_be_bytes(self.take(8).try_into().expect("eight bytes"))
    }

    pub(super) fn i64(&mut self) -> i64 {
        self.u64() as i64
    }

    /// A time whose sign bit is flipped, in milliseconds.
    pub(super) fn ordered_time(&mut self) -> i64 {
        (self.u64() ^ (1 << 63)) as i64
    }

    pub(super) fn rest(&mut self) -> &'b [u8] {
        self.take(self.0.len())
    }

    /// The effective key, in hexadecimal.
    pub(super) fn effective_key(&mut self) -> String {
        let mut hex = String::new();
        loop {
            match (self.u8(), self.0.first()) {
                (0, Some(0)) => {
                    self.u8();
                    return hex;
                }
                (byte, next) => {
                    hex += &format!("{byte:02X}");
                    if byte == 0 && next == Some(&0xFF) {
                        self.u8();
                    }
                }
            }
        }
    }

    pub(super) fn partition_key(&mut self) -> String {
        let (key, rest) = PartitionKey::decode(self.0).expect("a partition key");
        self.0 = rest;
        key.to_json()
    }

    /// All that is left but the last eight bytes, as ordered keys; descending ones begin with a turned tag.
    pub(super) fn values(&mut self, behind: usize) -> String {
        let mut values = Vec::new();
        while self.0.len() > behind {
            if let Some(text) = self.cut_text() {
                values.push(text);
                continue;
            }
            // In a composite index arrays and objects have no contents.
            if let Some(word) = match (self.0[0], self.0.get(1)) {
                (0x07, Some(0)) => Some("any array"),
                (0x08, Some(0)) => Some("any object"),
                _ => None,
            } {
                self.take(2);
                values.push(word.to_owned());
                continue;
            }
            let descending = self.0[0] >= 0x80;
            let decode = if descending { decode_key_descending } else { decode_key };
            let (value, rest) = decode(self.0).expect("an ordered key");
            self.0 = rest;
            let text = value.map_or_else(|| "undefined".to_owned(), |value| value.to_json());
            values.push(if descending { format!("{text} desc") } else { text });
        }
        values.join(", ")
    }

    /// A string that was cut: escaped text that ends with `FE`.
    fn cut_text(&mut self) -> Option<String> {
        let text = self.0.strip_prefix(&[0x06])?;
        let end = text.iter().position(|byte| *byte == 0 || *byte == 0xFE)?;
        if text[end] == 0 {
            return None;
        }
        self.take(end + 2);
        Some(format!("\"{}...\"", String::from_utf8_lossy(&text[..end])))
    }

    /// The encoded path of an index entry, as an indexing policy writes it.
    pub(super) fn path(&mut self) -> String {
        let mut path = String::new();
        loop {
            match self.u8() {
                1 => return if path.is_empty() { "/".to_owned() } else { path },
                2 => {
                    let end = self.0.windows(2).position(|pair| pair == [0, 0]).expect("the end of a name");
                    path += &format!("/{}", String::from_utf8_lossy(self.take(end)));
                    self.take(2);
                }
                3 => path += "/[]",
                other => panic!("no step of a path: {other}"),
            }
        }
    }
}

/// The name of a queue.
pub(super) fn queue(number: u16) -> String {
    match number {
        1 => "inherit".to_owned(),
        2 => "own".to_owned(),
        3 => "stamp".to_owned(),
        date => format!("date{date}"),
    }
}

/// Describes the mark of an index entry.
pub(super) fn mark(value: &[u8]) -> String {
    let mut bytes = Bytes(value);
    let flags = bytes.u8();
    let mut parts = Vec::new();
    if flags & 3 != 0 {
        parts.push(format!("{} {}", queue(u16::from(flags & 3)), instant(bytes.i64())));
    }
    while flags & 4 != 0 && !bytes.0.is_empty() {
        parts.push(format!("{} {}", queue(bytes.u16()), instant(bytes.i64())));
    }
    assert!(bytes.0.is_empty(), "bytes behind a mark");
    if flags & 0x80 != 0 {
        parts.push("inexact".to_owned());
    }
    if parts.is_empty() { "never expires".to_owned() } else { parts.join(", ") }
}

/// A stored item: its header in words, and its body.
pub(super) struct Stored {
    pub(super) sequence: u64,
    pub(super) header: String,
    pub(super) body: String,
}

pub(super) fn stored(value: &[u8]) -> Stored {
    let mut bytes = Bytes(value);
    let flags = bytes.u8();
    let sequence = bytes.u64();
    let mut header = format!("_ts={}", instant(bytes.u64() as i64 * 1000));
    match flags & 3 {
        1 => header += " ttl=-1",
        2 => header += &format!(" ttl={}", bytes.u32()),
        _ => {}
    }
    if flags & 0x20 != 0 {
        header += &format!(" counted={} {}", queue(bytes.u16()), instant(bytes.i64()));
        if flags & 0x40 != 0 {
            header += " sliding";
        }
    }
    if flags & 8 != 0 {
        for _ in 0..bytes.u8() {
            header += &format!(" {}={}", queue(bytes.u16()), instant(bytes.i64()));
        }
    }
    if flags & 0x80 != 0 {
        // How far the count of this range is behind the store's commits: nothing to a script.
        while bytes.u8() & 0x80 != 0 {}
    }
    if flags & 4 != 0 {
        header += " held";
    }
    let body = bytes.rest();
    let body = if flags & 0x10 != 0 {
        let document = bson::RawDocument::parse(body.to_vec().into()).expect("BSON");
        bson::to_extended_json(bson::Value::Document(document.to_document()).view(), true)
    } else {
        Document::from_stored(body.to_vec().into()).expect("a document").to_json()
    };
    Stored { sequence, header, body }
}

/// The places of a shape.
pub(super) fn shape(value: &[u8]) -> String {
    let mut bytes = Bytes(value);
    let mut places = Vec::new();
    while !bytes.0.is_empty() {
        let length = usize::from(bytes.u16());
        let path = Bytes(bytes.take(length)).path();
        let kind = match bytes.u8() {
            1 => "scalar",
            2 => "array",
            3 => "object",
            other => panic!("no kind: {other}"),
        };
        places.push(format!("{path} {kind}"));
    }
    format!("{{{}}}", places.join(", "))
}

/// The `_id` of a document, or the first value of an index of a collection: numbers, text and dates; others by their bytes.
pub(super) fn document_key(bytes: &[u8]) -> String {
    let mut rest = Bytes(bytes);
    let shown = match rest.u8() {
        3 => "null".to_owned(),
        4 => {
            let bits = rest.u64();
            let bits = if bits >> 63 == 1 { bits & !(1 << 63) } else { !bits };
            assert_eq!(rest.u8(), 0x80, "a number that is no double");
            Value::Double(f64::from_bits(bits)).to_json().trim_end_matches(".0").to_owned()
        }
        5 => {
            let end = rest.0.windows(2).position(|pair| pair == [0, 0]).expect("the end of a text");
            let text = String::from_utf8_lossy(rest.take(end)).into_owned();
            rest.take(2);
            format!("{text:?}")
        }
        0x0B => instant(rest.ordered_time()),
        _ => return hex(bytes),
    };
    if rest.0.is_empty() { shown } else { format!("{shown} {}", document_key(rest.0)) }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

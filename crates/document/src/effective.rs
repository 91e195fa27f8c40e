//! Effective partition keys: the hash that decides which physical partition owns an item.
//!
//! Clients compute the same bytes, so they are fixed to the last bit. An effective key is a byte string shown as
//! upper-case hex; ranges compare the hex text, which is the order of the bytes.
//!
//! ```text
//! hash input of a part   undefined 00, null 01, false 02, true 03,
//!                        number 05 + f64 little-endian, string 08 + UTF-8 + end byte (V1: 00, V2: FF)
//! V2, Hash               128-bit hash of all parts together, bytes reversed, top two bits cleared: 16 bytes
//! V2, MultiHash          the same for each part alone, one after the other: 16 bytes per level
//! V1                     32-bit hash as a number, then every part, in the ordered form below
//! V1 ordered number      05, then the ordered bits: 8 bits, then 7 per byte with the lowest bit saying "more"
//! V1 ordered string      08, each byte plus 1, then 00; at most 101 bytes, and no 00 when cut there
//! ```
//!
//! Version 1 looks only at the first 100 UTF-16 units of a string. A pair split by that cut counts as U+FFFD,
//! because that is what clients' encoders make of half a pair.
//!
//! The top two bits of a level are clear, so `FF` after a prefix is above every key with that prefix.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::limits;
use crate::murmur;
use crate::partition_key::{HashVersion, KeyPart, PartitionKey, PartitionKeyDefinition, PartitionKeyKind};

const UNDEFINED: u8 = 0x00;
const NULL: u8 = 0x01;
const FALSE: u8 = 0x02;
const TRUE: u8 = 0x03;
const NUMBER: u8 = 0x05;
const STRING: u8 = 0x08;

/// UTF-16 units of a string that version 1 looks at, and bytes of it that version 1 writes before an end byte.
const V1_STRING: usize = 100;

/// An effective partition key: a position in the hash space.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EffectiveKey(Vec<u8>);

impl EffectiveKey {
    /// Returns the position below every key: the empty text.
    pub fn min() -> EffectiveKey {
        EffectiveKey(Vec::new())
    }

    /// Returns the position above every key: `FF`.
    pub fn max() -> EffectiveKey {
        EffectiveKey(vec![0xFF])
    }

    /// Returns the bytes that the hex text shows.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns a key of these bytes, for ranges made by arithmetic.
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> EffectiveKey {
        EffectiveKey(bytes.into())
    }

    /// Returns the smallest key above this one.
    #[must_use]
    pub fn successor(&self) -> EffectiveKey {
        self.followed_by(0x00)
    }

    fn followed_by(&self, byte: u8) -> EffectiveKey {
        let mut bytes = Vec::with_capacity(self.0.len() + 1);
        bytes.extend_from_slice(&self.0);
        bytes.push(byte);
        EffectiveKey(bytes)
    }
}

impl fmt::Display for EffectiveKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02X}"))
    }
}

impl FromStr for EffectiveKey {
    type Err = Error;

    fn from_str(text: &str) -> Result<EffectiveKey> {
        if text.len() > 2 * limits::EFFECTIVE_KEY_BYTES {
            return Err(Error::invalid("an effective partition key is too long"));
        }
        let invalid = || {
            Error::invalid(format!(
                "the effective partition key {text:?} is not an even number of hex digits"
            ))
        };
        let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return Err(invalid()) };
        let digit = |byte: u8| char::from(byte).to_digit(16).ok_or_else(invalid);
        let bytes = pairs.iter().map(|&[high, low]| Ok((digit(high)? << 4 | digit(low)?) as u8));
        Ok(EffectiveKey(bytes.collect::<Result<_>>()?))
    }
}

/// A range of the hash space: it includes `min` and excludes `max`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EffectiveRange {
    /// The first key inside.
    pub min: EffectiveKey,
    /// The first key above.
    pub max: EffectiveKey,
}

impl EffectiveRange {
    /// Creates the range from `min` to below `max`.
    pub fn new(min: EffectiveKey, max: EffectiveKey) -> EffectiveRange {
        EffectiveRange { min, max }
    }

    /// Returns the whole hash space: `""` to `FF`.
    pub fn all() -> EffectiveRange {
        EffectiveRange { min: EffectiveKey::min(), max: EffectiveKey::max() }
    }

    /// Splits the whole hash space into `count` ranges that hold about equally many keys, in order and without gaps.
    pub fn split(count: u32, definition: &PartitionKeyDefinition) -> Vec<EffectiveRange> {
        let count = count.max(1);
        let bounds: Vec<EffectiveKey> = (0..=count)
            .map(|index| match index {
                0 => EffectiveKey::min(),
                last if last == count => EffectiveKey::max(),
                index => EffectiveKey(hash_bound(index, count, definition)),
            })
            .collect();
        bounds.windows(2).map(|pair| EffectiveRange::new(pair[0].clone(), pair[1].clone())).collect()
    }

    /// Returns the range of one key.
    pub fn point(key: EffectiveKey) -> EffectiveRange {
        EffectiveRange { max: key.successor(), min: key }
    }

    /// Returns `true` if the key lies inside.
    pub fn contains(&self, key: &EffectiveKey) -> bool {
        self.min <= *key && *key < self.max
    }

    /// Returns `true` if the range contains no key.
    pub fn is_empty(&self) -> bool {
        self.min >= self.max
    }

    /// Returns `true` if some key lies in both.
    pub fn overlaps(&self, other: &EffectiveRange) -> bool {
        !self.intersect(other).is_empty()
    }

    /// Returns `true` if every key of `other` lies inside.
    pub fn covers(&self, other: &EffectiveRange) -> bool {
        other.is_empty() || (self.min <= other.min && other.max <= self.max)
    }

    /// Returns the intersection of both ranges; it may be empty.
    #[must_use]
    pub fn intersect(&self, other: &EffectiveRange) -> EffectiveRange {
        EffectiveRange {
            min: self.min.clone().max(other.min.clone()),
            max: self.max.clone().min(other.max.clone()),
        }
    }
}

impl fmt::Display for EffectiveRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, {})", self.min, self.max)
    }
}

impl PartitionKey {
    /// Returns the position of the key in the hash space. The empty key is at its start.
    pub fn effective(&self, definition: &PartitionKeyDefinition) -> EffectiveKey {
        if self.is_empty() {
            return EffectiveKey::min();
        }
        EffectiveKey(match (definition.kind, definition.hash_version()) {
            (PartitionKeyKind::Hash, HashVersion::V1) => effective_v1(self.parts()),
            (PartitionKeyKind::Hash, HashVersion::V2) => effective_v2(self.parts()).to_vec(),
            (PartitionKeyKind::MultiHash, _) => {
                let levels = self.parts().iter().map(|part| effective_v2(std::slice::from_ref(part)));
                levels.collect::<Vec<_>>().concat()
            }
        })
    }

    /// Returns the range of the items with this key: a point for a whole key, all keys below it for a prefix of a
    /// hierarchical key.
    pub fn effective_range(&self, definition: &PartitionKeyDefinition) -> EffectiveRange {
        if self.is_empty() {
            return EffectiveRange::all();
        }
        let key = self.effective(definition);
        if definition.kind == PartitionKeyKind::MultiHash && self.len() < definition.paths.len() {
            return EffectiveRange { max: key.followed_by(0xFF), min: key };
        }
        EffectiveRange::point(key)
    }
}

/// Returns the first hash of the `index`th of `count` equal parts.
fn hash_bound(index: u32, count: u32, definition: &PartitionKeyDefinition) -> Vec<u8> {
    match (definition.kind, definition.hash_version()) {
        (PartitionKeyKind::Hash, HashVersion::V1) => {
            let mut out = Vec::new();
            write_ordered_number(((u64::from(index) << 32) / u64::from(count)) as f64, &mut out);
            out
        }
        // 126 bits of hash: the top two are clear.
        (PartitionKeyKind::Hash, HashVersion::V2) | (PartitionKeyKind::MultiHash, _) => {
            ((1_u128 << 126) / u128::from(count) * u128::from(index)).to_be_bytes().to_vec()
        }
    }
}

fn effective_v2(parts: &[KeyPart]) -> [u8; 16] {
    let mut input = Vec::with_capacity(64);
    for part in parts {
        write_hash_input(part, HashVersion::V2, &mut input);
    }
    let (low, high) = murmur::hash128(&input);
    // Reversing the sixteen little-endian bytes is writing the number big-endian.
    let mut bytes = (u128::from(high) << 64 | u128::from(low)).to_be_bytes();
    bytes[0] &= 0x3F;
    bytes
}

fn effective_v1(parts: &[KeyPart]) -> Vec<u8> {
    let mut input = Vec::with_capacity(64);
    for part in parts {
        write_hash_input(part, HashVersion::V1, &mut input);
    }
    let mut out = Vec::with_capacity(input.len() + 16);
    write_ordered_number(murmur::hash32(&input).into(), &mut out);
    for part in parts {
        match part {
            KeyPart::Undefined => out.push(UNDEFINED),
            KeyPart::Null => out.push(NULL),
            KeyPart::Bool(false) => out.push(FALSE),
            KeyPart::Bool(true) => out.push(TRUE),
            KeyPart::Number(number) => write_ordered_number(number + 0.0, &mut out),
            KeyPart::String(text) => {
                let text = first_characters(text);
                out.push(STRING);
                out.extend(text.bytes().take(V1_STRING + 1).map(|byte| byte.wrapping_add(1)));
                if text.len() <= V1_STRING {
                    out.push(0x00);
                }
            }
        }
    }
    out
}

fn write_hash_input(part: &KeyPart, version: HashVersion, out: &mut Vec<u8>) {
    match part {
        KeyPart::Undefined => out.push(UNDEFINED),
        KeyPart::Null => out.push(NULL),
        KeyPart::Bool(false) => out.push(FALSE),
        KeyPart::Bool(true) => out.push(TRUE),
        KeyPart::Number(number) => {
            out.push(NUMBER);
            // Equal keys must hash alike: -0.0 becomes 0.0.
            out.extend_from_slice(&(number + 0.0).to_le_bytes());
        }
        KeyPart::String(text) => {
            out.push(STRING);
            match version {
                HashVersion::V1 => out.extend_from_slice(first_characters(text).as_bytes()),
                HashVersion::V2 => out.extend_from_slice(text.as_bytes()),
            }
            out.push(if version == HashVersion::V1 { 0x00 } else { 0xFF });
        }
    }
}

/// Returns the first 100 UTF-16 units of a text.
fn first_characters(text: &str) -> Cow<'_, str> {
    if text.len() <= V1_STRING {
        return Cow::Borrowed(text);
    }
    let mut units = 0;
    for (at, c) in text.char_indices() {
        match units + c.len_utf16() {
            // This character starts inside the cut and ends outside: half a pair.
            beyond if beyond > V1_STRING && units < V1_STRING => {
                return Cow::Owned(format!("{}\u{FFFD}", &text[..at]));
            }
            beyond if beyond > V1_STRING => return Cow::Borrowed(&text[..at]),
            next => units = next,
        }
    }
    Cow::Borrowed(text)
}

fn write_ordered_number(number: f64, out: &mut Vec<u8>) {
    const SIGN: u64 = 1 << 63;
    let bits = number.to_bits();
    let ordered = if bits & SIGN == 0 { bits | SIGN } else { bits.wrapping_neg() };
    out.extend_from_slice(&[NUMBER, (ordered >> 56) as u8]);
    let mut rest = ordered << 8;
    loop {
        let group = (rest >> 56) as u8;
        rest <<= 7;
        if rest == 0 {
            out.push(group & 0xFE);
            return;
        }
        out.push(group | 0x01);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cut_of_version_1_counts_utf16_units_and_replaces_half_a_pair() {
        assert_eq!(first_characters(&"a".repeat(101)), "a".repeat(100));
        assert_eq!(first_characters(&"é".repeat(101)), "é".repeat(100));
        assert_eq!(first_characters(&"🚀".repeat(60)), "🚀".repeat(50));
        let split = format!("a{}", "🚀".repeat(60));
        assert_eq!(first_characters(&split), format!("a{}\u{FFFD}", "🚀".repeat(49)));
    }

    #[test]
    fn a_point_holds_its_key_and_nothing_else() {
        let key: EffectiveKey = "22E342F3".parse().unwrap();
        let point = EffectiveRange::point(key.clone());
        assert!(point.contains(&key));
        assert!(!point.contains(&"22E342F300".parse().unwrap()));
        assert!(!point.contains(&"22E342F2FF".parse().unwrap()));
        assert!(EffectiveRange::all().covers(&point));
    }

    #[test]
    fn a_split_line_has_no_gaps_and_shares_the_keys_out() {
        for json in [
            r#"{"paths":["/pk"],"kind":"Hash","version":1}"#,
            r#"{"paths":["/pk"],"kind":"Hash","version":2}"#,
            r#"{"paths":["/a","/b"],"kind":"MultiHash","version":2}"#,
        ] {
            let definition = crate::parse_json(json.as_bytes()).unwrap();
            let definition = PartitionKeyDefinition::from_value(&definition).unwrap();
            let ranges = EffectiveRange::split(5, &definition);
            assert_eq!(
                (ranges[0].min.clone(), ranges[4].max.clone()),
                (EffectiveKey::min(), EffectiveKey::max())
            );
            assert!(ranges.windows(2).all(|pair| pair[0].max == pair[1].min && !pair[0].is_empty()));
            let mut held = [0; 5];
            for n in 0..1000 {
                let part = KeyPart::String(format!("key {n}"));
                let key = PartitionKey::new(vec![part; definition.paths.len()]).effective(&definition);
                held[ranges.iter().position(|range| range.contains(&key)).unwrap()] += 1;
            }
            assert!(held.iter().all(|count| (120..280).contains(count)), "{json}: {held:?}");
        }
    }

    #[test]
    fn hex_text_is_checked() {
        for text in ["A", "GG", "0x", "é"] {
            assert!(text.parse::<EffectiveKey>().is_err(), "{text}");
        }
        assert_eq!("fF0a".parse::<EffectiveKey>().unwrap().to_string(), "FF0A");
        assert_eq!("".parse::<EffectiveKey>().unwrap(), EffectiveKey::min());
    }
}

//! Terms: scalars as bytes that sort as the scalars do.
//!
//! A term is the value's ordered key ([`document::encode_key`]), except that a long string is *cut*: its tag, the
//! first [`TEXT_BYTES_MAX`] bytes of its escaped text (one more if that would split a `00` from its `FF`), then
//! `0xFE`, a byte that UTF-8 does not have. A cut string sorts behind the string that ends where it was cut and
//! before everything that differs earlier; strings that are equal up to there share one term. So for a cut term the
//! item has to be read, and everything else may be answered from the entry.

use document::{Value, ValueRef, decode_key, encode_key};

use crate::types::error::{Error, Result};

/// How many bytes of a string's escaped text a term keeps.
pub(crate) const TEXT_BYTES_MAX: usize = 128;

const STRING: u8 = 0x06;
const CUT: u8 = 0xFE;

/// A scalar as a query compares it with the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Term {
    bytes: Vec<u8>,
    /// Whether other values may have the same term.
    pub(crate) cut: bool,
}

impl Term {
    /// Returns the term of a scalar, or `None` for arrays and objects, which have none.
    pub(crate) fn new(value: ValueRef<'_>) -> Option<Term> {
        let mut bytes = Vec::new();
        let cut = matches!(encode(value, &mut bytes)?, Fidelity::Cut);
        Some(Term { bytes, cut })
    }

    /// Returns its bytes.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// How precisely a term represents its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fidelity {
    /// It decodes to the value as it is stored.
    Exact,
    /// It decodes to an equal number in another spelling, such as 1 for 1.0.
    Respelled,
    /// It has only the beginning of the value.
    Cut,
}

/// Appends the term of a scalar. Returns `None` for arrays and objects, which have no term.
pub(super) fn encode(value: ValueRef<'_>, out: &mut Vec<u8>) -> Option<Fidelity> {
    let fidelity = match value {
        ValueRef::Array(_) | ValueRef::Object(_) => return None,
        ValueRef::String(text) if text.len() > TEXT_BYTES_MAX / 2 => return Some(encode_text(text, out)),
        ValueRef::Double(_) if value.as_i64().is_some() => Fidelity::Respelled,
        _ => Fidelity::Exact,
    };
    encode_key(Some(value), out);
    Some(fidelity)
}

fn encode_text(text: &str, out: &mut Vec<u8>) -> Fidelity {
    out.push(STRING);
    let start = out.len();
    for byte in text.bytes() {
        if out.len() - start >= TEXT_BYTES_MAX {
            out.push(CUT);
            return Fidelity::Cut;
        }
        out.push(byte);
        if byte == 0 {
            out.push(0xFF);
        }
    }
    out.extend_from_slice(&[0x00, 0x00]);
    Fidelity::Exact
}

/// Returns the part of an ordered key, or of the beginning of one, that a term keeps, if it is a string that is too
/// long for a term.
pub(crate) fn kept_of_text(key: &[u8]) -> Option<&[u8]> {
    let (&STRING, text) = key.split_first()? else { return None };
    let mut at = 0;
    loop {
        let length = match (text.get(at)?, text.get(at + 1)) {
            (0x00, Some(0xFF)) => 2,
            // The end of the string.
            (0x00, _) => return None,
            _ => 1,
        };
        if at >= TEXT_BYTES_MAX {
            return Some(&key[..=at]);
        }
        at += length;
    }
}

/// Returns the value of a term, or `None` if it was cut.
pub(super) fn decode(bytes: &[u8]) -> Result<Option<Value>> {
    if bytes.first() == Some(&STRING) && bytes.last() == Some(&CUT) {
        return Ok(None);
    }
    match decode_key(bytes) {
        Ok((Some(value), [])) => Ok(Some(value)),
        Ok(_) => Err(Error::Corrupt("a term of an index entry has no end".into())),
        Err(error) => Err(Error::Corrupt(format!("a term of an index entry: {error}"))),
    }
}

/// Returns how many bytes a cut term at the beginning of `bytes` takes, or `None` if the term there is not cut.
pub(super) fn cut_length(bytes: &[u8]) -> Option<usize> {
    let (&STRING, text) = bytes.split_first()? else { return None };
    let mut at = 0;
    loop {
        match text.get(at)? {
            &CUT => return Some(at + 2),
            // An escaped zero, or the end.
            0x00 if text.get(at + 1) == Some(&0xFF) => at += 2,
            0x00 => return None,
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn term(text: &str) -> Term {
        Term::new(ValueRef::String(text)).expect("a scalar")
    }

    #[test]
    fn a_short_term_is_the_ordered_key_and_reads_back() {
        let long = "y".repeat(TEXT_BYTES_MAX);
        for value in [
            Value::Null,
            Value::Bool(true),
            Value::Int(-7),
            Value::Int(i64::MAX),
            Value::Double(0.5),
            Value::from(""),
            Value::from("a\0b"),
            Value::from(long),
        ] {
            let mut key = Vec::new();
            encode_key(Some(value.view()), &mut key);
            let term = Term::new(value.view()).expect("a scalar");
            assert_eq!((term.as_bytes(), term.cut), (key.as_slice(), false), "{value:?}");
            assert_eq!(decode(term.as_bytes()).expect("decodes"), Some(value));
        }
        assert_eq!(Term::new(Value::Array(vec![]).view()), None);
    }

    #[test]
    fn a_long_string_is_cut_and_says_so() {
        let long = term(&"y".repeat(TEXT_BYTES_MAX + 1));
        assert!(long.cut && long.as_bytes().len() == TEXT_BYTES_MAX + 2);
        assert_eq!(decode(long.as_bytes()).expect("decodes"), None);
        assert_eq!(long, term(&"y".repeat(5000)));
    }

    #[test]
    fn terms_sort_as_their_strings_do_also_around_the_cut() {
        let stem = "s".repeat(TEXT_BYTES_MAX - 1);
        let texts = ["", "\0", "\0\0x", "\u{1}", "a", "b", "bb", "\u{10FFFF}", "é"];
        let mut strings: Vec<String> = texts.iter().map(|end| format!("{stem}{end}")).collect();
        strings.extend(texts.iter().map(|end| format!("{}{end}", &stem[1..])));
        strings.extend(texts.iter().map(|end| format!("{}{end}", &stem[2..])));
        for one in &strings {
            for other in &strings {
                let (a, b) = (term(one), term(other));
                if a != b {
                    assert_eq!(a.as_bytes().cmp(b.as_bytes()), one.cmp(other), "{one:?} {other:?}");
                } else if one != other {
                    assert!(a.cut, "{one:?} {other:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_kept_of_a_key_is_what_the_term_keeps() {
        let long = "p\0q".repeat(200);
        for start in 0..3 {
            for end in [3, 30, 95, 96, 97, 98, 127, 128, 129, 400] {
                let text = &long[start..end];
                let mut key = Vec::new();
                encode_key(Some(ValueRef::String(text)), &mut key);
                let kept = kept_of_text(&key).map(|kept| [kept, &[CUT]].concat());
                let term = term(text);
                assert_eq!(kept.as_deref(), term.cut.then_some(term.as_bytes()), "{start}..{end}");
            }
        }
    }

    #[test]
    fn a_number_that_is_written_in_another_way_is_noticed() {
        for (value, fidelity) in [
            (ValueRef::Int(1), Fidelity::Exact),
            (ValueRef::Double(1.0), Fidelity::Respelled),
            (ValueRef::Double(-0.0), Fidelity::Respelled),
            (ValueRef::Double(1.5), Fidelity::Exact),
            (ValueRef::Double(1e300), Fidelity::Exact),
        ] {
            assert_eq!(encode(value, &mut Vec::new()), Some(fidelity), "{value:?}");
        }
    }

    #[test]
    fn damaged_terms_are_errors() {
        for bytes in [&[][..], &[0x09], &[0x06, 0x61], &[0x02, 0x02], &[0x01]] {
            assert!(decode(bytes).is_err(), "{bytes:?}");
        }
    }
}

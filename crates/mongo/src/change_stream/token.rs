//! Resume tokens: `{_data: <hexadecimal digits>}`, a position and the event there. Their digits sort as events do.
//!
//! ```text
//! 0x82, seconds u32, millisecond in the second << 20 u32, position (32 bytes), mark u8, checksum u32
//! ```
//!
//! They begin as MongoDB's do, with the type of a timestamp and its eight bytes: Kafka connectors read the time from there. It
//! is that of the position to the millisecond; the order within is the position's.
//!
//! The mark says whether the token stands behind the end of a stream. Earlier versions began with the position, and the
//! first of them had no checksum, which their marks tell; applications keep tokens for long, so both are still read. No
//! position begins with 0x82 before the year 4,500,000, so a token that begins with it has the present form or is refused:
//! a cut or changed token is never taken for an earlier form.

use bson::{Document, Value};
use document::fingerprint;
use engine::Position;
use mql::Code;

use crate::protocol::error::{Error, Result};
use crate::protocol::operation_time::{cluster_time, millisecond, time_of};

/// The type of a timestamp in MongoDB's tokens.
const TIMESTAMP: u8 = 0x82;

const TIME_LENGTH: usize = 1 + 2 * size_of::<u32>();
const POSITION_LENGTH: usize = 32;
const LENGTH: usize = TIME_LENGTH + POSITION_LENGTH + 1 + size_of::<u32>();

/// Marks of tokens with a checksum, and of those without.
const AT: u8 = 2;
const INVALIDATES: u8 = 3;
const AT_UNCHECKED: u8 = 0;
const INVALIDATES_UNCHECKED: u8 = 1;

/// Where a stream continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Token {
    pub(super) position: Position,
    /// Behind the end of the stream that the event at the position has brought, not only behind that event.
    pub(super) invalidates: bool,
}

impl Token {
    pub(super) fn at(position: Position) -> Token {
        Token { position, invalidates: false }
    }

    pub(super) fn to_document(self) -> Document {
        Document::new().with("_data", digits(&self.to_bytes()))
    }

    fn to_bytes(self) -> Vec<u8> {
        let time = millisecond(self.position);
        let mut bytes = vec![TIMESTAMP];
        bytes.extend_from_slice(&time.seconds.to_be_bytes());
        bytes.extend_from_slice(&time.increment.to_be_bytes());
        bytes.extend_from_slice(&self.position.to_bytes());
        bytes.push(if self.invalidates { INVALIDATES } else { AT });
        bytes.extend_from_slice(&checksum(&bytes));
        bytes
    }

    pub(super) fn parse(token: &Document) -> Result<Token> {
        let Some(Value::String(text)) = token.get("_data") else {
            let text = "Bad resume token: _data of missing or of wrong type";
            return Err(Error::location(40647, text));
        };
        read_digits(text).and_then(|bytes| Token::from_bytes(&bytes)).ok_or_else(|| {
            let text = "Bad resume token: _data was cut or changed, or is not from this server";
            Error::new(Code::INVALID_RESUME_TOKEN, text)
        })
    }

    fn from_bytes(bytes: &[u8]) -> Option<Token> {
        if bytes.first() != Some(&TIMESTAMP) {
            return Token::from_earlier(bytes);
        }
        let (position, rest) = bytes.get(TIME_LENGTH..)?.split_first_chunk::<POSITION_LENGTH>()?;
        let invalidates = rest.first() == Some(&INVALIDATES);
        let token = Token { position: Position::from_bytes(*position), invalidates };
        // Its time, its mark and its checksum as well are those of this position.
        (token.to_bytes() == bytes).then_some(token)
    }

    /// Reads a token that an earlier version gave out.
    fn from_earlier(bytes: &[u8]) -> Option<Token> {
        let (position, rest) = bytes.split_first_chunk::<POSITION_LENGTH>()?;
        let is_whole = || rest[1..] == checksum(&bytes[..=POSITION_LENGTH]);
        let invalidates = match *rest {
            [AT_UNCHECKED] => false,
            [INVALIDATES_UNCHECKED] => true,
            [AT, ..] if is_whole() => false,
            [INVALIDATES, ..] if is_whole() => true,
            _ => return None,
        };
        Some(Token { position: Position::from_bytes(*position), invalidates })
    }
}

fn checksum(bytes: &[u8]) -> [u8; 4] {
    let [.., a, b, c, d] = fingerprint(bytes).to_be_bytes();
    [a, b, c, d]
}

fn digits(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from_digit(half.into(), 16).unwrap_or('0').to_ascii_uppercase();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Returns the bytes of digits as they are given out: capitals, in pairs.
fn read_digits(text: &str) -> Option<Vec<u8>> {
    if text.len() > 2 * LENGTH || !text.len().is_multiple_of(2) {
        return None;
    }
    let half = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    };
    text.as_bytes().chunks_exact(2).map(|pair| Some(half(pair[0])? << 4 | half(pair[1])?)).collect()
}

/// Returns a token's digits, read and written again.
pub(crate) fn read(digits: &str) -> Option<String> {
    let token = Token::parse(&Document::new().with("_data", digits)).ok()?;
    let _ = time_of(cluster_time(token.position));
    match token.to_document().get("_data") {
        Some(Value::String(again)) => Some(again.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use storage::Time;

    use super::*;

    #[test]
    fn a_token_reads_back_and_anything_else_is_refused() {
        let position = Position::from_bytes([0x8A; POSITION_LENGTH]);
        let tokens = [Token::at(position), Token { position, invalidates: true }];
        for token in tokens {
            assert_eq!(Token::parse(&token.to_document()), Ok(token));
        }
        let code = |value: Value| Token::parse(&Document::new().with("_data", value)).unwrap_err().code.0;
        assert_eq!(code(Value::Int32(1)), 40647);
        assert_eq!(code("82".into()), 260);
        assert_eq!(code("é".repeat(LENGTH).into()), 260);
        assert_eq!(code("8A".repeat(LENGTH).into()), 260);
    }

    #[test]
    fn a_time_that_is_not_that_of_the_position_is_refused() {
        let mut bytes = Token::at(Position::from_bytes([0x8A; POSITION_LENGTH])).to_bytes();
        bytes[4] ^= 1;
        bytes.truncate(LENGTH - size_of::<u32>());
        let end = checksum(&bytes);
        bytes.extend_from_slice(&end);
        assert_eq!(Token::from_bytes(&bytes), None);
    }

    fn text_of(token: Token) -> String {
        match token.to_document().get("_data") {
            Some(Value::String(text)) => text.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn anything_cut_or_changed_is_refused() {
        for byte in [0, 1, 2, 0x8A, 0xFF] {
            let position = Position::from_bytes([byte; POSITION_LENGTH]);
            for token in [Token::at(position), Token { position, invalidates: true }] {
                let text = text_of(token);
                let refused = |text: String| {
                    let error = Token::parse(&Document::new().with("_data", text.as_str())).unwrap_err();
                    assert_eq!(error.code.0, 260, "{text}");
                };
                for at in 0..text.len() {
                    refused(text[..at].to_owned());
                    for other in
                        "0123456789ABCDEFabcdef-".chars().filter(|other| !text[at..].starts_with(*other))
                    {
                        refused(format!("{}{other}{}", &text[..at], &text[at + 1..]));
                    }
                }
                refused(format!("{text}00"));
            }
        }
    }

    /// Applications keep these: a stream continues from what earlier versions of the server gave out.
    #[test]
    fn tokens_of_earlier_versions_are_still_read() {
        let position = Position::from_bytes([0x8A; POSITION_LENGTH]);
        for (end, invalidates) in [("00", false), ("01", true), ("02AE524045", false), ("03AE523E92", true)] {
            let text = format!("{}{end}", "8A".repeat(POSITION_LENGTH));
            let read = Token::parse(&Document::new().with("_data", text.as_str()));
            assert_eq!(read, Ok(Token { position, invalidates }));
        }
    }

    #[test]
    fn a_token_begins_with_its_time_as_those_of_mongodb() {
        let token = Token::at(Position::beginning_of(Time::from_millis(1_700_000_000_999)));
        assert!(text_of(token).starts_with("826553F1003E700000"), "{}", text_of(token));
    }

    #[test]
    fn digits_sort_as_events_do() {
        let position = |byte: u8| Position::from_bytes([byte; POSITION_LENGTH]);
        let mut tokens = Vec::new();
        for byte in [1, 2, 3, 0x80, 0xFE] {
            tokens.push(Token::at(position(byte)));
            tokens.push(Token { position: position(byte), invalidates: true });
        }
        assert!(tokens.is_sorted() && tokens.iter().map(|token| text_of(*token)).is_sorted());
    }
}

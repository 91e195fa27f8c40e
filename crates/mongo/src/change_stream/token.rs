//! Resume tokens: `{_data: <hexadecimal digits>}`, a position and the event there. Their digits sort as events do.
//!
//! ```text
//! position (32 bytes), mark u8, checksum u32
//! ```
//!
//! The mark says whether the token stands behind the end of a stream, and whether a checksum follows. Tokens had none once;
//! applications keep tokens for long, so those are still read. A mark of one form is none of the other: a token that was
//! cut or changed is refused, whatever is left of it.

use bson::{Document, Value};
use document::fingerprint;
use engine::Position;
use mql::Code;

use crate::protocol::error::{Error, Result};
use crate::protocol::operation_time::{cluster_time, time_of};

/// The length of a position's bytes, of the mark behind them, and of the checksum.
const POSITION_LENGTH: usize = 32;
const MARKED_LENGTH: usize = POSITION_LENGTH + 1;
const LENGTH: usize = MARKED_LENGTH + size_of::<u32>();

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
        let mark = if self.invalidates { INVALIDATES } else { AT };
        let mut bytes = self.position.to_bytes().to_vec();
        bytes.push(mark);
        bytes.extend_from_slice(&checksum(&bytes));
        Document::new().with("_data", digits(&bytes))
    }

    pub(super) fn parse(token: &Document) -> Result<Token> {
        let Some(Value::String(text)) = token.get("_data") else {
            let text = "Bad resume token: _data of missing or of wrong type";
            return Err(Error::location(40647, text));
        };
        let damaged = || {
            let text = "Bad resume token: _data was cut or changed, or is not from this server";
            Error::new(Code::INVALID_RESUME_TOKEN, text)
        };
        let bytes = read_digits(text).ok_or_else(damaged)?;
        let (position, rest) = bytes.split_first_chunk::<POSITION_LENGTH>().ok_or_else(damaged)?;
        let is_whole =
            || bytes.len() == LENGTH && bytes[MARKED_LENGTH..] == checksum(&bytes[..MARKED_LENGTH]);
        let invalidates = match *rest {
            [AT_UNCHECKED] => false,
            [INVALIDATES_UNCHECKED] => true,
            [AT, ..] if is_whole() => false,
            [INVALIDATES, ..] if is_whole() => true,
            _ => return Err(damaged()),
        };
        Ok(Token { position: Position::from_bytes(*position), invalidates })
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
    fn a_token_without_a_checksum_is_still_read() {
        for (mark, invalidates) in [("00", false), ("01", true)] {
            let text = format!("{}{mark}", "8A".repeat(POSITION_LENGTH));
            let position = Position::from_bytes([0x8A; POSITION_LENGTH]);
            let read = Token::parse(&Document::new().with("_data", text.as_str()));
            assert_eq!(read, Ok(Token { position, invalidates }));
        }
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

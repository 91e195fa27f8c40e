//! Resume tokens: `{_data: <hexadecimal digits>}`, a position and what stands there. Their digits sort as events do.

use bson::{Document, Timestamp, Value};
use engine::Position;
use mql::Code;
use storage::Time;

use crate::error::{Error, Result};

/// The length of a position's bytes, and of a token with the byte behind them.
const POSITION_LENGTH: usize = 32;
const LENGTH: usize = POSITION_LENGTH + 1;

/// How many bits of a timestamp's counter are left below the milliseconds of its second.
const ORDER_BITS: u32 = 20;

/// Where a stream goes on.
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
        let bytes = self.position.to_bytes().into_iter().chain([u8::from(self.invalidates)]);
        let digit = |half: u8| char::from_digit(half.into(), 16).unwrap_or('0').to_ascii_uppercase();
        let digits: String = bytes.flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect();
        Document::new().with("_data", digits)
    }

    pub(super) fn parse(token: &Document) -> Result<Token> {
        let Some(Value::String(digits)) = token.get("_data") else {
            let text = "Bad resume token: _data of missing or of wrong type";
            return Err(Error::location(40647, text));
        };
        let unreadable = || Error::new(Code::INVALID_RESUME_TOKEN, "the resume token cannot be read");
        if digits.len() != 2 * LENGTH {
            return Err(unreadable());
        }
        let half = |digit: u8| char::from(digit).to_digit(16).map(|half| half as u8);
        let byte = |pair: &[u8]| Some(half(pair[0])? << 4 | half(pair[1])?);
        let bytes: Option<Vec<u8>> = digits.as_bytes().chunks_exact(2).map(byte).collect();
        let bytes = bytes.ok_or_else(unreadable)?;
        let (position, flag) = bytes.split_first_chunk::<POSITION_LENGTH>().ok_or_else(unreadable)?;
        let invalidates = match flag {
            [0] => false,
            [1] => true,
            _ => return Err(unreadable()),
        };
        Ok(Token { position: Position::from_bytes(*position), invalidates })
    }
}

/// A token's digits, read and written again.
pub(crate) fn read(digits: &str) -> Option<String> {
    let token = Token::parse(&Document::new().with("_data", digits)).ok()?;
    let _ = time_of(cluster_time(token.position));
    match token.to_document().get("_data") {
        Some(Value::String(again)) => Some(again.clone()),
        _ => None,
    }
}

/// `clusterTime`: the second, and in the counter the millisecond in it and the number of the commit as far as there is room.
pub(super) fn cluster_time(position: Position) -> Timestamp {
    let (time, bytes) = (position.time(), position.to_bytes());
    let mut order = [0; 8];
    order.copy_from_slice(&bytes[8..16]);
    let order = (u64::from_be_bytes(order) >> 7) & ((1 << ORDER_BITS) - 1);
    let increment = (time.millis() % 1000) << ORDER_BITS | order;
    Timestamp {
        seconds: u32::try_from(time.seconds()).unwrap_or(u32::MAX),
        increment: u32::try_from(increment).unwrap_or(u32::MAX).max(1),
    }
}

/// The time that a timestamp stands for: one that an event had, or one of the cluster's clock, whose counter is small.
pub(super) fn time_of(timestamp: Timestamp) -> Time {
    let millis = u64::from(timestamp.increment >> ORDER_BITS).min(999);
    Time::from_millis(u64::from(timestamp.seconds) * 1000 + millis)
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

    #[test]
    fn a_timestamp_tells_the_millisecond() {
        let time = Time::from_millis(1_700_000_000_999);
        let position = Position::beginning_of(time);
        assert_eq!(time_of(cluster_time(position)), time);
        let of_the_clock = Timestamp { seconds: 1_700_000_000, increment: 7 };
        assert_eq!(time_of(of_the_clock), Time::from_seconds(1_700_000_000));
    }
}

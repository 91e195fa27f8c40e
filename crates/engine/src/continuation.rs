//! Continuation tokens: where a walk stands, as text that a client hands back.
//!
//! A token names the last entry that was dealt with, not a count: entries may come and go on either side of it.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use document::{ItemNumber, Sequence};

use crate::error::Error;
use crate::expiry::Millis;
use crate::keys::PartitionId;

/// The place to go on from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Continuation {
    pub(crate) partition: PartitionId,
    pub(crate) position: Position,
}

/// The last entry dealt with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Position {
    /// A key in the `Id` keyspace.
    Id(Vec<u8>),
    /// A place in the queues ordered by `_ts`.
    Stamp { base: Millis, number: ItemNumber },
    /// A sequence in the feed, and the time before which changes are not wanted, seconds since 1970.
    Feed { last: Sequence, since: u64 },
}

const ID: u8 = 1;
const STAMP: u8 = 2;
const FEED: u8 = 3;

impl Continuation {
    /// The error for a token that is none of ours, or that belongs to another query or container.
    pub(crate) fn foreign() -> Error {
        Error::invalid("The continuation token is not one that this query gave.")
    }
}

impl fmt::Display for Continuation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = self.partition.0.to_be_bytes().to_vec();
        match &self.position {
            Position::Id(key) => {
                bytes.push(ID);
                bytes.extend_from_slice(key);
            }
            Position::Stamp { base, number } => {
                bytes.push(STAMP);
                bytes.extend_from_slice(&base.to_be_bytes());
                bytes.extend_from_slice(&number.0.to_be_bytes());
            }
            Position::Feed { last, since } => {
                bytes.push(FEED);
                bytes.extend_from_slice(&last.0.to_be_bytes());
                bytes.extend_from_slice(&since.to_be_bytes());
            }
        }
        out.write_str(&URL_SAFE_NO_PAD.encode(bytes))
    }
}

impl FromStr for Continuation {
    type Err = Error;

    fn from_str(text: &str) -> Result<Continuation, Error> {
        let parse = || {
            let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
            let (partition, rest) = bytes.split_first_chunk::<4>()?;
            let (kind, rest) = rest.split_first()?;
            let position = match *kind {
                ID => Position::Id(rest.to_vec()),
                STAMP => {
                    let (base, number) = rest.split_first_chunk::<8>()?;
                    let number = ItemNumber(u64::from_be_bytes(number.try_into().ok()?));
                    Position::Stamp { base: Millis::from_be_bytes(*base), number }
                }
                FEED => {
                    let (last, since) = rest.split_first_chunk::<8>()?;
                    let since = u64::from_be_bytes(since.try_into().ok()?);
                    Position::Feed { last: Sequence(u64::from_be_bytes(*last)), since }
                }
                _ => return None,
            };
            Some(Continuation { partition: PartitionId(u32::from_be_bytes(*partition)), position })
        };
        parse().ok_or_else(Continuation::foreign)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_reads_back_and_nonsense_is_refused() {
        let positions = [
            Position::Id(b"key".to_vec()),
            Position::Stamp { base: -5, number: ItemNumber(u64::MAX) },
            Position::Feed { last: Sequence(9), since: 5 },
        ];
        for position in positions {
            let token = Continuation { partition: PartitionId(7), position };
            assert_eq!(token.to_string().parse(), Ok(token));
        }
        for text in ["", "!", "AAAA", "AAAAAAAA", "AAAABwkAAA", "AAAABwIAAA"] {
            assert!(text.parse::<Continuation>().is_err(), "{text}");
        }
    }
}

//! Tokens of the change feed, in both modes. Clients keep them for as long as they follow a container, so every
//! version that was ever issued can be read.

use std::fmt;
use std::str::FromStr;

use document::Sequence;

use super::bytes::{take, take_u64};
use super::text::{decode_token, decode_unchecked, encode_token};
use super::{VERSION, damaged};
use crate::keys::PartitionId;
use crate::keys::Position;
use crate::types::error::{Error, Result};

const FEED: u8 = 0x46;
const HISTORY: u8 = 0x48;
/// The version without a checksum.
const UNCHECKED: u8 = 1;

/// The positions to resume from in the change feed, latest version: the partition that is read next comes first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FeedToken {
    /// The last sequence that was visited in each partition.
    pub(crate) places: Vec<(PartitionId, Sequence)>,
    /// Changes before this time are skipped; seconds since 1970.
    pub(crate) since: u64,
}

/// The positions to resume from in the feed of all versions: the partition that is read next comes first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HistoryToken {
    pub(crate) places: Vec<(PartitionId, Position)>,
}

/// Returns the bytes behind kind and version of a token. The lengths of the two versions never agree for one kind, so
/// that no single changed byte turns one into the other.
fn content(text: &str, kind: u8) -> Option<Vec<u8>> {
    let checked = decode_token(text).filter(|bytes| bytes.starts_with(&[kind, VERSION]));
    let unchecked = || decode_unchecked(text).filter(|bytes| bytes.starts_with(&[kind, UNCHECKED]));
    checked.or_else(unchecked).map(|mut bytes| bytes.split_off(2))
}

impl fmt::Display for FeedToken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = vec![FEED, VERSION];
        bytes.extend_from_slice(&self.since.to_be_bytes());
        for (partition, last) in &self.places {
            bytes.extend_from_slice(&partition.0.to_be_bytes());
            bytes.extend_from_slice(&last.0.to_be_bytes());
        }
        out.write_str(&encode_token(bytes))
    }
}

impl FromStr for FeedToken {
    type Err = Error;

    fn from_str(text: &str) -> Result<FeedToken> {
        let parse = || {
            let bytes = content(text, FEED)?;
            let mut bytes = bytes.as_slice();
            let (since, mut places) = (take_u64(&mut bytes)?, Vec::new());
            while !bytes.is_empty() {
                let partition = PartitionId(u32::from_be_bytes(*take(&mut bytes)?));
                places.push((partition, Sequence(take_u64(&mut bytes)?)));
            }
            Some(FeedToken { places, since })
        };
        parse().ok_or_else(damaged)
    }
}

impl fmt::Display for HistoryToken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = vec![HISTORY, VERSION];
        for (partition, position) in &self.places {
            bytes.extend_from_slice(&partition.0.to_be_bytes());
            bytes.extend_from_slice(&position.to_bytes());
        }
        out.write_str(&encode_token(bytes))
    }
}

impl FromStr for HistoryToken {
    type Err = Error;

    fn from_str(text: &str) -> Result<HistoryToken> {
        let parse = || {
            let bytes = content(text, HISTORY)?;
            let mut bytes = bytes.as_slice();
            let mut places = Vec::new();
            while !bytes.is_empty() {
                let partition = PartitionId(u32::from_be_bytes(*take(&mut bytes)?));
                places.push((partition, Position::from_bytes(*take(&mut bytes)?)));
            }
            Some(HistoryToken { places })
        };
        parse().ok_or_else(damaged)
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::super::text::tests::damaged;
    use super::*;

    fn feed(partitions: u32) -> FeedToken {
        let places =
            (0..partitions).map(|number| (PartitionId(number + 7), Sequence(u64::from(number) * 999)));
        FeedToken { places: places.collect(), since: 1_700_000_000 }
    }

    fn history(partitions: u32) -> HistoryToken {
        let place = |number| (PartitionId(number), Position::before(i64::from(number) - 3));
        HistoryToken { places: (0..partitions).map(place).collect() }
    }

    #[test]
    fn a_token_reads_back_and_only_in_its_mode() {
        for partitions in [1, 2, 5] {
            let (feed, history) = (feed(partitions), history(partitions));
            assert_eq!(feed.to_string().parse(), Ok(feed.clone()));
            assert_eq!(history.to_string().parse(), Ok(history.clone()));
            assert!(history.to_string().parse::<FeedToken>().is_err());
            assert!(feed.to_string().parse::<HistoryToken>().is_err());
        }
    }

    #[test]
    fn anything_cut_or_changed_is_refused() {
        for partitions in [1, 3, 6] {
            for text in damaged(&feed(partitions).to_string()) {
                assert!(text.parse::<FeedToken>().is_err(), "{text}");
            }
            for text in damaged(&history(partitions).to_string()) {
                assert!(text.parse::<HistoryToken>().is_err(), "{text}");
            }
        }
        for text in ["", "!", "AAAA", "AAAAAAAA", "RgEAAA", "SAEAAA", "SAI"] {
            assert!(text.parse::<FeedToken>().is_err() && text.parse::<HistoryToken>().is_err(), "{text}");
        }
    }

    /// Clients keep tokens for long: one that an earlier version of the server issued resumes at the same position.
    #[test]
    fn a_token_without_a_checksum_is_still_read() {
        let without = |text: String| {
            let mut bytes = decode_token(&text).expect("a token");
            bytes[1] = UNCHECKED;
            URL_SAFE_NO_PAD.encode(bytes)
        };
        let known = "RgEAAAAAZVPxAAAAAAcAAAAAAAAAAAAAAAgAAAAAAAAD5w";
        assert_eq!(without(feed(2).to_string()), known);
        assert_eq!(known.parse(), Ok(feed(2)));
        assert_eq!(without(history(3).to_string()).parse(), Ok(history(3)));
        assert!(known[..known.len() - 2].parse::<FeedToken>().is_err());
    }
}

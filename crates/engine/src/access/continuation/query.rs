//! Tokens of queries: the position among the items, and the state of the rows so far.

use std::fmt;

use document::{ItemNumber, fingerprint};
use query::Resume;

use super::bytes::{put_bytes, take, take_bytes, take_u64};
use super::text::{decode_token, encode_token};
use super::{VERSION, damaged, foreign};
use crate::keys::PartitionId;
use crate::types::error::Result;

const QUERY: u8 = 0x51;

const NOWHERE: u8 = 0;
const ID: u8 = 1;
const STAMP: u8 = 2;
const NUMBER: u8 = 4;
const PATH: u8 = 5;
const REMAINING: u8 = 6;
const RANKED: u8 = 7;
const END: u8 = 8;

/// The longest row key that a token carries: clients send tokens in headers, whose size is limited.
pub(crate) const KEY_BYTES_MAX: usize = 3 * 1024;
/// How much of a longer key it carries.
const HEAD_BYTES: usize = 1024;

const WHOLE: u8 = 1;
const SHORTENED: u8 = 2;
const IN_MEMORY: u8 = 4;

/// The position to resume a query from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QueryToken {
    /// What the position depends on: query, partition key, ranges.
    pub(crate) binding: u64,
    /// Partitions before this one are done, where partitions are read one after the other.
    pub(crate) partition: PartitionId,
    /// The last entry that was visited in it.
    pub(crate) position: Option<Position>,
    /// The state of the rows so far.
    pub(crate) resume: Resume,
    /// The last row's key, where it is too long for a token.
    pub(crate) shortened: Option<ShortenedKey>,
    /// Whether an index could not provide the requested order, so that it is made in memory from now on.
    pub(crate) in_memory: bool,
}

/// The part that a token keeps of a key that is too long for it: enough to recognize the key if the item is
/// unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShortenedKey {
    hash: u64,
    /// The item's number, which breaks ties, and the row.
    pub(crate) tail: [u8; 12],
    /// The first bytes of the key.
    pub(crate) head: Vec<u8>,
}

impl ShortenedKey {
    /// Returns the short form of the key of an item's row.
    fn new(key: &[u8]) -> ShortenedKey {
        let tail = *key.last_chunk().unwrap_or(&[0; 12]);
        ShortenedKey { hash: fingerprint(key), tail, head: key[..HEAD_BYTES.min(key.len())].to_vec() }
    }

    fn encode(&self, in_memory: u8, out: &mut Vec<u8>) {
        out.push(in_memory | SHORTENED);
        out.extend_from_slice(&self.hash.to_be_bytes());
        out.extend_from_slice(&self.tail);
        out.extend_from_slice(&self.head);
    }

    /// Returns whether this is the short form of a key.
    pub(crate) fn is_of(&self, key: &[u8]) -> bool {
        fingerprint(key) == self.hash && key.starts_with(&self.head) && key.ends_with(&self.tail)
    }
}

/// The last entry that was visited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Position {
    /// A key in the `Id` keyspace, without the partition.
    Id(Vec<u8>),
    /// An item, by the second of its last write.
    Stamp { seconds: u64, number: ItemNumber },
    /// An item, by its number.
    Number(ItemNumber),
    /// An item, by its value at the path of a condition's leaf; `leaf` is the leaf's number.
    Path { leaf: u16, sort: Vec<u8>, number: ItemNumber },
    /// The same after the path's index was dropped, with the last item that the full scan has visited since.
    Remaining { leaf: u16, sort: Vec<u8>, number: ItemNumber, scanned: ItemNumber },
    /// A number of items, by rank.
    Ranked(u64),
    /// The end: every row has been returned.
    End,
}

impl QueryToken {
    /// Returns the token of the empty page behind the last row.
    pub(crate) fn end(binding: u64) -> QueryToken {
        let (partition, position, resume) = (PartitionId(0), Some(Position::End), Resume::default());
        QueryToken { binding, partition, position, resume, shortened: None, in_memory: false }
    }

    /// Reads a token, which must have been issued for this query.
    pub(crate) fn parse(text: &str, binding: u64) -> Result<QueryToken> {
        let token = decode_token(text).and_then(|bytes| QueryToken::decode(&bytes)).ok_or_else(damaged)?;
        if token.binding == binding { Ok(token) } else { Err(foreign()) }
    }

    fn decode(mut bytes: &[u8]) -> Option<QueryToken> {
        let bytes = &mut bytes;
        let [QUERY, VERSION] = take(bytes)? else { return None };
        let binding = take_u64(bytes)?;
        let partition = PartitionId(u32::from_be_bytes(*take(bytes)?));
        let position = match take(bytes)? {
            [NOWHERE] => None,
            [kind] => Some(Position::decode(*kind, bytes)?),
        };
        let passed = take_u64(bytes)?;
        let within = match take(bytes)? {
            [0] => None,
            [1] => Some((take_u64(bytes)?, u32::from_be_bytes(*take(bytes)?))),
            _ => return None,
        };
        let [flags] = *take(bytes)?;
        let (mut after, mut shortened) = (None, None);
        match flags & !IN_MEMORY {
            0 if bytes.is_empty() => {}
            WHOLE => after = Some(bytes.to_vec()),
            SHORTENED => {
                let (hash, tail) = (take_u64(bytes)?, *take(bytes)?);
                shortened = Some(ShortenedKey { hash, tail, head: bytes.to_vec() });
            }
            _ => return None,
        }
        let (resume, in_memory) = (Resume { passed, within, after }, flags & IN_MEMORY != 0);
        Some(QueryToken { binding, partition, position, resume, shortened, in_memory })
    }
}

impl fmt::Display for QueryToken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = vec![QUERY, VERSION];
        bytes.extend_from_slice(&self.binding.to_be_bytes());
        bytes.extend_from_slice(&self.partition.0.to_be_bytes());
        Position::encode(self.position.as_ref(), &mut bytes);
        bytes.extend_from_slice(&self.resume.passed.to_be_bytes());
        match self.resume.within {
            None => bytes.push(0),
            Some((number, rows)) => {
                bytes.push(1);
                bytes.extend_from_slice(&number.to_be_bytes());
                bytes.extend_from_slice(&rows.to_be_bytes());
            }
        }
        let in_memory = if self.in_memory { IN_MEMORY } else { 0 };
        match (&self.resume.after, &self.shortened) {
            (Some(key), _) if key.len() <= KEY_BYTES_MAX => {
                bytes.push(in_memory | WHOLE);
                bytes.extend_from_slice(key);
            }
            (Some(key), _) => ShortenedKey::new(key).encode(in_memory, &mut bytes),
            (None, Some(shortened)) => shortened.encode(in_memory, &mut bytes),
            (None, None) => bytes.push(in_memory),
        }
        out.write_str(&encode_token(bytes))
    }
}

impl Position {
    fn encode(position: Option<&Position>, out: &mut Vec<u8>) {
        let number = |number: &ItemNumber| number.0.to_be_bytes();
        match position {
            None => out.push(NOWHERE),
            Some(Position::Id(key)) => {
                out.push(ID);
                put_bytes(key, out);
            }
            Some(Position::Stamp { seconds, number: item }) => {
                out.push(STAMP);
                out.extend_from_slice(&seconds.to_be_bytes());
                out.extend_from_slice(&number(item));
            }
            Some(Position::Number(item)) => {
                out.push(NUMBER);
                out.extend_from_slice(&number(item));
            }
            Some(Position::Path { leaf, sort, number: item }) => {
                out.push(PATH);
                out.extend_from_slice(&leaf.to_be_bytes());
                put_bytes(sort, out);
                out.extend_from_slice(&number(item));
            }
            Some(Position::Remaining { leaf, sort, number: item, scanned }) => {
                out.push(REMAINING);
                out.extend_from_slice(&leaf.to_be_bytes());
                put_bytes(sort, out);
                out.extend_from_slice(&number(item));
                out.extend_from_slice(&number(scanned));
            }
            Some(Position::Ranked(passed)) => {
                out.push(RANKED);
                out.extend_from_slice(&passed.to_be_bytes());
            }
            Some(Position::End) => out.push(END),
        }
    }

    fn decode(kind: u8, bytes: &mut &[u8]) -> Option<Position> {
        let leaf = |bytes: &mut &[u8]| Some(u16::from_be_bytes(*take(bytes)?));
        let number = |bytes: &mut &[u8]| Some(ItemNumber(take_u64(bytes)?));
        Some(match kind {
            ID => Position::Id(take_bytes(bytes)?),
            STAMP => Position::Stamp { seconds: take_u64(bytes)?, number: number(bytes)? },
            NUMBER => Position::Number(number(bytes)?),
            PATH => {
                let (leaf, sort) = (leaf(bytes)?, take_bytes(bytes)?);
                Position::Path { leaf, sort, number: number(bytes)? }
            }
            REMAINING => {
                let (leaf, sort) = (leaf(bytes)?, take_bytes(bytes)?);
                Position::Remaining { leaf, sort, number: number(bytes)?, scanned: number(bytes)? }
            }
            RANKED => Position::Ranked(take_u64(bytes)?),
            END => Position::End,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::text::tests::damaged;
    use super::super::{FeedToken, HistoryToken};
    use super::*;
    use crate::types::error::Error;

    fn tokens() -> Vec<QueryToken> {
        let (number, scanned) = (ItemNumber(u64::MAX), ItemNumber(7));
        let positions = [
            None,
            Some(Position::Id(b"key".to_vec())),
            Some(Position::Stamp { seconds: 5, number }),
            Some(Position::Number(number)),
            Some(Position::Path { leaf: 3, sort: vec![6, 0, 0], number }),
            Some(Position::Remaining { leaf: 0, sort: vec![], number, scanned }),
            Some(Position::Ranked(9)),
            Some(Position::End),
        ];
        let resumes = [
            Resume::default(),
            Resume { passed: 4, within: Some((9, 2)), after: None },
            Resume { passed: u64::MAX, within: None, after: Some(vec![1, 2, 3]) },
            Resume { passed: 1, within: None, after: Some(vec![]) },
        ];
        let token = |position: &Option<Position>, resume: &Resume, in_memory| QueryToken {
            binding: 77,
            partition: PartitionId(7),
            position: position.clone(),
            resume: resume.clone(),
            shortened: None,
            in_memory,
        };
        let each = |position| {
            resumes.iter().flat_map(move |resume| [true, false].map(|m| token(position, resume, m)))
        };
        positions.iter().flat_map(each).collect()
    }

    #[test]
    fn a_token_reads_back_and_only_for_what_it_is_bound_to() {
        for token in tokens() {
            assert_eq!(QueryToken::parse(&token.to_string(), 77), Ok(token.clone()));
            assert_eq!(QueryToken::parse(&token.to_string(), 78), Err(foreign()));
            assert!(token.to_string().parse::<FeedToken>().is_err(), "{token:?}");
            assert!(token.to_string().parse::<HistoryToken>().is_err(), "{token:?}");
        }
        let feed = FeedToken { places: vec![(PartitionId(7), document::Sequence(9))], since: 5 };
        assert!(QueryToken::parse(&feed.to_string(), 77).is_err());
    }

    #[test]
    fn anything_cut_or_changed_is_refused() {
        for text in tokens().iter().map(ToString::to_string) {
            for text in damaged(&text) {
                let refused = QueryToken::parse(&text, 77);
                assert!(matches!(refused, Err(Error::InvalidContinuation { .. })), "{text}: {refused:?}");
            }
        }
        for text in ["", "!", "AAAA", "AAAAAAAA", "AAAABwkAAA", "UQ", "UQE", "UQI"] {
            assert!(QueryToken::parse(text, 0).is_err(), "{text}");
        }
    }

    /// A token with a valid checksum may come from a server of another version, which wrote more or less.
    #[test]
    fn bytes_that_are_no_token_are_refused_whatever_their_checksum() {
        for token in tokens() {
            let bytes = decode_token(&token.to_string()).expect("a token");
            for length in 0..bytes.len() {
                // A shorter row key may be valid; nothing else may be truncated.
                let cut = QueryToken::decode(&bytes[..length]);
                assert!(cut.is_none_or(|cut| cut.resume.after.is_some()), "{token:?} cut at {length}");
            }
        }
        // The version before had no checksum, and bound a token to the text alone.
        let first = "UQEQ0CgpXR5bYAAAAAQAAAAAAAAAAAUAAQXAGAAAAAAAAIAAAAAAAAAKgAAAAAA";
        assert!(QueryToken::parse(first, 0x10d0_2829_5d1e_5b60).is_err());
    }

    #[test]
    fn a_long_key_is_shortened_and_known_again() {
        let key: Vec<u8> = (0..20_000_u32).map(|n| n as u8).collect();
        let resume = Resume { passed: 1, within: None, after: Some(key.clone()) };
        let (binding, partition) = (7, PartitionId(1));
        let token =
            QueryToken { binding, partition, position: None, resume, shortened: None, in_memory: true };
        let text = token.to_string();
        assert!(text.len() < 2000);
        let read = QueryToken::parse(&text, 7).expect("a token");
        let shortened = read.shortened.clone().expect("too long");
        assert!(shortened.is_of(&key) && !shortened.is_of(&key[1..]) && !shortened.is_of(b""));
        assert_eq!((read.resume.after.as_ref(), read.in_memory, read.to_string()), (None, true, text));
    }
}

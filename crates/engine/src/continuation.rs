//! Continuation tokens: where a walk stands, as text that a client hands back.
//!
//! A token names the last entry that was dealt with, not a count: entries may come and go on either side of it. A query's
//! token is bound to the query: with another one it is refused. It names values and numbers of items, never keys of a
//! generation of an index, so that it outlives a change of the indexing policy.
//!
//! ```text
//! feed    0x46, version 1, time u64, then for each partition: its number u32, sequence u64
//! history 0x48, version 1, then for each partition: its number u32, position (32 bytes)
//! query   0x51, version 1, query u64, partition u32, position, resume
//!           position   kind u8, then what it needs; long things with their length u16 before
//!           resume     passed u64; 0, or 1, number u64, rows u32; how the last row's key follows (bit 0: whole, bit 1:
//!                      shortened) and whether the order is made in memory (bit 2); the key
//!           shortened  hash u64, the last 12 bytes (item and row), the first 1024
//! ```

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use document::{ItemNumber, Sequence};
use query::Resume;

use crate::container::Partition;
use crate::error::{Error, Result};
use crate::history;
use crate::keys::PartitionId;

/// The places to go on from in the change feed, latest version: the partition that is read next comes first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FeedToken {
    /// The last sequence that was dealt with in each partition.
    pub(crate) places: Vec<(PartitionId, Sequence)>,
    /// Before this time changes are not wanted, seconds since 1970.
    pub(crate) since: u64,
}

/// The places to go on from in the feed of all versions: the partition that is read next comes first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HistoryToken {
    pub(crate) places: Vec<(PartitionId, history::Position)>,
}

/// The place to go on from in a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QueryToken {
    /// The query that it belongs to.
    pub(crate) fingerprint: u64,
    /// Partitions before this one are done, where they are gone through one after the other.
    pub(crate) partition: PartitionId,
    /// What was dealt with of it.
    pub(crate) position: Option<Position>,
    /// What has become of the rows so far.
    pub(crate) resume: Resume,
    /// The last row's key, where it is too long for a token.
    pub(crate) shortened: Option<ShortenedKey>,
    /// Whether an index failed to have the order that is asked for: it is made in memory from now on.
    pub(crate) in_memory: bool,
}

/// What a token tells of a key that is too long for it: enough to know the key again if the item is still as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShortenedKey {
    hash: u64,
    /// The item's number as it breaks ties, and the row.
    pub(crate) tail: [u8; 12],
    /// How the key begins.
    pub(crate) head: Vec<u8>,
}

impl ShortenedKey {
    /// The short form of a key of an item's row.
    fn new(key: &[u8]) -> ShortenedKey {
        let tail = *key.last_chunk().unwrap_or(&[0; 12]);
        ShortenedKey { hash: hash(key), tail, head: key[..HEAD_BYTES.min(key.len())].to_vec() }
    }

    fn encode(&self, in_memory: u8, out: &mut Vec<u8>) {
        out.push(in_memory | SHORTENED);
        out.extend_from_slice(&self.hash.to_be_bytes());
        out.extend_from_slice(&self.tail);
        out.extend_from_slice(&self.head);
    }

    /// Whether this is the short form of a key.
    pub(crate) fn is_of(&self, key: &[u8]) -> bool {
        hash(key) == self.hash && key.starts_with(&self.head) && key.ends_with(&self.tail)
    }
}

/// FNV-1a.
fn hash(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The last entry dealt with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Position {
    /// A key in the `Id` keyspace, behind the partition.
    Id(Vec<u8>),
    /// An item, by the second of its last write.
    Stamp { seconds: u64, number: ItemNumber },
    /// An item, by its number.
    Number(ItemNumber),
    /// An item, by what it has at the path of the condition's leaf of that number.
    Path { leaf: u16, sort: Vec<u8>, number: ItemNumber },
    /// The same when the path's index went away, and how far all items were looked through since.
    Remaining { leaf: u16, sort: Vec<u8>, number: ItemNumber, scanned: ItemNumber },
    /// So many items, by rank.
    Ranked(u64),
}

const FEED: u8 = 0x46;
const HISTORY: u8 = 0x48;
const QUERY: u8 = 0x51;
const VERSION: u8 = 1;

const NOWHERE: u8 = 0;
const ID: u8 = 1;
const STAMP: u8 = 2;
const NUMBER: u8 = 4;
const PATH: u8 = 5;
const REMAINING: u8 = 6;
const RANKED: u8 = 7;

/// The longest key of a row that a token carries: clients send tokens in headers, which end somewhere.
pub(crate) const KEY_BYTES_MAX: usize = 3 * 1024;
/// How much of a longer one it carries.
const HEAD_BYTES: usize = 1024;

const WHOLE: u8 = 1;
const SHORTENED: u8 = 2;
const IN_MEMORY: u8 = 4;

/// The error for a token that is none of ours, or that belongs to another query or container.
pub(crate) fn foreign() -> Error {
    Error::invalid("The continuation token is not one that this query gave.")
}

impl fmt::Display for FeedToken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = vec![FEED, VERSION];
        bytes.extend_from_slice(&self.since.to_be_bytes());
        for (partition, last) in &self.places {
            bytes.extend_from_slice(&partition.0.to_be_bytes());
            bytes.extend_from_slice(&last.0.to_be_bytes());
        }
        out.write_str(&URL_SAFE_NO_PAD.encode(bytes))
    }
}

impl FromStr for FeedToken {
    type Err = Error;

    fn from_str(text: &str) -> Result<FeedToken> {
        let parse = || {
            let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
            let mut bytes = bytes.as_slice();
            let [FEED, VERSION] = take(&mut bytes)? else { return None };
            let (since, mut places) = (take_u64(&mut bytes)?, Vec::new());
            while !bytes.is_empty() {
                let partition = PartitionId(u32::from_be_bytes(*take(&mut bytes)?));
                places.push((partition, Sequence(take_u64(&mut bytes)?)));
            }
            Some(FeedToken { places, since })
        };
        parse().ok_or_else(foreign)
    }
}

impl fmt::Display for HistoryToken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = vec![HISTORY, VERSION];
        for (partition, position) in &self.places {
            bytes.extend_from_slice(&partition.0.to_be_bytes());
            bytes.extend_from_slice(&position.to_bytes());
        }
        out.write_str(&URL_SAFE_NO_PAD.encode(bytes))
    }
}

impl FromStr for HistoryToken {
    type Err = Error;

    fn from_str(text: &str) -> Result<HistoryToken> {
        let parse = || {
            let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
            let mut bytes = bytes.as_slice();
            let [HISTORY, VERSION] = take(&mut bytes)? else { return None };
            let mut places = Vec::new();
            while !bytes.is_empty() {
                let partition = PartitionId(u32::from_be_bytes(*take(&mut bytes)?));
                places.push((partition, history::Position::from_bytes(*take(&mut bytes)?)));
            }
            Some(HistoryToken { places })
        };
        parse().ok_or_else(foreign)
    }
}

/// The places of a token that lie in the partitions of a scope, in the token's order. A token that does not know one of
/// them is of another container, or of another part of it.
pub(crate) fn places_in<'a, P: Copy>(
    places: &[(PartitionId, P)],
    partitions: &[&'a Arc<Partition>],
) -> Result<Vec<(&'a Arc<Partition>, P)>> {
    let find = |id| partitions.iter().copied().find(|partition| partition.id == id);
    let found: Vec<_> = places.iter().filter_map(|(id, place)| Some((find(*id)?, *place))).collect();
    if found.len() == partitions.len() { Ok(found) } else { Err(foreign()) }
}

impl QueryToken {
    /// Reads the token of a query.
    pub(crate) fn parse(text: &str, fingerprint: u64) -> Result<QueryToken> {
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| foreign())?;
        let token = QueryToken::decode(&bytes).filter(|token| token.fingerprint == fingerprint);
        token.ok_or_else(foreign)
    }

    fn decode(mut bytes: &[u8]) -> Option<QueryToken> {
        let bytes = &mut bytes;
        let [QUERY, VERSION] = take(bytes)? else { return None };
        let fingerprint = take_u64(bytes)?;
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
        Some(QueryToken { fingerprint, partition, position, resume, shortened, in_memory })
    }
}

impl fmt::Display for QueryToken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = vec![QUERY, VERSION];
        bytes.extend_from_slice(&self.fingerprint.to_be_bytes());
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
        out.write_str(&URL_SAFE_NO_PAD.encode(bytes))
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
            _ => return None,
        })
    }
}

/// Everything that is put so is far shorter than its length field allows: keys of a store are.
fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    let length = u16::try_from(bytes.len()).expect("a key of the store is at most 64 KiB long");
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(bytes);
}

fn take_bytes(bytes: &mut &[u8]) -> Option<Vec<u8>> {
    let length = usize::from(u16::from_be_bytes(*take(bytes)?));
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken.to_vec())
}

fn take_u64(bytes: &mut &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(*take(bytes)?))
}

fn take<'a, const N: usize>(bytes: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (head, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(head)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        ];
        let resumes = [
            Resume::default(),
            Resume { passed: 4, within: Some((9, 2)), after: None },
            Resume { passed: u64::MAX, within: None, after: Some(vec![1, 2, 3]) },
            Resume { passed: 1, within: None, after: Some(vec![]) },
        ];
        let token = |position: &Option<Position>, resume: &Resume, in_memory| QueryToken {
            fingerprint: 77,
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
    fn a_token_reads_back_and_only_for_its_query() {
        for token in tokens() {
            assert_eq!(QueryToken::parse(&token.to_string(), 77), Ok(token.clone()));
            assert!(QueryToken::parse(&token.to_string(), 78).is_err());
            assert!(token.to_string().parse::<FeedToken>().is_err(), "{token:?}");
            assert!(token.to_string().parse::<HistoryToken>().is_err(), "{token:?}");
        }
        let places = vec![(PartitionId(7), Sequence(9)), (PartitionId(2), Sequence(0))];
        let feed = FeedToken { places, since: 5 };
        assert_eq!(feed.to_string().parse(), Ok(feed.clone()));
        assert!(QueryToken::parse(&feed.to_string(), 77).is_err());
        let history = HistoryToken { places: vec![(PartitionId(7), history::Position::before(-3))] };
        assert_eq!(history.to_string().parse(), Ok(history.clone()));
        assert!(history.to_string().parse::<FeedToken>().is_err());
        assert!(feed.to_string().parse::<HistoryToken>().is_err());
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "!", "AAAA", "AAAAAAAA", "AAAABwkAAA", "RgEAAA", "SAEAAA", "SAI", "UQ", "UQE"] {
            assert!(text.parse::<FeedToken>().is_err() && text.parse::<HistoryToken>().is_err(), "{text}");
            assert!(QueryToken::parse(text, 0).is_err(), "{text}");
        }
        for token in tokens() {
            let bytes = URL_SAFE_NO_PAD.decode(token.to_string()).expect("base64");
            for length in 0..bytes.len() {
                // A shorter key may be a key; nothing else may be cut.
                let cut = QueryToken::decode(&bytes[..length]);
                assert!(cut.is_none_or(|cut| cut.resume.after.is_some()), "{token:?} cut at {length}");
            }
        }
    }

    #[test]
    fn a_long_key_is_shortened_and_known_again() {
        let key: Vec<u8> = (0..20_000_u32).map(|n| n as u8).collect();
        let resume = Resume { passed: 1, within: None, after: Some(key.clone()) };
        let (fingerprint, partition) = (7, PartitionId(1));
        let token =
            QueryToken { fingerprint, partition, position: None, resume, shortened: None, in_memory: true };
        let text = token.to_string();
        assert!(text.len() < 2000);
        let read = QueryToken::parse(&text, 7).expect("a token");
        let shortened = read.shortened.clone().expect("too long");
        assert!(shortened.is_of(&key) && !shortened.is_of(&key[1..]) && !shortened.is_of(b""));
        assert_eq!((read.resume.after.as_ref(), read.in_memory, read.to_string()), (None, true, text));
    }
}

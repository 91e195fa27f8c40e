//! Verifying a log, line by line, by its text alone: no store, no key, nothing that an auditor could not write themselves.

use sha2::{Digest, Sha256};

use crate::obituary::hex;

/// What stands between the hashed text and the hash.
pub(super) const HASH_MEMBER: &str = ",\"hash\":\"";

/// The `previous` of the first line.
pub(super) const NO_HASH: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// What is wrong with a log. Lines are counted from 1, as they stand in the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Tampering {
    /// Not written as lines of a deletion record are.
    #[error("line {line} is not a line of a deletion record")]
    NoEntry {
        /// Which.
        line: u64,
    },
    /// The text is not the one that was hashed.
    #[error("line {line} was changed: its hash does not belong to its text")]
    Changed {
        /// Which.
        line: u64,
    },
    /// An entry of another log.
    #[error("line {line} belongs to log {found}, the lines before it to log {expected}")]
    OtherLog {
        /// Which.
        line: u64,
        /// The log that it names.
        found: u64,
        /// The log of the lines before.
        expected: u64,
    },
    /// Not the entry that should stand there.
    #[error(
        "line {line} is entry {found}, not entry {expected}: entries are missing, doubled or in another order"
    )]
    OutOfOrder {
        /// Which.
        line: u64,
        /// The number that it has.
        found: u64,
        /// The number that it should have.
        expected: u64,
    },
    /// It does not name the hash of the line before.
    #[error("line {line} does not follow the line before it: the line before it is another than was written")]
    Unchained {
        /// Which.
        line: u64,
    },
    /// Nothing is there.
    #[error("there is no entry at all")]
    Empty,
    /// It ends too early, or too late.
    #[error("there are {found} entries, and there were {expected}")]
    Count {
        /// How many there are.
        found: u64,
        /// How many there should be.
        expected: u64,
    },
    /// It ends otherwise.
    #[error(
        "the last entry has the hash {found}, and it was {expected}: the end is another than was written"
    )]
    Head {
        /// The hash of the last entry.
        found: String,
        /// The hash that it should have.
        expected: String,
    },
    /// Not the entry whose hash was noted elsewhere.
    #[error(
        "line {line} has the hash {found}, and {expected} was noted: it is another than was written, or one before it"
    )]
    Noted {
        /// Which.
        line: u64,
        /// The hash that it has.
        found: String,
        /// The hash that was noted.
        expected: String,
    },
    /// None has the hash that was noted elsewhere.
    #[error(
        "no line has the hash {expected}, which was noted: lines are missing, or others than were written"
    )]
    NotedNowhere {
        /// The hash that was noted.
        expected: String,
    },
}

/// Goes through a log. It has seen a beginning of it that is in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verifier {
    log: Option<u64>,
    count: u64,
    head: Option<String>,
    noted: Noted,
}

/// How long a log was at some time, and the hash of its last entry then.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Noted {
    head: Option<String>,
    count: Option<u64>,
    /// An entry with that hash was seen.
    is_met: bool,
}

impl Verifier {
    /// For a log of which is known from elsewhere that it had so many entries once, or such a hash at its end. It may have
    /// become longer since.
    pub fn with_noted(head: Option<String>, count: Option<u64>) -> Verifier {
        Verifier { noted: Noted { head, count, is_met: false }, ..Verifier::default() }
    }

    /// How many entries were seen.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The number that all of them have.
    pub fn log(&self) -> Option<u64> {
        self.log
    }

    /// The next line, with its end. Only the last line of a file may lack that.
    pub fn line(&mut self, line: &[u8]) -> Result<(), Tampering> {
        let at = self.count + 1;
        let entry = Entry::parse(line).ok_or(Tampering::NoEntry { line: at })?;
        if hex(&Sha256::digest(entry.hashed).into()) != entry.hash {
            return Err(Tampering::Changed { line: at });
        }
        if let Some(expected) = self.log.filter(|log| *log != entry.log) {
            return Err(Tampering::OtherLog { line: at, found: entry.log, expected });
        }
        if entry.number != at {
            return Err(Tampering::OutOfOrder { line: at, found: entry.number, expected: at });
        }
        if entry.previous != self.head.as_deref().unwrap_or(NO_HASH) {
            return Err(Tampering::Unchained { line: at });
        }
        (self.log, self.count, self.head) = (Some(entry.log), at, Some(entry.hash.to_owned()));
        self.noted.meet(at, entry.hash)
    }

    /// The end: the hash of the last line. What is known of it from elsewhere must be so.
    pub fn finish(self, head: Option<&str>, count: Option<u64>) -> Result<String, Tampering> {
        self.noted.check_met(self.count)?;
        if let Some(expected) = count.filter(|count| *count != self.count) {
            return Err(Tampering::Count { found: self.count, expected });
        }
        let Some(found) = self.head else { return Err(Tampering::Empty) };
        match head.filter(|head| *head != found) {
            Some(expected) => Err(Tampering::Head { found, expected: expected.to_owned() }),
            None => Ok(found),
        }
    }
}

impl Noted {
    fn meet(&mut self, line: u64, hash: &str) -> Result<(), Tampering> {
        let Some(expected) = &self.head else { return Ok(()) };
        self.is_met |= hash == expected;
        if self.count == Some(line) && hash != expected {
            return Err(Tampering::Noted { line, found: hash.to_owned(), expected: expected.clone() });
        }
        Ok(())
    }

    fn check_met(&self, found: u64) -> Result<(), Tampering> {
        if let Some(expected) = self.count.filter(|count| *count > found) {
            return Err(Tampering::Count { found, expected });
        }
        match &self.head {
            Some(expected) if !self.is_met => Err(Tampering::NotedNowhere { expected: expected.clone() }),
            _ => Ok(()),
        }
    }
}

/// What of a line the chain is made of.
struct Entry<'a> {
    log: u64,
    number: u64,
    previous: &'a str,
    hashed: &'a [u8],
    hash: &'a str,
}

impl Entry<'_> {
    /// Strictly as lines are written: what is written otherwise was written by somebody else.
    fn parse(line: &[u8]) -> Option<Entry<'_>> {
        let line = str::from_utf8(line).ok()?;
        let line = line.strip_suffix('\n').unwrap_or(line);
        let (hashed, hash) = line.strip_suffix("\"}")?.rsplit_once(HASH_MEMBER)?;
        let rest = hashed.strip_prefix("{\"log\":")?;
        let (log, rest) = rest.split_once(",\"n\":")?;
        let (number, rest) = rest.split_once(",\"previous\":\"")?;
        let (previous, _) = rest.split_once('"')?;
        let entry =
            Entry { log: decimal(log)?, number: decimal(number)?, previous, hashed: hashed.as_bytes(), hash };
        (is_hash(hash) && is_hash(previous)).then_some(entry)
    }
}

/// A number as it is printed: no sign, no zeros in front.
fn decimal(text: &str) -> Option<u64> {
    text.parse::<u64>().ok().filter(|number| number.to_string() == text)
}

fn is_hash(text: &str) -> bool {
    text.len() == NO_HASH.len() && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

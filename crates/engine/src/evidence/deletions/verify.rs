//! Verifies a log line by line, from its text alone: it needs no store and no key, and an auditor could write an
//! equivalent.

use sha2::{Digest, Sha256};

use crate::evidence::expiry_record::hex;

/// The text between the hashed text and the hash.
pub(super) const HASH_MEMBER: &str = ",\"hash\":\"";

/// The `previous` of the first line.
pub(super) const NO_HASH: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// What is wrong with a log. Lines are counted from 1, as they are in the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Tampering {
    /// A line is not in the form of a deletion record.
    #[error("line {line} is not a line of a deletion record")]
    NoEntry {
        /// The line's number.
        line: u64,
    },
    /// The text is not the text that was hashed.
    #[error("line {line} was changed: its hash does not belong to its text")]
    Changed {
        /// The line's number.
        line: u64,
    },
    /// A line belongs to another log.
    #[error("line {line} belongs to log {found}, the lines before it to log {expected}")]
    OtherLog {
        /// The line's number.
        line: u64,
        /// The log that the line names.
        found: u64,
        /// The log of the lines before.
        expected: u64,
    },
    /// A line has another number than expected.
    #[error(
        "line {line} is entry {found}, not entry {expected}: entries are missing, doubled or in another order"
    )]
    OutOfOrder {
        /// The line's number.
        line: u64,
        /// The entry number that it has.
        found: u64,
        /// The entry number that it should have.
        expected: u64,
    },
    /// A line does not have the hash of the line before.
    #[error("line {line} does not follow the line before it: the hash of the line before it differs")]
    Unchained {
        /// The line's number.
        line: u64,
    },
    /// There are no lines.
    #[error("there are no entries")]
    Empty,
    /// The log has too few or too many entries.
    #[error("there are {found} entries, and there were {expected}")]
    Count {
        /// How many there are.
        found: u64,
        /// How many there should be.
        expected: u64,
    },
    /// The last line has another hash than expected.
    #[error("the last entry has the hash {found}, expected {expected}: the end was changed")]
    Head {
        /// The hash of the last entry.
        found: String,
        /// The hash that it should have.
        expected: String,
    },
    /// The line of the noted number has another hash than the noted one.
    #[error("line {line} has the hash {found}, and {expected} was noted: it or a line before it was changed")]
    Noted {
        /// The line's number.
        line: u64,
        /// The hash that it has.
        found: String,
        /// The hash that was noted.
        expected: String,
    },
    /// No line has the noted hash.
    #[error("no line has the hash {expected}, which was noted: lines are missing or were changed")]
    NotedNowhere {
        /// The hash that was noted.
        expected: String,
    },
}

/// Verifies a log line by line. The lines that it has accepted are a valid beginning of one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verifier {
    log: Option<u64>,
    count: u64,
    head: Option<String>,
    noted: Noted,
}

/// The length of a log at an earlier time, and the hash of its last entry then.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Noted {
    head: Option<String>,
    count: Option<u64>,
    /// Whether an entry with that hash was seen.
    is_met: bool,
}

impl Verifier {
    /// Creates a verifier for a log that is known to have had that many entries once, or such a hash at its end. The
    /// log may have grown since.
    pub fn with_noted(head: Option<String>, count: Option<u64>) -> Verifier {
        Verifier { noted: Noted { head, count, is_met: false }, ..Verifier::default() }
    }

    /// Returns how many entries were seen.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the log number that all of them have.
    pub fn log(&self) -> Option<u64> {
        self.log
    }

    /// Verifies the next line, which includes its line end. Only the last line of a file may lack that.
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

    /// Ends the verification and returns the hash of the last line. Fails if the given head or count differ.
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

/// The members of a line that form the chain.
struct Entry<'a> {
    log: u64,
    number: u64,
    previous: &'a str,
    hashed: &'a [u8],
    hash: &'a str,
}

impl Entry<'_> {
    /// Parses a line, strictly in the form in which this engine writes lines.
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

/// Parses a number as it is printed: no sign, no leading zeros.
fn decimal(text: &str) -> Option<u64> {
    text.parse::<u64>().ok().filter(|number| number.to_string() == text)
}

fn is_hash(text: &str) -> bool {
    text.len() == NO_HASH.len() && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

//! Session tokens: the LSNs that a client has seen, by partition key range.
//!
//! The server sends `<range>:-1#<lsn>`, the one form that all SDKs read and merge: one range, and an LSN of this range,
//! since each counts its own commits. Clients split a token at the first `:`, so it cannot name several ranges: an
//! answer over several names one of them. The server accepts several tokens joined by commas, any version, any number
//! of regions, and the old form `<range>:<lsn>`. With one authoritative store a token can only be ahead if it comes
//! from elsewhere; then the read is refused rather than answered from an older state.

use std::fmt::{self, Display};

use engine::RangeLsn;

use crate::protocol::error::Error;
use crate::protocol::limits::SESSION_TOKENS;

/// Formats the token for a range at an LSN.
pub(crate) fn token(RangeLsn { range, lsn }: RangeLsn) -> impl Display {
    fmt::from_fn(move |text| write!(text, "{range}:-1#{lsn}"))
}

/// The session header of a request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Session(Vec<(String, u64)>);

impl Session {
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let mut seen = Vec::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            if seen.len() == SESSION_TOKENS {
                return Err(malformed(text));
            }
            seen.push(parse_one(part).ok_or_else(|| malformed(text))?);
        }
        Ok(Self(seen))
    }

    /// Returns an error if the client has seen a later state of a range than exists; `lsn_of` returns the LSN of a
    /// range by its id.
    pub(crate) fn check(&self, lsn_of: impl Fn(&str) -> Option<u64>) -> Result<(), Error> {
        let ahead = self.0.iter().any(|(range, seen)| lsn_of(range).is_some_and(|lsn| *seen > lsn));
        if ahead { Err(Error::SessionNotAvailable) } else { Ok(()) }
    }
}

fn parse_one(text: &str) -> Option<(String, u64)> {
    let (range, vector) = text.split_once(':')?;
    if range.is_empty() || !range.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mut parts = vector.split('#');
    let first = parts.next()?;
    let lsn = match parts.next() {
        None => first.parse().ok()?,
        Some(lsn) => {
            first.parse::<i64>().ok()?;
            lsn.parse().ok()?
        }
    };
    for region in parts {
        let (id, local) = region.split_once('=')?;
        id.parse::<u64>().ok()?;
        local.parse::<i64>().ok()?;
    }
    Some((range.to_owned(), lsn))
}

fn malformed(text: &str) -> Error {
    let shown: String = text.chars().take(100).collect();
    Error::BadRequest(format!(
        "The session token '{shown}' is malformed; expected '<range>:<version>#<lsn>'."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_that_sdks_send_is_read() {
        for (text, expected) in [
            ("0:-1#12", vec![("0", 12)]),
            ("0:5#12#1=3#2=-1", vec![("0", 12)]),
            ("0:500", vec![("0", 500)]),
            ("0:-1#1,1:-1#7", vec![("0", 1), ("1", 7)]),
            ("", vec![]),
        ] {
            let expected = expected.into_iter().map(|(range, lsn)| (range.to_owned(), lsn)).collect();
            assert_eq!(Session::parse(text).unwrap(), Session(expected), "{text}");
        }
        assert_eq!(
            Session::parse(&token(RangeLsn { range: 3, lsn: 9 }).to_string()).unwrap(),
            Session(vec![("3".to_owned(), 9)])
        );
    }

    #[test]
    fn malformed_tokens_are_refused() {
        for text in [
            "x",
            "0",
            "0:",
            ":1",
            "0:a",
            "0:-1#",
            "0:-1#-5",
            "0:-1#1#2",
            "0:-1#1#a=b",
            "a:-1#1",
            "0:-1#1,zzz",
        ] {
            assert!(matches!(Session::parse(text), Err(Error::BadRequest(_))), "{text}");
        }
        assert!(Session::parse(&"0:-1#1,".repeat(300)).is_err());
    }

    #[test]
    fn only_a_known_range_that_is_ahead_is_refused() {
        let session = Session::parse("0:-1#5,9:-1#100").unwrap();
        let check = |ranges: &[(&str, u64)]| {
            session.check(|id| ranges.iter().find(|(range, _)| *range == id).map(|(_, lsn)| *lsn))
        };
        assert!(check(&[("0", 5)]).is_ok());
        assert!(matches!(check(&[("0", 4)]), Err(Error::SessionNotAvailable)));
        assert!(check(&[("1", 4), ("0", 5)]).is_ok(), "each pair is compared with its own range");
        assert!(matches!(check(&[("1", 9), ("0", 4)]), Err(Error::SessionNotAvailable)));
    }
}

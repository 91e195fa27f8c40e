//! The form of a request: the version of the protocol, the encodings that it uses and accepts, the length of tokens that it
//! can take.
//!
//! All of it is checked, although little of it changes an answer: a client that asks for something unsupported gets an
//! error.

use crate::message::options::{TextOption, bad_option};
use crate::message::request::Head;
use crate::protocol::error::Error;

/// The encodings that clients name. Answers are JSON text, which clients that prefer another one accept as well.
const FORMATS: [&str; 3] = ["JsonText", "CosmosBinary", "HybridRow"];

/// The first version of the protocol,
const FIRST_VERSION: &str = "2014-08-21";

/// and the one after it. Any later date is a version, too: clients are newer than servers.
const SECOND_VERSION: &str = "2015-04-08";

/// The first version in which every container has a partition key.
const KEYED_VERSION: &str = "2018-12-31";

impl Head {
    /// Refuses a form that cannot be served.
    pub(crate) fn check_form(&self) -> Result<(), Error> {
        if let Some(version) = self.text(TextOption::ApiVersion)
            && !is_version(version.trim())
        {
            let expected = format!("'{FIRST_VERSION}', or a date from '{SECOND_VERSION}' on");
            return Err(bad_option(TextOption::ApiVersion, version, &expected));
        }
        if let Some(limit) = self.text(TextOption::ContinuationLimit)
            && limit.trim().parse::<u32>().ok().is_none_or(|kilobytes| kilobytes == 0)
        {
            return Err(bad_option(TextOption::ContinuationLimit, limit, "a positive number of kilobytes"));
        }
        let is_known = |format: &str| FORMATS.iter().any(|known| known.eq_ignore_ascii_case(format));
        if let Some(text) = self.text(TextOption::SerializationFormat)
            && !formats(text).all(is_known)
        {
            return Err(bad_option(TextOption::SerializationFormat, text, &FORMATS.join(", ")));
        }
        // A newer client may support others as well.
        if let Some(text) = self.text(TextOption::SupportedFormats)
            && formats(text).next().is_some()
            && !formats(text).any(is_known)
        {
            let expected = format!("at least one of {}", FORMATS.join(", "));
            return Err(bad_option(TextOption::SupportedFormats, text, &expected));
        }
        Ok(())
    }

    /// Returns whether the client's version allows containers without a partition key.
    pub(crate) fn may_omit_partition_key(&self) -> bool {
        self.text(TextOption::ApiVersion).is_some_and(|version| version.trim() < KEYED_VERSION)
    }
}

fn formats(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|format| !format.is_empty())
}

fn is_version(text: &str) -> bool {
    let is_date = text.len() == 10
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    is_date && (text == FIRST_VERSION || text >= SECOND_VERSION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_dates_from_the_first_on() {
        for good in ["2014-08-21", "2015-04-08", "2018-09-17", "2020-07-15", "2031-01-01"] {
            assert!(is_version(good), "{good}");
        }
        for bad in ["", "2015-01-01", "2014-08-22", "2020/07/15", "2020-7-15", "latest", "2020-07-155"] {
            assert!(!is_version(bad), "{bad}");
        }
    }
}

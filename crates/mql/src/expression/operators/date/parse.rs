//! Parsing of dates without a format: ISO 8601, and the forms that people and mail programs write.
//!
//! ```text
//! 2024-05-06T07:08:09.123Z   2024-05-06 07:08   2024/05/06   20240506   2024-05   05/06/2024   6.5.2024
//! 6 May 2024   May 6, 2024   May 6th 2024 7:08pm   Mon, 06 May 2024 07:08:09 +0200   @1700000000
//! ```
//!
//! The text is read from left to right, piece by piece; each piece must be one of a few forms and may be there once.

use ::calendar::{MONTHS, WEEKDAYS, days_in_month, days_of, is_name};

use super::calendar::{DAY, HOUR, MINUTE, SECOND};
use super::zone::{Zone, parse_offset};
use crate::error::{Code, Error, Result};

/// The longest text that is parsed.
const TEXT_BYTES_MAX: usize = 256;

/// The parts of a date parsed so far.
#[derive(Debug, Clone, Default)]
pub(super) struct ParsedDate {
    pub(super) year: Option<i64>,
    pub(super) month: Option<i64>,
    pub(super) day: Option<i64>,
    pub(super) hour: Option<i64>,
    pub(super) minute: Option<i64>,
    pub(super) second: Option<i64>,
    pub(super) millisecond: i64,
    /// Seconds east of Greenwich, if the text contains an offset.
    pub(super) offset: Option<i64>,
}

/// Returns a conversion that failed, as `onError` catches it.
pub(super) fn conversion_failure(message: impl Into<String>) -> Error {
    Error::new(Code::CONVERSION_FAILURE, message)
}

/// Returns the error about a text at a position.
pub(super) fn failure(date: &str, position: usize, words: &str, letter: Option<char>) -> Error {
    let letter = letter.map(String::from).unwrap_or_default();
    conversion_failure(format!("Error parsing date string '{date}'; {position}: {words} '{letter}'"))
}

impl ParsedDate {
    /// Returns the moment, if all parts are given and in range.
    pub(super) fn moment(&self, date: &str, zone: &Zone) -> Result<i64> {
        let incomplete = || {
            conversion_failure(format!(
                "an incomplete date/time string has been found, with elements missing: \"{date}\""
            ))
        };
        let timeless = self.hour.is_none() && self.minute.is_none() && self.second.is_none();
        let part = |part: Option<i64>| if timeless { Ok(0) } else { part.ok_or_else(incomplete) };
        let (Some(year), Some(month), Some(day)) = (self.year, self.month, self.day) else {
            return Err(incomplete());
        };
        let (hour, minute, second) = (part(self.hour)?, part(self.minute)?, part(self.second)?);
        let valid = (1..=12).contains(&month)
            && (1..=days_in_month(year, month)).contains(&day)
            && (0..24).contains(&hour)
            && (0..60).contains(&minute)
            && (0..60).contains(&second);
        if !valid {
            return Err(failure(date, date.len(), "The parsed date was invalid", None));
        }
        let local = days_of(year, month, day) * DAY
            + hour * HOUR
            + minute * MINUTE
            + second * SECOND
            + self.millisecond;
        match self.offset {
            Some(_) if !zone.is_utc() => Err(conversion_failure(
                "you cannot pass in a date/time string with GMT offset together with a timezone argument",
            )),
            Some(offset) => Ok(local - offset * SECOND),
            None => zone.moment(local).ok_or_else(|| conversion_failure("date overflow")),
        }
    }
}

/// Reads a date from a text; without an offset in it, in the zone.
pub(super) fn parse(date: &str, zone: &Zone) -> Result<i64> {
    let mut scanner = Scanner { date, rest: date, found: ParsedDate::default() };
    if date.len() > TEXT_BYTES_MAX {
        return Err(scanner.failure("Unexpected character"));
    }
    if let Some(seconds) = date.strip_prefix('@').and_then(|seconds| seconds.parse::<i64>().ok()) {
        return seconds.checked_mul(SECOND).ok_or_else(|| conversion_failure("date overflow"));
    }
    if date.is_empty() {
        return Err(failure(date, 0, "Empty string", None));
    }
    while !scanner.rest.is_empty() {
        scanner.piece()?;
    }
    scanner.found.moment(date, zone)
}

struct Scanner<'a> {
    date: &'a str,
    rest: &'a str,
    found: ParsedDate,
}

impl Scanner<'_> {
    fn failure(&self, words: &str) -> Error {
        failure(self.date, self.date.len() - self.rest.len(), words, self.rest.chars().next())
    }

    fn piece(&mut self) -> Result<()> {
        let unexpected = |scanner: &Self| Err(scanner.failure("Unexpected character"));
        match self.rest.chars().next() {
            None => Ok(()),
            Some(' ' | ',' | '\t') => {
                self.rest = &self.rest[1..];
                Ok(())
            }
            Some('T' | 't') if self.found.year.is_some() && self.digits_at(1) > 0 => {
                self.rest = &self.rest[1..];
                self.time()
            }
            Some('0'..='9') => self.number(),
            Some('+' | '-') if self.found.hour.is_some() && self.found.offset.is_none() => self.offset(),
            Some(letter) if letter.is_ascii_alphabetic() => self.word(),
            _ => unexpected(self),
        }
    }

    fn digits_at(&self, position: usize) -> usize {
        self.rest.bytes().skip(position).take_while(u8::is_ascii_digit).count()
    }

    /// Takes so many digits.
    fn take(&mut self, digits: usize) -> Result<i64> {
        let number = self.rest.get(..digits).and_then(|digits| digits.parse().ok());
        let number = number.ok_or_else(|| self.failure("Unexpected character"))?;
        self.rest = &self.rest[digits..];
        Ok(number)
    }

    /// A date in digits, a time, a day or a year.
    fn number(&mut self) -> Result<()> {
        let digits = self.digits_at(0);
        let next = self.rest.as_bytes().get(digits).copied();
        match (digits, next) {
            (1 | 2, Some(b':')) => self.time(),
            (4, Some(separator @ (b'-' | b'/'))) if self.found.year.is_none() => {
                let year = self.take(4)?;
                self.rest = &self.rest[1..];
                let month = self.take(self.digits_at(0).min(2))?;
                let day = match self.rest.as_bytes().first() {
                    Some(next) if *next == separator => {
                        self.rest = &self.rest[1..];
                        self.take(self.digits_at(0).min(2))?
                    }
                    _ => 1,
                };
                self.set(year, month, day)
            }
            (8, _) if self.found.year.is_none() => {
                let (year, month, day) = (self.take(4)?, self.take(2)?, self.take(2)?);
                self.set(year, month, day)
            }
            (1 | 2, Some(separator @ (b'/' | b'-' | b'.'))) if self.found.year.is_none() => {
                self.short_date(digits, separator)
            }
            (1 | 2, _)
                if self.found.day.is_none() && self.found.year.is_none_or(|_| self.found.month.is_some()) =>
            {
                self.found.day = Some(self.take(digits)?);
                for ending in ["st", "nd", "rd", "th"] {
                    self.rest = self.rest.strip_prefix(ending).unwrap_or(self.rest);
                }
                Ok(())
            }
            (4, _) if self.found.year.is_none() => {
                self.found.year = Some(self.take(4)?);
                Ok(())
            }
            _ => Err(self.failure("Unexpected character")),
        }
    }

    /// `5/6/2024` is American, `6-5-2024` and `6.5.2024` are not.
    fn short_date(&mut self, digits: usize, separator: u8) -> Result<()> {
        let first = self.take(digits)?;
        self.rest = &self.rest[1..];
        let second = self.take(self.digits_at(0).clamp(1, 2))?;
        if self.rest.as_bytes().first() != Some(&separator) || self.digits_at(1) != 4 {
            return Err(self.failure("Unexpected character"));
        }
        self.rest = &self.rest[1..];
        let year = self.take(4)?;
        if separator == b'/' { self.set(year, first, second) } else { self.set(year, second, first) }
    }

    fn set(&mut self, year: i64, month: i64, day: i64) -> Result<()> {
        if self.found.month.is_some() || self.found.day.is_some() {
            return Err(self.failure("Double date specification"));
        }
        (self.found.year, self.found.month, self.found.day) = (Some(year), Some(month), Some(day));
        Ok(())
    }

    fn time(&mut self) -> Result<()> {
        if self.found.hour.is_some() {
            return Err(self.failure("Double time specification"));
        }
        let compact = self.digits_at(0) >= 4;
        let hour = self.take(self.digits_at(0).clamp(1, 2))?;
        let (mut minute, mut second) = (0, 0);
        let more = |scanner: &mut Self| -> Result<Option<i64>> {
            if compact && scanner.digits_at(0) >= 2 {
                return scanner.take(2).map(Some);
            }
            match scanner.rest.strip_prefix(':') {
                Some(rest) => {
                    scanner.rest = rest;
                    scanner.take(2).map(Some)
                }
                None => Ok(None),
            }
        };
        if let Some(found) = more(self)? {
            minute = found;
            if let Some(found) = more(self)? {
                second = found;
                self.fraction();
            }
        }
        (self.found.hour, self.found.minute, self.found.second) = (Some(hour), Some(minute), Some(second));
        Ok(())
    }

    fn fraction(&mut self) {
        if self.rest.starts_with(['.', ',']) && self.digits_at(1) > 0 {
            let digits = self.digits_at(1);
            let written: i64 = format!("{:0<3}", &self.rest[1..=digits.min(3)]).parse().unwrap_or(0);
            self.found.millisecond = written;
            self.rest = &self.rest[1 + digits..];
        }
    }

    fn offset(&mut self) -> Result<()> {
        for length in [6, 5, 3] {
            if let Some(offset) = self.rest.get(..length).and_then(parse_offset) {
                self.found.offset = Some(offset);
                self.rest = &self.rest[length..];
                return Ok(());
            }
        }
        Err(self.failure("Unexpected character"))
    }

    /// The name of a month, of a day, of a zone, or half of a day.
    fn word(&mut self) -> Result<()> {
        /// Abbreviations of zones, in hours.
        const ZONES: [(&str, i64); 12] = [
            ("z", 0),
            ("utc", 0),
            ("gmt", 0),
            ("est", -5),
            ("edt", -4),
            ("cst", -6),
            ("cdt", -5),
            ("mst", -7),
            ("mdt", -6),
            ("pst", -8),
            ("pdt", -7),
            ("cet", 1),
        ];
        let length = self.rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        let word = self.rest[..length].to_ascii_lowercase();
        let month = MONTHS.iter().position(|name| is_name(&word, name));
        let zone = ZONES.iter().find(|(name, _)| *name == word);
        if let (Some(month), None) = (month, self.found.month) {
            self.found.month = Some(month as i64 + 1);
        } else if let (Some((_, hours)), None) = (zone, self.found.offset) {
            self.found.offset = Some(hours * 3600);
        } else if let ("am" | "pm", Some(hour @ 1..=12)) = (word.as_str(), self.found.hour) {
            self.found.hour = Some(hour % 12 + if word == "pm" { 12 } else { 0 });
        } else if !WEEKDAYS.iter().any(|name| is_name(&word, name)) {
            let words = "passing a time zone identifier as part of the string is not allowed";
            return Err(self.failure(words));
        }
        self.rest = self.rest[length..].trim_start_matches('.');
        Ok(())
    }
}

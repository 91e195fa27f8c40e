//! Formatting of dates in `$dateToString`, and parsing along a format in `$dateFromString`.

use std::fmt::Write as _;

use ::calendar::{MONTHS, abbreviated, days_in_month, days_of};
use bson::{Value, ValueRef};

use super::calendar::{DAY, HOUR, MINUTE, SECOND, days_of_iso_week};
use super::parse::{ParsedDate, conversion_failure, failure, parse};
use super::to_moment;
use super::zone::{Zone, parse_offset};
use crate::error::{Error, Result};
use crate::expression::operand::{is_nullish, text, type_name};
use crate::expression::table::{Call, Group, Names, Refusal, optional, own, required};

pub(crate) const GROUP: Group = Group {
    foldable: true,
    operators: &[
        own("$dateToString", |parser, name, argument| parser.guarded(name, &TO_STRING, to_string, argument)),
        own("$dateFromString", |parser, name, argument| {
            parser.guarded(name, &FROM_STRING, from_string, argument)
        }),
    ],
};

const TO_STRING: Names = Names {
    parameters: &[
        required("date", 18628, "Missing 'date' parameter to $dateToString"),
        optional("format"),
        optional("timezone"),
        optional("onNull"),
    ],
    not_a_document: Refusal(18629, "$dateToString only supports an object as its argument"),
    unknown: Refusal(18534, "Unrecognized argument to $dateToString: {}"),
};

const FROM_STRING: Names = Names {
    parameters: &[
        required("dateString", 40542, "Missing 'dateString' parameter to $dateFromString"),
        optional("format"),
        optional("timezone"),
        optional("onNull"),
        optional("onError"),
    ],
    not_a_document: Refusal(40540, "$dateFromString only supports an object as an argument, found: {}"),
    unknown: Refusal(40541, "Unrecognized argument to $dateFromString: {}"),
};

/// Returns a date in UTC as `1970-01-01T00:00:00.000Z`.
pub(crate) fn iso_text(millis: i64) -> Result<String> {
    format("%Y-%m-%dT%H:%M:%S.%LZ", millis, &Zone::Utc)
}

/// The format that a request names, if it does.
enum Form<'a> {
    Absent,
    Null,
    Given(&'a str),
}

/// Returns the format. Every letter in it must be known.
fn format_of<'a>(call: &Call<'a>, code: i32, known: &str) -> Result<Form<'a>> {
    if !call.is_given(1) {
        return Ok(Form::Absent);
    }
    let value = call.get(1);
    if is_nullish(value) {
        return Ok(Form::Null);
    }
    let Some(ValueRef::String(format)) = value else {
        let (name, found, value) = (call.name, type_name(value), text(value));
        let message = format!("{name} requires that 'format' be a string, found: {found} with value {value}");
        return Err(Error::location(code, message));
    };
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter == '%' {
            match letters.next() {
                Some(letter) if letter == '%' || known.contains(letter) => {}
                Some(letter) => {
                    let message = format!("Invalid format character '%{letter}' in format string");
                    return Err(Error::location(18536, message));
                }
                None => return Err(Error::location(18535, "Unmatched '%' at end of format string")),
            }
        }
    }
    Ok(Form::Given(format))
}

fn to_string(call: &Call<'_>) -> Result<Option<Value>> {
    let form = format_of(call, 18533, "bBdGHjLmMSwuUVYzZ")?;
    let zone = Zone::of(call, 2)?;
    let Some(date) = call.get(0).filter(|date| !is_nullish(Some(*date))) else {
        return Ok(Some(Value::Null));
    };
    let Some(zone) = zone else { return Ok(Some(Value::Null)) };
    let form = match form {
        Form::Null => return Ok(Some(Value::Null)),
        Form::Given(form) => form,
        Form::Absent if zone.is_utc() => "%Y-%m-%dT%H:%M:%S.%LZ",
        Form::Absent => "%Y-%m-%dT%H:%M:%S.%L",
    };
    Ok(Some(Value::String(format(form, to_moment(date)?, &zone)?)))
}

fn format(format: &str, millis: i64, zone: &Zone) -> Result<String> {
    let date = zone.date(millis);
    if !(0..=9999).contains(&date.year) {
        let message =
            format!("$dateToString is only defined on year 0-9999, tried to use year {}", date.year);
        return Err(Error::location(18537, message));
    }
    let mut out = String::with_capacity(format.len() + 16);
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        let directive = if letter == '%' { letters.next() } else { None };
        let Some(directive) = directive else {
            out.push(letter);
            continue;
        };
        let offset = zone.offset(millis) / 60;
        let written = match directive {
            'b' => write!(out, "{}", abbreviated(MONTHS[date.month as usize - 1])),
            'B' => write!(out, "{}", MONTHS[date.month as usize - 1]),
            'd' => write!(out, "{:02}", date.day),
            'G' => write!(out, "{:04}", date.iso_week().0),
            'H' => write!(out, "{:02}", date.time / HOUR),
            'j' => write!(out, "{:03}", date.day_of_year()),
            'L' => write!(out, "{:03}", date.time % 1000),
            'm' => write!(out, "{:02}", date.month),
            'M' => write!(out, "{:02}", date.time / MINUTE % 60),
            'S' => write!(out, "{:02}", date.time / SECOND % 60),
            'w' => write!(out, "{}", date.iso_weekday() % 7 + 1),
            'u' => write!(out, "{}", date.iso_weekday()),
            'U' => write!(out, "{:02}", date.week()),
            'V' => write!(out, "{:02}", date.iso_week().1),
            'Y' => write!(out, "{:04}", date.year),
            'z' => {
                let sign = if offset < 0 { '-' } else { '+' };
                write!(out, "{sign}{:02}{:02}", offset.abs() / 60, offset.abs() % 60)
            }
            'Z' => write!(out, "{offset}"),
            other => write!(out, "{other}"),
        };
        written.expect("a string takes everything");
    }
    Ok(out)
}

fn from_string(call: &Call<'_>) -> Result<Option<Value>> {
    let form = format_of(call, 40684, "bBdGHjLmMSuVYzZ")?;
    let zone = Zone::of(call, 2)?;
    let value = call.get(0);
    if is_nullish(value) {
        return Ok(Some(Value::Null));
    }
    let Some(ValueRef::String(date)) = value else {
        let (found, value) = (type_name(value), text(value));
        return Err(conversion_failure(format!(
            "$dateFromString requires that 'dateString' be a string, found: {found} with value {value}"
        )));
    };
    let Some(zone) = zone else { return Ok(Some(Value::Null)) };
    let millis = match form {
        Form::Null => return Ok(Some(Value::Null)),
        Form::Given(form) => Reader { date, rest: date }.read(form)?.moment(date, &zone)?,
        Form::Absent => parse(date, &zone)?,
    };
    Ok(Some(Value::DateTime(millis)))
}

/// A text that is read along a format.
struct Reader<'a> {
    date: &'a str,
    rest: &'a str,
}

impl Reader<'_> {
    fn read(mut self, format: &str) -> Result<ParsedDate> {
        let mut found = ParsedDate::default();
        let mut week = (None, None, None);
        let mut day_of_year = None;
        let mut letters = format.chars();
        while let Some(letter) = letters.next() {
            let directive = if letter == '%' { letters.next() } else { None };
            match directive {
                Some('Y') => found.year = Some(self.number(4, 4, "A four digit year could not be found")?),
                Some('m') => found.month = Some(self.number(1, 2, "A two digit month could not be found")?),
                Some('d') => found.day = Some(self.number(1, 2, "A two digit day could not be found")?),
                Some('H') => found.hour = Some(self.number(1, 2, "A two digit hour could not be found")?),
                Some('M') => {
                    found.minute = Some(self.number(1, 2, "A two digit minute could not be found")?);
                }
                Some('S') => {
                    found.second = Some(self.number(1, 2, "A two digit second could not be found")?);
                }
                Some('L') => {
                    found.millisecond = self.milliseconds()?;
                }
                Some('j') => {
                    let words = "A three digit day-of-year could not be found";
                    day_of_year = Some(self.number(1, 3, words)?);
                }
                Some('G') => week.0 = Some(self.number(4, 4, "A four digit ISO year could not be found")?),
                Some('V') => week.1 = Some(self.number(1, 2, "A two digit ISO week could not be found")?),
                Some('u') => {
                    week.2 = Some(self.number(1, 1, "A one digit ISO day of week could not be found")?);
                }
                Some('b' | 'B') => found.month = Some(self.month()?),
                Some('z') => found.offset = Some(self.offset()?),
                Some('Z') => found.offset = Some(self.minutes()? * 60),
                other => self.letter(other.unwrap_or(letter))?,
            }
        }
        if !self.rest.is_empty() {
            return Err(self.failure("Trailing data"));
        }
        self.complete(found, week, day_of_year)
    }

    /// Converts weeks and days of the year to months and days.
    fn complete(
        &self,
        mut found: ParsedDate,
        week: (Option<i64>, Option<i64>, Option<i64>),
        day_of_year: Option<i64>,
    ) -> Result<ParsedDate> {
        let days = match (week, day_of_year, found.year) {
            ((Some(year), Some(week), Some(day)), ..) => {
                if !(1..=53).contains(&week) || !(1..=7).contains(&day) {
                    return Err(self.failure("The parsed date was invalid"));
                }
                Some(days_of_iso_week(year, week, day))
            }
            (_, Some(day), Some(year)) => {
                let length = 337 + days_in_month(year, 2);
                if !(1..=length).contains(&day) {
                    return Err(self.failure("The parsed date was invalid"));
                }
                Some(days_of(year, 1, day))
            }
            _ => None,
        };
        if let Some(days) = days {
            let date = super::calendar::Date::of(days * DAY);
            (found.year, found.month, found.day) = (Some(date.year), Some(date.month), Some(date.day));
        }
        Ok(found)
    }

    fn failure(&self, words: &str) -> Error {
        let position = self.date.len() - self.rest.len();
        failure(self.date, position, words, self.rest.chars().next())
    }

    fn number(&mut self, least: usize, most: usize, words: &str) -> Result<i64> {
        let digits = self.rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
        if digits < least {
            return Err(self.failure(words));
        }
        let (number, rest) = self.rest.split_at(digits);
        self.rest = rest;
        number.parse().map_err(|_| self.failure(words))
    }

    /// Reads milliseconds from the digits of a fraction of a second: `.81` is 810 milliseconds.
    fn milliseconds(&mut self) -> Result<i64> {
        let before = self.rest.len();
        let number = self.number(1, 3, "A three digit millisecond could not be found")?;
        Ok(match before - self.rest.len() {
            1 => number * 100,
            2 => number * 10,
            _ => number,
        })
    }

    fn month(&mut self) -> Result<i64> {
        let names = MONTHS.iter().enumerate();
        for (position, name) in names {
            for name in [name, abbreviated(name)] {
                let begins = self.rest.get(..name.len()).is_some_and(|part| part.eq_ignore_ascii_case(name));
                if begins {
                    self.rest = &self.rest[name.len()..];
                    return Ok(position as i64 + 1);
                }
            }
        }
        Err(self.failure("A textual month could not be found"))
    }

    fn offset(&mut self) -> Result<i64> {
        if let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            return Ok(0);
        }
        for length in [6, 5, 3] {
            if let Some(offset) = self.rest.get(..length).and_then(parse_offset) {
                self.rest = &self.rest[length..];
                return Ok(offset);
            }
        }
        Err(self.failure("The timezone could not be found in the database"))
    }

    fn minutes(&mut self) -> Result<i64> {
        let sign = match self.rest.chars().next() {
            Some('+') => 1,
            Some('-') => -1,
            _ => return Err(self.failure("Invalid timezone offset in minutes")),
        };
        self.rest = &self.rest[1..];
        Ok(sign * self.number(1, 4, "Invalid timezone offset in minutes")?)
    }

    fn letter(&mut self, letter: char) -> Result<()> {
        self.rest = self
            .rest
            .strip_prefix(letter)
            .ok_or_else(|| self.failure("The format separator does not match"))?;
        Ok(())
    }
}

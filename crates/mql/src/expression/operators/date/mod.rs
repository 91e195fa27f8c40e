//! Dates: parts, formatting, parsing, arithmetic, and time zones.
//!
//! ```text
//! calendar    the parts of a date, weeks, units
//! zone        an offset from UTC, or the rules of a place
//! parts       $year .. $millisecond
//! build       $dateFromParts, $dateToParts
//! format      $dateToString, and $dateFromString with a format
//! parse       $dateFromString without one
//! arithmetic  $dateAdd, $dateSubtract, $dateDiff, $dateTrunc
//! ```

mod arithmetic;
mod build;
mod calendar;
mod format;
mod parse;
mod parts;
mod zone;

use bson::ValueRef;

use crate::error::{Error, Result};
use crate::expression::operand::type_name;

pub(super) use arithmetic::GROUP as ARITHMETIC;
pub(super) use build::GROUP as BUILD;
pub(super) use format::{GROUP as TEXTS, iso_text};
pub(super) use parts::GROUP as PARTS;

/// Reads a date from a text in UTC.
pub(super) fn parse_date(text: &str) -> Result<i64> {
    parse::parse(text, &zone::Zone::Utc)
}

/// Returns the milliseconds since 1970 of a value that contains a time.
fn moment(value: ValueRef<'_>) -> Option<i64> {
    match value {
        ValueRef::DateTime(millis) => Some(millis),
        ValueRef::Timestamp(timestamp) => Some(i64::from(timestamp.seconds) * 1000),
        ValueRef::ObjectId(id) => Some(i64::from(id.seconds()) * 1000),
        _ => None,
    }
}

/// Returns the milliseconds since 1970 of a value that must contain a time.
fn to_moment(value: ValueRef<'_>) -> Result<i64> {
    moment(value).ok_or_else(|| {
        let found = type_name(Some(value));
        Error::location(16006, format!("can't convert from BSON type {found} to Date"))
    })
}

//! Time zones: an offset from UTC, or the rules of a place by its name in the IANA database, which is part of the binary.

use bson::ValueRef;
use jiff::civil::DateTime;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{Span, Timestamp};

use super::calendar::{Date, HOUR, MINUTE, SECOND};
use crate::error::{Error, Result};
use crate::expression::operand::{is_nullish, type_name};
use crate::expression::table::Call;

/// A time zone.
#[derive(Debug, Clone)]
pub(super) enum Zone {
    Utc,
    /// Seconds east of Greenwich.
    Offset(i64),
    Place(TimeZone),
}

impl Zone {
    /// Returns the zone of a name or of an offset such as `+05:30`.
    pub(super) fn parse(name: &str) -> Result<Zone> {
        if name == "UTC" {
            return Ok(Zone::Utc);
        }
        if let Some(offset) = parse_offset(name) {
            return Ok(Zone::Offset(offset));
        }
        // The database ignores case; MongoDB does not.
        match TimeZoneDatabase::bundled().get(name) {
            Ok(zone) if zone.iana_name() == Some(name) => Ok(Zone::Place(zone)),
            _ => Err(Error::location(40485, format!("unrecognized time zone identifier: \"{name}\""))),
        }
    }

    /// Returns the zone of an argument: UTC if it is absent, nothing if it is null.
    pub(super) fn of(call: &Call<'_>, position: usize) -> Result<Option<Zone>> {
        if !call.is_given(position) {
            return Ok(Some(Zone::Utc));
        }
        match call.get(position) {
            Some(ValueRef::String(name)) => Zone::parse(name).map(Some),
            value if is_nullish(value) => Ok(None),
            value => {
                let message = format!("timezone must evaluate to a string, found {}", type_name(value));
                Err(Error::location(40517, message))
            }
        }
    }

    /// Returns `true` if this is UTC itself.
    pub(super) fn is_utc(&self) -> bool {
        matches!(self, Zone::Utc)
    }

    /// Seconds east of Greenwich at a moment.
    pub(super) fn offset(&self, millis: i64) -> i64 {
        match self {
            Zone::Utc => 0,
            Zone::Offset(seconds) => *seconds,
            Zone::Place(zone) => zone.to_offset(timestamp(millis)).seconds().into(),
        }
    }

    /// Local milliseconds since 1970 at a moment.
    pub(super) fn local(&self, millis: i64) -> i64 {
        millis.saturating_add(self.offset(millis) * SECOND)
    }

    /// Returns the parts of a moment.
    pub(super) fn date(&self, millis: i64) -> Date {
        Date::of(self.local(millis))
    }

    /// Returns the moment of a local time. One that does not exist is moved on by the length of the gap; of two the first is
    /// meant.
    pub(super) fn moment(&self, local: i64) -> Option<i64> {
        let offset = match self {
            Zone::Utc => 0,
            Zone::Offset(seconds) => *seconds,
            Zone::Place(zone) => match civil(local) {
                Some(civil) => {
                    let moment = zone.to_ambiguous_timestamp(civil).compatible().ok()?;
                    return Some(moment.as_millisecond());
                }
                None => self.offset(local),
            },
        };
        local.checked_sub(offset * SECOND)
    }
}

/// `+hh`, `+hhmm` or `+hh:mm`, in seconds.
pub(super) fn parse_offset(text: &str) -> Option<i64> {
    let (sign, digits) = match text.as_bytes().split_first()? {
        (b'+', digits) => (1, digits),
        (b'-', digits) => (-1, digits),
        _ => return None,
    };
    let digits: Vec<u8> = match digits {
        [hours @ .., b':', first, second] if hours.len() == 2 => [hours, &[*first, *second]].concat(),
        digits => digits.to_vec(),
    };
    let number = |digits: &[u8]| {
        let text = std::str::from_utf8(digits).ok()?;
        text.bytes().all(|digit| digit.is_ascii_digit()).then(|| text.parse::<i64>().ok())?
    };
    let (hours, minutes) = match digits.len() {
        2 => (number(&digits)?, 0),
        4 => (number(&digits[..2])?, number(&digits[2..])?),
        _ => return None,
    };
    Some(sign * (hours * HOUR + minutes * MINUTE) / SECOND)
}

/// Returns the nearest moment that the zones know of: they end in the year 9999.
fn timestamp(millis: i64) -> Timestamp {
    let ends = if millis < 0 { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::from_millisecond(millis).unwrap_or(ends)
}

fn civil(local: i64) -> Option<DateTime> {
    let since = Span::new().try_milliseconds(local).ok()?;
    DateTime::constant(1970, 1, 1, 0, 0, 0, 0).checked_add(since).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_read_in_three_forms() {
        for (text, offset) in [
            ("+05", Some(18_000)),
            ("-0530", Some(-19_800)),
            ("+05:30", Some(19_800)),
            ("05:30", None),
            ("+5", None),
            ("+05:3", None),
            ("+é5", None),
            ("", None),
        ] {
            assert_eq!(parse_offset(text), offset, "{text}");
        }
    }

    #[test]
    fn places_know_summer_time() {
        let zone = Zone::parse("America/New_York").unwrap();
        // 2024-03-10T06:59:59Z is the last second of winter time.
        let change = 1_710_054_000_000;
        assert_eq!((zone.offset(change - 1), zone.offset(change)), (-18_000, -14_400));
        // 02:30 does not exist on that day and is 03:30.
        let local = change - 5 * HOUR + 30 * MINUTE;
        assert_eq!(zone.moment(local), Some(change + 30 * MINUTE));
        assert_eq!(zone.offset(i64::MAX), zone.offset(253_400_000_000_000));
        assert!(zone.moment(i64::MIN).is_some());
        assert_eq!(Zone::parse("america/new_york").map_err(|error| error.code.0).err(), Some(40485));
        assert!(Zone::parse("Nowhere/Land").is_err());
    }
}

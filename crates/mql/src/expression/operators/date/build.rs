//! `$dateFromParts` and `$dateToParts`: dates as numbers.

use ::calendar::days_of;
use bson::{Document, Value, ValueRef};

use super::calendar::{DAY, Date, HOUR, MINUTE, SECOND, days_of_iso_week};
use super::to_moment;
use super::zone::Zone;
use crate::error::{Code, Error, Result};
use crate::expression::node::Node;
use crate::expression::number::Number;
use crate::expression::operand::{is_nullish, text, type_name};
use crate::expression::parse::{Parser, pure_call};
use crate::expression::table::{Call, Group, Names, Refusal, named, optional, own, required};

pub(crate) const GROUP: Group = Group {
    foldable: true,
    operators: &[own("$dateFromParts", parse), named("$dateToParts", &TO_PARTS, to_parts)],
};

const FROM_PARTS: Names = Names {
    parameters: &[
        optional("year"),
        optional("month"),
        optional("day"),
        optional("isoWeekYear"),
        optional("isoWeek"),
        optional("isoDayOfWeek"),
        optional("hour"),
        optional("minute"),
        optional("second"),
        optional("millisecond"),
        optional("timezone"),
    ],
    not_a_document: Refusal(40519, "$dateFromParts only supports an object as its argument"),
    unknown: Refusal(40518, "Unrecognized argument to $dateFromParts: {}"),
};

const TO_PARTS: Names = Names {
    parameters: &[
        required("date", 40522, "Missing 'date' parameter to $dateToParts"),
        optional("timezone"),
        optional("iso8601"),
    ],
    not_a_document: Refusal(40524, "$dateToParts only supports an object as its argument"),
    unknown: Refusal(40520, "Unrecognized argument to $dateToParts: {}"),
};

fn parse(parser: &mut Parser<'_>, name: &'static str, argument: ValueRef<'_>) -> Result<Node> {
    let arguments = parser.named(&FROM_PARTS, argument)?;
    let given = |range: std::ops::Range<usize>| arguments[range].iter().any(Option::is_some);
    match (arguments[0].is_some(), arguments[3].is_some()) {
        (false, false) => Err(Error::location(
            40516,
            "$dateFromParts requires either 'year' or 'isoWeekYear' to be present",
        )),
        (true, _) if given(3..6) => {
            Err(Error::location(40489, "$dateFromParts does not allow mixing natural dates with ISO dates"))
        }
        (false, true) if given(1..3) => {
            Err(Error::location(40525, "$dateFromParts does not allow mixing ISO dates with natural dates"))
        }
        _ => Ok(pure_call(name, from_parts, arguments)),
    }
}

/// Returns a part: a whole number, its default if it is absent, nothing if it is null.
fn part(call: &Call<'_>, position: usize, default: i64) -> Result<Option<i64>> {
    if !call.is_given(position) {
        return Ok(Some(default));
    }
    let value = call.get(position);
    if is_nullish(value) {
        return Ok(None);
    }
    let name = FROM_PARTS.parameters[position].name;
    let number = value.and_then(Number::of).and_then(Number::exact_i64);
    number.map(Some).ok_or_else(|| {
        let (found, value) = (type_name(value), text(value));
        let message = format!("'{name}' must evaluate to an integer, found {found} with value {value}");
        Error::location(40515, message)
    })
}

/// Returns a part that may be out of the calendar's range, but not far.
fn bounded_part(call: &Call<'_>, position: usize, default: i64) -> Result<Option<i64>> {
    const LEAST: i64 = i16::MIN as i64;
    const MOST: i64 = i16::MAX as i64;
    let part = part(call, position, default)?;
    match part {
        Some(value) if !(LEAST..=MOST).contains(&value) => {
            let name = FROM_PARTS.parameters[position].name;
            let message = format!(
                "'{name}' must evaluate to a value in the range [{LEAST}, {MOST}]; value {value} is not in range"
            );
            Err(Error::location(31034, message))
        }
        part => Ok(part),
    }
}

fn from_parts(call: &Call<'_>) -> Result<Option<Value>> {
    let time = (
        bounded_part(call, 6, 0)?,
        bounded_part(call, 7, 0)?,
        part(call, 8, 0)?,
        part(call, 9, 0)?,
        Zone::of(call, 10)?,
    );
    let (Some(hour), Some(minute), Some(second), Some(millisecond), Some(zone)) = time else {
        return Ok(Some(Value::Null));
    };
    let natural = call.is_given(0);
    let first = if natural { 0 } else { 3 };
    let parts =
        (part(call, first, 1970)?, bounded_part(call, first + 1, 1)?, bounded_part(call, first + 2, 1)?);
    let (Some(year), Some(second_part), Some(third_part)) = parts else { return Ok(Some(Value::Null)) };
    if !(1..=9999).contains(&year) {
        let (name, code) = if natural { ("year", 40523) } else { ("isoWeekYear", 31095) };
        let message = format!("'{name}' must evaluate to an integer in the range 1 to 9999, found {year}");
        return Err(Error::location(code, message));
    }
    let to_days = if natural { days_of } else { days_of_iso_week };
    let days = to_days(year, second_part, third_part);
    let local = days * DAY + hour * HOUR + minute * MINUTE;
    let moment = second
        .checked_mul(SECOND)
        .and_then(|seconds| local.checked_add(seconds)?.checked_add(millisecond))
        .and_then(|local| zone.moment(local));
    let overflow = || Error::new(Code::OVERFLOW, "the date is out of range in $dateFromParts");
    Ok(Some(Value::DateTime(moment.ok_or_else(overflow)?)))
}

fn to_parts(call: &Call<'_>) -> Result<Option<Value>> {
    let zone = Zone::of(call, 1)?;
    let iso = match call.get(2) {
        _ if !call.is_given(2) => Some(false),
        Some(ValueRef::Bool(iso)) => Some(iso),
        value if is_nullish(value) => None,
        value => {
            let message = format!("iso8601 must evaluate to a bool, found {}", type_name(value));
            return Err(Error::location(40521, message));
        }
    };
    let (Some(zone), Some(iso), Some(date)) = (zone, iso, call.get(0)) else {
        return Ok(Some(Value::Null));
    };
    if is_nullish(Some(date)) {
        return Ok(Some(Value::Null));
    }
    let date = zone.date(to_moment(date)?);
    let int = |value: i64| value as i32;
    let Date { year, month, day, time } = date;
    let parts = if iso {
        let (year, week) = date.iso_week();
        Document::new()
            .with("isoWeekYear", int(year))
            .with("isoWeek", int(week))
            .with("isoDayOfWeek", int(date.iso_weekday()))
    } else {
        Document::new().with("year", int(year)).with("month", int(month)).with("day", int(day))
    };
    Ok(Some(Value::Document(
        parts
            .with("hour", int(time / HOUR))
            .with("minute", int(time / MINUTE % 60))
            .with("second", int(time / SECOND % 60))
            .with("millisecond", int(time % 1000)),
    )))
}

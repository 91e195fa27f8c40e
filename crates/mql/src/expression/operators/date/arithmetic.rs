//! `$dateAdd`, `$dateSubtract`, `$dateDiff`, `$dateTrunc`.
//!
//! Days and longer units are counted on the clock of the zone, so that a day later is the same time of day; hours and
//! shorter units are lengths of time.

use ::calendar::{WEEKDAYS, days_in_month, days_of, is_name, weekday};
use bson::{Value, ValueRef};

use super::calendar::{DAY, Date, HOUR, MINUTE, SECOND};
use super::moment;
use super::zone::Zone;
use crate::error::{Error, Result};
use crate::expression::number::Number;
use crate::expression::operand::{is_nullish, text, type_name};
use crate::expression::table::{Call, Group, Names, Refusal, named, optional, required};

pub(crate) const GROUP: Group = Group {
    foldable: true,
    operators: &[
        named("$dateAdd", &ADD, |call| add(call, 1)),
        named("$dateSubtract", &SUBTRACT, |call| add(call, -1)),
        named("$dateDiff", &DIFFERENCE, difference),
        named("$dateTrunc", &TRUNCATE, truncate),
    ],
};

const NULL: Result<Option<Value>> = Ok(Some(Value::Null));

const ADD: Names = Names {
    parameters: &[
        required("startDate", 5_166_402, "$dateAdd requires startDate, unit, and amount to be present"),
        required("unit", 5_166_402, "$dateAdd requires startDate, unit, and amount to be present"),
        required("amount", 5_166_402, "$dateAdd requires startDate, unit, and amount to be present"),
        optional("timezone"),
    ],
    not_a_document: Refusal(5_166_400, "$dateAdd expects an object as its argument"),
    unknown: Refusal(
        5_166_401,
        "Unrecognized argument to $dateAdd: {}. Expected arguments are startDate, unit, amount, and optionally timezone.",
    ),
};

const SUBTRACT: Names = Names {
    parameters: &[
        required("startDate", 5_166_402, "$dateSubtract requires startDate, unit, and amount to be present"),
        required("unit", 5_166_402, "$dateSubtract requires startDate, unit, and amount to be present"),
        required("amount", 5_166_402, "$dateSubtract requires startDate, unit, and amount to be present"),
        optional("timezone"),
    ],
    not_a_document: Refusal(5_166_400, "$dateSubtract expects an object as its argument"),
    unknown: Refusal(
        5_166_401,
        "Unrecognized argument to $dateSubtract: {}. Expected arguments are startDate, unit, amount, and optionally timezone.",
    ),
};

const DIFFERENCE: Names = Names {
    parameters: &[
        required("startDate", 5_166_303, "Missing 'startDate' parameter to $dateDiff"),
        required("endDate", 5_166_304, "Missing 'endDate' parameter to $dateDiff"),
        required("unit", 5_166_305, "Missing 'unit' parameter to $dateDiff"),
        optional("timezone"),
        optional("startOfWeek"),
    ],
    not_a_document: Refusal(5_166_301, "$dateDiff only supports an object as its argument"),
    unknown: Refusal(5_166_302, "Unrecognized argument to $dateDiff: {}"),
};

const TRUNCATE: Names = Names {
    parameters: &[
        required("date", 5_439_009, "Missing 'date' parameter to $dateTrunc"),
        required("unit", 5_439_010, "Missing 'unit' parameter to $dateTrunc"),
        optional("binSize"),
        optional("timezone"),
        optional("startOfWeek"),
    ],
    not_a_document: Refusal(5_439_007, "$dateTrunc only supports an object as its argument"),
    unknown: Refusal(
        5_439_008,
        "Unrecognized argument to $dateTrunc: {}. Expected arguments are date, unit, and optionally, binSize, timezone, startOfWeek",
    ),
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    /// So many months.
    Months(i64),
    /// So many days.
    Days(i64),
    /// So many milliseconds.
    Millis(i64),
}

impl Unit {
    fn of_name(name: &str) -> Option<Unit> {
        Some(match name {
            "year" => Unit::Months(12),
            "quarter" => Unit::Months(3),
            "month" => Unit::Months(1),
            "week" => Unit::Days(7),
            "day" => Unit::Days(1),
            "hour" => Unit::Millis(HOUR),
            "minute" => Unit::Millis(MINUTE),
            "second" => Unit::Millis(SECOND),
            "millisecond" => Unit::Millis(1),
            _ => return None,
        })
    }

    fn is_week(self) -> bool {
        self == Unit::Days(7)
    }
}

fn add(call: &Call<'_>, sign: i64) -> Result<Option<Value>> {
    if (0..3).any(|position| is_nullish(call.get(position))) {
        return NULL;
    }
    let Some(zone) = Zone::of(call, 3)? else { return NULL };
    let name = call.name;
    let start = call.get(0).and_then(moment).ok_or_else(|| {
        Error::location(5_166_403, format!("{name} requires startDate to be convertible to a date"))
    })?;
    let Some(ValueRef::String(unit_name)) = call.get(1) else {
        return Err(Error::location(5_166_404, format!("{name} expects string defining the time unit")));
    };
    let unit = Unit::of_name(unit_name)
        .ok_or_else(|| Error::failed_to_parse(format!("unknown time unit value: {unit_name}")))?;
    let amount =
        call.get(2).and_then(Number::of).and_then(Number::exact_i64).ok_or_else(|| {
            Error::location(5_166_405, format!("{name} expects integer amount of time units"))
        })?;
    let invalid = || {
        let message = format!("invalid dateAdd 'amount' parameter value: {amount} {unit_name}");
        Error::location(5_976_500, message)
    };
    let amount = amount.checked_mul(sign).ok_or_else(|| {
        Error::location(6_045_000, format!("invalid {name} 'amount' parameter value: {amount}"))
    })?;
    // No date is more than 600 million years away from another.
    let reachable = match unit {
        Unit::Months(months) => amount.checked_mul(months).filter(|by| by.abs() < 8_000_000_000),
        Unit::Days(days) => amount.checked_mul(days).filter(|by| by.abs() < 220_000_000_000),
        Unit::Millis(millis) => amount.checked_mul(millis),
    };
    let by = reachable.ok_or_else(invalid)?;
    let overflow = || Error::location(5_166_406, "dateAdd overflowed");
    Ok(Some(Value::DateTime(later(start, unit, by, &zone).ok_or_else(overflow)?)))
}

/// Returns a moment so many months, days or milliseconds later.
fn later(start: i64, unit: Unit, by: i64, zone: &Zone) -> Option<i64> {
    let mut date = zone.date(start);
    match unit {
        Unit::Millis(_) => return start.checked_add(by),
        Unit::Days(_) => date.day += by,
        Unit::Months(_) => {
            let months = date.year * 12 + date.month - 1 + by;
            date.year = months.div_euclid(12);
            date.month = months.rem_euclid(12) + 1;
            // A day that the month reached does not have becomes that month's last day.
            date.day = date.day.min(days_in_month(date.year, date.month));
        }
    }
    zone.moment(date.local()?)
}

/// Returns the unit that an argument names.
fn unit(call: &Call<'_>, position: usize) -> Result<Unit> {
    let (name, value) = (call.name, call.get(position));
    let Some(ValueRef::String(unit)) = value else {
        let message = format!("{name} requires 'unit' to be a string, but got {}", type_name(value));
        return Err(Error::location(5_439_013, message));
    };
    Unit::of_name(unit).ok_or_else(|| {
        let message = format!("{name} parameter 'unit' value cannot be recognized as a time unit: {unit}");
        Error::failed_to_parse(message)
    })
}

/// Returns the day with which a week begins, Monday being 1.
fn start_of_week(call: &Call<'_>, position: usize) -> Result<i64> {
    if !call.is_given(position) {
        return Ok(7);
    }
    let (name, value) = (call.name, call.get(position));
    let Some(ValueRef::String(day)) = value else {
        let message = format!("{name} requires 'startOfWeek' to be a string, but got {}", type_name(value));
        return Err(Error::location(5_439_015, message));
    };
    let found = WEEKDAYS.iter().position(|name| is_name(day, name));
    found.map(|position| position as i64 + 1).ok_or_else(|| {
        let message =
            format!("{name} parameter 'startOfWeek' value cannot be recognized as a day of a week: {day}");
        Error::location(5_439_016, message)
    })
}

/// Returns the zone of an argument; what is wrong with it names the operator.
fn zone_of(call: &Call<'_>, position: usize) -> Result<Option<Zone>> {
    Zone::of(call, position).map_err(|error| {
        let message = format!(
            "{} parameter 'timezone' value parsing failed :: caused by :: {}",
            call.name, error.message
        );
        Error::new(error.code, message)
    })
}

fn difference(call: &Call<'_>) -> Result<Option<Value>> {
    if (0..3).any(|position| is_nullish(call.get(position))) {
        return NULL;
    }
    let weeks = matches!(call.get(2), Some(ValueRef::String("week")));
    if weeks && call.is_given(4) && is_nullish(call.get(4)) {
        return NULL;
    }
    let Some(zone) = zone_of(call, 3)? else { return NULL };
    let date = |position: usize, name: &str| {
        let value = call.get(position);
        value.and_then(moment).ok_or_else(|| {
            let found = type_name(value);
            Error::location(5_166_307, format!("$dateDiff requires '{name}' to be a date, but got {found}"))
        })
    };
    let (start, end) = (date(0, "startDate")?, date(1, "endDate")?);
    let unit = unit(call, 2)?;
    let first_day = if unit.is_week() { start_of_week(call, 4)? } else { 1 };
    let between = match unit {
        Unit::Months(months) => {
            let count = |date: Date| (date.year * 12 + date.month - 1).div_euclid(months);
            count(zone.date(end)) - count(zone.date(start))
        }
        Unit::Days(days) => {
            // Weeks are counted from their first day, which 1970-01-01, a Thursday, need not be.
            let shift = if days == 7 { 4 - first_day } else { 0 };
            let count = |date: Date| (date.days() + shift).div_euclid(days);
            count(zone.date(end)) - count(zone.date(start))
        }
        Unit::Millis(1) => {
            let overflow = || Error::location(5_166_308, "dateDiff overflowed");
            end.checked_sub(start).ok_or_else(overflow)?
        }
        Unit::Millis(millis) => {
            let count = |moment: i64| zone.local(moment).div_euclid(millis);
            let moved = (zone.offset(start) - zone.offset(end)) * SECOND / millis;
            count(end) - count(start) + moved
        }
    };
    Ok(Some(Value::Int64(between)))
}

fn truncate(call: &Call<'_>) -> Result<Option<Value>> {
    let null = |position: usize| call.is_given(position) && is_nullish(call.get(position));
    let weeks = matches!(call.get(1), Some(ValueRef::String("week")));
    if (0..3).any(null) || weeks && null(4) {
        return NULL;
    }
    let Some(zone) = zone_of(call, 3)? else { return NULL };
    let date = call.get(0).and_then(moment).ok_or_else(|| {
        let found = type_name(call.get(0));
        Error::location(5_439_012, format!("$dateTrunc requires 'date' to be a date, but got {found}"))
    })?;
    let unit = unit(call, 1)?;
    let bin = if call.is_given(2) { bin_size(call.get(2))? } else { 1 };
    let first_day = if unit.is_week() { start_of_week(call, 4)? } else { 1 };
    let overflow = || Error::location(5_439_002, "dateTrunc overflowed");
    let truncated = match unit {
        Unit::Months(months) => months.checked_mul(bin).and_then(|bin| whole_months(date, bin, &zone)),
        Unit::Days(days) => {
            // Bins are counted from 2000-01-01, bins of weeks from the first beginning of a week after it.
            let reference = days_of(2000, 1, 1);
            let wait = if days == 7 { (first_day - weekday(reference)).rem_euclid(7) } else { 0 };
            days.checked_mul(bin).and_then(|bin| whole_days(date, reference + wait, bin, &zone))
        }
        Unit::Millis(millis) => millis.checked_mul(bin).and_then(|bin| {
            let reference = zone.moment(days_of(2000, 1, 1) * DAY)?;
            date.checked_sub(date.checked_sub(reference)?.rem_euclid(bin))
        }),
    };
    Ok(Some(Value::DateTime(truncated.ok_or_else(overflow)?)))
}

fn bin_size(value: Option<ValueRef<'_>>) -> Result<i64> {
    let Some(size) = value.and_then(Number::of).and_then(Number::exact_i64) else {
        let (found, value) = (type_name(value), text(value));
        let message = format!(
            "$dateTrunc requires 'binSize' to be a 64-bit integer, but got value '{value}' of type {found}"
        );
        return Err(Error::location(5_439_017, message));
    };
    if size > 0 {
        return Ok(size);
    }
    let message = format!("$dateTrunc requires 'binSize' to be greater than 0, but got value {size}");
    Err(Error::location(5_439_018, message))
}

fn whole_months(date: i64, bin: i64, zone: &Zone) -> Option<i64> {
    let date = zone.date(date);
    let months = date.year * 12 + date.month - 1 - 2000 * 12;
    // Far below every date there is no calendar either.
    let months = months.checked_sub(months.rem_euclid(bin)).filter(|months| *months > -8_000_000_000)?;
    let months = months + 2000 * 12;
    zone.moment(days_of(months.div_euclid(12), months.rem_euclid(12) + 1, 1).checked_mul(DAY)?)
}

fn whole_days(date: i64, reference: i64, bin: i64, zone: &Zone) -> Option<i64> {
    let days = zone.date(date).days() - reference;
    let days = days.checked_sub(days.rem_euclid(bin))?.checked_add(reference)?;
    zone.moment(days.checked_mul(DAY)?)
}

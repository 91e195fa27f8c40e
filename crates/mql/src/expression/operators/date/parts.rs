//! `$year`, `$month` and all the other parts of a date.

use bson::{Value, ValueRef};

use super::calendar::{Date, HOUR, MINUTE, SECOND};
use super::to_moment;
use super::zone::Zone;
use crate::error::{Error, Result};
use crate::expression::node::Node;
use crate::expression::operand::{is_nullish, text, type_name};
use crate::expression::parse::{Parser, pure_call};
use crate::expression::table::{Call, Function, Group, own};

/// A row of the table: the name, and the part of a date.
macro_rules! part {
    ($name:literal, $part:expr) => {
        own($name, |parser, name, argument| {
            parse(parser, name, argument, |call| {
                let part: fn(Date) -> Value = $part;
                Ok(Some(date(call)?.map_or(Value::Null, part)))
            })
        })
    };
}

pub(crate) const GROUP: Group = Group {
    foldable: true,
    operators: &[
        part!("$year", |date| int(date.year)),
        part!("$month", |date| int(date.month)),
        part!("$dayOfMonth", |date| int(date.day)),
        part!("$dayOfYear", |date| int(date.day_of_year())),
        part!("$dayOfWeek", |date| int(date.iso_weekday() % 7 + 1)),
        part!("$week", |date| int(date.week())),
        part!("$isoDayOfWeek", |date| int(date.iso_weekday())),
        part!("$isoWeek", |date| int(date.iso_week().1)),
        part!("$isoWeekYear", |date| Value::Int64(date.iso_week().0)),
        part!("$hour", |date| int(date.time / HOUR)),
        part!("$minute", |date| int(date.time / MINUTE % 60)),
        part!("$second", |date| int(date.time / SECOND % 60)),
        part!("$millisecond", |date| int(date.time % 1000)),
    ],
};

fn int(value: i64) -> Value {
    Value::Int32(value as i32)
}

/// Reads a date, a list of one date, or a date with a zone.
fn parse(
    parser: &mut Parser<'_>,
    name: &'static str,
    argument: ValueRef<'_>,
    function: Function,
) -> Result<Node> {
    let (date, zone) = match argument {
        ValueRef::Document(document)
            if document.iter().next().is_none_or(|(first, _)| !first.starts_with('$')) =>
        {
            if let Some((wrong, _)) = document.iter().find(|(name, _)| !matches!(*name, "date" | "timezone"))
            {
                let message = format!("unrecognized option to {name}: \"{wrong}\"");
                return Err(Error::location(40535, message));
            }
            let Some(date) = document.get("date") else {
                let found = bson::shell_text(argument);
                let message = format!("missing 'date' argument to {name}, provided: {name}: {found}");
                return Err(Error::location(40539, message));
            };
            (date, document.get("timezone"))
        }
        ValueRef::Array(items) => match (items.len(), items.get(0)) {
            (1, Some(date)) => (date, None),
            (count, _) => {
                let message =
                    format!("{name} accepts exactly one argument if given an array, but was given {count}");
                return Err(Error::location(40536, message));
            }
        },
        date => (date, None),
    };
    let date = parser.operand(date)?;
    let zone = zone.map(|zone| parser.operand(zone)).transpose()?;
    Ok(pure_call(name, function, vec![Some(date), zone]))
}

/// Returns the parts of the date in its zone, or nothing for null.
fn date(call: &Call<'_>) -> Result<Option<Date>> {
    let zone = match call.get(1) {
        Some(ValueRef::String(name)) => Zone::parse(name)?,
        value if is_nullish(value) && call.is_given(1) => return Ok(None),
        None => Zone::Utc,
        value => {
            let (name, found, value) = (call.name, type_name(value), text(value));
            let message = format!(
                "{name} requires a string for the timezone argument, but was given a {found} ({value})"
            );
            return Err(Error::location(40533, message));
        }
    };
    match call.get(0) {
        Some(date) if !is_nullish(Some(date)) => Ok(Some(zone.date(to_moment(date)?))),
        _ => Ok(None),
    }
}

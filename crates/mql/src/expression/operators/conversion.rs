//! Types and conversions between them: `$type`, `$convert` and its short forms.

use bson::{DocumentRef, Kind, ObjectId, Timestamp, Value, ValueRef};

use crate::error::{Code, Error, Result};
use crate::expression::number::{Number, double_text};
use crate::expression::operand::{is_nullish, is_true, type_name};
use crate::expression::operators::binary::{self, Format, to_binary};
use crate::expression::operators::date;
use crate::expression::table::{Arity, Call, Group, Names, Refusal, optional, own, positional, required};

pub(crate) const GROUP: Group = Group {
    foldable: true,
    operators: &[
        positional("$type", Arity::Exactly(1), type_of),
        positional("$isNumber", Arity::Exactly(1), is_number),
        positional("$tsSecond", Arity::Exactly(1), |call| {
            timestamp_part(call, 5_687_301, |time| time.seconds)
        }),
        positional("$tsIncrement", Arity::Exactly(1), |call| {
            timestamp_part(call, 5_687_302, |time| time.increment)
        }),
        own("$convert", |parser, name, argument| parser.guarded(name, &CONVERT, convert, argument)),
        positional("$toBool", Arity::Single, |call| short(call, Kind::Bool)),
        positional("$toDate", Arity::Single, |call| short(call, Kind::DateTime)),
        positional("$toDecimal", Arity::Single, |call| short(call, Kind::Decimal128)),
        positional("$toDouble", Arity::Single, |call| short(call, Kind::Double)),
        positional("$toInt", Arity::Single, |call| short(call, Kind::Int32)),
        positional("$toLong", Arity::Single, |call| short(call, Kind::Int64)),
        positional("$toObjectId", Arity::Single, |call| short(call, Kind::ObjectId)),
        positional("$toString", Arity::Single, |call| short(call, Kind::String)),
        positional("$toUUID", Arity::Single, |call| match call.get(0) {
            Some(value) if !is_nullish(Some(value)) => {
                to_binary(value, binary::UUID, Some(Format::Uuid)).map(Some)
            }
            _ => Ok(Some(Value::Null)),
        }),
    ],
};

const CONVERT: Names = Names {
    parameters: &[
        required("input", 9, "Missing 'input' parameter to $convert"),
        required("to", 9, "Missing 'to' parameter to $convert"),
        optional("onError"),
        optional("onNull"),
        optional("format"),
    ],
    not_a_document: Refusal(9, "$convert expects an object of named arguments but found: {}"),
    unknown: Refusal(9, "$convert found an unknown argument: {}"),
};

fn type_of(call: &Call<'_>) -> Result<Option<Value>> {
    Ok(Some(Value::from(type_name(call.get(0)))))
}

fn is_number(call: &Call<'_>) -> Result<Option<Value>> {
    Ok(Some(Value::Bool(call.get(0).is_some_and(ValueRef::is_number))))
}

fn timestamp_part(call: &Call<'_>, code: i32, part: fn(Timestamp) -> u32) -> Result<Option<Value>> {
    match call.get(0) {
        Some(ValueRef::Timestamp(timestamp)) => Ok(Some(Value::Int64(part(timestamp).into()))),
        value if is_nullish(value) => Ok(Some(Value::Null)),
        value => {
            // The space in front belongs to the message that clients know.
            let message =
                format!(" Argument to {} must be a timestamp, but is {}", call.name, type_name(value));
            Err(Error::location(code, message))
        }
    }
}

fn short(call: &Call<'_>, kind: Kind) -> Result<Option<Value>> {
    match call.get(0) {
        Some(value) if !is_nullish(Some(value)) => to_kind(value, kind).map(Some),
        _ => Ok(Some(Value::Null)),
    }
}

fn convert(call: &Call<'_>) -> Result<Option<Value>> {
    let (to, subtype) = match call.get(1) {
        Some(ValueRef::Document(to)) => typed_target(to)?,
        to => (to, 0),
    };
    let kind = match to {
        to if is_nullish(to) => None,
        Some(to) => Some(target(to)?),
        None => None,
    };
    let format = call.get(4).filter(|format| !is_nullish(Some(*format))).map(Format::parse).transpose()?;
    match (call.get(0), kind) {
        (Some(value), Some(kind)) if !is_nullish(Some(value)) => match (value, kind) {
            (_, None) => Err(unsupported(value, "missing")),
            (value, Some(Kind::Binary)) => to_binary(value, subtype, format).map(Some),
            (ValueRef::Binary(bytes), Some(Kind::String)) => {
                Ok(Some(Value::String(binary::to_text(bytes, format)?)))
            }
            (value, Some(kind)) => to_kind(value, kind).map(Some),
        },
        _ => Ok(Some(Value::Null)),
    }
}

/// Returns a target with its parts: `{type, subtype}`.
fn typed_target(to: DocumentRef<'_>) -> Result<(Option<ValueRef<'_>>, u8)> {
    if let Some((name, _)) = to.iter().find(|(name, _)| !matches!(*name, "type" | "subtype")) {
        return Err(Error::failed_to_parse(format!("$convert found an unknown argument of 'to': {name}")));
    }
    let Some(kind) = to.get("type") else {
        return Err(Error::failed_to_parse("Missing 'type' parameter to $convert's 'to'"));
    };
    let subtype = match to.get("subtype").filter(|subtype| !is_nullish(Some(*subtype))) {
        None => 0,
        Some(subtype) => {
            let number = Number::of(subtype).and_then(Number::exact_i32);
            number.and_then(|number| u8::try_from(number).ok()).ok_or_else(|| {
                let shown = bson::shell_text(subtype);
                let message = format!(
                    "In $convert, numeric value for 'subtype' does not correspond to a BinData type: {shown}"
                );
                Error::location(4_341_107, message)
            })?
        }
    };
    Ok((Some(kind), subtype))
}

/// Returns the type that `to` names; the inner `None` is the type of what is missing.
fn target(to: ValueRef<'_>) -> Result<Option<Kind>> {
    if let ValueRef::String(name) = to {
        let kind = Kind::ALL.into_iter().find(|kind| kind.alias() == name);
        return match (kind, name) {
            (None, "missing") => Ok(None),
            (None, _) => Err(Error::bad_value(format!("Unknown type name: {name}"))),
            (kind, _) => Ok(kind),
        };
    }
    let Some(number) = Number::of(to) else {
        let found = type_name(Some(to));
        let message = format!("$convert's 'to' argument must be a string or number, but is {found}");
        return Err(Error::failed_to_parse(message));
    };
    let Some(code) = number.exact_i32() else {
        return Err(Error::failed_to_parse("In $convert, numeric 'to' argument is not an integer"));
    };
    let kind = i8::try_from(code).ok().and_then(Kind::from_code);
    match kind {
        None if code == 0 => Ok(None),
        None => Err(Error::failed_to_parse(format!(
            "In $convert, numeric value for 'to' does not correspond to a BSON type: {code}"
        ))),
        kind => Ok(kind),
    }
}

fn failure(message: impl Into<String>) -> Error {
    Error::new(Code::CONVERSION_FAILURE, message)
}

fn unsupported(value: ValueRef<'_>, kind: &str) -> Error {
    let from = value.kind().alias();
    failure(format!("Unsupported conversion from {from} to {kind} in $convert with no onError value"))
}

/// Returns a value that is not null as one of another type.
pub(crate) fn to_kind(value: ValueRef<'_>, kind: Kind) -> Result<Value> {
    if value.kind() == kind && !matches!(kind, Kind::Document | Kind::Array | Kind::MinKey | Kind::MaxKey) {
        return Ok(value.to_value());
    }
    match kind {
        Kind::Bool => Ok(Value::Bool(is_true(value))),
        Kind::String => to_string(value),
        Kind::Double => to_double(value),
        Kind::Int32 | Kind::Int64 => to_integer(value, kind),
        Kind::Decimal128 => to_decimal(value),
        Kind::DateTime => to_date(value),
        Kind::ObjectId => match value {
            ValueRef::String(text) => to_object_id(text).map(Value::ObjectId),
            _ => Err(unsupported(value, kind.alias())),
        },
        _ => Err(unsupported(value, kind.alias())),
    }
}

fn to_string(value: ValueRef<'_>) -> Result<Value> {
    Ok(Value::String(match value {
        ValueRef::Double(value) => double_text(value),
        ValueRef::Int32(value) => value.to_string(),
        ValueRef::Int64(value) => value.to_string(),
        ValueRef::Decimal128(value) => value.to_string(),
        ValueRef::Bool(value) => value.to_string(),
        ValueRef::ObjectId(id) => id.to_string(),
        ValueRef::DateTime(millis) => date::iso_text(millis)?,
        // Without a format, as `$toString` has none.
        ValueRef::Binary(bytes) => binary::to_text(bytes, Some(Format::Auto))?,
        _ => return Err(unsupported(value, "string")),
    }))
}

fn overflow(number: Number) -> Error {
    failure(format!("Conversion would overflow target type in $convert with no onError value: {number}"))
}

fn to_double(value: ValueRef<'_>) -> Result<Value> {
    Ok(Value::Double(match value {
        ValueRef::Bool(value) => f64::from(u8::from(value)),
        ValueRef::DateTime(millis) => millis as f64,
        ValueRef::String(text) => parse_double(text)?,
        ValueRef::Decimal128(decimal) => {
            let double = decimal.to_f64();
            if double.is_infinite() && decimal.is_finite() {
                return Err(overflow(Number::Decimal(decimal)));
            }
            double
        }
        value => Number::of(value).ok_or_else(|| unsupported(value, "double"))?.to_f64(),
    }))
}

fn to_decimal(value: ValueRef<'_>) -> Result<Value> {
    Ok(Value::Decimal128(match value {
        ValueRef::Bool(value) => i32::from(value).into(),
        ValueRef::DateTime(millis) => millis.into(),
        ValueRef::String(text) => {
            let parsed = text.parse().ok().filter(|_| is_plain(text));
            parsed.ok_or_else(|| not_a_number(text, "Failed to parse string to decimal"))?
        }
        value => Number::of(value).ok_or_else(|| unsupported(value, "decimal"))?.to_decimal(),
    }))
}

/// Returns `true` if no number parser ignores a part of the text: it is neither empty nor has space around it.
fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.trim() == text
}

fn to_integer(value: ValueRef<'_>, kind: Kind) -> Result<Value> {
    let long = match value {
        ValueRef::Bool(value) => i64::from(value),
        ValueRef::DateTime(millis) if kind == Kind::Int64 => millis,
        ValueRef::String(text) => return parse_integer(text, kind),
        value => {
            let number = Number::of(value).ok_or_else(|| unsupported(value, kind.alias()))?;
            whole_part(number)?
        }
    };
    match kind {
        Kind::Int64 => Ok(Value::Int64(long)),
        _ => i32::try_from(long).map(Value::Int32).map_err(|_| {
            // The message does not contain a long that does not fit.
            match Number::of(value) {
                Some(number) if !number.is_long() => overflow(number),
                _ => failure("Conversion would overflow target type in $convert with no onError value: "),
            }
        }),
    }
}

fn whole_part(number: Number) -> Result<i64> {
    let value = number.to_f64();
    if value.is_nan() {
        return Err(failure(
            "Attempt to convert NaN value to integer type in $convert with no onError value",
        ));
    }
    if value.is_infinite() {
        return Err(failure(
            "Attempt to convert infinity value to integer type in $convert with no onError value",
        ));
    }
    number.truncated_i64().ok_or_else(|| overflow(number))
}

fn to_date(value: ValueRef<'_>) -> Result<Value> {
    Ok(Value::DateTime(match value {
        ValueRef::String(text) => date::parse_date(text)?,
        ValueRef::ObjectId(id) => i64::from(id.seconds()) * 1000,
        ValueRef::Timestamp(timestamp) => i64::from(timestamp.seconds) * 1000,
        ValueRef::Int64(_) | ValueRef::Double(_) | ValueRef::Decimal128(_) => {
            whole_part(Number::of(value).ok_or_else(|| unsupported(value, "date"))?)?
        }
        _ => return Err(unsupported(value, "date")),
    }))
}

fn to_object_id(text: &str) -> Result<ObjectId> {
    text.parse().map_err(|_| {
        let reason = match text.len() {
            24 => "Invalid character found in hex string".to_owned(),
            length => format!("Invalid string length for parsing to OID, expected 24 but found {length}"),
        };
        failure(format!("Failed to parse objectId '{text}' in $convert with no onError value: {reason}"))
    })
}

fn not_a_number(text: &str, reason: &str) -> Error {
    if text.starts_with("0x") {
        return failure(format!("Illegal hexadecimal input in $convert with no onError value: {text}"));
    }
    failure(format!("Failed to parse number '{text}' in $convert with no onError value: {reason}"))
}

fn parse_double(text: &str) -> Result<f64> {
    let value = text.parse::<f64>().ok().filter(|_| is_plain(text));
    let Some(value) = value else {
        let begun = text.trim_start_matches(['+', '-']).starts_with(|letter: char| letter.is_ascii_digit());
        let reason = match (text.is_empty(), begun) {
            (true, _) => "Empty string",
            (_, true) => "Did not consume whole string.",
            (_, false) => "Did not consume any digits",
        };
        return Err(not_a_number(text, reason));
    };
    let infinite = text.to_ascii_lowercase().contains("inf");
    if value.is_infinite() && !infinite { Err(not_a_number(text, "Out of range")) } else { Ok(value) }
}

fn parse_integer(text: &str, kind: Kind) -> Result<Value> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let number = digits.len() - digits.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
    if digits.is_empty() || number < digits.len() {
        let reason = match (text.is_empty(), number) {
            (true, _) => "Empty string",
            (_, 0) => "Did not consume any digits",
            _ => "Did not consume whole string.",
        };
        return Err(not_a_number(text, reason));
    }
    let overflow = || not_a_number(text, "Overflow");
    match kind {
        Kind::Int64 => text.parse().map(Value::Int64).map_err(|_| overflow()),
        _ => text.parse().map(Value::Int32).map_err(|_| overflow()),
    }
}

/// Returns a value as a string where an operator takes more than strings: nothing is an empty string.
pub(crate) fn coerce_to_string(value: Option<ValueRef<'_>>) -> Result<String> {
    match value {
        value if is_nullish(value) => Ok(String::new()),
        Some(ValueRef::String(text) | ValueRef::Symbol(text) | ValueRef::JavaScript(text)) => {
            Ok(text.to_owned())
        }
        Some(ValueRef::DateTime(millis)) => date::iso_text(millis),
        Some(ValueRef::Timestamp(timestamp)) => {
            Ok(format!("Timestamp({}, {})", timestamp.seconds, timestamp.increment))
        }
        value => value.and_then(Number::of).map(|number| number.to_string()).ok_or_else(|| {
            let message = format!("can't convert from BSON type {} to String", type_name(value));
            Error::location(16007, message)
        }),
    }
}

//! Strings: put together, cut, searched, counted. Positions are bytes or code points, as the name of an operator says.

use bson::{Value, ValueRef};

use crate::error::{Error, Result};
use crate::expression::number::Number;
use crate::expression::operand::{Budget, is_nullish, string, type_name};
use crate::expression::operators::array::bound;
use crate::expression::operators::conversion::coerce_to_string;
use crate::expression::table::{Arity, Call, Group, Refusal, positional};

pub(crate) const GROUP: Group = Group {
    foldable: true,
    operators: &[
        positional("$concat", Arity::Any, concat),
        positional("$split", Arity::Exactly(2), split),
        positional("$toLower", Arity::Exactly(1), to_lower),
        positional("$toUpper", Arity::Exactly(1), to_upper),
        positional("$strcasecmp", Arity::Exactly(2), compare_ignoring_case),
        positional("$substr", Arity::Exactly(3), substring_of_bytes),
        positional("$substrBytes", Arity::Exactly(3), substring_of_bytes),
        positional("$substrCP", Arity::Exactly(3), substring_of_code_points),
        positional("$strLenBytes", Arity::Exactly(1), length_in_bytes),
        positional("$strLenCP", Arity::Exactly(1), length_in_code_points),
        positional("$indexOfBytes", Arity::Between(2, 4), index_of_bytes),
        positional("$indexOfCP", Arity::Between(2, 4), index_of_code_point),
    ],
};

const NULL: Result<Option<Value>> = Ok(Some(Value::Null));

fn concat(call: &Call<'_>) -> Result<Option<Value>> {
    let mut all = String::new();
    let mut budget = Budget::new(call.context);
    for value in call.values() {
        if is_nullish(value) {
            return NULL;
        }
        let part = string(value, Refusal(16702, "$concat only supports strings, not {}"))?;
        budget.bytes(part.len())?;
        all.push_str(part);
    }
    Ok(Some(Value::String(all)))
}

fn split(call: &Call<'_>) -> Result<Option<Value>> {
    if is_nullish(call.get(0)) || is_nullish(call.get(1)) {
        return NULL;
    }
    let words = "$split requires an expression that evaluates to a string as a first argument, found: {}";
    let input = string(call.get(0), Refusal(40085, words))?;
    let words = "$split requires an expression that evaluates to a string as a second argument, found: {}";
    let separator = string(call.get(1), Refusal(40086, words))?;
    if separator.is_empty() {
        return Err(Error::location(40087, "$split requires a non-empty separator"));
    }
    let mut parts = Vec::new();
    let mut budget = Budget::new(call.context);
    for part in input.split(separator) {
        budget.item(ValueRef::String(part))?;
        parts.push(Value::from(part));
    }
    Ok(Some(Value::Array(parts)))
}

/// Returns the text in lower case. Only ASCII letters change: other scripts have rules that depend on the language.
fn to_lower(call: &Call<'_>) -> Result<Option<Value>> {
    Ok(Some(Value::String(coerce_to_string(call.get(0))?.to_ascii_lowercase())))
}

fn to_upper(call: &Call<'_>) -> Result<Option<Value>> {
    Ok(Some(Value::String(coerce_to_string(call.get(0))?.to_ascii_uppercase())))
}

fn compare_ignoring_case(call: &Call<'_>) -> Result<Option<Value>> {
    let (left, right) = (coerce_to_string(call.get(0))?, coerce_to_string(call.get(1))?);
    call.context.spend((left.len() + right.len()) as u64 / 64)?;
    Ok(Some(Value::Int32(left.to_ascii_uppercase().cmp(&right.to_ascii_uppercase()) as i32)))
}

fn substring_of_bytes(call: &Call<'_>) -> Result<Option<Value>> {
    // Both names report errors under the newer name, with two spaces.
    const NAME: &str = "$substrBytes";
    let number = |at: usize, code: i32, what: &str| {
        let value = call.get(at);
        value.and_then(Number::of).map(Number::saturating_i64).ok_or_else(|| {
            let found = type_name(value);
            Error::location(code, format!("{NAME}:  {what} must be a numeric type (is BSON type {found})"))
        })
    };
    let text = coerce_to_string(call.get(0))?;
    let start = number(1, 16034, "starting index")?;
    let length = number(2, 16035, "length")?;
    let Ok(start) = usize::try_from(start) else {
        let message = format!("{NAME}:  starting index must be non-negative (got: {start})");
        return Err(Error::location(50752, message));
    };
    let end = usize::try_from(length).map_or(usize::MAX, |length| start.saturating_add(length));
    let inside = |at: usize| at < text.len() && !text.is_char_boundary(at);
    if inside(start) {
        let message = format!("{NAME}:  Invalid range, starting index is a UTF-8 continuation byte.");
        return Err(Error::location(28656, message));
    }
    if inside(end) {
        let message = format!("{NAME}:  Invalid range, ending index is in the middle of a UTF-8 character.");
        return Err(Error::location(28657, message));
    }
    let part = text.get(start.min(text.len())..end.min(text.len())).unwrap_or_default();
    Ok(Some(Value::from(part)))
}

fn substring_of_code_points(call: &Call<'_>) -> Result<Option<Value>> {
    let number = |at: usize, code: i32, what: &str| {
        let value = call.get(at);
        let Some(number) = value.and_then(Number::of) else {
            let found = type_name(value);
            let message = format!("$substrCP: {what} must be a numeric type (is BSON type {found})");
            return Err(Error::location(code, message));
        };
        number.exact_i32().ok_or_else(|| {
            let message =
                format!("$substrCP: {what} cannot be represented as a 32-bit integral value: {number}");
            Error::location(code + 1, message)
        })
    };
    let text = coerce_to_string(call.get(0))?;
    call.context.spend(text.len() as u64 / 64)?;
    let start = number(1, 34450, "starting index")?;
    let length = number(2, 34452, "length")?;
    let length = usize::try_from(length)
        .map_err(|_| Error::location(34454, "$substrCP: length must be a nonnegative integer."))?;
    let start = usize::try_from(start)
        .map_err(|_| Error::location(34455, "$substrCP: the starting index must be nonnegative integer."))?;
    Ok(Some(Value::String(text.chars().skip(start).take(length).collect())))
}

fn length_in_bytes(call: &Call<'_>) -> Result<Option<Value>> {
    let text = string(call.get(0), Refusal(34473, "$strLenBytes requires a string argument, found: {}"))?;
    Ok(Some(Value::Int32(text.len() as i32)))
}

fn length_in_code_points(call: &Call<'_>) -> Result<Option<Value>> {
    let text = string(call.get(0), Refusal(34471, "$strLenCP requires a string argument, found: {}"))?;
    call.context.spend(text.len() as u64 / 64)?;
    Ok(Some(Value::Int32(text.chars().count() as i32)))
}

fn index_of_bytes(call: &Call<'_>) -> Result<Option<Value>> {
    if is_nullish(call.get(0)) {
        return NULL;
    }
    let words = "$indexOfBytes requires a string as the first argument, found: {}";
    let text = string(call.get(0), Refusal(40091, words))?;
    let words = "$indexOfBytes requires a string as the second argument, found: {}";
    let wanted = string(call.get(1), Refusal(40092, words))?;
    let start = bound(call, 2, "starting index")?.unwrap_or(0);
    let end = bound(call, 3, "ending index")?.unwrap_or(usize::MAX).min(text.len());
    if start > end {
        return Ok(Some(Value::Int32(-1)));
    }
    Ok(Some(Value::Int32(
        find(&text.as_bytes()[start..end], wanted.as_bytes(), call)?.map_or(-1, |at| (start + at) as i32),
    )))
}

/// Bounds may lie inside of a character, so bytes are searched, not text.
fn find(bytes: &[u8], wanted: &[u8], call: &Call<'_>) -> Result<Option<usize>> {
    let Some((first, _)) = wanted.split_first() else { return Ok(Some(0)) };
    let mut at = 0;
    while let Some(next) = bytes[at..].iter().position(|byte| byte == first) {
        at += next;
        call.context.spend(wanted.len() as u64 / 32 + 1)?;
        if bytes[at..].starts_with(wanted) {
            return Ok(Some(at));
        }
        at += 1;
    }
    Ok(None)
}

fn index_of_code_point(call: &Call<'_>) -> Result<Option<Value>> {
    if is_nullish(call.get(0)) {
        return NULL;
    }
    let words = "$indexOfCP requires a string as the first argument, found: {}";
    let text = string(call.get(0), Refusal(40093, words))?;
    let words = "$indexOfCP requires a string as the second argument, found: {}";
    let wanted = string(call.get(1), Refusal(40094, words))?;
    let start = bound(call, 2, "starting index")?.unwrap_or(0);
    let end = bound(call, 3, "ending index")?.unwrap_or(usize::MAX);
    call.context.spend(text.len() as u64 / 64)?;
    let byte = |position: usize| text.char_indices().nth(position).map(|(at, _)| at);
    let found = match byte(start) {
        None if start == 0 && wanted.is_empty() => Some(0),
        None => None,
        Some(from) => text[from..].find(wanted).map(|at| start + text[from..from + at].chars().count()),
    };
    // A match must begin, not end, before the last position.
    let found = found.filter(|position| *position < end || (text.is_empty() && *position <= end));
    Ok(Some(Value::Int32(found.map_or(-1, |position| position as i32))))
}

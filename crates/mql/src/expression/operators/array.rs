//! Array operators: elements, slices, sizes, concatenation.

use bson::{ArrayRef, Value, ValueRef};

use crate::error::{Code, Error, Result};
use crate::expression::number::Number;
use crate::expression::operand::{Budget, array, is_nullish, text, type_name};
use crate::expression::table::{Arity, Call, Group, Refusal, positional};

pub(crate) const GROUP: Group = Group {
    foldable: false,
    operators: &[
        positional("$arrayElemAt", Arity::Exactly(2), array_element_at),
        positional("$first", Arity::Exactly(1), first),
        positional("$last", Arity::Exactly(1), last),
        positional("$concatArrays", Arity::Any, concat_arrays),
        positional("$in", Arity::Exactly(2), is_in),
        positional("$indexOfArray", Arity::Between(2, 4), index_of_array),
        positional("$isArray", Arity::Exactly(1), is_array),
        positional("$range", Arity::Between(2, 3), range),
        positional("$reverseArray", Arity::Exactly(1), reverse_array),
        positional("$size", Arity::Exactly(1), size),
        positional("$slice", Arity::Between(2, 3), slice),
    ],
};

const NULL: Result<Option<Value>> = Ok(Some(Value::Null));

fn array_element_at(call: &Call<'_>) -> Result<Option<Value>> {
    let (items, index) = (call.get(0), call.get(1));
    if is_nullish(items) || is_nullish(index) {
        return NULL;
    }
    let items = array(items, Refusal(28689, "$arrayElemAt's first argument must be an array, but is {}"))?;
    let Some(number) = index.and_then(Number::of) else {
        let refusal = Refusal(28690, "$arrayElemAt's second argument must be a numeric value, but is {}");
        return Err(refusal.about(type_name(index)));
    };
    let Some(index) = number.exact_i32() else {
        let words = "$arrayElemAt's second argument must be representable as a 32-bit integer: {}";
        return Err(Refusal(28691, words).about(&number.to_string()));
    };
    element(call, items, index)
}

fn element(call: &Call<'_>, items: ArrayRef<'_>, index: i32) -> Result<Option<Value>> {
    let position = match usize::try_from(index) {
        Ok(position) => Some(position),
        Err(_) => items.len().checked_sub(index.unsigned_abs() as usize),
    };
    // Items are found by counting.
    call.context.spend(position.unwrap_or(0) as u64 / 16)?;
    Ok(position.and_then(|position| items.get(position)).map(ValueRef::to_value))
}

fn first(call: &Call<'_>) -> Result<Option<Value>> {
    end(call, 0, Refusal(28689, "$first's argument must be an array, but is {}"))
}

fn last(call: &Call<'_>) -> Result<Option<Value>> {
    end(call, -1, Refusal(28689, "$last's argument must be an array, but is {}"))
}

fn end(call: &Call<'_>, index: i32, refusal: Refusal) -> Result<Option<Value>> {
    if is_nullish(call.get(0)) {
        return NULL;
    }
    element(call, array(call.get(0), refusal)?, index)
}

fn concat_arrays(call: &Call<'_>) -> Result<Option<Value>> {
    let mut all = Vec::new();
    let mut budget = Budget::new(call.context);
    for value in call.values() {
        if is_nullish(value) {
            return NULL;
        }
        for item in array(value, Refusal(28664, "$concatArrays only supports arrays, not {}"))?.iter() {
            budget.item(item)?;
            all.push(item.to_value());
        }
    }
    Ok(Some(Value::Array(all)))
}

fn is_in(call: &Call<'_>) -> Result<Option<Value>> {
    let refusal = Refusal(40081, "$in requires an array as a second argument, found: {}");
    let items = array(call.get(1), refusal)?;
    for item in items.iter() {
        call.context.spend(1)?;
        if call.scope.compare(call.get(0), Some(item)).is_eq() {
            return Ok(Some(Value::Bool(true)));
        }
    }
    Ok(Some(Value::Bool(false)))
}

fn index_of_array(call: &Call<'_>) -> Result<Option<Value>> {
    if is_nullish(call.get(0)) {
        return NULL;
    }
    let refusal = Refusal(40090, "$indexOfArray requires an array as a first argument, found: {}");
    let items = array(call.get(0), refusal)?;
    let start = bound(call, 2, "starting index")?.unwrap_or(0);
    let end = bound(call, 3, "ending index")?.unwrap_or(usize::MAX);
    for (position, item) in items.iter().enumerate().take(end).skip(start) {
        call.context.spend(1)?;
        if call.scope.compare(call.get(1), Some(item)).is_eq() {
            return Ok(Some(Value::Int32(position as i32)));
        }
    }
    Ok(Some(Value::Int32(-1)))
}

/// Returns a bound of a search, if it is given: an integer that is not negative.
pub(super) fn bound(call: &Call<'_>, position: usize, what: &str) -> Result<Option<usize>> {
    if !call.is_given(position) {
        return Ok(None);
    }
    let (name, value) = (call.name, call.get(position));
    let Some(index) = value.and_then(Number::of).and_then(Number::exact_i32) else {
        let (found, value) = (type_name(value), text(value));
        let message = format!(
            "{name}requires an integral {what}, found a value of type: {found}, with value: \"{value}\""
        );
        return Err(Error::location(40096, message));
    };
    let refuse = |_| Error::location(40097, format!("{name} requires a nonnegative {what}, found: {index}"));
    usize::try_from(index).map(Some).map_err(refuse)
}

fn is_array(call: &Call<'_>) -> Result<Option<Value>> {
    Ok(Some(Value::Bool(matches!(call.get(0), Some(ValueRef::Array(_))))))
}

fn range(call: &Call<'_>) -> Result<Option<Value>> {
    let start = range_bound(call, 0, 34443, "a", "starting", "type: ")?;
    let end = range_bound(call, 1, 34445, "an", "ending", "type: ")?;
    let step = if call.is_given(2) { range_bound(call, 2, 34447, "a", "step", "type:")? } else { 1 };
    if step == 0 {
        return Err(Error::location(34449, "$range requires a non-zero step value"));
    }
    let count = ((end - start + step - step.signum()) / step).max(0) as u64;
    let (needed, limit) = (count.saturating_mul(16), bson::limits::DOCUMENT_BYTES_MAX as u64);
    if needed > limit {
        let message = format!(
            "$range would use too much memory ({needed} bytes) and cannot spill to disk. Memory limit: {limit} bytes"
        );
        return Err(Error::new(Code::EXCEEDED_MEMORY_LIMIT, message));
    }
    call.context.spend(count)?;
    let numbers = (0..count as i64).map(|position| Value::Int32((start + position * step) as i32));
    Ok(Some(Value::Array(numbers.collect())))
}

fn range_bound(call: &Call<'_>, at: usize, code: i32, article: &str, what: &str, of: &str) -> Result<i64> {
    let value = call.get(at);
    let Some(number) = value.and_then(Number::of) else {
        let found = type_name(value);
        let message = format!("$range requires a numeric {what} value, found value of {of}{found}");
        return Err(Error::location(code, message));
    };
    number.exact_i32().map(i64::from).ok_or_else(|| {
        let message = format!(
            "$range requires {article} {what} value that can be represented as a 32-bit integer, found value: {number}"
        );
        Error::location(code + 1, message)
    })
}

fn reverse_array(call: &Call<'_>) -> Result<Option<Value>> {
    if is_nullish(call.get(0)) {
        return NULL;
    }
    let refusal = Refusal(34435, "The argument to $reverseArray must be an array, but was of type: {}");
    let mut items: Vec<Value> = array(call.get(0), refusal)?.iter().map(ValueRef::to_value).collect();
    items.reverse();
    Ok(Some(Value::Array(items)))
}

fn size(call: &Call<'_>) -> Result<Option<Value>> {
    let refusal = Refusal(17124, "The argument to $size must be an array, but was of type: {}");
    let length = array(call.get(0), refusal)?.len();
    call.context.spend(length as u64 / 16)?;
    Ok(Some(Value::Int32(length as i32)))
}

fn slice(call: &Call<'_>) -> Result<Option<Value>> {
    let given = if call.is_given(2) { 3 } else { 2 };
    if (0..given).any(|position| is_nullish(call.get(position))) {
        return NULL;
    }
    let refusal = Refusal(28724, "First argument to $slice must be an array, but is of type: {}");
    let items = array(call.get(0), refusal)?;
    let second = slice_bound(
        call.get(1),
        Refusal(28725, "Second argument to $slice must be a numeric value, but is of type: {}"),
        Refusal(28726, "Second argument to $slice can't be represented as a 32-bit integer: {}"),
    )?;
    let from_end = |back: i32| items.len().saturating_sub(back.unsigned_abs() as usize);
    let (start, count) = if call.is_given(2) {
        let count = slice_bound(
            call.get(2),
            Refusal(28727, "Third argument to $slice must be numeric, but is of type: {}"),
            Refusal(28728, "Third argument to $slice can't be represented as a 32-bit integer: {}"),
        )?;
        if count <= 0 {
            let message = format!("Third argument to $slice must be positive: {count}");
            return Err(Error::location(28729, message));
        }
        (usize::try_from(second).unwrap_or_else(|_| from_end(second)), count as usize)
    } else {
        match usize::try_from(second) {
            Ok(count) => (0, count),
            Err(_) => (from_end(second), usize::MAX),
        }
    };
    let kept = items.iter().skip(start).take(count).map(ValueRef::to_value);
    Ok(Some(Value::Array(kept.collect())))
}

fn slice_bound(value: Option<ValueRef<'_>>, not_a_number: Refusal, not_whole: Refusal) -> Result<i32> {
    let number = value.and_then(Number::of).ok_or_else(|| not_a_number.about(type_name(value)))?;
    number.exact_i32().ok_or_else(|| not_whole.about(&number.to_string()))
}

//! `$firstN`, `$lastN`, `$minN`, `$maxN` of an array.

use std::cmp::Ordering;

use bson::{Value, ValueRef};

use crate::error::{Error, Result};
use crate::expression::number::Number;
use crate::expression::operand::{is_nullish, text};
use crate::expression::table::{Call, Group, Names, Refusal, named, required};

pub(crate) const GROUP: Group = Group {
    foldable: false,
    operators: &[
        named("$firstN", &FIRST_LAST, first_n),
        named("$lastN", &FIRST_LAST, last_n),
        named("$minN", &MIN_MAX, min_n),
        named("$maxN", &MIN_MAX, max_n),
    ],
};

const FIRST_LAST: Names =
    Names { not_a_document: Refusal(5_787_801, "specification must be an object; found {}"), ..MIN_MAX };

const MIN_MAX: Names = Names {
    parameters: &[
        required("n", 5_787_906, "Missing value for 'n'"),
        required("input", 5_787_907, "Missing value for 'input'"),
    ],
    not_a_document: Refusal(5_787_900, "specification must be an object; found {}"),
    unknown: Refusal(5_787_901, "Unknown argument for 'n' operator: {}"),
};

/// Returns the number of items to return: a whole number above zero.
pub(crate) fn count(value: Option<ValueRef<'_>>) -> Result<usize> {
    let wrong = |code: i32| {
        let message = format!("Value for 'n' must be of integral type, but found {}", text(value));
        Error::location(code, message)
    };
    let number = value.and_then(Number::of).ok_or_else(|| wrong(5_787_902))?;
    let count = number.exact_i64().ok_or_else(|| wrong(5_787_903))?;
    match usize::try_from(count) {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(Error::location(5_787_908, format!("'n' must be greater than 0, found {count}"))),
    }
}

fn arguments<'a>(call: &Call<'a>) -> Result<(usize, Vec<ValueRef<'a>>)> {
    let count = count(call.get(0))?;
    let Some(ValueRef::Array(items)) = call.get(1) else {
        return Err(Error::location(5_788_200, "Input must be an array"));
    };
    let items: Vec<ValueRef<'_>> = items.iter().collect();
    call.context.spend(items.len() as u64 / 8)?;
    Ok((count, items))
}

fn owned(items: &[ValueRef<'_>]) -> Result<Option<Value>> {
    Ok(Some(Value::Array(items.iter().map(|item| item.to_value()).collect())))
}

fn first_n(call: &Call<'_>) -> Result<Option<Value>> {
    let (count, items) = arguments(call)?;
    owned(&items[..count.min(items.len())])
}

fn last_n(call: &Call<'_>) -> Result<Option<Value>> {
    let (count, items) = arguments(call)?;
    owned(&items[items.len().saturating_sub(count)..])
}

fn min_n(call: &Call<'_>) -> Result<Option<Value>> {
    extremes(call, |order| order)
}

fn max_n(call: &Call<'_>) -> Result<Option<Value>> {
    extremes(call, Ordering::reverse)
}

fn extremes(call: &Call<'_>, direction: fn(Ordering) -> Ordering) -> Result<Option<Value>> {
    let (count, mut items) = arguments(call)?;
    items.retain(|item| !is_nullish(Some(*item)));
    call.context.spend(items.len() as u64 * 8)?;
    items.sort_by(|left, right| direction(call.scope.compare(Some(*left), Some(*right))));
    items.truncate(count);
    owned(&items)
}

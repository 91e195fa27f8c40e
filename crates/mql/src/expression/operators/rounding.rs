//! `$abs`, `$ceil`, `$floor`, `$round`, `$trunc`. The number keeps its type.

use bson::{Decimal128, Rounding, Value};

use crate::error::{Error, Result};
use crate::expression::number::Number;
use crate::expression::operand::{is_nullish, type_name};
use crate::expression::table::{Arity, Call, Group, positional};

pub(crate) const GROUP: Group = Group {
    foldable: true,
    operators: &[
        positional("$abs", Arity::Exactly(1), abs),
        positional("$ceil", Arity::Exactly(1), |call| whole(call, f64::ceil, Decimal128::ceil)),
        positional("$floor", Arity::Exactly(1), |call| whole(call, f64::floor, Decimal128::floor)),
        positional("$round", Arity::Between(1, 2), |call| to_place(call, Rounding::HalfEven)),
        positional("$trunc", Arity::Between(1, 2), |call| to_place(call, Rounding::Truncate)),
    ],
};

/// Returns the one number of an operator, or nothing if it is null.
pub(super) fn one_number(call: &Call<'_>) -> Result<Option<Number>> {
    let value = call.get(0);
    match value.and_then(Number::of) {
        Some(number) => Ok(Some(number)),
        None if is_nullish(value) => Ok(None),
        None => {
            let message = format!("{} only supports numeric types, not {}", call.name, type_name(value));
            Err(Error::location(28765, message))
        }
    }
}

fn abs(call: &Call<'_>) -> Result<Option<Value>> {
    let Some(number) = one_number(call)? else { return Ok(Some(Value::Null)) };
    Ok(Some(match number {
        Number::Int(value) => Number::of_integer(i64::from(value).abs(), false).into(),
        Number::Long(value) => {
            let wrong = || Error::location(28680, "can't take $abs of long long min");
            Value::Int64(value.checked_abs().ok_or_else(wrong)?)
        }
        Number::Double(value) => Value::Double(value.abs()),
        Number::Decimal(value) => Value::Decimal128(value.abs()),
    }))
}

fn whole(
    call: &Call<'_>,
    doubles: fn(f64) -> f64,
    decimals: fn(Decimal128) -> Decimal128,
) -> Result<Option<Value>> {
    Ok(Some(match one_number(call)? {
        None => Value::Null,
        Some(Number::Double(value)) => Value::Double(doubles(value)),
        Some(Number::Decimal(value)) => Value::Decimal128(decimals(value)),
        Some(integer) => integer.into(),
    }))
}

fn to_place(call: &Call<'_>, rounding: Rounding) -> Result<Option<Value>> {
    let value = call.get(0);
    if is_nullish(value) {
        return Ok(Some(Value::Null));
    }
    let name = call.name;
    let number = value.and_then(Number::of).ok_or_else(|| {
        Error::location(51081, format!("{name} only supports numeric types, not {}", type_name(value)))
    })?;
    let Some(places) = places(call)? else { return Ok(Some(Value::Null)) };
    Ok(Some(match number {
        Number::Decimal(value) if value.is_finite() => {
            let rounded = value.quantize(-places, rounding);
            // Where there is no room for so many digits the value has all of its own: as many zeros as fit follow.
            Value::Decimal128(if rounded.is_nan() { value.padded() } else { rounded })
        }
        Number::Double(value) if value.is_finite() => {
            // Through the exact digits of the double, so that 2.675 is below the middle as it really is.
            Value::Double(Decimal128::from_f64_nearest(value).round_to(places, rounding).to_f64())
        }
        Number::Int(_) | Number::Long(_) if places < 0 => {
            let rounded = number.to_decimal().round_to(places, rounding).to_i64().ok_or_else(|| {
                let message = format!(
                    "invalid conversion from Decimal128 result in {name} resulting from arguments: [{number}, {places}]"
                );
                Error::location(51080, message)
            })?;
            Number::of_integer(rounded, number.is_long()).into()
        }
        other => other.into(),
    }))
}

/// Returns where to round: digits behind the point, or before it if negative.
fn places(call: &Call<'_>) -> Result<Option<i32>> {
    if !call.is_given(1) {
        return Ok(Some(0));
    }
    let (name, value) = (call.name, call.get(1));
    if is_nullish(value) {
        return Ok(None);
    }
    let Some(places) = value.and_then(Number::of).and_then(Number::exact_i32) else {
        let message = format!("precision argument to  {name} must be a integral value");
        return Err(Error::location(51082, message));
    };
    if !(-20..=100).contains(&places) {
        let message =
            format!("cannot apply {name} with precision value {places} value must be in [-20, 100]");
        return Err(Error::location(51083, message));
    }
    Ok(Some(places))
}

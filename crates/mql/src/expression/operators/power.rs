//! Powers, roots and logarithms.
//!
//! A decimal gives a decimal with all of its digits; any other number gives a double, or an integer where a power of
//! integers is one.

use bson::{Decimal128, Value};

use crate::error::{Error, Result};
use crate::expression::number::Number;
use crate::expression::operand::{is_nullish, type_name};
use crate::expression::operators::rounding::one_number;
use crate::expression::table::{Arity, Call, Group, Refusal, positional};

pub(crate) const GROUP: Group = Group {
    foldable: true,
    operators: &[
        positional("$exp", Arity::Exactly(1), exp),
        positional("$ln", Arity::Exactly(1), ln),
        positional("$log", Arity::Exactly(2), log),
        positional("$log10", Arity::Exactly(1), log10),
        positional("$pow", Arity::Exactly(2), pow),
        positional("$sqrt", Arity::Exactly(1), sqrt),
    ],
};

const NULL: Result<Option<Value>> = Ok(Some(Value::Null));

/// Returns a result of doubles in the type that the arguments ask for.
pub(super) fn like(value: f64, decimal: bool) -> Option<Value> {
    Some(if decimal { Value::Decimal128(Decimal128::from_f64(value)) } else { Value::Double(value) })
}

fn exp(call: &Call<'_>) -> Result<Option<Value>> {
    let Some(number) = one_number(call)? else { return NULL };
    Ok(Some(of(number, Decimal128::exp, f64::exp)))
}

fn ln(call: &Call<'_>) -> Result<Option<Value>> {
    let Some(number) = one_number(call)? else { return NULL };
    positive(number, Refusal(28766, "$ln's argument must be a positive number, but is {}"))?;
    Ok(Some(of(number, Decimal128::ln, f64::ln)))
}

fn log10(call: &Call<'_>) -> Result<Option<Value>> {
    let Some(number) = one_number(call)? else { return NULL };
    positive(number, Refusal(28761, "$log10's argument must be a positive number, but is {}"))?;
    Ok(Some(of(number, Decimal128::log10, f64::log10)))
}

/// Returns a function of a number in the number's own type.
fn of(number: Number, decimal: fn(Decimal128) -> Decimal128, double: fn(f64) -> f64) -> Value {
    match number {
        Number::Decimal(value) => Value::Decimal128(decimal(value)),
        other => Value::Double(double(other.to_f64())),
    }
}

fn positive(number: Number, refusal: Refusal) -> Result<()> {
    let accepted = match number {
        // Some decimals are too small to be a double.
        Number::Decimal(value) => value.is_nan() || !value.is_negative() && !value.is_zero(),
        other => other.to_f64() > 0.0 || other.to_f64().is_nan(),
    };
    if accepted { Ok(()) } else { Err(refusal.about(&number.to_string())) }
}

fn two_numbers(call: &Call<'_>, first: Refusal, second: Refusal) -> Result<Option<(Number, Number)>> {
    let (left, right) = (call.get(0), call.get(1));
    if is_nullish(left) || is_nullish(right) {
        return Ok(None);
    }
    let left = left.and_then(Number::of).ok_or_else(|| first.about(type_name(left)))?;
    let right = right.and_then(Number::of).ok_or_else(|| second.about(type_name(right)))?;
    Ok(Some((left, right)))
}

fn log(call: &Call<'_>) -> Result<Option<Value>> {
    let not_numbers = (
        Refusal(28756, "$log's argument must be numeric, not {}"),
        Refusal(28757, "$log's base must be numeric, not {}"),
    );
    let Some((number, base)) = two_numbers(call, not_numbers.0, not_numbers.1)? else { return NULL };
    positive(number, Refusal(28758, "$log's argument must be a positive number, but is {}"))?;
    let wrong = Refusal(28759, "$log's base must be a positive number not equal to 1, but is {}");
    positive(base, wrong)?;
    if base.exact_i64() == Some(1) {
        return Err(wrong.about(&base.to_string()));
    }
    if number.is_decimal() || base.is_decimal() {
        let value = number.to_decimal().ln() / base.to_decimal().ln();
        return Ok(Some(Value::Decimal128(value)));
    }
    Ok(Some(Value::Double(number.to_f64().ln() / base.to_f64().ln())))
}

fn sqrt(call: &Call<'_>) -> Result<Option<Value>> {
    let Some(number) = one_number(call)? else { return NULL };
    if number.to_f64() < 0.0 {
        return Err(Error::location(28714, "$sqrt's argument must be greater than or equal to 0"));
    }
    Ok(Some(of(number, Decimal128::sqrt, f64::sqrt)))
}

fn pow(call: &Call<'_>) -> Result<Option<Value>> {
    let not_numbers = (
        Refusal(28762, "$pow's base must be numeric, not {}"),
        Refusal(28763, "$pow's exponent must be numeric, not {}"),
    );
    let Some((base, exponent)) = two_numbers(call, not_numbers.0, not_numbers.1)? else { return NULL };
    if base.is_zero() && exponent.to_f64() < 0.0 {
        return Err(Error::location(28764, "$pow cannot take a base of 0 and a negative exponent"));
    }
    if base.is_decimal() || exponent.is_decimal() {
        return Ok(Some(Value::Decimal128(base.to_decimal().pow(exponent.to_decimal()))));
    }
    if let (Some(whole), Some(times)) = (base.integer(), exponent.integer())
        && let Some(power) = integer_power(whole, times)
    {
        return Ok(Some(Number::of_integer(power, base.is_long() || exponent.is_long()).into()));
    }
    Ok(Some(Value::Double(base.to_f64().powf(exponent.to_f64()))))
}

/// Returns the exact power, if it is a long.
fn integer_power(base: i64, exponent: i64) -> Option<i64> {
    match (base, exponent) {
        (1, _) => Some(1),
        (-1, _) => Some(if exponent % 2 == 0 { 1 } else { -1 }),
        (0, _) => Some(i64::from(exponent == 0)),
        _ => base.checked_pow(u32::try_from(exponent).ok().filter(|exponent| *exponent < 64)?),
    }
}

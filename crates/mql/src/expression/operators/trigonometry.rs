//! Angles, in radians. A decimal gives a decimal of fifteen digits, everything else a double.

use bson::Value;

use crate::error::{Error, Result};
use crate::expression::number::Number;
use crate::expression::operand::{is_nullish, type_name};
use crate::expression::operators::power::like;
use crate::expression::operators::rounding::one_number;
use crate::expression::table::{Arity, Call, Group, positional};

pub(crate) const GROUP: Group = Group {
    foldable: true,
    operators: &[
        positional("$sin", Arity::Exactly(1), |call| finite(call, f64::sin)),
        positional("$cos", Arity::Exactly(1), |call| finite(call, f64::cos)),
        positional("$tan", Arity::Exactly(1), |call| finite(call, f64::tan)),
        positional("$asin", Arity::Exactly(1), |call| bounded(call, -1.0, 1.0, "[-1,1]", f64::asin)),
        positional("$acos", Arity::Exactly(1), |call| bounded(call, -1.0, 1.0, "[-1,1]", f64::acos)),
        positional("$atan", Arity::Exactly(1), |call| anywhere(call, f64::atan)),
        positional("$atan2", Arity::Exactly(2), atan2),
        positional("$sinh", Arity::Exactly(1), |call| anywhere(call, f64::sinh)),
        positional("$cosh", Arity::Exactly(1), |call| anywhere(call, f64::cosh)),
        positional("$tanh", Arity::Exactly(1), |call| anywhere(call, f64::tanh)),
        positional("$asinh", Arity::Exactly(1), |call| anywhere(call, f64::asinh)),
        positional("$acosh", Arity::Exactly(1), |call| {
            bounded(call, 1.0, f64::INFINITY, "[1,inf]", f64::acosh)
        }),
        positional("$atanh", Arity::Exactly(1), |call| bounded(call, -1.0, 1.0, "[-1,1]", f64::atanh)),
        positional("$degreesToRadians", Arity::Exactly(1), |call| anywhere(call, f64::to_radians)),
        positional("$radiansToDegrees", Arity::Exactly(1), |call| anywhere(call, f64::to_degrees)),
    ],
};

fn anywhere(call: &Call<'_>, function: fn(f64) -> f64) -> Result<Option<Value>> {
    Ok(match one_number(call)? {
        Some(number) => like(function(number.to_f64()), number.is_decimal()),
        None => Some(Value::Null),
    })
}

fn finite(call: &Call<'_>, function: fn(f64) -> f64) -> Result<Option<Value>> {
    match one_number(call)? {
        Some(number) if number.to_f64().is_infinite() => Err(outside(call, number, "(-inf,inf)")),
        _ => anywhere(call, function),
    }
}

fn bounded(
    call: &Call<'_>,
    least: f64,
    most: f64,
    range: &str,
    function: fn(f64) -> f64,
) -> Result<Option<Value>> {
    match one_number(call)? {
        Some(number) if number.to_f64() < least || number.to_f64() > most => {
            Err(outside(call, number, range))
        }
        _ => anywhere(call, function),
    }
}

fn outside(call: &Call<'_>, number: Number, range: &str) -> Error {
    let value = match number.to_f64() {
        f64::INFINITY => "inf".to_owned(),
        f64::NEG_INFINITY => "-inf".to_owned(),
        _ => number.to_string(),
    };
    Error::location(50989, format!("cannot apply {} to {value}, value must be in {range}", call.name))
}

fn atan2(call: &Call<'_>) -> Result<Option<Value>> {
    let (y, x) = (call.get(0), call.get(1));
    match (y.and_then(Number::of), x.and_then(Number::of)) {
        (Some(y), Some(x)) => Ok(like(y.to_f64().atan2(x.to_f64()), y.is_decimal() || x.is_decimal())),
        (one, _) => {
            if is_nullish(y) || is_nullish(x) {
                return Ok(Some(Value::Null));
            }
            let (value, code) = if one.is_none() { (y, 51044) } else { (x, 51045) };
            let message = format!("$atan2 only supports numeric types, not {}", type_name(value));
            Err(Error::location(code, message))
        }
    }
}

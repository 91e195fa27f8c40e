//! Arithmetic on numbers and dates. Null or missing on either side gives null.

use bson::{Value, ValueRef};

use crate::error::{Code, Error, Result};
use crate::expression::number::{self, Number, Sum};
use crate::expression::operand::{is_nullish, type_name};
use crate::expression::table::{Arity, Call, Group, positional};

pub(crate) const GROUP: Group = Group {
    foldable: true,
    operators: &[
        positional("$add", Arity::Any, add),
        positional("$subtract", Arity::Exactly(2), subtract),
        positional("$multiply", Arity::Any, multiply),
        positional("$divide", Arity::Exactly(2), divide),
        positional("$mod", Arity::Exactly(2), modulo),
    ],
};

fn add(call: &Call<'_>) -> Result<Option<Value>> {
    let mut sum = Sum::default();
    let mut date = None;
    for value in call.values() {
        match value {
            value if is_nullish(value) => return Ok(Some(Value::Null)),
            Some(ValueRef::DateTime(_)) if date.is_some() => {
                return Err(Error::location(16612, "only one date allowed in an $add expression"));
            }
            Some(ValueRef::DateTime(millis)) => date = Some(millis),
            value => {
                let number = value.and_then(Number::of).ok_or_else(|| {
                    let found = type_name(value);
                    Error::type_mismatch(format!("$add only supports numeric or date types, not {found}"))
                })?;
                sum.add(number);
            }
        }
    }
    match date {
        Some(millis) => move_date(millis, sum.total(), 1).map(Some),
        None => Ok(Some(sum.total().into())),
    }
}

/// A date so many milliseconds later or earlier.
fn move_date(millis: i64, by: Number, sign: i64) -> Result<Value> {
    let overflow = || Error::new(Code::OVERFLOW, "date overflow");
    let by = match by.integer() {
        Some(by) => by,
        None => number::whole(by.to_f64().trunc()).ok_or_else(overflow)?,
    };
    let moved = by.checked_mul(sign).and_then(|by| millis.checked_add(by));
    moved.map(Value::DateTime).ok_or_else(overflow)
}

fn subtract(call: &Call<'_>) -> Result<Option<Value>> {
    let (left, right) = (call.get(0), call.get(1));
    if is_nullish(left) || is_nullish(right) {
        return Ok(Some(Value::Null));
    }
    let numbers = (left.and_then(Number::of), right.and_then(Number::of));
    Ok(Some(match (numbers, left, right) {
        ((Some(left), Some(right)), ..) => number::subtract(left, right).into(),
        (_, Some(ValueRef::DateTime(left)), Some(ValueRef::DateTime(right))) => {
            let overflow = || Error::new(Code::OVERFLOW, "overflow in $subtract of two dates");
            Value::Int64(left.checked_sub(right).ok_or_else(overflow)?)
        }
        ((_, Some(by)), Some(ValueRef::DateTime(millis)), _) => move_date(millis, by, -1)?,
        _ => {
            let (left, right) = (type_name(left), type_name(right));
            return Err(Error::type_mismatch(format!("can't $subtract {right} from {left}")));
        }
    }))
}

fn multiply(call: &Call<'_>) -> Result<Option<Value>> {
    let mut product = Number::Int(1);
    for value in call.values() {
        if is_nullish(value) {
            return Ok(Some(Value::Null));
        }
        let Some(number) = value.and_then(Number::of) else {
            let found = type_name(value);
            return Err(Error::type_mismatch(format!("$multiply only supports numeric types, not {found}")));
        };
        product = number::multiply(product, number);
    }
    Ok(Some(product.into()))
}

/// The two numbers of an operator that knows nothing else, or nothing if one of them is null.
fn two_numbers(call: &Call<'_>, code: Code) -> Result<Option<(Number, Number)>> {
    let (left, right) = (call.get(0), call.get(1));
    if let (Some(left), Some(right)) = (left.and_then(Number::of), right.and_then(Number::of)) {
        return Ok(Some((left, right)));
    }
    if is_nullish(left) || is_nullish(right) {
        return Ok(None);
    }
    let (name, left, right) = (call.name, type_name(left), type_name(right));
    Err(Error::new(code, format!("{name} only supports numeric types, not {left} and {right}")))
}

fn divide(call: &Call<'_>) -> Result<Option<Value>> {
    let Some((left, right)) = two_numbers(call, Code::TYPE_MISMATCH)? else { return Ok(Some(Value::Null)) };
    if right.is_zero() {
        return Err(Error::bad_value("can't $divide by zero"));
    }
    Ok(Some(Value::Double(left.to_f64() / right.to_f64())))
}

fn modulo(call: &Call<'_>) -> Result<Option<Value>> {
    let Some((left, right)) = two_numbers(call, Code(16611))? else { return Ok(Some(Value::Null)) };
    if right.is_zero() {
        return Err(Error::location(16610, "can't $mod by zero"));
    }
    Ok(Some(match (left, right) {
        (Number::Int(left), Number::Int(right)) => Value::Int32(left.wrapping_rem(right)),
        _ => match (left.integer(), right.integer()) {
            (Some(left), Some(right)) => Value::Int64(left.wrapping_rem(right)),
            _ => Value::Double(left.to_f64() % right.to_f64()),
        },
    }))
}

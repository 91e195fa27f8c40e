//! Arithmetic on numbers and dates. Null or missing on either side gives null.

use bson::{Value, ValueRef};

use crate::error::{Code, Error, Result};
use crate::expression::number::{self, Number};
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
    let mut total = Folded::new(0);
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
                total.fold(number, number::add);
            }
        }
    }
    match date {
        Some(millis) => move_date(millis, total.finish(), 1).map(Some),
        None => Ok(Some(total.finish().into())),
    }
}

/// A sum or a product of many: ints are counted as longs on the way, and become ints again if the result fits.
struct Folded {
    number: Number,
    only_ints: bool,
}

impl Folded {
    fn new(beginning: i64) -> Folded {
        Folded { number: Number::Long(beginning), only_ints: true }
    }

    fn fold(&mut self, number: Number, combine: fn(Number, Number) -> Number) {
        self.only_ints &= matches!(number, Number::Int(_));
        self.number = combine(self.number, number);
    }

    fn finish(self) -> Number {
        match self.number {
            Number::Long(value) => Number::of_integer(value, !self.only_ints),
            other => other,
        }
    }
}

/// Returns a date so many milliseconds later or earlier, rounded to whole ones.
fn move_date(millis: i64, by: Number, sign: i64) -> Result<Value> {
    let moved = by.rounded_i64().and_then(|by| by.checked_mul(sign)).and_then(|by| millis.checked_add(by));
    moved.map(Value::DateTime).ok_or_else(|| Error::new(Code::OVERFLOW, "date overflow"))
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
            let right = type_name(right);
            let left = if matches!(left, Some(ValueRef::DateTime(_))) { "Date" } else { type_name(left) };
            return Err(Error::type_mismatch(format!("can't $subtract {right} from {left}")));
        }
    }))
}

fn multiply(call: &Call<'_>) -> Result<Option<Value>> {
    let mut product = Folded::new(1);
    for value in call.values() {
        if is_nullish(value) {
            return Ok(Some(Value::Null));
        }
        let Some(number) = value.and_then(Number::of) else {
            let found = type_name(value);
            return Err(Error::type_mismatch(format!("$multiply only supports numeric types, not {found}")));
        };
        product.fold(number, number::multiply);
    }
    Ok(Some(product.finish().into()))
}

/// Returns the two numbers of an operator that knows nothing else, or nothing if one of them is null.
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
    if left.is_decimal() || right.is_decimal() {
        return Ok(Some(Value::Decimal128(left.to_decimal() / right.to_decimal())));
    }
    Ok(Some(Value::Double(left.to_f64() / right.to_f64())))
}

fn modulo(call: &Call<'_>) -> Result<Option<Value>> {
    let Some((left, right)) = two_numbers(call, Code(16611))? else { return Ok(Some(Value::Null)) };
    let decimal = left.is_decimal() || right.is_decimal();
    if right.is_zero() {
        let code = if decimal { 5_733_415 } else { 16610 };
        return Err(Error::location(code, "can't $mod by zero"));
    }
    if decimal {
        return Ok(Some(Value::Decimal128(left.to_decimal() % right.to_decimal())));
    }
    // A whole double on the right counts as an integer, on the left it does not.
    Ok(Some(match (left.integer(), right.exact_i32().map(i64::from).or(right.integer())) {
        (Some(dividend), Some(divisor)) => {
            let rest = dividend.wrapping_rem(divisor);
            Number::of_integer(rest, left.is_long() || right.is_long()).into()
        }
        _ => Value::Double(left.to_f64() % right.to_f64()),
    }))
}

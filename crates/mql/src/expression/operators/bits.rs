//! Integers bit by bit. An int beside a long is one.

use bson::{Value, ValueRef};

use crate::error::{Error, Result};
use crate::expression::operand::{is_nullish, type_name};
use crate::expression::table::{Arity, Call, Group, positional};

pub(crate) const GROUP: Group = Group {
    foldable: true,
    operators: &[
        positional("$bitAnd", Arity::Any, |call| fold(call, -1, |left, right| left & right)),
        positional("$bitOr", Arity::Any, |call| fold(call, 0, |left, right| left | right)),
        positional("$bitXor", Arity::Any, |call| fold(call, 0, |left, right| left ^ right)),
        positional("$bitNot", Arity::Exactly(1), not),
    ],
};

fn fold(call: &Call<'_>, beginning: i64, combine: fn(i64, i64) -> i64) -> Result<Option<Value>> {
    let mut bits = beginning;
    let mut long = false;
    for value in call.values() {
        match value {
            Some(ValueRef::Int32(value)) => bits = combine(bits, value.into()),
            Some(ValueRef::Int64(value)) => {
                bits = combine(bits, value);
                long = true;
            }
            value if is_nullish(value) => return Ok(Some(Value::Null)),
            _ => {
                let message = format!("{} only supports int and long operands.", call.name);
                return Err(Error::type_mismatch(message));
            }
        }
    }
    Ok(Some(if long { Value::Int64(bits) } else { Value::Int32(bits as i32) }))
}

fn not(call: &Call<'_>) -> Result<Option<Value>> {
    match call.get(0) {
        Some(ValueRef::Int32(value)) => Ok(Some(Value::Int32(!value))),
        Some(ValueRef::Int64(value)) => Ok(Some(Value::Int64(!value))),
        value if is_nullish(value) => Ok(Some(Value::Null)),
        value => {
            let found = type_name(value);
            if value.is_some_and(ValueRef::is_number) {
                return Err(Error::type_mismatch(format!(
                    "$bitNot only supports int and long, not: {found}."
                )));
            }
            Err(Error::location(28765, format!("$bitNot only supports numeric types, not {found}")))
        }
    }
}

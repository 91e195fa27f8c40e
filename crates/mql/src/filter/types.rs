//! The types that `$type`, `bsonType` and the like name.

use bson::{Kind, ValueRef};

use super::node::TypeSet;
use crate::error::{Error, Result};
use crate::numbers::integer;

/// Reads names or codes of types, one or a list.
pub(super) fn type_set(operand: ValueRef<'_>, operator: &str) -> Result<TypeSet> {
    let ValueRef::Array(items) = operand else { return one(operand) };
    let mut types = TypeSet::default();
    for item in items.iter() {
        types = types.with(one(item)?);
    }
    if items.is_empty() {
        return Err(Error::failed_to_parse(format!("{operator} must match at least one type")));
    }
    Ok(types)
}

fn one(operand: ValueRef<'_>) -> Result<TypeSet> {
    match operand {
        ValueRef::String(alias) => named(alias),
        number if number.is_number() => {
            let code = integer(number).and_then(|code| i8::try_from(code).ok());
            if code == Some(0) {
                let message = "Invalid numerical type code: 0. Instead use {$exists:false}.";
                return Err(Error::bad_value(message));
            }
            let kind = code.and_then(Kind::from_code);
            kind.map(TypeSet::from).ok_or_else(|| {
                Error::bad_value(format!("Invalid numerical type code: {}", bson::shell_text(number)))
            })
        }
        _ => Err(Error::type_mismatch("type must be represented as a number or a string")),
    }
}

/// Reads the name of a type.
fn named(alias: &str) -> Result<TypeSet> {
    if alias == "number" {
        return Ok(TypeSet::NUMBERS);
    }
    let kind = Kind::ALL.into_iter().find(|kind| kind.alias() == alias);
    kind.map(TypeSet::from).ok_or_else(|| Error::bad_value(format!("Unknown type name alias: {alias}")))
}

//! Small readings of values that many stages need: their words in messages, whole numbers, keys of equality.

use bson::{Collation, ValueRef};

use crate::expression::number::Number;

/// Returns a value as messages show it.
pub(crate) fn text(value: ValueRef<'_>) -> String {
    bson::shell_text(value)
}

/// Returns the name of the type of a value.
pub(crate) fn type_name(value: ValueRef<'_>) -> &'static str {
    value.kind().alias()
}

/// Returns a number without fraction that fits 64 bits.
pub(crate) fn whole_number(value: ValueRef<'_>) -> Option<i64> {
    Number::of(value)?.exact_i64()
}

/// Returns a number as a double.
pub(crate) fn as_double(value: ValueRef<'_>) -> Option<f64> {
    Number::of(value).map(Number::to_f64)
}

/// Returns the number in a stage's option, or why it is not one.
pub(crate) fn non_negative(value: ValueRef<'_>, field: &str) -> std::result::Result<u64, String> {
    if !value.is_number() {
        return Err(format!("Expected a number in: {field}: {}", text(value)));
    }
    match whole_number(value) {
        None => Err(format!("Expected an integer: {field}: {}", text(value))),
        Some(whole) => u64::try_from(whole)
            .map_err(|_| format!("Expected a non-negative number in: {field}: {}", text(value))),
    }
}

/// Returns bytes that are equal for equal values.
pub(crate) fn key_of(value: ValueRef<'_>, collation: &Collation) -> Vec<u8> {
    let mut key = Vec::new();
    bson::encode_key(value, collation, &mut key);
    key
}

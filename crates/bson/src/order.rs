//! The order of all values, across all types.
//!
//! Types stand in a fixed order of classes; numbers of all four types are one class and compare exactly by their
//! numeric value; NaN is one value, below all numbers. Strings and symbols are one class. Documents compare field by
//! field in their own order: first the class of the values, then the names, then the values.

use std::cmp::Ordering;

use crate::decimal::Decimal128;
use crate::value::view::{BinaryRef, DocumentRef, Kind, ValueRef};

/// Compares two values; strings byte by byte.
pub fn compare(left: ValueRef<'_>, right: ValueRef<'_>) -> Ordering {
    compare_by(left, right, &|left, right| left.cmp(right))
}

/// Returns `true` if a filter, a unique index or a group treats two values as equal.
pub fn equal(left: ValueRef<'_>, right: ValueRef<'_>) -> bool {
    compare(left, right) == Ordering::Equal
}

/// Compares two values, strings in the order of a collation.
pub fn compare_by(
    left: ValueRef<'_>,
    right: ValueRef<'_>,
    strings: &dyn Fn(&str, &str) -> Ordering,
) -> Ordering {
    let class = left.kind().class().cmp(&right.kind().class());
    class.then_with(|| within_class(left, right, strings))
}

impl Kind {
    /// Returns the rank of this type in the order of all values. Types of one class are compared with each other.
    pub fn class(self) -> u8 {
        match self {
            Kind::MinKey => 0,
            Kind::Undefined => 1,
            Kind::Null => 2,
            Kind::Double | Kind::Int32 | Kind::Int64 | Kind::Decimal128 => 3,
            Kind::String | Kind::Symbol => 4,
            Kind::Document => 5,
            Kind::Array => 6,
            Kind::Binary => 7,
            Kind::ObjectId => 8,
            Kind::Bool => 9,
            Kind::DateTime => 10,
            Kind::Timestamp => 11,
            Kind::Regex => 12,
            Kind::DbPointer => 13,
            Kind::JavaScript => 14,
            Kind::JavaScriptWithScope => 15,
            Kind::MaxKey => 16,
        }
    }
}

fn within_class(
    left: ValueRef<'_>,
    right: ValueRef<'_>,
    strings: &dyn Fn(&str, &str) -> Ordering,
) -> Ordering {
    match (left, right) {
        (
            ValueRef::String(left) | ValueRef::Symbol(left),
            ValueRef::String(right) | ValueRef::Symbol(right),
        ) => strings(left, right),
        (ValueRef::Document(left), ValueRef::Document(right)) => documents(left, right, strings),
        (ValueRef::Array(left), ValueRef::Array(right)) => {
            let (mut left, mut right) = (left.iter(), right.iter());
            loop {
                match (left.next(), right.next()) {
                    (Some(left), Some(right)) => match compare_by(left, right, strings) {
                        Ordering::Equal => {}
                        unequal => return unequal,
                    },
                    (left, right) => return left.is_some().cmp(&right.is_some()),
                }
            }
        }
        (ValueRef::Binary(left), ValueRef::Binary(right)) => {
            let key = |value: BinaryRef<'_>| (value.bytes.len(), value.subtype);
            key(left).cmp(&key(right)).then_with(|| left.bytes.cmp(right.bytes))
        }
        (ValueRef::ObjectId(left), ValueRef::ObjectId(right)) => left.cmp(&right),
        (ValueRef::Bool(left), ValueRef::Bool(right)) => left.cmp(&right),
        (ValueRef::DateTime(left), ValueRef::DateTime(right)) => left.cmp(&right),
        (ValueRef::Timestamp(left), ValueRef::Timestamp(right)) => left.cmp(&right),
        (ValueRef::Regex(left), ValueRef::Regex(right)) => {
            left.pattern.cmp(right.pattern).then_with(|| left.options.cmp(right.options))
        }
        (ValueRef::DbPointer { namespace, id }, ValueRef::DbPointer { namespace: other, id: other_id }) => {
            namespace.len().cmp(&other.len()).then_with(|| namespace.cmp(other)).then(id.cmp(&other_id))
        }
        (ValueRef::JavaScript(left), ValueRef::JavaScript(right)) => left.cmp(right),
        (
            ValueRef::JavaScriptWithScope { code, scope },
            ValueRef::JavaScriptWithScope { code: other, scope: other_scope },
        ) => code.cmp(other).then_with(|| documents(scope, other_scope, strings)),
        _ => numbers(left, right),
    }
}

fn documents(
    left: DocumentRef<'_>,
    right: DocumentRef<'_>,
    strings: &dyn Fn(&str, &str) -> Ordering,
) -> Ordering {
    let (mut left, mut right) = (left.iter(), right.iter());
    loop {
        let ((name, value), (other_name, other)) = match (left.next(), right.next()) {
            (Some(left), Some(right)) => (left, right),
            (left, right) => return left.is_some().cmp(&right.is_some()),
        };
        let order = value
            .kind()
            .class()
            .cmp(&other.kind().class())
            .then_with(|| name.cmp(other_name))
            .then_with(|| within_class(value, other, strings));
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// Compares two numbers of any types; values without content (null, the keys) are equal to their like.
fn numbers(left: ValueRef<'_>, right: ValueRef<'_>) -> Ordering {
    match (left, right) {
        (ValueRef::Double(left), ValueRef::Double(right)) => doubles(left, right),
        (ValueRef::Decimal128(left), right) => decimal_to_number(left, right),
        (left, ValueRef::Decimal128(right)) => decimal_to_number(right, left).reverse(),
        (left, right) => match (integer(left), integer(right)) {
            (Some(left), Some(right)) => left.cmp(&right),
            (Some(left), None) => {
                double(right).map_or(Ordering::Equal, |right| integer_to_double(left, right))
            }
            (None, Some(right)) => {
                double(left).map_or(Ordering::Equal, |left| integer_to_double(right, left).reverse())
            }
            (None, None) => Ordering::Equal,
        },
    }
}

fn integer(value: ValueRef<'_>) -> Option<i64> {
    match value {
        ValueRef::Int32(value) => Some(value.into()),
        ValueRef::Int64(value) => Some(value),
        _ => None,
    }
}

fn double(value: ValueRef<'_>) -> Option<f64> {
    if let ValueRef::Double(value) = value { Some(value) } else { None }
}

fn decimal_to_number(left: Decimal128, right: ValueRef<'_>) -> Ordering {
    match right {
        ValueRef::Decimal128(right) => left.compare(right),
        ValueRef::Double(right) => left.compare_double(right),
        other => integer(other).map_or(Ordering::Equal, |right| left.compare(Decimal128::from(right))),
    }
}

fn doubles(left: f64, right: f64) -> Ordering {
    match left.partial_cmp(&right) {
        Some(order) => order,
        None => right.is_nan().cmp(&left.is_nan()),
    }
}

fn integer_to_double(integer: i64, double: f64) -> Ordering {
    if double.is_nan() {
        return Ordering::Greater;
    }
    // Doubles at or beyond 2^63 are beyond every integer; below that a double without its fraction is an i64.
    if double >= 9_223_372_036_854_775_808.0 {
        return Ordering::Less;
    }
    if double < -9_223_372_036_854_775_808.0 {
        return Ordering::Greater;
    }
    let whole = double.trunc();
    integer
        .cmp(&(whole as i64))
        .then_with(|| 0.0_f64.partial_cmp(&(double - whole)).unwrap_or(Ordering::Equal))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Binary, Document, ObjectId, Regex, Timestamp, Value};

    fn decimal(negative: bool, coefficient: u128, exponent: i32) -> Value {
        Value::Decimal128(Decimal128::finite(negative, coefficient, exponent))
    }

    /// Returns one line per step: what stands on one line is equal, and lower than everything below.
    fn ladder() -> Vec<Vec<Value>> {
        let text = |text: &str| Value::String(text.into());
        let nan = Decimal128((0b0111_1100_u128 << 120).to_le_bytes());
        let infinity = Decimal128((0b0111_1000_u128 << 120).to_le_bytes());
        vec![
            vec![Value::MinKey],
            vec![Value::Undefined],
            vec![Value::Null],
            vec![Value::Double(f64::NAN), Value::Decimal128(nan)],
            vec![Value::Double(f64::NEG_INFINITY)],
            vec![decimal(true, 1, 300)],
            vec![Value::Int64(i64::MIN), Value::Double(-9_223_372_036_854_775_808.0)],
            vec![decimal(true, 15, -1), Value::Double(-1.5)],
            vec![Value::Int32(0), Value::Double(-0.0), Value::Int64(0), decimal(true, 0, 5)],
            vec![Value::Double(5e-324)],
            vec![decimal(false, 1, -1)],
            vec![Value::Double(0.1)],
            vec![Value::Int32(1), Value::Double(1.0), Value::Int64(1), decimal(false, 100, -2)],
            vec![Value::Int64((1 << 53) - 1)],
            vec![Value::Int64(1 << 53), Value::Double(9_007_199_254_740_992.0)],
            vec![Value::Int64((1 << 53) + 1), decimal(false, (1 << 53) + 1, 0)],
            vec![Value::Int64(i64::MAX)],
            vec![Value::Double(9_223_372_036_854_775_808.0)],
            vec![Value::Double(f64::INFINITY), Value::Decimal128(infinity)],
            vec![text("")],
            vec![text("a"), Value::Symbol("a".into())],
            vec![text("é")],
            vec![Value::Document(Document::new())],
            vec![Value::Document(Document::new().with("b", 1))],
            vec![Value::Document(Document::new().with("b", 1).with("a", 0))],
            vec![Value::Document(Document::new().with("a", "x"))],
            vec![Value::Array(vec![])],
            vec![Value::Array(vec![Value::Int32(1)])],
            vec![Value::Array(vec![Value::Int32(1), Value::Null])],
            vec![Value::Array(vec![Value::Int32(2)])],
            vec![Value::Binary(Binary { subtype: 9, bytes: vec![9] })],
            vec![Value::Binary(Binary { subtype: 0, bytes: vec![0, 9] })],
            vec![Value::Binary(Binary { subtype: 1, bytes: vec![0, 0] })],
            vec![Value::ObjectId(ObjectId([0; 12]))],
            vec![Value::Bool(false)],
            vec![Value::Bool(true)],
            vec![Value::DateTime(-1)],
            vec![Value::DateTime(0)],
            vec![Value::Timestamp(Timestamp { seconds: 0, increment: 1 })],
            vec![Value::Timestamp(Timestamp { seconds: u32::MAX, increment: 0 })],
            vec![Value::Regex(Regex { pattern: "a".into(), options: "x".into() })],
            vec![Value::DbPointer { namespace: "a".into(), id: ObjectId([0; 12]) }],
            vec![Value::JavaScript("a".into())],
            vec![Value::JavaScriptWithScope { code: "a".into(), scope: Document::new() }],
            vec![Value::MaxKey],
        ]
    }

    #[test]
    fn every_value_has_its_place() {
        let ladder = ladder();
        for (step, values) in ladder.iter().enumerate() {
            for (other_step, others) in ladder.iter().enumerate() {
                for value in values {
                    for other in others {
                        let order = compare(value.view(), other.view());
                        assert_eq!(order, step.cmp(&other_step), "{value:?} and {other:?}");
                    }
                }
            }
        }
    }
}

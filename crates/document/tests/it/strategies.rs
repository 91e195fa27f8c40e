//! Strategies for values, with many edge cases.

use document::{Object, Value};
use proptest::prelude::*;

/// Integers of every size, crowding where doubles stop being exact.
pub(crate) fn int() -> impl Strategy<Value = i64> {
    prop_oneof![
        any::<i64>(),
        -300_i64..300,
        (0_u32..63, -3_i64..=3).prop_map(|(bits, step)| (1_i64 << bits).wrapping_add(step)),
        (0_u32..63, -3_i64..=3).prop_map(|(bits, step)| (-1_i64 << bits).wrapping_add(step)),
        (-2000_i64..=0).prop_map(|step| i64::MAX + step),
        (0_i64..2000).prop_map(|step| i64::MIN + step),
    ]
}

/// Returns every finite double, also those that are integers.
pub(crate) fn double() -> impl Strategy<Value = f64> {
    use proptest::num::f64::{NEGATIVE, NORMAL, POSITIVE, SUBNORMAL, ZERO};
    prop_oneof![POSITIVE | NEGATIVE | NORMAL | SUBNORMAL | ZERO, int().prop_map(|i| i as f64), -3.0..3.0]
}

/// Returns texts with zeros, quotes, control characters and everything beyond ASCII.
pub(crate) fn text() -> impl Strategy<Value = String> {
    let character = prop_oneof![any::<char>(), proptest::char::range('\0', '\u{7f}')];
    prop_oneof![
        4 => proptest::collection::vec(character, 0..12).prop_map(String::from_iter),
        1 => "[a-c]{250,260}",
    ]
}

/// Returns values that are a few levels deep.
pub(crate) fn value() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        int().prop_map(Value::Int),
        double().prop_map(Value::Double),
        text().prop_map(Value::String),
    ];
    scalar.prop_recursive(4, 40, 6, |inner| {
        let name = prop_oneof!["[a-c]{0,2}", text()];
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            proptest::collection::vec((name, inner), 0..6)
                .prop_map(|members| Value::Object(Object::from_iter(members))),
        ]
    })
}

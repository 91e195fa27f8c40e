//! Strategies for values of all types, many of them equal or nearly so.

use bson::{Binary, Decimal128, Document, ObjectId, Regex, Timestamp, Value};
use proptest::prelude::*;

/// Numbers of all four types, many of them equal or nearly so.
pub(crate) fn number() -> impl Strategy<Value = Value> {
    let near = prop_oneof![
        Just(0_i64),
        Just(1),
        Just(-1),
        Just(1 << 53),
        Just(-(1 << 53)),
        Just(i64::MAX),
        Just(i64::MIN),
        any::<i64>(),
        -100_i64..100,
    ];
    let integer = (near, -3_i64..=3).prop_map(|(near, step)| near.saturating_add(step));
    prop_oneof![
        integer.clone().prop_map(Value::Int64),
        integer.clone().prop_map(|number| Value::Int32(number as i32)),
        integer.clone().prop_map(|number| Value::Double(number as f64)),
        integer.prop_map(|number| Value::Decimal128(number.into())),
        any::<f64>().prop_map(Value::Double),
        prop::sample::select(vec![
            0.0,
            -0.0,
            0.1,
            0.5,
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            5e-324,
            f64::MAX
        ])
        .prop_map(Value::Double),
        decimal().prop_map(Value::Decimal128),
    ]
}

fn decimal() -> impl Strategy<Value = Decimal128> {
    prop_oneof![
        any::<[u8; 16]>().prop_map(Decimal128),
        (-200_i64..200, -6200..6200_i32).prop_map(|(digits, exponent)| read(&format!("{digits}e{exponent}"))),
        (-20_i64..20, -3..3_i32).prop_map(|(digits, exponent)| read(&format!("{digits}e{exponent}"))),
        any::<f64>()
            .prop_filter("finite", |number| number.is_finite())
            .prop_map(|number| read(&format!("{number:e}"))),
        Just(Decimal128::NAN),
        Just(Decimal128::INFINITY),
        Just(Decimal128::NEGATIVE_INFINITY),
    ]
}

fn read(text: &str) -> Decimal128 {
    text.parse().unwrap_or(Decimal128::INFINITY)
}

pub(crate) fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[abAB\u{0}é0-9 _]{0,5}",
        any::<String>(),
        prop::sample::select(vec!["", "a", "b", "A", "ß", "ss", "e\u{301}", "10", "9"])
            .prop_map(str::to_owned),
    ]
}

/// Returns a value of any type, nested up to a few levels.
pub(crate) fn value() -> impl Strategy<Value = Value> {
    let small = 0_u32..3;
    let leaf = prop_oneof![
        4 => number(),
        3 => text().prop_map(Value::String),
        1 => text().prop_map(Value::Symbol),
        1 => (0_u8..3, prop::collection::vec(0_u8..3, 0..3))
            .prop_map(|(subtype, bytes)| Value::Binary(Binary { subtype, bytes })),
        1 => prop::array::uniform12(0_u8..2).prop_map(|bytes| Value::ObjectId(ObjectId(bytes))),
        1 => any::<bool>().prop_map(Value::Bool),
        1 => prop_oneof![-2_i64..2, any::<i64>()].prop_map(Value::DateTime),
        1 => (small.clone(), small).prop_map(|(seconds, increment)| Value::Timestamp(Timestamp { seconds, increment })),
        1 => ("[ab]{0,2}", "[imx]{0,2}").prop_map(|(pattern, options)| Value::Regex(Regex { pattern, options })),
        1 => ("[ab]{0,2}", 0_u8..2).prop_map(|(namespace, id)| Value::DbPointer { namespace, id: ObjectId([id; 12]) }),
        1 => "[ab]{0,2}".prop_map(Value::JavaScript),
        2 => prop::sample::select(vec![Value::MinKey, Value::MaxKey, Value::Null, Value::Undefined]),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let document = prop::collection::vec(("[abé]{0,2}", inner.clone()), 0..4)
            .prop_map(|fields| fields.into_iter().collect::<Document>());
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Value::Array),
            document.clone().prop_map(Value::Document),
            ("[ab]{0,1}", document).prop_map(|(code, scope)| Value::JavaScriptWithScope { code, scope }),
        ]
    })
}

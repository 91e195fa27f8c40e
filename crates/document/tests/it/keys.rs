//! Ordered keys: the order of bytes is the order of values.

use document::{
    Value, compare, decode_key, decode_key_descending, encode_key, encode_key_descending, equal, parse_json,
    total_order,
};
use proptest::prelude::*;
use std::cmp::Ordering;

use crate::strategies::{double, int, value};

fn key(value: Option<&Value>) -> Vec<u8> {
    let mut out = Vec::new();
    encode_key(value.map(Value::view), &mut out);
    out
}

fn descending(value: Option<&Value>) -> Vec<u8> {
    let mut out = Vec::new();
    encode_key_descending(value.map(Value::view), &mut out);
    out
}

fn number() -> impl Strategy<Value = Value> {
    prop_oneof![int().prop_map(Value::Int), double().prop_map(Value::Double)]
}

fn check_pair(a: Option<&Value>, b: Option<&Value>) -> Result<(), TestCaseError> {
    let order = total_order(a.map(Value::view), b.map(Value::view));
    prop_assert_eq!(key(a).cmp(&key(b)), order);
    prop_assert_eq!(descending(a).cmp(&descending(b)), order.reverse());
    if let (Some(a), Some(b)) = (a, b) {
        prop_assert_eq!(equal(a.view(), b.view()), order.is_eq());
        if let Some(sql) = compare(a.view(), b.view()) {
            prop_assert_eq!(sql, order);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn bytes_sort_as_values(a in proptest::option::of(value()), b in proptest::option::of(value())) {
        check_pair(a.as_ref(), b.as_ref())?;
    }

    #[test]
    fn numbers_sort_exactly_whatever_their_form(a in number(), b in number()) {
        check_pair(Some(&a), Some(&b))?;
    }

    #[test]
    fn neighbours_of_one_integer_sort_exactly(i in int(), step in -600_i64..600, ulps in -2_i64..3) {
        let near = Value::Int(i.saturating_add(step));
        let double = Value::Double(f64::from_bits((i as f64).to_bits().wrapping_add_signed(ulps)));
        check_pair(Some(&Value::Int(i)), Some(&near))?;
        check_pair(Some(&Value::Int(i)), Some(&double))?;
    }

    #[test]
    fn a_key_reads_back_and_ends_by_itself(value in proptest::option::of(value()), rest in any::<Vec<u8>>()) {
        for (bytes, decode) in [
            (key(value.as_ref()), decode_key as fn(&[u8]) -> document::Result<(Option<Value>, &[u8])>),
            (descending(value.as_ref()), decode_key_descending),
        ] {
            let followed = [&bytes[..], &rest].concat();
            let (read, after) = decode(&followed).unwrap();
            prop_assert_eq!(after, &rest[..]);
            prop_assert_eq!(key(read.as_ref()), key(value.as_ref()));
            for end in 0..bytes.len() {
                prop_assert!(decode(&bytes[..end]).is_err());
            }
        }
    }
}

#[test]
fn types_have_one_order() {
    let ascending = [
        "null",
        "false",
        "true",
        "-1e300",
        "-9223372036854775808",
        "-9223372036854775807",
        "-1",
        "-0.5",
        "0",
        "5e-324",
        "0.5",
        "1",
        "9007199254740992",
        "9007199254740993",
        "9007199254740994.0",
        "9223372036854775806",
        "9223372036854775807",
        "9223372036854775808",
        "1e300",
        r#""""#,
        r#""\u0000""#,
        r#""\u0000a""#,
        r#""a""#,
        r#""a\u0000""#,
        r#""ab""#,
        r#""é""#,
        r#""🚀""#,
        "[]",
        "[null]",
        "[null,null]",
        "[1]",
        "[[]]",
        "{}",
        r#"{"a":1}"#,
        r#"{"a":1,"b":1}"#,
        r#"{"a":2}"#,
        r#"{"b":0}"#,
    ];
    let values: Vec<Value> = ascending.iter().map(|text| parse_json(text.as_bytes()).unwrap()).collect();
    for (i, a) in values.iter().enumerate() {
        assert_eq!(total_order(None, Some(a.view())), Ordering::Less);
        assert!(key(None) < key(Some(a)));
        for (j, b) in values.iter().enumerate() {
            assert_eq!(
                total_order(Some(a.view()), Some(b.view())),
                i.cmp(&j),
                "{} {}",
                ascending[i],
                ascending[j]
            );
            assert_eq!(key(Some(a)).cmp(&key(Some(b))), i.cmp(&j), "{} {}", ascending[i], ascending[j]);
        }
    }
}

#[test]
fn one_number_has_one_key_however_it_is_written() {
    for (a, b) in [("1", "1.0"), ("0", "-0.0"), ("-5", "-5.0"), ("9007199254740992", "9007199254740992.0")] {
        let (a, b) = (parse_json(a.as_bytes()).unwrap(), parse_json(b.as_bytes()).unwrap());
        assert!(equal(a.view(), b.view()));
        assert_eq!(key(Some(&a)), key(Some(&b)));
        assert_eq!(decode_key(&key(Some(&b))).unwrap().0, Some(a));
    }
}

#[test]
fn queries_compare_within_a_type_and_never_order_containers() {
    let value = |text: &str| parse_json(text.as_bytes()).unwrap();
    for (a, b, order) in [
        ("1", "1.0", Some(Ordering::Equal)),
        ("1", "2.5", Some(Ordering::Less)),
        ("\"b\"", "\"a\"", Some(Ordering::Greater)),
        ("false", "true", Some(Ordering::Less)),
        ("null", "null", Some(Ordering::Equal)),
        ("1", "\"1\"", None),
        ("null", "false", None),
        ("[1]", "[1]", None),
        ("{}", "{}", None),
    ] {
        assert_eq!(compare(value(a).view(), value(b).view()), order, "{a} {b}");
    }
    assert!(equal(value(r#"{"a":1,"b":[2.0]}"#).view(), value(r#"{"b":[2],"a":1.0}"#).view()));
    assert!(!equal(value("[1,2]").view(), value("[2,1]").view()));
}

//! The order of keys is the order of values.

use std::cmp::Ordering;

use bson::{
    Collation, Document, Extent, KEY_BYTES_MAX, KEY_HASH_BYTES, Value, encode_key, encode_key_descending,
};
use proptest::prelude::*;

use crate::values::{number, text, value};

fn collations() -> Vec<Collation> {
    let read = |locale: &str, strength: i32, case_level: bool, numeric: bool| {
        let options = Document::new()
            .with("locale", locale)
            .with("strength", strength)
            .with("caseLevel", case_level)
            .with("numericOrdering", numeric);
        Collation::parse(options.view()).expect("a collation")
    };
    vec![
        Collation::simple(),
        read("en", 1, false, false),
        read("en", 1, true, false),
        read("sv", 2, false, true),
        read("en", 3, false, false),
        read("da", 4, true, false),
        read("fr_CA", 5, false, true),
        read("th", 3, false, false),
        read("ja", 4, false, false),
    ]
}

fn key(value: &Value, collation: &Collation) -> Vec<u8> {
    let mut key = Vec::new();
    assert_eq!(encode_key(value.view(), collation, &mut key), Extent::Whole);
    key
}

fn check(left: &Value, right: &Value, collation: &Collation) {
    let order = collation.compare_values(left.view(), right.view());
    let (left_key, right_key) = (key(left, collation), key(right, collation));
    assert_eq!(left_key.cmp(&right_key), order, "{left:?} {right:?} {left_key:x?} {right_key:x?}");
    if order != Ordering::Equal {
        assert!(!left_key.starts_with(&right_key) && !right_key.starts_with(&left_key), "{left:?} {right:?}");
    }
    let (mut left_turned, mut right_turned) = (Vec::new(), Vec::new());
    encode_key_descending(left.view(), collation, &mut left_turned);
    encode_key_descending(right.view(), collation, &mut right_turned);
    assert_eq!(left_turned.cmp(&right_turned), order.reverse(), "{left:?} {right:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn keys_sort_as_values_do(left in value(), right in value()) {
        prop_assume!(key_fits(&left) && key_fits(&right));
        for collation in collations() {
            check(&left, &right, &collation);
            check(&left, &left.clone(), &collation);
        }
    }

    #[test]
    fn keys_of_numbers_sort_as_numbers_do(left in number(), right in number()) {
        check(&left, &right, &Collation::simple());
        let wrapped = |number: &Value| Value::Array(vec![number.clone(), Value::Int32(1)]);
        check(&wrapped(&left), &wrapped(&right), &Collation::simple());
    }
}

fn key_fits(value: &Value) -> bool {
    collations().iter().all(|collation| encode_key(value.view(), collation, &mut Vec::new()) == Extent::Whole)
}

#[test]
fn long_values_keep_equality_and_the_order_of_their_beginning() {
    let long =
        |first: char, last: char| Value::String(format!("{first}{}{last}", "x".repeat(3 * KEY_BYTES_MAX)));
    let cut = |value: &Value| {
        let mut key = vec![7];
        assert_eq!(encode_key(value.view(), &Collation::simple(), &mut key), Extent::Cut);
        assert_eq!(key.len(), 1 + KEY_BYTES_MAX + KEY_HASH_BYTES);
        key
    };
    assert_eq!(cut(&long('a', 'a')), cut(&long('a', 'a')));
    assert_ne!(cut(&long('a', 'a')), cut(&long('a', 'b')));
    assert!(cut(&long('a', 'z')) < cut(&long('b', 'a')));
    let limit = |length: usize| Value::String("x".repeat(length));
    // One byte for the class and two for the end.
    assert_eq!(key(&limit(KEY_BYTES_MAX - 3), &Collation::simple()).len(), KEY_BYTES_MAX);
    assert!(key(&limit(KEY_BYTES_MAX - 3), &Collation::simple())[..] < cut(&limit(KEY_BYTES_MAX - 2))[1..]);
}

proptest! {
    #[test]
    fn strings_compare_as_their_sort_keys_do(left in text(), right in text()) {
        for collation in collations() {
            let (mut left_key, mut right_key) = (Vec::new(), Vec::new());
            collation.sort_key(&left, &mut left_key);
            collation.sort_key(&right, &mut right_key);
            prop_assert_eq!(collation.compare(&left, &right), left_key.cmp(&right_key), "{:?} {:?}", left, right);
        }
    }
}

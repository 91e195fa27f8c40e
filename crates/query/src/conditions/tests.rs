//! The arithmetic of values in a place; whole filters are checked as text below.

use document::{Value, ValueRef, encode_key};

use super::interval::{Interval, Standing};
use crate::logical::Comparison;

/// Scalars of every type, around every boundary that matters.
fn scalars() -> Vec<Value> {
    let numbers = [i64::MIN, -5, -1, 0, 1, 5, 1 << 53, (1 << 53) + 1, i64::MAX];
    let doubles = [-1e300, -0.5, 0.5, 9_007_199_254_740_992.0, 9.3e18, 1e300];
    let texts = ["", "\0", "a", "a\0", "a\0b", "aa", "ab", "b", "\u{7f}", "\u{10ffff}"];
    let simple = [Value::Null, Value::Bool(false), Value::Bool(true)];
    let numbers = numbers.map(Value::Int).into_iter().chain(doubles.map(Value::Double));
    simple.into_iter().chain(numbers).chain(texts.map(Value::from)).collect()
}

fn key(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_key(Some(value.view()), &mut bytes);
    bytes
}

const OPERATORS: [Comparison; 6] = [
    Comparison::Equal,
    Comparison::NotEqual,
    Comparison::Less,
    Comparison::LessOrEqual,
    Comparison::Greater,
    Comparison::GreaterOrEqual,
];

#[test]
fn a_comparison_admits_exactly_the_scalars_for_which_it_is_true() {
    for constant in scalars() {
        for operator in OPERATORS {
            let standing = Standing::compared(operator, constant.view());
            for value in scalars() {
                let expected =
                    crate::evaluate::compare(operator, value.view(), constant.view()) == Some(true);
                assert_eq!(standing.admits(&key(&value)), expected, "{value:?} {operator:?} {constant:?}");
            }
        }
    }
}

#[test]
fn a_prefix_admits_exactly_the_texts_that_begin_with_it() {
    for prefix in ["", "\0", "a", "a\0", "ab", "\u{10ffff}"] {
        let standing = Standing::prefix(prefix);
        for value in scalars() {
            let expected = value.as_str().is_some_and(|text| text.starts_with(prefix));
            assert_eq!(standing.admits(&key(&value)), expected, "{value:?} begins with {prefix:?}");
        }
    }
}

#[test]
fn sets_of_values_follow_the_laws_of_sets() {
    let sets: Vec<Standing> = [Value::Int(1), Value::from("a"), Value::Bool(true)]
        .iter()
        .flat_map(|constant| OPERATORS.map(|operator| Standing::compared(operator, constant.view())))
        .chain([Standing::prefix("a"), Standing::defined(), Standing::array()])
        .collect();
    for one in &sets {
        assert_eq!(one.complement().complement(), *one);
        assert!(one.intersect(&one.complement()).is_nothing());
        assert!(Standing::union([one.clone(), one.complement()]).is_anything());
        for other in &sets {
            let both = one.intersect(other);
            let either = Standing::union([one.clone(), other.clone()]);
            assert_eq!(both.complement(), Standing::union([one.complement(), other.complement()]));
            for key in scalars().iter().map(key) {
                assert_eq!(both.admits(&key), one.admits(&key) && other.admits(&key));
                assert_eq!(either.admits(&key), one.admits(&key) || other.admits(&key));
            }
        }
    }
}

#[test]
fn only_a_single_value_is_a_point() {
    for value in scalars() {
        let point = Interval::point(value.view()).as_point().expect("a point");
        assert!(document::equal(point.view(), value.view()), "{value:?}");
    }
    for standing in [
        Standing::prefix("a"),
        Standing::compared(Comparison::Less, ValueRef::Int(5)),
        Standing::of_type(ValueRef::Bool(true)),
        Standing::of_type(ValueRef::Int(0)),
    ] {
        assert_eq!(standing.scalars[0].as_point(), None, "{standing:?}");
    }
}

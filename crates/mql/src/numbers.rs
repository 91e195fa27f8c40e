//! Integers out of numbers of any type.

use bson::ValueRef;

/// Returns a number without its fraction, if the value is a number and fits.
pub(crate) fn whole(value: ValueRef<'_>) -> Option<i64> {
    match value {
        ValueRef::Int32(number) => Some(number.into()),
        ValueRef::Int64(number) => Some(number),
        ValueRef::Double(number) => {
            let whole = number.trunc();
            // The upper bound is only exact as a double one beyond it.
            (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0)
                .contains(&whole)
                .then_some(whole as i64)
        }
        ValueRef::Decimal128(number) => number.to_i64(),
        _ => None,
    }
}

/// Returns a number that is an integer, of whatever type.
pub(crate) fn integer(value: ValueRef<'_>) -> Option<i64> {
    whole(value).filter(|whole| bson::equal(ValueRef::Int64(*whole), value))
}

/// Returns `true` if a value is NaN.
pub(crate) fn is_nan(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Double(number) => number.is_nan(),
        ValueRef::Decimal128(number) => number.is_nan(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_cut_and_bounds_kept() {
        assert_eq!(whole(ValueRef::Double(-1.9)), Some(-1));
        assert_eq!(whole(ValueRef::Double(9.3e18)), None);
        assert_eq!(whole(ValueRef::Double(f64::NAN)), None);
        assert_eq!(integer(ValueRef::Double(3.0)), Some(3));
        assert_eq!(integer(ValueRef::Double(3.5)), None);
        let decimal = |number: i64| ValueRef::Decimal128(bson::Decimal128::from(number));
        for number in [0, 1, -1, 7, -8, i64::MAX, i64::MIN] {
            assert_eq!(whole(decimal(number)), Some(number));
        }
        assert_eq!(integer(ValueRef::String("3")), None);
    }
}

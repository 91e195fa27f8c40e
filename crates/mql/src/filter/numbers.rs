//! Integers out of numbers of any type.

use bson::ValueRef;

/// A number without its fraction, if it is one and fits.
pub(crate) fn whole(value: ValueRef<'_>) -> Option<i64> {
    match value {
        ValueRef::Int32(number) => Some(number.into()),
        ValueRef::Int64(number) => Some(number),
        ValueRef::Double(number) => {
            let whole = number.trunc();
            // The upper end is exact as a double only one beyond it.
            (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0)
                .contains(&whole)
                .then_some(whole as i64)
        }
        ValueRef::Decimal128(_) => whole_decimal(value),
        _ => None,
    }
}

/// A number that is an integer, of whatever type.
pub(crate) fn integer(value: ValueRef<'_>) -> Option<i64> {
    whole(value).filter(|whole| bson::equal(ValueRef::Int64(*whole), value))
}

/// Whether a value is the number that is none.
pub(crate) fn is_nan(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Double(number) => number.is_nan(),
        ValueRef::Decimal128(_) => bson::equal(value, ValueRef::Double(f64::NAN)),
        _ => false,
    }
}

/// The nearest integer towards zero, found by halving: decimals are rare here, and only their order is needed.
fn whole_decimal(value: ValueRef<'_>) -> Option<i64> {
    let at_most = |limit: i64| bson::compare(value, ValueRef::Int64(limit)).is_le();
    let at_least = |limit: i64| bson::compare(value, ValueRef::Int64(limit)).is_ge();
    if is_nan(value) || !at_least(i64::MIN) || !at_most(i64::MAX) {
        return None;
    }
    let negative = !at_least(0);
    let (mut low, mut high) = if negative { (i64::MIN, 0) } else { (0, i64::MAX) };
    while low < high {
        // The smallest integer that is not below a negative number, the largest that is not above another.
        let middle = (i128::from(low) + i128::from(high) + i128::from(!negative)).div_euclid(2) as i64;
        match negative {
            true if at_most(middle) => high = middle,
            true => low = middle + 1,
            false if at_least(middle) => low = middle,
            false => high = middle - 1,
        }
    }
    Some(low)
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

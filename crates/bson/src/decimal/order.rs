//! Numbers compared exactly, decimals with each other and with doubles.

use std::cmp::Ordering;

use super::{Decimal128, Parts};

impl Decimal128 {
    /// Compares two numbers by their value; NaN equals itself and is below everything.
    pub(crate) fn compare(self, other: Decimal128) -> Ordering {
        Magnitude::of_decimal(self).compare(&Magnitude::of_decimal(other))
    }

    /// Compares with a double, exactly.
    ///
    /// Rounding keeps the order, so where the nearest double of the one or the nearest decimal of the other differs, that is
    /// the answer. Only where both agree all digits of the double have to be looked at, and there may be a thousand.
    pub(crate) fn compare_double(self, other: f64) -> Ordering {
        if self.is_nan() || other.is_nan() {
            return other.is_nan().cmp(&self.is_nan());
        }
        let by_doubles = self.to_f64().partial_cmp(&other).unwrap_or(Ordering::Equal);
        if by_doubles.is_ne() {
            return by_doubles;
        }
        let by_decimals = self.compare(Decimal128::from_f64_nearest(other));
        if by_decimals.is_ne() {
            return by_decimals;
        }
        Magnitude::of_decimal(self).compare(&Magnitude::of_double(other))
    }
}

/// A number as its sign and decimal digits: where numbers of both kinds can be compared exactly.
#[derive(Debug)]
enum Magnitude {
    NaN,
    /// `sign` is -1, 0 or 1; the value is `0.digits` times ten to the `point`; infinity has the largest point.
    Number {
        sign: i8,
        point: i32,
        digits: String,
    },
}

impl Magnitude {
    fn of_decimal(value: Decimal128) -> Magnitude {
        match value.parts() {
            Parts::NaN => Magnitude::NaN,
            Parts::Infinity { negative } => Magnitude::infinity(negative),
            Parts::Finite { negative, coefficient, exponent } => {
                let digits = coefficient.to_string();
                let point = exponent + digits.len() as i32;
                Magnitude::number(negative, point, &digits)
            }
        }
    }

    fn of_double(value: f64) -> Magnitude {
        if value.is_nan() {
            return Magnitude::NaN;
        }
        if value.is_infinite() {
            return Magnitude::infinity(value < 0.0);
        }
        // The longest double has 1074 digits behind the point, and this prints all of them exactly.
        let text = format!("{:.1074}", value.abs());
        let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
        Magnitude::number(value < 0.0, whole.len() as i32, &[whole, fraction].concat())
    }

    fn infinity(negative: bool) -> Magnitude {
        Magnitude::Number { sign: if negative { -1 } else { 1 }, point: i32::MAX, digits: String::new() }
    }

    fn number(negative: bool, point: i32, digits: &str) -> Magnitude {
        let significant = digits.trim_start_matches('0');
        let point = point - (digits.len() - significant.len()) as i32;
        match (significant.is_empty(), negative) {
            (true, _) => Magnitude::Number { sign: 0, point: 0, digits: String::new() },
            (false, true) => {
                Magnitude::Number { sign: -1, point, digits: significant.trim_end_matches('0').into() }
            }
            (false, false) => {
                Magnitude::Number { sign: 1, point, digits: significant.trim_end_matches('0').into() }
            }
        }
    }

    fn compare(&self, other: &Magnitude) -> Ordering {
        match (self, other) {
            (Magnitude::NaN, Magnitude::NaN) => Ordering::Equal,
            (Magnitude::NaN, _) => Ordering::Less,
            (_, Magnitude::NaN) => Ordering::Greater,
            (
                Magnitude::Number { sign, point, digits },
                Magnitude::Number { sign: other_sign, point: other_point, digits: other_digits },
            ) => sign.cmp(other_sign).then_with(|| {
                let size = point.cmp(other_point).then_with(|| digits.cmp(other_digits));
                if *sign < 0 { size.reverse() } else { size }
            }),
        }
    }
}

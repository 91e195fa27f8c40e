//! Decimal128: a decimal floating-point number of 34 digits (IEEE 754-2008, binary integer decimal encoding).
//!
//! ```text
//! bit 127       sign
//! bits 126..    11111 NaN, 11110 infinity
//!               11 e(14) ...   a coefficient that is too large to be canonical: read as zero
//!               e(14) c(113)   exponent + 6176, coefficient below 10^34
//! ```

use std::cmp::Ordering;

/// The sixteen bytes as BSON has them, little-endian.
///
/// The derived equality is of bytes: `1.0` and `1.00` are different spellings of one number. [`crate::equal`] compares numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Decimal128(pub [u8; 16]);

const EXPONENT_BIAS: i32 = 6176;
const COEFFICIENT_MAX: u128 = 10_u128.pow(34) - 1;

/// What the bytes amount to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parts {
    NaN,
    Infinity { negative: bool },
    Finite { negative: bool, coefficient: u128, exponent: i32 },
}

impl From<i64> for Decimal128 {
    fn from(value: i64) -> Decimal128 {
        Decimal128::finite(value < 0, u128::from(value.unsigned_abs()), 0)
    }
}

impl Decimal128 {
    /// A finite number. The coefficient has at most 34 digits, the exponent is in range.
    pub(crate) fn finite(negative: bool, coefficient: u128, exponent: i32) -> Decimal128 {
        let biased = (exponent + EXPONENT_BIAS) as u128;
        let sign = u128::from(negative) << 127;
        Decimal128((sign | biased << 113 | coefficient).to_le_bytes())
    }

    /// Takes the number apart.
    pub(crate) fn parts(self) -> Parts {
        let bits = u128::from_le_bytes(self.0);
        let negative = bits >> 127 == 1;
        match (bits >> 122) & 0b11111 {
            0b11111 => Parts::NaN,
            0b11110 => Parts::Infinity { negative },
            top if top >> 3 == 0b11 => {
                let exponent = ((bits >> 111) & 0x3FFF) as i32 - EXPONENT_BIAS;
                Parts::Finite { negative, coefficient: 0, exponent }
            }
            _ => {
                let exponent = ((bits >> 113) & 0x3FFF) as i32 - EXPONENT_BIAS;
                let coefficient = bits & ((1 << 113) - 1);
                let coefficient = if coefficient > COEFFICIENT_MAX { 0 } else { coefficient };
                Parts::Finite { negative, coefficient, exponent }
            }
        }
    }

    /// Compares two numbers by what they amount to; NaN equals itself and is below everything.
    pub(crate) fn compare(self, other: Decimal128) -> Ordering {
        Magnitude::of_decimal(self).compare(&Magnitude::of_decimal(other))
    }

    /// Compares with a double, exactly.
    pub(crate) fn compare_double(self, other: f64) -> Ordering {
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

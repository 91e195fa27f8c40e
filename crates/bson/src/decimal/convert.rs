//! Rounding, and conversion from and to other numbers.

use super::wide::Dropped;
use super::{DIGITS_MAX, Decimal128, EXPONENT_MAX, EXPONENT_MIN, Parts, Wide};

/// The direction in which a number is rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounding {
    /// To the nearest, in the middle to the one with the even digit.
    HalfEven,
    /// Toward zero.
    Truncate,
    /// Toward minus infinity.
    Floor,
    /// Toward plus infinity.
    Ceiling,
}

impl Rounding {
    fn goes_up(self, negative: bool, dropped: Dropped, odd: bool) -> bool {
        match self {
            Rounding::HalfEven => dropped == Dropped::AboveHalf || dropped == Dropped::Half && odd,
            Rounding::Truncate => false,
            Rounding::Floor => negative && dropped != Dropped::Nothing,
            Rounding::Ceiling => !negative && dropped != Dropped::Nothing,
        }
    }
}

impl Decimal128 {
    /// Returns the number with that exponent: digits behind it are rounded away, zeros are filled in. NaN if that takes more
    /// than 34 digits.
    #[must_use]
    pub fn quantize(self, exponent: i32, rounding: Rounding) -> Decimal128 {
        let Parts::Finite { negative, coefficient, exponent: own } = self.parts() else { return self };
        if !(EXPONENT_MIN..=EXPONENT_MAX).contains(&exponent) {
            return Decimal128::NAN;
        }
        let drop = exponent - own;
        if drop < 0 {
            let digits = Wide::from(coefficient).digits();
            if coefficient != 0 && digits + drop.unsigned_abs() > DIGITS_MAX {
                return Decimal128::NAN;
            }
            let coefficient =
                if coefficient == 0 { 0 } else { coefficient * 10_u128.pow(drop.unsigned_abs()) };
            return Decimal128::finite(negative, coefficient, exponent);
        }
        let (kept, dropped) = Wide::from(coefficient).without(drop.into(), false);
        // At most 34 digits were there; the 35th can only come from rounding 34 nines up without dropping any.
        let kept = kept.narrow().unwrap_or(0);
        let coefficient = kept + u128::from(rounding.goes_up(negative, dropped, kept & 1 == 1));
        Decimal128::finite(negative, coefficient, exponent)
    }

    /// Returns the number rounded to so many digits behind the point, or before it if `places` is negative. Unlike
    /// [`Decimal128::quantize`] it never fills in zeros.
    #[must_use]
    pub fn round_to(self, places: i32, rounding: Rounding) -> Decimal128 {
        match self.parts() {
            Parts::Finite { exponent, .. } if exponent < places.saturating_neg() => {
                let wanted = places.saturating_neg();
                if wanted > EXPONENT_MAX {
                    // Beyond every digit: nothing is left, or one unit that cannot be written down.
                    return Decimal128::finite(self.is_negative(), 0, EXPONENT_MAX);
                }
                self.quantize(wanted, rounding)
            }
            _ => self,
        }
    }

    /// Returns the same number with as many zeros behind it as there is room for: 34 digits.
    #[must_use]
    pub fn padded(self) -> Decimal128 {
        let Parts::Finite { coefficient, exponent, .. } = self.parts() else { return self };
        let digits = DIGITS_MAX - Wide::from(coefficient).digits().min(DIGITS_MAX);
        self.quantize((exponent - digits as i32).max(EXPONENT_MIN), Rounding::HalfEven)
    }

    /// Returns the largest whole number that is not larger.
    #[must_use]
    pub fn floor(self) -> Decimal128 {
        self.round_to(0, Rounding::Floor)
    }

    /// Returns the smallest whole number that is not smaller.
    #[must_use]
    pub fn ceil(self) -> Decimal128 {
        self.round_to(0, Rounding::Ceiling)
    }

    /// Returns the number without its fraction.
    #[must_use]
    pub fn trunc(self) -> Decimal128 {
        self.round_to(0, Rounding::Truncate)
    }

    /// Returns `true` if this is a finite number without a fraction.
    pub fn is_whole(self) -> bool {
        self.is_finite() && self.compare(self.trunc()).is_eq()
    }

    /// Returns the long that this is once its fraction is cut off; `None` if it is not finite or out of range.
    pub fn to_i64(self) -> Option<i64> {
        let Parts::Finite { negative, coefficient, exponent } = self.trunc().parts() else { return None };
        if coefficient == 0 {
            return Some(0);
        }
        // A whole number that was cut has the exponent zero; one that was not may have a larger one.
        let scale = 10_u128.checked_pow(exponent.try_into().ok()?)?;
        let size = i128::try_from(coefficient.checked_mul(scale)?).ok()?;
        i64::try_from(if negative { -size } else { size }).ok()
    }

    /// Returns the int that this is once its fraction is cut off; `None` if it is not finite or out of range.
    pub fn to_i32(self) -> Option<i32> {
        self.to_i64()?.try_into().ok()
    }

    /// Returns the nearest double; an infinity if that is past the largest.
    pub fn to_f64(self) -> f64 {
        match self.parts() {
            Parts::NaN => f64::NAN,
            Parts::Infinity { negative: true } => f64::NEG_INFINITY,
            Parts::Infinity { negative: false } => f64::INFINITY,
            Parts::Finite { negative, coefficient, exponent } => {
                let size: f64 = format!("{coefficient}e{exponent}").parse().unwrap_or(f64::NAN);
                if negative { -size } else { size }
            }
        }
    }

    /// Returns the decimal of a double as conversions and mixed arithmetic see it: fifteen digits, which is what a double
    /// can be trusted with.
    pub fn from_f64(number: f64) -> Decimal128 {
        Decimal128::from_double(number, 15)
    }

    /// Returns the decimal nearest to a double, all 34 digits of it.
    pub fn from_f64_nearest(number: f64) -> Decimal128 {
        Decimal128::from_double(number, DIGITS_MAX as usize)
    }

    fn from_double(number: f64, digits: usize) -> Decimal128 {
        if number.is_nan() {
            Decimal128::NAN
        } else if number.is_infinite() {
            Decimal128::infinity(number < 0.0)
        } else if number == 0.0 {
            Decimal128::finite(number.is_sign_negative(), 0, 0)
        } else {
            let text = format!("{number:.*e}", digits - 1);
            text.parse().expect("a double is within the range of decimals")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Decimal128 {
        text.parse().expect(text)
    }

    #[test]
    fn rounding_goes_where_it_should() {
        for (number, places, even, truncate, floor, ceiling) in [
            ("2.5", 0, "2", "2", "2", "3"),
            ("3.5", 0, "4", "3", "3", "4"),
            ("-2.5", 0, "-2", "-2", "-3", "-2"),
            ("1.255", 2, "1.26", "1.25", "1.25", "1.26"),
            ("1.245", 2, "1.24", "1.24", "1.24", "1.25"),
            ("1.5", 5, "1.5", "1.5", "1.5", "1.5"),
            ("12345", -2, "1.23E+4", "1.23E+4", "1.23E+4", "1.24E+4"),
            ("0.001", 0, "0", "0", "0", "1"),
            ("-0.001", 0, "-0", "-0", "-1", "-0"),
            ("5E-6176", 0, "0", "0", "0", "1"),
            ("1E+10", 0, "1E+10", "1E+10", "1E+10", "1E+10"),
            ("NaN", 0, "NaN", "NaN", "NaN", "NaN"),
            ("-Infinity", 0, "-Infinity", "-Infinity", "-Infinity", "-Infinity"),
        ] {
            for (rounding, result) in [
                (Rounding::HalfEven, even),
                (Rounding::Truncate, truncate),
                (Rounding::Floor, floor),
                (Rounding::Ceiling, ceiling),
            ] {
                assert_eq!(
                    read(number).round_to(places, rounding).to_string(),
                    result,
                    "{number} {rounding:?}"
                );
            }
        }
    }

    #[test]
    fn a_quantum_fills_in_zeros() {
        assert_eq!(read("1.5").quantize(-3, Rounding::HalfEven).to_string(), "1.500");
        assert_eq!(read("0").quantize(-3, Rounding::HalfEven).to_string(), "0.000");
        assert_eq!(read("1.5").quantize(-40, Rounding::HalfEven).to_string(), "NaN");
        let nines = "9.999999999999999999999999999999999";
        assert_eq!(read(nines).quantize(0, Rounding::HalfEven).to_string(), "10");
        assert_eq!(read("1").quantize(7000, Rounding::HalfEven).to_string(), "NaN");
    }

    #[test]
    fn doubles_and_integers_come_and_go() {
        assert_eq!(Decimal128::from_f64(-5.5).to_string(), "-5.50000000000000");
        assert_eq!(Decimal128::from_f64(0.1).to_string(), "0.100000000000000");
        assert_eq!(Decimal128::from_f64(1e300).to_string(), "1.00000000000000E+300");
        assert_eq!(Decimal128::from_f64(0.0).to_string(), "0");
        assert_eq!(Decimal128::from_f64_nearest(0.1).to_string(), "0.1000000000000000055511151231257827");
        for number in [0.0, 1.0, -0.1, 5e-324, f64::MAX, f64::INFINITY] {
            assert_eq!(Decimal128::from_f64_nearest(number).to_f64().to_bits(), number.to_bits());
        }
        assert!(read("NaN").to_f64().is_nan());
        assert!(read("1E+400").to_f64().is_infinite());
        for (text, number) in [
            ("0", Some(0)),
            ("1.9", Some(1)),
            ("-1.9", Some(-1)),
            ("9223372036854775807", Some(i64::MAX)),
            ("9223372036854775807.9", Some(i64::MAX)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("1E+18", Some(1_000_000_000_000_000_000)),
            ("1E+6000", None),
            ("0E+6000", Some(0)),
            ("1E-6000", Some(0)),
            ("NaN", None),
            ("Infinity", None),
        ] {
            assert_eq!(read(text).to_i64(), number, "{text}");
        }
        assert_eq!(read("2147483648").to_i32(), None);
        assert!(read("5.00").is_whole() && !read("5.01").is_whole() && !read("NaN").is_whole());
    }
}

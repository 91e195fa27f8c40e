//! Numbers of all types, and arithmetic that widens its result: int, long, double, decimal.
//!
//! Integers stay integers while they fit: a sum of two ints that is too large becomes a long, one of longs a double. A
//! double on either side makes a double, a decimal makes a decimal. Updates need to know when a long does not fit,
//! expressions do not: hence the checked variants.

use std::fmt;

use bson::{Decimal128, Rounding, Value, ValueRef};

/// A number with its type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number {
    Int(i32),
    Long(i64),
    Double(f64),
    Decimal(Decimal128),
}

impl Number {
    /// Returns the number that a value is.
    pub(crate) fn of(value: ValueRef<'_>) -> Option<Number> {
        match value {
            ValueRef::Int32(value) => Some(Number::Int(value)),
            ValueRef::Int64(value) => Some(Number::Long(value)),
            ValueRef::Double(value) => Some(Number::Double(value)),
            ValueRef::Decimal128(value) => Some(Number::Decimal(value)),
            _ => None,
        }
    }

    /// Returns the nearest double.
    pub(crate) fn to_f64(self) -> f64 {
        match self {
            Number::Int(value) => value.into(),
            Number::Long(value) => value as f64,
            Number::Double(value) => value,
            Number::Decimal(value) => value.to_f64(),
        }
    }

    /// Returns the decimal: of a double only the fifteen digits that can be trusted.
    pub(crate) fn to_decimal(self) -> Decimal128 {
        match self {
            Number::Int(value) => value.into(),
            Number::Long(value) => value.into(),
            Number::Double(value) => Decimal128::from_f64(value),
            Number::Decimal(value) => value,
        }
    }

    /// Returns the integer, if the number is of an integer type.
    pub(crate) fn integer(self) -> Option<i64> {
        match self {
            Number::Int(value) => Some(value.into()),
            Number::Long(value) => Some(value),
            Number::Double(_) | Number::Decimal(_) => None,
        }
    }

    /// Returns the number as an integer if it is whole and fits, whatever its type.
    pub(crate) fn exact_i64(self) -> Option<i64> {
        match self {
            Number::Double(value) => whole(value),
            Number::Decimal(value) => value.is_whole().then(|| value.to_i64())?,
            integer => integer.integer(),
        }
    }

    /// Returns the number as an int if it is whole and fits, whatever its type.
    pub(crate) fn exact_i32(self) -> Option<i32> {
        self.exact_i64().and_then(|value| i32::try_from(value).ok())
    }

    /// Returns the number without its fraction, if that fits.
    pub(crate) fn truncated_i64(self) -> Option<i64> {
        match self {
            Number::Double(value) => whole(value.trunc()),
            Number::Decimal(value) => value.to_i64(),
            integer => integer.integer(),
        }
    }

    /// Returns the nearest integer, if it is in range: halves of doubles go away from zero, those of decimals to the even one.
    pub(crate) fn rounded_i64(self) -> Option<i64> {
        match self {
            Number::Double(value) => whole(value.round()),
            Number::Decimal(value) => value.round_to(0, Rounding::HalfEven).to_i64(),
            integer => integer.integer(),
        }
    }

    /// Returns the number without its fraction, or the end of the range that it is beyond; zero for NaN.
    pub(crate) fn saturating_i64(self) -> i64 {
        self.truncated_i64().unwrap_or_else(|| self.to_f64() as i64)
    }

    /// Returns `true` if it is zero.
    pub(crate) fn is_zero(self) -> bool {
        match self {
            Number::Decimal(value) => value.is_zero(),
            other => other.to_f64() == 0.0,
        }
    }

    /// Returns `true` if it is a decimal.
    pub(crate) fn is_decimal(self) -> bool {
        matches!(self, Number::Decimal(_))
    }

    /// Returns an integer: an int if it fits, unless it must be a long.
    pub(crate) fn of_integer(value: i64, long: bool) -> Number {
        match i32::try_from(value) {
            Ok(value) if !long => Number::Int(value),
            _ => Number::Long(value),
        }
    }

    /// Returns `true` if it is a long.
    pub(crate) fn is_long(self) -> bool {
        matches!(self, Number::Long(_))
    }
}

impl From<Number> for Value {
    fn from(number: Number) -> Value {
        match number {
            Number::Int(value) => Value::Int32(value),
            Number::Long(value) => Value::Int64(value),
            Number::Double(value) => Value::Double(value),
            Number::Decimal(value) => Value::Decimal128(value),
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Int(value) => value.fmt(out),
            Number::Long(value) => value.fmt(out),
            Number::Double(value) => out.write_str(&double_text(*value)),
            Number::Decimal(value) => value.fmt(out),
        }
    }
}

/// Returns a double in at most sixteen digits, in the shorter of the two ways to write it.
pub(crate) fn double_text(value: f64) -> String {
    if !value.is_finite() {
        let sign = if value < 0.0 { "-" } else { "" };
        return if value.is_nan() { "NaN".to_owned() } else { format!("{sign}Infinity") };
    }
    let scientific = format!("{value:.15e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |text: &str| {
        if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text.to_owned()
        }
    };
    if (-4..16).contains(&exponent) {
        trimmed(&format!("{value:.*}", (15 - exponent) as usize))
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}e{sign}{:02}", trimmed(digits), exponent.unsigned_abs())
    }
}

/// Returns a double without a fraction inside the range of longs.
pub(crate) fn whole(value: f64) -> Option<i64> {
    let fits =
        value.fract() == 0.0 && (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&value);
    fits.then_some(value as i64)
}

/// Returns the sum; longs that overflow become a double.
pub(crate) fn add(left: Number, right: Number) -> Number {
    checked_add(left, right).unwrap_or_else(|| Number::Double(left.to_f64() + right.to_f64()))
}

/// Returns the difference; longs that overflow become a double.
pub(crate) fn subtract(left: Number, right: Number) -> Number {
    checked(left, right, i64::checked_sub, |left, right| left - right, |left, right| left - right)
        .unwrap_or_else(|| Number::Double(left.to_f64() - right.to_f64()))
}

/// Returns the product; longs that overflow become a double.
pub(crate) fn multiply(left: Number, right: Number) -> Number {
    checked_multiply(left, right).unwrap_or_else(|| Number::Double(left.to_f64() * right.to_f64()))
}

/// Returns the sum, unless longs overflow.
pub(crate) fn checked_add(left: Number, right: Number) -> Option<Number> {
    checked(left, right, i64::checked_add, |left, right| left + right, |left, right| left + right)
}

/// Returns the product, unless longs overflow.
pub(crate) fn checked_multiply(left: Number, right: Number) -> Option<Number> {
    checked(left, right, i64::checked_mul, |left, right| left * right, |left, right| left * right)
}

fn checked(
    left: Number,
    right: Number,
    integers: fn(i64, i64) -> Option<i64>,
    doubles: fn(f64, f64) -> f64,
    decimals: fn(Decimal128, Decimal128) -> Decimal128,
) -> Option<Number> {
    match (left.integer(), right.integer()) {
        (Some(one), Some(other)) => {
            integers(one, other).map(|value| Number::of_integer(value, left.is_long() || right.is_long()))
        }
        _ if left.is_decimal() || right.is_decimal() => {
            Some(Number::Decimal(decimals(left.to_decimal(), right.to_decimal())))
        }
        _ => Some(Number::Double(doubles(left.to_f64(), right.to_f64()))),
    }
}

/// A sum of many numbers, exact for integers and nearly so for doubles.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sum {
    integers: i128,
    wide: bool,
    doubles: Option<DoubleDouble>,
    decimals: Option<Decimal128>,
}

impl Sum {
    /// Adds a number.
    pub(crate) fn add(&mut self, number: Number) {
        match number {
            Number::Double(value) => self.doubles.get_or_insert_default().add(value),
            Number::Decimal(value) => {
                self.decimals = Some(self.decimals.map_or(value, |total| total + value));
            }
            integer => {
                self.integers += i128::from(integer.integer().unwrap_or_default());
                self.wide |= integer.is_long();
            }
        }
    }

    /// Returns the total, of the widest type there was, or wider if it must be.
    pub(crate) fn total(&self) -> Number {
        if let Some(decimals) = self.decimals {
            return Number::Decimal(decimals + self.without_decimals());
        }
        match (self.doubles, i64::try_from(self.integers)) {
            (None, Ok(total)) => Number::of_integer(total, self.wide),
            _ => Number::Double(self.to_f64()),
        }
    }

    /// Returns the total divided by a count, a decimal if there was one, else a double.
    pub(crate) fn average(&self, count: u64) -> Number {
        match self.total() {
            Number::Decimal(total) => Number::Decimal(total / Decimal128::from(count as i64)),
            _ => Number::Double(self.to_f64() / count as f64),
        }
    }

    /// Returns the integers and doubles as a decimal.
    fn without_decimals(&self) -> Decimal128 {
        let integers = i64::try_from(self.integers)
            .map_or_else(|_| Decimal128::from_f64_nearest(self.integers as f64), Decimal128::from);
        let doubles = self.doubles.map_or(Decimal128::from(0_i32), |doubles| {
            let total = doubles.total();
            let (high, low) = if total.is_finite() { (doubles.high, doubles.low) } else { (total, 0.0) };
            Decimal128::from_f64_nearest(high) + Decimal128::from_f64_nearest(low)
        });
        integers + doubles
    }

    /// Returns the total of all but the decimals as a double.
    pub(crate) fn to_f64(&self) -> f64 {
        let Some(mut doubles) = self.doubles else { return self.integers as f64 };
        let high = self.integers as f64;
        doubles.add(high);
        doubles.add((self.integers - high as i128) as f64);
        doubles.total()
    }
}

/// A sum of doubles that keeps the rounding error of each addition (Knuth's two-sum).
#[derive(Debug, Clone, Copy, Default)]
struct DoubleDouble {
    high: f64,
    low: f64,
    /// The plain sum: the total once there was an infinity or a NaN.
    plain: f64,
}

impl DoubleDouble {
    fn add(&mut self, value: f64) {
        self.plain += value;
        let sum = self.high + value;
        let part = sum - self.high;
        let lost = (self.high - (sum - part)) + (value - part);
        let low = self.low + lost;
        self.high = sum + low;
        self.low = low - (self.high - sum);
    }

    fn total(self) -> f64 {
        if self.plain.is_finite() && self.high.is_finite() && self.low.is_finite() {
            self.high + self.low
        } else {
            self.plain
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_as_wide_as_they_must_be() {
        let (int, long, double) = (Number::Int, Number::Long, Number::Double);
        for (sum, expected) in [
            (add(int(1), int(2)), int(3)),
            (add(int(i32::MAX), int(1)), long(2_147_483_648)),
            (add(int(1), long(1)), long(2)),
            (add(long(i64::MAX), int(1)), double(9_223_372_036_854_775_808.0)),
            (add(int(1), double(0.5)), double(1.5)),
            (subtract(int(i32::MIN), int(1)), long(-2_147_483_649)),
            (multiply(int(65_536), int(65_536)), long(4_294_967_296)),
            (multiply(long(i64::MAX), int(2)), double(18_446_744_073_709_551_614.0)),
        ] {
            assert_eq!(sum, expected);
        }
        assert_eq!(checked_add(long(i64::MAX), int(1)), None);
        assert_eq!(checked_multiply(long(i64::MIN), int(-1)), None);
    }

    #[test]
    fn doubles_have_sixteen_digits() {
        for (value, text) in [
            (1.0, "1"),
            (-0.0, "-0"),
            (0.1, "0.1"),
            (1.0 / 3.0, "0.3333333333333333"),
            (1e15, "1000000000000000"),
            (1e16, "1e+16"),
            (1.5e-7, "1.5e-07"),
            (0.0001, "0.0001"),
            (1e100, "1e+100"),
            (123.456, "123.456"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(double_text(value), text);
        }
    }

    #[test]
    fn sums_lose_nothing_on_the_way() {
        let sum = |numbers: &[Number]| {
            let mut sum = Sum::default();
            for number in numbers {
                sum.add(*number);
            }
            sum.total()
        };
        let (int, long, double) = (Number::Int, Number::Long, Number::Double);
        assert_eq!(sum(&[]), int(0));
        assert_eq!(sum(&[long(i64::MAX), long(1), long(-2)]), long(i64::MAX - 1));
        assert_eq!(sum(&[double(1e100), double(1.0), double(-1e100)]), double(1.0));
        assert_eq!(sum(&[double(f64::INFINITY), double(1.0)]), double(f64::INFINITY));
        let Number::Double(total) = sum(&[double(f64::INFINITY), double(f64::NEG_INFINITY)]) else {
            panic!()
        };
        assert!(total.is_nan());
    }
}

//! Numbers of all types, and arithmetic that widens its result: int, long, double.
//!
//! Integers stay integers while they fit: a sum of two ints that is too large becomes a long, one of longs a double. A double
//! on either side makes a double. Updates want to know when a long does not fit, expressions do not: hence two doors.

use bson::{Value, ValueRef};

/// A number with its type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number {
    Int(i32),
    Long(i64),
    Double(f64),
}

impl Number {
    /// The number that a value is.
    pub(crate) fn of(value: ValueRef<'_>) -> Option<Number> {
        match value {
            ValueRef::Int32(value) => Some(Number::Int(value)),
            ValueRef::Int64(value) => Some(Number::Long(value)),
            ValueRef::Double(value) => Some(Number::Double(value)),
            _ => None,
        }
    }

    /// The nearest double.
    pub(crate) fn to_f64(self) -> f64 {
        match self {
            Number::Int(value) => value.into(),
            Number::Long(value) => value as f64,
            Number::Double(value) => value,
        }
    }

    /// The integer, if the number is of an integer type.
    pub(crate) fn integer(self) -> Option<i64> {
        match self {
            Number::Int(value) => Some(value.into()),
            Number::Long(value) => Some(value),
            Number::Double(_) => None,
        }
    }

    /// The number as an integer if it is whole and fits, whatever its type.
    pub(crate) fn exact_i64(self) -> Option<i64> {
        match self {
            Number::Double(value) => whole(value),
            integer => integer.integer(),
        }
    }

    /// The number as an int if it is whole and fits, whatever its type.
    pub(crate) fn exact_i32(self) -> Option<i32> {
        self.exact_i64().and_then(|value| i32::try_from(value).ok())
    }

    /// Whether it is zero.
    pub(crate) fn is_zero(self) -> bool {
        self.to_f64() == 0.0
    }

    /// An integer of the narrowest of the two types that `like` and the value itself need.
    fn of_integer(value: i64, wide: bool) -> Number {
        match i32::try_from(value) {
            Ok(value) if !wide => Number::Int(value),
            _ => Number::Long(value),
        }
    }

    fn is_long(self) -> bool {
        matches!(self, Number::Long(_))
    }
}

impl From<Number> for Value {
    fn from(number: Number) -> Value {
        match number {
            Number::Int(value) => Value::Int32(value),
            Number::Long(value) => Value::Int64(value),
            Number::Double(value) => Value::Double(value),
        }
    }
}

/// A double without a fraction inside the range of longs.
pub(crate) fn whole(value: f64) -> Option<i64> {
    let fits =
        value.fract() == 0.0 && (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&value);
    fits.then_some(value as i64)
}

/// The sum; longs that overflow become a double.
pub(crate) fn add(left: Number, right: Number) -> Number {
    checked_add(left, right).unwrap_or_else(|| Number::Double(left.to_f64() + right.to_f64()))
}

/// The difference; longs that overflow become a double.
pub(crate) fn subtract(left: Number, right: Number) -> Number {
    checked(left, right, i64::checked_sub, |left, right| left - right)
        .unwrap_or_else(|| Number::Double(left.to_f64() - right.to_f64()))
}

/// The product; longs that overflow become a double.
pub(crate) fn multiply(left: Number, right: Number) -> Number {
    checked_multiply(left, right).unwrap_or_else(|| Number::Double(left.to_f64() * right.to_f64()))
}

/// The sum, unless longs overflow.
pub(crate) fn checked_add(left: Number, right: Number) -> Option<Number> {
    checked(left, right, i64::checked_add, |left, right| left + right)
}

/// The product, unless longs overflow.
pub(crate) fn checked_multiply(left: Number, right: Number) -> Option<Number> {
    checked(left, right, i64::checked_mul, |left, right| left * right)
}

fn checked(
    left: Number,
    right: Number,
    integers: fn(i64, i64) -> Option<i64>,
    doubles: fn(f64, f64) -> f64,
) -> Option<Number> {
    match (left.integer(), right.integer()) {
        (Some(one), Some(other)) => {
            integers(one, other).map(|value| Number::of_integer(value, left.is_long() || right.is_long()))
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
}

impl Sum {
    /// Adds a number.
    pub(crate) fn add(&mut self, number: Number) {
        match number {
            Number::Double(value) => self.doubles.get_or_insert_default().add(value),
            integer => {
                self.integers += i128::from(integer.integer().unwrap_or_default());
                self.wide |= integer.is_long();
            }
        }
    }

    /// Adds what another sum has.
    pub(crate) fn merge(&mut self, other: &Sum) {
        self.integers += other.integers;
        self.wide |= other.wide;
        if let Some(doubles) = other.doubles {
            let own = self.doubles.get_or_insert_default();
            own.add(doubles.high);
            own.add(doubles.low);
        }
    }

    /// The total, of the widest type there was, or wider if it must be.
    pub(crate) fn total(&self) -> Number {
        match self.doubles {
            Some(_) => Number::Double(self.to_f64()),
            None => match i64::try_from(self.integers) {
                Ok(total) => Number::of_integer(total, self.wide),
                Err(_) => Number::Double(self.integers as f64),
            },
        }
    }

    /// The total as a double.
    pub(crate) fn to_f64(&self) -> f64 {
        let Some(mut doubles) = self.doubles else { return self.integers as f64 };
        let high = self.integers as f64;
        doubles.add(high);
        doubles.add((self.integers - high as i128) as f64);
        doubles.total()
    }
}

/// A sum of doubles that keeps what each addition rounds away (Knuth's two-sum).
#[derive(Debug, Clone, Copy, Default)]
struct DoubleDouble {
    high: f64,
    low: f64,
    /// The plain sum: what counts once there was an infinity or a NaN.
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

//! Powers and logarithms, computed with many more digits than are kept.
//!
//! Everything goes by powers of ten: `e^x = 10^k e^r` with a small `r`, and `ln(m 10^k) = ln m + k ln 10` with an `m` between
//! one and ten. So no number on the way is large, and 34 digits come out right for all practical purposes.

use super::fixed::{Fixed, LN_10, LOG_10_E, ONE};
use super::{Decimal128, Parts};

/// Beyond this the exponential is past the largest or below the smallest number.
const EXPONENT_ARGUMENT_MAX: f64 = 14_300.0;
/// Whole exponents up to this are tried exactly.
const EXACT_POWER_MAX: i64 = 200;

impl Decimal128 {
    /// Euler's number to this power.
    #[must_use]
    pub fn exp(self) -> Decimal128 {
        match self.parts() {
            Parts::NaN | Parts::Infinity { negative: false } => self,
            Parts::Infinity { negative: true } => Decimal128::ZERO,
            Parts::Finite { coefficient: 0, .. } => Decimal128::from(1),
            Parts::Finite { negative, coefficient, exponent } => {
                match Fixed::new(negative, coefficient, exponent.into()) {
                    Some(argument) => exponential(argument),
                    None => beyond(negative),
                }
            }
        }
    }

    /// Returns the natural logarithm; NaN of a negative number.
    #[must_use]
    pub fn ln(self) -> Decimal128 {
        self.logarithm(|mantissa, power| {
            let powers = Fixed::new(power < 0, power.unsigned_abs().into(), 0)?;
            Some(logarithm(mantissa)?.plus(powers.times(LN_10)))
        })
    }

    /// Returns the decimal logarithm; NaN of a negative number.
    #[must_use]
    pub fn log10(self) -> Decimal128 {
        self.logarithm(|mantissa, power| {
            if mantissa == ONE {
                return None;
            }
            let powers = Fixed::new(power < 0, power.unsigned_abs().into(), 0)?;
            Some(logarithm(mantissa)?.times(LOG_10_E).plus(powers))
        })
    }

    /// Returns a logarithm. `finish` gets the number as a mantissa from one to ten and a power of ten; `None` says that the
    /// power is the result.
    fn logarithm(self, finish: impl Fn(Fixed, i64) -> Option<Fixed>) -> Decimal128 {
        match self.parts() {
            Parts::Infinity { negative: false } => self,
            Parts::Finite { coefficient: 0, .. } => Decimal128::NEGATIVE_INFINITY,
            Parts::Finite { negative: false, coefficient, exponent } => {
                let digits = coefficient.ilog10();
                let power = i64::from(exponent) + i64::from(digits);
                let mantissa = Fixed::new(false, coefficient, -i64::from(digits)).expect("below ten");
                match finish(mantissa, power) {
                    Some(result) if result.is_zero() => Decimal128::ZERO,
                    Some(result) => result.rounded(0),
                    None => Decimal128::from(power),
                }
            }
            _ => Decimal128::NAN,
        }
    }

    /// Returns this number to a power. Of a negative number only whole powers are numbers.
    #[must_use]
    pub fn pow(self, power: Decimal128) -> Decimal128 {
        let one = Decimal128::from(1);
        if power.is_zero() || self.compare(one).is_eq() {
            return one;
        }
        if self.is_nan() || power.is_nan() {
            return Decimal128::NAN;
        }
        let odd = power.is_whole() && !(power % Decimal128::from(2)).is_zero();
        let negative = self.is_negative() && odd;
        if self.is_zero() || self.is_infinite() {
            // A zero to a negative power grows as an infinite number does.
            let grows = self.is_infinite() != power.is_negative();
            return if grows { Decimal128::infinity(negative) } else { Decimal128::finite(negative, 0, 0) };
        }
        if power.is_infinite() {
            let order = self.abs().compare(one);
            if order.is_eq() {
                return one;
            }
            let grows = order.is_gt() != power.is_negative();
            return if grows { Decimal128::INFINITY } else { Decimal128::ZERO };
        }
        if self.is_negative() && !power.is_whole() {
            return Decimal128::NAN;
        }
        if let Some(exact) = self.exact_power(power) {
            return exact;
        }
        let size = power_of_positive(self.abs(), power);
        if negative { -size } else { size }
    }

    /// Returns a small whole power, if all of its digits fit; or one over such a power.
    fn exact_power(self, power: Decimal128) -> Option<Decimal128> {
        let times = power.to_i64().filter(|times| power.is_whole() && times.abs() <= EXACT_POWER_MAX)?;
        let Parts::Finite { negative, coefficient, exponent } = self.parts() else { return None };
        let mut product: u128 = 1;
        for _ in 0..times.unsigned_abs() {
            product = product.checked_mul(coefficient).filter(|product| *product < 10_u128.pow(34))?;
        }
        let exponent = i64::from(exponent) * times.abs();
        let negative = negative && times % 2 != 0;
        let whole = Decimal128::rounded(negative, product.into(), false, exponent);
        Some(if times < 0 { Decimal128::from(1) / whole } else { whole })
    }
}

fn beyond(negative: bool) -> Decimal128 {
    if negative { Decimal128::finite(false, 0, super::EXPONENT_MIN) } else { Decimal128::INFINITY }
}

fn exponential(argument: Fixed) -> Decimal128 {
    let size = argument.approximate();
    if size.abs() > EXPONENT_ARGUMENT_MAX {
        return beyond(size < 0.0);
    }
    let power = (size / std::f64::consts::LN_10).round() as i64;
    let powers = Fixed::new(power > 0, power.unsigned_abs().into(), 0).expect("a small number");
    small_exponential(argument.plus(powers.times(LN_10))).rounded(power)
}

/// Returns the exponential of a number of about one, by its series.
fn small_exponential(argument: Fixed) -> Fixed {
    let (mut sum, mut term) = (ONE, ONE);
    for number in 1..200 {
        term = term.times(argument).divided_by(number);
        if term.is_zero() {
            break;
        }
        sum = sum.plus(term);
    }
    sum
}

/// Returns the natural logarithm of a number from one to ten: a double is a first guess with 15 digits, and each step
/// doubles them.
fn logarithm(number: Fixed) -> Option<Fixed> {
    let guess = number.approximate().ln();
    let mut result = Fixed::new(false, (guess * 1e15).round().max(0.0) as u128, -15)?;
    for _ in 0..3 {
        let error = number.times(small_exponential(result.negated())).plus(ONE.negated());
        result = result.plus(error);
    }
    Some(result)
}

fn power_of_positive(base: Decimal128, power: Decimal128) -> Decimal128 {
    let rough = base.ln().to_f64() * power.to_f64();
    if rough.abs() > EXPONENT_ARGUMENT_MAX {
        return beyond(rough < 0.0);
    }
    let (
        Parts::Finite { coefficient, exponent, .. },
        Parts::Finite { negative, coefficient: times, exponent: scale },
    ) = (base.parts(), power.parts())
    else {
        return Decimal128::NAN;
    };
    let digits = coefficient.ilog10();
    let argument = Fixed::new(false, coefficient, -i64::from(digits)).and_then(|mantissa| {
        let powers = i64::from(exponent) + i64::from(digits);
        let powers = Fixed::new(powers < 0, powers.unsigned_abs().into(), 0)?;
        let whole = logarithm(mantissa)?.plus(powers.times(LN_10));
        Some(whole.times(Fixed::new(negative, times, scale.into())?))
    });
    // Without an argument the power is too large for something that `rough` puts near one: the product counts, and it is
    // small.
    argument.map_or(Decimal128::from(1), exponential)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Decimal128 {
        text.parse().expect(text)
    }

    #[test]
    fn exponentials() {
        for (number, result) in [
            ("0", "1"),
            ("1", "2.718281828459045235360287471352662"),
            ("-1", "0.3678794411714423215955237701614609"),
            ("0.5", "1.648721270700128146848650787814164"),
            ("100", "2.688117141816135448412625551580014E+43"),
            ("-1000.5", "3.078724698804883464177286839363786E-435"),
            ("1E-20", "1.000000000000000000010000000000000"),
            ("14149", "6.801809260978894125530050851897730E+6144"),
            ("5E-33", "1.000000000000000000000000000000005"),
            ("15000", "Infinity"),
            ("-15000", "0E-6176"),
            ("1E+6000", "Infinity"),
            ("-Infinity", "0"),
            ("NaN", "NaN"),
        ] {
            assert_eq!(read(number).exp().to_string(), result, "exp {number}");
        }
    }

    #[test]
    fn logarithms() {
        for (number, natural, decimal) in [
            ("1", "0", "0"),
            ("2", "0.6931471805599453094172321214581766", "0.3010299956639811952137388947244930"),
            ("10", "2.302585092994045684017991454684364", "1"),
            ("0.1", "-2.302585092994045684017991454684364", "-1"),
            (
                "1.000000000000000000000000000000001",
                "9.999999999999999999999999999999995E-34",
                "4.342944819032518276511289189166049E-34",
            ),
            ("1E-6176", "-14220.76553433122614449511522413063", "-6176"),
            ("123456789", "18.63140176616801803319393334796320", "8.091514977169270447518333623059547"),
            ("0", "-Infinity", "-Infinity"),
            ("-1", "NaN", "NaN"),
            ("Infinity", "Infinity", "Infinity"),
        ] {
            assert_eq!(read(number).ln().to_string(), natural, "ln {number}");
            assert_eq!(read(number).log10().to_string(), decimal, "log10 {number}");
        }
    }

    #[test]
    fn powers() {
        for (base, power, result) in [
            ("2", "10", "1024"),
            ("-2", "3", "-8"),
            ("2", "-2", "0.25"),
            ("1.5", "2", "2.25"),
            ("2", "0.5", "1.414213562373095048801688724209698"),
            ("1.1", "10.5", "2.720340042027496256883433390246990"),
            ("10", "-3.5", "0.0003162277660168379331998893544432719"),
            ("2", "1000", "1.071508607186267320948425049060002E+301"),
            ("1.0000000001", "1E+10", "2.718281828323131143949794001297229"),
            ("0.5", "0.3333333333333333333333333333333333", "0.7937005259840997373758528196361541"),
            ("7", "100", "3.234476509624757991344647769100217E+84"),
            ("-8", "0.5", "NaN"),
            ("0", "0", "1"),
            ("0", "5", "0"),
            ("0", "-1", "Infinity"),
            ("-0", "-1", "-Infinity"),
            ("1", "NaN", "1"),
            ("2", "1E+6000", "Infinity"),
            ("0.5", "1E+6000", "0E-6176"),
            ("2", "-Infinity", "0"),
            ("-1", "Infinity", "1"),
            ("Infinity", "-1", "0"),
            ("1E+6000", "2", "Infinity"),
        ] {
            assert_eq!(read(base).pow(read(power)).to_string(), result, "{base} ^ {power}");
        }
    }
}

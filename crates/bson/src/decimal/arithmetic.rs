//! The four operations and the remainder: exact, then rounded once, to nearest, ties to the even digit.

use std::cmp::Ordering;
use std::ops::{Add, Div, Mul, Neg, Rem, Sub};

use super::{DIGITS_MAX, Decimal128, EXPONENT_MAX, Parts, Wide};

/// Digits to which a number is extended before a much smaller one is added: enough that the truncated part of the smaller
/// one only decides how the sum is rounded.
const GUARDED_DIGITS: u32 = DIGITS_MAX + 3;

/// The parts of a finite number.
#[derive(Debug, Clone, Copy)]
struct Finite {
    negative: bool,
    coefficient: u128,
    exponent: i32,
}

impl Finite {
    fn back(self) -> Decimal128 {
        Decimal128::finite(self.negative, self.coefficient, self.exponent)
    }

    fn digits(self) -> u32 {
        Wide::from(self.coefficient).digits()
    }
}

/// Two operands: both finite, or the parts of both.
enum Pair {
    Finite(Finite, Finite),
    Special(Parts, Parts),
}

fn pair(left: Decimal128, right: Decimal128) -> Pair {
    let finite = |parts| match parts {
        Parts::Finite { negative, coefficient, exponent } => Some(Finite { negative, coefficient, exponent }),
        _ => None,
    };
    let (left, right) = (left.parts(), right.parts());
    match (finite(left), finite(right)) {
        (Some(left), Some(right)) => Pair::Finite(left, right),
        _ => Pair::Special(left, right),
    }
}

fn is_negative(parts: Parts) -> bool {
    match parts {
        Parts::NaN => false,
        Parts::Infinity { negative } | Parts::Finite { negative, .. } => negative,
    }
}

impl Neg for Decimal128 {
    type Output = Decimal128;

    fn neg(self) -> Decimal128 {
        match self.parts() {
            Parts::NaN => Decimal128::NAN,
            Parts::Infinity { negative } => Decimal128::infinity(!negative),
            Parts::Finite { negative, coefficient, exponent } => {
                Decimal128::finite(!negative, coefficient, exponent)
            }
        }
    }
}

impl Add for Decimal128 {
    type Output = Decimal128;

    fn add(self, other: Decimal128) -> Decimal128 {
        match pair(self, other) {
            Pair::Finite(left, right) => add_finite(left, right),
            Pair::Special(Parts::NaN, _) | Pair::Special(_, Parts::NaN) => Decimal128::NAN,
            Pair::Special(Parts::Infinity { negative }, Parts::Infinity { negative: other }) => {
                if negative == other { Decimal128::infinity(negative) } else { Decimal128::NAN }
            }
            Pair::Special(Parts::Infinity { negative }, _)
            | Pair::Special(_, Parts::Infinity { negative }) => Decimal128::infinity(negative),
            Pair::Special(..) => Decimal128::NAN,
        }
    }
}

impl Sub for Decimal128 {
    type Output = Decimal128;

    fn sub(self, other: Decimal128) -> Decimal128 {
        self + -other
    }
}

fn add_finite(left: Finite, right: Finite) -> Decimal128 {
    let (coarse, fine) = if left.exponent >= right.exponent { (left, right) } else { (right, left) };
    if coarse.coefficient == 0 && fine.coefficient != 0 {
        return fine.back();
    }
    let apart = coarse.exponent - fine.exponent;
    let room = GUARDED_DIGITS + DIGITS_MAX - coarse.digits();
    let (coarse_digits, fine_digits, rest, exponent) = if apart <= room as i32 {
        let aligned = Wide::from(coarse.coefficient).scaled(apart.unsigned_abs());
        (aligned, Wide::from(fine.coefficient), false, fine.exponent)
    } else {
        let scale = GUARDED_DIGITS - coarse.digits();
        let exponent = coarse.exponent - scale as i32;
        let (kept, dropped) =
            Wide::from(fine.coefficient).without(i64::from(exponent - fine.exponent), false);
        let rest = dropped != super::wide::Dropped::Nothing;
        (Wide::from(coarse.coefficient).scaled(scale), kept, rest, exponent)
    };
    let exponent = i64::from(exponent);
    if coarse.negative == fine.negative {
        return Decimal128::rounded(coarse.negative, coarse_digits.plus(fine_digits), rest, exponent);
    }
    match coarse_digits.cmp(&fine_digits) {
        Ordering::Equal => Decimal128::rounded(false, Wide::from(0), false, exponent),
        Ordering::Greater if rest => {
            // A difference minus a fraction is the difference minus one plus a fraction.
            let difference = coarse_digits.minus(fine_digits).minus(Wide::from(1));
            Decimal128::rounded(coarse.negative, difference, true, exponent)
        }
        Ordering::Greater => {
            Decimal128::rounded(coarse.negative, coarse_digits.minus(fine_digits), false, exponent)
        }
        Ordering::Less => {
            Decimal128::rounded(fine.negative, fine_digits.minus(coarse_digits), false, exponent)
        }
    }
}

impl Mul for Decimal128 {
    type Output = Decimal128;

    fn mul(self, other: Decimal128) -> Decimal128 {
        match pair(self, other) {
            Pair::Finite(left, right) => {
                let product = Wide::product(left.coefficient, right.coefficient);
                let exponent = i64::from(left.exponent) + i64::from(right.exponent);
                Decimal128::rounded(left.negative != right.negative, product, false, exponent)
            }
            Pair::Special(Parts::NaN, _) | Pair::Special(_, Parts::NaN) => Decimal128::NAN,
            Pair::Special(left, right) => {
                let zero = |parts| matches!(parts, Parts::Finite { coefficient: 0, .. });
                if zero(left) || zero(right) {
                    return Decimal128::NAN;
                }
                Decimal128::infinity(is_negative(left) != is_negative(right))
            }
        }
    }
}

impl Div for Decimal128 {
    type Output = Decimal128;

    fn div(self, other: Decimal128) -> Decimal128 {
        match pair(self, other) {
            Pair::Finite(left, right) => divide_finite(left, right),
            Pair::Special(Parts::Infinity { .. }, Parts::Infinity { .. })
            | Pair::Special(Parts::NaN, _)
            | Pair::Special(_, Parts::NaN) => Decimal128::NAN,
            Pair::Special(left @ Parts::Infinity { .. }, right) => {
                Decimal128::infinity(is_negative(left) != is_negative(right))
            }
            Pair::Special(left, right) => {
                Decimal128::finite(is_negative(left) != is_negative(right), 0, super::EXPONENT_MIN)
            }
        }
    }
}

fn divide_finite(left: Finite, right: Finite) -> Decimal128 {
    let negative = left.negative != right.negative;
    let preferred = i64::from(left.exponent) - i64::from(right.exponent);
    match (left.coefficient, right.coefficient) {
        (0, 0) => return Decimal128::NAN,
        (_, 0) => return Decimal128::infinity(negative),
        (0, _) => return Decimal128::rounded(negative, Wide::from(0), false, preferred),
        _ => {}
    }
    let shift = DIGITS_MAX + 2 + right.digits() - left.digits();
    let (mut quotient, remainder) = Wide::from(left.coefficient).scaled(shift).divided(right.coefficient);
    let mut exponent = preferred - i64::from(shift);
    while remainder == 0 && exponent < preferred {
        let (shorter, 0) = quotient.divided(10) else { break };
        quotient = shorter;
        exponent += 1;
    }
    Decimal128::rounded(negative, quotient, remainder != 0, exponent)
}

impl Rem for Decimal128 {
    type Output = Decimal128;

    /// Returns the remainder of the division truncated to a whole number; it has the sign of the dividend.
    fn rem(self, other: Decimal128) -> Decimal128 {
        match pair(self, other) {
            Pair::Finite(_, right) if right.coefficient == 0 => Decimal128::NAN,
            Pair::Finite(left, right) => remainder_finite(left, right),
            Pair::Special(Parts::Finite { .. }, Parts::Infinity { .. }) => self,
            Pair::Special(..) => Decimal128::NAN,
        }
    }
}

fn remainder_finite(left: Finite, right: Finite) -> Decimal128 {
    let apart = left.exponent - right.exponent;
    if apart >= 0 {
        let coefficient = power_remainder(left.coefficient, apart.unsigned_abs(), right.coefficient);
        return Decimal128::finite(left.negative, coefficient, right.exponent);
    }
    if apart.unsigned_abs() > DIGITS_MAX {
        return left.back();
    }
    let divisor = Wide::from(right.coefficient).scaled(apart.unsigned_abs());
    match divisor.narrow() {
        Some(divisor) => Decimal128::finite(left.negative, left.coefficient % divisor, left.exponent),
        None => left.back(),
    }
}

/// Returns the remainder of `coefficient` times ten to the `power` divided by `modulus`.
fn power_remainder(coefficient: u128, power: u32, modulus: u128) -> u128 {
    let times = |left: u128, right: u128| Wide::product(left, right).divided(modulus).1;
    let (mut result, mut square, mut power) = (coefficient % modulus, 10 % modulus, power);
    while power > 0 {
        if power & 1 == 1 {
            result = times(result, square);
        }
        square = times(square, square);
        power >>= 1;
    }
    result
}

impl Decimal128 {
    /// Returns the number without its sign.
    #[must_use]
    pub fn abs(self) -> Decimal128 {
        if self.is_negative() { -self } else { self }
    }

    /// Returns the square root, correctly rounded; NaN of a negative number.
    #[must_use]
    pub fn sqrt(self) -> Decimal128 {
        match self.parts() {
            Parts::Finite { negative, coefficient: 0, exponent } => {
                Decimal128::finite(negative, 0, exponent.div_euclid(2))
            }
            Parts::Finite { negative: false, coefficient, exponent } => square_root(coefficient, exponent),
            Parts::Infinity { negative: false } => self,
            _ => Decimal128::NAN,
        }
    }
}

fn square_root(coefficient: u128, exponent: i32) -> Decimal128 {
    let preferred = i64::from(exponent.div_euclid(2));
    // As many digits as fit, and an even exponent.
    let mut scale = 2 * DIGITS_MAX + 4 - Wide::from(coefficient).digits();
    scale -= u32::from((exponent - scale as i32) % 2 != 0);
    let scaled = Wide::from(coefficient).scaled(scale);
    let (root, remainder) = scaled.square_root();
    let mut root = Wide::from(root);
    let mut exponent = i64::from((exponent - scale as i32) / 2);
    while remainder.is_zero() && exponent < preferred.min(EXPONENT_MAX.into()) {
        let (shorter, 0) = root.divided(10) else { break };
        root = shorter;
        exponent += 1;
    }
    Decimal128::rounded(false, root, !remainder.is_zero(), exponent)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Decimal128 {
        text.parse().expect(text)
    }

    const MAX: &str = "9.999999999999999999999999999999999E+6144";
    const NINES: &str = "9999999999999999999999999999999999";
    const ONE_THIRD: &str = "0.3333333333333333333333333333333333";
    const TWO_THIRDS: &str = "0.6666666666666666666666666666666667";

    /// Left, operator, right, result.
    const CASES: &[(&str, char, &str, &str)] = &[
        ("1", '+', "1", "2"),
        ("1.10", '+', "2.2", "3.30"),
        ("0.1", '+', "0.2", "0.3"),
        ("1E+10", '+', "0E-5", "10000000000.00000"),
        ("1E+40", '+', "0E-40", "1.000000000000000000000000000000000E+40"),
        ("0E+40", '+', "1.5", "1.5"),
        ("-0", '+', "-0", "-0"),
        ("-0", '+', "0", "0"),
        ("5", '-', "5.00", "0.00"),
        (NINES, '+', "1", "1.000000000000000000000000000000000E+34"),
        (NINES, '+', "0.5", "1.000000000000000000000000000000000E+34"),
        (NINES, '+', "0.4", NINES),
        (NINES, '+', "1E-6000", NINES),
        ("1E+34", '-', "1", NINES),
        ("1E+34", '-', "0.1", "1.000000000000000000000000000000000E+34"),
        ("1E+34", '-', "0.5", "1.000000000000000000000000000000000E+34"),
        ("1E+34", '-', "0.6", "9999999999999999999999999999999999"),
        ("1E+34", '-', "1E-6000", "1.000000000000000000000000000000000E+34"),
        ("1", '-', "1E-34", "0.9999999999999999999999999999999999"),
        ("1E-6000", '-', "1E+34", "-1.000000000000000000000000000000000E+34"),
        (MAX, '+', MAX, "Infinity"),
        ("Infinity", '-', "Infinity", "NaN"),
        ("Infinity", '+', "-1", "Infinity"),
        ("NaN", '+', "1", "NaN"),
        ("1.5", '*', "2", "3.0"),
        ("-1.5", '*', "0", "-0.0"),
        ("1E+6000", '*', "1E+6000", "Infinity"),
        ("1E-6000", '*', "1E-6000", "0E-6176"),
        (NINES, '*', NINES, "9.999999999999999999999999999999998E+67"),
        ("Infinity", '*', "0", "NaN"),
        ("Infinity", '*', "-2", "-Infinity"),
        ("1", '/', "3", ONE_THIRD),
        ("2", '/', "3", TWO_THIRDS),
        ("6", '/', "3", "2"),
        ("1", '/', "8", "0.125"),
        ("1.00", '/', "2", "0.50"),
        ("100", '/', "1E-2", "1.00E+4"),
        ("5", '/', "0", "Infinity"),
        ("-5", '/', "0", "-Infinity"),
        ("0", '/', "0", "NaN"),
        ("0.0", '/', "-5", "-0.0"),
        ("1", '/', "Infinity", "0E-6176"),
        ("Infinity", '/', "Infinity", "NaN"),
        ("7", '%', "3", "1"),
        ("-7", '%', "3", "-1"),
        ("7", '%', "-3", "1"),
        ("7.5", '%', "2", "1.5"),
        ("1", '%', "0.3", "0.1"),
        ("1E+6000", '%', "7", "1"),
        ("5", '%', "1E+6000", "5"),
        ("5", '%', "0", "NaN"),
        ("5", '%', "Infinity", "5"),
        ("Infinity", '%', "5", "NaN"),
        ("-6", '%', "3", "-0"),
    ];

    #[test]
    fn results_are_those_of_the_standard() {
        for (left, operator, right, result) in CASES {
            let (a, b) = (read(left), read(right));
            let number = match operator {
                '+' => a + b,
                '-' => a - b,
                '*' => a * b,
                '/' => a / b,
                _ => a % b,
            };
            assert_eq!(number.to_string(), *result, "{left} {operator} {right}");
        }
    }

    #[test]
    fn roots_are_rounded_correctly() {
        for (number, root) in [
            ("0", "0"),
            ("-0", "-0"),
            ("4", "2"),
            ("2", "1.414213562373095048801688724209698"),
            ("0.25", "0.5"),
            ("1E+2", "1E+1"),
            ("1E+3", "31.62277660168379331998893544432719"),
            ("0.01", "0.1"),
            (MAX, "3.162277660168379331998893544432718E+3072"),
            ("1E-6176", "1E-3088"),
            ("-1", "NaN"),
            ("Infinity", "Infinity"),
        ] {
            assert_eq!(read(number).sqrt().to_string(), root, "{number}");
        }
    }
}

//! Fixed-point numbers with 90 digits behind the point: room to compute functions whose results are then rounded to 34.

use std::fmt::Write as _;

use super::{Decimal128, Wide};

/// Eighteen decimal digits in each limb, the least significant first.
const LIMB_DIGITS: usize = 18;
const LIMB: u64 = 1_000_000_000_000_000_000;
const LIMBS: usize = 8;
/// Limbs behind the point.
const FRACTION: usize = 5;
const FRACTION_DIGITS: i64 = (FRACTION * LIMB_DIGITS) as i64;
const DIGITS: usize = LIMBS * LIMB_DIGITS;
/// Digits that decide how a result is rounded; those behind them only leave a mark.
const KEPT_DIGITS: usize = 60;

/// A number below 10^54.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fixed {
    negative: bool,
    limbs: [u64; LIMBS],
}

/// The natural logarithm of ten.
pub(super) const LN_10: Fixed = Fixed::constant([
    677_352_480_235_997_205,
    33_327_900_967_572_609,
    601_101_488_628_772_976,
    17_991_454_684_364_207,
    302_585_092_994_045_684,
    2,
    0,
    0,
]);
/// The decimal logarithm of e.
pub(super) const LOG_10_E: Fixed = Fixed::constant([
    208_870_774_729_224_949,
    114_453_783_165_864_649,
    294_397_005_803_666_566,
    651_128_918_916_605_082,
    434_294_481_903_251_827,
    0,
    0,
    0,
]);
pub(super) const ONE: Fixed = Fixed::constant([0, 0, 0, 0, 0, 1, 0, 0]);

impl Fixed {
    const fn constant(limbs: [u64; LIMBS]) -> Fixed {
        Fixed { negative: false, limbs }
    }

    /// Creates the number, without what is behind its 90th digit; `None` if it is too large.
    pub(super) fn new(negative: bool, coefficient: u128, exponent: i64) -> Option<Fixed> {
        let mut digits = coefficient.to_string();
        let shift = exponent + FRACTION_DIGITS;
        if shift < 0 {
            let kept = digits.len().saturating_sub(shift.unsigned_abs() as usize);
            digits.truncate(kept);
        } else {
            if digits.len() as i64 + shift > DIGITS as i64 {
                return (coefficient == 0).then_some(Fixed::constant([0; LIMBS]));
            }
            digits.extend(std::iter::repeat_n('0', shift as usize));
        }
        let mut limbs = [0; LIMBS];
        for (limb, chunk) in limbs.iter_mut().zip(digits.as_bytes().rchunks(LIMB_DIGITS)) {
            *limb = chunk.iter().fold(0, |limb, digit| limb * 10 + u64::from(digit - b'0'));
        }
        Some(Fixed { negative, limbs })
    }

    /// Returns the decimal nearest to this number times ten to the `exponent`.
    pub(super) fn rounded(self, exponent: i64) -> Decimal128 {
        let mut digits = String::new();
        for limb in self.limbs.iter().rev() {
            write!(digits, "{limb:018}").expect("a string takes everything");
        }
        let digits = digits.trim_start_matches('0');
        let kept = &digits[..digits.len().min(KEPT_DIGITS)];
        let dropped = &digits[kept.len()..];
        let coefficient = kept
            .bytes()
            .fold(Wide::from(0), |number, digit| number.scaled(1).plus(Wide::from(u128::from(digit - b'0'))));
        let exponent = exponent - FRACTION_DIGITS + dropped.len() as i64;
        Decimal128::rounded(self.negative, coefficient, dropped.bytes().any(|digit| digit != b'0'), exponent)
    }

    pub(super) fn is_zero(self) -> bool {
        self.limbs == [0; LIMBS]
    }

    pub(super) fn negated(self) -> Fixed {
        Fixed { negative: !self.negative, ..self }
    }

    /// Returns an approximation of the number.
    pub(super) fn approximate(self) -> f64 {
        let size = self.limbs.iter().enumerate().rev().fold(0.0, |size, (place, limb)| {
            let power = (place as i32 - FRACTION as i32) * LIMB_DIGITS as i32;
            size + *limb as f64 * 10_f64.powi(power)
        });
        if self.negative { -size } else { size }
    }

    pub(super) fn plus(self, other: Fixed) -> Fixed {
        if self.negative == other.negative {
            let mut carry = 0;
            let limbs = std::array::from_fn(|place| {
                let sum = self.limbs[place] + other.limbs[place] + carry;
                carry = u64::from(sum >= LIMB);
                sum - carry * LIMB
            });
            return Fixed { negative: self.negative, limbs };
        }
        let larger_first = self.limbs.iter().rev().ge(other.limbs.iter().rev());
        let (large, small) = if larger_first { (self, other) } else { (other, self) };
        let mut borrow = 0;
        let limbs = std::array::from_fn(|place| {
            let subtracted = small.limbs[place] + borrow;
            borrow = u64::from(large.limbs[place] < subtracted);
            large.limbs[place] + borrow * LIMB - subtracted
        });
        Fixed { negative: large.negative, limbs }
    }

    /// Returns the product, without what is behind the 90th digit. It has to be below 10^54.
    pub(super) fn times(self, other: Fixed) -> Fixed {
        let mut product = [0_u128; 2 * LIMBS + 1];
        for (place, left) in self.limbs.iter().enumerate() {
            let mut carry = 0_u128;
            for (offset, right) in other.limbs.iter().enumerate() {
                let sum = product[place + offset] + u128::from(*left) * u128::from(*right) + carry;
                product[place + offset] = sum % u128::from(LIMB);
                carry = sum / u128::from(LIMB);
            }
            product[place + LIMBS] += carry;
        }
        let limbs = std::array::from_fn(|place| product[place + FRACTION] as u64);
        Fixed { negative: self.negative != other.negative, limbs }
    }

    pub(super) fn divided_by(self, divisor: u32) -> Fixed {
        let mut remainder = 0_u128;
        let mut limbs = [0; LIMBS];
        for place in (0..LIMBS).rev() {
            let number = remainder * u128::from(LIMB) + u128::from(self.limbs[place]);
            limbs[place] = (number / u128::from(divisor)) as u64;
            remainder = number % u128::from(divisor);
        }
        Fixed { limbs, ..self }
    }
}

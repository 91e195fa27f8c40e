//! Integers of 256 bits: where the product of two coefficients has room before it is rounded.

use std::cmp::Ordering;

/// An unsigned integer. All that is made here stays below 10^76.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Wide {
    high: u128,
    low: u128,
}

/// The largest power of ten that is taken at once.
const STEP_DIGITS: u32 = 38;

impl From<u128> for Wide {
    fn from(low: u128) -> Wide {
        Wide { high: 0, low }
    }
}

impl Wide {
    pub(crate) fn product(left: u128, right: u128) -> Wide {
        const HALF: u128 = u64::MAX as u128;
        let (left_high, left_low) = (left >> 64, left & HALF);
        let (right_high, right_low) = (right >> 64, right & HALF);
        let low = left_low * right_low;
        let crossed = left_high * right_low + (low >> 64);
        let middle = left_low * right_high + (crossed & HALF);
        Wide {
            high: left_high * right_high + (crossed >> 64) + (middle >> 64),
            low: middle << 64 | low & HALF,
        }
    }

    pub(crate) fn plus(self, other: Wide) -> Wide {
        let (low, carry) = self.low.overflowing_add(other.low);
        Wide { high: self.high + other.high + u128::from(carry), low }
    }

    /// Returns the difference; `other` is not larger.
    pub(crate) fn minus(self, other: Wide) -> Wide {
        let (low, borrow) = self.low.overflowing_sub(other.low);
        Wide { high: self.high - other.high - u128::from(borrow), low }
    }

    /// Returns the low half, if that is all.
    pub(crate) fn narrow(self) -> Option<u128> {
        (self.high == 0).then_some(self.low)
    }

    /// Returns the number times ten to the `digits`; the result has to be below 10^76.
    pub(crate) fn scaled(self, digits: u32) -> Wide {
        let mut left = digits;
        let mut scaled = self;
        while left > 0 {
            let step = left.min(STEP_DIGITS);
            let factor = 10_u128.pow(step);
            let low = Wide::product(scaled.low, factor);
            scaled = Wide { high: low.high + scaled.high * factor, low: low.low };
            left -= step;
        }
        scaled
    }

    pub(crate) fn is_zero(self) -> bool {
        self.high == 0 && self.low == 0
    }

    /// Returns the number of decimal digits; zero has none.
    pub(crate) fn digits(self) -> u32 {
        let of = |part: u128| part.checked_ilog10().map_or(0, |log| log + 1);
        if self.high == 0 {
            return of(self.low);
        }
        let (above, _) = self.divided(10_u128.pow(STEP_DIGITS));
        STEP_DIGITS + of(above.low)
    }

    /// Quotient and remainder. The divisor is below 2^127.
    pub(crate) fn divided(self, divisor: u128) -> (Wide, u128) {
        if self.high == 0 {
            return (Wide::from(self.low / divisor), self.low % divisor);
        }
        let mut quotient = Wide { high: self.high / divisor, low: 0 };
        let mut remainder = self.high % divisor;
        for bit in (0..128).rev() {
            remainder = remainder << 1 | (self.low >> bit) & 1;
            if remainder >= divisor {
                remainder -= divisor;
                quotient.low |= 1 << bit;
            }
        }
        (quotient, remainder)
    }

    /// Returns the whole square root, and what is left of the number.
    pub(crate) fn square_root(self) -> (u128, Wide) {
        // Bit by bit from the top: a bit belongs to the root if its square, with what is there, still fits.
        let mut root = 0_u128;
        for bit in (0..128).rev() {
            let tried = root | 1 << bit;
            if Wide::product(tried, tried) <= self {
                root = tried;
            }
        }
        (root, self.minus(Wide::product(root, root)))
    }

    /// Returns the number without its last `drop` digits, and how what was dropped compares with half a unit.
    pub(crate) fn without(self, drop: i64, rest: bool) -> (Wide, Dropped) {
        if drop <= 0 {
            let dropped = if rest { Dropped::BelowHalf } else { Dropped::Nothing };
            return (self, dropped);
        }
        if drop > i64::from(self.digits()) {
            let nothing = self.is_zero() && !rest;
            return (Wide::from(0), if nothing { Dropped::Nothing } else { Dropped::BelowHalf });
        }
        // All but the last digit to drop only leave a mark; the last one decides.
        let mut rest = rest;
        let mut number = self;
        let mut left = drop as u32 - 1;
        while left > 0 {
            let step = left.min(STEP_DIGITS - 1);
            let (quotient, remainder) = number.divided(10_u128.pow(step));
            number = quotient;
            rest |= remainder != 0;
            left -= step;
        }
        let (kept, last) = number.divided(10);
        let dropped = match (last.cmp(&5), rest) {
            (Ordering::Less, _) if last == 0 && !rest => Dropped::Nothing,
            (Ordering::Less, _) => Dropped::BelowHalf,
            (Ordering::Equal, false) => Dropped::Half,
            _ => Dropped::AboveHalf,
        };
        (kept, dropped)
    }

    /// Returns the number without its last `drop` digits, rounded to nearest, ties to even. What is left has at most 37
    /// digits.
    pub(crate) fn round_half_even(self, drop: i64, rest: bool) -> u128 {
        let (kept, dropped) = self.without(drop, rest);
        debug_assert!(kept.high == 0, "too many digits were kept");
        match dropped {
            Dropped::AboveHalf => kept.low + 1,
            Dropped::Half => kept.low + (kept.low & 1),
            Dropped::Nothing | Dropped::BelowHalf => kept.low,
        }
    }
}

/// How much was cut off, in units of the last digit kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dropped {
    Nothing,
    BelowHalf,
    Half,
    AboveHalf,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn product_and_quotient_undo_each_other() {
        for (left, right) in
            [(0, 5), (1, u128::MAX / 2), (10_u128.pow(34) - 1, 10_u128.pow(34) - 3), (u128::MAX >> 1, 12_345)]
        {
            let product = Wide::product(left, right);
            assert_eq!(product.divided(right), (Wide::from(left), 0), "{left} x {right}");
            let (quotient, remainder) = product.plus(Wide::from(right - 1)).divided(right);
            assert_eq!((quotient, remainder), (Wide::from(left), right - 1), "{left} x {right}");
            assert_eq!(product.plus(Wide::from(right)).minus(product), Wide::from(right));
        }
    }

    #[test]
    fn digits_are_counted() {
        for digits in 1..76 {
            let power = Wide::from(1).scaled(digits);
            assert_eq!(power.digits(), digits + 1);
        }
        assert_eq!(Wide::from(0).digits(), 0);
    }

    #[test]
    fn what_is_dropped_is_weighed() {
        let dropped = |number: u128, drop, rest| Wide::from(number).without(drop, rest).1;
        assert_eq!(dropped(1250, 2, false), Dropped::Half);
        assert_eq!(dropped(1250, 2, true), Dropped::AboveHalf);
        assert_eq!(dropped(1200, 2, false), Dropped::Nothing);
        assert_eq!(dropped(1200, 2, true), Dropped::BelowHalf);
        assert_eq!(dropped(5, 1, false), Dropped::Half);
        assert_eq!(dropped(5, 2, false), Dropped::BelowHalf);
        assert_eq!(dropped(0, 9, false), Dropped::Nothing);
        assert_eq!(Wide::from(25).round_half_even(1, false), 2);
        assert_eq!(Wide::from(35).round_half_even(1, false), 4);
        assert_eq!(Wide::from(1).scaled(70).round_half_even(68, false), 100);
    }
}

//! Decimal128: a decimal floating-point number of 34 digits (IEEE 754-2008, binary integer decimal encoding).
//!
//! ```text
//! bit 127       sign
//! bits 126..    11111 NaN, 11110 infinity
//!               11 e(14) ...   a coefficient that is too large to be canonical: read as zero
//!               e(14) c(113)   exponent + 6176, coefficient below 10^34
//! ```
//!
//! `1.0` and `1.00` are one number in two representations, and arithmetic chooses the representation as the standard says:
//! a sum has the finer of both exponents, a product their sum, a quotient the one nearest to their difference.

mod arithmetic;
mod convert;
mod fixed;
mod functions;
mod order;
mod text;
mod wide;

pub use self::convert::Rounding;
use self::wide::Wide;

/// The sixteen bytes as BSON has them, little-endian.
///
/// The derived equality is of bytes: `1.0` and `1.00` are different spellings of one number. [`crate::equal`] compares numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Decimal128(pub [u8; 16]);

/// How many digits a coefficient has at most.
pub(crate) const DIGITS_MAX: u32 = 34;
pub(crate) const EXPONENT_MIN: i32 = -6176;
pub(crate) const EXPONENT_MAX: i32 = 6111;
const COEFFICIENT_MAX: u128 = 10_u128.pow(DIGITS_MAX) - 1;

/// The decoded form of the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parts {
    NaN,
    Infinity { negative: bool },
    Finite { negative: bool, coefficient: u128, exponent: i32 },
}

impl Decimal128 {
    /// Zero, spelled `0`.
    pub const ZERO: Decimal128 = Decimal128::constant(0b0011_0000_0100 << 116);
    /// Not a number.
    pub const NAN: Decimal128 = Decimal128::constant(0b0111_1100 << 120);
    /// Beyond all numbers.
    pub const INFINITY: Decimal128 = Decimal128::constant(0b0111_1000 << 120);
    /// Below all numbers.
    pub const NEGATIVE_INFINITY: Decimal128 = Decimal128::constant(0b1111_1000 << 120);

    const fn constant(bits: u128) -> Decimal128 {
        Decimal128(bits.to_le_bytes())
    }

    pub(crate) fn infinity(negative: bool) -> Decimal128 {
        if negative { Decimal128::NEGATIVE_INFINITY } else { Decimal128::INFINITY }
    }

    /// Returns a finite number. The coefficient has at most 34 digits, the exponent is in range.
    pub(crate) fn finite(negative: bool, coefficient: u128, exponent: i32) -> Decimal128 {
        debug_assert!(coefficient <= COEFFICIENT_MAX && (EXPONENT_MIN..=EXPONENT_MAX).contains(&exponent));
        let biased = (exponent - EXPONENT_MIN) as u128;
        let sign = u128::from(negative) << 127;
        Decimal128((sign | biased << 113 | coefficient).to_le_bytes())
    }

    /// Decodes the number.
    pub(crate) fn parts(self) -> Parts {
        let bits = u128::from_le_bytes(self.0);
        let negative = bits >> 127 == 1;
        match (bits >> 122) & 0b11111 {
            0b11111 => Parts::NaN,
            0b11110 => Parts::Infinity { negative },
            top if top >> 3 == 0b11 => {
                let exponent = ((bits >> 111) & 0x3FFF) as i32 + EXPONENT_MIN;
                Parts::Finite { negative, coefficient: 0, exponent }
            }
            _ => {
                let exponent = ((bits >> 113) & 0x3FFF) as i32 + EXPONENT_MIN;
                let coefficient = bits & ((1 << 113) - 1);
                let coefficient = if coefficient > COEFFICIENT_MAX { 0 } else { coefficient };
                Parts::Finite { negative, coefficient, exponent }
            }
        }
    }

    /// Returns `true` if this is not a number.
    pub fn is_nan(self) -> bool {
        self.parts() == Parts::NaN
    }

    /// Returns `true` if this is one of the infinities.
    pub fn is_infinite(self) -> bool {
        matches!(self.parts(), Parts::Infinity { .. })
    }

    /// Returns `true` if this is a number proper.
    pub fn is_finite(self) -> bool {
        matches!(self.parts(), Parts::Finite { .. })
    }

    /// Returns `true` if this is zero, in any spelling and with any sign.
    pub fn is_zero(self) -> bool {
        matches!(self.parts(), Parts::Finite { coefficient: 0, .. })
    }

    /// Returns `true` if the sign is minus, also of zero.
    pub fn is_negative(self) -> bool {
        match self.parts() {
            Parts::NaN => false,
            Parts::Infinity { negative } | Parts::Finite { negative, .. } => negative,
        }
    }

    /// Returns the number nearest to `coefficient` times ten to the `exponent`, ties to the even digit; infinity past the
    /// largest.
    ///
    /// `rest` says that the true number is a little larger than the coefficient tells.
    pub(crate) fn rounded(negative: bool, coefficient: Wide, rest: bool, exponent: i64) -> Decimal128 {
        let excess = i64::from(coefficient.digits()) - i64::from(DIGITS_MAX);
        let drop = excess.max(i64::from(EXPONENT_MIN) - exponent).max(0);
        let exponent = exponent + drop;
        let coefficient = coefficient.round_half_even(drop, rest);
        // Rounding up may have given one digit more: 10^34, whose last digit is a zero.
        let (mut coefficient, mut exponent) = match coefficient {
            whole if whole > COEFFICIENT_MAX => (whole / 10, exponent + 1),
            coefficient => (coefficient, exponent),
        };
        if coefficient == 0 {
            exponent = exponent.min(EXPONENT_MAX.into());
        }
        while exponent > EXPONENT_MAX.into() && coefficient <= COEFFICIENT_MAX / 10 {
            coefficient *= 10;
            exponent -= 1;
        }
        if exponent > EXPONENT_MAX.into() {
            return Decimal128::infinity(negative);
        }
        Decimal128::finite(negative, coefficient, exponent as i32)
    }
}

impl From<i64> for Decimal128 {
    fn from(value: i64) -> Decimal128 {
        Decimal128::finite(value < 0, u128::from(value.unsigned_abs()), 0)
    }
}

impl From<i32> for Decimal128 {
    fn from(value: i32) -> Decimal128 {
        Decimal128::from(i64::from(value))
    }
}

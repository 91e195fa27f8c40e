//! Decimal128 from and to text, in the form that the BSON specification gives.

use std::fmt;
use std::str::FromStr;

use super::{Decimal128, Parts, Wide};
use crate::error::Error;

/// Digits that are kept while reading; more only leave a mark that there were some.
const DIGITS_READ: u32 = 70;

impl FromStr for Decimal128 {
    type Err = Error;

    /// Reads `[sign] digits [. digits] [e [sign] digits]`, `NaN`, `Inf` or `Infinity` in any case. More than 34 digits are
    /// rounded to nearest, ties to even; a number past the largest is an error, one below the smallest is zero.
    fn from_str(text: &str) -> Result<Decimal128, Error> {
        let wrong = || Error::Text(format!("'{}' is not a decimal number", crate::shorten::shorten(text)));
        let (negative, unsigned) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        if unsigned.eq_ignore_ascii_case("nan") {
            return Ok(Decimal128::NAN);
        }
        if unsigned.eq_ignore_ascii_case("inf") || unsigned.eq_ignore_ascii_case("infinity") {
            return Ok(Decimal128::infinity(negative));
        }
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, read_exponent(exponent).ok_or_else(wrong)?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let mut digits = whole.bytes().chain(fraction.bytes());
        if whole.len() + fraction.len() == 0 || !digits.all(|digit| digit.is_ascii_digit()) {
            return Err(wrong());
        }
        let read = read_digits(whole, fraction);
        let number = Decimal128::rounded(negative, read.coefficient, read.rest, read.exponent + exponent);
        if number.is_infinite() {
            let shown = crate::shorten::shorten(text);
            return Err(Error::Text(format!("'{shown}' is out of range of a decimal number")));
        }
        Ok(number)
    }
}

struct Digits {
    coefficient: Wide,
    exponent: i64,
    rest: bool,
}

fn read_digits(whole: &str, fraction: &str) -> Digits {
    let mut digits = Digits { coefficient: Wide::from(0), exponent: -(fraction.len() as i64), rest: false };
    for digit in whole.bytes().chain(fraction.bytes()).map(|digit| u128::from(digit - b'0')) {
        if digits.coefficient.digits() < DIGITS_READ {
            digits.coefficient = digits.coefficient.scaled(1).plus(Wide::from(digit));
        } else {
            digits.rest |= digit != 0;
            digits.exponent += 1;
        }
    }
    digits
}

/// Returns the exponent, held within a range that is far outside of what matters.
fn read_exponent(text: &str) -> Option<i64> {
    const FAR: i64 = 1_000_000_000_000;
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if digits.is_empty() {
        return None;
    }
    let size = digits.bytes().try_fold(0_i64, |size, digit| {
        digit.is_ascii_digit().then(|| (size * 10 + i64::from(digit - b'0')).min(FAR))
    })?;
    Some(if negative { -size } else { size })
}

impl fmt::Display for Decimal128 {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (negative, coefficient, exponent) = match self.parts() {
            Parts::NaN => return out.write_str("NaN"),
            Parts::Infinity { negative: true } => return out.write_str("-Infinity"),
            Parts::Infinity { negative: false } => return out.write_str("Infinity"),
            Parts::Finite { negative, coefficient, exponent } => (negative, coefficient, exponent),
        };
        if negative {
            out.write_str("-")?;
        }
        let digits = coefficient.to_string();
        // The exponent as it would be with one digit before the point.
        let scientific = exponent + digits.len() as i32 - 1;
        if exponent > 0 || scientific < -6 {
            let (first, others) = digits.split_at(1);
            let point = if others.is_empty() { "" } else { "." };
            return write!(out, "{first}{point}{others}E{scientific:+}");
        }
        if exponent == 0 {
            return out.write_str(&digits);
        }
        let behind = exponent.unsigned_abs() as usize;
        if digits.len() > behind {
            let (whole, fraction) = digits.split_at(digits.len() - behind);
            write!(out, "{whole}.{fraction}")
        } else {
            write!(out, "0.{digits:0>behind$}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text, and how it is printed again; empty where it is the same.
    const TEXTS: &[(&str, &str)] = &[
        ("0", ""),
        ("-0", ""),
        ("+1", "1"),
        ("-0.0", ""),
        ("0.000001", ""),
        ("0.0000001", "1E-7"),
        ("0E-6176", ""),
        ("0E+6111", ""),
        ("0E+9999", "0E+6111"),
        ("0E-9999", "0E-6176"),
        ("12345678901234567", ""),
        ("1.5", ""),
        ("1.50", ""),
        (".5", "0.5"),
        ("5.", "5"),
        ("1e3", "1E+3"),
        ("10E2", "1.0E+3"),
        ("123.456E-10", "1.23456E-8"),
        ("9.999999999999999999999999999999999E+6144", ""),
        ("1E+6144", "1.000000000000000000000000000000000E+6144"),
        ("1E-6176", ""),
        ("1E-6177", "0E-6176"),
        ("5E-6177", "0E-6176"),
        ("6E-6177", "1E-6176"),
        ("1234567890123456789012345678901234", ""),
        ("12345678901234567890123456789012345", "1.234567890123456789012345678901234E+34"),
        ("12345678901234567890123456789012355", "1.234567890123456789012345678901236E+34"),
        ("99999999999999999999999999999999995", "1.000000000000000000000000000000000E+35"),
        ("nan", "NaN"),
        ("-NaN", "NaN"),
        ("inf", "Infinity"),
        ("-Infinity", ""),
    ];

    #[test]
    fn texts_are_read_and_written() {
        for (text, back) in TEXTS {
            let number: Decimal128 = text.parse().expect(text);
            let back = if back.is_empty() { text } else { back };
            assert_eq!(number.to_string(), *back, "{text}");
        }
    }

    #[test]
    fn wrong_texts_are_refused() {
        for text in [
            "", ".", "-", "e5", "1e", "1e+", "1..2", "1.2.3", "--1", "0x1", " 1", "1 ", "infin", "1E6145",
            "٣",
        ] {
            assert!(text.parse::<Decimal128>().is_err(), "{text}");
        }
    }

    #[test]
    fn digits_past_all_bounds_still_round() {
        let long = format!("0.{}{}1", "5".repeat(34), "0".repeat(500));
        assert_eq!(
            long.parse::<Decimal128>().expect("a number").to_string(),
            format!("0.{}", "5".repeat(34))
        );
        let half = format!("1.{}5{}1", "0".repeat(33), "0".repeat(500));
        let above = format!("1.{}1", "0".repeat(32));
        assert_eq!(half.parse::<Decimal128>().expect("a number").to_string(), above);
        let leading = format!("{}7", "0".repeat(5000));
        assert_eq!(leading.parse::<Decimal128>().expect("a number").to_string(), "7");
    }
}

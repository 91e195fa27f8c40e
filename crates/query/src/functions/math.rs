//! Functions of numbers. They compute with doubles; an argument that is not a number, or a result that is not finite, makes
//! the call undefined.

use std::f64::consts::PI;

use document::Value;

use super::{Arg, Entry, number};
use crate::functions::context::Context;

/// The functions of this file.
pub(crate) const TABLE: &[Entry] = &[
    Entry { name: "ABS", least: 1, most: 1, run: |a, _| apply(a, f64::abs) },
    Entry { name: "ACOS", least: 1, most: 1, run: |a, _| apply(a, f64::acos) },
    Entry { name: "ASIN", least: 1, most: 1, run: |a, _| apply(a, f64::asin) },
    Entry { name: "ATAN", least: 1, most: 1, run: |a, _| apply(a, f64::atan) },
    Entry { name: "ATN2", least: 2, most: 2, run: |a, _| apply_two(a, f64::atan2) },
    Entry { name: "CEILING", least: 1, most: 1, run: |a, _| apply(a, f64::ceil) },
    Entry { name: "COS", least: 1, most: 1, run: |a, _| apply(a, f64::cos) },
    Entry { name: "COT", least: 1, most: 1, run: |a, _| apply(a, |x| x.tan().recip()) },
    Entry { name: "DEGREES", least: 1, most: 1, run: |a, _| apply(a, f64::to_degrees) },
    Entry { name: "EXP", least: 1, most: 1, run: |a, _| apply(a, f64::exp) },
    Entry { name: "FLOOR", least: 1, most: 1, run: |a, _| apply(a, f64::floor) },
    Entry { name: "LOG", least: 1, most: 2, run: log },
    Entry { name: "LOG10", least: 1, most: 1, run: |a, _| apply(a, f64::log10) },
    Entry { name: "NUMBERBIN", least: 1, most: 2, run: number_bin },
    Entry { name: "PI", least: 0, most: 0, run: |_, _| number(PI) },
    Entry { name: "POWER", least: 2, most: 2, run: |a, _| apply_two(a, f64::powf) },
    Entry { name: "RADIANS", least: 1, most: 1, run: |a, _| apply(a, f64::to_radians) },
    Entry { name: "RAND", least: 0, most: 0, run: |_, context| number(context.random()) },
    Entry { name: "ROUND", least: 1, most: 2, run: round },
    Entry { name: "SIGN", least: 1, most: 1, run: |a, _| apply(a, sign) },
    Entry { name: "SIN", least: 1, most: 1, run: |a, _| apply(a, f64::sin) },
    Entry { name: "SQRT", least: 1, most: 1, run: |a, _| apply(a, f64::sqrt) },
    Entry { name: "SQUARE", least: 1, most: 1, run: |a, _| apply(a, |x| x * x) },
    Entry { name: "TAN", least: 1, most: 1, run: |a, _| apply(a, f64::tan) },
    Entry { name: "TRUNC", least: 1, most: 1, run: |a, _| apply(a, f64::trunc) },
];

fn apply(arguments: &[Arg<'_>], function: fn(f64) -> f64) -> Option<Value> {
    number(function(arguments[0]?.as_f64()?))
}

fn apply_two(arguments: &[Arg<'_>], function: fn(f64, f64) -> f64) -> Option<Value> {
    number(function(arguments[0]?.as_f64()?, arguments[1]?.as_f64()?))
}

fn sign(x: f64) -> f64 {
    if x == 0.0 { 0.0 } else { x.signum() }
}

/// Returns the natural logarithm, or that of a base. Bases 2 and 10 have functions of their own, which hit whole results.
fn log(arguments: &[Arg<'_>], _: &Context) -> Option<Value> {
    let x = arguments[0]?.as_f64()?;
    let Some(base) = arguments.get(1) else { return number(x.ln()) };
    let base = (*base)?;
    number(match base.as_i64() {
        Some(2) => x.log2(),
        Some(10) => x.log10(),
        _ => x.log(base.as_f64()?),
    })
}

/// Rounds down to a multiple of the bin's size; a negative size counts from the other side and so rounds up.
fn number_bin(arguments: &[Arg<'_>], _: &Context) -> Option<Value> {
    let x = arguments[0]?.as_f64()?;
    let size = arguments.get(1).map_or(Some(1.0), |size| (*size)?.as_f64())?;
    number((x / size).floor() * size)
}

/// Rounds to the nearest whole number, or to that many digits after the point (before it when negative); halves away
/// from zero.
fn round(arguments: &[Arg<'_>], _: &Context) -> Option<Value> {
    // 10^308 is the largest power that a double holds.
    const MOST_DIGITS: i64 = 308;
    let x = arguments[0]?.as_f64()?;
    let digits = arguments.get(1).map_or(Some(0), |digits| (*digits)?.as_i64())?;
    let scale = 10_f64.powi(digits.unsigned_abs().min(MOST_DIGITS as u64) as i32);
    let rounded = if digits >= 0 { (x * scale).round() / scale } else { (x / scale).round() * scale };
    // With so many digits scaling overflows, and the number has no digits to round.
    number(if rounded.is_finite() { rounded } else { x })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{call, check};
    use super::*;

    #[test]
    fn rounding_and_signs() {
        check(&[
            ("ABS", "-1", "1"),
            ("ABS", "-0.5", "0.5"),
            ("ABS", "0", "0"),
            ("ABS", r#""1""#, "undefined"),
            ("ABS", "undefined", "undefined"),
            ("ABS", "null", "undefined"),
            ("CEILING", "62.6", "63"),
            ("CEILING", "-145.12", "-145"),
            ("CEILING", "-0.5", "0"),
            ("CEILING", "null", "undefined"),
            ("FLOOR", "62.6", "62"),
            ("FLOOR", "-145.12", "-146"),
            ("FLOOR", "[1]", "undefined"),
            ("TRUNC", "2.4", "2"),
            ("TRUNC", "-2.6", "-2"),
            ("TRUNC", "1e300", "1e300"),
            ("TRUNC", "true", "undefined"),
            ("ROUND", "2.4", "2"),
            ("ROUND", "2.5", "3"),
            ("ROUND", "-2.5", "-3"),
            ("ROUND", "2.345678, 2", "2.35"),
            ("ROUND", "0.125, 2", "0.13"),
            ("ROUND", "1250, -2", "1300"),
            ("ROUND", "123.456, 400", "123.456"),
            ("ROUND", "123.456, -400", "0"),
            ("ROUND", "123.456, 9223372036854775807", "123.456"),
            ("ROUND", "1e308, 5", "1e308"),
            ("ROUND", "2.4, 0.5", "undefined"),
            ("ROUND", "2.4, undefined", "undefined"),
            ("ROUND", "false", "undefined"),
            ("SIGN", "-1.5", "-1"),
            ("SIGN", "0", "0"),
            ("SIGN", "-0.0", "0"),
            ("SIGN", "7", "1"),
            ("SIGN", "{}", "undefined"),
            ("NUMBERBIN", "37.752, -100", "100"),
            ("NUMBERBIN", "37.752, 10", "30"),
            ("NUMBERBIN", "37.752, 1", "37"),
            ("NUMBERBIN", "37.752", "37"),
            ("NUMBERBIN", "37.752, 0", "undefined"),
            ("NUMBERBIN", "37.752, 0.1", "37.7"),
            ("NUMBERBIN", "37.752, 0.01", "37.75"),
            ("NUMBERBIN", "-1, 10", "-10"),
            ("NUMBERBIN", r#""1", 10"#, "undefined"),
            ("NUMBERBIN", "1, null", "undefined"),
        ]);
    }

    #[test]
    fn powers_and_logarithms() {
        check(&[
            ("EXP", "0", "1"),
            ("EXP", "1000", "undefined"),
            ("EXP", r#""0""#, "undefined"),
            ("LOG", "1", "0"),
            ("LOG", "8, 2", "3"),
            ("LOG", "1000, 10", "3"),
            ("LOG", "81, 3", "4"),
            ("LOG", "0", "undefined"),
            ("LOG", "-1", "undefined"),
            ("LOG", "8, 1", "undefined"),
            ("LOG", "8, undefined", "undefined"),
            ("LOG10", "100", "2"),
            ("LOG10", "-1", "undefined"),
            ("LOG10", "null", "undefined"),
            ("POWER", "2, 10", "1024"),
            ("POWER", "2, -1", "0.5"),
            ("POWER", "2.5, 3", "15.625"),
            ("POWER", "0, -1", "undefined"),
            ("POWER", "-1, 0.5", "undefined"),
            ("POWER", "10, 400", "undefined"),
            ("POWER", "2, null", "undefined"),
            ("SQRT", "9", "3"),
            ("SQRT", "-1", "undefined"),
            ("SQRT", "undefined", "undefined"),
            ("SQUARE", "-3", "9"),
            ("SQUARE", "1e200", "undefined"),
            ("SQUARE", "[]", "undefined"),
        ]);
    }

    #[test]
    fn angles() {
        check(&[
            ("ACOS", "-1", "3.141592653589793"),
            ("ACOS", "2", "undefined"),
            ("ACOS", "true", "undefined"),
            ("ASIN", "1", "1.5707963267948966"),
            ("ASIN", "-1.5", "undefined"),
            ("ATAN", "0", "0"),
            ("ATAN", "-45.01", "-1.5485826962062663"),
            ("ATAN", "null", "undefined"),
            ("ATN2", "35.175643, 129.44", "0.265344532064832"),
            ("ATN2", "0, -1", "3.141592653589793"),
            ("ATN2", "0, null", "undefined"),
            ("COS", "0", "1"),
            ("COS", r#""0""#, "undefined"),
            ("COT", "124.1332", "-0.040311998371148884"),
            ("COT", "0", "undefined"),
            ("DEGREES", "1.5707963267948966", "90"),
            ("DEGREES", "null", "undefined"),
            ("PI", "", "3.141592653589793"),
            ("RADIANS", "-45.01", "-0.7855726963226477"),
            ("RADIANS", "[1]", "undefined"),
            ("SIN", "45.175643", "0.929607286611012"),
            ("SIN", "false", "undefined"),
            ("TAN", "0", "0"),
            ("TAN", "undefined", "undefined"),
        ]);
    }

    #[test]
    fn random_numbers_lie_between_zero_and_one_and_differ() {
        let context = Context::new(0, 3);
        let drawn: Vec<f64> =
            (0..100).filter_map(|_| super::super::testing::call_in(&context, "RAND", "")?.as_f64()).collect();
        assert!(drawn.iter().all(|x| (0.0..1.0).contains(x)) && drawn.len() == 100);
        assert!(drawn.windows(2).all(|pair| pair[0].to_bits() != pair[1].to_bits()));
        assert_eq!(call("RAND", ""), call("RAND", ""), "the same seed gives the same");
    }
}

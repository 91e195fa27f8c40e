//! Functions of whole numbers of 64 bits, as C++ has them: sums wrap around, shifts use the low six bits of the
//! count, a right shift keeps the sign, a remainder has the sign of the dividend.
//!
//! A number that is not whole or does not fit, and a division by zero, are undefined. A double without fraction is a
//! whole number. Results are exact, also beyond 2^53.

use document::Value;

use super::{Arg, Entry};
use crate::functions::context::Context;

/// The functions of this file.
pub(crate) const TABLE: &[Entry] = &[
    Entry { name: "INTADD", least: 2, most: 2, run: |a, _| apply(a, i64::wrapping_add) },
    Entry { name: "INTBITAND", least: 2, most: 2, run: |a, _| apply(a, |x, y| x & y) },
    Entry {
        name: "INTBITLEFTSHIFT",
        least: 2,
        most: 2,
        run: |a, _| apply(a, |x, y| x.wrapping_shl(y as u32)),
    },
    Entry { name: "INTBITNOT", least: 1, most: 1, run: not },
    Entry { name: "INTBITOR", least: 2, most: 2, run: |a, _| apply(a, |x, y| x | y) },
    Entry {
        name: "INTBITRIGHTSHIFT",
        least: 2,
        most: 2,
        run: |a, _| apply(a, |x, y| x.wrapping_shr(y as u32)),
    },
    Entry { name: "INTBITXOR", least: 2, most: 2, run: |a, _| apply(a, |x, y| x ^ y) },
    Entry { name: "INTDIV", least: 2, most: 2, run: |a, _| divide(a, i64::wrapping_div) },
    Entry { name: "INTMOD", least: 2, most: 2, run: |a, _| divide(a, i64::wrapping_rem) },
    Entry { name: "INTMUL", least: 2, most: 2, run: |a, _| apply(a, i64::wrapping_mul) },
    Entry { name: "INTSUB", least: 2, most: 2, run: |a, _| apply(a, i64::wrapping_sub) },
];

fn apply(arguments: &[Arg<'_>], function: fn(i64, i64) -> i64) -> Option<Value> {
    Some(Value::Int(function(arguments[0]?.as_i64()?, arguments[1]?.as_i64()?)))
}

fn divide(arguments: &[Arg<'_>], function: fn(i64, i64) -> i64) -> Option<Value> {
    if arguments[1]?.as_i64()? == 0 {
        return None;
    }
    apply(arguments, function)
}

fn not(arguments: &[Arg<'_>], _: &Context) -> Option<Value> {
    Some(Value::Int(!arguments[0]?.as_i64()?))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;

    #[test]
    fn whole_numbers() {
        check(&[
            ("INTADD", "20, 10", "30"),
            ("INTADD", "20.0, -10", "10"),
            ("INTADD", "9223372036854775807, 1", "-9223372036854775808"),
            ("INTADD", "9007199254740993, 0", "9007199254740993"),
            ("INTADD", "20, 0.10", "undefined"),
            ("INTADD", "1e19, 1", "undefined"),
            ("INTADD", r#""1", 1"#, "undefined"),
            ("INTADD", "1, undefined", "undefined"),
            ("INTSUB", "20, 30", "-10"),
            ("INTSUB", "-9223372036854775808, 1", "9223372036854775807"),
            ("INTSUB", "20, null", "undefined"),
            ("INTMUL", "5, -2", "-10"),
            ("INTMUL", "4611686018427387904, 4", "0"),
            ("INTMUL", "5, 0.5", "undefined"),
            ("INTDIV", "10, -3", "-3"),
            ("INTDIV", "-9223372036854775808, -1", "-9223372036854775808"),
            ("INTDIV", "10, 0", "undefined"),
            ("INTDIV", "10, 0.1", "undefined"),
            ("INTMOD", "12, 5", "2"),
            ("INTMOD", "-12, 5", "-2"),
            ("INTMOD", "-9223372036854775808, -1", "0"),
            ("INTMOD", "12, 0", "undefined"),
            ("INTBITAND", "15, 25", "9"),
            ("INTBITAND", "-1, 4294967296", "4294967296"),
            ("INTBITAND", "15, 1.5", "undefined"),
            ("INTBITOR", "56, 100", "124"),
            ("INTBITOR", "true, 1", "undefined"),
            ("INTBITXOR", "56, 100", "92"),
            ("INTBITXOR", "[], 1", "undefined"),
            ("INTBITNOT", "65", "-66"),
            ("INTBITNOT", "0.1", "undefined"),
            ("INTBITLEFTSHIFT", "16, 4", "256"),
            ("INTBITLEFTSHIFT", "1, 63", "-9223372036854775808"),
            ("INTBITLEFTSHIFT", "1, 65", "2"),
            ("INTBITLEFTSHIFT", "16, 0.4", "undefined"),
            ("INTBITRIGHTSHIFT", "16, 4", "1"),
            ("INTBITRIGHTSHIFT", "-16, 2", "-4"),
            ("INTBITRIGHTSHIFT", "16, null", "undefined"),
        ]);
    }
}

//! Numbers: every operator computes with doubles, the bitwise ones with 32 bits of them.

use crate::logical::Arithmetic;

/// Returns the result, `None` where it is no finite number.
pub(super) fn apply(operator: Arithmetic, left: f64, right: f64) -> Option<f64> {
    let result = match operator {
        Arithmetic::Add => left + right,
        Arithmetic::Subtract => left - right,
        Arithmetic::Multiply => left * right,
        Arithmetic::Divide => left / right,
        Arithmetic::Modulo => left % right,
        Arithmetic::BitAnd => f64::from(bits(left)? & bits(right)?),
        Arithmetic::BitOr => f64::from(bits(left)? | bits(right)?),
        Arithmetic::BitXor => f64::from(bits(left)? ^ bits(right)?),
        Arithmetic::ShiftLeft => f64::from(bits(left)?.wrapping_shl(bits(right)? as u32)),
        Arithmetic::ShiftRight => f64::from(bits(left)?.wrapping_shr(bits(right)? as u32)),
        Arithmetic::ShiftRightZero => f64::from((bits(left)? as u32).wrapping_shr(bits(right)? as u32)),
    };
    result.is_finite().then_some(result)
}

/// Returns `~ operand`.
pub(super) fn bit_not(operand: f64) -> Option<f64> {
    bits(operand).map(|bits| f64::from(!bits))
}

/// Returns the low 32 bits of a whole number, in two's complement; a fraction has none.
fn bits(value: f64) -> Option<i32> {
    const MODULUS: f64 = 4_294_967_296.0;
    (value.is_finite() && value.fract() == 0.0).then(|| value.rem_euclid(MODULUS) as u32 as i32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::number;

    #[test]
    fn numbers_follow_the_table() {
        use Arithmetic as A;
        let table = [
            (A::Add, 1.0, 2.5, "3.5"),
            (A::Add, 0.5, 0.5, "1"),
            (A::Subtract, 1.0, 3.0, "-2"),
            (A::Multiply, 1e300, 1e300, "undefined"),
            (A::Divide, 1.0, 4.0, "0.25"),
            (A::Divide, 1.0, 0.0, "undefined"),
            (A::Modulo, 7.0, 0.0, "undefined"),
            (A::Modulo, -7.0, 4.0, "-3"),
            (A::Modulo, 7.5, 2.0, "1.5"),
            (A::BitAnd, 6.0, 3.0, "2"),
            (A::BitOr, 6.0, 3.0, "7"),
            (A::BitXor, 6.0, 3.0, "5"),
            (A::BitOr, 1.5, 1.0, "undefined"),
            (A::BitOr, 4_294_967_297.0, 0.0, "1"),
            (A::BitOr, -1.0, 0.0, "-1"),
            (A::ShiftLeft, 1.0, 31.0, "-2147483648"),
            (A::ShiftLeft, 1.0, 33.0, "2"),
            (A::ShiftRight, -8.0, 1.0, "-4"),
            (A::ShiftRightZero, -1.0, 0.0, "4294967295"),
            (A::ShiftRightZero, -8.0, 28.0, "15"),
        ];
        for (operator, left, right, expected) in table {
            let result = apply(operator, left, right).and_then(number);
            let result = result.map_or("undefined".to_owned(), |value| value.to_json());
            assert_eq!(result, expected, "{left} {operator:?} {right}");
        }
        assert_eq!(bit_not(5.0), Some(-6.0));
        assert_eq!(bit_not(0.5), None);
    }
}

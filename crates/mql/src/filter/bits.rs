//! `$bitsAllSet`, `$bitsAllClear`, `$bitsAnySet`, `$bitsAnyClear`: questions about single bits of numbers and binary data.
//!
//! Bits are counted from the lowest; in binary data from the lowest of the first byte. A number is 64 bits with its sign
//! extended without end; binary data is followed by zeros.

use bson::{BinaryRef, ValueRef};

use crate::error::{Error, Result};
use crate::numbers::{integer, whole};

/// Highest position that may be asked about.
const POSITION_MAX: i64 = i32::MAX as i64;

/// A test of some bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BitTest {
    rule: BitRule,
    /// The positions, in their order, each once.
    positions: Vec<u32>,
}

/// The required value of the bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the operators'")]
pub enum BitRule {
    AllSet,
    AllClear,
    AnySet,
    AnyClear,
}

impl BitTest {
    /// Reads the operand: a number or binary data as a mask, or a list of positions.
    pub(super) fn parse(rule: BitRule, operator: &str, path: &str, operand: ValueRef<'_>) -> Result<BitTest> {
        let mut positions = match operand {
            ValueRef::Array(items) => {
                let positions = items.iter().enumerate();
                positions.map(|(index, item)| position(index, item)).collect::<Result<Vec<u32>>>()?
            }
            ValueRef::Binary(BinaryRef { bytes, .. }) => set_bits(bytes),
            number if number.is_number() => {
                let refuse = |what: &str| {
                    Error::failed_to_parse(format!("{what}: {operator}: {}", bson::shell_text(number)))
                };
                let mask = integer(number).ok_or_else(|| refuse("Expected an integer"))?;
                let mask = u64::try_from(mask).map_err(|_| refuse("Expected a non-negative number in"))?;
                set_bits(&mask.to_le_bytes())
            }
            _ => {
                return Err(Error::bad_value(format!(
                    "{path} takes an Array, a number, or a BinData but received: {operator}: {}",
                    bson::shell_text(operand)
                )));
            }
        };
        positions.sort_unstable();
        positions.dedup();
        Ok(BitTest { rule, positions })
    }

    /// Returns `true` if a value is a number or binary data whose bits have the required value.
    pub(super) fn matches(&self, value: ValueRef<'_>) -> bool {
        let number;
        let (bytes, beyond): (&[u8], bool) = match value {
            ValueRef::Binary(BinaryRef { bytes, .. }) => (bytes, false),
            value => {
                // A number with a fraction, or beyond 64 bits, has no defined bits.
                let Some(bits) = integer(value).filter(|_| whole(value).is_some()) else { return false };
                number = bits.to_le_bytes();
                (&number, bits < 0)
            }
        };
        let is_set = |position: &u32| {
            let byte = bytes.get(*position as usize / 8);
            byte.map_or(beyond, |byte| byte >> (position % 8) & 1 == 1)
        };
        match self.rule {
            BitRule::AllSet => self.positions.iter().all(is_set),
            BitRule::AllClear => !self.positions.iter().any(is_set),
            BitRule::AnySet => self.positions.iter().any(is_set),
            BitRule::AnyClear => !self.positions.iter().all(is_set),
        }
    }
}

fn set_bits(bytes: &[u8]) -> Vec<u32> {
    let bits = (0..bytes.len().saturating_mul(8)).take_while(|bit| *bit <= POSITION_MAX as usize);
    bits.filter(|bit| bytes[bit / 8] >> (bit % 8) & 1 == 1).map(|bit| bit as u32).collect()
}

fn position(index: usize, item: ValueRef<'_>) -> Result<u32> {
    let refuse = |what: &str| {
        let text = bson::shell_text(item);
        Error::bad_value(format!("Failed to parse bit position. {what}: {index}: {text}"))
    };
    if !item.is_number() {
        return Err(refuse("Expected a number in"));
    }
    match integer(item) {
        Some(number @ 0..=POSITION_MAX) => Ok(number as u32),
        Some(..0) => Err(refuse("Expected a non-negative number in")),
        Some(_) => Err(refuse("Cannot represent as a 32-bit integer")),
        None => Err(refuse("Expected an integer")),
    }
}

#[cfg(test)]
mod tests {
    use bson::{Binary, Value};

    use super::*;

    fn test(rule: BitRule, operand: impl Into<Value>, value: impl Into<Value>) -> bool {
        let operand = operand.into();
        BitTest::parse(rule, "$bits", "a", operand.view()).unwrap().matches(value.into().view())
    }

    #[test]
    fn numbers_and_bytes_have_bits() {
        let positions = |bits: &[i32]| Value::Array(bits.iter().map(|bit| Value::Int32(*bit)).collect());
        assert!(test(BitRule::AllSet, 50, 54));
        assert!(!test(BitRule::AllSet, 50, 20));
        assert!(test(BitRule::AllSet, 0, 20));
        assert!(!test(BitRule::AnySet, 0, 20));
        assert!(test(BitRule::AllSet, positions(&[1, 5]), 54));
        assert!(test(BitRule::AllClear, positions(&[1, 5]), 20));
        assert!(test(BitRule::AnyClear, positions(&[1, 5]), 2));
        assert!(test(BitRule::AnySet, positions(&[1, 5]), 2.0));
        assert!(!test(BitRule::AnySet, positions(&[1, 5]), 2.5));
        assert!(test(BitRule::AllSet, positions(&[0, 63, 200]), -1_i64));
        assert!(test(BitRule::AllClear, positions(&[200]), 1));
        let bytes = Binary { subtype: 0, bytes: vec![0x36] };
        assert!(test(BitRule::AllSet, 50, bytes.clone()));
        assert!(test(BitRule::AllSet, bytes, 54));
        assert!(!test(BitRule::AllClear, 1, "text"));
    }

    #[test]
    fn operands_that_are_no_masks_are_refused() {
        let refused = |operand: Value| {
            BitTest::parse(BitRule::AllSet, "$bitsAllSet", "a", operand.view()).unwrap_err().code.0
        };
        assert_eq!(refused("x".into()), 2);
        assert_eq!(refused((-1).into()), 9);
        assert_eq!(refused(1.5.into()), 9);
        assert_eq!(refused(Value::Array(vec![(-1).into()])), 2);
        assert_eq!(refused(Value::Array(vec!["x".into()])), 2);
    }
}

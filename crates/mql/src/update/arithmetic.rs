//! `$inc`, `$mul` and `$bit`: numbers made from numbers.

use bson::{Value, ValueRef, shell_text};

use crate::error::{Error, Result};
use crate::expression::number::{Number, checked_add, checked_multiply};
use crate::update::change::Change;
use crate::update::operator::field_text;

/// `$inc` or `$mul`. The result has the wider type of the two numbers; a long that overflows is an error.
#[derive(Debug)]
pub(super) struct Arithmetic {
    operation: Operation,
    operand: Number,
}

#[derive(Debug, Clone, Copy)]
enum Operation {
    Increment,
    Multiply,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Operation::Increment => "$inc",
            Operation::Multiply => "$mul",
        }
    }
}

impl Arithmetic {
    pub(super) fn parse(name: &str, path: &str, operand: ValueRef<'_>) -> Result<Arithmetic> {
        let (operation, verb) = match name {
            "$inc" => (Operation::Increment, "increment"),
            _ => (Operation::Multiply, "multiply"),
        };
        let number = Number::of(operand).ok_or_else(|| {
            let field = field_text(path, operand);
            Error::type_mismatch(format!("Cannot {verb} with non-numeric argument: {{{field}}}"))
        })?;
        Ok(Arithmetic { operation, operand: number })
    }

    pub(super) fn apply(&self, value: &Value, change: &Change<'_>) -> Result<Value> {
        let name = self.operation.name();
        let Some(number) = Number::of(value.view()) else {
            return Err(Error::type_mismatch(format!(
                "Cannot apply {name} to a value of non-numeric type. {{{}}} has the field '{}' of non-numeric type {}",
                change.id_text(),
                change.last_name(),
                value.kind().alias()
            )));
        };
        let result = match self.operation {
            Operation::Increment => checked_add(number, self.operand),
            Operation::Multiply => checked_multiply(number, self.operand),
        };
        result.map(Value::from).ok_or_else(|| {
            Error::bad_value(format!(
                "Failed to apply {name} operations to current value ({}) for document {{{}}}",
                typed_text(value),
                change.id_text()
            ))
        })
    }

    /// A missing number is zero.
    pub(super) fn create(&self) -> Value {
        match self.operation {
            Operation::Increment => self.operand.into(),
            Operation::Multiply => {
                checked_multiply(self.operand, Number::Int(0)).map_or(Value::Int32(0), Value::from)
            }
        }
    }
}

fn typed_text(value: &Value) -> String {
    let name = match value {
        Value::Int32(_) => "NumberInt",
        Value::Int64(_) => "NumberLong",
        Value::Decimal128(_) => "NumberDecimal",
        _ => "NumberDouble",
    };
    format!("({name}){}", shell_text(value.view()))
}

/// `$bit`: some operations, one after the other. One long makes the result a long.
#[derive(Debug)]
pub(super) struct Bits(Vec<(BitOperation, Integer)>);

#[derive(Debug, Clone, Copy)]
enum BitOperation {
    And,
    Or,
    Xor,
}

#[derive(Debug, Clone, Copy)]
enum Integer {
    Int(i32),
    Long(i64),
}

impl Integer {
    fn of(value: ValueRef<'_>) -> Option<Integer> {
        match value {
            ValueRef::Int32(value) => Some(Integer::Int(value)),
            ValueRef::Int64(value) => Some(Integer::Long(value)),
            _ => None,
        }
    }

    fn widened(self) -> i64 {
        match self {
            Integer::Int(value) => value.into(),
            Integer::Long(value) => value,
        }
    }
}

impl From<Integer> for Value {
    fn from(integer: Integer) -> Value {
        match integer {
            Integer::Int(value) => Value::Int32(value),
            Integer::Long(value) => Value::Int64(value),
        }
    }
}

impl BitOperation {
    fn apply(self, left: Integer, right: Integer) -> Integer {
        let (one, other) = (left.widened(), right.widened());
        let bits = match self {
            BitOperation::And => one & other,
            BitOperation::Or => one | other,
            BitOperation::Xor => one ^ other,
        };
        match (left, right) {
            // Both were widened with their signs, so the upper half carries nothing of its own.
            (Integer::Int(_), Integer::Int(_)) => Integer::Int(bits as i32),
            _ => Integer::Long(bits),
        }
    }
}

impl Bits {
    pub(super) fn parse(operand: ValueRef<'_>) -> Result<Bits> {
        let ValueRef::Document(operations) = operand else {
            return Err(Error::bad_value(format!(
                "The $bit modifier is not compatible with a {}. You must pass in an embedded document: \
                 {{$bit: {{field: {{and/or/xor: #}}}}",
                operand.kind().alias()
            )));
        };
        let operations = operations.iter().map(Bits::parse_one).collect::<Result<Vec<_>>>()?;
        if operations.is_empty() {
            return Err(Error::bad_value(
                "You must pass in at least one bitwise operation. The format is: {$bit: {field: {and/or/xor: #}}",
            ));
        }
        Ok(Bits(operations))
    }

    fn parse_one((name, value): (&str, ValueRef<'_>)) -> Result<(BitOperation, Integer)> {
        let operation = match name {
            "and" => BitOperation::And,
            "or" => BitOperation::Or,
            "xor" => BitOperation::Xor,
            _ => {
                return Err(Error::bad_value(format!(
                    "The $bit modifier only supports 'and', 'or', and 'xor', not '{name}' which is an unknown \
                     operator: {{{}}}",
                    field_text(name, value)
                )));
            }
        };
        let integer = Integer::of(value).ok_or_else(|| {
            Error::bad_value(format!(
                "The $bit modifier field must be an Integer(32/64 bit); a '{}' is not supported here: {{{}}}",
                value.kind().alias(),
                field_text(name, value)
            ))
        })?;
        Ok((operation, integer))
    }

    pub(super) fn apply(&self, value: &Value, change: &Change<'_>) -> Result<Value> {
        let integer = Integer::of(value.view()).ok_or_else(|| {
            Error::bad_value(format!(
                "Cannot apply $bit to a value of non-integral type.{} has the field {} of non-integer type {}",
                change.id_text(),
                change.last_name(),
                value.kind().alias()
            ))
        })?;
        Ok(self.run(integer))
    }

    /// A missing number is zero.
    pub(super) fn create(&self) -> Value {
        self.run(Integer::Int(0))
    }

    fn run(&self, integer: Integer) -> Value {
        self.0.iter().fold(integer, |integer, (operation, operand)| operation.apply(integer, *operand)).into()
    }
}

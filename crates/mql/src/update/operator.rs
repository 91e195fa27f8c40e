//! The update operators: their table, their operands, and their effects.

use std::cmp::Ordering;

use bson::{Document, Value, ValueRef, shell_text};

use crate::error::{Error, Result};
use crate::filter;
use crate::update::arithmetic::{Arithmetic, Bits};
use crate::update::arrays::{Pop, Pull, Push, Union};
use crate::update::change::Change;

/// One operator with its operand.
#[derive(Debug)]
pub(super) enum Operator {
    Set(Operand),
    SetOnInsert(Operand),
    Unset,
    CurrentDate(Clock),
    Arithmetic(Arithmetic),
    Bits(Bits),
    /// `$min`, `$max`: the operand replaces a value on this side of it.
    Replace {
        when: Ordering,
        operand: Operand,
    },
    Push(Push),
    Union(Union),
    Pop(Pop),
    Pull(Pull),
    /// The source of the rename of that number.
    RenameSource(usize),
    /// The target of the rename of that number.
    RenameTarget(usize),
}

/// A value to add to documents, with its size there.
#[derive(Debug, Clone)]
pub(super) struct Operand {
    pub(super) value: Value,
    pub(super) bytes: usize,
}

/// The type of time that `$currentDate` sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clock {
    Date,
    Timestamp,
}

/// The effect of an operator on an existing value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Untouched,
    /// Written, possibly with the same value.
    Written,
    Removed,
}

impl Operand {
    pub(super) fn new(value: ValueRef<'_>) -> Operand {
        let value = value.to_value();
        Operand { bytes: encoded_bytes(&value), value }
    }
}

/// Returns how many bytes a value takes in a document, without its name.
pub(super) fn encoded_bytes(value: &Value) -> usize {
    match value {
        Value::Document(document) => document_bytes(document),
        // Positions as names take two bytes or more each.
        Value::Array(items) => 5 + items.iter().map(|item| 3 + encoded_bytes(item)).sum::<usize>(),
        Value::String(text) | Value::JavaScript(text) | Value::Symbol(text) => 5 + text.len(),
        Value::JavaScriptWithScope { code, scope } => 9 + code.len() + document_bytes(scope),
        Value::Binary(binary) => 5 + binary.bytes.len(),
        Value::Regex(regex) => 2 + regex.pattern.len() + regex.options.len(),
        Value::DbPointer { namespace, .. } => 17 + namespace.len(),
        Value::Decimal128(_) => 16,
        Value::ObjectId(_) => 12,
        Value::Double(_) | Value::DateTime(_) | Value::Timestamp(_) | Value::Int64(_) => 8,
        Value::Int32(_) => 4,
        Value::Bool(_) => 1,
        Value::Undefined | Value::Null | Value::MinKey | Value::MaxKey => 0,
    }
}

fn document_bytes(document: &Document) -> usize {
    5 + document.iter().map(|(name, value)| 2 + name.len() + encoded_bytes(value)).sum::<usize>()
}

impl Operator {
    /// Reads the operand of an operator for one path. `$rename` is not among them, because it has two.
    pub(super) fn parse(
        name: &str,
        path: &str,
        operand: ValueRef<'_>,
        settings: &filter::Settings,
    ) -> Result<Operator> {
        Ok(match name {
            "$set" => Operator::Set(Operand::new(operand)),
            "$setOnInsert" => Operator::SetOnInsert(Operand::new(operand)),
            "$unset" => Operator::Unset,
            "$currentDate" => Operator::CurrentDate(Clock::parse(operand)?),
            "$inc" | "$mul" => Operator::Arithmetic(Arithmetic::parse(name, path, operand)?),
            "$bit" => Operator::Bits(Bits::parse(operand)?),
            "$min" => Operator::Replace { when: Ordering::Greater, operand: Operand::new(operand) },
            "$max" => Operator::Replace { when: Ordering::Less, operand: Operand::new(operand) },
            "$push" => Operator::Push(Push::parse(operand)?),
            "$addToSet" => Operator::Union(Union::parse(operand, settings)?),
            "$pop" => Operator::Pop(Pop::parse(path, operand)?),
            "$pull" => Operator::Pull(Pull::parse(operand, settings)?),
            "$pullAll" => Operator::Pull(Pull::parse_all(operand, settings)?),
            _ => return Err(unknown(name)),
        })
    }

    /// Changes an existing value.
    pub(super) fn apply(&self, value: &mut Value, change: &mut Change<'_>) -> Result<Outcome> {
        match self {
            Operator::Set(operand) => *value = change.take(operand)?,
            Operator::SetOnInsert(operand) if change.inserting() => *value = change.take(operand)?,
            Operator::SetOnInsert(_) => return Ok(Outcome::Untouched),
            Operator::Unset => return Ok(Outcome::Removed),
            Operator::CurrentDate(clock) => *value = clock.now(change),
            Operator::Arithmetic(arithmetic) => *value = arithmetic.apply(value, change)?,
            Operator::Bits(bits) => *value = bits.apply(value, change)?,
            Operator::Replace { when, operand } => {
                if change.compare(value.view(), operand.value.view()) != *when {
                    return Ok(Outcome::Untouched);
                }
                *value = change.take(operand)?;
            }
            Operator::Push(push) => return push.apply(value, change),
            Operator::Union(union) => return union.apply(value, change),
            Operator::Pop(pop) => return pop.apply(value, change),
            Operator::Pull(pull) => return pull.apply(value, change),
            Operator::RenameSource(number) => {
                return Ok(if change.is_renamed(*number) { Outcome::Removed } else { Outcome::Untouched });
            }
            Operator::RenameTarget(number) => match change.renamed(*number) {
                Some(renamed) => *value = renamed,
                None => return Ok(Outcome::Untouched),
            },
        }
        Ok(Outcome::Written)
    }

    /// Returns the value for a missing field; `None` if it stays missing.
    pub(super) fn create(&self, change: &mut Change<'_>) -> Result<Option<Value>> {
        Ok(match self {
            Operator::Set(operand) | Operator::Replace { operand, .. } => Some(change.take(operand)?),
            Operator::SetOnInsert(operand) if change.inserting() => Some(change.take(operand)?),
            Operator::CurrentDate(clock) => Some(clock.now(change)),
            Operator::Arithmetic(arithmetic) => Some(arithmetic.create()),
            Operator::Bits(bits) => Some(bits.create()),
            Operator::Push(push) => Some(push.create(change)?),
            Operator::Union(union) => Some(union.create(change)?),
            Operator::RenameTarget(number) => change.renamed(*number),
            Operator::SetOnInsert(_)
            | Operator::Unset
            | Operator::Pop(_)
            | Operator::Pull(_)
            | Operator::RenameSource(_) => None,
        })
    }

    /// Returns `true` if a path through a number or a text is an error even though nothing would be created there.
    pub(super) fn needs_way(&self) -> bool {
        matches!(self, Operator::Pop(_) | Operator::Pull(_))
    }
}

/// Returns the refusal of an operator that does not exist.
pub(super) fn unknown(name: &str) -> Error {
    Error::failed_to_parse(format!(
        "Unknown modifier: {name}. Expected a valid update modifier or pipeline-style update specified as an array"
    ))
}

/// Returns a field as messages show it: `a: 1`.
pub(super) fn field_text(name: &str, value: ValueRef<'_>) -> String {
    format!("{name}: {}", shell_text(value))
}

impl Clock {
    fn parse(operand: ValueRef<'_>) -> Result<Clock> {
        let wrong_type = || {
            Error::bad_value(format!(
                "{} is not valid type for $currentDate. Please use a boolean ('true') or a $type expression \
                 ({{$type: 'timestamp/date'}}).",
                operand.kind().alias()
            ))
        };
        let options = match operand {
            ValueRef::Bool(_) => return Ok(Clock::Date),
            ValueRef::Document(options) => options,
            _ => return Err(wrong_type()),
        };
        let mut clock = Err(wrong_type());
        for (name, value) in options.iter() {
            clock = match (name, value.as_str()) {
                ("$type", Some("date")) => Ok(Clock::Date),
                ("$type", Some("timestamp")) => Ok(Clock::Timestamp),
                ("$type", _) => Err(Error::bad_value(
                    "The '$type' string field is required to be 'date' or 'timestamp': \
                     {$currentDate: {field : {$type: 'date'}}}",
                )),
                _ => Err(Error::bad_value(format!("Unrecognized $currentDate option: {name}"))),
            };
            if clock.is_err() {
                break;
            }
        }
        clock
    }

    fn now(self, change: &Change<'_>) -> Value {
        match self {
            Clock::Date => Value::DateTime(change.context().now_millis),
            Clock::Timestamp => Value::Timestamp(change.context().timestamp),
        }
    }
}

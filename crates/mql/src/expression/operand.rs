//! A value on its way through an expression: missing, borrowed from the document, or made by an operator.

use bson::{ArrayRef, Kind, Value, ValueRef};

use crate::error::{Code, Error, Result};
use crate::expression::table::Refusal;

/// A value that may be missing and need not be owned.
#[derive(Debug, Clone)]
pub(crate) enum Operand<'a> {
    Missing,
    Borrowed(ValueRef<'a>),
    Owned(Value),
}

impl<'a> Operand<'a> {
    /// What is there, to read.
    pub(crate) fn view(&self) -> Option<ValueRef<'_>> {
        match self {
            Operand::Missing => None,
            Operand::Borrowed(value) => Some(*value),
            Operand::Owned(value) => Some(value.view()),
        }
    }

    /// What is there, to keep.
    pub(crate) fn into_value(self) -> Option<Value> {
        match self {
            Operand::Missing => None,
            Operand::Borrowed(value) => Some(value.to_value()),
            Operand::Owned(value) => Some(value),
        }
    }

    /// The same without any borrowing.
    pub(crate) fn into_owned<'b>(self) -> Operand<'b> {
        self.into_value().into()
    }

    /// Whether this is missing, null or undefined.
    pub(crate) fn is_nullish(&self) -> bool {
        is_nullish(self.view())
    }

    /// Whether this counts as true.
    pub(crate) fn is_true(&self) -> bool {
        self.view().is_some_and(is_true)
    }

    /// Borrowed where there is something.
    pub(crate) fn borrowed(value: Option<ValueRef<'a>>) -> Operand<'a> {
        value.map_or(Operand::Missing, Operand::Borrowed)
    }
}

impl From<Option<Value>> for Operand<'_> {
    fn from(value: Option<Value>) -> Self {
        value.map_or(Operand::Missing, Operand::Owned)
    }
}

/// Whether a value is missing, null or undefined.
pub(crate) fn is_nullish(value: Option<ValueRef<'_>>) -> bool {
    matches!(value, None | Some(ValueRef::Null | ValueRef::Undefined))
}

/// Whether a value counts as true: everything but null, undefined, false and zero.
pub(crate) fn is_true(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Null | ValueRef::Undefined | ValueRef::Bool(false) => false,
        value if value.is_number() => !bson::equal(value, ValueRef::Int32(0)),
        _ => true,
    }
}

/// The name of the type in messages.
pub(crate) fn type_name(value: Option<ValueRef<'_>>) -> &'static str {
    value.map_or("missing", |value| value.kind().alias())
}

/// The value in words, for messages.
pub(crate) fn text(value: Option<ValueRef<'_>>) -> String {
    value.map_or_else(|| "MISSING".to_owned(), bson::shell_text)
}

/// The array that an argument must be.
pub(crate) fn array(value: Option<ValueRef<'_>>, refusal: Refusal) -> Result<ArrayRef<'_>> {
    value.and_then(ValueRef::as_array).ok_or_else(|| refusal.about(type_name(value)))
}

/// The string that an argument must be.
pub(crate) fn string(value: Option<ValueRef<'_>>, refusal: Refusal) -> Result<&str> {
    value.and_then(ValueRef::as_str).ok_or_else(|| refusal.about(type_name(value)))
}

/// Refuses what an operator made if it outgrew a document.
pub(crate) fn bounded(value: Value) -> Result<Value> {
    if matches!(value.kind(), Kind::Document | Kind::Array | Kind::String | Kind::Binary) {
        Budget::default().take(value.view(), bson::limits::DEPTH_MAX)?;
    }
    Ok(value)
}

/// The bytes that are left for a value in the making: what is built in a loop asks before it grows.
#[derive(Debug)]
pub(crate) struct Budget(usize);

impl Default for Budget {
    fn default() -> Budget {
        Budget(bson::limits::DOCUMENT_BYTES_MAX)
    }
}

impl Budget {
    /// Pays for one more item or field.
    pub(crate) fn item(&mut self, value: ValueRef<'_>) -> Result<()> {
        self.bytes(3)?;
        self.take(value, bson::limits::DEPTH_MAX - 1)
    }

    /// Pays for bytes.
    pub(crate) fn bytes(&mut self, bytes: usize) -> Result<()> {
        self.0 = self.0.checked_sub(bytes).ok_or_else(too_large)?;
        Ok(())
    }

    fn take(&mut self, value: ValueRef<'_>, levels: usize) -> Result<()> {
        match value {
            ValueRef::Document(document) => {
                let levels = deeper(levels)?;
                self.bytes(5)?;
                for (name, value) in document.iter() {
                    self.bytes(name.len() + 2)?;
                    self.take(value, levels)?;
                }
                Ok(())
            }
            ValueRef::Array(items) => {
                let levels = deeper(levels)?;
                self.bytes(5)?;
                for item in items.iter() {
                    self.bytes(3)?;
                    self.take(item, levels)?;
                }
                Ok(())
            }
            ValueRef::JavaScriptWithScope { code, scope } => {
                self.bytes(code.len() + 9)?;
                self.take(ValueRef::Document(scope), deeper(levels)?)
            }
            ValueRef::String(text) | ValueRef::Symbol(text) | ValueRef::JavaScript(text) => {
                self.bytes(text.len() + 5)
            }
            ValueRef::Binary(binary) => self.bytes(binary.bytes.len() + 5),
            ValueRef::Regex(regex) => self.bytes(regex.pattern.len() + regex.options.len() + 2),
            ValueRef::DbPointer { namespace, .. } => self.bytes(namespace.len() + 17),
            ValueRef::Decimal128(_) => self.bytes(16),
            _ => self.bytes(8),
        }
    }
}

fn deeper(levels: usize) -> Result<usize> {
    levels.checked_sub(1).ok_or_else(|| {
        let most = bson::limits::DEPTH_MAX;
        Error::new(
            Code::OVERFLOW,
            format!("the result of an expression is nested more than {most} levels deep"),
        )
    })
}

fn too_large() -> Error {
    let most = bson::limits::DOCUMENT_BYTES_MAX;
    Error::new(
        Code::BSON_OBJECT_TOO_LARGE,
        format!("the result of an expression is larger than {most} bytes (16MB)"),
    )
}

/// Takes the size of a value, as it would be in bytes, from what is left.
pub(crate) fn measure(value: ValueRef<'_>, levels: usize, left: &mut usize) -> Result<()> {
    let mut budget = Budget(*left);
    let taken = budget.take(value, levels);
    *left = budget.0;
    taken
}

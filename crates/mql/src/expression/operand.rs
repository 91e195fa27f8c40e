//! Intermediate values of an expression: missing, borrowed from the document, or computed.

use bson::{ArrayRef, Kind, Value, ValueRef};

use crate::context::Context;
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
    /// Returns the value, borrowed.
    pub(crate) fn view(&self) -> Option<ValueRef<'_>> {
        match self {
            Operand::Missing => None,
            Operand::Borrowed(value) => Some(*value),
            Operand::Owned(value) => Some(value.view()),
        }
    }

    /// Returns the owned value.
    pub(crate) fn into_value(self) -> Option<Value> {
        match self {
            Operand::Missing => None,
            Operand::Borrowed(value) => Some(value.to_value()),
            Operand::Owned(value) => Some(value),
        }
    }

    /// Returns the owned value and charges the copy.
    pub(crate) fn keep(self, context: &Context) -> Result<Option<Value>> {
        if let Operand::Borrowed(value) = self {
            Budget { left: usize::MAX, ..Budget::new(context) }.take(value, usize::MAX)?;
        }
        Ok(self.into_value())
    }

    /// Returns `true` if this is missing, null or undefined.
    pub(crate) fn is_nullish(&self) -> bool {
        is_nullish(self.view())
    }

    /// Returns `true` if this counts as true.
    pub(crate) fn is_true(&self) -> bool {
        self.view().is_some_and(is_true)
    }

    /// Creates an operand that borrows a value, if there is one.
    pub(crate) fn borrowed(value: Option<ValueRef<'a>>) -> Operand<'a> {
        value.map_or(Operand::Missing, Operand::Borrowed)
    }
}

impl From<Option<Value>> for Operand<'_> {
    fn from(value: Option<Value>) -> Self {
        value.map_or(Operand::Missing, Operand::Owned)
    }
}

/// Returns `true` if a value is missing, null or undefined.
pub(crate) fn is_nullish(value: Option<ValueRef<'_>>) -> bool {
    matches!(value, None | Some(ValueRef::Null | ValueRef::Undefined))
}

/// Returns `true` if a value counts as true: everything but null, undefined, false and zero.
pub(crate) fn is_true(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Null | ValueRef::Undefined | ValueRef::Bool(false) => false,
        value if value.is_number() => !bson::equal(value, ValueRef::Int32(0)),
        _ => true,
    }
}

/// Returns the name of the type in messages.
pub(crate) fn type_name(value: Option<ValueRef<'_>>) -> &'static str {
    value.map_or("missing", |value| value.kind().alias())
}

/// Returns the value in words, for messages.
pub(crate) fn text(value: Option<ValueRef<'_>>) -> String {
    value.map_or_else(|| "MISSING".to_owned(), bson::shell_text)
}

/// Returns the array that an argument must be.
pub(crate) fn array(value: Option<ValueRef<'_>>, refusal: Refusal) -> Result<ArrayRef<'_>> {
    value.and_then(ValueRef::as_array).ok_or_else(|| refusal.about(type_name(value)))
}

/// Returns the string that an argument must be.
pub(crate) fn string(value: Option<ValueRef<'_>>, refusal: Refusal) -> Result<&str> {
    value.and_then(ValueRef::as_str).ok_or_else(|| refusal.about(type_name(value)))
}

/// Refuses a result that exceeds the size of a document.
pub(crate) fn bounded(value: Value, context: &Context) -> Result<Value> {
    if matches!(value.kind(), Kind::Document | Kind::Array | Kind::String | Kind::Binary) {
        Budget::new(context).take(value.view(), bson::limits::DEPTH_MAX)?;
    }
    Ok(value)
}

/// The bytes left for a value under construction: loops check it before they grow the value. Bytes also count as work, so
/// that copying is not cheaper than computing.
#[derive(Debug)]
pub(crate) struct Budget<'a> {
    left: usize,
    /// Bytes that were not counted as work yet.
    pending: usize,
    context: Option<&'a Context>,
}

/// Bytes that are one step of work.
const BYTES_PER_STEP: usize = 8;
/// Bytes that are counted as work together.
const PENDING_BYTES: usize = 512;

impl<'a> Budget<'a> {
    /// Creates the budget of one document.
    pub(crate) fn new(context: &'a Context) -> Budget<'a> {
        Budget { left: bson::limits::DOCUMENT_BYTES_MAX, pending: 0, context: Some(context) }
    }

    /// Pays for one more item or field.
    pub(crate) fn item(&mut self, value: ValueRef<'_>) -> Result<()> {
        self.bytes(3)?;
        self.take(value, bson::limits::DEPTH_MAX - 1)
    }

    /// Pays for bytes.
    pub(crate) fn bytes(&mut self, bytes: usize) -> Result<()> {
        self.left = self.left.checked_sub(bytes).ok_or_else(too_large)?;
        self.pending += bytes;
        if self.pending >= PENDING_BYTES
            && let Some(context) = self.context
        {
            context.spend((self.pending / BYTES_PER_STEP) as u64)?;
            self.pending = 0;
        }
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
    let mut budget = Budget { left: *left, pending: 0, context: None };
    let taken = budget.take(value, levels);
    *left = budget.left;
    taken
}

//! A value on its way through an expression: missing, borrowed from the document, or made by an operator.

use bson::{Kind, Value, ValueRef};

use crate::error::{Code, Error, Result};

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

    /// The name of the type in messages.
    pub(crate) fn type_name(&self) -> &'static str {
        type_name(self.view())
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

/// Refuses what an operator made if it outgrew a document.
pub(crate) fn bounded(value: Value) -> Result<Value> {
    if matches!(value.kind(), Kind::Document | Kind::Array | Kind::String | Kind::Binary) {
        let mut left = bson::limits::DOCUMENT_BYTES_MAX;
        measure(value.view(), bson::limits::DEPTH_MAX, &mut left)?;
    }
    Ok(value)
}

/// An error unless so many bytes fit into a document.
pub(crate) fn check_size(bytes: usize) -> Result<()> {
    if bytes > bson::limits::DOCUMENT_BYTES_MAX { Err(too_large()) } else { Ok(()) }
}

fn too_large() -> Error {
    let most = bson::limits::DOCUMENT_BYTES_MAX;
    Error::new(
        Code::BSON_OBJECT_TOO_LARGE,
        format!("the result of an expression is larger than {most} bytes(16MB)"),
    )
}

/// Takes the size of a value, as it would be in bytes, from what is left.
pub(crate) fn measure(value: ValueRef<'_>, levels: usize, left: &mut usize) -> Result<()> {
    let take = |left: &mut usize, bytes: usize| match left.checked_sub(bytes) {
        Some(rest) => {
            *left = rest;
            Ok(())
        }
        None => Err(too_large()),
    };
    let deeper = || {
        levels.checked_sub(1).ok_or_else(|| {
            let most = bson::limits::DEPTH_MAX;
            Error::new(
                Code::OVERFLOW,
                format!("the result of an expression is nested more than {most} levels deep"),
            )
        })
    };
    match value {
        ValueRef::Document(document) => {
            let levels = deeper()?;
            take(left, 5)?;
            for (name, value) in document.iter() {
                take(left, name.len() + 2)?;
                measure(value, levels, left)?;
            }
            Ok(())
        }
        ValueRef::Array(items) => {
            let levels = deeper()?;
            take(left, 5)?;
            for item in items.iter() {
                take(left, 3)?;
                measure(item, levels, left)?;
            }
            Ok(())
        }
        ValueRef::String(text) | ValueRef::Symbol(text) | ValueRef::JavaScript(text) => {
            take(left, text.len() + 5)
        }
        ValueRef::Binary(binary) => take(left, binary.bytes.len() + 5),
        ValueRef::Regex(regex) => take(left, regex.pattern.len() + regex.options.len() + 2),
        ValueRef::JavaScriptWithScope { code, scope } => {
            take(left, code.len() + 9)?;
            measure(ValueRef::Document(scope), deeper()?, left)
        }
        ValueRef::DbPointer { namespace, .. } => take(left, namespace.len() + 17),
        ValueRef::Decimal128(_) => take(left, 16),
        _ => take(left, 8),
    }
}

//! The approximate memory of documents and values as trees, for bounds on memory.

use bson::{DocumentRef, Value, ValueRef};

/// The bytes of a field beside its name and its value.
const FIELD_BYTES: usize = size_of::<String>() + size_of::<Value>();

/// Returns how many bytes a tree of this document takes, roughly.
pub(crate) fn document_bytes(document: DocumentRef<'_>) -> usize {
    document.iter().map(|(name, value)| FIELD_BYTES + name.len() + inner_bytes(value)).sum()
}

/// Returns how many bytes a value takes as a tree, roughly.
pub(crate) fn value_bytes(value: ValueRef<'_>) -> usize {
    size_of::<Value>() + inner_bytes(value)
}

fn inner_bytes(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::String(text) | ValueRef::JavaScript(text) | ValueRef::Symbol(text) => text.len(),
        ValueRef::Document(document) => document_bytes(document),
        ValueRef::Array(items) => items.iter().map(value_bytes).sum(),
        ValueRef::Binary(binary) => binary.bytes.len(),
        ValueRef::Regex(regex) => regex.pattern.len() + regex.options.len(),
        ValueRef::DbPointer { namespace, .. } => namespace.len(),
        ValueRef::JavaScriptWithScope { code, scope } => code.len() + document_bytes(scope),
        _ => 0,
    }
}

//! Paths by which stages set and remove fields. Arrays are not entered, unlike in filters.

use bson::{Document, DocumentRef, Value, ValueRef};

use crate::error::Result;
use crate::path::{Component, FieldPath};

impl FieldPath {
    /// Parses a path with a leading `$`; `None` without it.
    pub(crate) fn parse_prefixed(text: &str) -> Result<Option<FieldPath>> {
        text.strip_prefix('$').map(FieldPath::parse_aggregation).transpose()
    }

    /// Returns the value at the path through nested documents only.
    pub(crate) fn get_nested<'a>(&self, document: DocumentRef<'a>) -> Option<ValueRef<'a>> {
        let mut value = ValueRef::Document(document);
        for name in self.names() {
            value = value.as_document()?.get(name)?;
        }
        Some(value)
    }

    /// Collects all values at the path: arrays on the way and at the end are entered, one level each. A number behind an array is a
    /// position in it.
    pub(crate) fn values<'a>(&self, document: DocumentRef<'a>, found: &mut Vec<ValueRef<'a>>) {
        values(document, self.components(), found);
    }

    /// Sets the value; replaces anything but documents on the way by documents.
    pub(crate) fn set(&self, document: &mut Document, value: Value) {
        set(document, self.components(), value);
    }

    /// Removes and returns the value, if the path leads to one through nested documents.
    pub(crate) fn remove(&self, document: &mut Document) -> Option<Value> {
        let (last, way) = self.components().split_last()?;
        let mut document = document;
        for name in way {
            let Some(Value::Document(inner)) = document.get_mut(name.name()) else { return None };
            document = inner;
        }
        document.remove(last.name())
    }
}

fn values<'a>(document: DocumentRef<'a>, names: &[Component], found: &mut Vec<ValueRef<'a>>) {
    let Some((name, mut rest)) = names.split_first() else { return };
    let mut value = document.get(name.name());
    while let Some(ValueRef::Array(items)) = value
        && let Some((position, behind)) =
            rest.split_first().and_then(|(name, behind)| Some((name.index()?, behind)))
    {
        (value, rest) = (items.get(position), behind);
    }
    match (value, rest.is_empty()) {
        (Some(ValueRef::Array(items)), true) => found.extend(items.iter()),
        (Some(value), true) => found.push(value),
        (Some(ValueRef::Document(inner)), false) => values(inner, rest, found),
        (Some(ValueRef::Array(items)), false) => {
            for inner in items.iter().filter_map(ValueRef::as_document) {
                values(inner, rest, found);
            }
        }
        _ => {}
    }
}

fn set(document: &mut Document, names: &[Component], value: Value) {
    let Some((name, rest)) = names.split_first() else { return };
    if rest.is_empty() {
        return document.insert(name.name(), value);
    }
    if !matches!(document.get(name.name()), Some(Value::Document(_))) {
        document.insert(name.name(), Document::new());
    }
    if let Some(Value::Document(inner)) = document.get_mut(name.name()) {
        set(inner, rest, value);
    }
}

//! Paths by which stages put fields into documents and take them out. Arrays are not looked into, unlike in filters.

use std::fmt;

use bson::{Document, DocumentRef, Value, ValueRef};

use crate::error::{Code, Error, Result};
use crate::path::{array_index, check_field_name};

/// How many names a path has at most.
const NAMES_MAX: usize = 200;

/// One or more names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Path(Vec<String>);

impl Path {
    /// Reads a dotted path.
    pub(crate) fn parse(text: &str) -> Result<Path> {
        if text.is_empty() {
            return Err(Error::location(40352, "FieldPath cannot be constructed with empty string"));
        }
        if text.ends_with('.') {
            return Err(Error::location(40353, "FieldPath must not end with a '.'."));
        }
        let names: Vec<String> = text
            .split('.')
            .map(|name| check_field_name(name).map(|()| name.to_owned()))
            .collect::<Result<_>>()?;
        if names.len() > NAMES_MAX {
            return Err(Error::new(Code::OVERFLOW, "FieldPath is too long"));
        }
        Ok(Path(names))
    }

    /// Reads a path that must begin with `$`, if it does.
    pub(crate) fn parse_prefixed(text: &str) -> Result<Option<Path>> {
        text.strip_prefix('$').map(Path::parse).transpose()
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.0
    }

    /// The first name.
    pub(crate) fn first(&self) -> &str {
        self.0.first().map_or("", String::as_str)
    }

    /// The value at the path, through documents only.
    pub(crate) fn get<'a>(&self, document: DocumentRef<'a>) -> Option<ValueRef<'a>> {
        let mut value = ValueRef::Document(document);
        for name in &self.0 {
            value = value.as_document()?.get(name)?;
        }
        Some(value)
    }

    /// Everything at the path: arrays on the way and at the end are entered, one level each. A number behind an array is a
    /// position in it.
    pub(crate) fn values<'a>(&self, document: DocumentRef<'a>, found: &mut Vec<ValueRef<'a>>) {
        values(document, &self.0, found);
    }

    /// Puts a value there; what stands in the way becomes a document.
    pub(crate) fn set(&self, document: &mut Document, value: Value) {
        set(document, &self.0, value);
    }

    /// Takes the value out, if the path leads to one through documents.
    pub(crate) fn remove(&self, document: &mut Document) -> Option<Value> {
        let (last, way) = self.0.split_last()?;
        let mut document = document;
        for name in way {
            let Some(Value::Document(inner)) = document.get_mut(name) else { return None };
            document = inner;
        }
        document.remove(last)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0.join("."))
    }
}

fn values<'a>(document: DocumentRef<'a>, names: &[String], found: &mut Vec<ValueRef<'a>>) {
    let Some((name, mut rest)) = names.split_first() else { return };
    let mut value = document.get(name);
    while let Some(ValueRef::Array(items)) = value
        && let Some((position, behind)) =
            rest.split_first().and_then(|(name, behind)| Some((array_index(name)?, behind)))
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

fn set(document: &mut Document, names: &[String], value: Value) {
    let Some((name, rest)) = names.split_first() else { return };
    if rest.is_empty() {
        return document.insert(name.as_str(), value);
    }
    if !matches!(document.get(name), Some(Value::Document(_))) {
        document.insert(name.as_str(), Document::new());
    }
    if let Some(Value::Document(inner)) = document.get_mut(name) {
        set(inner, rest, value);
    }
}

//! `$rename`: moves a value. Neither its source nor its target may lie inside of an array.

use bson::{RawDocument, Value, ValueRef};

use crate::error::{Code, Error, Result};
use crate::update::change::id_text;
use crate::update::operator::field_text;
use crate::update::path::{Name, UpdatePath};

/// One field of a `$rename`.
#[derive(Debug)]
pub(super) struct Rename {
    source: UpdatePath,
    target: UpdatePath,
}

impl Rename {
    pub(super) fn parse(source: UpdatePath, target: ValueRef<'_>) -> Result<Rename> {
        let field = field_text(source.as_str(), target);
        let Some(text) = target.as_str() else {
            return Err(Error::bad_value(format!("The 'to' field for $rename must be a string: {field}")));
        };
        if text.contains('\0') {
            return Err(Error::bad_value("The 'to' field for $rename cannot contain an embedded null byte"));
        }
        let target = UpdatePath::parse(text)?;
        if source.as_str() == target.as_str() {
            let message = format!("The source and target field for $rename must differ: {field}");
            return Err(Error::bad_value(message));
        }
        if is_prefix(&source, &target) || is_prefix(&target, &source) {
            let message =
                format!("The source and target field for $rename must not be on the same path: {field}");
            return Err(Error::bad_value(message));
        }
        for (path, end) in [(&source, "source"), (&target, "destination")] {
            if path.names().is_none() {
                return Err(Error::bad_value(format!(
                    "The {end} field for $rename may not be dynamic: {path}"
                )));
            }
        }
        Ok(Rename { source, target })
    }

    pub(super) fn source(&self) -> &UpdatePath {
        &self.source
    }

    pub(super) fn target(&self) -> &UpdatePath {
        &self.target
    }

    /// Returns the value to move; `None` if there is none.
    pub(super) fn take_from(&self, document: &RawDocument) -> Result<Option<Value>> {
        let source = PathLookup::look(document, &self.source);
        if !source.is_viable() {
            let message = format!(
                "Cannot use the part ({} of {}) to traverse the element ({{{}}})",
                source.name,
                self.source,
                field_text(source.name, source.value)
            );
            return Err(Error::new(Code::PATH_NOT_VIABLE, message));
        }
        if source.missing > 0 {
            return Ok(None);
        }
        for (found, path, end) in [
            (&source, &self.source, "source"),
            (&PathLookup::look(document, &self.target), &self.target, "destination"),
        ] {
            if let Some(array) = found.array {
                return Err(Error::bad_value(format!(
                    "The {end} field cannot be an array element, '{path}' in doc with {} has an array field called '{array}'",
                    id_text(document)
                )));
            }
        }
        Ok(Some(source.value.to_value()))
    }
}

fn is_prefix(one: &UpdatePath, other: &UpdatePath) -> bool {
    other.as_str().strip_prefix(one.as_str()).is_some_and(|rest| rest.starts_with('.'))
}

/// How far a path leads into a document.
struct PathLookup<'a> {
    /// The last name that was found, and its value.
    name: &'a str,
    value: ValueRef<'a>,
    /// How many names remain.
    missing: usize,
    next: Option<&'a Name>,
    /// The name of an array that the path leads, or would lead, into.
    array: Option<&'a str>,
}

impl<'a> PathLookup<'a> {
    fn look(document: &'a RawDocument, path: &'a UpdatePath) -> PathLookup<'a> {
        let names = path.names().unwrap_or_default();
        let mut found = PathLookup {
            name: "",
            value: ValueRef::Document(document.view()),
            missing: names.len(),
            next: names.first().copied(),
            array: None,
        };
        for (position, name) in names.iter().enumerate() {
            let value = match found.value {
                ValueRef::Document(document) => document.get(name.as_str()),
                ValueRef::Array(items) => {
                    found.array = found.array.or(Some(found.name));
                    name.index().and_then(|index| items.get(index))
                }
                _ => None,
            };
            let Some(value) = value else { break };
            found = PathLookup {
                name: name.as_str(),
                value,
                missing: names.len() - position - 1,
                next: names.get(position + 1).copied(),
                ..found
            };
        }
        found
    }

    /// Returns `true` if the missing part could be created.
    fn is_viable(&self) -> bool {
        match (self.value, self.next) {
            (_, None) | (ValueRef::Document(_), _) => true,
            (ValueRef::Array(_), Some(next)) => next.index().is_some(),
            _ => false,
        }
    }
}

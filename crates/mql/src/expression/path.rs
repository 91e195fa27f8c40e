//! Field paths in expressions: `$a.b`.
//!
//! An array on the way is mapped: the path goes on in each of its documents, and what leads nowhere is left out. Numbers in
//! a path are names, never positions, and arrays inside arrays are not entered: both unlike in filters.

use bson::{DocumentRef, Value, ValueRef};

use crate::error::{Code, Error, Result};
use crate::expression::operand::Operand;

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
        let names: Vec<String> =
            text.split('.').map(|name| check_name(name).map(|()| name.to_owned())).collect::<Result<_>>()?;
        if names.len() > NAMES_MAX {
            return Err(Error::new(Code::OVERFLOW, "FieldPath is too long"));
        }
        Ok(Path(names))
    }

    /// The names.
    pub(crate) fn names(&self) -> &[String] {
        &self.0
    }

    /// What the path leads to from a value.
    pub(crate) fn evaluate<'a>(&self, from: Option<ValueRef<'a>>) -> Operand<'a> {
        follow(&self.0, from)
    }
}

/// Refuses names that no field of a literal document or of a path may have.
pub(crate) fn check_name(name: &str) -> Result<()> {
    let hint = "Consider using $getField or $setField.";
    if name.is_empty() {
        return Err(Error::location(15998, "FieldPath field names may not be empty strings."));
    }
    if name.starts_with('$') {
        let message = format!("FieldPath field names may not start with '$'. {hint}");
        return Err(Error::location(16410, message));
    }
    if name.contains('\0') {
        return Err(Error::location(16411, "FieldPath field names may not contain '\0'."));
    }
    if name.contains('.') {
        return Err(Error::location(16412, format!("FieldPath field names may not contain '.'. {hint}")));
    }
    Ok(())
}

fn follow<'a>(names: &[String], from: Option<ValueRef<'a>>) -> Operand<'a> {
    let mut at = from;
    for (position, name) in names.iter().enumerate() {
        match at {
            Some(ValueRef::Document(document)) => at = document.get(name),
            Some(ValueRef::Array(items)) => {
                let documents = items.iter().filter_map(ValueRef::as_document);
                return Operand::Owned(Value::Array(
                    documents.filter_map(|document| follow_document(&names[position..], document)).collect(),
                ));
            }
            _ => return Operand::Missing,
        }
    }
    Operand::borrowed(at)
}

fn follow_document(names: &[String], document: DocumentRef<'_>) -> Option<Value> {
    follow(names, Some(ValueRef::Document(document))).into_value()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::Document;

    #[test]
    fn arrays_on_the_way_are_mapped_and_never_indexed() {
        let items = vec![
            Value::Document(Document::new().with("b", 1)),
            Value::Int32(2),
            Value::Array(vec![Value::Document(Document::new().with("b", 3))]),
            Value::Document(Document::new().with("c", 4)),
            Value::Document(Document::new().with("b", Value::Null)),
        ];
        let document = Value::Document(Document::new().with("a", items));
        let at = |path: &str| {
            Path::parse(path).map(|path| path.evaluate(Some(document.view())).into_value()).unwrap()
        };
        assert_eq!(at("a.b"), Some(Value::Array(vec![Value::Int32(1), Value::Null])));
        assert_eq!(at("a.0"), Some(Value::Array(vec![])));
        assert_eq!(at("a.b.c"), Some(Value::Array(vec![])));
        assert_eq!(at("x.b"), None);
    }

    #[test]
    fn wrong_paths_are_refused() {
        for (path, code) in [("", 40352), ("a.", 40353), ("a..b", 15998), ("a.$b", 16410), (".a", 15998)] {
            assert_eq!(Path::parse(path).map_err(|error| error.code.0), Err(code), "{path}");
        }
    }
}

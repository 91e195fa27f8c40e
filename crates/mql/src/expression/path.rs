//! Field paths in expressions: `$a.b`.
//!
//! An array on the way is mapped: the path goes on in each of its documents, and what leads nowhere is left out. Numbers in
//! a path are names, never positions, and arrays inside arrays are not entered: both unlike in filters.

use bson::{DocumentRef, Value, ValueRef};

use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::expression::operand::Operand;
use crate::path::check_field_name;

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
    pub(crate) fn evaluate<'a>(&self, from: Option<ValueRef<'a>>, context: &Context) -> Result<Operand<'a>> {
        follow(&self.0, from, context)
    }
}

/// Refuses names that no field of a literal document or of a path may have.
pub(crate) fn check_name(name: &str) -> Result<()> {
    check_field_name(name)?;
    if name.contains('.') {
        let message = "FieldPath field names may not contain '.'. Consider using $getField or $setField.";
        return Err(Error::location(16412, message));
    }
    Ok(())
}

fn follow<'a>(names: &[String], from: Option<ValueRef<'a>>, context: &Context) -> Result<Operand<'a>> {
    let mut at = from;
    for (position, name) in names.iter().enumerate() {
        match at {
            Some(ValueRef::Document(document)) => at = field(document, name, context)?,
            Some(ValueRef::Array(items)) => {
                let mut found = Vec::new();
                for item in items.iter() {
                    context.spend(1)?;
                    if let ValueRef::Document(_) = item {
                        found.extend(follow(&names[position..], Some(item), context)?.keep(context)?);
                    }
                }
                return Ok(Operand::Owned(Value::Array(found)));
            }
            _ => return Ok(Operand::Missing),
        }
    }
    Ok(Operand::borrowed(at))
}

/// The value of a field. Fields that are passed on the way count as work: a document may have a million.
fn field<'a>(document: DocumentRef<'a>, name: &str, context: &Context) -> Result<Option<ValueRef<'a>>> {
    let mut passed = 0;
    for (known, value) in document.iter() {
        if known == name {
            context.spend(passed / 16)?;
            return Ok(Some(value));
        }
        passed += 1;
    }
    context.spend(passed / 16)?;
    Ok(None)
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
            let path = Path::parse(path).unwrap();
            path.evaluate(Some(document.view()), &Context::at(0)).unwrap().into_value()
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

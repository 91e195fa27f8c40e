//! Evaluation of field paths in expressions: `$a.b`.
//!
//! An array on the way is mapped: the path continues in each of its documents, and missing values are left out. Numbers in
//! a path are names, never positions, and arrays inside arrays are not entered: both unlike in filters.

use bson::{DocumentRef, Value, ValueRef};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::expression::operand::Operand;
use crate::path::{Component, FieldPath, check_field_name};

impl FieldPath {
    /// Evaluates the path from a value, by the rules of expressions.
    pub(crate) fn evaluate<'a>(&self, from: Option<ValueRef<'a>>, context: &Context) -> Result<Operand<'a>> {
        follow(self.components(), from, context)
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

fn follow<'a>(names: &[Component], from: Option<ValueRef<'a>>, context: &Context) -> Result<Operand<'a>> {
    let mut at = from;
    for (position, name) in names.iter().enumerate() {
        match at {
            Some(ValueRef::Document(document)) => at = field(document, name.name(), context)?,
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

/// Returns the value of a field. Fields that are passed on the way count as work: a document may have a million.
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
            let path = FieldPath::parse_aggregation(path).unwrap();
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
            assert_eq!(FieldPath::parse_aggregation(path).map_err(|error| error.code.0), Err(code), "{path}");
        }
    }
}

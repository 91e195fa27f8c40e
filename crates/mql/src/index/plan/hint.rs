//! Hints: the index that a client requests.

use bson::{Document, ValueRef};

use super::Available;
use crate::error::{Error, Result};
use crate::sort::{Direction, Sort};

/// The index that a client requests.
#[derive(Debug, Clone, PartialEq)]
pub enum Hint {
    /// No index: documents in their stored order.
    Natural(Direction),
    /// The index of that name.
    Name(String),
    /// The index with that key pattern.
    Key(Document),
}

impl Hint {
    /// Reads a hint. An empty document is none.
    pub fn parse(hint: ValueRef<'_>) -> Result<Option<Hint>> {
        match hint {
            ValueRef::String(name) => Ok(Some(Hint::Name(name.to_owned()))),
            ValueRef::Document(key) if key.is_empty() => Ok(None),
            ValueRef::Document(key) if key.get("$natural").is_some() => {
                let natural = Sort::parse(key)?.natural();
                Ok(Some(Hint::Natural(natural.unwrap_or(Direction::Ascending))))
            }
            ValueRef::Document(key) => Ok(Some(Hint::Key(key.to_document()))),
            _ => Err(Error::failed_to_parse("Hint must be a string or an object")),
        }
    }

    /// Returns the index that the hint names.
    pub(super) fn find(&self, indexes: &[Available<'_>]) -> Result<usize> {
        let found = match self {
            Hint::Natural(_) => None,
            Hint::Name(name) => indexes.iter().position(|index| index.spec.name() == name),
            Hint::Key(key) => {
                let wanted = ValueRef::Document(key.view());
                indexes.iter().position(|index| {
                    bson::equal(ValueRef::Document(index.spec.key_pattern().view()), wanted)
                })
            }
        };
        found.ok_or_else(|| {
            Error::bad_value("planner returned error: hint provided does not correspond to an existing index")
        })
    }
}

/// Returns the error for an index that exists but cannot answer the filter.
pub(super) fn unusable() -> Error {
    Error::bad_value("planner returned error: the index that the hint names cannot answer this query")
}

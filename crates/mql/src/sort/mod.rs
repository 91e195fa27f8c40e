//! Sort orders: `{a: 1, "b.c": -1}`.
//!
//! Each document gets a [`SortKey`] once, which is then compared. A field that is missing sorts as null; an array sorts by its
//! smallest item, or its largest where the order descends; an empty array is below null. Where two fields lead into one array,
//! they are taken from the same item: the key is the smallest of the tuples that the items give. Fields in two different
//! arrays would have no order, which is an error.

mod key;

use std::cmp::Ordering;

use bson::{Collation, Document, DocumentRef, ValueRef};

pub use key::SortKey;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::numbers::whole;
use crate::path::FieldPath;

/// Most fields that documents can be sorted by.
const FIELDS_MAX: usize = 32;

/// The keywords of `$meta` that can be sorted by.
const META: [&str; 6] =
    ["textScore", "randVal", "geoNearDistance", "searchScore", "vectorSearchScore", "score"];

/// An order of documents.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sort {
    parts: Vec<Part>,
    fields: Vec<(FieldPath, Direction)>,
    natural: Option<Direction>,
}

/// The value of one part of an order.
#[derive(Debug, Clone, PartialEq)]
enum Part {
    /// A field: its place in the list of fields.
    Field(usize),
    /// Something known beside the document; the highest comes first.
    Meta(String),
}

/// Which end comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The smallest.
    Ascending,
    /// The largest.
    Descending,
}

impl Direction {
    /// Returns the order of two things in this direction.
    #[must_use]
    pub fn apply(self, order: Ordering) -> Ordering {
        match self {
            Direction::Ascending => order,
            Direction::Descending => order.reverse(),
        }
    }

    /// Returns the opposite direction.
    #[must_use]
    pub fn reversed(self) -> Direction {
        match self {
            Direction::Ascending => Direction::Descending,
            Direction::Descending => Direction::Ascending,
        }
    }
}

impl Sort {
    /// Reads an order. An empty one sorts nothing.
    pub fn parse(specification: DocumentRef<'_>) -> Result<Sort> {
        let mut sort = Sort::default();
        for (name, value) in specification.iter() {
            if name == "$natural" {
                sort.natural = Some(natural(specification, value)?);
                continue;
            }
            if let ValueRef::Document(document) = value {
                sort.parts.push(Part::Meta(meta(name, document)?));
            } else {
                let direction = direction(name, value)?;
                let path = FieldPath::parse_strict(name)?;
                // A field that is named again has no effect.
                if !sort.fields.iter().any(|(known, _)| *known == path) {
                    sort.parts.push(Part::Field(sort.fields.len()));
                    sort.fields.push((path, direction));
                }
            }
            if sort.parts.len() > FIELDS_MAX {
                return Err(Error::location(13103, "too many compound keys"));
            }
        }
        Ok(sort)
    }

    /// Returns the fields in their order, the most significant first. Parts by `$meta` are not among them.
    pub fn fields(&self) -> &[(FieldPath, Direction)] {
        &self.fields
    }

    /// Returns the direction of `$natural`, if that is the order.
    pub fn natural(&self) -> Option<Direction> {
        self.natural
    }

    /// Returns `true` if the order is empty.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Returns `true` if the order depends on more than fields, so that no index can serve it.
    pub fn uses_meta(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Meta(_)))
    }

    /// Returns the sort key of a document. `meta` is its metadata, one field for each keyword.
    pub fn key(
        &self,
        document: DocumentRef<'_>,
        collation: &Collation,
        meta: Option<&Document>,
        context: &Context,
    ) -> Result<SortKey> {
        key::build(self, document, collation, meta, context)
    }

    /// Compares two documents by their keys, which must be made with the same collation.
    pub fn compare(&self, left: &SortKey, right: &SortKey) -> Ordering {
        let directions = self.parts.iter().map(|part| match part {
            Part::Field(place) => self.fields[*place].1,
            Part::Meta(_) => Direction::Descending,
        });
        left.compare(right, directions)
    }
}

fn direction(name: &str, value: ValueRef<'_>) -> Result<Direction> {
    if !value.is_number() {
        let text = bson::shell_text(value);
        return Err(Error::location(15974, format!("Illegal key in $sort specification: {name}: {text}")));
    }
    match whole(value) {
        Some(1) => Ok(Direction::Ascending),
        Some(-1) => Ok(Direction::Descending),
        _ => {
            let message = "$sort key ordering must be 1 (for ascending) or -1 (for descending)";
            Err(Error::location(15975, message))
        }
    }
}

fn natural(specification: DocumentRef<'_>, value: ValueRef<'_>) -> Result<Direction> {
    if specification.iter().nth(1).is_some() {
        let text = bson::shell_text(ValueRef::Document(specification));
        return Err(Error::bad_value(format!("Cannot include '$natural' in compound sort: {text}")));
    }
    match whole(value) {
        Some(1) => Ok(Direction::Ascending),
        Some(-1) => Ok(Direction::Descending),
        _ => Err(Error::bad_value("$natural sort cannot be set to a value other than -1 or 1.")),
    }
}

fn meta(name: &str, document: DocumentRef<'_>) -> Result<String> {
    let mut fields = document.iter();
    let (Some(("$meta", value)), None) = (fields.next(), fields.next()) else {
        return Err(Error::location(17312, "$meta is the only expression supported by $sort right now"));
    };
    match value.as_str() {
        Some(keyword) if META.contains(&keyword) => Ok(keyword.to_owned()),
        _ => {
            let text = bson::shell_text(ValueRef::Document(document));
            Err(Error::location(31138, format!("Illegal $meta sort: {name}: {text}")))
        }
    }
}

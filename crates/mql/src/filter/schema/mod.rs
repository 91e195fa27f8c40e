//! `$jsonSchema`: validation of documents.
//!
//! The draft 4 of JSON Schema without references, formats and defaults, with `bsonType` for the types that JSON does not
//! have. A rule about values of one type accepts all others: `minimum` accepts every string.

mod check;
mod explain;
mod parse;

use bson::{DocumentRef, Value, ValueRef};

pub(super) use explain::explain_schema;

use super::matching::MatchContext;
use super::node::TypeSet;
use crate::error::Result;
use crate::regex::{Pattern, PatternBudget};

/// A parsed schema.
#[derive(Debug, Clone, Default)]
pub struct Schema {
    rules: Vec<Rule>,
}

#[derive(Debug, Clone)]
enum Rule {
    Types(TypeSet),
    Enum(Vec<Value>),
    Minimum {
        value: Value,
        exclusive: bool,
    },
    Maximum {
        value: Value,
        exclusive: bool,
    },
    MultipleOf(Value),
    Length {
        least: u64,
        most: u64,
    },
    Pattern(Pattern),
    ItemCount {
        least: u64,
        most: u64,
    },
    UniqueItems,
    /// One schema for all items.
    Items(Schema),
    /// One for each of the first items, and the rule for the others.
    ItemList(Vec<Schema>, Rest),
    FieldCount {
        least: u64,
        most: u64,
    },
    Required(Vec<String>),
    Fields(Fields),
    /// If this field exists, so do these.
    RequiredWith(String, Vec<String>),
    /// If this field exists, the document conforms to this schema.
    SchemaWith(String, Schema),
    AllOf(Vec<Schema>),
    AnyOf(Vec<Schema>),
    OneOf(Vec<Schema>),
    Not(Schema),
}

#[derive(Debug, Clone)]
struct Fields {
    named: Vec<(String, Schema)>,
    patterns: Vec<(Pattern, Schema)>,
    rest: Rest,
}

/// The rule for fields or items that no other rule names.
#[derive(Debug, Clone)]
enum Rest {
    Anything,
    Nothing,
    Like(Box<Schema>),
}

impl Schema {
    /// Reads a schema.
    pub(super) fn parse(schema: ValueRef<'_>, patterns: &PatternBudget) -> Result<Schema> {
        parse::schema(schema, patterns)
    }

    /// Returns whether a document satisfies the schema.
    pub(super) fn matches(&self, document: DocumentRef<'_>, matching: MatchContext<'_>) -> Result<bool> {
        self.accepts(ValueRef::Document(document), matching.context)
    }
}

//! Indexes: specifications, the keys of documents, and the spans of keys that can answer a filter.
//!
//! [`IndexSpec::parse`] checks a specification as clients send it; [`IndexSpec::entries`] gives the ordered keys of a
//! document; [`compare_specs`] says whether two indexes can exist side by side; [`plan()`] says which of them help with a
//! filter. This module does not know where keys are stored.
//!
//! The invariant: the index has a key for every value by which a filter can match a document, or the plan does not use the
//! index. Keys may be more than a filter asks for, never fewer.

mod compare;
mod keys;
mod parse;
mod pattern;
mod plan;
mod sphere;
mod text_options;
mod ttl;
mod wildcard;

use bson::{Collation, Document, DocumentRef, Value, ValueRef};

pub use crate::geo_box::GeoBox;
pub use crate::text::{TextQuery, TextRules};
pub use compare::{Relation, compare_specs};
pub use keys::Entries;
pub use pattern::{Part, PartKind, default_name};
pub use plan::{Available, Candidate, Hint, Span, plan, plan_branches};
pub use ttl::{EXPIRE_AFTER_SECONDS_MAX, TtlRule};

use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::filter::Filter;
use wildcard::WildcardRules;

/// The name of the index that every collection has.
pub const ID_INDEX_NAME: &str = "_id_";

/// A checked specification of an index.
#[derive(Debug, Clone)]
pub struct IndexSpec {
    name: String,
    /// The key pattern as it is listed.
    key: Document,
    parts: Vec<Part>,
    unique: bool,
    sparse: bool,
    hidden: bool,
    expire_after_seconds: Option<i32>,
    partial: Option<Partial>,
    collation: Collation,
    wildcard: Option<WildcardRules>,
    text: Option<TextRules>,
    /// Options that are listed as they were given and have no effect.
    kept: Document,
}

/// The treatment of unknown options in a specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownOptions {
    /// They are refused by name.
    Refused,
    /// `ignoreUnknownIndexOptions`.
    Ignored,
}

#[derive(Debug, Clone)]
struct Partial {
    expression: Document,
    filter: Filter,
}

impl IndexSpec {
    /// Reads a specification and checks all of it.
    pub fn parse(spec: DocumentRef<'_>) -> Result<IndexSpec> {
        IndexSpec::parse_in(spec, UnknownOptions::Refused, &Collation::simple())
    }

    /// Returns the same for an index of a collection with that collation, which it takes over unless it names one. A
    /// request cannot name the collation of a collection from before format 9, so it is passed as it is.
    pub fn parse_in(
        spec: DocumentRef<'_>,
        unknown: UnknownOptions,
        collation: &Collation,
    ) -> Result<IndexSpec> {
        parse::parse(spec, parse::Origin::Client(unknown), collation)
    }

    /// Returns the index on `_id`, with the collation of its collection.
    pub fn id(collation: Collation) -> IndexSpec {
        let key = Document::new().with("_id", 1);
        let parts = pattern::parse(key.view()).expect("the pattern of the _id index is right");
        IndexSpec {
            name: ID_INDEX_NAME.to_owned(),
            key,
            parts,
            unique: true,
            sparse: false,
            hidden: false,
            expire_after_seconds: None,
            partial: None,
            collation,
            wildcard: None,
            text: None,
            kept: Document::new(),
        }
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the key pattern, as it is listed.
    pub fn key_pattern(&self) -> &Document {
        &self.key
    }

    /// Returns the parts of the key.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Returns `true` if no two documents may have the same key.
    pub fn is_unique(&self) -> bool {
        self.unique
    }

    /// Returns `true` if documents without any of the fields are left out.
    pub fn is_sparse(&self) -> bool {
        self.sparse
    }

    /// Returns `true` if plans ignore it.
    pub fn is_hidden(&self) -> bool {
        self.hidden
    }

    /// Returns `true` if this is the index on `_id`.
    pub fn is_id(&self) -> bool {
        self.name == ID_INDEX_NAME
    }

    /// Returns how its strings compare.
    pub fn collation(&self) -> &Collation {
        &self.collation
    }

    /// Returns the filter that selects the documents in it.
    pub fn partial_filter(&self) -> Option<&Filter> {
        self.partial.as_ref().map(|partial| &partial.filter)
    }

    /// Returns the rules of a text index.
    pub fn text_rules(&self) -> Option<&TextRules> {
        self.text.as_ref()
    }

    /// Returns the seconds after which documents expire, if it is a TTL index; -1 is only possible for
    /// [`TtlRule::Collection`].
    pub fn expire_after_seconds(&self) -> Option<i32> {
        self.expire_after_seconds
    }

    /// Returns the only ordinary part, if that is all the key has.
    fn single_ordinary_part(&self) -> Option<&Part> {
        match self.parts.as_slice() {
            [part] if part.kind.is_ordinary() => Some(part),
            _ => None,
        }
    }

    /// Returns whether a document is subject to this index at all, by its partial filter.
    pub fn covers(&self, document: DocumentRef<'_>, context: &Context) -> Result<bool> {
        match &self.partial {
            Some(partial) => partial.filter.matches(document, context),
            None => Ok(true),
        }
    }

    /// Reads the output of [`IndexSpec::to_stored`].
    pub fn parse_stored(spec: DocumentRef<'_>) -> Result<IndexSpec> {
        parse::parse(spec, parse::Origin::Store, &Collation::simple())
    }

    /// Returns the specification as it is stored: as it is listed, with the names of the order of its keys and of the rules
    /// of its terms.
    pub fn to_stored(&self) -> Document {
        let mut stored = self.to_document();
        if !self.collation.is_simple() {
            stored.insert("collation", self.collation.to_stored());
        }
        if let Some(terms) = self.text.as_ref().and_then(TextRules::stored_terms) {
            stored.push(text_options::TERMS, terms);
        }
        stored
    }

    /// Returns the specification as `listIndexes` shows it.
    pub fn to_document(&self) -> Document {
        let mut listed =
            Document::new().with("v", 2).with("key", self.key.clone()).with("name", self.name.as_str());
        if self.unique && !self.is_id() {
            listed.push("unique", true);
        }
        if self.sparse {
            listed.push("sparse", true);
        }
        if self.hidden {
            listed.push("hidden", true);
        }
        if let Some(seconds) = self.expire_after_seconds {
            listed.push("expireAfterSeconds", seconds);
        }
        if let Some(partial) = &self.partial {
            listed.push("partialFilterExpression", partial.expression.clone());
        }
        if !self.collation.is_simple() {
            listed.push("collation", self.collation.to_document());
        }
        if let Some(projection) = self.wildcard.as_ref().and_then(WildcardRules::projection) {
            listed.push("wildcardProjection", projection.clone());
        }
        if let Some(text) = &self.text {
            text.list(&mut listed);
        }
        for (name, value) in self.kept.iter() {
            listed.push(name, value.clone());
        }
        listed
    }

    /// Returns the same index, hidden or shown again.
    pub fn with_hidden(&self, hidden: bool) -> Result<IndexSpec> {
        if self.is_id() && hidden {
            return Err(Error::bad_value("can't hide _id index"));
        }
        Ok(IndexSpec { hidden, ..self.clone() })
    }
}

/// Returns a value in a message about a specification.
fn show(document: DocumentRef<'_>) -> String {
    bson::shell_text(ValueRef::Document(document))
}

fn cannot_create(message: impl Into<String>) -> Error {
    Error::new(Code::CANNOT_CREATE_INDEX, message)
}

/// Returns the value of a number of any type as a double, where only its rough size matters.
fn as_double(value: &Value) -> Option<f64> {
    match value {
        Value::Double(number) => Some(*number),
        Value::Int32(number) => Some(f64::from(*number)),
        Value::Int64(number) => Some(*number as f64),
        Value::Decimal128(number) => Some(number.to_f64()),
        _ => None,
    }
}

//! A value as a tree, for code that builds and changes values. Reading goes through [`ValueRef`], which also reads
//! bytes.
//!
//! The derived equality is structural: `1` and `1.0` differ. Use [`crate::equal`] for what a filter means by equality.

pub(crate) mod raw;
pub(crate) mod view;
pub(crate) mod write;

use crate::decimal::Decimal128;
use crate::object_id::ObjectId;
use crate::value::view::{ArrayRef, BinaryRef, DocumentRef, Kind, RegexRef, ValueRef};

/// One value of any type.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the names are BSON's own")]
pub enum Value {
    Double(f64),
    String(String),
    Document(Document),
    Array(Vec<Value>),
    Binary(Binary),
    Undefined,
    ObjectId(ObjectId),
    Bool(bool),
    /// Milliseconds since 1970.
    DateTime(i64),
    Null,
    Regex(Regex),
    DbPointer {
        namespace: String,
        id: ObjectId,
    },
    JavaScript(String),
    Symbol(String),
    JavaScriptWithScope {
        code: String,
        scope: Document,
    },
    Int32(i32),
    Timestamp(Timestamp),
    Int64(i64),
    Decimal128(Decimal128),
    MinKey,
    MaxKey,
}

/// Bytes with a subtype.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binary {
    /// The meaning of the bytes: 0 is generic, 4 a UUID.
    pub subtype: u8,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// A regular expression as a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Regex {
    /// The pattern.
    pub pattern: String,
    /// Its flags, in alphabetical order.
    pub options: String,
}

/// A logical time: seconds since 1970 and a counter within the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// Seconds since 1970.
    pub seconds: u32,
    /// The counter within the second.
    pub increment: u32,
}

impl Value {
    /// Returns the tree seen through the same reader as bytes.
    pub fn view(&self) -> ValueRef<'_> {
        match self {
            Value::Double(value) => ValueRef::Double(*value),
            Value::String(text) => ValueRef::String(text),
            Value::Document(document) => ValueRef::Document(document.view()),
            Value::Array(items) => ValueRef::Array(ArrayRef::of_tree(items)),
            Value::Binary(Binary { subtype, bytes }) => {
                ValueRef::Binary(BinaryRef { subtype: *subtype, bytes })
            }
            Value::Undefined => ValueRef::Undefined,
            Value::ObjectId(id) => ValueRef::ObjectId(*id),
            Value::Bool(value) => ValueRef::Bool(*value),
            Value::DateTime(millis) => ValueRef::DateTime(*millis),
            Value::Null => ValueRef::Null,
            Value::Regex(Regex { pattern, options }) => ValueRef::Regex(RegexRef { pattern, options }),
            Value::DbPointer { namespace, id } => ValueRef::DbPointer { namespace, id: *id },
            Value::JavaScript(code) => ValueRef::JavaScript(code),
            Value::Symbol(text) => ValueRef::Symbol(text),
            Value::JavaScriptWithScope { code, scope } => {
                ValueRef::JavaScriptWithScope { code, scope: scope.view() }
            }
            Value::Int32(value) => ValueRef::Int32(*value),
            Value::Timestamp(timestamp) => ValueRef::Timestamp(*timestamp),
            Value::Int64(value) => ValueRef::Int64(*value),
            Value::Decimal128(value) => ValueRef::Decimal128(*value),
            Value::MinKey => ValueRef::MinKey,
            Value::MaxKey => ValueRef::MaxKey,
        }
    }

    /// Returns the type.
    pub fn kind(&self) -> Kind {
        self.view().kind()
    }

    /// Returns the text, if this is a string.
    pub fn as_str(&self) -> Option<&str> {
        if let Value::String(text) = self { Some(text) } else { None }
    }

    /// Returns the document, if this is one.
    pub fn as_document(&self) -> Option<&Document> {
        if let Value::Document(document) = self { Some(document) } else { None }
    }

    /// Returns the items, if this is an array.
    pub fn as_array(&self) -> Option<&[Value]> {
        if let Value::Array(items) = self { Some(items) } else { None }
    }
}

macro_rules! from {
    ($($from:ty => $variant:ident),* $(,)?) => {
        $(impl From<$from> for Value {
            fn from(value: $from) -> Value {
                Value::$variant(value.into())
            }
        })*
    };
}

from! {
    f64 => Double, &str => String, String => String, Document => Document, Vec<Value> => Array, Binary => Binary,
    ObjectId => ObjectId, bool => Bool, i32 => Int32, i64 => Int64, Timestamp => Timestamp, Regex => Regex,
    Decimal128 => Decimal128,
}

/// Fields in the order they were written. Names may repeat, as in bytes; the first is the one that is found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Document(Vec<(String, Value)>);

impl Document {
    /// Creates an empty document.
    pub fn new() -> Document {
        Document::default()
    }

    /// Returns the tree seen through the same reader as bytes.
    pub fn view(&self) -> DocumentRef<'_> {
        DocumentRef::of_tree(&self.0)
    }

    /// Returns the value of a field.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Returns a mutable reference to the value of a field.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        self.0.iter_mut().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Returns `true` if there is such a field.
    pub fn contains(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Sets a field: in its place if it is there, at the end if not.
    pub fn insert(&mut self, name: impl AsRef<str> + Into<String>, value: impl Into<Value>) {
        match self.get_mut(name.as_ref()) {
            Some(place) => *place = value.into(),
            None => self.push(name, value),
        }
    }

    /// Appends a field without looking whether it is there already.
    pub fn push(&mut self, name: impl Into<String>, value: impl Into<Value>) {
        self.0.push((name.into(), value.into()));
    }

    /// Returns the document with a field appended, for literals.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<Value>) -> Document {
        self.push(name, value);
        self
    }

    /// Removes and returns a field.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        let position = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.remove(position).1)
    }

    /// Returns all fields in their order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&str, &Value)> + ExactSizeIterator {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Returns a mutable reference to the list of fields.
    pub fn fields_mut(&mut self) -> &mut Vec<(String, Value)> {
        &mut self.0
    }

    /// Returns the number of fields.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns `true` if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl IntoIterator for Document {
    type Item = (String, Value);
    type IntoIter = std::vec::IntoIter<(String, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<N: Into<String>, V: Into<Value>> FromIterator<(N, V)> for Document {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(fields: I) -> Document {
        Document(fields.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

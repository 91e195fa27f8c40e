//! Borrowed values: one reader for bytes and for trees.
//!
//! Bytes are read lazily: finding a field compares names and skips values by their length. A
//! [`RawDocument`](crate::RawDocument) is validated when it is created, so reading cannot fail; on bytes that should be
//! impossible a reader ends early rather than panic.

use crate::decimal::Decimal128;
use crate::object_id::ObjectId;
use crate::value::raw;
use crate::value::{Binary, Document, Regex, Timestamp, Value};

/// One value, borrowed.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "the names are BSON's own")]
pub enum ValueRef<'a> {
    Double(f64),
    String(&'a str),
    Document(DocumentRef<'a>),
    Array(ArrayRef<'a>),
    Binary(BinaryRef<'a>),
    Undefined,
    ObjectId(ObjectId),
    Bool(bool),
    /// Milliseconds since 1970.
    DateTime(i64),
    Null,
    Regex(RegexRef<'a>),
    DbPointer {
        namespace: &'a str,
        id: ObjectId,
    },
    JavaScript(&'a str),
    Symbol(&'a str),
    JavaScriptWithScope {
        code: &'a str,
        scope: DocumentRef<'a>,
    },
    Int32(i32),
    Timestamp(Timestamp),
    Int64(i64),
    Decimal128(Decimal128),
    MinKey,
    MaxKey,
}

/// Bytes with a subtype, borrowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BinaryRef<'a> {
    /// What the bytes mean.
    pub subtype: u8,
    /// The bytes.
    pub bytes: &'a [u8],
}

/// A regular expression, borrowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegexRef<'a> {
    /// The pattern.
    pub pattern: &'a str,
    /// Its flags.
    pub options: &'a str,
}

/// The type of a value. The number is its code on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(i8)]
#[expect(missing_docs, reason = "the names are BSON's own")]
pub enum Kind {
    Double = 1,
    String = 2,
    Document = 3,
    Array = 4,
    Binary = 5,
    Undefined = 6,
    ObjectId = 7,
    Bool = 8,
    DateTime = 9,
    Null = 10,
    Regex = 11,
    DbPointer = 12,
    JavaScript = 13,
    Symbol = 14,
    JavaScriptWithScope = 15,
    Int32 = 16,
    Timestamp = 17,
    Int64 = 18,
    Decimal128 = 19,
    MinKey = -1,
    MaxKey = 127,
}

impl Kind {
    /// All types, in the order of their codes.
    pub const ALL: [Kind; 21] = [
        Kind::MinKey,
        Kind::Double,
        Kind::String,
        Kind::Document,
        Kind::Array,
        Kind::Binary,
        Kind::Undefined,
        Kind::ObjectId,
        Kind::Bool,
        Kind::DateTime,
        Kind::Null,
        Kind::Regex,
        Kind::DbPointer,
        Kind::JavaScript,
        Kind::Symbol,
        Kind::JavaScriptWithScope,
        Kind::Int32,
        Kind::Timestamp,
        Kind::Int64,
        Kind::Decimal128,
        Kind::MaxKey,
    ];

    /// Returns the type of a code on the wire.
    pub fn from_code(code: i8) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| *kind as i8 == code)
    }

    /// Returns the name that `$type` takes and gives, and that error messages use.
    pub fn alias(self) -> &'static str {
        match self {
            Kind::Double => "double",
            Kind::String => "string",
            Kind::Document => "object",
            Kind::Array => "array",
            Kind::Binary => "binData",
            Kind::Undefined => "undefined",
            Kind::ObjectId => "objectId",
            Kind::Bool => "bool",
            Kind::DateTime => "date",
            Kind::Null => "null",
            Kind::Regex => "regex",
            Kind::DbPointer => "dbPointer",
            Kind::JavaScript => "javascript",
            Kind::Symbol => "symbol",
            Kind::JavaScriptWithScope => "javascriptWithScope",
            Kind::Int32 => "int",
            Kind::Timestamp => "timestamp",
            Kind::Int64 => "long",
            Kind::Decimal128 => "decimal",
            Kind::MinKey => "minKey",
            Kind::MaxKey => "maxKey",
        }
    }

    /// Returns `true` if this is one of the four types of numbers.
    pub fn is_number(self) -> bool {
        matches!(self, Kind::Double | Kind::Int32 | Kind::Int64 | Kind::Decimal128)
    }
}

impl<'a> ValueRef<'a> {
    /// Returns the type.
    pub fn kind(self) -> Kind {
        match self {
            ValueRef::Double(_) => Kind::Double,
            ValueRef::String(_) => Kind::String,
            ValueRef::Document(_) => Kind::Document,
            ValueRef::Array(_) => Kind::Array,
            ValueRef::Binary(_) => Kind::Binary,
            ValueRef::Undefined => Kind::Undefined,
            ValueRef::ObjectId(_) => Kind::ObjectId,
            ValueRef::Bool(_) => Kind::Bool,
            ValueRef::DateTime(_) => Kind::DateTime,
            ValueRef::Null => Kind::Null,
            ValueRef::Regex(_) => Kind::Regex,
            ValueRef::DbPointer { .. } => Kind::DbPointer,
            ValueRef::JavaScript(_) => Kind::JavaScript,
            ValueRef::Symbol(_) => Kind::Symbol,
            ValueRef::JavaScriptWithScope { .. } => Kind::JavaScriptWithScope,
            ValueRef::Int32(_) => Kind::Int32,
            ValueRef::Timestamp(_) => Kind::Timestamp,
            ValueRef::Int64(_) => Kind::Int64,
            ValueRef::Decimal128(_) => Kind::Decimal128,
            ValueRef::MinKey => Kind::MinKey,
            ValueRef::MaxKey => Kind::MaxKey,
        }
    }

    /// Returns the text, if this is a string.
    pub fn as_str(self) -> Option<&'a str> {
        if let ValueRef::String(text) = self { Some(text) } else { None }
    }

    /// Returns the document, if this is one.
    pub fn as_document(self) -> Option<DocumentRef<'a>> {
        if let ValueRef::Document(document) = self { Some(document) } else { None }
    }

    /// Returns the items, if this is an array.
    pub fn as_array(self) -> Option<ArrayRef<'a>> {
        if let ValueRef::Array(items) = self { Some(items) } else { None }
    }

    /// Returns the boolean, if this is one.
    pub fn as_bool(self) -> Option<bool> {
        if let ValueRef::Bool(value) = self { Some(value) } else { None }
    }

    /// Returns `true` if this is a number of any type.
    pub fn is_number(self) -> bool {
        self.kind().is_number()
    }

    /// Returns an owned tree of this value.
    pub fn to_value(self) -> Value {
        match self {
            ValueRef::Double(value) => Value::Double(value),
            ValueRef::String(text) => Value::String(text.to_owned()),
            ValueRef::Document(document) => Value::Document(document.to_document()),
            ValueRef::Array(items) => Value::Array(items.iter().map(ValueRef::to_value).collect()),
            ValueRef::Binary(BinaryRef { subtype, bytes }) => {
                Value::Binary(Binary { subtype, bytes: bytes.to_vec() })
            }
            ValueRef::Undefined => Value::Undefined,
            ValueRef::ObjectId(id) => Value::ObjectId(id),
            ValueRef::Bool(value) => Value::Bool(value),
            ValueRef::DateTime(millis) => Value::DateTime(millis),
            ValueRef::Null => Value::Null,
            ValueRef::Regex(RegexRef { pattern, options }) => {
                Value::Regex(Regex { pattern: pattern.to_owned(), options: options.to_owned() })
            }
            ValueRef::DbPointer { namespace, id } => Value::DbPointer { namespace: namespace.to_owned(), id },
            ValueRef::JavaScript(code) => Value::JavaScript(code.to_owned()),
            ValueRef::Symbol(text) => Value::Symbol(text.to_owned()),
            ValueRef::JavaScriptWithScope { code, scope } => {
                Value::JavaScriptWithScope { code: code.to_owned(), scope: scope.to_document() }
            }
            ValueRef::Int32(value) => Value::Int32(value),
            ValueRef::Timestamp(timestamp) => Value::Timestamp(timestamp),
            ValueRef::Int64(value) => Value::Int64(value),
            ValueRef::Decimal128(value) => Value::Decimal128(value),
            ValueRef::MinKey => Value::MinKey,
            ValueRef::MaxKey => Value::MaxKey,
        }
    }
}

impl<'a> From<&'a Value> for ValueRef<'a> {
    fn from(value: &'a Value) -> ValueRef<'a> {
        value.view()
    }
}

/// A document, borrowed.
#[derive(Debug, Clone, Copy)]
pub struct DocumentRef<'a>(Fields<'a>);

#[derive(Debug, Clone, Copy)]
enum Fields<'a> {
    /// The elements, without the length before and the zero behind.
    Bytes(&'a [u8]),
    Tree(&'a [(String, Value)]),
}

impl<'a> DocumentRef<'a> {
    pub(crate) fn of_tree(fields: &'a [(String, Value)]) -> DocumentRef<'a> {
        DocumentRef(Fields::Tree(fields))
    }

    pub(crate) fn of_elements(elements: &'a [u8]) -> DocumentRef<'a> {
        DocumentRef(Fields::Bytes(elements))
    }

    /// Returns the elements as bytes, where there are any.
    pub(crate) fn elements(self) -> Option<&'a [u8]> {
        match self.0 {
            Fields::Bytes(elements) => Some(elements),
            Fields::Tree(_) => None,
        }
    }

    /// Returns the value of a field.
    pub fn get(self, name: &str) -> Option<ValueRef<'a>> {
        match self.0 {
            Fields::Bytes(bytes) => raw::Elements::new(bytes).find(name),
            Fields::Tree(fields) => {
                fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.view())
            }
        }
    }

    /// Returns all fields in their order.
    pub fn iter(self) -> impl Iterator<Item = (&'a str, ValueRef<'a>)> + Clone {
        let (bytes, tree): (&[u8], &[(String, Value)]) = match self.0 {
            Fields::Bytes(bytes) => (bytes, &[]),
            Fields::Tree(fields) => (&[], fields),
        };
        raw::Elements::new(bytes).chain(tree.iter().map(|(name, value)| (name.as_str(), value.view())))
    }

    /// Returns `true` if there are no fields.
    pub fn is_empty(self) -> bool {
        match self.0 {
            Fields::Bytes(elements) => elements.is_empty(),
            Fields::Tree(fields) => fields.is_empty(),
        }
    }

    /// Returns an owned tree.
    pub fn to_document(self) -> Document {
        self.iter().map(|(name, value)| (name, value.to_value())).collect()
    }
}

/// An array, borrowed.
#[derive(Debug, Clone, Copy)]
pub struct ArrayRef<'a>(Items<'a>);

#[derive(Debug, Clone, Copy)]
enum Items<'a> {
    Bytes(&'a [u8]),
    Tree(&'a [Value]),
}

impl<'a> ArrayRef<'a> {
    /// Returns the items of a tree.
    pub fn of_tree(items: &'a [Value]) -> ArrayRef<'a> {
        ArrayRef(Items::Tree(items))
    }

    pub(crate) fn of_elements(elements: &'a [u8]) -> ArrayRef<'a> {
        ArrayRef(Items::Bytes(elements))
    }

    pub(crate) fn elements(self) -> Option<&'a [u8]> {
        match self.0 {
            Items::Bytes(elements) => Some(elements),
            Items::Tree(_) => None,
        }
    }

    /// Returns all items in their order.
    pub fn iter(self) -> impl Iterator<Item = ValueRef<'a>> + Clone {
        let (bytes, tree): (&[u8], &[Value]) = match self.0 {
            Items::Bytes(bytes) => (bytes, &[]),
            Items::Tree(items) => (&[], items),
        };
        raw::Elements::new(bytes).map(|(_, value)| value).chain(tree.iter().map(Value::view))
    }

    /// Returns the item at a position.
    pub fn get(self, position: usize) -> Option<ValueRef<'a>> {
        self.iter().nth(position)
    }

    /// Returns the number of items.
    pub fn len(self) -> usize {
        match self.0 {
            Items::Bytes(_) => self.iter().count(),
            Items::Tree(items) => items.len(),
        }
    }

    /// Returns `true` if there are none.
    pub fn is_empty(self) -> bool {
        match self.0 {
            Items::Bytes(elements) => elements.is_empty(),
            Items::Tree(items) => items.is_empty(),
        }
    }
}

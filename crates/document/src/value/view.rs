//! Borrowed values: one reader for stored bytes and for trees.
//!
//! Stored bytes are read lazily: finding a member compares names and skips values by their length, nothing is
//! unpacked. A [`crate::Document`] is validated when it is created, so reading cannot fail; on bytes that should be
//! impossible a reader ends early rather than panic.

use crate::value::binary;
use crate::value::json;
use crate::value::{Object, Value};

/// One value, borrowed.
#[derive(Debug, Clone, Copy)]
pub enum ValueRef<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number of 64 bits.
    Int(i64),
    /// Any other number.
    Double(f64),
    /// Text.
    String(&'a str),
    /// A list.
    Array(ArrayRef<'a>),
    /// Members.
    Object(ObjectRef<'a>),
}

impl<'a> ValueRef<'a> {
    /// Returns the text, if this is a string.
    pub fn as_str(self) -> Option<&'a str> {
        if let ValueRef::String(s) = self { Some(s) } else { None }
    }

    /// Returns the integer, also when it was written as a double without fraction.
    pub fn as_i64(self) -> Option<i64> {
        match self {
            ValueRef::Int(i) => Some(i),
            ValueRef::Double(d) => whole(d),
            _ => None,
        }
    }

    /// Returns the number as a double (the nearest one for large integers).
    pub fn as_f64(self) -> Option<f64> {
        match self {
            ValueRef::Int(i) => Some(i as f64),
            ValueRef::Double(d) => Some(d),
            _ => None,
        }
    }

    /// Returns the boolean, if this is one.
    pub fn as_bool(self) -> Option<bool> {
        if let ValueRef::Bool(b) = self { Some(b) } else { None }
    }

    /// Returns the items, if this is an array.
    pub fn as_array(self) -> Option<ArrayRef<'a>> {
        if let ValueRef::Array(items) = self { Some(items) } else { None }
    }

    /// Returns the members, if this is an object.
    pub fn as_object(self) -> Option<ObjectRef<'a>> {
        if let ValueRef::Object(members) = self { Some(members) } else { None }
    }

    /// Returns `true` if this is `null`.
    pub fn is_null(self) -> bool {
        matches!(self, ValueRef::Null)
    }

    /// Returns the named member, if this is an object that has it.
    pub fn get(self, name: &str) -> Option<ValueRef<'a>> {
        self.as_object()?.get(name)
    }

    /// Returns the type's name in error messages.
    pub fn type_name(self) -> &'static str {
        match self {
            ValueRef::Null => "null",
            ValueRef::Bool(_) => "boolean",
            ValueRef::Int(_) | ValueRef::Double(_) => "number",
            ValueRef::String(_) => "string",
            ValueRef::Array(_) => "array",
            ValueRef::Object(_) => "object",
        }
    }

    /// Returns an owned tree of this value.
    pub fn to_value(self) -> Value {
        match self {
            ValueRef::Null => Value::Null,
            ValueRef::Bool(b) => Value::Bool(b),
            ValueRef::Int(i) => Value::Int(i),
            ValueRef::Double(d) => Value::Double(d),
            ValueRef::String(s) => Value::String(s.to_owned()),
            ValueRef::Array(items) => Value::Array(items.iter().map(ValueRef::to_value).collect()),
            ValueRef::Object(members) => Value::Object(members.to_object()),
        }
    }

    /// Returns compact JSON text, members in their order.
    pub fn to_json(self) -> String {
        let mut out = Vec::new();
        json::write_json(self, &mut out);
        String::from_utf8(out).expect("JSON is written from str pieces only")
    }
}

impl<'a> From<&'a Value> for ValueRef<'a> {
    fn from(value: &'a Value) -> ValueRef<'a> {
        value.view()
    }
}

/// Returns the integer a double stands for, if it has no fraction and fits.
pub(crate) fn whole(d: f64) -> Option<i64> {
    // 2^63 itself is a double but not an i64, hence the half-open range.
    let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&d);
    (fits && d.fract() == 0.0).then_some(d as i64)
}

/// An array, borrowed.
#[derive(Debug, Clone, Copy)]
pub struct ArrayRef<'a>(Items<'a>);

#[derive(Debug, Clone, Copy)]
enum Items<'a> {
    Stored { body: &'a [u8], count: usize },
    Tree(&'a [Value]),
}

impl<'a> ArrayRef<'a> {
    pub(crate) fn of_stored(body: &'a [u8], count: usize) -> ArrayRef<'a> {
        ArrayRef(Items::Stored { body, count })
    }

    pub(crate) fn of_tree(items: &'a [Value]) -> ArrayRef<'a> {
        ArrayRef(Items::Tree(items))
    }

    /// Returns the stored items, if they are stored bytes.
    pub(crate) fn stored(self) -> Option<&'a [u8]> {
        if let Items::Stored { body, .. } = self.0 { Some(body) } else { None }
    }

    /// Returns the number of items.
    pub fn len(self) -> usize {
        match self.0 {
            Items::Stored { count, .. } => count,
            Items::Tree(items) => items.len(),
        }
    }

    /// Returns `true` if there are none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Returns the item at `index`; stored bytes are skipped up to it.
    pub fn get(self, index: usize) -> Option<ValueRef<'a>> {
        match self.0 {
            Items::Tree(items) => items.get(index).map(Value::view),
            Items::Stored { mut body, .. } => {
                for _ in 0..index {
                    body = body.get(binary::value_len(body)?..)?;
                }
                binary::read_value(body).map(|(value, _)| value)
            }
        }
    }

    /// Returns the items in order.
    pub fn iter(self) -> impl Iterator<Item = ValueRef<'a>> {
        let (mut body, mut tree) = match self.0 {
            Items::Stored { body, .. } => (body, [].iter()),
            Items::Tree(items) => (&[][..], items.iter()),
        };
        std::iter::from_fn(move || {
            if let Some(value) = tree.next() {
                return Some(value.view());
            }
            let (value, rest) = binary::read_value(body)?;
            body = rest;
            Some(value)
        })
    }
}

/// An object, borrowed.
#[derive(Debug, Clone, Copy)]
pub struct ObjectRef<'a>(Members<'a>);

#[derive(Debug, Clone, Copy)]
enum Members<'a> {
    Stored { body: &'a [u8], count: usize },
    Tree(&'a Object),
}

impl<'a> ObjectRef<'a> {
    pub(crate) fn of_stored(body: &'a [u8], count: usize) -> ObjectRef<'a> {
        ObjectRef(Members::Stored { body, count })
    }

    pub(crate) fn of_tree(object: &'a Object) -> ObjectRef<'a> {
        ObjectRef(Members::Tree(object))
    }

    /// Returns the stored members, if they are stored bytes.
    pub(crate) fn stored(self) -> Option<&'a [u8]> {
        if let Members::Stored { body, .. } = self.0 { Some(body) } else { None }
    }

    /// Returns the number of members.
    pub fn len(self) -> usize {
        match self.0 {
            Members::Stored { count, .. } => count,
            Members::Tree(object) => object.len(),
        }
    }

    /// Returns `true` if there are none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Returns the named member. On stored bytes: one pass over the names, values skipped by length.
    pub fn get(self, name: &str) -> Option<ValueRef<'a>> {
        match self.0 {
            Members::Tree(object) => object.get(name).map(Value::view),
            Members::Stored { mut body, .. } => loop {
                let (found, value) = binary::read_name(body)?;
                if found == name.as_bytes() {
                    return binary::read_value(value).map(|(value, _)| value);
                }
                body = value.get(binary::value_len(value)?..)?;
            },
        }
    }

    /// Returns the members in order.
    pub fn iter(self) -> impl Iterator<Item = (&'a str, ValueRef<'a>)> {
        let (mut body, mut tree) = match self.0 {
            Members::Stored { body, .. } => (body, [].iter()),
            Members::Tree(object) => (&[][..], object.members().iter()),
        };
        std::iter::from_fn(move || {
            if let Some((name, value)) = tree.next() {
                return Some((name.as_str(), value.view()));
            }
            let (name, value) = binary::read_name(body)?;
            let (value, rest) = binary::read_value(value)?;
            body = rest;
            Some((std::str::from_utf8(name).ok()?, value))
        })
    }

    /// Returns an owned tree of these members.
    pub fn to_object(self) -> Object {
        let mut object = Object::new();
        for (name, value) in self.iter() {
            object.push_new(name.to_owned(), value.to_value());
        }
        object
    }
}

//! A value as a tree, for code that builds and changes values. Reading goes through [`ValueRef`], which also reads
//! stored bytes, so that comparison, JSON and key encoding exist once.
//!
//! Integers and doubles are different values here because text must round-trip (`1` stays `1`, `1.0` stays
//! `1.0`); that they are the same *number* is known only to `order` and `key`. The derived equality is therefore
//! structural; use [`crate::equal`] for what a query means by `=`.

pub(crate) mod binary;
pub(crate) mod cosmos_binary;
pub(crate) mod encoder;
pub(crate) mod json;
pub(crate) mod view;

use crate::value::view::{ArrayRef, ObjectRef, ValueRef};

/// One JSON value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number written without fraction or exponent that fits 64 bits.
    Int(i64),
    /// Any other number; always finite in a [`crate::Document`].
    Double(f64),
    /// Text.
    String(String),
    /// A list.
    Array(Vec<Value>),
    /// Members in the order they were written.
    Object(Object),
}

impl Value {
    /// Returns the tree seen through the same reader as stored bytes.
    pub fn view(&self) -> ValueRef<'_> {
        match self {
            Value::Null => ValueRef::Null,
            Value::Bool(b) => ValueRef::Bool(*b),
            Value::Int(i) => ValueRef::Int(*i),
            Value::Double(d) => ValueRef::Double(*d),
            Value::String(s) => ValueRef::String(s),
            Value::Array(items) => ValueRef::Array(ArrayRef::of_tree(items)),
            Value::Object(object) => ValueRef::Object(object.view()),
        }
    }

    /// Returns the text, if this is a string.
    pub fn as_str(&self) -> Option<&str> {
        if let Value::String(s) = self { Some(s) } else { None }
    }

    /// Returns the integer, also when it was written as a double without fraction.
    pub fn as_i64(&self) -> Option<i64> {
        self.view().as_i64()
    }

    /// Returns the number as a double.
    pub fn as_f64(&self) -> Option<f64> {
        self.view().as_f64()
    }

    /// Returns the boolean, if this is one.
    pub fn as_bool(&self) -> Option<bool> {
        if let Value::Bool(b) = self { Some(*b) } else { None }
    }

    /// Returns the members, if this is an object.
    pub fn as_object(&self) -> Option<&Object> {
        if let Value::Object(object) = self { Some(object) } else { None }
    }

    /// Returns the members for change, if this is an object.
    pub fn as_object_mut(&mut self) -> Option<&mut Object> {
        if let Value::Object(object) = self { Some(object) } else { None }
    }

    /// Returns the items, if this is an array.
    pub fn as_array(&self) -> Option<&[Value]> {
        if let Value::Array(items) = self { Some(items) } else { None }
    }

    /// Returns the items for change, if this is an array.
    pub fn as_array_mut(&mut self) -> Option<&mut Vec<Value>> {
        if let Value::Array(items) = self { Some(items) } else { None }
    }

    /// Returns `true` if this is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// Returns the named member, if this is an object that has it.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.as_object()?.get(name)
    }

    /// Returns the type's name in error messages: `null`, `boolean`, `number`, `string`, `array` or `object`.
    pub fn type_name(&self) -> &'static str {
        self.view().type_name()
    }

    /// Returns compact JSON text, members in their order.
    pub fn to_json(&self) -> String {
        self.view().to_json()
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Value {
        Value::Int(value)
    }
}

impl From<i32> for Value {
    fn from(value: i32) -> Value {
        Value::Int(value.into())
    }
}

impl From<u32> for Value {
    fn from(value: u32) -> Value {
        Value::Int(value.into())
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Value {
        Value::Double(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Value {
        Value::String(value.to_owned())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Value {
        Value::String(value)
    }
}

impl From<Vec<Value>> for Value {
    fn from(value: Vec<Value>) -> Value {
        Value::Array(value)
    }
}

impl From<Object> for Value {
    fn from(value: Object) -> Value {
        Value::Object(value)
    }
}

/// The members of an object, in order; a name occurs once.
///
/// A list and not a map: documents have few members, their order must be kept, and a scan of a short list beats
/// hashing.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Object(Vec<(String, Value)>);

impl Object {
    /// Creates an object without members.
    pub fn new() -> Object {
        Object::default()
    }

    /// Returns the named member.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, v)| v)
    }

    /// Returns the named member for change.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        self.0.iter_mut().find(|(n, _)| n == name).map(|(_, v)| v)
    }

    /// Returns `true` if the member exists.
    pub fn contains(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Replaces the member in place, or adds it at the end. Returns the previous value.
    pub fn insert(&mut self, name: impl Into<String>, value: impl Into<Value>) -> Option<Value> {
        let (name, value) = (name.into(), value.into());
        if let Some(slot) = self.get_mut(&name) {
            return Some(std::mem::replace(slot, value));
        }
        self.0.push((name, value));
        None
    }

    /// Removes and returns a member; the others keep their order.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        let index = self.0.iter().position(|(n, _)| n == name)?;
        Some(self.0.remove(index).1)
    }

    /// Returns the members in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> + '_ {
        self.0.iter().map(|(n, v)| (n.as_str(), v))
    }

    /// Returns the members in order, values for change.
    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = (&str, &mut Value)> + '_ {
        self.0.iter_mut().map(|(n, v)| (n.as_str(), v))
    }

    /// Returns the number of members.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns `true` if there are no members.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the object seen through the same reader as stored bytes.
    pub fn view(&self) -> ObjectRef<'_> {
        ObjectRef::of_tree(self)
    }

    pub(crate) fn members(&self) -> &[(String, Value)] {
        &self.0
    }

    /// Adds a member that is known to be new: decoding validated bytes stays linear.
    pub(crate) fn push_new(&mut self, name: String, value: Value) {
        self.0.push((name, value));
    }
}

impl<N: Into<String>, V: Into<Value>> FromIterator<(N, V)> for Object {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(members: I) -> Object {
        let mut object = Object::new();
        for (name, value) in members {
            object.insert(name, value);
        }
        object
    }
}

impl IntoIterator for Object {
    type Item = (String, Value);
    type IntoIter = std::vec::IntoIter<(String, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn insert_replaces_in_place_and_remove_keeps_the_order() {
        let mut object: Object = [("a", 1), ("b", 2), ("c", 3)].into_iter().collect();
        assert_eq!(object.insert("b", "two"), Some(Value::Int(2)));
        assert_eq!(object.insert("d", Value::Null), None);
        assert_eq!(object.remove("a"), Some(Value::Int(1)));
        assert_eq!(Value::from(object).to_json(), r#"{"b":"two","c":3,"d":null}"#);
    }

    #[test]
    fn a_whole_double_reads_as_an_integer_only_inside_the_range() {
        assert_eq!(Value::Double(5.0).as_i64(), Some(5));
        assert_eq!(Value::Double(5.5).as_i64(), None);
        assert_eq!(Value::Double(9_223_372_036_854_775_808.0).as_i64(), None);
        assert_eq!(Value::Double(-9_223_372_036_854_775_808.0).as_i64(), Some(i64::MIN));
        assert_eq!(Value::String("5".into()).as_i64(), None);
    }
}

//! The interface through which a query reads an item, and the values read.

use document::{Document, Object, Value, ValueRef, write_json};

use crate::logical::Segment;

/// An item as a query sees it, system properties included.
pub trait Row {
    /// Returns the value at the end of the path, if it is defined. The path has at least one segment.
    fn get(&self, path: &[Segment]) -> Option<Operand<'_>>;

    /// Returns the whole item.
    fn whole(&self) -> Value;

    /// Appends the whole item as JSON text.
    fn write_json(&self, out: &mut Vec<u8>) {
        write_json(self.whole().view(), out);
    }

    /// Returns a copy to write later, and the bytes that it holds, if a copy costs less than writing it now.
    fn keep(&self) -> Option<(Box<dyn Row>, usize)> {
        None
    }
}

/// A defined value, borrowed from a row or a query where possible.
#[derive(Debug, Clone)]
pub enum Operand<'a> {
    /// Borrowed from the row or the query.
    Borrowed(ValueRef<'a>),
    /// Computed.
    Owned(Value),
}

impl<'a> Operand<'a> {
    /// Returns the value.
    pub fn view(&self) -> ValueRef<'_> {
        match self {
            Self::Borrowed(value) => *value,
            Self::Owned(value) => value.view(),
        }
    }

    /// Returns the value as a tree.
    pub fn into_value(self) -> Value {
        match self {
            Self::Borrowed(value) => value.to_value(),
            Self::Owned(value) => value,
        }
    }

    /// Returns the value at the end of a path that starts here.
    pub(crate) fn step_into(self, path: &[Segment]) -> Option<Operand<'a>> {
        match self {
            Self::Borrowed(value) => walk(value, path).map(Self::Borrowed),
            Self::Owned(value) => path.iter().try_fold(value, take).map(Self::Owned),
        }
    }
}

impl From<bool> for Operand<'_> {
    fn from(value: bool) -> Self {
        Self::Borrowed(ValueRef::Bool(value))
    }
}

/// Follows a path down from a value: names into objects, indexes into arrays, anything else is undefined.
pub fn walk<'a>(value: ValueRef<'a>, path: &[Segment]) -> Option<ValueRef<'a>> {
    path.iter().try_fold(value, |value, segment| match segment {
        Segment::Name(name) => value.get(name),
        Segment::Index(index) => value.as_array()?.get(*index),
    })
}

/// Moves one part out of an owned value.
fn take(value: Value, segment: &Segment) -> Option<Value> {
    match (value, segment) {
        (Value::Object(mut members), Segment::Name(name)) => Object::remove(&mut members, name),
        (Value::Array(mut items), Segment::Index(index)) => {
            (*index < items.len()).then(|| items.swap_remove(*index))
        }
        _ => None,
    }
}

impl Row for Value {
    fn get(&self, path: &[Segment]) -> Option<Operand<'_>> {
        walk(self.view(), path).map(Operand::Borrowed)
    }

    fn whole(&self) -> Value {
        self.clone()
    }

    fn write_json(&self, out: &mut Vec<u8>) {
        write_json(self.view(), out);
    }
}

impl Row for Document {
    fn get(&self, path: &[Segment]) -> Option<Operand<'_>> {
        walk(self.root(), path).map(Operand::Borrowed)
    }

    fn whole(&self) -> Value {
        self.root().to_value()
    }

    fn write_json(&self, out: &mut Vec<u8>) {
        write_json(self.root(), out);
    }
}

//! An item as a query sees it: the whole item, or only the value in an index entry.

use document::{Object, Value};
use query::{Operand, Row, Segment};

use super::by_path::IndexedValue;
use crate::expiry::item::{Item, SYSTEM_PROPERTIES};

impl Row for Item {
    fn get(&self, path: &[Segment]) -> Option<Operand<'_>> {
        if let [Segment::Name(name), rest @ ..] = path
            && SYSTEM_PROPERTIES.contains(&name.as_str())
        {
            // All system properties are scalars.
            return self.system_property(name).filter(|_| rest.is_empty()).map(Operand::Owned);
        }
        query::walk(self.body.root(), path).map(Operand::Borrowed)
    }

    fn whole(&self) -> Value {
        let mut whole = Object::new();
        if let Value::Object(members) = self.body.to_value() {
            whole = members;
        }
        for name in SYSTEM_PROPERTIES {
            if let Some(value) = self.system_property(name) {
                whole.insert(name, value);
            }
        }
        Value::Object(whole)
    }

    fn write_json(&self, out: &mut Vec<u8>) {
        Item::write_json(self, out);
    }

    fn keep(&self) -> Option<(Box<dyn Row>, usize)> {
        let copy = Item { body: self.body.detached(), ..self.clone() };
        let bytes = size_of::<Item>() + copy.body.as_bytes().len();
        Some((Box::new(copy), bytes))
    }
}

impl Item {
    /// Returns the property at a path of names.
    pub(super) fn property(&self, path: &[String]) -> Option<Operand<'_>> {
        let segments: Vec<Segment> = path.iter().cloned().map(Segment::Name).collect();
        self.get(&segments)
    }
}

/// An item of which only one value is known, for a query that needs no other.
pub(super) struct Covered<'a> {
    pub(super) path: &'a [Segment],
    pub(super) indexed: &'a IndexedValue,
}

impl Row for Covered<'_> {
    fn get(&self, path: &[Segment]) -> Option<Operand<'_>> {
        match self.indexed {
            IndexedValue::Scalar(value) if path == self.path => Some(Operand::Borrowed(value.view())),
            IndexedValue::Scalar(_) | IndexedValue::Undefined => None,
        }
    }

    fn whole(&self) -> Value {
        // A query that reads whole items is never answered from entries.
        Value::Object(Object::new())
    }
}

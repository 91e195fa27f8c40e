//! What a query sees of an item: the whole of it, or what an index entry tells.

use document::{Object, Value};
use query::{Operand, Row, Segment};

use super::by_path::Told;
use crate::item::{Item, SYSTEM_PROPERTIES};

impl Row for Item {
    fn get(&self, path: &[Segment]) -> Option<Operand<'_>> {
        if let [Segment::Name(name), rest @ ..] = path
            && SYSTEM_PROPERTIES.contains(&name.as_str())
        {
            // All of them are scalars.
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
}

impl Item {
    /// The property at a path of names.
    pub(super) fn property(&self, path: &[String]) -> Option<Operand<'_>> {
        let segments: Vec<Segment> = path.iter().cloned().map(Segment::Name).collect();
        self.get(&segments)
    }
}

/// An item of which only one value is known, for a query that asks for no other.
pub(super) struct Covered<'a> {
    pub(super) path: &'a [Segment],
    pub(super) told: &'a Told,
}

impl Row for Covered<'_> {
    fn get(&self, path: &[Segment]) -> Option<Operand<'_>> {
        match self.told {
            Told::Scalar(value) if path == self.path => Some(Operand::Borrowed(value.view())),
            Told::Scalar(_) | Told::Undefined => None,
        }
    }

    fn whole(&self) -> Value {
        // A query that reads whole items is never answered from entries.
        Value::Object(Object::new())
    }
}

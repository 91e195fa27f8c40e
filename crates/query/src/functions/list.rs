//! A list that a function builds, bounded in size: lists of lists, made by one call from the result of another, would
//! otherwise exhaust the memory.

use document::{Value, ValueRef};

use super::bounds::LIST_BYTES;
use crate::functions::context::{Context, Fault};

/// The items so far.
pub(crate) struct List<'c> {
    items: Vec<Value>,
    bytes: usize,
    context: &'c Context,
}

impl<'c> List<'c> {
    /// Creates an empty list.
    pub(crate) fn new(context: &'c Context) -> List<'c> {
        List { items: Vec::new(), bytes: 0, context }
    }

    /// Adds a copy of a value; `None` when the list or the request's work becomes too large.
    pub(crate) fn push(&mut self, value: ValueRef<'_>) -> Option<()> {
        self.pay(weight(value))?;
        self.items.push(value.to_value());
        Some(())
    }

    /// Adds an object of two members.
    pub(crate) fn push_pair(
        &mut self,
        first: (&str, ValueRef<'_>),
        second: (&str, ValueRef<'_>),
    ) -> Option<()> {
        let names = first.0.len() + second.0.len() + 3 * size_of::<Value>();
        self.pay(names + weight(first.1) + weight(second.1))?;
        let members = [(first.0, first.1.to_value()), (second.0, second.1.to_value())];
        self.items.push(Value::Object(members.into_iter().collect()));
        Some(())
    }

    /// Returns the finished list.
    pub(crate) fn finish(self) -> Value {
        Value::Array(self.items)
    }

    fn pay(&mut self, bytes: usize) -> Option<()> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > LIST_BYTES {
            self.context.fail(Fault::OutOfMemory { what: "one computed array", limit: LIST_BYTES });
            return None;
        }
        self.context.spend(bytes as u64 / 64 + 1).then_some(())
    }
}

/// Returns roughly the memory that an owned copy takes.
pub(crate) fn weight(value: ValueRef<'_>) -> usize {
    size_of::<Value>()
        + match value {
            ValueRef::Null | ValueRef::Bool(_) | ValueRef::Int(_) | ValueRef::Double(_) => 0,
            ValueRef::String(text) => text.len(),
            ValueRef::Array(items) => items.iter().map(weight).sum(),
            ValueRef::Object(members) => {
                members.iter().map(|(name, value)| size_of::<String>() + name.len() + weight(value)).sum()
            }
        }
}

//! Construction of values from evaluated parts, within bounds.
//!
//! A short query can ask for a large value: `[c, c, c]` triples an item, and a subquery may do so for each of its
//! rows. So code that keeps values counts their bytes in a [`MemoryBudget`], and the query fails before memory is exhausted.
//! The same holds for nesting: sources that wrap one another, `JOIN b IN (SELECT VALUE [[a]]) JOIN d IN (SELECT VALUE
//! [[b]])`, build values deeper than any text or item is, and every walk over a value recurses.

use document::{Object, Value, ValueRef};

use super::{Environment, evaluate};
use crate::functions::context::{Context, Fault};
use crate::logical::{Expression, Projection};
use crate::row::Operand;

/// Most bytes of one array, object or string that an expression builds. Several times the largest item.
const VALUE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The deepest nesting of a value that is kept: an item of the greatest depth inside an expression of the greatest
/// depth.
const VALUE_DEPTH_MAX: usize = 256;

/// Memory that grows with the rows, and its bound.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    what: &'static str,
    bytes: usize,
    limit: usize,
}

impl MemoryBudget {
    /// Creates an empty budget. `what` completes "The query needs more than … bytes of memory for …".
    pub(crate) fn new(what: &'static str, limit: usize) -> MemoryBudget {
        MemoryBudget { what, bytes: 0, limit }
    }

    /// Counts more bytes; returns false and records the fault if that exceeds the limit.
    pub(crate) fn add(&mut self, bytes: usize, context: &Context) -> bool {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.limit {
            context.fail(Fault::OutOfMemory { what: self.what, limit: self.limit });
            return false;
        }
        context.spend(bytes as u64 / 64)
    }

    /// Returns the bytes counted so far.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Releases bytes that were counted.
    pub(crate) fn remove(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Counts a value.
    pub(crate) fn add_value(&mut self, value: ValueRef<'_>, context: &Context) -> bool {
        let Some(bytes) = weight(value, VALUE_DEPTH_MAX) else {
            let message =
                format!("The query builds a value that is nested deeper than {VALUE_DEPTH_MAX} levels.");
            context.fail(Fault::Refused(message));
            return false;
        };
        self.add(bytes, context)
    }
}

/// Returns the approximate size of a value as a tree, `None` if it is nested deeper than `levels`.
fn weight(value: ValueRef<'_>, levels: usize) -> Option<usize> {
    let inside = match value {
        ValueRef::String(text) => text.len(),
        ValueRef::Array(items) => {
            let inner = levels.checked_sub(1)?;
            items.iter().map(|item| weight(item, inner)).sum::<Option<usize>>()?
        }
        ValueRef::Object(members) => {
            let inner = levels.checked_sub(1)?;
            let member =
                |(name, member): (&str, _)| Some(size_of::<String>() + name.len() + weight(member, inner)?);
            members.iter().map(member).sum::<Option<usize>>()?
        }
        ValueRef::Null | ValueRef::Bool(_) | ValueRef::Int(_) | ValueRef::Double(_) => 0,
    };
    Some(size_of::<Value>() + inside)
}

/// Returns a row of the answer, `None` if there is none.
pub(crate) fn project(
    projection: &Projection,
    environment: &Environment<'_>,
    context: &Context,
) -> Option<Value> {
    match projection {
        Projection::Value(value) => evaluate(value, environment, context).map(Operand::into_value),
        Projection::Members(members) => object(members, environment, context).map(Operand::into_value),
    }
}

/// Returns `[a, b]` without its undefined elements.
pub(super) fn array<'a>(
    items: &[Expression],
    environment: &Environment<'_>,
    context: &Context,
) -> Option<Operand<'a>> {
    let mut memory = MemoryBudget::new("one value", VALUE_BYTES_MAX);
    let mut array = Vec::with_capacity(items.len());
    for item in items {
        if let Some(item) = evaluate(item, environment, context) {
            if !memory.add_value(item.view(), context) {
                return None;
            }
            array.push(item.into_value());
        }
    }
    Some(Operand::Owned(Value::Array(array)))
}

/// Returns `{"a": x}` without its undefined members.
pub(super) fn object<'a>(
    members: &[(String, Expression)],
    environment: &Environment<'_>,
    context: &Context,
) -> Option<Operand<'a>> {
    let mut memory = MemoryBudget::new("one value", VALUE_BYTES_MAX);
    let mut object = Object::new();
    for (name, member) in members {
        if let Some(member) = evaluate(member, environment, context) {
            if !memory.add(name.len(), context) || !memory.add_value(member.view(), context) {
                return None;
            }
            object.insert(name.as_str(), member.into_value());
        }
    }
    Some(Operand::Owned(Value::Object(object)))
}

/// Returns `a || b`: one text of several.
pub(super) fn concat<'a>(
    parts: &[Expression],
    environment: &Environment<'_>,
    context: &Context,
) -> Option<Operand<'a>> {
    let mut memory = MemoryBudget::new("one value", VALUE_BYTES_MAX);
    let mut text = String::new();
    for part in parts {
        let part = evaluate(part, environment, context)?;
        let part = part.view().as_str()?;
        if !memory.add(part.len(), context) {
            return None;
        }
        text.push_str(part);
    }
    Some(Operand::Owned(Value::String(text)))
}

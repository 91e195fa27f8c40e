//! The values that an expression can refer to.
//!
//! An environment is a chain on the call stack: each join, subquery and group adds a link with the slots it binds
//! and points to the one around it. So a row of a join may borrow from the item or from the row of an outer
//! source, and nothing is copied to go one level down.

use std::cell::OnceCell;

use document::Value;

use crate::functions::context::Context;
use crate::functions::list::weight;
use crate::logical::Segment;
use crate::row::{Operand, Row};

/// One link: some slots and the environment around them.
#[derive(Clone)]
pub(crate) struct Environment<'a> {
    outer: Option<&'a Environment<'a>>,
    first: usize,
    slots: Slots<'a>,
}

#[derive(Clone)]
enum Slots<'a> {
    Nothing,
    /// An item, and a copy of the whole of it once an expression has asked for that.
    Item(&'a dyn Row, OnceCell<Value>),
    One(Operand<'a>),
    Group(&'a [Option<Value>]),
}

impl<'a> Environment<'a> {
    /// Creates an environment without slots, for constants and queries without `FROM`.
    pub(crate) fn empty() -> Environment<'a> {
        Environment { outer: None, first: 0, slots: Slots::Nothing }
    }

    /// Creates an environment with an item in slot 0.
    pub(crate) fn of_item(item: &'a dyn Row) -> Environment<'a> {
        Environment { outer: None, first: 0, slots: Slots::Item(item, OnceCell::new()) }
    }

    /// Returns this environment with one more slot.
    pub(crate) fn with<'b>(&'b self, slot: usize, value: Operand<'b>) -> Environment<'b> {
        Environment { outer: Some(self), first: slot, slots: Slots::One(value) }
    }

    /// Returns this environment with the values of a group, one slot each: keys first, then the results of
    /// aggregates.
    pub(crate) fn with_group<'b>(&'b self, first: usize, values: &'b [Option<Value>]) -> Environment<'b> {
        Environment { outer: Some(self), first, slots: Slots::Group(values) }
    }

    /// Returns the value at a place in a slot; no segments mean the whole of it, whose copy is charged.
    pub(crate) fn get(&'a self, slot: usize, path: &[Segment], context: &Context) -> Option<Operand<'a>> {
        let mut link = self;
        loop {
            match &link.slots {
                Slots::Item(item, whole) if slot == link.first => {
                    return if path.is_empty() { copied(*item, whole, context) } else { item.get(path) };
                }
                Slots::One(value) if slot == link.first => {
                    return Operand::Borrowed(value.view()).step_into(path);
                }
                Slots::Group(values) if (link.first..link.first + values.len()).contains(&slot) => {
                    let value = values[slot - link.first].as_ref()?;
                    return Operand::Borrowed(value.view()).step_into(path);
                }
                _ => link = link.outer?,
            }
        }
    }
}

/// Returns the whole of an item. A query may name it thousands of times; it is copied once per row.
fn copied<'a>(item: &dyn Row, whole: &'a OnceCell<Value>, context: &Context) -> Option<Operand<'a>> {
    if whole.get().is_none() {
        // The size is only known afterwards, but nothing is copied if the budget is used up.
        context.spend(1).then_some(())?;
        let value = item.whole();
        context.spend(weight(value.view()) as u64 / 64).then_some(())?;
        // The cell is known to be empty.
        let _ = whole.set(value);
    }
    whole.get().map(|value| Operand::Borrowed(value.view()))
}

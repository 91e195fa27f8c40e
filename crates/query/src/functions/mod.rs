//! The built-in functions: one table per subject, one row per name.
//!
//! A function gets evaluated arguments, `None` being undefined, and returns a value or undefined; its other inputs
//! are in [`Context`]. Aggregates are not here: they are over many rows and belong to the executor.

mod array;
mod bounds;
pub(crate) mod calendar;
pub(crate) mod context;
mod convert;
pub(crate) mod datetime;
mod datetime_format;
pub(crate) mod full_text;
mod integer;
mod item;
pub(crate) mod like;
pub(crate) mod list;
mod math;
pub(crate) mod regex;
mod search;
mod set;
mod spatial;
mod stop_words;
mod string;
#[cfg(test)]
mod testing;
mod types;
mod utf16;
pub(crate) mod vector;

use document::{Value, ValueRef};

use crate::functions::context::Context;
use crate::surface::Surface;

/// An argument; `None` is undefined.
pub(crate) type Arg<'a> = Option<ValueRef<'a>>;

/// A function's body.
pub(crate) type Native = fn(&[Arg<'_>], &Context) -> Option<Value>;

/// One function.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The name in capitals; queries may write it in any case.
    pub(crate) name: &'static str,
    /// The fewest arguments it takes.
    pub(crate) least: usize,
    /// The most arguments it takes.
    pub(crate) most: usize,
    /// The implementation. It is never called with fewer or more arguments.
    pub(crate) run: Native,
}

impl PartialEq for Entry {
    /// Compares by name: names are unique, because all spatial functions of one query are of one surface.
    fn eq(&self, other: &Entry) -> bool {
        self.name == other.name
    }
}

/// Every table.
const TABLES: &[&[Entry]] = &[
    convert::TABLE,
    datetime::TABLE,
    regex::TABLE,
    search::TABLE,
    string::TABLE,
    types::TABLE,
    math::TABLE,
    integer::TABLE,
    array::TABLE,
    set::TABLE,
    spatial::TABLE,
    vector::TABLE,
    full_text::TABLE,
    item::TABLE,
];

/// Returns the function of that name, in any case. Spatial functions are those of the surface.
pub(crate) fn find(name: &str, surface: Surface) -> Option<&'static Entry> {
    let planar = if surface == Surface::Plane { spatial::PLANAR } else { &[] };
    let entries = planar.iter().chain(TABLES.iter().flat_map(|table| table.iter()));
    entries.into_iter().find(|entry| entry.name.eq_ignore_ascii_case(name))
}

/// Returns a computed number: whole numbers print without fraction, a number that is not finite is undefined.
pub(crate) fn number(value: f64) -> Option<Value> {
    if !value.is_finite() {
        return None;
    }
    Some(whole(value).map_or(Value::Double(value), Value::Int))
}

/// Returns the integer that a number is, if it is one. Every integer that is a double at all is the same one as `i64`.
pub(crate) fn whole(value: f64) -> Option<i64> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    (value.fract() == 0.0 && value.abs() < LIMIT).then_some(value as i64)
}

/// Returns the text of an argument.
pub(crate) fn text(argument: Arg<'_>) -> Option<&str> {
    argument?.as_str()
}

//! Accumulators: the values that `$group`, the buckets and window functions compute from many values.
//!
//! An [`Accumulator`] is the operator of a request; a [`Tally`] is one running value of it.

mod parse;
mod tally;

use std::sync::Arc;

use bson::{Document, DocumentRef, Value};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::expression::number::Sum;
use crate::pipeline::row::Row;
use crate::pipeline::settings::Formula;
use crate::pipeline::values::{text, whole_number};
use crate::sort::{Sort, SortKey};

pub(crate) use parse::{is_accumulator, parse_fields};
pub(crate) use tally::Tally;

/// One accumulator of a request, checked.
#[derive(Debug, Clone)]
pub(crate) struct Accumulator {
    kind: Kind,
    /// The input of each row.
    input: Formula,
    collation: bson::Collation,
}

impl Accumulator {
    /// Returns `true` if the number of kept values depends on the group.
    pub(crate) fn asks_the_group(&self) -> bool {
        match &self.kind {
            Kind::Several { n, .. } | Kind::Ranked { n: Some(n), .. } => n.constant().is_none(),
            _ => false,
        }
    }
}

/// The kind of an accumulator.
#[derive(Debug, Clone)]
enum Kind {
    Sum,
    Average,
    Minimum,
    Maximum,
    First,
    Last,
    Push,
    AddToSet,
    MergeObjects,
    Deviation(Deviation),
    Several { which: Several, n: Formula },
    Ranked { sort: Arc<Sort>, end: End, n: Option<Formula> },
    Percentiles { of: Vec<f64>, single: bool },
}

/// The kind of a deviation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deviation {
    Population,
    Sample,
}

/// The values of many that are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Several {
    First,
    Last,
    Smallest,
    Largest,
}

/// The end of an order that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Top,
    Bottom,
}

/// The input of a row to a tally.
#[derive(Debug, Clone)]
pub(crate) enum Input {
    Value(Option<Value>),
    Ranked(SortKey, Value),
}

impl Accumulator {
    /// Returns the input of a row.
    pub(crate) fn input(&self, row: &Row, context: &Context) -> Result<Input> {
        let value = self.input.of_row(row, context)?;
        match &self.kind {
            Kind::Ranked { sort, .. } => {
                let key = sort.key(row.view(), &self.collation, row.meta.as_deref(), context)?;
                Ok(Input::Ranked(key, value.unwrap_or(Value::Null)))
            }
            _ => Ok(Input::Value(value)),
        }
    }

    /// Starts a tally. The number of values to keep may depend on `group`.
    pub(crate) fn begin(&self, group: &Value, context: &Context) -> Result<Tally> {
        Ok(match &self.kind {
            Kind::Sum => Tally::Sum(Sum::default()),
            Kind::Average => Tally::Average { total: Sum::default(), count: 0 },
            Kind::Minimum => Tally::Smallest(None, self.collation.clone()),
            Kind::Maximum => Tally::Largest(None, self.collation.clone()),
            Kind::First => Tally::First(None),
            Kind::Last => Tally::Last(None),
            Kind::Push => Tally::List(Vec::new()),
            Kind::AddToSet => Tally::set(self.collation.clone()),
            Kind::MergeObjects => Tally::Merged(Document::new()),
            Kind::Deviation(over) => Tally::deviation(*over),
            Kind::Several { which, n } => {
                let n = how_many(n, group, context)?;
                match which {
                    Several::First => Tally::FirstN { n, values: Vec::new() },
                    Several::Last => Tally::LastN { n, values: std::collections::VecDeque::new() },
                    Several::Smallest => Tally::smallest_n(n, self.collation.clone()),
                    Several::Largest => Tally::largest_n(n, self.collation.clone()),
                }
            }
            Kind::Ranked { sort, end, n } => {
                let count = n.as_ref().map(|n| how_many(n, group, context)).transpose()?;
                Tally::Ranked {
                    sort: Arc::clone(sort),
                    reversed: *end == End::Bottom,
                    n: count.unwrap_or(1),
                    list: n.is_some(),
                    values: Vec::new(),
                }
            }
            Kind::Percentiles { of, single } => {
                Tally::Percentiles { of: of.clone(), single: *single, values: Vec::new() }
            }
        })
    }
}

/// Returns the number of values to keep, which may depend on the group alone.
fn how_many(n: &Formula, group: &Value, context: &Context) -> Result<usize> {
    let empty = Document::new();
    let root: DocumentRef<'_> = group.as_document().unwrap_or(&empty).view();
    let value = n.of_document(root, context)?.unwrap_or(Value::Null);
    if !value.kind().is_number() {
        return Err(Error::location(
            5_787_902,
            format!("Value for 'n' must be of integral type, but found {}", text(value.view())),
        ));
    }
    let whole = whole_number(value.view()).ok_or_else(|| {
        let text = text(value.view());
        Error::location(5_787_903, format!("Value for 'n' must be of integral type, but found {text}"))
    })?;
    match usize::try_from(whole) {
        Ok(n) if n > 0 => Ok(n),
        _ => Err(Error::location(5_787_908, format!("'n' must be greater than 0, found {whole}"))),
    }
}

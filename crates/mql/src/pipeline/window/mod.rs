//! `$setWindowFields`: fields computed from the rows around a row.
//!
//! All rows are collected, sorted by partition and then by the requested order, and returned in that order. The fields of a
//! partition are computed when its first row is returned.

mod bounds;
mod functions;
mod parse;

use std::cmp::Ordering;
use std::sync::Arc;

use bson::{Collation, Value, ValueRef};

use crate::error::{Error, Result};
use crate::path::FieldPath;
use crate::pipeline::chain::{Blocking, BlockingStep, ExecutionContext, Step};
use crate::pipeline::memory::{Memory, left};
use crate::pipeline::row::{Row, value_bytes};
use crate::pipeline::settings::Formula;
use crate::pipeline::values::type_name;
use crate::sort::{Direction, Sort, SortKey};

use functions::Function;

pub(crate) use bounds::Unit;
pub(crate) use parse::from_parts;

/// A `$setWindowFields` as parsed.
#[derive(Debug)]
pub(crate) struct SetWindowFields {
    partition: Option<Formula>,
    sort: Option<Arc<Sort>>,
    outputs: Vec<(FieldPath, Function)>,
    collation: Collation,
}

/// Returns the only field of an order, and its direction.
fn single_field(sort: Option<&Arc<Sort>>) -> Option<(&FieldPath, Direction)> {
    match sort?.fields() {
        [(path, direction)] => Some((path, *direction)),
        _ => None,
    }
}

impl SetWindowFields {
    pub(crate) fn start(self: &Arc<Self>) -> Box<dyn Step> {
        BlockingStep::step(WindowStep {
            stage: Arc::clone(self),
            entries: Vec::new(),
            sorted: None,
            all: 0,
            partition: Vec::new().into_iter(),
            partition_rows: 0,
            held: 0,
            memory: Memory::of("$setWindowFields"),
        })
    }
}

/// A row with the values that it is partitioned and sorted by.
pub(crate) struct Entry {
    partition: Value,
    key: Option<SortKey>,
    row: Row,
}

struct WindowStep {
    stage: Arc<SetWindowFields>,
    entries: Vec<Entry>,
    sorted: Option<std::iter::Peekable<std::vec::IntoIter<Entry>>>,
    /// The number of rows when the first was returned.
    all: usize,
    partition: std::vec::IntoIter<Row>,
    /// How many rows that partition has.
    partition_rows: usize,
    /// How many bytes the fields of that partition take.
    held: usize,
    memory: Memory,
}

impl Blocking for WindowStep {
    fn take(&mut self, row: Row, execution: &mut ExecutionContext<'_>) -> Result<()> {
        let partition = match &self.stage.partition {
            Some(formula) => formula.of_row(&row, execution.context)?.unwrap_or(Value::Null),
            None => Value::Null,
        };
        if matches!(partition, Value::Array(_)) {
            let message = "An expression used to partition cannot evaluate to value of type array";
            return Err(Error::type_mismatch(message));
        }
        let key = match &self.stage.sort {
            Some(sort) => {
                Some(sort.key(row.view(), &self.stage.collation, row.meta.as_deref(), execution.context)?)
            }
            None => None,
        };
        let bytes = row.bytes() + value_bytes(partition.view()) + key.as_ref().map_or(0, SortKey::bytes);
        self.memory.take(bytes, execution.context)?;
        self.entries.push(Entry { partition, key, row });
        Ok(())
    }

    fn give(&mut self, execution: &mut ExecutionContext<'_>) -> Result<Option<Row>> {
        if let Some(row) = self.partition.next() {
            return Ok(Some(row));
        }
        if self.sorted.is_none() {
            self.sort(execution)?;
        }
        let stage = Arc::clone(&self.stage);
        let Some(sorted) = &mut self.sorted else { return Ok(None) };
        let Some(first) = sorted.next() else { return Ok(None) };
        let mut entries = vec![first];
        while let Some(next) = sorted.next_if(|next| {
            stage.collation.compare_values(next.partition.view(), entries[0].partition.view()).is_eq()
        }) {
            entries.push(next);
        }
        self.memory.give_back(std::mem::take(&mut self.held));
        let before = self.memory.used();
        self.partition_rows = entries.len();
        self.partition = stage.compute(entries, &mut self.memory, execution)?.into_iter();
        self.held = self.memory.used() - before;
        Ok(self.partition.next())
    }

    fn bytes(&self) -> usize {
        let Some(sorted) = &self.sorted else { return self.memory.used() };
        let rows = self.memory.used() - self.held;
        left(rows, sorted.len() + self.partition.len(), self.all)
            + left(self.held, self.partition.len(), self.partition_rows)
    }

    fn keeps_trees(&self) -> bool {
        true
    }
}

impl WindowStep {
    fn sort(&mut self, execution: &ExecutionContext<'_>) -> Result<()> {
        let mut entries = std::mem::take(&mut self.entries);
        let count = entries.len() as u64;
        execution.context.spend(count.saturating_mul(u64::from(count.max(1).ilog2())))?;
        let stage = &self.stage;
        entries.sort_by(|left, right| {
            let partitions = stage.collation.compare_values(left.partition.view(), right.partition.view());
            partitions.then_with(|| match (&stage.sort, &left.key, &right.key) {
                (Some(sort), Some(left), Some(right)) => sort.compare(left, right),
                _ => Ordering::Equal,
            })
        });
        self.all = entries.len();
        self.sorted = Some(entries.into_iter().peekable());
        Ok(())
    }
}

impl SetWindowFields {
    /// Returns the rows of one partition with their fields.
    fn compute(
        &self,
        entries: Vec<Entry>,
        memory: &mut Memory,
        execution: &mut ExecutionContext<'_>,
    ) -> Result<Vec<Row>> {
        let mut columns = Vec::with_capacity(self.outputs.len());
        for (_, function) in &self.outputs {
            columns.push(function.column(&entries, self, memory, execution.context)?.into_iter());
        }
        let mut rows = Vec::with_capacity(entries.len());
        for entry in entries {
            let mut document = entry.row.body.clone().into_tree();
            for ((path, _), column) in self.outputs.iter().zip(&mut columns) {
                path.set(&mut document, column.next().unwrap_or(Value::Null));
            }
            rows.push(entry.row.with_made(document)?);
        }
        Ok(rows)
    }

    /// Returns the value that a row is sorted by, if it is a single field.
    fn sort_value<'a>(&self, entry: &'a Entry) -> Option<ValueRef<'a>> {
        let (path, _) = single_field(self.sort.as_ref())?;
        path.get(entry.row.view())
    }

    /// Returns `true` if two rows are equal in the order.
    fn are_peers(&self, left: &Entry, right: &Entry) -> bool {
        match (&self.sort, &left.key, &right.key) {
            (Some(sort), Some(left), Some(right)) => sort.compare(left, right).is_eq(),
            _ => true,
        }
    }
}

/// Returns a position on the axis that rows are sorted along: a number, or the milliseconds of a date.
fn position(value: Option<ValueRef<'_>>) -> Option<f64> {
    match value? {
        ValueRef::DateTime(millis) => Some(millis as f64),
        number => crate::pipeline::values::as_double(number),
    }
}

/// Returns the name of a type, or that there is no value.
fn name_of(value: Option<ValueRef<'_>>) -> &'static str {
    value.map_or("missing", type_name)
}

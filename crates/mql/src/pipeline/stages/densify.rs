//! `$densify`: rows for the gaps between values.
//!
//! All rows are collected; the partitions come one after the other, in the order of their first rows, each sorted by the
//! field. Rows without the field come first.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use bson::{Collation, Document, Value, ValueRef};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::expression::number::{self, Number};
use crate::path::FieldPath;
use crate::pipeline::chain::{Blocking, BlockingStep, ExecutionContext, Step};
use crate::pipeline::memory::Memory;
use crate::pipeline::row::Row;
use crate::pipeline::settings::PipelineContext;
use crate::pipeline::values::{as_double, key_of, text, type_name, whole_number};
use crate::pipeline::window::Unit;

/// How many rows are made at most.
const GENERATED_MAX: usize = 500_000;

/// A `$densify` as parsed.
#[derive(Debug)]
pub(crate) struct Densify {
    field: FieldPath,
    partition: Vec<FieldPath>,
    step: StepSize,
    bounds: Bounds,
    collation: Collation,
}

/// The distance between two values.
#[derive(Debug, Clone, Copy)]
enum StepSize {
    Number(Number),
    Time(Unit, i64),
}

#[derive(Debug)]
enum Bounds {
    /// From the smallest to the largest value of all rows.
    Full,
    /// The same for each partition by itself.
    Partition,
    Between(Value, Value),
}

impl Densify {
    pub(crate) fn parse(argument: ValueRef<'_>, around: &PipelineContext) -> Result<Densify> {
        let ValueRef::Document(document) = argument else {
            let kind = type_name(argument);
            let message = format!("The $densify stage specification must be an object, found {kind}");
            return Err(Error::location(5_733_200, message));
        };
        if let Some((name, _)) =
            document.iter().find(|(name, _)| !matches!(*name, "field" | "partitionByFields" | "range"))
        {
            return Err(Error::location(40415, format!("BSON field '$densify.{name}' is an unknown field.")));
        }
        let missing = |name: &str| {
            Error::location(40414, format!("BSON field '$densify.{name}' is missing but a required field"))
        };
        let field = document.get("field").and_then(ValueRef::as_str).ok_or_else(|| missing("field"))?;
        let range = document.get("range").and_then(ValueRef::as_document).ok_or_else(|| missing("range"))?;
        let partition = match document.get("partitionByFields") {
            None => Vec::new(),
            Some(ValueRef::Array(items)) => items
                .iter()
                .map(|item| {
                    FieldPath::parse_aggregation(item.as_str().ok_or_else(|| missing("partitionByFields"))?)
                })
                .collect::<Result<Vec<_>>>()?,
            Some(_) => return Err(missing("partitionByFields")),
        };
        let step = read_step(range.get("step"), range.get("unit"))?;
        let bounds = range.get("bounds").ok_or_else(|| missing("range.bounds"))?;
        let bounds = read_bounds(bounds, step)?;
        if partition.is_empty() && matches!(bounds, Bounds::Partition) {
            let message = "one may not specify the bounds as 'partition' without specifying a non-empty array of \
                           partitionByFields. You may have meant to specify 'full' bounds.";
            return Err(Error::location(5_733_408, message));
        }
        let field = FieldPath::parse_aggregation(field)?;
        Ok(Densify { field, partition, step, bounds, collation: around.collation().clone() })
    }

    pub(crate) fn start(self: &Arc<Self>) -> Box<dyn Step> {
        BlockingStep::step(DensifyStep {
            densify: Arc::clone(self),
            places: HashMap::new(),
            partitions: Vec::new(),
            given: None,
            all: 0,
            generated: 0,
            memory: Memory::of("$densify"),
        })
    }

    /// Returns the value so many steps after another.
    fn after(&self, from: &Value, steps: i64, context: &Context) -> Result<Value> {
        match (self.step, from) {
            (StepSize::Time(unit, amount), Value::DateTime(millis)) => {
                Ok(Value::DateTime(unit.add(*millis, amount.saturating_mul(steps), context)?))
            }
            (StepSize::Number(step), from) => {
                let distance = number::multiply(step, Number::Long(steps));
                let distance = match (step, distance.exact_i32()) {
                    (Number::Int(_), Some(distance)) => Number::Int(distance),
                    _ => distance,
                };
                let from = Number::of(from.view()).unwrap_or(Number::Int(0));
                Ok(number::add(from, distance).into())
            }
            (StepSize::Time(..), other) => Ok(other.clone()),
        }
    }

    fn check(&self, value: ValueRef<'_>) -> Result<()> {
        match (self.step, value) {
            (StepSize::Number(_), number) if number.is_number() => Ok(()),
            (StepSize::Time(..), ValueRef::DateTime(_)) => Ok(()),
            (StepSize::Time(..), _) => Err(Error::location(
                6_053_600,
                "PlanExecutor error: Encountered a non-date value when step has a date unit",
            )),
            (StepSize::Number(_), ValueRef::DateTime(_)) => Err(Error::location(
                6_053_600,
                "Encountered a date value where step does not have a date unit",
            )),
            (StepSize::Number(_), other) => {
                let message =
                    format!("Densify field type must be numeric or a date, found {}", type_name(other));
                Err(Error::location(5_733_201, message))
            }
        }
    }
}

fn read_step(step: Option<ValueRef<'_>>, unit: Option<ValueRef<'_>>) -> Result<StepSize> {
    let message = "the step parameter in a range statement must be a strictly positive numeric value";
    let refused = || Error::location(5_733_401, message);
    let step = step.ok_or_else(|| {
        Error::location(40414, "BSON field '$densify.range.step' is missing but a required field")
    })?;
    if !as_double(step).is_some_and(|step| step > 0.0) {
        return Err(refused());
    }
    match unit {
        None => Number::of(step).map(StepSize::Number).ok_or_else(refused),
        Some(unit) => {
            let unit = unit
                .as_str()
                .and_then(Unit::parse)
                .ok_or_else(|| Error::failed_to_parse(format!("unknown time unit value: {}", text(unit))))?;
            let step = whole_number(step).ok_or_else(|| {
                let message = "The step parameter in a range statement must be a whole number when densifying a \
                               date range";
                Error::location(6_586_400, message)
            })?;
            Ok(StepSize::Time(unit, step))
        }
    }
}

fn read_bounds(bounds: ValueRef<'_>, step: StepSize) -> Result<Bounds> {
    let refused = || {
        let message = "the bounds in a range statement must be the string 'full', 'partition', or an ascending \
                       array of two numbers or two dates";
        Error::location(5_946_802, message)
    };
    match bounds {
        ValueRef::String("full") => Ok(Bounds::Full),
        ValueRef::String("partition") => Ok(Bounds::Partition),
        ValueRef::Array(items) => {
            let (Some(lower), Some(upper), None) = (items.get(0), items.get(1), items.get(2)) else {
                return Err(Error::location(
                    5_733_403,
                    "a bounding array in a range statement must have exactly two elements",
                ));
            };
            let fits = |value: ValueRef<'_>| match step {
                StepSize::Number(_) => value.is_number(),
                StepSize::Time(..) => matches!(value, ValueRef::DateTime(_)),
            };
            if !fits(lower) || !fits(upper) || bson::compare(lower, upper) == Ordering::Greater {
                return Err(refused());
            }
            Ok(Bounds::Between(lower.to_value(), upper.to_value()))
        }
        _ => Err(refused()),
    }
}

/// The rows of one partition, with their values in the field.
struct Partition {
    fields: Document,
    rows: Vec<(Option<Value>, Row)>,
}

struct DensifyStep {
    densify: Arc<Densify>,
    places: HashMap<Vec<u8>, usize>,
    partitions: Vec<Partition>,
    given: Option<std::vec::IntoIter<Row>>,
    /// The number of rows when the first was returned.
    all: usize,
    generated: usize,
    memory: Memory,
}

impl Blocking for DensifyStep {
    fn take(&mut self, row: Row, execution: &mut ExecutionContext<'_>) -> Result<()> {
        self.memory.take(row.bytes(), execution.context)?;
        let mut fields = Document::new();
        let mut key = Vec::new();
        for path in &self.densify.partition {
            let value = path.get_nested(row.view());
            key.extend(key_of(value.unwrap_or(ValueRef::Undefined), &self.densify.collation));
            if let Some(value) = value {
                path.set(&mut fields, value.to_value());
            }
        }
        let value = match self.densify.field.get_nested(row.view()) {
            None | Some(ValueRef::Null | ValueRef::Undefined) => None,
            Some(value) => {
                self.densify.check(value)?;
                Some(value.to_value())
            }
        };
        let next = self.partitions.len();
        let place = *self.places.entry(key).or_insert(next);
        if place == next {
            self.partitions.push(Partition { fields, rows: Vec::new() });
        }
        self.partitions[place].rows.push((value, row));
        Ok(())
    }

    fn give(&mut self, execution: &mut ExecutionContext<'_>) -> Result<Option<Row>> {
        if self.given.is_none() {
            let rows = self.densify(execution)?;
            self.all = rows.len();
            self.given = Some(rows.into_iter());
        }
        Ok(self.given.as_mut().and_then(Iterator::next))
    }

    fn bytes(&self) -> usize {
        match &self.given {
            None => self.memory.used(),
            Some(rows) => self.memory.left(rows.len(), self.all),
        }
    }

    fn keeps_trees(&self) -> bool {
        true
    }
}

impl DensifyStep {
    fn densify(&mut self, execution: &mut ExecutionContext<'_>) -> Result<Vec<Row>> {
        let densify = Arc::clone(&self.densify);
        let mut partitions = std::mem::take(&mut self.partitions);
        for partition in &mut partitions {
            execution.context.spend(partition.rows.len() as u64 * 8)?;
            partition.rows.sort_by(|(left, _), (right, _)| compare(left.as_ref(), right.as_ref()));
        }
        let ends = |partitions: &[Partition]| {
            let values =
                || partitions.iter().flat_map(|one| one.rows.iter().filter_map(|(value, _)| value.as_ref()));
            let order = |left: &&Value, right: &&Value| bson::compare(left.view(), right.view());
            Some((values().min_by(order)?.clone(), values().max_by(order)?.clone()))
        };
        let full = ends(&partitions);
        if partitions.is_empty()
            && matches!(densify.bounds, Bounds::Between(..))
            && densify.partition.is_empty()
        {
            partitions.push(Partition { fields: Document::new(), rows: Vec::new() });
        }
        let mut rows = Vec::new();
        for partition in partitions {
            let own = match &densify.bounds {
                Bounds::Full => full.clone().map(|(lower, upper)| (lower, upper, true)),
                Bounds::Partition => {
                    ends(std::slice::from_ref(&partition)).map(|(lower, upper)| (lower, upper, true))
                }
                Bounds::Between(lower, upper) => Some((lower.clone(), upper.clone(), false)),
            };
            self.fill(partition, own.as_ref(), &mut rows, execution)?;
        }
        Ok(rows)
    }

    /// Merges the rows of a partition with those for its gaps.
    fn fill(
        &mut self,
        partition: Partition,
        range: Option<&(Value, Value, bool)>,
        rows: &mut Vec<Row>,
        execution: &mut ExecutionContext<'_>,
    ) -> Result<()> {
        let densify = Arc::clone(&self.densify);
        let mut steps = 0;
        let mut next = range.map(|(lower, ..)| lower.clone());
        let within = |value: &Value| match range {
            Some((_, upper, inclusive)) => match bson::compare(value.view(), upper.view()) {
                Ordering::Less => true,
                Ordering::Equal => *inclusive,
                Ordering::Greater => false,
            },
            None => false,
        };
        let mut existing = partition.rows.into_iter().peekable();
        loop {
            let wanted = next.as_ref().filter(|value| within(value));
            let order = match (existing.peek(), wanted) {
                (None, None) => return Ok(()),
                (Some((value, _)), Some(wanted)) => compare(value.as_ref(), Some(wanted)),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
            };
            if order == Ordering::Greater {
                if let Some(value) = wanted {
                    rows.push(self.generated(&partition.fields, value.clone(), execution)?);
                }
            } else if let Some((_, row)) = existing.next() {
                rows.push(row);
            }
            if order != Ordering::Less
                && let Some((lower, ..)) = range
            {
                steps += 1;
                next = Some(densify.after(lower, steps, execution.context)?);
                // Further rows with the same value stay where they are.
            }
            execution.context.spend(1)?;
        }
    }

    fn generated(
        &mut self,
        fields: &Document,
        value: Value,
        execution: &ExecutionContext<'_>,
    ) -> Result<Row> {
        self.generated += 1;
        if self.generated > GENERATED_MAX {
            let message = format!(
                "Generated {} documents in $densify, which is over the limit of {GENERATED_MAX}",
                self.generated
            );
            return Err(Error::location(5_897_900, message));
        }
        let mut document = fields.clone();
        self.densify.field.set(&mut document, value);
        let row = Row::from(document);
        self.memory.take(row.bytes(), execution.context)?;
        Ok(row)
    }
}

/// Rows without a value come first.
fn compare(left: Option<&Value>, right: Option<&Value>) -> Ordering {
    match (left, right) {
        (Some(left), Some(right)) => bson::compare(left.view(), right.view()),
        (left, right) => left.is_some().cmp(&right.is_some()),
    }
}

//! `$bucketAuto`: groups of about the same size.
//!
//! Rows are sorted to determine where buckets end, and accumulated in the order in which they came, as in MongoDB: `$push`
//! keeps it.

use std::cmp::Ordering;
use std::sync::Arc;

use bson::{Collation, Document, Value, ValueRef};

use super::bucket::{parse_group_by, parse_output};
use super::granularity::Granularity;
use crate::error::{Error, Result};
use crate::pipeline::accumulator::{Accumulator, Tally};
use crate::pipeline::chain::{Blocking, BlockingStep, ExecutionContext, Step};
use crate::pipeline::memory::Memory;
use crate::pipeline::row::{Row, value_bytes};
use crate::pipeline::settings::{Formula, PipelineContext};
use crate::pipeline::values::{as_double, text, type_name, whole_number};

/// A `$bucketAuto` as parsed.
#[derive(Debug)]
pub(crate) struct BucketAuto {
    by: Formula,
    buckets: usize,
    output: Vec<(String, Accumulator)>,
    granularity: Option<Granularity>,
    collation: Collation,
}

impl BucketAuto {
    pub(crate) fn parse(argument: ValueRef<'_>, around: &PipelineContext) -> Result<BucketAuto> {
        let ValueRef::Document(document) = argument else {
            let message = format!(
                "The argument to $bucketAuto must be an object, but found type: {}.",
                type_name(argument)
            );
            return Err(Error::location(40240, message));
        };
        for (name, _) in document.iter() {
            if !matches!(name, "groupBy" | "buckets" | "output" | "granularity") {
                return Err(Error::location(40245, format!("Unrecognized option to $bucketAuto: {name}.")));
            }
        }
        let (Some(by), Some(buckets)) = (document.get("groupBy"), document.get("buckets")) else {
            let message = "$bucketAuto requires 'groupBy' and 'buckets' to be specified.";
            return Err(Error::location(40246, message));
        };
        let granularity = match document.get("granularity") {
            None => None,
            Some(ValueRef::String(name)) => Some(Granularity::parse(name)?),
            Some(other) => {
                let message = format!(
                    "The $bucketAuto 'granularity' field must be a string, but found type: {}.",
                    type_name(other)
                );
                return Err(Error::location(40261, message));
            }
        };
        let output = parse_output("$bucketAuto", 40244, document.get("output"), around)?;
        if output.iter().any(|(_, accumulator)| accumulator.asks_the_group()) {
            let message = "Can't refer to the group key in $bucketAuto with an accumulator initializer";
            return Err(Error::location(4_544_714, message));
        }
        Ok(BucketAuto {
            by: parse_group_by("$bucketAuto", 40239, by, around)?,
            buckets: read_buckets(buckets)?,
            output,
            granularity,
            collation: around.collation().clone(),
        })
    }

    pub(crate) fn start(self: &Arc<Self>) -> Box<dyn Step> {
        BlockingStep::step(BucketAutoStep {
            stage: Arc::clone(self),
            entries: Vec::new(),
            sorted: None,
            all: 0,
            left: self.buckets,
            size: 0,
            boundary: None,
            memory: Memory::of("$bucketAuto"),
        })
    }
}

fn read_buckets(value: ValueRef<'_>) -> Result<usize> {
    if !value.is_number() {
        let kind = type_name(value);
        let message =
            format!("The $bucketAuto 'buckets' field must be a numeric value, but found type: {kind}.");
        return Err(Error::location(40241, message));
    }
    let Some(buckets) = whole_number(value).and_then(|whole| i32::try_from(whole).ok()) else {
        let message = format!(
            "The $bucketAuto 'buckets' field must be representable as a 32-bit integer, but found {}.",
            text(value)
        );
        return Err(Error::location(40242, message));
    };
    usize::try_from(buckets).ok().filter(|buckets| *buckets > 0).ok_or_else(|| {
        let message =
            format!("The $bucketAuto 'buckets' field must be greater than 0, but found: {buckets}.");
        Error::location(40243, message)
    })
}

struct BucketAutoStep {
    stage: Arc<BucketAuto>,
    entries: Vec<Entry>,
    sorted: Option<std::iter::Peekable<std::vec::IntoIter<Entry>>>,
    /// The number of rows when the first bucket was returned.
    all: usize,
    /// How many buckets are still to be filled.
    left: usize,
    /// How many rows a bucket has.
    size: usize,
    /// Where the last bucket ended, if ends are rounded.
    boundary: Option<Value>,
    memory: Memory,
}

/// A row, the value it is sorted by, and its position among all rows.
struct Entry {
    value: Value,
    place: usize,
    row: Row,
}

/// A bucket under construction.
struct Bucket {
    least: Value,
    most: Value,
    rows: Vec<(usize, Row)>,
}

impl Bucket {
    fn add(&mut self, entry: Entry) -> Value {
        self.rows.push((entry.place, entry.row));
        entry.value
    }
}

impl Blocking for BucketAutoStep {
    fn take(&mut self, row: Row, execution: &mut ExecutionContext<'_>) -> Result<()> {
        let value = self.stage.by.of_row(&row, execution.context)?.unwrap_or(Value::Null);
        if self.stage.granularity.is_some() {
            check_rounded(&value)?;
        }
        self.memory.take(row.bytes() + value_bytes(value.view()), execution.context)?;
        self.entries.push(Entry { value, place: self.entries.len(), row });
        Ok(())
    }

    fn give(&mut self, execution: &mut ExecutionContext<'_>) -> Result<Option<Row>> {
        if self.sorted.is_none() {
            self.sort(execution)?;
        }
        let stage = Arc::clone(&self.stage);
        let Some(first) = self.sorted.as_mut().and_then(Iterator::next) else { return Ok(None) };
        let mut bucket = Bucket { least: first.value.clone(), most: Value::Null, rows: Vec::new() };
        bucket.most = bucket.add(first);
        let is_last = self.left <= 1;
        self.left = self.left.saturating_sub(1);
        let mut taken = 1;
        while taken < self.size || is_last {
            let Some(entry) = self.sorted.as_mut().and_then(Iterator::next) else { break };
            bucket.most = bucket.add(entry);
            taken += 1;
        }
        self.close(&mut bucket);
        let before = self.memory.used();
        let tallies = self.count(&mut bucket.rows, execution)?;
        // The bucket is returned with its accumulated values.
        self.memory.give_back(self.memory.used() - before);
        let id = Document::new().with("min", bucket.least).with("max", bucket.most);
        let mut document = Document::new().with("_id", id);
        for ((name, _), tally) in stage.output.iter().zip(tallies) {
            document.push(name.as_str(), tally.into_value());
        }
        Row::made(document).map(Some)
    }

    fn bytes(&self) -> usize {
        match &self.sorted {
            None => self.memory.used(),
            Some(entries) => self.memory.left(entries.len(), self.all),
        }
    }
}

impl BucketAutoStep {
    fn sort(&mut self, execution: &ExecutionContext<'_>) -> Result<()> {
        let mut entries = std::mem::take(&mut self.entries);
        let count = entries.len();
        execution.context.spend(count as u64 * u64::from(count.max(1).ilog2()))?;
        let collation = &self.stage.collation;
        entries.sort_by(|left, right| collation.compare_values(left.value.view(), right.value.view()));
        self.size = ((count as f64 / self.stage.buckets as f64).round() as usize).max(1);
        self.all = count;
        self.sorted = Some(entries.into_iter().peekable());
        Ok(())
    }

    /// Accumulates the rows of a bucket, in the order in which they came.
    fn count(&mut self, rows: &mut [(usize, Row)], execution: &ExecutionContext<'_>) -> Result<Vec<Tally>> {
        rows.sort_unstable_by_key(|(place, _)| *place);
        let stage = Arc::clone(&self.stage);
        let begin =
            |(_, accumulator): &(String, Accumulator)| accumulator.begin(&Value::Null, execution.context);
        let mut tallies = stage.output.iter().map(begin).collect::<Result<Vec<Tally>>>()?;
        for (_, row) in rows {
            execution.context.spend(1)?;
            for ((_, accumulator), tally) in stage.output.iter().zip(&mut tallies) {
                self.memory
                    .take(tally.add(accumulator.input(row, execution.context)?)?, execution.context)?;
            }
        }
        Ok(tallies)
    }

    /// Adds the rows that belong to the bucket beyond its size, and sets its ends.
    fn close(&mut self, bucket: &mut Bucket) {
        let stage = Arc::clone(&self.stage);
        if let Some(granularity) = &stage.granularity {
            let number = |value: &Value| as_double(value.view()).unwrap_or_default();
            let boundary = Value::Double(granularity.round_up(number(&bucket.most)));
            bucket.least = match self.boundary.take() {
                Some(before) => before,
                None => Value::Double(granularity.round_down(number(&bucket.least))),
            };
            while let Some(entry) =
                self.next_where(|value| bson::compare(value.view(), boundary.view()).is_lt())
            {
                bucket.add(entry);
            }
            bucket.most = boundary.clone();
            self.boundary = Some(boundary);
            return;
        }
        let same = |collation: &Collation, value: &Value, most: &Value| {
            collation.compare_values(value.view(), most.view()) == Ordering::Equal
        };
        while let Some(entry) = self.next_where(|value| same(&stage.collation, value, &bucket.most)) {
            bucket.add(entry);
        }
        if let Some(next) = self.sorted.as_mut().and_then(std::iter::Peekable::peek) {
            bucket.most = next.value.clone();
        }
    }

    fn next_where(&mut self, wanted: impl Fn(&Value) -> bool) -> Option<Entry> {
        self.sorted.as_mut().and_then(|sorted| sorted.next_if(|entry| wanted(&entry.value)))
    }
}

fn check_rounded(value: &Value) -> Result<()> {
    let Some(number) = as_double(value.view()) else {
        let message = format!(
            "$bucketAuto can specify a 'granularity' with numeric boundaries only, but found a value with type: {}",
            type_name(value.view())
        );
        return Err(Error::location(40258, message));
    };
    if number.is_nan() {
        let message = "$bucketAuto can specify a 'granularity' with numeric boundaries only, but found a NaN";
        return Err(Error::location(40259, message));
    }
    if number < 0.0 {
        let message = "$bucketAuto can specify a 'granularity' with non-negative numbers only, but found a negative number";
        return Err(Error::location(40260, message));
    }
    Ok(())
}

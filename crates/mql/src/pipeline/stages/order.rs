//! `$sort`, of everything or of the first rows alone, and `$sample`.

use std::cmp::Ordering;
use std::sync::Arc;

use bson::{Collation, Value, ValueRef};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::pipeline::chain::{Blocking, BlockingStep, Each, EachRow, ExecutionContext, Step};
use crate::pipeline::memory::{DiskUse, Memory};
use crate::pipeline::row::Row;
use crate::pipeline::run::Tagged;
use crate::pipeline::search_meta::tell;
use crate::pipeline::settings::PipelineContext;
use crate::pipeline::sorter::{SortOrder, SortedRows, Sorter};
use crate::pipeline::values::{as_double, whole_number};
use crate::sort::{Sort, SortKey};

/// A `$sort` as parsed.
#[derive(Debug, Clone)]
pub(crate) struct Sorted {
    pub(crate) sort: Arc<Sort>,
    /// The largest number of rows that are needed: set when a `$limit` follows.
    pub(crate) limit: Option<u64>,
    collation: Collation,
    /// Whether each row keeps its sort key: `{$meta: "sortKey"}`.
    tells_key: bool,
    disk_use: DiskUse,
}

impl Sorted {
    pub(crate) fn parse(argument: ValueRef<'_>, around: &PipelineContext) -> Result<Sorted> {
        let ValueRef::Document(document) = argument else {
            return Err(Error::location(15973, "the $sort key specification must be an object"));
        };
        if document.is_empty() {
            return Err(Error::location(15976, "$sort stage must have at least one sort key"));
        }
        let sort = Sort::parse(document)?;
        if sort.natural().is_some() {
            return Err(Error::bad_value("$natural sort cannot be used in a $sort stage"));
        }
        Ok(Sorted::of(sort, around))
    }

    pub(crate) fn of(sort: Sort, around: &PipelineContext) -> Sorted {
        Sorted {
            sort: Arc::new(sort),
            limit: None,
            collation: around.collation().clone(),
            tells_key: around.requested_meta.sort_key,
            disk_use: around.settings.disk_use,
        }
    }

    /// Returns the step for rows that come in this order by themselves, if they need their sort keys.
    pub(crate) fn telling(&self) -> Option<Box<dyn Step>> {
        let tells = self.tells_key && self.sort.natural().is_none();
        tells.then(|| EachRow::step(SortKeyStep(self.clone())))
    }

    fn key_of(&self, row: &Row, context: &Context) -> Result<SortKey> {
        self.sort.key(row.view(), &self.collation, row.meta.as_deref(), context)
    }

    pub(crate) fn start(&self, stage: &'static str) -> Box<dyn Step> {
        let memory = Memory::spilling(stage, self.disk_use);
        let phase = Phase::Taking(Sorter::new(self.clone(), memory));
        BlockingStep::step(SortStep { phase, tells_key: self.tells_key })
    }
}

/// Adds the sort key to each row.
struct SortKeyStep(Sorted);

impl Each for SortKeyStep {
    fn apply(&mut self, mut row: Row, execution: &mut ExecutionContext<'_>) -> Result<Option<Row>> {
        let key = self.0.key_of(&row, execution.context)?;
        tell_key(&mut row, &key);
        Ok(Some(row))
    }
}

fn tell_key(row: &mut Row, key: &SortKey) {
    tell(row, "sortKey", Value::Array(key.values().cloned().collect()));
}

impl SortOrder for Sorted {
    type Key = SortKey;

    fn key(&self, (_, row): &Tagged, context: &Context) -> Result<SortKey> {
        self.key_of(row, context)
    }

    fn compare(&self, left: &SortKey, right: &SortKey) -> Ordering {
        self.sort.compare(left, right)
    }

    fn key_bytes(&self, key: &SortKey) -> usize {
        key.bytes()
    }

    fn limit(&self) -> Option<usize> {
        self.limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX))
    }
}

/// A running `$sort`.
struct SortStep {
    phase: Phase,
    tells_key: bool,
}

enum Phase {
    Taking(Sorter<Sorted>),
    Giving(SortedRows<Sorted>),
    /// Between the two, and after an error.
    Done,
}

impl Blocking for SortStep {
    fn take(&mut self, row: Row, execution: &mut ExecutionContext<'_>) -> Result<()> {
        match &mut self.phase {
            Phase::Taking(sorter) => sorter.push(None, row, execution.context),
            Phase::Giving(_) | Phase::Done => Ok(()),
        }
    }

    fn give(&mut self, execution: &mut ExecutionContext<'_>) -> Result<Option<Row>> {
        self.phase = match std::mem::replace(&mut self.phase, Phase::Done) {
            Phase::Taking(sorter) => Phase::Giving(sorter.finish(execution.context)?),
            other => other,
        };
        let Phase::Giving(sorted) = &mut self.phase else { return Ok(None) };
        let next = sorted.next(execution.context)?;
        Ok(next.map(|(key, (_, mut row))| {
            if self.tells_key {
                tell_key(&mut row, &key);
            }
            row
        }))
    }

    fn bytes(&self) -> usize {
        match &self.phase {
            Phase::Taking(sorter) => sorter.bytes(),
            Phase::Giving(rows) => rows.bytes(),
            Phase::Done => 0,
        }
    }
}

/// Reads `$sample`: how many rows.
pub(crate) fn parse_sample(argument: ValueRef<'_>) -> Result<u64> {
    let ValueRef::Document(document) = argument else {
        return Err(Error::location(28745, "the $sample stage specification must be an object"));
    };
    if let Some((name, _)) = document.iter().find(|(name, _)| *name != "size") {
        return Err(Error::location(28748, format!("unrecognized option to $sample: {name}")));
    }
    let size =
        document.get("size").ok_or_else(|| Error::location(28749, "$sample stage must specify a size"))?;
    let Some(number) = as_double(size) else {
        return Err(Error::location(28746, "size argument to $sample must be a number"));
    };
    let whole = whole_number(size).unwrap_or(number as i64);
    match u64::try_from(whole) {
        Ok(size) if size > 0 => Ok(size),
        _ => Err(Error::location(28747, "size argument to $sample must be a positive integer")),
    }
}

/// Keeps so many rows, each with the same probability, whatever their number (reservoir sampling).
pub(crate) struct SampleStep {
    size: u64,
    seen: u64,
    kept: Vec<Row>,
    memory: Memory,
}

impl SampleStep {
    pub(crate) fn step(size: u64) -> Box<dyn Step> {
        BlockingStep::step(SampleStep { size, seen: 0, kept: Vec::new(), memory: Memory::of("$sample") })
    }
}

impl Blocking for SampleStep {
    fn take(&mut self, row: Row, execution: &mut ExecutionContext<'_>) -> Result<()> {
        self.seen += 1;
        if self.seen <= self.size {
            self.memory.take(row.bytes(), execution.context)?;
            self.kept.push(row);
            return Ok(());
        }
        let place = execution.context.random() % self.seen;
        if place < self.size {
            self.memory.take(row.bytes(), execution.context)?;
            let before = std::mem::replace(&mut self.kept[place as usize], row);
            self.memory.give_back(before.bytes());
        }
        Ok(())
    }

    /// Returns the rows, in random order too.
    fn give(&mut self, execution: &mut ExecutionContext<'_>) -> Result<Option<Row>> {
        if self.kept.is_empty() {
            return Ok(None);
        }
        let place = execution.context.random() % self.kept.len() as u64;
        Ok(Some(self.kept.swap_remove(place as usize)))
    }

    fn bytes(&self) -> usize {
        let all = usize::try_from(self.seen.min(self.size)).unwrap_or(usize::MAX);
        self.memory.left(self.kept.len(), all)
    }
}

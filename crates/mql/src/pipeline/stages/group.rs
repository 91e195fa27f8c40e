//! `$group`, and the stages built on it: `$sortByCount`, `$count`.
//!
//! Groups are returned in the order of their first rows, unless some had to go to disk.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use bson::{Document, Value, ValueRef};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::pipeline::accumulator::{Accumulator, Tally};
use crate::pipeline::chain::{Blocking, BlockingStep, ExecutionContext, Step};
use crate::pipeline::memory::{DiskUse, Memory};
use crate::pipeline::row::{Row, value_bytes};
use crate::pipeline::run::Tagged;
use crate::pipeline::settings::{Formula, PipelineContext};
use crate::pipeline::sorter::{SortOrder, SortedRows, Sorter};
use crate::pipeline::values::key_of;

/// A `$group` as parsed.
#[derive(Debug)]
pub(crate) struct Group {
    id: Key,
    fields: Vec<(String, Accumulator)>,
    collation: bson::Collation,
    disk_use: DiskUse,
    stage: &'static str,
}

/// What rows are grouped by.
#[derive(Debug)]
pub(crate) enum Key {
    Formula(Formula),
    /// The bucket of a value.
    Bucket(super::bucket::Buckets),
}

impl Group {
    pub(crate) fn parse(argument: ValueRef<'_>, around: &PipelineContext) -> Result<Group> {
        let ValueRef::Document(document) = argument else {
            return Err(Error::location(15947, "a group's fields must be specified in an object"));
        };
        let mut id = None;
        let mut fields = Vec::new();
        for (name, value) in document.iter() {
            if name == "_id" {
                if id.replace(around.formula(value)?).is_some() {
                    return Err(Error::location(15948, "a group's _id may only be specified once"));
                }
            } else if name == "$doingMerge" {
                return Err(Error::location(17030, "$doingMerge should be true if present"));
            } else {
                fields.push((name.to_owned(), Accumulator::parse_field(name, value, around)?));
            }
        }
        let id = id.ok_or_else(|| Error::location(15955, "a group specification must include an _id"))?;
        Ok(Group::new("$group", Key::Formula(id), fields, around))
    }

    pub(crate) fn new(
        stage: &'static str,
        id: Key,
        fields: Vec<(String, Accumulator)>,
        around: &PipelineContext,
    ) -> Group {
        let (collation, disk_use) = (around.collation().clone(), around.settings.disk_use);
        Group { id, fields, collation, disk_use, stage }
    }

    pub(crate) fn start(self: &Arc<Self>) -> Box<dyn Step> {
        BlockingStep::step(GroupStep {
            group: Arc::clone(self),
            places: HashMap::new(),
            groups: Vec::new(),
            given: 0,
            memory: Memory::spilling(self.stage, self.disk_use),
            overflow: Overflow::None,
        })
    }
}

/// A running `$group`: as many groups in memory as fit into half of the stage's memory. Once that is full, every further
/// row is sorted by its group's key in the other half and on disk, and joins its group when all rows are there: then the
/// groups follow each other, and only one of them grows at a time, into the other half.
struct GroupStep {
    group: Arc<Group>,
    places: HashMap<Vec<u8>, usize>,
    /// In the order of their first rows; `None` once returned.
    groups: Vec<Option<Tallied>>,
    given: usize,
    memory: Memory,
    overflow: Overflow,
}

/// A group and its running counts.
type Tallied = (Value, Vec<Tally>);

enum Overflow {
    None,
    Taking(Sorter<ByGroup>),
    Giving { rows: SortedRows<ByGroup>, next: Option<(Vec<u8>, Tagged)> },
}

/// The order of rows by the keys of their groups. The group is kept beside its row: computed again from the row, it could
/// be a different one (`$rand`).
struct ByGroup(bson::Collation);

impl SortOrder for ByGroup {
    type Key = Vec<u8>;

    fn key(&self, (id, _): &Tagged, _context: &Context) -> Result<Vec<u8>> {
        Ok(key_of(id.as_ref().map_or(ValueRef::Null, Value::view), &self.0))
    }

    fn compare(&self, left: &Vec<u8>, right: &Vec<u8>) -> Ordering {
        left.cmp(right)
    }

    fn key_bytes(&self, key: &Vec<u8>) -> usize {
        size_of::<Vec<u8>>() + key.len()
    }
}

impl Group {
    fn id(&self, row: &Row, context: &Context) -> Result<Value> {
        let id = match &self.id {
            Key::Formula(id) => id.of_row(row, context)?,
            Key::Bucket(buckets) => Some(buckets.of_row(row, context)?),
        };
        Ok(id.unwrap_or(Value::Null))
    }

    fn begin(&self, id: Value, context: &Context) -> Result<Tallied> {
        let begin = |(_, accumulator): &(String, Accumulator)| accumulator.begin(&id, context);
        let tallies = self.fields.iter().map(begin).collect::<Result<_>>()?;
        Ok((id, tallies))
    }

    /// Adds a row to its group, and returns how many bytes that takes.
    fn add(&self, group: &mut Tallied, row: &Row, context: &Context) -> Result<usize> {
        let mut bytes = 0;
        for ((_, accumulator), tally) in self.fields.iter().zip(&mut group.1) {
            bytes += tally.add(accumulator.input(row, context)?)?;
        }
        Ok(bytes)
    }

    fn row(&self, (id, tallies): Tallied) -> Result<Row> {
        let mut document = Document::new().with("_id", id);
        for ((name, _), tally) in self.fields.iter().zip(tallies) {
            document.push(name.as_str(), tally.into_value());
        }
        Row::made(document)
    }
}

impl GroupStep {
    /// Adds a row to its group in memory, if it fits; otherwise returns it.
    fn take_in_memory(&mut self, id: Value, row: Row, context: &Context) -> Result<Option<(Value, Row)>> {
        if self.memory.may_spill(context) && !self.memory.fits_half(row.bytes(), context) {
            return Ok(Some((id, row)));
        }
        let key = key_of(id.view(), &self.group.collation);
        let place = if let Some(place) = self.places.get(&key) {
            *place
        } else {
            let group = self.group.begin(id, context)?;
            let bytes = key.len() + value_bytes(group.0.view()) + size_of::<Tally>() * group.1.len() + 64;
            self.memory.take(bytes, context)?;
            self.groups.push(Some(group));
            self.places.insert(key, self.groups.len() - 1);
            self.groups.len() - 1
        };
        if let Some(group) = &mut self.groups[place] {
            let bytes = self.group.add(group, &row, context)?;
            self.memory.take(bytes, context)?;
        }
        Ok(None)
    }

    /// Returns the next of the groups with rows on disk.
    fn next_overflowed(&mut self, context: &Context) -> Result<Option<Row>> {
        let Overflow::Giving { rows, next } = &mut self.overflow else { return Ok(None) };
        let Some((key, (id, row))) = next.take() else { return Ok(None) };
        let in_memory = self.places.get(&key).and_then(|place| self.groups[*place].take());
        let mut group = match in_memory {
            Some(group) => group,
            None => self.group.begin(id.unwrap_or(Value::Null), context)?,
        };
        let mut grown = self.group.add(&mut group, &row, context)?;
        self.memory.take(grown, context)?;
        loop {
            *next = rows.next(context)?;
            match next {
                Some((other, (_, row))) if *other == key => {
                    let bytes = self.group.add(&mut group, row, context)?;
                    self.memory.take(bytes, context)?;
                    grown += bytes;
                }
                _ => break,
            }
        }
        self.memory.give_back(grown);
        self.group.row(group).map(Some)
    }
}

impl Blocking for GroupStep {
    fn take(&mut self, row: Row, execution: &mut ExecutionContext<'_>) -> Result<()> {
        let mut id = self.group.id(&row, execution.context)?;
        let mut row = row;
        if matches!(self.overflow, Overflow::None) {
            match self.take_in_memory(id, row, execution.context)? {
                None => return Ok(()),
                Some(left) => (id, row) = left,
            }
            let memory = Memory::spilling(self.group.stage, self.group.disk_use).half();
            self.overflow = Overflow::Taking(Sorter::new(ByGroup(self.group.collation.clone()), memory));
        }
        match &mut self.overflow {
            Overflow::Taking(sorter) => sorter.push(Some(id), row, execution.context),
            Overflow::None | Overflow::Giving { .. } => Ok(()),
        }
    }

    fn give(&mut self, execution: &mut ExecutionContext<'_>) -> Result<Option<Row>> {
        execution.context.spend(1)?;
        self.overflow = match std::mem::replace(&mut self.overflow, Overflow::None) {
            Overflow::Taking(sorter) => {
                let mut rows = sorter.finish(execution.context)?;
                let next = rows.next(execution.context)?;
                Overflow::Giving { rows, next }
            }
            other => other,
        };
        if let Some(row) = self.next_overflowed(execution.context)? {
            return Ok(Some(row));
        }
        while let Some(group) = self.groups.get_mut(self.given) {
            self.given += 1;
            if let Some(group) = group.take() {
                return self.group.row(group).map(Some);
            }
        }
        Ok(None)
    }

    fn bytes(&self) -> usize {
        let overflow = match &self.overflow {
            Overflow::None => 0,
            Overflow::Taking(sorter) => sorter.bytes(),
            Overflow::Giving { rows, .. } => rows.bytes(),
        };
        self.memory.left(self.groups.len().saturating_sub(self.given), self.groups.len()) + overflow
    }

    fn keeps_trees(&self) -> bool {
        true
    }
}

/// `$count`: how many rows came, if any.
#[derive(Debug)]
pub(crate) struct Count {
    field: String,
}

impl Count {
    pub(crate) fn parse(argument: ValueRef<'_>) -> Result<Count> {
        let field = argument
            .as_str()
            .ok_or_else(|| Error::location(40156, "the count field must be a non-empty string"))?;
        let refusal = if field.is_empty() {
            Some((40157, "the count field must be a non-empty string"))
        } else if field.starts_with('$') {
            Some((40158, "the count field cannot be a $-prefixed path"))
        } else if field.contains('\0') {
            Some((40159, "the count field cannot contain '\\0'"))
        } else if field.contains('.') {
            Some((40160, "the count field cannot contain '.'"))
        } else {
            None
        };
        match refusal {
            Some((code, message)) => Err(Error::location(code, message)),
            None => Ok(Count { field: field.to_owned() }),
        }
    }

    pub(crate) fn start(self: &Arc<Self>) -> Box<dyn Step> {
        BlockingStep::step(CountStep { field: self.field.clone(), count: 0 })
    }
}

struct CountStep {
    field: String,
    count: i64,
}

impl Blocking for CountStep {
    fn take(&mut self, _row: Row, _world: &mut ExecutionContext<'_>) -> Result<()> {
        self.count += 1;
        Ok(())
    }

    fn give(&mut self, _world: &mut ExecutionContext<'_>) -> Result<Option<Row>> {
        let count = std::mem::take(&mut self.count);
        if count == 0 {
            return Ok(None);
        }
        let value = i32::try_from(count).map_or(Value::Int64(count), Value::Int32);
        Ok(Some(Document::new().with(self.field.as_str(), value).into()))
    }

    fn bytes(&self) -> usize {
        0
    }
}

/// Reads `$sortByCount`: returns the group that it abbreviates; the sort by `count` follows it.
pub(crate) fn parse_sort_by_count(argument: ValueRef<'_>, around: &PipelineContext) -> Result<Group> {
    let message =
        "the sortByCount field must be defined as a $-prefixed path or an expression inside an object";
    match argument {
        ValueRef::Document(document) => {
            if !document.iter().next().is_some_and(|(name, _)| name.starts_with('$')) {
                return Err(Error::location(40147, message));
            }
        }
        ValueRef::String(text) => {
            if !text.starts_with('$') {
                return Err(Error::location(40148, message));
            }
        }
        _ => {
            let message = "the sortByCount field must be specified as a string or as an object";
            return Err(Error::location(40149, message));
        }
    }
    let id = Key::Formula(around.formula(argument)?);
    let fields = vec![("count".to_owned(), Accumulator::count(around))];
    Ok(Group::new("$sortByCount", id, fields, around))
}

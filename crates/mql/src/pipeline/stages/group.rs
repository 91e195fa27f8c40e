//! `$group`, and what is made of it: `$sortByCount`, `$count`.
//!
//! Groups come out in the order in which their first rows came in.

use std::collections::HashMap;
use std::sync::Arc;

use bson::{Document, Value, ValueRef};

use crate::error::{Error, Result};
use crate::pipeline::accumulator::{Accumulator, Tally};
use crate::pipeline::chain::{Blocking, BlockingStep, Step, World};
use crate::pipeline::memory::Memory;
use crate::pipeline::row::{Row, value_bytes};
use crate::pipeline::settings::{Formula, Surroundings};
use crate::pipeline::text::key_of;

/// A `$group` as parsed.
#[derive(Debug)]
pub(crate) struct Group {
    id: Key,
    fields: Vec<(String, Accumulator)>,
    collation: bson::Collation,
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
    pub(crate) fn parse(argument: ValueRef<'_>, around: &Surroundings) -> Result<Group> {
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
        around: &Surroundings,
    ) -> Group {
        Group { id, fields, collation: around.collation().clone(), stage }
    }

    pub(crate) fn start(self: &Arc<Self>) -> Box<dyn Step> {
        BlockingStep::step(Grouping {
            group: Arc::clone(self),
            places: HashMap::new(),
            groups: Vec::new(),
            given: 0,
            memory: Memory::of(self.stage),
        })
    }
}

struct Grouping {
    group: Arc<Group>,
    places: HashMap<Vec<u8>, usize>,
    groups: Vec<(Value, Vec<Tally>)>,
    given: usize,
    memory: Memory,
}

impl Grouping {
    fn place(&mut self, id: Value, world: &World<'_>) -> Result<usize> {
        let key = key_of(id.view(), &self.group.collation);
        if let Some(place) = self.places.get(&key) {
            return Ok(*place);
        }
        let tallies: Vec<Tally> = self
            .group
            .fields
            .iter()
            .map(|(_, accumulator)| accumulator.begin(&id, world.context))
            .collect::<Result<_>>()?;
        self.memory.take(
            key.len() + value_bytes(id.view()) + size_of::<Tally>() * tallies.len() + 64,
            world.context,
        )?;
        let place = self.groups.len();
        self.groups.push((id, tallies));
        self.places.insert(key, place);
        Ok(place)
    }
}

impl Blocking for Grouping {
    fn take(&mut self, row: Row, world: &mut World<'_>) -> Result<()> {
        let id = match &self.group.id {
            Key::Formula(id) => id.of_row(&row, world.context)?,
            Key::Bucket(buckets) => Some(buckets.of_row(&row, world.context)?),
        };
        let place = self.place(id.unwrap_or(Value::Null), world)?;
        let group = Arc::clone(&self.group);
        for ((_, accumulator), tally) in group.fields.iter().zip(&mut self.groups[place].1) {
            let bytes = tally.add(accumulator.input(&row, world.context)?)?;
            self.memory.take(bytes, world.context)?;
        }
        Ok(())
    }

    fn give(&mut self, world: &mut World<'_>) -> Result<Option<Row>> {
        world.context.spend(1)?;
        let Some((id, tallies)) = self.groups.get_mut(self.given) else { return Ok(None) };
        self.given += 1;
        let id = std::mem::replace(id, Value::Null);
        let mut document = Document::new().with("_id", id);
        for ((name, _), tally) in self.group.fields.iter().zip(std::mem::take(tallies)) {
            document.push(name.as_str(), tally.into_value());
        }
        Row::made(document).map(Some)
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
        BlockingStep::step(Counting { field: self.field.clone(), count: 0 })
    }
}

struct Counting {
    field: String,
    count: i64,
}

impl Blocking for Counting {
    fn take(&mut self, _row: Row, _world: &mut World<'_>) -> Result<()> {
        self.count += 1;
        Ok(())
    }

    fn give(&mut self, _world: &mut World<'_>) -> Result<Option<Row>> {
        let count = std::mem::take(&mut self.count);
        if count == 0 {
            return Ok(None);
        }
        let value = i32::try_from(count).map_or(Value::Int64(count), Value::Int32);
        Ok(Some(Document::new().with(self.field.as_str(), value).into()))
    }
}

/// `$sortByCount`: the group that it is short for; the sort by `count` follows it.
pub(crate) fn parse_sort_by_count(argument: ValueRef<'_>, around: &Surroundings) -> Result<Group> {
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

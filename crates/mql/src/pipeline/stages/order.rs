//! `$sort`, of everything or of the first rows alone, and `$sample`.

use std::sync::Arc;

use bson::{Collation, Value, ValueRef};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::pipeline::chain::{Blocking, BlockingStep, Each, EachRow, Step, World};
use crate::pipeline::found::tell;
use crate::pipeline::memory::Memory;
use crate::pipeline::row::{Row, value_bytes};
use crate::pipeline::settings::Surroundings;
use crate::pipeline::text::{as_double, whole_number};
use crate::sort::{Sort, SortKey};

/// A `$sort` as parsed.
#[derive(Debug, Clone)]
pub(crate) struct Sorted {
    pub(crate) sort: Arc<Sort>,
    /// How many rows are wanted at most: set when a `$limit` follows.
    pub(crate) limit: Option<u64>,
    collation: Collation,
    /// Whether each row keeps what it was sorted by: `{$meta: "sortKey"}`.
    tells_key: bool,
}

impl Sorted {
    pub(crate) fn parse(argument: ValueRef<'_>, around: &Surroundings) -> Result<Sorted> {
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

    pub(crate) fn of(sort: Sort, around: &Surroundings) -> Sorted {
        let tells_key = around.asked.sort_key;
        Sorted { sort: Arc::new(sort), limit: None, collation: around.collation().clone(), tells_key }
    }

    /// The step for rows that come in this order by themselves, if they are to tell what they are sorted by.
    pub(crate) fn telling(&self) -> Option<Box<dyn Step>> {
        let tells = self.tells_key && self.sort.natural().is_none();
        tells.then(|| EachRow::step(Telling(self.clone())))
    }

    fn key(&self, row: &Row, context: &Context) -> Result<SortKey> {
        self.sort.key(row.view(), &self.collation, row.meta.as_deref(), context)
    }

    pub(crate) fn start(&self, stage: &'static str) -> Box<dyn Step> {
        BlockingStep::step(Sorting {
            order: self.clone(),
            rows: Vec::new(),
            sorted: None,
            memory: Memory::of(stage),
        })
    }
}

/// Tells of each row what it is sorted by.
struct Telling(Sorted);

impl Each for Telling {
    fn apply(&mut self, mut row: Row, world: &mut World<'_>) -> Result<Option<Row>> {
        let key = self.0.key(&row, world.context)?;
        tell_key(&mut row, &key);
        Ok(Some(row))
    }
}

fn tell_key(row: &mut Row, key: &SortKey) {
    tell(row, "sortKey", Value::Array(key.values().cloned().collect()));
}

struct Entry {
    key: SortKey,
    bytes: usize,
    row: Row,
}

struct Sorting {
    order: Sorted,
    rows: Vec<Entry>,
    sorted: Option<std::vec::IntoIter<Entry>>,
    memory: Memory,
}

/// How many rows beyond those wanted are gathered before the worst are thrown away.
const SLACK_MIN: usize = 256;

impl Sorting {
    /// Stable, so that rows of equal keys come as they came in.
    fn sort(&mut self, world: &World<'_>) -> Result<()> {
        let count = self.rows.len() as u64;
        world.context.spend(count.saturating_mul(u64::from(count.max(1).ilog2())))?;
        let sort = &self.order.sort;
        self.rows.sort_by(|left, right| sort.compare(&left.key, &right.key));
        if let Some(limit) = self.order.limit {
            let limit = usize::try_from(limit).unwrap_or(usize::MAX);
            for dropped in self.rows.drain(limit.min(self.rows.len())..) {
                self.memory.give_back(dropped.bytes);
            }
        }
        Ok(())
    }
}

impl Blocking for Sorting {
    fn take(&mut self, row: Row, world: &mut World<'_>) -> Result<()> {
        let key = self.order.key(&row, world.context)?;
        let bytes = row.bytes() + key_bytes(&key);
        self.memory.take(bytes, world.context)?;
        self.rows.push(Entry { key, bytes, row });
        if let Some(limit) = self.order.limit {
            let limit = usize::try_from(limit).unwrap_or(usize::MAX);
            if self.rows.len() >= limit.saturating_mul(2).max(limit.saturating_add(SLACK_MIN)) {
                self.sort(world)?;
            }
        }
        Ok(())
    }

    fn give(&mut self, world: &mut World<'_>) -> Result<Option<Row>> {
        if self.sorted.is_none() {
            self.sort(world)?;
            self.sorted = Some(std::mem::take(&mut self.rows).into_iter());
        }
        let next = self.sorted.as_mut().and_then(Iterator::next);
        Ok(next.map(|Entry { key, mut row, .. }| {
            if self.order.tells_key {
                tell_key(&mut row, &key);
            }
            row
        }))
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

/// Keeps so many rows, each with the same chance, whatever their number is (reservoir sampling).
pub(crate) struct Sampling {
    size: u64,
    seen: u64,
    kept: Vec<Row>,
    memory: Memory,
}

impl Sampling {
    pub(crate) fn step(size: u64) -> Box<dyn Step> {
        BlockingStep::step(Sampling { size, seen: 0, kept: Vec::new(), memory: Memory::of("$sample") })
    }
}

impl Blocking for Sampling {
    fn take(&mut self, row: Row, world: &mut World<'_>) -> Result<()> {
        self.seen += 1;
        if self.seen <= self.size {
            self.memory.take(row.bytes(), world.context)?;
            self.kept.push(row);
            return Ok(());
        }
        let place = world.context.random() % self.seen;
        if place < self.size {
            self.memory.take(row.bytes(), world.context)?;
            let before = std::mem::replace(&mut self.kept[place as usize], row);
            self.memory.give_back(before.bytes());
        }
        Ok(())
    }

    /// In random order too.
    fn give(&mut self, world: &mut World<'_>) -> Result<Option<Row>> {
        if self.kept.is_empty() {
            return Ok(None);
        }
        let place = world.context.random() % self.kept.len() as u64;
        Ok(Some(self.kept.swap_remove(place as usize)))
    }
}

/// How many bytes a key takes, roughly.
pub(crate) fn key_bytes(key: &SortKey) -> usize {
    size_of::<SortKey>() + key.values().map(|value| value_bytes(value.view())).sum::<usize>()
}

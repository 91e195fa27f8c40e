//! Evaluation of a whole query in memory: groups, projection, order, `DISTINCT` and window.
//!
//! For subqueries, whose rows are few, and for a query in `FROM` that has to be finished before the outer query can
//! begin. `run` makes pages.

use std::collections::{BTreeMap, BTreeSet};

use document::{Value, ValueRef, encode_key, encode_key_descending};

use super::{Environment, Flow, MemoryBudget, each_binding, evaluate, project};
use crate::evaluate::aggregate::Accumulator;
use crate::functions::context::Context;
use crate::logical::{Order, Query};
use crate::row::{Operand, Row};

/// Most bytes that one subquery keeps: its rows, groups and sort keys.
const SUBQUERY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Most bytes that a query inside of the outermost `FROM` keeps. There are few of them, and each reads every item.
const NESTED_BYTES_MAX: usize = 128 * 1024 * 1024;

/// Collects the result rows of a query.
pub(crate) struct Collector<'q> {
    query: &'q Query,
    /// The number of rows that are needed, including those that the window skips.
    most: u64,
    groups: BTreeMap<Vec<u8>, Group>,
    /// Finished rows by their sort keys. The keys are unique, so that equal ones keep their order.
    rows: BTreeMap<Vec<u8>, Finished>,
    /// The number of rows finished so far, including those that were dropped.
    finished: u64,
    seen: BTreeSet<Vec<u8>>,
    memory: MemoryBudget,
    /// The query whose rows take the place of items.
    nested: Option<Box<Collector<'q>>>,
}

struct Finished {
    row: Value,
    /// The bytes that it takes of the budget.
    bytes: usize,
}

struct Group {
    keys: Vec<Option<Value>>,
    accumulators: Vec<Accumulator>,
}

impl<'q> Collector<'q> {
    /// Creates a collector for at most `most` rows of a query.
    pub(crate) fn new(query: &'q Query, most: u64) -> Collector<'q> {
        let most = query.take.unwrap_or(u64::MAX).min(most).saturating_add(query.skip);
        let mut groups = BTreeMap::new();
        if query.is_grouped() && query.group_by.is_empty() {
            groups.insert(Vec::new(), Group::new(query, Vec::new()));
        }
        let memory = MemoryBudget::new("the rows of a subquery", SUBQUERY_BYTES_MAX);
        Collector {
            query,
            most,
            groups,
            rows: BTreeMap::new(),
            finished: 0,
            seen: BTreeSet::new(),
            memory,
            nested: None,
        }
    }

    /// Creates a collector for all rows of a query that reads items.
    pub(crate) fn of_items(query: &'q Query) -> Collector<'q> {
        let memory = MemoryBudget::new("the rows of a query in FROM", NESTED_BYTES_MAX);
        let nested = query.nested.as_deref().map(|nested| Box::new(Collector::of_items(nested)));
        Collector { memory, nested, ..Collector::new(query, u64::MAX) }
    }

    /// Adds an item.
    pub(crate) fn push_item(&mut self, item: &dyn Row, context: &Context) -> Flow {
        match &mut self.nested {
            Some(nested) => nested.push_item(item, context),
            None => self.push_each(item, context),
        }
    }

    /// Returns the result rows after the last item.
    pub(crate) fn finish_items(mut self, context: &Context) -> Vec<Value> {
        if let Some(nested) = self.nested.take() {
            for row in nested.finish_items(context) {
                if self.push_each(&row, context) == Flow::Enough {
                    break;
                }
            }
        }
        self.finish(&Environment::empty(), context)
    }

    fn push_each(&mut self, item: &dyn Row, context: &Context) -> Flow {
        each_binding(self.query, &Environment::of_item(item), context, &mut |row, _| self.push(row, context))
    }

    /// Adds a row of the sources.
    pub(crate) fn push(&mut self, row: &Environment<'_>, context: &Context) -> Flow {
        if self.query.is_grouped() { self.gather(row, context) } else { self.emit(row, context) }
    }

    /// Returns the result rows. `environment` is that of the outer query.
    pub(crate) fn finish(mut self, environment: &Environment<'_>, context: &Context) -> Vec<Value> {
        for group in std::mem::take(&mut self.groups).into_values() {
            let Group { keys: mut values, accumulators } = group;
            values.extend(accumulators.into_iter().map(Accumulator::finish));
            let environment = environment.with_group(self.query.group_slot, &values);
            if self.emit(&environment, context) == Flow::Enough {
                break;
            }
        }
        if context.fault().is_some() {
            return Vec::new();
        }
        let mut rows: Vec<Value> = self.rows.into_values().map(|finished| finished.row).collect();
        // Of equal rows with different sort keys the first in the order is kept, so duplicates of ordered rows are
        // only removed here.
        if self.query.distinct {
            let mut seen = BTreeSet::new();
            rows.retain(|row| seen.insert(key_of(row.view())));
        }
        let skip = usize::try_from(self.query.skip).unwrap_or(usize::MAX).min(rows.len());
        rows.drain(..skip);
        rows.truncate(usize::try_from(self.query.take.unwrap_or(u64::MAX)).unwrap_or(usize::MAX));
        rows
    }

    fn gather(&mut self, row: &Environment<'_>, context: &Context) -> Flow {
        let keys: Vec<_> = self.query.group_by.iter().map(|key| evaluate(key, row, context)).collect();
        let mut name = Vec::new();
        for key in &keys {
            encode_key(key.as_ref().map(Operand::view), &mut name);
        }
        if !self.groups.contains_key(&name) {
            let keys: Vec<_> = keys.into_iter().map(|key| key.map(Operand::into_value)).collect();
            let held = 2 * name.len() + self.query.aggregates.len() * size_of::<Accumulator>();
            if !self.memory.add(held, context) {
                return Flow::Enough;
            }
            self.groups.insert(name.clone(), Group::new(self.query, keys));
        }
        let group = self.groups.get_mut(&name).expect("the group was made above");
        for (aggregate, accumulator) in self.query.aggregates.iter().zip(&mut group.accumulators) {
            let value = evaluate(&aggregate.argument, row, context);
            let grown = accumulator.add(value.as_ref().map(Operand::view), context);
            if grown > 0 && !self.memory.add(grown, context) {
                return Flow::Enough;
            }
        }
        if context.fault().is_some() { Flow::Enough } else { Flow::More }
    }

    /// Adds a result row: `row` holds what `select` and `order` refer to.
    fn emit(&mut self, row: &Environment<'_>, context: &Context) -> Flow {
        let Some(value) = project(&self.query.select, row, context) else {
            return if context.fault().is_some() { Flow::Enough } else { Flow::More };
        };
        let ordered = matches!(self.query.order, Order::Keys(_));
        if self.query.distinct && !ordered {
            let name = key_of(value.view());
            if self.seen.contains(&name) {
                return Flow::More;
            }
            if !self.memory.add(name.len(), context) {
                return Flow::Enough;
            }
            self.seen.insert(name);
        }
        let key = sort_key(&self.query.order, row, context, self.finished);
        self.finished += 1;
        let before = self.memory.bytes();
        if !self.memory.add(key.len(), context) || !self.memory.add_value(value.view(), context) {
            return Flow::Enough;
        }
        self.rows.insert(key, Finished { row: value, bytes: self.memory.bytes() - before });
        if !ordered {
            return if self.finished >= self.most { Flow::Enough } else { Flow::More };
        }
        // Which of several equal rows is kept is only known at the end, so `DISTINCT` keeps them all until then.
        if !self.query.distinct
            && self.rows.len() as u64 > self.most
            && let Some((_, beyond)) = self.rows.pop_last()
        {
            self.memory.remove(beyond.bytes);
        }
        Flow::More
    }
}

impl Group {
    fn new(query: &Query, keys: Vec<Option<Value>>) -> Group {
        let accumulators = query.aggregates.iter().map(|aggregate| Accumulator::new(aggregate.kind));
        Group { keys, accumulators: accumulators.collect() }
    }
}

/// Returns bytes that sort as the row does. Rows with equal keys stay in their order, or in the opposite one if the first
/// key is descending, as items do.
fn sort_key(order: &Order, row: &Environment<'_>, context: &Context, number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A ranking is over all items of a container; no subquery has one.
    let Order::Keys(keys) = order else { return number.to_be_bytes().to_vec() };
    for key in keys {
        let value = evaluate(&key.value, row, context);
        let value = value.as_ref().map(Operand::view);
        if key.descending { encode_key_descending(value, &mut bytes) } else { encode_key(value, &mut bytes) }
    }
    let backwards = keys.first().is_some_and(|key| key.descending);
    bytes.extend_from_slice(&if backwards { !number } else { number }.to_be_bytes());
    bytes
}

/// Returns bytes that are equal where the values are.
fn key_of(value: ValueRef<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_key(Some(value), &mut bytes);
    bytes
}

//! Rows: the product of a query's sources, and what a subquery makes of its rows.
//!
//! A subquery is run for each row around it, on values that are already in memory: elements of an array, mostly
//! few. So it is run whole, and what it keeps is bounded by a [`Hoard`].

use document::{Value, ValueRef, encode_key, encode_key_descending};
use std::collections::{BTreeMap, BTreeSet};

use super::{Environment, Hoard, evaluate, project, truth};
use crate::aggregate::Accumulator;
use crate::context::{Context, Fault};
use crate::logical::{Order, Query, Rows, Source, SubqueryKind};
use crate::row::Operand;

/// Most bytes that one subquery keeps: its rows, groups and sort keys.
const SUBQUERY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Whether there is any use in further rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    /// Go on.
    More,
    /// Nothing further matters, or the query has failed.
    Enough,
}

/// Goes through the rows of the query's sources that fulfil its filter. `environment` holds the item, or what is
/// around the subquery; the visitor gets it with the slots of the sources.
pub(crate) fn each_binding(
    query: &Query,
    environment: &Environment<'_>,
    context: &Context,
    visit: &mut dyn FnMut(&Environment<'_>) -> Flow,
) -> Flow {
    join(&query.sources, environment, context, &mut |environment| {
        if !context.spend(1) {
            return Flow::Enough;
        }
        match &query.filter {
            Some(filter) if truth(filter, environment, context) != Some(true) => Flow::More,
            _ => visit(environment),
        }
    })
}

fn join(
    sources: &[Source],
    environment: &Environment<'_>,
    context: &Context,
    visit: &mut dyn FnMut(&Environment<'_>) -> Flow,
) -> Flow {
    let Some((source, rest)) = sources.split_first() else { return visit(environment) };
    let mut bind = |value: Operand<'_>| join(rest, &environment.with(source.slot, value), context, visit);
    match &source.rows {
        Rows::Value(value) => match evaluate(value, environment, context) {
            Some(value) => each_row(source, &value, context, &mut bind),
            None => Flow::More,
        },
        Rows::Subquery(query) => {
            for row in rows_of(query, environment, context) {
                if each_row(source, &Operand::Owned(row), context, &mut bind) == Flow::Enough {
                    return Flow::Enough;
                }
            }
            Flow::More
        }
    }
}

/// The rows that a source makes of a value: the value, or the elements of the array that it is.
fn each_row(
    source: &Source,
    value: &Operand<'_>,
    context: &Context,
    bind: &mut dyn FnMut(Operand<'_>) -> Flow,
) -> Flow {
    let view = value.view();
    if !source.iterates {
        return bind(Operand::Borrowed(view));
    }
    let Some(items) = view.as_array() else { return Flow::More };
    for item in items.iter() {
        if !context.spend(1) || bind(Operand::Borrowed(item)) == Flow::Enough {
            return Flow::Enough;
        }
    }
    Flow::More
}

/// What a subquery stands for in an expression.
pub(super) fn subquery<'a>(
    kind: SubqueryKind,
    query: &Query,
    environment: &Environment<'_>,
    context: &Context,
) -> Option<Operand<'a>> {
    if !context.spend(1) {
        return None;
    }
    let mut rows = match kind {
        SubqueryKind::Exists | SubqueryKind::First => first_rows(query, environment, context, 1),
        SubqueryKind::Scalar => first_rows(query, environment, context, 2),
        SubqueryKind::Array | SubqueryKind::All | SubqueryKind::Last => rows_of(query, environment, context),
    };
    let value = match kind {
        SubqueryKind::Exists => Value::Bool(!rows.is_empty()),
        SubqueryKind::All => Value::Bool(rows.iter().all(|row| row.as_bool() == Some(true))),
        SubqueryKind::Array => Value::Array(rows),
        SubqueryKind::First => rows.into_iter().next()?,
        SubqueryKind::Scalar if rows.len() > 1 => {
            let message = "The cardinality of a scalar subquery result set cannot be greater than one.";
            context.fail(Fault::Refused(message.to_owned()));
            return None;
        }
        SubqueryKind::Scalar | SubqueryKind::Last => rows.pop()?,
    };
    Some(Operand::Owned(value))
}

/// All rows of a subquery.
pub(crate) fn rows_of(query: &Query, environment: &Environment<'_>, context: &Context) -> Vec<Value> {
    first_rows(query, environment, context, u64::MAX)
}

/// The rows of a subquery, or as many of them as matter.
fn first_rows(query: &Query, environment: &Environment<'_>, context: &Context, most: u64) -> Vec<Value> {
    let mut collector = Collector::new(query, most);
    each_binding(query, environment, context, &mut |row| collector.push(row, context));
    collector.finish(environment, context)
}

/// A query's rows on their way to the answer: grouped, projected, ordered, each once, cut to the window.
pub(crate) struct Collector<'q> {
    query: &'q Query,
    /// Rows that matter, those that the window skips included.
    most: u64,
    groups: BTreeMap<Vec<u8>, Group>,
    /// Finished rows with their sort keys. The keys are unique, so that equal ones keep their order.
    rows: Vec<(Vec<u8>, Value)>,
    seen: BTreeSet<Vec<u8>>,
    hoard: Hoard,
}

struct Group {
    keys: Vec<Option<Value>>,
    accumulators: Vec<Accumulator>,
}

impl<'q> Collector<'q> {
    /// For all rows of a query, or for the first of them.
    pub(crate) fn new(query: &'q Query, most: u64) -> Collector<'q> {
        let most = query.take.unwrap_or(u64::MAX).min(most).saturating_add(query.skip);
        let mut groups = BTreeMap::new();
        if query.is_grouped() && query.group_by.is_empty() {
            groups.insert(Vec::new(), Group::new(query, Vec::new()));
        }
        let hoard = Hoard::new("the rows of a subquery", SUBQUERY_BYTES_MAX);
        Collector { query, most, groups, rows: Vec::new(), seen: BTreeSet::new(), hoard }
    }

    /// Takes a row of the sources.
    pub(crate) fn push(&mut self, row: &Environment<'_>, context: &Context) -> Flow {
        if self.query.is_grouped() { self.gather(row, context) } else { self.emit(row, context) }
    }

    /// The rows of the answer. `environment` is what is around the query.
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
        self.rows.sort_by(|one, other| one.0.cmp(&other.0));
        let mut rows: Vec<Value> = self.rows.into_iter().map(|(_, row)| row).collect();
        // Of equal rows with different sort keys the first in the order stays, so ordered rows wait until here.
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
            if !self.hoard.add(held, context) {
                return Flow::Enough;
            }
            self.groups.insert(name.clone(), Group::new(self.query, keys));
        }
        let group = self.groups.get_mut(&name).expect("the group was made above");
        for (aggregate, accumulator) in self.query.aggregates.iter().zip(&mut group.accumulators) {
            let value = evaluate(&aggregate.argument, row, context);
            accumulator.add(value.as_ref().map(Operand::view), context);
        }
        if context.fault().is_some() { Flow::Enough } else { Flow::More }
    }

    /// Takes a row of the answer: `row` holds what `select` and `order` refer to.
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
            if !self.hoard.add(name.len(), context) {
                return Flow::Enough;
            }
            self.seen.insert(name);
        }
        let key = sort_key(&self.query.order, row, context, self.rows.len() as u64);
        if !self.hoard.add(key.len(), context) || !self.hoard.add_value(value.view(), context) {
            return Flow::Enough;
        }
        self.rows.push((key, value));
        if !ordered && self.rows.len() as u64 >= self.most { Flow::Enough } else { Flow::More }
    }
}

impl Group {
    fn new(query: &Query, keys: Vec<Option<Value>>) -> Group {
        let accumulators = query.aggregates.iter().map(|aggregate| Accumulator::new(aggregate.kind));
        Group { keys, accumulators: accumulators.collect() }
    }
}

/// Bytes that sort as the row does. Rows with equal keys stay in their order, or in the opposite one if the first
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

/// Bytes that are equal where the values are.
fn key_of(value: ValueRef<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_key(Some(value), &mut bytes);
    bytes
}

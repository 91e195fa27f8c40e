//! Execution of a query over items, page by page, independent of where the items come from.
//!
//! The caller pushes items, in any order or in the order of `ORDER BY`, and gets the rows of one page as JSON texts
//! and a [`Resume`], from which the next page begins. No other state is kept between two pages, so a page may be
//! requested days later, from another process.
//!
//! | query | memory while items are pushed |
//! |---|---|
//! | plain, or its order comes with the items | the page; stops as soon as it is full |
//! | aggregates without `GROUP BY` | one accumulator each |
//! | `ORDER BY`, `DISTINCT`, `GROUP BY` | the [smallest] keys behind the last page's |
//! | `DISTINCT` or `GROUP BY` together with `ORDER BY` | every distinct row or group, within the memory of one page |

mod groups;
mod output;
mod rank;
mod smallest;
mod window;

use std::collections::BTreeMap;

use document::{Value, encode_key};

pub use rank::Ranking;

use crate::evaluate::aggregate::Accumulator;
use crate::evaluate::{self, Collector, Environment, each_binding, evaluate};
use crate::functions::context::{Context, Fault};
use crate::logical::{AggregateKind, Expression, Order, Query};
use crate::row::{Operand, Row};
use groups::Groups;
use output::{Output, OutputRow, SortedRow, order_key};
use smallest::{ENTRY_OVERHEAD, Smallest};
use window::{RowAction, Window};

/// The limits of one page.
#[derive(Debug, Clone, Copy)]
pub struct PageLimits {
    /// At most this many rows.
    pub rows: usize,
    /// No further row once this many bytes are reached.
    pub bytes: usize,
}

/// The order in which items are pushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// In any order.
    Any,
    /// In the order of the query's `ORDER BY`, ties by number in the direction of the first key.
    InOrder,
}

/// The position where a page ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resume {
    /// Rows that have passed, returned or left out by `OFFSET`.
    pub passed: u64,
    /// An item of which only the first rows fitted: its number, and how many rows of its sources have passed.
    pub within: Option<(u64, u32)>,
    /// The key of the last row, where rows are sorted. Rows up to it have passed.
    pub after: Option<Vec<u8>>,
}

/// The result of pushing an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Push the next item.
    More,
    /// The page is full. The item was not consumed, or only in part: the next page must begin with it.
    Full,
    /// No further item can contribute, on any page.
    Enough,
}

/// One page of rows.
#[derive(Debug)]
pub struct Answer {
    /// The rows as JSON texts.
    pub rows: Vec<Vec<u8>>,
    /// Present if there may be more.
    pub resume: Option<Resume>,
}

/// The execution of one page.
pub struct Run<'q> {
    query: &'q Query,
    context: &'q Context,
    window: Window,
    output: Output,
    stage: Stage,
    /// The position at which earlier pages ended.
    before: Resume,
    /// The rows of `FROM (SELECT ...)` in the making, where they depend on many items.
    nested: Option<Collector<'q>>,
    /// Rows made of ordered nested ones that earlier pages have shown; such rows are made again for each page.
    shown_before: u64,
}

/// The origin of a row, which breaks ties between rows.
#[derive(Debug, Clone, Copy)]
struct Origin<'a> {
    /// The item's number, or the place among ordered nested rows.
    number: u64,
    /// The value of an unordered nested row: it has no place that another page would find it at.
    value: Option<&'a [u8]>,
}

#[derive(Debug)]
enum Stage {
    /// Rows are returned in the order of the items.
    Stream(Stream),
    /// One row over everything.
    Total { accumulators: Vec<Accumulator>, bytes: usize },
    /// One row per group.
    Groups(Groups),
    /// Rows by key; equal rows share one if they must be distinct.
    Sorted(Smallest<SortedRow>),
    /// Distinct rows, each with the smallest key it came with.
    SortedDistinct { rows: BTreeMap<Vec<u8>, (Vec<u8>, Vec<u8>)>, bytes: usize },
}

/// The state of a page whose rows are returned in the order of the items.
#[derive(Debug, Default)]
struct Stream {
    /// The item that did not fit wholly.
    within: Option<(u64, u32)>,
    /// The key of the last row that passed, if the rows are sorted.
    last_key: Option<Vec<u8>>,
    /// Whether an item was refused: there is more.
    full: bool,
}

impl Query {
    /// Returns `true` if rows can be shown as the items come.
    pub fn is_streaming(&self, arrival: Arrival) -> bool {
        let ordered = matches!(self.order, Order::Keys(_)) && arrival == Arrival::Any;
        !ordered && !self.distinct && !self.is_grouped() && self.nested.is_none()
    }

    /// Returns `true` if the answer depends only on how many items match.
    pub fn counts_only(&self) -> bool {
        let counts = |aggregate: &crate::logical::Aggregate| {
            aggregate.kind == AggregateKind::Count && matches!(aggregate.argument, Expression::Literal(_))
        };
        self.reads_items
            && self.nested.is_none()
            && self.sources.is_empty()
            && self.group_by.is_empty()
            && !self.aggregates.is_empty()
            && self.aggregates.iter().all(counts)
    }
}

impl<'q> Run<'q> {
    /// Begins a page; `resume` is where the page before ended.
    pub fn new(
        query: &'q Query,
        context: &'q Context,
        arrival: Arrival,
        resume: Option<Resume>,
        limits: PageLimits,
    ) -> Run<'q> {
        let mut before = resume.unwrap_or_default();
        if query.nested.is_some() {
            // Rows made of nested ones are counted from the first, whatever they are made of.
            before.within = None;
        }
        let window = Window::new(query, &before, limits);
        let sorted = matches!(query.order, Order::Keys(_));
        let nested = query.nested.as_deref();
        let loose = nested.is_some_and(|nested| matches!(nested.order, Order::None));
        let streams = if sorted { arrival == Arrival::InOrder && nested.is_none() } else { !loose };
        let stage = if streams && !query.distinct && !query.is_grouped() {
            Stage::Stream(Stream::default())
        } else if !query.group_by.is_empty() {
            Stage::Groups(Groups::new(query, &window, context))
        } else if !query.aggregates.is_empty() {
            let fresh = query.aggregates.iter().map(|aggregate| Accumulator::new(aggregate.kind));
            Stage::Total { accumulators: fresh.collect(), bytes: 0 }
        } else if query.distinct && sorted {
            Stage::SortedDistinct { rows: BTreeMap::new(), bytes: 0 }
        } else {
            Stage::Sorted(Smallest::new(window.wanted(), context.memory()))
        };
        let shown_before = if nested.is_some() && !loose { before.passed } else { 0 };
        let nested = nested.map(Collector::of_items);
        Run { query, context, window, output: Output::default(), stage, before, nested, shown_before }
    }

    /// Takes an item; its number breaks ties.
    pub fn push(&mut self, item: &dyn Row, number: u64) -> Result<Flow, Fault> {
        if self.window.is_full() {
            return Ok(Flow::Enough);
        }
        let Some(collector) = &mut self.nested else {
            let flow = self.each_row(Some(item), Origin { number, value: None })?;
            if flow == Flow::More {
                // The item has all its rows now; until it arrives, the next page must know how many it has consumed.
                self.before.within.take_if(|(begun, _)| *begun == number);
            }
            return Ok(flow);
        };
        let flow = collector.push_item(item, self.context);
        match self.context.fault() {
            Some(fault) => Err(fault),
            None if flow == evaluate::Flow::Enough => Ok(Flow::Enough),
            None => Ok(Flow::More),
        }
    }

    /// Returns the number of rows so far, of a query that shows them as items come.
    pub fn rows(&self) -> usize {
        self.output.rows.len()
    }

    /// Returns `true` if the query's own `TOP` or `LIMIT` is reached, so that no further row can be shown on any page.
    pub fn is_complete(&self) -> bool {
        self.window.is_full()
    }

    /// Counts matching items without evaluating them; only for a query that [counts only](Query::counts_only).
    pub fn push_count(&mut self, items: u64) {
        if let Stage::Total { accumulators, .. } = &mut self.stage {
            for accumulator in accumulators {
                accumulator.add_many(items);
            }
        }
    }

    /// Returns the page of a streaming query before all items have been pushed: there is more.
    pub fn pause(mut self) -> Result<Answer, Fault> {
        if let Stage::Stream(stream) = &mut self.stage {
            stream.full = true;
        }
        self.finish()
    }

    /// Returns the page.
    pub fn finish(mut self) -> Result<Answer, Fault> {
        if let Some(collector) = self.nested.take() {
            let rows = collector.finish_items(self.context);
            self.context.fault().map_or(Ok(()), Err)?;
            self.nested_rows(&rows)?;
        } else if !self.query.reads_items {
            self.each_row(None, Origin { number: 0, value: None })?;
        }
        let Run { query, context, mut window, mut output, stage, before, .. } = self;
        let after = before.after.as_deref();
        let more = match stage {
            Stage::Stream(stream) => {
                let resume = Resume {
                    passed: window.passed(),
                    within: stream.within.or(before.within),
                    after: stream.last_key.or(before.after),
                };
                return Ok(Answer { rows: output.rows, resume: stream.full.then_some(resume) });
            }
            Stage::Total { accumulators, .. } => {
                let json = groups::total(query, context, accumulators)?;
                output.show(&mut window, std::iter::once((Vec::new(), json)), false)
            }
            Stage::Groups(groups) => {
                let (rows, more) = groups.into_rows(query, context, after)?;
                output.show(&mut window, rows, more)
            }
            Stage::Sorted(smallest) => {
                let (rows, more) = smallest.into_parts();
                output.show(&mut window, rows.map(|(key, row)| (key, Some(row.into_json()))), more)
            }
            Stage::SortedDistinct { rows, .. } => {
                let sorted: BTreeMap<Vec<u8>, Option<Vec<u8>>> = rows
                    .into_iter()
                    .map(|(row, (order, json))| ([order, row].concat(), Some(json)))
                    .filter(|(key, _)| after.is_none_or(|after| key.as_slice() > after))
                    .collect();
                output.show(&mut window, sorted.into_iter(), false)
            }
        };
        Ok(Answer { rows: output.rows, resume: more })
    }

    /// Takes the rows of `FROM (SELECT ...)`: in their order, or by their values if they have none.
    fn nested_rows(&mut self, rows: &[Value]) -> Result<(), Fault> {
        let nested = self.query.nested.as_ref();
        let loose = nested.is_some_and(|nested| matches!(nested.order, Order::None));
        let mut met: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
        for (number, row) in rows.iter().enumerate() {
            let mut value = Vec::new();
            if loose {
                encode_key(Some(row.view()), &mut value);
                let before = met.entry(value.clone()).or_default();
                value.extend_from_slice(&before.to_be_bytes());
                *before += 1;
            }
            let origin = Origin { number: number as u64, value: loose.then_some(value.as_slice()) };
            if self.each_row(Some(row), origin)? != Flow::More {
                break;
            }
        }
        Ok(())
    }

    fn each_row(&mut self, item: Option<&dyn Row>, origin: Origin<'_>) -> Result<Flow, Fault> {
        let (query, context) = (self.query, self.context);
        let around = item.map_or_else(Environment::empty, Environment::of_item);
        let mut flow = Ok(Flow::More);
        each_binding(query, &around, context, &mut |environment, index| {
            flow = self.row(&OutputRow { query, item, environment, context }, origin, index);
            if matches!(flow, Ok(Flow::More)) { evaluate::Flow::More } else { evaluate::Flow::Enough }
        });
        match context.fault() {
            Some(fault) => Err(fault),
            None => flow,
        }
    }

    /// Takes one row of an item that fulfils the filter, the item's `index`th whether or not those before it do.
    fn row(&mut self, row: &OutputRow<'_>, origin: Origin<'_>, index: u32) -> Result<Flow, Fault> {
        let after = self.before.after.as_deref();
        match &mut self.stage {
            Stage::Stream(_) => return Ok(self.stream(row, origin, index)),
            Stage::Total { accumulators, bytes } => {
                for (accumulator, aggregate) in accumulators.iter_mut().zip(&self.query.aggregates) {
                    let value = evaluate(&aggregate.argument, row.environment, self.context);
                    *bytes += accumulator.add(value.as_ref().map(Operand::view), self.context);
                }
                if *bytes > self.context.memory() {
                    return Err(self.context.out_of_allowance("the aggregates"));
                }
            }
            Stage::Groups(groups) => groups.add(row, after)?,
            Stage::Sorted(smallest) => {
                let distinct = self.query.distinct;
                let key = if distinct { row.key() } else { Some(order_key(row, origin, index)) };
                let Some(key) = key else { return Ok(Flow::More) };
                let dealt_with = after.is_some_and(|after| key.as_slice() <= after)
                    || (distinct && smallest.get_mut(&key).is_some());
                if !dealt_with
                    && smallest.admits(&key)
                    && let Some((row, bytes)) = row.sorted()
                {
                    smallest.insert(key, row, bytes)?;
                }
            }
            Stage::SortedDistinct { rows, bytes } => {
                let Some(key) = row.key() else { return Ok(Flow::More) };
                let order = row.order_values();
                match rows.get_mut(&key) {
                    Some((known, _)) if order < *known => {
                        *bytes = (*bytes + order.len()).saturating_sub(known.len());
                        *known = order;
                    }
                    Some(_) => {}
                    None => {
                        let Some(json) = row.json() else { return Ok(Flow::More) };
                        *bytes += key.len() + order.len() + json.len() + ENTRY_OVERHEAD;
                        rows.insert(key, (order, json));
                    }
                }
                if *bytes > self.context.memory() {
                    return Err(self.context.out_of_allowance("the distinct rows"));
                }
            }
        }
        Ok(Flow::More)
    }

    fn stream(&mut self, row: &OutputRow<'_>, origin: Origin<'_>, index: u32) -> Flow {
        let Stage::Stream(stream) = &mut self.stage else { return Flow::More };
        let number = origin.number;
        if self.before.within.is_some_and(|(item, rows)| item == number && index < rows) {
            return Flow::More;
        }
        let key = matches!(self.query.order, Order::Keys(_)).then(|| order_key(row, origin, index));
        if key.is_some() && key <= self.before.after {
            return Flow::More;
        }
        let Some(json) = row.json() else { return Flow::More };
        if self.shown_before > 0 {
            self.shown_before -= 1;
            return Flow::More;
        }
        match self.window.next() {
            RowAction::WindowIsFull => return Flow::Enough,
            RowAction::PageIsFull => {
                stream.full = true;
                stream.within = (index > 0).then_some((number, index));
                return Flow::Full;
            }
            RowAction::Skipped => self.window.pass(0),
            RowAction::Returned => {
                self.window.pass(json.len());
                self.output.rows.push(json);
            }
        }
        stream.last_key = key;
        if self.window.is_full() { Flow::Enough } else { Flow::More }
    }
}

/// Returns the sort key that a client resumes from: values of the `ORDER BY` keys and the number of an item. Rows up to the
/// item are dealt with if it is `excluded`, rows before it otherwise.
pub fn resume_key(query: &Query, values: &[Option<document::Value>], number: u64, excluded: bool) -> Vec<u8> {
    let Order::Keys(keys) = &query.order else { return Vec::new() };
    let mut out = Vec::new();
    for (key, value) in keys.iter().zip(values) {
        output::encode_sort_key(value.as_ref().map(document::Value::view), key.descending, &mut out);
    }
    out.extend_from_slice(&output::tie(query, number));
    if excluded {
        out.extend_from_slice(&u32::MAX.to_be_bytes());
    }
    out
}

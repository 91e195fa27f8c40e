//! A cursor over a composite index: items by the values of several paths at once.
//!
//! A query fits if equality restricts the first paths to one value each, and its order names the next ones, all in
//! the direction of the index or all in the opposite one. Further paths of the index do not matter: items that are
//! equal in all keys of the order are sorted by number afterwards (`refine`).
//!
//! ```text
//!   index       /a ASC   /b ASC   /c DESC   /d ASC
//!   query       a = 1             ORDER BY b, c DESC          forward
//!               a = 1             ORDER BY b DESC, c          backward
//! ```

use document::{Value, ValueRef, decode_key, decode_key_descending};
use query::{Condition, Leaf, SortPath, Step as PathStep};
use storage::Direction;

use super::by_path::{CursorItem, CursorStep, Pause, SortedCursor, directed};
use super::choose::conjuncts;
use super::context::QueryContext;
use super::numbers::rank;
use crate::definition::Order;
use crate::index::{Composite, Index, IndexEntry, PartValue, Source, Term};
use crate::types::error::Result;

/// How a composite index serves an order.
#[derive(Debug, Clone)]
pub(super) struct CompositePlan {
    pub(super) composite: Composite,
    /// The values of its first paths.
    equal: Vec<Value>,
    /// How many paths behind them the order names.
    sorted: usize,
    pub(super) direction: Direction,
    /// The direction in which the query breaks ties.
    ties: Direction,
    /// Whether items that are equal in all of that are in the order in which the query breaks ties.
    pub(super) ties_in_order: bool,
}

/// Returns the composite index that serves an order under a condition, if there is one.
pub(super) fn plan(index: &Index, condition: &Condition, keys: &[SortPath]) -> Option<CompositePlan> {
    index.coverage.composites().iter().find_map(|composite| fit(composite, condition, keys))
}

fn fit(composite: &Composite, condition: &Condition, keys: &[SortPath]) -> Option<CompositePlan> {
    let parts = &composite.parts;
    (0..=parts.len().checked_sub(keys.len())?).find_map(|skip| {
        let equal: Option<Vec<Value>> =
            parts[..skip].iter().map(|part| equality(condition, &names(&part.source))).collect();
        let sorted = &parts[skip..skip + keys.len()];
        let paths_fit = sorted.iter().zip(keys).all(|(part, key)| names(&part.source) == key.path);
        let turned: Vec<bool> = sorted
            .iter()
            .zip(keys)
            .map(|(part, key)| (part.order == Order::Descending) != key.descending)
            .collect();
        if !paths_fit || turned.windows(2).any(|pair| pair[0] != pair[1]) {
            return None;
        }
        let direction = |backward: bool| if backward { Direction::Backward } else { Direction::Forward };
        let backward = turned.first().copied().unwrap_or_default();
        let descends = keys.first().is_some_and(|key| key.descending);
        Some(CompositePlan {
            composite: composite.clone(),
            equal: equal?,
            sorted: keys.len(),
            direction: direction(backward),
            ties: direction(descends),
            ties_in_order: skip + keys.len() == parts.len() && backward == descends,
        })
    })
}

/// Returns the paths of a composite index and their orders as clients see them: `/a ASC`.
pub(super) fn specification(composite: &Composite) -> Vec<String> {
    let part = |part: &crate::index::CompositePart| {
        let order = if part.order == Order::Ascending { "ASC" } else { "DESC" };
        format!("/{} {order}", names(&part.source).join("/"))
    };
    composite.parts.iter().map(part).collect()
}

/// Returns the path that a part of a composite index is about.
pub(super) fn names(source: &Source) -> Vec<String> {
    match source {
        Source::Body(path) => path.segments().to_vec(),
        Source::Stamp => vec!["_ts".to_owned()],
    }
}

/// Returns the one value that a condition allows at a path.
fn equality(condition: &Condition, path: &[String]) -> Option<Value> {
    only_value(leaf_at(condition, path)?)
}

/// Returns the one value that a leaf allows.
pub(super) fn only_value(leaf: &Leaf) -> Option<Value> {
    match leaf.values.scalars.as_slice() {
        [only] if leaf.values.kinds.is_empty() => only.as_point(),
        _ => None,
    }
}

/// Returns whether a leaf is about a path.
pub(super) fn is_at(leaf: &Leaf, path: &[String]) -> bool {
    let names = leaf.path.iter().map(|step| if let PathStep::Name(name) = step { Some(name) } else { None });
    names.eq(path.iter().map(Some))
}

/// Returns the part of a condition about a path that must hold in any case.
pub(super) fn leaf_at<'c>(condition: &'c Condition, path: &[String]) -> Option<&'c Leaf> {
    match condition {
        Condition::Leaf(leaf) => Some(leaf).filter(|leaf| is_at(leaf, path)),
        Condition::All(parts) => parts.iter().find_map(|part| leaf_at(part, path)),
        Condition::Everything | Condition::Nothing | Condition::Any(_) => None,
    }
}

impl CompositePlan {
    /// Returns whether it does more than sort: it also restricts the scan to values that the condition asks for.
    pub(super) fn is_narrower(&self) -> bool {
        !self.equal.is_empty()
    }

    /// Returns whether it visits only items that the condition admits, as far as the index distinguishes them.
    pub(super) fn keeps_to(&self, condition: &Condition) -> bool {
        let held: Vec<_> =
            self.composite.parts[..self.equal.len()].iter().map(|part| names(&part.source)).collect();
        conjuncts(condition).into_iter().all(|part| held.iter().any(|path| leaf_at(part, path).is_some()))
    }

    /// Opens the cursor, from the values of an `ORDER BY` key on.
    pub(super) fn open<'a>(
        &self,
        ctx: &'a QueryContext<'a>,
        index: &Index,
        start: Option<&[u8]>,
    ) -> CompositeCursor<'a> {
        let mut range = index.composite_equal(&self.composite, &self.views(&[]));
        if let Some(values) = start.and_then(|sort| self.values(sort)) {
            let from = index.composite_equal(&self.composite, &self.views(&values));
            match self.direction {
                Direction::Forward => range.start = from.start,
                Direction::Backward => range.end = from.end,
            }
        }
        let prefix = index.composite_prefix(&self.composite).len();
        CompositeCursor {
            ctx,
            plan: self.clone(),
            entries: Box::new(ctx.entries(range, prefix, self.direction)),
        }
    }

    /// Returns the values of the first paths, followed by these.
    fn views<'v>(&'v self, values: &'v [Option<Value>]) -> Vec<Option<ValueRef<'v>>> {
        let equal = self.equal.iter().map(|value| Some(value.view()));
        equal.chain(values.iter().map(|value| value.as_ref().map(Value::view))).collect()
    }

    /// Returns the values of a sort key, up to the first one that the index cannot distinguish from others: items
    /// that share that value are sorted only afterwards, so all of them have to be visited again.
    fn values(&self, mut sort: &[u8]) -> Option<Vec<Option<Value>>> {
        let mut values = Vec::with_capacity(self.sorted);
        for part in &self.composite.parts[self.equal.len()..][..self.sorted] {
            let descends = (part.order == Order::Descending) != (self.direction == Direction::Backward);
            let (value, rest) = if descends { decode_key_descending(sort) } else { decode_key(sort) }.ok()?;
            let is_told =
                value.as_ref().is_none_or(|value| Term::new(value.view()).is_some_and(|term| !term.cut));
            values.push(value);
            if !is_told {
                break;
            }
            sort = rest;
        }
        Some(values)
    }
}

/// A cursor over a composite index.
pub(super) struct CompositeCursor<'a> {
    ctx: &'a QueryContext<'a>,
    plan: CompositePlan,
    entries: Box<dyn Iterator<Item = Result<IndexEntry>> + 'a>,
}

impl CompositeCursor<'_> {
    /// Returns the part of an entry that the order is about, and how much of it is shared by items that cannot be
    /// distinguished.
    fn sort(&self, entry: &IndexEntry) -> Result<(Vec<u8>, Option<usize>)> {
        let parts = self.plan.composite.parts(&entry.term)?;
        let sorted = &parts[self.plan.equal.len()..][..self.plan.sorted];
        let (Some(first), Some(last)) = (sorted.first(), sorted.last()) else {
            return Ok((Vec::new(), None));
        };
        let (start, end) = (first.1.start, last.1.end);
        let untold = sorted.iter().find(|(value, _)| matches!(value, PartValue::Untold));
        let vague = untold.map(|(_, bytes)| bytes.end - start);
        Ok((directed(&entry.term[start..end], self.plan.direction), vague))
    }
}

impl SortedCursor for CompositeCursor<'_> {
    fn next(&mut self) -> Result<CursorStep> {
        let work = self.ctx.work;
        while let Some(entry) = self.entries.next() {
            let entry = entry?;
            work.look()?;
            if !self.ctx.is_living(entry.number, &entry.mark)? {
                if work.is_spent() {
                    let (sort, vague) = self.sort(&entry)?;
                    // A tie is not in order yet, and a vague item has no position: expired entries among them do not
                    // end a page.
                    if vague.is_none() && self.plan.ties_in_order {
                        let rank = rank(entry.number, self.plan.ties);
                        return Ok(CursorStep::Pause(Pause { sort, rank, is_vague: false }));
                    }
                }
                continue;
            }
            work.count_entry();
            let (sort, vague) = self.sort(&entry)?;
            let number = entry.number;
            let rank = rank(number, self.plan.ties);
            return Ok(CursorStep::Item(CursorItem {
                sort,
                rank,
                number,
                vague,
                exact: false,
                indexed: None,
                record: None,
            }));
        }
        Ok(CursorStep::End)
    }
}

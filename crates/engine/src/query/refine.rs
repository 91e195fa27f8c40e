//! Turns the order of an index into the order that a query asks for.
//!
//! An index cannot distinguish all items: long strings, arrays and objects are *vague* there, and a composite index
//! may break ties in another way. Such items are adjacent, so each group of them is read and sorted by the items'
//! real values before it is shown. A group may be too large for that; then the query is sorted in memory, page by
//! page.
//!
//! Finally, the cursors of several partitions are merged into one.

use std::collections::VecDeque;

use document::{encode_key, encode_key_descending};
use query::SortPath;

use super::by_path::{CursorItem, CursorStep, SortedCursor};
use super::context::QueryContext;
use crate::expiry::header::Record;
use crate::expiry::item::Item;
use crate::types::error::Result;

/// The next step in the query's order.
#[derive(Debug)]
pub(super) enum Sorted {
    /// A living item; `sort` is exact.
    Item(CursorItem),
    /// The page ends among expired entries: no living item up to here, included.
    Pause(Vec<u8>, u64),
    /// A group is too large: the order must be made in memory.
    Overflow,
    /// Nothing more.
    End,
}

/// A cursor in the query's order.
pub(super) struct Refined<'a> {
    ctx: &'a QueryContext<'a>,
    walk: Box<dyn SortedCursor + 'a>,
    keys: &'a [SortPath],
    /// Whether items with equal keys are in the order of their ranks.
    ties_in_order: bool,
    /// A group that is sorted now.
    ready: VecDeque<CursorItem>,
    /// A step that the cursor has already returned, behind the group.
    pending: Option<CursorStep>,
}

impl<'a> Refined<'a> {
    pub(super) fn new(
        ctx: &'a QueryContext<'a>,
        walk: Box<dyn SortedCursor + 'a>,
        keys: &'a [SortPath],
        ties_in_order: bool,
    ) -> Refined<'a> {
        Refined { ctx, walk, keys, ties_in_order, ready: VecDeque::new(), pending: None }
    }

    fn step(&mut self) -> Result<CursorStep> {
        match self.pending.take() {
            Some(step) => Ok(step),
            None => self.walk.next(),
        }
    }

    pub(super) fn next(&mut self) -> Result<Sorted> {
        if let Some(passing) = self.ready.pop_front() {
            return Ok(Sorted::Item(passing));
        }
        loop {
            match self.step()? {
                CursorStep::End => return Ok(Sorted::End),
                // A vague item has no position yet.
                CursorStep::Pause(pause) if pause.is_vague => {}
                CursorStep::Pause(pause) => return Ok(Sorted::Pause(pause.sort, pause.rank)),
                CursorStep::Item(first) if first.vague.is_none() && self.ties_in_order => {
                    return Ok(Sorted::Item(first));
                }
                CursorStep::Item(first) => {
                    if !self.group(first)? {
                        return Ok(Sorted::Overflow);
                    }
                    if let Some(passing) = self.ready.pop_front() {
                        return Ok(Sorted::Item(passing));
                    }
                }
            }
        }
    }

    /// Sorts the items that the cursor cannot distinguish from this one. Returns `false` if there are too many.
    fn group(&mut self, first: CursorItem) -> Result<bool> {
        let shared = first.sort[..first.vague.unwrap_or(first.sort.len())].to_vec();
        let is_vague = first.vague.is_some();
        let tuning = &self.ctx.work.tuning;
        let (mut group, mut bytes) = (Vec::new(), 0);
        let mut current = Some(first);
        while let Some(mut passing) = current.take() {
            if !is_vague || self.place(&mut passing)? {
                bytes += passing.sort.len();
                group.push(passing);
            }
            if group.len() > tuning.group || bytes > tuning.group_bytes {
                return Ok(false);
            }
            current = self.next_with(&shared)?;
        }
        group.sort_by(|one, other| (&one.sort, one.rank).cmp(&(&other.sort, other.rank)));
        self.ready = group.into();
        Ok(true)
    }

    /// Returns the next item whose key begins with `shared`, if the cursor has one. Pauses among them are skipped:
    /// all of them must be known before the first is shown.
    fn next_with(&mut self, shared: &[u8]) -> Result<Option<CursorItem>> {
        loop {
            match self.step()? {
                CursorStep::Pause(pause) if pause.sort.starts_with(shared) => {}
                CursorStep::Item(passing) if passing.sort.starts_with(shared) => return Ok(Some(passing)),
                other => {
                    self.pending = Some(other);
                    return Ok(None);
                }
            }
        }
    }

    /// Reads an item for its real sort key. Returns `false` if the item is gone.
    fn place(&self, passing: &mut CursorItem) -> Result<bool> {
        let record = match passing.record.take() {
            Some(record) => Some(record),
            None => self.ctx.load(passing.number)?,
        };
        let Some(record) = record else { return Ok(false) };
        passing.sort = sort_key(self.ctx, self.keys, record);
        passing.vague = None;
        Ok(true)
    }
}

/// Returns the key by which a query sorts an item.
pub(super) fn sort_key(ctx: &QueryContext<'_>, keys: &[SortPath], record: Record) -> Vec<u8> {
    let item = Item::new(ctx.container.rid, record);
    let mut sort = Vec::new();
    for key in keys {
        let value = item.property(&key.path);
        let value = value.as_ref().map(query::Operand::view);
        if key.descending {
            encode_key_descending(value, &mut sort);
        } else {
            encode_key(value, &mut sort);
        }
    }
    sort
}

/// The cursors of several partitions as one.
pub(super) struct Merged<'a> {
    walks: Vec<(Refined<'a>, Option<Sorted>)>,
}

impl<'a> Merged<'a> {
    pub(super) fn new(walks: Vec<Refined<'a>>) -> Merged<'a> {
        Merged { walks: walks.into_iter().map(|walk| (walk, None)).collect() }
    }

    /// Returns the next item and its partition, by its index in the list of cursors.
    pub(super) fn next(&mut self) -> Result<(usize, Sorted)> {
        let mut best: Option<usize> = None;
        for at in 0..self.walks.len() {
            let (walk, head) = &mut self.walks[at];
            if head.is_none() {
                *head = Some(walk.next()?);
            }
            if best.is_none_or(|best| self.is_before(at, best)) {
                best = Some(at);
            }
        }
        let Some(best) = best else { return Ok((0, Sorted::End)) };
        let head = self.walks[best].1.take().unwrap_or(Sorted::End);
        if matches!(head, Sorted::End) {
            self.walks[best].1 = Some(Sorted::End);
        }
        Ok((best, head))
    }

    fn is_before(&self, one: usize, other: usize) -> bool {
        let place = |at: usize| match &self.walks[at].1 {
            Some(Sorted::Item(passing)) => (1, passing.sort.as_slice(), passing.rank),
            Some(Sorted::Pause(sort, rank)) => (1, sort.as_slice(), *rank),
            // An overflow is reported first.
            Some(Sorted::Overflow) => (0, &[][..], 0),
            Some(Sorted::End) | None => (2, &[][..], 0),
        };
        place(one) < place(other)
    }
}

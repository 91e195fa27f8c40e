//! From the order of an index to the order that a query asks for.
//!
//! An index cannot tell all items apart: long strings, arrays and objects are *vague* there, and a composite index may
//! break ties in another way. Such items stand together, so each group of them is read, sorted by what its items really
//! hold, and shown then. A group may be too large for that; then the query is sorted in memory, page by page.
//!
//! Behind that, walks of several partitions are merged into one.

use std::collections::VecDeque;

use document::{encode_key, encode_key_descending};
use query::SortPath;

use super::by_path::{Passing, Step, Walk};
use super::desk::Desk;
use crate::error::Result;
use crate::header::Record;
use crate::item::Item;

/// What comes next in the query's order.
#[derive(Debug)]
pub(super) enum Sorted {
    /// A living item; `sort` is exact.
    Item(Passing),
    /// The page has come to its end among the dead: nothing living up to here, included.
    Pause(Vec<u8>, u64),
    /// A group is too large: the order must be made in memory.
    Overflow,
    /// Nothing more.
    End,
}

/// A walk in the query's order.
pub(super) struct Refined<'a> {
    desk: &'a Desk<'a>,
    walk: Box<dyn Walk + 'a>,
    keys: &'a [SortPath],
    /// Whether items with equal keys come in the order of their ranks.
    ties_in_order: bool,
    /// A group that is in order now.
    ready: VecDeque<Passing>,
    /// What the walk has shown already, behind the group.
    pending: Option<Step>,
}

impl<'a> Refined<'a> {
    pub(super) fn new(
        desk: &'a Desk<'a>,
        walk: Box<dyn Walk + 'a>,
        keys: &'a [SortPath],
        ties_in_order: bool,
    ) -> Refined<'a> {
        Refined { desk, walk, keys, ties_in_order, ready: VecDeque::new(), pending: None }
    }

    fn step(&mut self) -> Result<Step> {
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
                Step::End => return Ok(Sorted::End),
                // What is vague has no place yet.
                Step::Pause(pause) if pause.is_vague => {}
                Step::Pause(pause) => return Ok(Sorted::Pause(pause.sort, pause.rank)),
                Step::Item(first) if first.vague.is_none() && self.ties_in_order => {
                    return Ok(Sorted::Item(first));
                }
                Step::Item(first) => {
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

    /// Brings the items into order that the walk cannot tell apart from this one; false if there are too many.
    fn group(&mut self, first: Passing) -> Result<bool> {
        let shared = first.sort[..first.vague.unwrap_or(first.sort.len())].to_vec();
        let is_vague = first.vague.is_some();
        let tuning = &self.desk.work.tuning;
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

    /// The next item whose key begins so, if the walk has one. Pauses among them are passed over: all of them must be
    /// known before the first is shown.
    fn next_with(&mut self, shared: &[u8]) -> Result<Option<Passing>> {
        loop {
            match self.step()? {
                Step::Pause(pause) if pause.sort.starts_with(shared) => {}
                Step::Item(passing) if passing.sort.starts_with(shared) => return Ok(Some(passing)),
                other => {
                    self.pending = Some(other);
                    return Ok(None);
                }
            }
        }
    }

    /// Looks at an item for its real sort key; false if it is gone.
    fn place(&self, passing: &mut Passing) -> Result<bool> {
        let record = match passing.record.take() {
            Some(record) => Some(record),
            None => self.desk.load(passing.number)?,
        };
        let Some(record) = record else { return Ok(false) };
        passing.sort = sort_key(self.desk, self.keys, record);
        passing.vague = None;
        Ok(true)
    }
}

/// What a query sorts an item by.
pub(super) fn sort_key(desk: &Desk<'_>, keys: &[SortPath], record: Record) -> Vec<u8> {
    let item = Item::new(desk.container.rid, record);
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

/// Walks of several partitions as one.
pub(super) struct Merged<'a> {
    walks: Vec<(Refined<'a>, Option<Sorted>)>,
}

impl<'a> Merged<'a> {
    pub(super) fn new(walks: Vec<Refined<'a>>) -> Merged<'a> {
        Merged { walks: walks.into_iter().map(|walk| (walk, None)).collect() }
    }

    /// The next item and the partition it comes from, by its place in the list of walks.
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
            // Found out now rather than later.
            Some(Sorted::Overflow) => (0, &[][..], 0),
            Some(Sorted::End) | None => (2, &[][..], 0),
        };
        place(one) < place(other)
    }
}

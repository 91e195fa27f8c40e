//! The walks that a pipeline has open, by number. They rest in a cursor together with it.

use std::collections::{BTreeMap, HashSet};

use mql::pipeline::{Part, ScanId};

use super::output::Staged;
use super::walk::{Examined, Walk};
use crate::error::Error;

/// How many items a request remembers to have read. Those beyond are read twice, which costs time and nothing else.
const READ_NOW_MAX: usize = 1 << 16;

/// Open walks.
#[derive(Debug, Default)]
pub(crate) struct Scans {
    last: u64,
    open: BTreeMap<u64, (Walk, Part)>,
    /// Walks whose rows can be shown as they come.
    as_they_come: HashSet<u64>,
    /// What the walk through the leading collection had looked at when it ended.
    examined: Examined,
    /// What `$out` has staged.
    pub(crate) output: Option<Staged>,
    /// Why a write of the pipeline failed, with what the language has no words for.
    pub(crate) failure: Option<Error>,
    /// Items of the leading collection that this request has read.
    read_now: HashSet<u64>,
}

impl Scans {
    /// Takes a walk in.
    pub(crate) fn add(&mut self, walk: Walk, part: Part) -> ScanId {
        self.last += 1;
        self.open.insert(self.last, (walk, part));
        ScanId(self.last)
    }

    /// The walk of that number, and what it is for.
    pub(crate) fn get(&mut self, id: ScanId) -> Option<&mut (Walk, Part)> {
        self.open.get_mut(&id.0)
    }

    /// Says that the rows of a walk need not be put in order.
    pub(crate) fn show_as_they_come(&mut self, id: ScanId) {
        self.as_they_come.insert(id.0);
    }

    pub(crate) fn is_shown_as_it_comes(&self, id: ScanId) -> bool {
        self.as_they_come.contains(&id.0)
    }

    /// Remembers an item of the leading collection that this request has read.
    pub(crate) fn note_read(&mut self, number: u64) {
        if self.read_now.len() >= READ_NOW_MAX {
            self.read_now.clear();
        }
        self.read_now.insert(number);
    }

    /// Whether this request is known to have read the item: then it lives.
    pub(crate) fn has_read(&self, number: u64) -> bool {
        self.read_now.contains(&number)
    }

    /// Lets a walk go.
    pub(crate) fn remove(&mut self, id: ScanId) {
        self.as_they_come.remove(&id.0);
        if let Some((walk, Part::Leading)) = self.open.remove(&id.0) {
            self.examined = walk.examined();
        }
    }

    /// What the walk through the leading collection has looked at.
    pub(crate) fn examined(&self) -> Examined {
        let leading = self.open.values().find(|(_, part)| *part == Part::Leading);
        leading.map_or_else(|| self.examined.clone(), |(walk, _)| walk.examined())
    }

    /// How many bytes the walks hold between two requests, roughly.
    pub(crate) fn bytes(&self) -> usize {
        self.open.values().map(|(walk, _)| walk.bytes()).sum()
    }

    /// Ends a request: nothing that was read ahead is kept.
    pub(crate) fn rest(&mut self) {
        self.read_now.clear();
        self.open.values_mut().for_each(|(walk, _)| walk.rest());
    }
}

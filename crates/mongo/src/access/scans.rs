//! The walks that a pipeline has open, by number. They rest in a cursor together with it.

use std::collections::BTreeMap;

use mql::pipeline::ScanId;

use super::output::Staged;
use super::walk::Walk;

/// Open walks.
#[derive(Debug, Default)]
pub(crate) struct Scans {
    last: u64,
    open: BTreeMap<u64, Walk>,
    /// What `$out` has staged.
    pub(crate) output: Option<Staged>,
}

impl Scans {
    /// Takes a walk in.
    pub(crate) fn add(&mut self, walk: Walk) -> ScanId {
        self.last += 1;
        self.open.insert(self.last, walk);
        ScanId(self.last)
    }

    /// The walk of that number.
    pub(crate) fn get(&mut self, id: ScanId) -> Option<&mut Walk> {
        self.open.get_mut(&id.0)
    }

    /// Lets a walk go.
    pub(crate) fn remove(&mut self, id: ScanId) {
        self.open.remove(&id.0);
    }

    /// Ends a request: nothing that was read ahead is kept.
    pub(crate) fn rest(&mut self) {
        self.open.values_mut().for_each(Walk::rest);
    }
}

//! An external merge sort: rows in an order, in memory as long as they fit, then in runs on disk that are merged.
//!
//! ```text
//!   push ---> entries in memory --(memory full)--> sorted, appended to a new run
//!   next <--- the smallest head among all runs and what is left in memory
//! ```
//!
//! The sort is stable: runs are made one after the other, and among equal heads the older run goes first. It holds one buffer
//! for each run, so when there are [`RUNS_MAX`] of them they are merged into one.

use std::cmp::Ordering;

use bson::Value;

use crate::context::Context;
use crate::error::Result;
use crate::pipeline::memory::Memory;
use crate::pipeline::row::{Row, value_bytes};
use crate::pipeline::run::{RunReader, RunWriter, Tagged};

/// What rows are sorted by.
pub(crate) trait SortOrder: Send {
    type Key: Send;

    /// The key of a row, made again when the row comes back from disk.
    fn key(&self, tagged: &Tagged, context: &Context) -> Result<Self::Key>;
    fn compare(&self, left: &Self::Key, right: &Self::Key) -> Ordering;
    /// How many bytes a key takes, roughly.
    fn key_bytes(&self, key: &Self::Key) -> usize;
    /// How many rows are wanted at most.
    fn limit(&self) -> Option<usize> {
        None
    }
}

/// How many runs there are at most: with their buffers of 128 KiB, 8 MiB.
const RUNS_MAX: usize = 64;
/// How many rows beyond those wanted are gathered before the rest is thrown away.
const SLACK_MIN: usize = 256;

/// Sorts rows.
pub(crate) struct Sorter<O: SortOrder> {
    order: O,
    entries: Vec<Entry<O::Key>>,
    runs: Vec<RunReader>,
    memory: Memory,
}

struct Entry<K> {
    key: K,
    bytes: usize,
    tag: Option<Value>,
    row: Row,
}

impl<O: SortOrder> Sorter<O> {
    pub(crate) fn new(order: O, memory: Memory) -> Sorter<O> {
        Sorter { order, entries: Vec::new(), runs: Vec::new(), memory }
    }

    pub(crate) fn push(&mut self, tag: Option<Value>, row: Row, context: &Context) -> Result<()> {
        let tagged = (tag, row);
        let key = self.order.key(&tagged, context)?;
        let (tag, row) = tagged;
        let tag_bytes = tag.as_ref().map_or(0, |tag| value_bytes(tag.view()));
        let bytes = row.bytes() + tag_bytes + self.order.key_bytes(&key);
        if !self.memory.fits(bytes, context) && self.memory.may_spill(context) && !self.entries.is_empty() {
            self.spill(context)?;
        }
        self.memory.take(bytes, context)?;
        self.entries.push(Entry { key, bytes, tag, row });
        if let Some(limit) = self.order.limit()
            && self.entries.len() >= limit.saturating_mul(2).max(limit.saturating_add(SLACK_MIN))
        {
            self.sort(context)?;
        }
        Ok(())
    }

    /// Sorts what is in memory and drops what is beyond the limit.
    fn sort(&mut self, context: &Context) -> Result<()> {
        let count = self.entries.len() as u64;
        context.spend(count.saturating_mul(u64::from(count.max(1).ilog2())))?;
        let order = &self.order;
        self.entries.sort_by(|left, right| order.compare(&left.key, &right.key));
        if let Some(limit) = order.limit() {
            for dropped in self.entries.drain(limit.min(self.entries.len())..) {
                self.memory.give_back(dropped.bytes);
            }
        }
        Ok(())
    }

    /// Moves everything from memory to a run.
    fn spill(&mut self, context: &Context) -> Result<()> {
        if self.runs.len() + 1 >= RUNS_MAX {
            self.merge_runs(context)?;
        }
        self.sort(context)?;
        let mut writer = RunWriter::new(self.memory.scratch(context)?.create()?);
        for entry in self.entries.drain(..) {
            self.memory.give_back(entry.bytes);
            writer.append((entry.tag, entry.row), context)?;
        }
        self.runs.push(writer.finish()?);
        Ok(())
    }

    fn merge_runs(&mut self, context: &Context) -> Result<()> {
        let sources = std::mem::take(&mut self.runs).into_iter().map(Input::Run).collect();
        let mut merge = Merge::new(sources, &self.order, context)?;
        let mut writer = RunWriter::new(self.memory.scratch(context)?.create()?);
        let mut left = self.order.limit().unwrap_or(usize::MAX);
        while left > 0
            && let Some((_, tagged)) = merge.next(&self.order, context)?
        {
            writer.append(tagged, context)?;
            left -= 1;
        }
        self.runs.push(writer.finish()?);
        Ok(())
    }

    /// Ends the pushing. If some rows are on disk, all are: a cursor may rest on them for minutes.
    pub(crate) fn finish(mut self, context: &Context) -> Result<SortedRows<O>> {
        if !self.runs.is_empty() && !self.entries.is_empty() {
            self.spill(context)?;
        }
        self.sort(context)?;
        let left = self.order.limit().unwrap_or(usize::MAX);
        let mut sources: Vec<Input<O::Key>> = self.runs.into_iter().map(Input::Run).collect();
        sources.push(Input::Memory(self.entries.into_iter()));
        let merge = Merge::new(sources, &self.order, context)?;
        Ok(SortedRows { order: self.order, merge, left })
    }
}

/// Rows in order.
pub(crate) struct SortedRows<O: SortOrder> {
    order: O,
    merge: Merge<O::Key>,
    /// How many are wanted yet.
    left: usize,
}

impl<O: SortOrder> SortedRows<O> {
    pub(crate) fn next(&mut self, context: &Context) -> Result<Option<(O::Key, Tagged)>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        self.merge.next(&self.order, context)
    }
}

enum Input<K> {
    Run(RunReader),
    Memory(std::vec::IntoIter<Entry<K>>),
}

impl<K: Send> Input<K> {
    fn next<O: SortOrder<Key = K>>(&mut self, order: &O, context: &Context) -> Result<Option<(K, Tagged)>> {
        match self {
            Input::Memory(entries) => Ok(entries.next().map(|entry| (entry.key, (entry.tag, entry.row)))),
            Input::Run(run) => {
                let Some(tagged) = run.next(context)? else { return Ok(None) };
                Ok(Some((order.key(&tagged, context)?, tagged)))
            }
        }
    }
}

struct Merge<K> {
    inputs: Vec<Input<K>>,
    /// The next row of each input that has one, with the input's number, the smallest last.
    heads: Vec<(usize, K, Tagged)>,
}

impl<K: Send> Merge<K> {
    fn new<O: SortOrder<Key = K>>(inputs: Vec<Input<K>>, order: &O, context: &Context) -> Result<Merge<K>> {
        let mut merge = Merge { inputs, heads: Vec::new() };
        for input in 0..merge.inputs.len() {
            merge.refill(input, order, context)?;
        }
        Ok(merge)
    }

    fn next<O: SortOrder<Key = K>>(&mut self, order: &O, context: &Context) -> Result<Option<(K, Tagged)>> {
        let Some((input, key, tagged)) = self.heads.pop() else { return Ok(None) };
        self.refill(input, order, context)?;
        Ok(Some((key, tagged)))
    }

    fn refill<O: SortOrder<Key = K>>(&mut self, input: usize, order: &O, context: &Context) -> Result<()> {
        let Some((key, tagged)) = self.inputs[input].next(order, context)? else { return Ok(()) };
        let at = self.heads.partition_point(|(other, head, _)| {
            order.compare(head, &key).then(other.cmp(&input)) == Ordering::Greater
        });
        self.heads.insert(at, (input, key, tagged));
        Ok(())
    }
}

//! An external merge sort: rows in an order, in memory as long as they fit, then in runs on disk that are merged.
//!
//! ```text
//!   push ---> entries in memory --(memory full)--> sorted, appended to a new run
//!   next <--- the smallest head among all runs and what is left in memory
//! ```
//!
//! The sort is stable: runs are made one after the other, only neighbours are merged, and among equal heads the older run goes
//! first.
//!
//! A merge holds a buffer and a row for each run, which count against the memory as rows do: runs are merged in groups that
//! fit, again and again until all that are left fit. Two runs are merged in any case, so the bound is that of the memory or of
//! two of the largest rows, whichever is more.

use std::cmp::Ordering;

use bson::Value;

use crate::context::Context;
use crate::error::Result;
use crate::pipeline::memory::Memory;
use crate::pipeline::row::{Row, value_bytes};
use crate::pipeline::run::{RunReader, RunWriter, Tagged, buffer_bytes};

/// The order of rows.
pub(crate) trait SortOrder: Send {
    type Key: Send;

    /// Returns the key of a row, computed again when the row is read from disk.
    fn key(&self, tagged: &Tagged, context: &Context) -> Result<Self::Key>;
    fn compare(&self, left: &Self::Key, right: &Self::Key) -> Ordering;
    /// Returns how many bytes a key takes, roughly.
    fn key_bytes(&self, key: &Self::Key) -> usize;
    /// Returns the largest number of rows that are needed.
    fn limit(&self) -> Option<usize> {
        None
    }
}

/// How many runs, and with them open files, there are at most.
const RUNS_MAX: usize = 64;
/// How many rows beyond the limit are collected before the excess is dropped.
const SLACK_MIN: usize = 256;

/// Sorts rows.
pub(crate) struct Sorter<O: SortOrder> {
    order: O,
    entries: Vec<Entry<O::Key>>,
    runs: Vec<Run>,
    memory: Memory,
}

/// Rows on disk, in order.
struct Run {
    reader: RunReader,
    /// The bytes of the largest of them, with its key.
    largest: usize,
}

impl Run {
    /// Returns how many bytes of it a merge holds: a row with its key, and the bytes of the next one in a buffer.
    fn merge_bytes(&self, context: &Context) -> usize {
        self.largest.saturating_mul(2).saturating_add(buffer_bytes(context))
    }
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

    /// Sorts the rows in memory and drops those beyond the limit.
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
        self.sort(context)?;
        let mut writer = RunWriter::new(self.memory.scratch(context)?.create()?, context);
        let mut largest = 0;
        for entry in self.entries.drain(..) {
            self.memory.give_back(entry.bytes);
            largest = largest.max(entry.bytes);
            writer.append((entry.tag, entry.row), context)?;
        }
        self.runs.push(Run { reader: writer.finish()?, largest });
        if self.runs.len() >= RUNS_MAX {
            self.merge_neighbours(context)?;
        }
        Ok(())
    }

    /// Merges neighbouring runs into one, as many at a time as fit into memory and two at least.
    fn merge_neighbours(&mut self, context: &Context) -> Result<()> {
        let (mut group, mut group_bytes) = (Vec::new(), 0_usize);
        for run in std::mem::take(&mut self.runs) {
            let bytes = run.merge_bytes(context);
            if group.len() > 1 && !self.memory.fits(group_bytes.saturating_add(bytes), context) {
                let merged = self.merge(std::mem::take(&mut group), context)?;
                self.runs.push(merged);
                group_bytes = 0;
            }
            group_bytes = group_bytes.saturating_add(bytes);
            group.push(run);
        }
        let merged = if group.len() > 1 { vec![self.merge(group, context)?] } else { group };
        self.runs.extend(merged);
        Ok(())
    }

    /// Returns `true` if a merge of all runs fits into memory.
    fn fits_merge(&self, context: &Context) -> bool {
        let bytes = self.runs.iter().map(|run| run.merge_bytes(context)).fold(0, usize::saturating_add);
        self.runs.len() <= 2 || self.memory.fits(bytes, context)
    }

    fn merge(&self, runs: Vec<Run>, context: &Context) -> Result<Run> {
        let largest = runs.iter().map(|run| run.largest).max().unwrap_or_default();
        let inputs = runs.into_iter().map(|run| Input::Run(run.reader)).collect();
        let mut merge = Merge::new(inputs, &self.order, context)?;
        let mut writer = RunWriter::new(self.memory.scratch(context)?.create()?, context);
        let mut left = self.order.limit().unwrap_or(usize::MAX);
        while left > 0
            && let Some((_, tagged)) = merge.next(&self.order, context)?
        {
            writer.append(tagged, context)?;
            left -= 1;
        }
        Ok(Run { reader: writer.finish()?, largest })
    }

    /// Ends the input. If some rows are on disk, all are: an idle cursor may keep them for minutes.
    pub(crate) fn finish(mut self, context: &Context) -> Result<SortedRows<O>> {
        if !self.runs.is_empty() && !self.entries.is_empty() {
            self.spill(context)?;
        }
        while !self.fits_merge(context) {
            self.merge_neighbours(context)?;
        }
        self.sort(context)?;
        let left = self.order.limit().unwrap_or(usize::MAX);
        let on_disk: usize = self.runs.iter().map(|run| run.merge_bytes(context)).sum();
        let all = self.entries.len();
        let mut sources: Vec<Input<O::Key>> =
            self.runs.into_iter().map(|run| Input::Run(run.reader)).collect();
        sources.push(Input::Memory(self.entries.into_iter()));
        let merge = Merge::new(sources, &self.order, context)?;
        Ok(SortedRows { order: self.order, merge, left, memory: self.memory, all, on_disk })
    }

    /// Returns how many bytes it holds, roughly.
    pub(crate) fn bytes(&self) -> usize {
        self.memory.used()
    }
}

/// Rows in order.
pub(crate) struct SortedRows<O: SortOrder> {
    order: O,
    merge: Merge<O::Key>,
    /// How many are still needed.
    left: usize,
    /// The memory of the rows in memory, when there were so many.
    memory: Memory,
    all: usize,
    /// How many bytes of the rows on disk are in memory at a time.
    on_disk: usize,
}

impl<O: SortOrder> SortedRows<O> {
    pub(crate) fn next(&mut self, context: &Context) -> Result<Option<(O::Key, Tagged)>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        self.merge.next(&self.order, context)
    }

    /// Returns how many bytes it holds, roughly.
    pub(crate) fn bytes(&self) -> usize {
        self.memory.left(self.merge.in_memory(), self.all) + self.on_disk
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

    /// Returns how many rows are in memory and have not been returned, without the heads.
    fn in_memory(&self) -> usize {
        let rows = |input: &Input<K>| match input {
            Input::Memory(entries) => entries.len(),
            Input::Run(_) => 0,
        };
        self.inputs.iter().map(rows).sum()
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

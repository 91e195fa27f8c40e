//! The items that a composite index lists for several parts of a condition at once.
//!
//! A composite index fits if equalities restrict its first paths to one value each. The next path may have ranges; further
//! paths of the index do not matter.
//!
//! ```text
//!   index       /pk ASC   /n DESC   /m ASC
//!   condition   pk = 'a' AND n < 5 AND n > 1       one range of entries
//!               pk = 'a' AND (n < 1 OR n > 5)      two ranges
//!               pk = 'a' AND m = 3                 does not fit: /n comes before /m
//! ```

use document::{Value, ValueRef};
use query::{Condition, Interval, Leaf};
use storage::{Direction, KeyRange};

use super::by_composite::{is_at, names, only_value};
use super::by_path::{scalars, scalars_descending};
use super::choose::conjuncts;
use super::context::QueryContext;
use super::numbers::Collected;
use crate::definition::Order;
use crate::index::{Composite, Index, IndexEntry, PartValue};
use crate::types::error::Result;

/// What a composite index lists.
pub(super) struct CompositeList<'c> {
    index: &'c Index,
    pub(super) composite: &'c Composite,
    /// The values of its first paths.
    equal: Vec<Value>,
    /// The ranges of the next path; `None` for all of its values.
    ranges: Option<&'c [Interval]>,
    /// The parts of the condition that it stands for.
    leaves: Vec<&'c Leaf>,
}

/// Returns what the composite index that fits most parts of a condition lists; `None` if none fits more than one part.
pub(super) fn of<'c>(ctx: &'c QueryContext<'_>, condition: &'c Condition) -> Option<CompositeList<'c>> {
    let (index, parts) = (ctx.index.as_ref()?, conjuncts(condition));
    let lists = index.coverage.composites().iter().map(|composite| fit(index, composite, &parts));
    lists.max_by_key(CompositeList::parts).filter(|list| list.parts() > 1)
}

fn fit<'c>(index: &'c Index, composite: &'c Composite, conjuncts: &[&'c Condition]) -> CompositeList<'c> {
    let mut list = CompositeList { index, composite, equal: Vec::new(), ranges: None, leaves: Vec::new() };
    for part in &composite.parts {
        let leaf = leaf_at(conjuncts, &names(&part.source)).filter(|leaf| leaf.values.kinds.is_empty());
        let Some(leaf) = leaf else { break };
        list.leaves.push(leaf);
        let Some(value) = only_value(leaf) else {
            list.ranges = Some(&leaf.values.scalars);
            break;
        };
        list.equal.push(value);
    }
    list
}

fn leaf_at<'c>(conjuncts: &[&'c Condition], path: &[String]) -> Option<&'c Leaf> {
    conjuncts.iter().find_map(|part| match part {
        Condition::Leaf(leaf) if is_at(leaf, path) => Some(leaf),
        _ => None,
    })
}

impl CompositeList<'_> {
    /// Returns how many parts of the condition it stands for.
    pub(super) fn parts(&self) -> usize {
        self.leaves.len()
    }

    /// Returns whether it stands for the whole condition, in which a part may occur twice: a partition key in the filter and
    /// in the scope.
    pub(super) fn is_whole(&self, condition: &Condition) -> bool {
        let has = |part: &&Condition| matches!(part, Condition::Leaf(leaf) if self.leaves.contains(&leaf));
        conjuncts(condition).iter().all(has)
    }

    /// Returns its living items by number, or `None` if there are more than `most`.
    pub(super) fn collect(&self, ctx: &QueryContext<'_>, most: usize) -> Result<Option<Collected>> {
        let skipped = self.index.composite_prefix(self.composite).len();
        let entries = self.key_ranges().into_iter();
        let entries = entries.flat_map(|range| ctx.entries(range, skipped, Direction::Forward));
        Collected::of_entries(ctx, entries, most, |entry| self.is_exact(entry))
    }

    fn key_ranges(&self) -> Vec<KeyRange> {
        let equal: Vec<Option<ValueRef<'_>>> = self.equal.iter().map(|value| Some(value.view())).collect();
        let prefix = self.index.composite_equal_prefix(self.composite, &equal);
        let (Some(ranges), Some(next)) = (self.ranges, self.composite.parts.get(equal.len())) else {
            return vec![KeyRange::prefix(prefix)];
        };
        let of_interval = match next.order {
            Order::Ascending => scalars,
            Order::Descending => scalars_descending,
        };
        ranges.iter().map(|interval| of_interval(&prefix, interval)).collect()
    }

    /// Returns whether the item of an entry is certainly in the list.
    fn is_exact(&self, entry: &IndexEntry) -> Result<bool> {
        if !entry.mark.inexact {
            return Ok(true);
        }
        let values = self.composite.parts(&entry.term)?;
        Ok(values[..self.parts()].iter().all(|(value, _)| matches!(value, PartValue::Scalar(_))))
    }
}

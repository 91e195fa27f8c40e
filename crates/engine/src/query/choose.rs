//! Chooses the plan by which a query finds its items.
//!
//! Every plan returns a superset of the matching items; the filter drops the others. Candidates are *probed*: their
//! living entries are counted up to a small number. So a choice depends on data, but never on expired items, and neither
//! the order nor the cost of an answer reveals whether the purge has run.
//!
//! | in order of preference | position |
//! |---|---|
//! | (partition key, id) lookups | `Id` entry |
//! | the entries of one path, if they alone answer the query | value and number |
//! | what a composite index lists for several parts at once, if that is fewer items than any part has | number |
//! | the smallest part that the index can list: equalities, short ranges, shapes; or all parts intersected | number |
//! | the queues, for a range of `_ts` that is smaller still | `_ts` and number |
//! | the `Id` entries of known partition keys, or of a range of effective keys | `Id` entry |
//! | the queues, for a long range of `_ts` | `_ts` and number |
//! | one long range of a path | value and number |
//! | all items | number |
//!
//! A page that resumes from a position takes a plan with such positions again, whatever a probe says now.

use std::rc::Rc;

use document::{EffectiveRange, ItemNumber, PartitionKey};
use query::{Condition, Interval, Leaf, References, Segment, Stamps, Step};
use storage::Direction;

use super::by_path::{CursorStart, PathCursor, scalars};
use super::composite_list::{self, CompositeList};
use super::context::QueryContext;
use super::numbers::{Collected, Entries, Intersection, Next, NumberStream, Union};
use super::probe::LivingEntries;
use super::report::Used;
use super::sources::{ById, ByNumber, ByPath, ByStamp, FullScan, Remaining, Source, SourceStep};
use crate::access::continuation::{self, Position};
use crate::index::{Index, PathKey, Term};
use crate::types::error::Result;

/// Reading an item costs about as much as reading this many entries of the index.
const ENTRIES_FOR_AN_ITEM: usize = 8;

/// How many entries of a range are counted for each item of a small part before the small part is chosen. Counting
/// costs time as well: with fewer entries than the items would cost, an unused count is cheap.
const PROBED_FOR_AN_ITEM: usize = 2;

/// What a query needs from one partition.
pub(super) struct PartitionQuery<'q> {
    /// A condition that matching items meet, the partition key of the scope included.
    pub(super) condition: Condition,
    /// Whether all items that meet it match, scope included.
    pub(super) exact: bool,
    /// Whether every item of the partition is in the scope.
    pub(super) unscoped: bool,
    /// The partition keys that can match.
    pub(super) keys: Option<Vec<PartitionKey>>,
    /// The ids that can match.
    pub(super) ids: Option<&'q [String]>,
    /// When matching items can have been written.
    pub(super) stamps: Stamps,
    /// The effective keys of the scope in this partition; `None` for all of them.
    pub(super) range: Option<EffectiveRange>,
    /// The paths that the answer depends on.
    pub(super) references: &'q References,
    /// How the items are used.
    pub(super) purpose: Purpose,
}

/// How the items that a query finds are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Rows are shown in the order of the items, page by page.
    Show,
    /// All items are needed before the first row.
    Gather,
    /// Only their number is needed.
    Count,
}

/// A plan that was chosen.
pub(super) struct ChosenPlan<'a> {
    pub(super) source: Box<dyn Source + 'a>,
    /// Whether an item that the source returns as exact is known to match.
    pub(super) exact: bool,
    /// The path whose value the source may return from the index, if the answer depends on nothing else.
    pub(super) covers: Option<Vec<Segment>>,
    pub(super) used: Used,
}

impl<'a> ChosenPlan<'a> {
    fn new(source: impl Source + 'a) -> ChosenPlan<'a> {
        ChosenPlan { source: Box::new(source), exact: false, covers: None, used: Used::default() }
    }
}

struct NoMatch;

impl Source for NoMatch {
    fn next(&mut self) -> Result<SourceStep> {
        Ok(SourceStep::End)
    }
}

/// A stream of numbers that was made from a condition.
struct ConditionStream<'a> {
    stream: Box<dyn NumberStream + 'a>,
    /// Whether it represents every part of the condition.
    whole: bool,
    used: Used,
}

/// Chooses a plan, or the plan of a position again.
pub(super) fn choose<'a>(
    ctx: &'a QueryContext<'a>,
    partition_query: &PartitionQuery<'_>,
    position: Option<Position>,
) -> Result<ChosenPlan<'a>> {
    if partition_query.condition == Condition::Nothing {
        return Ok(ChosenPlan::new(NoMatch));
    }
    match position {
        None => new_plan(ctx, partition_query),
        Some(Position::Number(after)) => by_number(ctx, partition_query, Some(after)),
        Some(Position::Id(after)) => Ok(by_id(ctx, partition_query, Some(&after))),
        Some(Position::Stamp { seconds, number }) => {
            Ok(ChosenPlan::new(ByStamp::new(ctx, partition_query.stamps, Some((seconds, number)))))
        }
        Some(Position::Path { leaf, sort, number }) => {
            let found = numbered_leaf(&partition_query.condition, leaf).ok_or_else(continuation::foreign)?;
            if let Some(chosen) = by_path(ctx, partition_query, leaf, found, Some((sort.clone(), number.0)))?
            {
                return Ok(chosen);
            }
            let leaf = (leaf, found.clone());
            Ok(ChosenPlan::new(Remaining::new(ctx, leaf, (sort, number), None)))
        }
        Some(Position::Remaining { leaf, sort, number, scanned }) => {
            let found = numbered_leaf(&partition_query.condition, leaf).ok_or_else(continuation::foreign)?;
            let leaf = (leaf, found.clone());
            Ok(ChosenPlan::new(Remaining::new(ctx, leaf, (sort, number), Some(scanned))))
        }
        Some(Position::Ranked(_) | Position::End) => Err(continuation::foreign()),
    }
}

fn new_plan<'a>(ctx: &'a QueryContext<'a>, partition_query: &PartitionQuery<'_>) -> Result<ChosenPlan<'a>> {
    if let (Some(keys), Some(ids)) = (&partition_query.keys, partition_query.ids)
        && keys.len().saturating_mul(ids.len()) <= ctx.work.tuning.lookups
        && keys.iter().all(|key| key.len() >= ctx.container.definition.partition_key.paths.len())
    {
        return Ok(by_id(ctx, partition_query, None));
    }
    if let Some(chosen) = covered(ctx, partition_query)? {
        return Ok(chosen);
    }
    if partition_query.purpose == Purpose::Count && partition_query.exact {
        let condition = &partition_query.condition;
        let whole = composite_list::of(ctx, condition).filter(|list| list.is_whole(condition));
        if let Some(list) = whole
            && let Some((_, built)) =
                listed_together(ctx, condition, &list, ctx.work.tuning.collected_for_all)?
        {
            return Ok(numbers(ctx, partition_query, built, None));
        }
        let built = match sparse_conjunct(ctx, condition)? {
            Some(part) => build_part(ctx, condition, part)?,
            None => build(ctx, condition, Completeness::Yes)?,
        };
        if let Some(built) = built {
            return Ok(numbers(ctx, partition_query, built, None));
        }
    }
    if partition_query.stamps == Stamps::default()
        && let Some(built) = only_list(ctx, partition_query)?
    {
        return Ok(numbers(ctx, partition_query, built, None));
    }
    let small = cheapest_conjunct(ctx, &partition_query.condition, ctx.work.tuning.probe)?;
    if partition_query.stamps != Stamps::default() {
        let fewer = small.map_or(ctx.work.tuning.probe, |(items, _)| items);
        if count_stamps(ctx, partition_query.stamps, fewer)? < fewer {
            return Ok(ChosenPlan::new(ByStamp::new(ctx, partition_query.stamps, None)));
        }
    }
    if let Some((items, built)) = shortest_list(ctx, &partition_query.condition, small)? {
        if partition_query.purpose != Purpose::Show {
            ctx.work.expect_loads(items);
        }
        return Ok(numbers(ctx, partition_query, built, None));
    }
    fallback(ctx, partition_query)
}

/// Returns a stream for a condition that has one part, in the order of numbers: there is no other part to compare its
/// length with.
fn only_list<'a>(
    ctx: &'a QueryContext<'a>,
    partition_query: &PartitionQuery<'_>,
) -> Result<Option<ConditionStream<'a>>> {
    let condition = &partition_query.condition;
    if matches!(condition, Condition::All(_)) || !lists_in_order(condition, ctx.work.tuning.streams) {
        return Ok(None);
    }
    // A request that must be brief finds out first whether it can be.
    if ctx.work.tuning.is_brief() && partition_query.purpose != Purpose::Show {
        ctx.work.expect_loads(estimate(ctx, condition, ctx.work.tuning.probe)?.unwrap_or(0));
    }
    build(ctx, condition, Completeness::No)
}

/// Returns the smallest part of a condition, if the index lists it and it has fewer than `most` items.
fn cheapest_conjunct<'c>(
    ctx: &QueryContext<'_>,
    condition: &'c Condition,
    most: usize,
) -> Result<Option<(usize, &'c Condition)>> {
    let mut smallest: Option<(usize, &Condition)> = None;
    for part in equalities_first(ctx, conjuncts(condition)) {
        let most = smallest.map_or(most, |(known, _)| known);
        if let Some(estimate) = estimate(ctx, part, most)?.filter(|estimate| *estimate < most) {
            smallest = Some((estimate, part));
        }
    }
    Ok(smallest)
}

/// Returns the smallest part of a condition, unless all parts are large. No part is counted much further than the
/// smallest.
fn smallest<'c>(ctx: &QueryContext<'_>, condition: &'c Condition) -> Result<Option<(usize, &'c Condition)>> {
    let mut most = ctx.work.tuning.probe.max(1);
    loop {
        let small = cheapest_conjunct(ctx, condition, most)?;
        if small.is_some() || most >= ctx.work.tuning.sort_probe {
            return Ok(small);
        }
        most = most.saturating_mul(ENTRIES_FOR_AN_ITEM);
    }
}

/// Puts equalities first: they are mostly smaller than ranges, and a known small part limits how far the others are
/// counted.
fn equalities_first<'c>(ctx: &QueryContext<'_>, mut parts: Vec<&'c Condition>) -> Vec<&'c Condition> {
    parts.sort_by_key(|part| !lists_in_order(part, ctx.work.tuning.streams));
    parts
}

/// Returns the smallest part of a condition, if reading its items is cheaper than collecting those of a range first:
/// a count must not scan a container for the few items of one partition key. Equalities are not collected but skipped
/// through.
fn sparse_conjunct<'c>(ctx: &QueryContext<'_>, condition: &'c Condition) -> Result<Option<&'c Condition>> {
    let parts = conjuncts(condition);
    let is_range = |part: &&Condition| !lists_in_order(part, ctx.work.tuning.streams);
    if parts.len() == 1 || !parts.iter().any(is_range) {
        return Ok(None);
    }
    let Some((items, smallest)) = smallest(ctx, condition)? else { return Ok(None) };
    let most = items.saturating_mul(PROBED_FOR_AN_ITEM);
    for range in parts.into_iter().filter(is_range).filter(|part| !std::ptr::eq(*part, smallest)) {
        if estimate(ctx, range, most)?.is_none_or(|entries| entries >= most) {
            ctx.work.expect_loads(items);
            return Ok(Some(smallest));
        }
    }
    Ok(None)
}

/// Returns a stream of the items in the shortest list of the index, and how many they are: what a composite index lists for
/// several parts of a condition if that is shorter than the smallest part, else that part.
fn shortest_list<'a>(
    ctx: &'a QueryContext<'a>,
    condition: &Condition,
    small: Option<(usize, &Condition)>,
) -> Result<Option<(usize, ConditionStream<'a>)>> {
    let most = small.map_or(ctx.work.tuning.probe, |(items, _)| items);
    if let Some(list) = composite_list::of(ctx, condition)
        && let Some(listed) = listed_together(ctx, condition, &list, most)?
    {
        return Ok(Some(listed));
    }
    let Some((items, part)) = small else { return Ok(None) };
    Ok(build_part(ctx, condition, part)?.map(|built| (items, built)))
}

/// Returns a stream of the items that a composite index lists, and how many they are; `None` if there are `most` or more.
fn listed_together<'a>(
    ctx: &'a QueryContext<'a>,
    condition: &Condition,
    list: &CompositeList<'_>,
    most: usize,
) -> Result<Option<(usize, ConditionStream<'a>)>> {
    let Some(items) = list.collect(ctx, most.saturating_sub(1))? else { return Ok(None) };
    let used = Used { paths: Vec::new(), composites: vec![list.composite.clone()] };
    let (count, whole) = (items.len(), list.is_whole(condition));
    Ok(Some((count, ConditionStream { stream: Box::new(items), whole, used })))
}

/// Returns a stream of the items that a part of a condition admits.
fn build_part<'a>(
    ctx: &'a QueryContext<'a>,
    condition: &Condition,
    part: &Condition,
) -> Result<Option<ConditionStream<'a>>> {
    let built = build(ctx, part, Completeness::No)?;
    Ok(built.map(|built| ConditionStream { whole: built.whole && std::ptr::eq(condition, part), ..built }))
}

/// Returns the plan when no part that the index could list is small.
fn fallback<'a>(ctx: &'a QueryContext<'a>, partition_query: &PartitionQuery<'_>) -> Result<ChosenPlan<'a>> {
    if lists_in_order(&partition_query.condition, ctx.work.tuning.streams)
        && let Some(built) = build(ctx, &partition_query.condition, Completeness::No)?
    {
        return Ok(numbers(ctx, partition_query, built, None));
    }
    if partition_query.keys.is_some() || partition_query.range.is_some() {
        return Ok(by_id(ctx, partition_query, None));
    }
    if partition_query.stamps != Stamps::default() {
        return Ok(ChosenPlan::new(ByStamp::new(ctx, partition_query.stamps, None)));
    }
    for (number, leaf) in leaves(&partition_query.condition) {
        if is_narrow(leaf)
            && let Some(chosen) = by_path(ctx, partition_query, number, leaf, None)?
        {
            return Ok(chosen);
        }
    }
    Ok(ChosenPlan::new(FullScan::new(ctx, None)))
}

/// Returns the plan over one path whose values alone answer the query: the rest of the filter is about that path too.
fn covered<'a>(
    ctx: &'a QueryContext<'a>,
    partition_query: &PartitionQuery<'_>,
) -> Result<Option<ChosenPlan<'a>>> {
    if partition_query.references.whole || partition_query.references.paths.len() > 1 {
        return Ok(None);
    }
    let Some(path) = partition_query.references.paths.first() else {
        // Only the existence of the item is read.
        return match &partition_query.condition {
            Condition::Leaf(leaf) if partition_query.exact && leaf.is_single() => {
                by_path(ctx, partition_query, 0, leaf, None)
            }
            _ => Ok(None),
        };
    };
    let (Some(names), true) = (names(path), partition_query.unscoped) else { return Ok(None) };
    if names == [Step::Name("_ts".to_owned())] && partition_query.purpose != Purpose::Show {
        let source = Box::new(ByStamp::new(ctx, partition_query.stamps, None));
        return Ok(Some(ChosenPlan {
            source,
            exact: false,
            covers: Some(path.clone()),
            used: Used::default(),
        }));
    }
    match &partition_query.condition {
        Condition::Leaf(leaf) if leaf.path == names => by_path(ctx, partition_query, 0, leaf, None),
        Condition::Everything if partition_query.purpose != Purpose::Show => {
            by_path(ctx, partition_query, 0, &Leaf::any(names), None)
        }
        _ => Ok(None),
    }
}

fn names(path: &[Segment]) -> Option<Vec<Step>> {
    let step = |segment: &Segment| match segment {
        Segment::Name(name) => Some(Step::Name(name.clone())),
        Segment::Index(_) => None,
    };
    path.iter().map(step).collect()
}

fn by_id<'a>(
    ctx: &'a QueryContext<'a>,
    partition_query: &PartitionQuery<'_>,
    after: Option<&[u8]>,
) -> ChosenPlan<'a> {
    let range = partition_query.range.as_ref().unwrap_or(&ctx.partition.range);
    ChosenPlan::new(ById::new(ctx, range, partition_query.keys.as_deref(), partition_query.ids, after))
}

fn by_path<'a>(
    ctx: &'a QueryContext<'a>,
    partition_query: &PartitionQuery<'_>,
    number: u16,
    leaf: &Leaf,
    after: Option<(Vec<u8>, u64)>,
) -> Result<Option<ChosenPlan<'a>>> {
    let start = after.clone().map(|(sort, rank)| CursorStart { sort, rank });
    let Some(walk) = PathCursor::open(ctx, leaf, Direction::Forward, start)? else { return Ok(None) };
    let whole = matches!(&partition_query.condition, Condition::Leaf(only) if only == leaf)
        || partition_query.condition == Condition::Everything;
    let alone =
        !partition_query.references.whole && partition_query.references.paths.len() <= 1 && leaf.is_single();
    let covers = match partition_query.references.paths.first() {
        None => Some(Vec::new()).filter(|_| whole && partition_query.exact),
        Some(path) => {
            names(path).filter(|path| *path == leaf.path && partition_query.unscoped).map(|_| path.clone())
        }
    };
    Ok(Some(ChosenPlan {
        source: Box::new(ByPath::new(walk, number, after)),
        exact: whole && partition_query.exact,
        covers: covers.filter(|_| alone),
        used: Used::path(&leaf.path),
    }))
}

/// Returns the best plan in the order of numbers.
fn by_number<'a>(
    ctx: &'a QueryContext<'a>,
    partition_query: &PartitionQuery<'_>,
    after: Option<ItemNumber>,
) -> Result<ChosenPlan<'a>> {
    let built = match only_list(ctx, partition_query)? {
        Some(built) => Some(built),
        None => shortest_or_all_lists(ctx, &partition_query.condition)?,
    };
    Ok(match built {
        Some(built) => numbers(ctx, partition_query, built, after),
        None => ChosenPlan::new(FullScan::new(ctx, after)),
    })
}

/// Returns a stream of the items in the shortest list of the index if it is short, else of those that are in all its lists.
fn shortest_or_all_lists<'a>(
    ctx: &'a QueryContext<'a>,
    condition: &Condition,
) -> Result<Option<ConditionStream<'a>>> {
    let small = cheapest_conjunct(ctx, condition, ctx.work.tuning.probe)?;
    match shortest_list(ctx, condition, small)? {
        Some((_, built)) => Ok(Some(built)),
        None => build(ctx, condition, Completeness::No),
    }
}

fn numbers<'a>(
    ctx: &'a QueryContext<'a>,
    partition_query: &PartitionQuery<'_>,
    built: ConditionStream<'a>,
    after: Option<ItemNumber>,
) -> ChosenPlan<'a> {
    let ConditionStream { stream, whole, used } = built;
    // Outliers are in no stream; each of them is read.
    let stream: Box<dyn NumberStream + 'a> = match &ctx.index {
        Some(index) => Box::new(Union::new(vec![stream, Box::new(ctx.outliers(index, Direction::Forward))])),
        None => stream,
    };
    let exact = whole && partition_query.exact;
    ChosenPlan { source: Box::new(ByNumber::new(stream, after)), exact, covers: None, used }
}

/// Whether every part of a condition must be in a stream, however much there is to collect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Completeness {
    Yes,
    No,
}

/// Returns a stream of the items that a condition admits, or of more, or `None` if the index cannot list them.
fn build<'a>(
    ctx: &'a QueryContext<'a>,
    condition: &Condition,
    completeness: Completeness,
) -> Result<Option<ConditionStream<'a>>> {
    match condition {
        Condition::Everything | Condition::Nothing => Ok(None),
        Condition::Leaf(leaf) => build_leaf(ctx, leaf, completeness),
        Condition::All(parts) => {
            let (mut streams, mut used, mut whole) = (Vec::new(), Used::default(), true);
            for part in parts {
                match build(ctx, part, completeness)? {
                    Some(built) => {
                        streams.push(built.stream);
                        used.add(built.used);
                        whole &= built.whole;
                    }
                    None if completeness == Completeness::Yes => return Ok(None),
                    None => whole = false,
                }
            }
            let stream: Box<dyn NumberStream + 'a> = Box::new(Intersection(streams));
            Ok((!used.is_empty()).then_some(ConditionStream { stream, whole, used }))
        }
        Condition::Any(parts) => {
            let (mut streams, mut used, mut whole) = (Vec::new(), Used::default(), true);
            for part in parts {
                let Some(built) = build(ctx, part, completeness)? else { return Ok(None) };
                streams.push(built.stream);
                used.add(built.used);
                whole &= built.whole;
            }
            Ok(Some(ConditionStream { stream: Box::new(Union::new(streams)), whole, used }))
        }
    }
}

fn build_leaf<'a>(
    ctx: &'a QueryContext<'a>,
    leaf: &Leaf,
    completeness: Completeness,
) -> Result<Option<ConditionStream<'a>>> {
    let Some((index, path)) = ctx.indexed(&leaf.path) else { return Ok(None) };
    let mut streams: Vec<Box<dyn NumberStream + 'a>> = Vec::new();
    let probed = ctx.probes.complete(leaf);
    let points: Vec<_> = leaf.values.scalars.iter().filter_map(Interval::as_point).collect();
    if points.len() == leaf.values.scalars.len() && points.len() <= ctx.work.tuning.streams {
        for term in points.iter().filter_map(|point| Term::new(point.view())) {
            let entries = if let Some(probed) = &probed {
                Entries::probed(ctx, Rc::clone(probed), !term.cut)
            } else {
                let mut prefix = index.path_prefix(&path);
                prefix.extend_from_slice(term.as_bytes());
                Entries::new(ctx, prefix, Direction::Forward, !term.cut)
            };
            streams.push(Box::new(entries));
        }
    } else {
        let tuning = &ctx.work.tuning;
        let most = if completeness == Completeness::Yes {
            tuning.collected_for_all
        } else {
            tuning.collected_for_page
        };
        let Some(collected) = collect(ctx, index, &path, leaf, most)? else { return Ok(None) };
        streams.push(Box::new(collected));
    }
    if !leaf.values.kinds.is_empty() {
        let kinds = leaf.values.kinds;
        match ctx.of_kinds(index, &path, kinds, Direction::Forward)? {
            Some(stream) => streams.push(stream),
            None => return Ok(None),
        }
    }
    let stream = Box::new(Union::new(streams));
    Ok(Some(ConditionStream { stream, whole: true, used: Used::path(&leaf.path) }))
}

/// Returns the items that have a scalar in the leaf's ranges, or `None` if there are more than `most`.
fn collect(
    ctx: &QueryContext<'_>,
    index: &Index,
    path: &PathKey,
    leaf: &Leaf,
    most: usize,
) -> Result<Option<Collected>> {
    let prefix = index.path_prefix(path);
    let ranges = leaf.values.scalars.iter().map(|interval| scalars(&prefix, interval));
    let entries = ranges.flat_map(|range| ctx.entries(range, prefix.len(), Direction::Forward));
    Collected::of_entries(ctx, entries, most, |entry| Ok(entry.scalar()?.is_some()))
}

/// Returns how many living items the index would list for a condition, up to `most`, or `None` if it cannot list
/// them.
pub(super) fn estimate(ctx: &QueryContext<'_>, condition: &Condition, most: usize) -> Result<Option<usize>> {
    ctx.work.aside(|_| count(ctx, condition, most))
}

fn count(ctx: &QueryContext<'_>, condition: &Condition, most: usize) -> Result<Option<usize>> {
    match condition {
        Condition::Everything | Condition::Nothing => Ok(None),
        Condition::Leaf(leaf) => count_leaf(ctx, leaf, most),
        Condition::All(parts) => {
            let mut smallest = None;
            for part in equalities_first(ctx, parts.iter().collect()) {
                smallest = count(ctx, part, smallest.unwrap_or(most))?.or(smallest);
            }
            Ok(smallest)
        }
        Condition::Any(parts) => {
            let mut sum = 0;
            for part in parts {
                let Some(count) = count(ctx, part, most)? else { return Ok(None) };
                sum += count;
                if sum >= most {
                    return Ok(Some(most));
                }
            }
            Ok(Some(sum))
        }
    }
}

/// Counts entries, not items. An item may have several of them in an array, which is precise enough.
fn count_leaf(ctx: &QueryContext<'_>, leaf: &Leaf, most: usize) -> Result<Option<usize>> {
    let Some((index, path)) = ctx.indexed(&leaf.path) else { return Ok(None) };
    let mut count = match ctx.probes.count(ctx, (index, &path), leaf, most)? {
        LivingEntries::All(count) => count,
        LivingEntries::AtLeast(count) => return Ok(Some(count)),
    };
    if leaf.values.kinds.is_empty() {
        return Ok(Some(count));
    }
    let kinds = ctx.of_kinds(index, &path, leaf.values.kinds, Direction::Forward)?;
    let Some(mut items) = kinds else { return Ok(None) };
    let mut from = 0;
    while count < most
        && let Next::Found(candidate) = items.seek(from)?
    {
        from = candidate.rank.saturating_add(1);
        count += 1;
    }
    Ok(Some(count))
}

/// Returns how many living items were written in a range of time, up to `most`.
fn count_stamps(ctx: &QueryContext<'_>, stamps: Stamps, most: usize) -> Result<usize> {
    ctx.work.aside(|_| {
        let mut source = ByStamp::new(ctx, stamps, None);
        let mut count = 0;
        while count < most && matches!(source.next()?, SourceStep::Item(_)) {
            count += 1;
        }
        Ok(count)
    })
}

/// Returns the parts that must all hold.
pub(super) fn conjuncts(condition: &Condition) -> Vec<&Condition> {
    match condition {
        Condition::All(parts) => parts.iter().collect(),
        other => vec![other],
    }
}

/// Returns the leaves that must all hold, with their numbers.
fn leaves(condition: &Condition) -> impl Iterator<Item = (u16, &Leaf)> {
    let leaves = conjuncts(condition).into_iter().filter_map(|part| match part {
        Condition::Leaf(leaf) => Some(leaf),
        _ => None,
    });
    (0_u16..).zip(leaves)
}

fn numbered_leaf(condition: &Condition, number: u16) -> Option<&Leaf> {
    leaves(condition).find(|(known, _)| *known == number).map(|(_, leaf)| leaf)
}

/// Returns whether the index has the items that a condition admits in the order of numbers, however many they are.
fn lists_in_order(condition: &Condition, streams: usize) -> bool {
    match condition {
        Condition::Everything | Condition::Nothing => false,
        Condition::Leaf(leaf) => {
            let scalars = &leaf.values.scalars;
            leaf.values.kinds.is_empty()
                && scalars.len() <= streams
                && scalars.iter().all(|interval| interval.as_point().is_some())
        }
        Condition::All(parts) => parts.iter().any(|part| lists_in_order(part, streams)),
        Condition::Any(parts) => parts.iter().all(|part| lists_in_order(part, streams)),
    }
}

/// Returns whether a leaf selects less than whole types. Otherwise a full scan is no worse than reading its items one
/// by one.
fn is_narrow(leaf: &Leaf) -> bool {
    let within_type = |interval: &Interval| match (interval.low.as_slice(), interval.high.as_slice()) {
        ([low], [high]) => interval.as_point().is_some() && low < high,
        ([low, ..], [high, rest @ ..]) => high == low || (*high == low + 1 && rest.is_empty()),
        _ => false,
    };
    leaf.values.kinds.is_empty() && leaf.values.scalars.iter().all(within_type)
}

//! Which way a query takes to its items.
//!
//! Every way leads to a superset of what matches; the rest is left to the filter. What could serve is *probed*: its living
//! entries are counted up to a small number. So a choice depends on data, but never on the dead, and whether the purge
//! has run cannot be told from the order or the cost of an answer.
//!
//! | in order of preference | position |
//! |---|---|
//! | (partition key, id) lookups | `Id` entry |
//! | the entries of one path, if they alone answer the query | value and number |
//! | the smallest of what the index can list: equalities, short ranges, shapes; or all of them intersected | number |
//! | the queues, for a range of `_ts` that is smaller still | `_ts` and number |
//! | the `Id` entries of known partition keys, or of a range of effective keys | `Id` entry |
//! | the queues, for a long range of `_ts` | `_ts` and number |
//! | one long range of a path | value and number |
//! | all items | number |
//!
//! A page that goes on from a position takes a way with such positions again, whatever a probe says now.

use document::{EffectiveRange, ItemNumber, PartitionKey};
use query::{Condition, Interval, Leaf, References, Segment, Stamps, Step};
use storage::Direction;

use super::by_path::{PathWalk, Start, scalars};
use super::desk::Desk;
use super::numbers::{Both, Candidate, Collected, Either, Entries, Next, Numbers};
use super::sources::{ById, ByNumber, ByPath, ByStamp, Coming, Everything, Remaining, Source};
use crate::continuation::{self, Position};
use crate::error::Result;
use crate::index::{Index, PathKey, Term};

/// To look at an item costs about as much as so many entries of the index.
const ENTRIES_FOR_AN_ITEM: usize = 8;

/// So many entries of a range are counted for each item of a small part before the items are taken. What is counted is paid for
/// as well: with fewer than the price of the items, to have counted in vain costs little.
const PROBED_FOR_AN_ITEM: usize = 2;

/// What a query wants of one partition.
pub(super) struct Wish<'q> {
    /// Where matching items are, the partition key of the scope included.
    pub(super) condition: Condition,
    /// Whether that is exactly where they are, scope included.
    pub(super) exact: bool,
    /// Whether every item of the partition is in the scope.
    pub(super) unscoped: bool,
    /// The partition keys that can match.
    pub(super) keys: Option<Vec<PartitionKey>>,
    /// The ids that can match.
    pub(super) ids: Option<&'q [String]>,
    /// When matching items can have been written.
    pub(super) stamps: Stamps,
    /// The effective keys of the scope in this partition; none if all of them.
    pub(super) range: Option<EffectiveRange>,
    /// What the answer depends on.
    pub(super) references: &'q References,
    /// What becomes of the items.
    pub(super) purpose: Purpose,
}

/// What becomes of the items that a query finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Rows are shown as the items come, page by page.
    Show,
    /// All of them are needed before the first row.
    Gather,
    /// Only how many there are is asked for.
    Count,
}

/// A way that was chosen.
pub(super) struct Chosen<'a> {
    pub(super) source: Box<dyn Source + 'a>,
    /// Whether an item that arrives exactly is known to match.
    pub(super) exact: bool,
    /// The path whose value an arriving item may tell, if that is all that the answer depends on.
    pub(super) covers: Option<Vec<Segment>>,
    /// The paths of the index that are used.
    pub(super) used: Vec<Vec<Step>>,
}

impl<'a> Chosen<'a> {
    fn new(source: impl Source + 'a) -> Chosen<'a> {
        Chosen { source: Box::new(source), exact: false, covers: None, used: Vec::new() }
    }
}

struct Nothing;

impl Source for Nothing {
    fn next(&mut self) -> Result<Coming> {
        Ok(Coming::End)
    }
}

/// A stream of numbers that was made from a condition.
struct Built<'a> {
    stream: Box<dyn Numbers + 'a>,
    /// Whether it leaves no part of the condition out.
    whole: bool,
    used: Vec<Vec<Step>>,
}

/// Chooses a way, or takes the one of a position again.
pub(super) fn choose<'a>(
    desk: &'a Desk<'a>,
    wish: &Wish<'_>,
    position: Option<Position>,
) -> Result<Chosen<'a>> {
    if wish.condition == Condition::Nothing {
        return Ok(Chosen::new(Nothing));
    }
    match position {
        None => fresh(desk, wish),
        Some(Position::Number(after)) => by_number(desk, wish, Some(after)),
        Some(Position::Id(after)) => Ok(by_id(desk, wish, Some(&after))),
        Some(Position::Stamp { seconds, number }) => {
            Ok(Chosen::new(ByStamp::new(desk, wish.stamps, Some((seconds, number)))))
        }
        Some(Position::Path { leaf, sort, number }) => {
            let found = numbered_leaf(&wish.condition, leaf).ok_or_else(continuation::foreign)?;
            if let Some(chosen) = by_path(desk, wish, leaf, found, Some((sort.clone(), number.0)))? {
                return Ok(chosen);
            }
            let leaf = (leaf, found.clone());
            Ok(Chosen::new(Remaining::new(desk, leaf, (sort, number), None)))
        }
        Some(Position::Remaining { leaf, sort, number, scanned }) => {
            let found = numbered_leaf(&wish.condition, leaf).ok_or_else(continuation::foreign)?;
            let leaf = (leaf, found.clone());
            Ok(Chosen::new(Remaining::new(desk, leaf, (sort, number), Some(scanned))))
        }
        Some(Position::Ranked(_)) => Err(continuation::foreign()),
    }
}

fn fresh<'a>(desk: &'a Desk<'a>, wish: &Wish<'_>) -> Result<Chosen<'a>> {
    if let (Some(keys), Some(ids)) = (&wish.keys, wish.ids)
        && keys.len().saturating_mul(ids.len()) <= desk.work.tuning.lookups
        && keys.iter().all(|key| key.len() >= desk.container.definition.partition_key.paths.len())
    {
        return Ok(by_id(desk, wish, None));
    }
    if let Some(chosen) = covered(desk, wish)? {
        return Ok(chosen);
    }
    if wish.purpose == Purpose::Count && wish.exact {
        let built = match sparse_part(desk, &wish.condition)? {
            Some(part) => build_part(desk, &wish.condition, part)?,
            None => build(desk, &wish.condition, Thorough::Yes)?,
        };
        if let Some(built) = built {
            return Ok(numbers(desk, wish, built, None));
        }
    }
    if wish.stamps == Stamps::default()
        && let Some(built) = only_list(desk, &wish.condition)?
    {
        return Ok(numbers(desk, wish, built, None));
    }
    let small = small(desk, &wish.condition, desk.work.tuning.probe)?;
    if wish.stamps != Stamps::default() {
        let fewer = small.map_or(desk.work.tuning.probe, |(estimate, _)| estimate);
        if count_stamps(desk, wish.stamps, fewer)? < fewer {
            return Ok(Chosen::new(ByStamp::new(desk, wish.stamps, None)));
        }
    }
    if let Some((_, part)) = small
        && let Some(built) = build_part(desk, &wish.condition, part)?
    {
        return Ok(numbers(desk, wish, built, None));
    }
    large(desk, wish)
}

/// A stream of what a condition admits that has one part, in the order of numbers: long or short, there is nothing to compare.
fn only_list<'a>(desk: &'a Desk<'a>, condition: &Condition) -> Result<Option<Built<'a>>> {
    let is_one = !matches!(condition, Condition::All(_));
    if is_one && lists_in_order(condition, desk.work.tuning.streams) {
        build(desk, condition, Thorough::No)
    } else {
        Ok(None)
    }
}

/// The smallest part of a condition, if the index lists it and it has fewer than `most` items.
fn small<'c>(
    desk: &Desk<'_>,
    condition: &'c Condition,
    most: usize,
) -> Result<Option<(usize, &'c Condition)>> {
    let mut smallest: Option<(usize, &Condition)> = None;
    for part in equalities_first(desk, conjuncts(condition)) {
        let most = smallest.map_or(most, |(known, _)| known);
        if let Some(estimate) = estimate(desk, part, most)?.filter(|estimate| *estimate < most) {
            smallest = Some((estimate, part));
        }
    }
    Ok(smallest)
}

/// The smallest part of a condition, unless all parts are large. None is counted much further than the smallest.
fn smallest<'c>(desk: &Desk<'_>, condition: &'c Condition) -> Result<Option<(usize, &'c Condition)>> {
    let mut most = desk.work.tuning.probe.max(1);
    loop {
        let small = small(desk, condition, most)?;
        if small.is_some() || most >= desk.work.tuning.sort_probe {
            return Ok(small);
        }
        most = most.saturating_mul(ENTRIES_FOR_AN_ITEM);
    }
}

/// Equalities are mostly smaller than ranges, and what is known to be small keeps others from being counted far.
fn equalities_first<'c>(desk: &Desk<'_>, mut parts: Vec<&'c Condition>) -> Vec<&'c Condition> {
    parts.sort_by_key(|part| !lists_in_order(part, desk.work.tuning.streams));
    parts
}

/// The smallest part of a condition, if it is cheaper to look at its items than to collect those of a range first: a count must
/// not walk through a container for the few items of one partition key. Equalities are not collected but jumped along.
fn sparse_part<'c>(desk: &Desk<'_>, condition: &'c Condition) -> Result<Option<&'c Condition>> {
    let parts = conjuncts(condition);
    let is_range = |part: &&Condition| !lists_in_order(part, desk.work.tuning.streams);
    if parts.len() == 1 || !parts.iter().any(is_range) {
        return Ok(None);
    }
    let Some((items, smallest)) = smallest(desk, condition)? else { return Ok(None) };
    let most = items.saturating_mul(PROBED_FOR_AN_ITEM);
    for range in parts.into_iter().filter(is_range).filter(|part| !std::ptr::eq(*part, smallest)) {
        if estimate(desk, range, most)?.is_none_or(|entries| entries >= most) {
            return Ok(Some(smallest));
        }
    }
    Ok(None)
}

/// A stream of what a part of a condition admits.
fn build_part<'a>(desk: &'a Desk<'a>, condition: &Condition, part: &Condition) -> Result<Option<Built<'a>>> {
    let built = build(desk, part, Thorough::No)?;
    Ok(built.map(|built| Built { whole: built.whole && std::ptr::eq(condition, part), ..built }))
}

/// Nothing that the index could list is small.
fn large<'a>(desk: &'a Desk<'a>, wish: &Wish<'_>) -> Result<Chosen<'a>> {
    if lists_in_order(&wish.condition, desk.work.tuning.streams)
        && let Some(built) = build(desk, &wish.condition, Thorough::No)?
    {
        return Ok(numbers(desk, wish, built, None));
    }
    if wish.keys.is_some() || wish.range.is_some() {
        return Ok(by_id(desk, wish, None));
    }
    if wish.stamps != Stamps::default() {
        return Ok(Chosen::new(ByStamp::new(desk, wish.stamps, None)));
    }
    for (number, leaf) in leaves(&wish.condition) {
        if is_narrow(leaf)
            && let Some(chosen) = by_path(desk, wish, number, leaf, None)?
        {
            return Ok(chosen);
        }
    }
    Ok(Chosen::new(Everything::new(desk, None)))
}

/// The way along one path whose values alone answer the query: what else the filter says, it says of that path too.
fn covered<'a>(desk: &'a Desk<'a>, wish: &Wish<'_>) -> Result<Option<Chosen<'a>>> {
    if wish.references.whole || wish.references.paths.len() > 1 {
        return Ok(None);
    }
    let Some(path) = wish.references.paths.first() else {
        // Nothing is read but whether the item is there.
        return match &wish.condition {
            Condition::Leaf(leaf) if wish.exact && leaf.is_single() => by_path(desk, wish, 0, leaf, None),
            _ => Ok(None),
        };
    };
    let (Some(names), true) = (names(path), wish.unscoped) else { return Ok(None) };
    if names == [Step::Name("_ts".to_owned())] && wish.purpose != Purpose::Show {
        let source = Box::new(ByStamp::new(desk, wish.stamps, None));
        return Ok(Some(Chosen { source, exact: false, covers: Some(path.clone()), used: Vec::new() }));
    }
    match &wish.condition {
        Condition::Leaf(leaf) if leaf.path == names => by_path(desk, wish, 0, leaf, None),
        Condition::Everything if wish.purpose != Purpose::Show => {
            by_path(desk, wish, 0, &Leaf::any(names), None)
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

fn by_id<'a>(desk: &'a Desk<'a>, wish: &Wish<'_>, after: Option<&[u8]>) -> Chosen<'a> {
    let range = wish.range.as_ref().unwrap_or(&desk.partition.range);
    Chosen::new(ById::new(desk, range, wish.keys.as_deref(), wish.ids, after))
}

fn by_path<'a>(
    desk: &'a Desk<'a>,
    wish: &Wish<'_>,
    number: u16,
    leaf: &Leaf,
    after: Option<(Vec<u8>, u64)>,
) -> Result<Option<Chosen<'a>>> {
    let start = after.clone().map(|(sort, rank)| Start { sort, rank });
    let Some(walk) = PathWalk::open(desk, leaf, Direction::Forward, start)? else { return Ok(None) };
    let whole = matches!(&wish.condition, Condition::Leaf(only) if only == leaf)
        || wish.condition == Condition::Everything;
    let alone = !wish.references.whole && wish.references.paths.len() <= 1 && leaf.is_single();
    let covers = match wish.references.paths.first() {
        None => Some(Vec::new()).filter(|_| whole && wish.exact),
        Some(path) => names(path).filter(|path| *path == leaf.path && wish.unscoped).map(|_| path.clone()),
    };
    Ok(Some(Chosen {
        source: Box::new(ByPath::new(walk, number, after)),
        exact: whole && wish.exact,
        covers: covers.filter(|_| alone),
        used: vec![leaf.path.clone()],
    }))
}

/// The best way in the order of numbers.
fn by_number<'a>(desk: &'a Desk<'a>, wish: &Wish<'_>, after: Option<ItemNumber>) -> Result<Chosen<'a>> {
    let built = match only_list(desk, &wish.condition)? {
        Some(built) => Some(built),
        None => match small(desk, &wish.condition, desk.work.tuning.probe)? {
            Some((_, part)) => build_part(desk, &wish.condition, part)?,
            None => build(desk, &wish.condition, Thorough::No)?,
        },
    };
    Ok(match built {
        Some(built) => numbers(desk, wish, built, after),
        None => Chosen::new(Everything::new(desk, after)),
    })
}

fn numbers<'a>(
    desk: &'a Desk<'a>,
    wish: &Wish<'_>,
    built: Built<'a>,
    after: Option<ItemNumber>,
) -> Chosen<'a> {
    let Built { stream, whole, used } = built;
    // Outliers are in no stream; each of them is asked.
    let stream: Box<dyn Numbers + 'a> = match &desk.index {
        Some(index) => {
            Box::new(Either::new(vec![stream, Box::new(desk.outliers(index, Direction::Forward))]))
        }
        None => stream,
    };
    let exact = whole && wish.exact;
    Chosen { source: Box::new(ByNumber::new(stream, after)), exact, covers: None, used }
}

/// Whether every part of a condition must be in a stream, however much there is to collect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Thorough {
    Yes,
    No,
}

/// A stream of the items that a condition admits, or of more; none if the index cannot list them.
fn build<'a>(desk: &'a Desk<'a>, condition: &Condition, thorough: Thorough) -> Result<Option<Built<'a>>> {
    match condition {
        Condition::Everything | Condition::Nothing => Ok(None),
        Condition::Leaf(leaf) => build_leaf(desk, leaf, thorough),
        Condition::All(parts) => {
            let (mut streams, mut used, mut whole) = (Vec::new(), Vec::new(), true);
            for part in parts {
                match build(desk, part, thorough)? {
                    Some(built) => {
                        streams.push(built.stream);
                        used.extend(built.used);
                        whole &= built.whole;
                    }
                    None if thorough == Thorough::Yes => return Ok(None),
                    None => whole = false,
                }
            }
            let stream: Box<dyn Numbers + 'a> = Box::new(Both(streams));
            Ok((!used.is_empty()).then_some(Built { stream, whole, used }))
        }
        Condition::Any(parts) => {
            let (mut streams, mut used, mut whole) = (Vec::new(), Vec::new(), true);
            for part in parts {
                let Some(built) = build(desk, part, thorough)? else { return Ok(None) };
                streams.push(built.stream);
                used.extend(built.used);
                whole &= built.whole;
            }
            Ok(Some(Built { stream: Box::new(Either::new(streams)), whole, used }))
        }
    }
}

fn build_leaf<'a>(desk: &'a Desk<'a>, leaf: &Leaf, thorough: Thorough) -> Result<Option<Built<'a>>> {
    let Some((index, path)) = desk.indexed(&leaf.path) else { return Ok(None) };
    let mut streams: Vec<Box<dyn Numbers + 'a>> = Vec::new();
    let points: Vec<_> = leaf.standing.scalars.iter().filter_map(Interval::as_point).collect();
    if points.len() == leaf.standing.scalars.len() && points.len() <= desk.work.tuning.streams {
        for term in points.iter().filter_map(|point| Term::new(point.view())) {
            let mut prefix = index.path_prefix(&path);
            prefix.extend_from_slice(term.as_bytes());
            streams.push(Box::new(Entries::new(desk, prefix, Direction::Forward, !term.cut)));
        }
    } else {
        let tuning = &desk.work.tuning;
        let most =
            if thorough == Thorough::Yes { tuning.collected_for_all } else { tuning.collected_for_page };
        let Some(collected) = collect(desk, index, &path, leaf, most)? else { return Ok(None) };
        streams.push(Box::new(collected));
    }
    if !leaf.standing.kinds.is_empty() {
        let kinds = leaf.standing.kinds;
        match desk.of_kinds(index, &path, kinds, Direction::Forward)? {
            Some(stream) => streams.push(stream),
            None => return Ok(None),
        }
    }
    let stream = Box::new(Either::new(streams));
    Ok(Some(Built { stream, whole: true, used: vec![leaf.path.clone()] }))
}

/// The items that have a scalar of the leaf's ranges; none if there are more than `most`.
fn collect(
    desk: &Desk<'_>,
    index: &Index,
    path: &PathKey,
    leaf: &Leaf,
    most: usize,
) -> Result<Option<Collected>> {
    let prefix = index.path_prefix(path);
    let mut candidates = Vec::new();
    for interval in &leaf.standing.scalars {
        for entry in desk.entries(scalars(&prefix, interval), prefix.len(), Direction::Forward) {
            let entry = entry?;
            desk.work.look()?;
            if !desk.is_living(entry.number, &entry.mark)? {
                continue;
            }
            if candidates.len() == most {
                return Ok(None);
            }
            desk.work.touch();
            candidates.push(Candidate { rank: entry.number.0, exact: entry.scalar()?.is_some() });
        }
    }
    Ok(Some(Collected::new(candidates)))
}

/// How many living items the index would list for a condition, up to `most`; none if it cannot list them.
pub(super) fn estimate(desk: &Desk<'_>, condition: &Condition, most: usize) -> Result<Option<usize>> {
    desk.work.aside(|_| count(desk, condition, most))
}

fn count(desk: &Desk<'_>, condition: &Condition, most: usize) -> Result<Option<usize>> {
    match condition {
        Condition::Everything | Condition::Nothing => Ok(None),
        Condition::Leaf(leaf) => count_leaf(desk, leaf, most),
        Condition::All(parts) => {
            let mut smallest = None;
            for part in equalities_first(desk, parts.iter().collect()) {
                smallest = count(desk, part, smallest.unwrap_or(most))?.or(smallest);
            }
            Ok(smallest)
        }
        Condition::Any(parts) => {
            let mut sum = 0;
            for part in parts {
                let Some(count) = count(desk, part, most)? else { return Ok(None) };
                sum += count;
                if sum >= most {
                    return Ok(Some(most));
                }
            }
            Ok(Some(sum))
        }
    }
}

/// Entries are counted, not items: an item may have several of them in an array, and that is near enough.
fn count_leaf(desk: &Desk<'_>, leaf: &Leaf, most: usize) -> Result<Option<usize>> {
    let Some((index, path)) = desk.indexed(&leaf.path) else { return Ok(None) };
    let prefix = index.path_prefix(&path);
    let mut count = 0;
    for interval in &leaf.standing.scalars {
        for entry in desk.entries(scalars(&prefix, interval), prefix.len(), Direction::Forward) {
            let entry = entry?;
            desk.work.look()?;
            count += usize::from(desk.is_living(entry.number, &entry.mark)?);
            if count >= most || desk.work.is_spent() {
                return Ok(Some(count.min(most)));
            }
        }
    }
    if leaf.standing.kinds.is_empty() {
        return Ok(Some(count));
    }
    let kinds = desk.of_kinds(index, &path, leaf.standing.kinds, Direction::Forward)?;
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

/// How many living items were written in a range of time, up to `most`.
fn count_stamps(desk: &Desk<'_>, stamps: Stamps, most: usize) -> Result<usize> {
    desk.work.aside(|_| {
        let mut source = ByStamp::new(desk, stamps, None);
        let mut count = 0;
        while count < most && matches!(source.next()?, Coming::Item(_)) {
            count += 1;
        }
        Ok(count)
    })
}

/// The parts that must all hold.
pub(super) fn conjuncts(condition: &Condition) -> Vec<&Condition> {
    match condition {
        Condition::All(parts) => parts.iter().collect(),
        other => vec![other],
    }
}

/// The leaves that must all hold, with their numbers.
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

/// Whether the index has what a condition admits in the order of numbers, however much it is.
fn lists_in_order(condition: &Condition, streams: usize) -> bool {
    match condition {
        Condition::Everything | Condition::Nothing => false,
        Condition::Leaf(leaf) => {
            let scalars = &leaf.standing.scalars;
            leaf.standing.kinds.is_empty()
                && scalars.len() <= streams
                && scalars.iter().all(|interval| interval.as_point().is_some())
        }
        Condition::All(parts) => parts.iter().any(|part| lists_in_order(part, streams)),
        Condition::Any(parts) => parts.iter().all(|part| lists_in_order(part, streams)),
    }
}

/// Whether a leaf speaks of less than whole types: reading everything is no worse than following those item by item.
fn is_narrow(leaf: &Leaf) -> bool {
    let within_type = |interval: &Interval| match (interval.low.as_slice(), interval.high.as_slice()) {
        ([low], [high]) => interval.as_point().is_some() && low < high,
        ([low, ..], [high, rest @ ..]) => high == low || (*high == low + 1 && rest.is_empty()),
        _ => false,
    };
    leaf.standing.kinds.is_empty() && leaf.standing.scalars.iter().all(within_type)
}

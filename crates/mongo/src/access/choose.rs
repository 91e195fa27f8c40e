//! Which way to take through a collection.
//!
//! A filter that names an `_id` needs no choice. Otherwise the language says which indexes can serve the filter or the sort
//! ([`mql::index::plan`]), and the living entries in their spans are counted, up to a bound: the way with the fewest wins. One
//! that comes in the wanted order wins over one that does not unless that one is far shorter, because the other must be
//! read whole before the first document can be shown.

use std::sync::Arc;

use bson::{Collation, Document, Value};
use engine::collection::{Collection, CollectionIndex, Reading};
use mql::filter::{Comparison, Filter, Node, Test};
use mql::index::{self, Available, Candidate, Hint};
use mql::sort::{self, Sort};
use storage::Direction;

use super::walk::{Walk, Way};
use crate::error::Result;

/// How many entries are counted at most to compare two ways.
const PROBE_MAX: usize = 256;
/// How much longer a way may be that comes in the wanted order.
const SORT_FACTOR: usize = 8;

/// A way that was chosen.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) way: Way,
    /// Whether documents come in the wanted order.
    pub(crate) sorted: bool,
    /// The index that is used, as explain shows it.
    pub(crate) index: Option<Used>,
    /// The others that were considered.
    pub(crate) rejected: Vec<Used>,
}

/// An index as explain shows it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Used {
    /// The whole definition.
    pub(crate) spec: Document,
    pub(crate) bounds: Document,
    pub(crate) direction: Direction,
    pub(crate) multikey: bool,
}

impl Plan {
    /// The walk along the way.
    pub(crate) fn into_walk(self, collection: &Arc<Collection>, filter: &Arc<Filter>) -> Walk {
        Walk::new(Some(Arc::clone(collection)), Arc::clone(filter), self.way)
    }

    fn plain(way: Way, sorted: bool) -> Plan {
        Plan { way, sorted, index: None, rejected: Vec::new() }
    }
}

/// The one `_id` that can match, if the filter names it.
pub(crate) fn named_id(filter: &Filter, collation: &Collation) -> Option<Value> {
    let id = match filter.root() {
        Node::And(nodes) => nodes.iter().find_map(equal_id)?,
        node => equal_id(node)?,
    };
    let comparable = collation.is_simple() || !may_hold_text(id);
    (comparable && !matches!(id, Value::Array(_) | Value::Regex(_))).then(|| id.clone())
}

fn equal_id(node: &Node) -> Option<&Value> {
    match node {
        Node::Field { path, test: Test::Compare(Comparison::Equal, value) } => {
            (path.len() == 1 && path.first() == "_id").then_some(value)
        }
        _ => None,
    }
}

fn may_hold_text(value: &Value) -> bool {
    matches!(value, Value::String(_) | Value::Symbol(_) | Value::Document(_) | Value::Array(_))
}

/// Chooses a way. `limit` is how many documents are wanted at most.
pub(crate) fn choose(
    reading: &Reading<'_>,
    collection: &Arc<Collection>,
    filter: &Filter,
    sort: Option<&Sort>,
    limit: Option<u64>,
    collation: &Collation,
    hint: Option<&Hint>,
) -> Result<Plan> {
    if let Some(Hint::Natural(direction)) = hint {
        return Ok(Plan::plain(Way::Natural(direction_of(*direction)), sort.is_none()));
    }
    if let Some(direction) = sort.and_then(Sort::natural) {
        return Ok(Plan::plain(Way::Natural(direction_of(direction)), true));
    }
    let simple = Collation::simple();
    let same_collation = collection.definition.collation == *collation;
    if hint.is_none()
        && let Some(id) = named_id(filter, if same_collation { &simple } else { collation })
    {
        return Ok(Plan::plain(Way::Id(id), true));
    }
    let list = reading.indexes(collection)?;
    let usable: Vec<&CollectionIndex> =
        list.iter().filter(|index| index.is_searchable() && !index.spec.is_hidden()).collect();
    let available: Vec<Available<'_>> = usable
        .iter()
        .map(|index| Available { spec: &index.spec, multikey: index.multikey, cut: index.cut })
        .collect();
    let candidates = index::plan(filter, sort, collation, &available, hint)?;
    let mut best: Option<(usize, usize)> = None;
    for (at, candidate) in candidates.iter().enumerate() {
        let cost = cost(reading, collection, usable[candidate.index], candidate, sort.is_some(), limit)?;
        if best.is_none_or(|(_, least)| cost < least) {
            best = Some((at, cost));
        }
    }
    let Some((at, _)) = best else {
        return Ok(Plan::plain(Way::Natural(Direction::Forward), sort.is_none()));
    };
    let chosen = &candidates[at];
    let others = candidates.iter().enumerate().filter(|(other, _)| *other != at);
    let direction = direction_of(chosen.direction);
    Ok(Plan {
        way: Way::Index { number: usable[chosen.index].number, spans: in_order(chosen), direction },
        sorted: sort.is_none() || chosen.serves_sort,
        index: Some(used(usable[chosen.index], chosen)),
        rejected: others.map(|(_, candidate)| used(usable[candidate.index], candidate)).collect(),
    })
}

/// The spans in the order in which they are walked.
fn in_order(candidate: &Candidate) -> Vec<index::Span> {
    let mut spans = candidate.spans.clone();
    if candidate.direction == sort::Direction::Descending {
        spans.reverse();
    }
    spans
}

/// How many entries will be looked at, roughly. Counting stops early, so large costs are all alike.
fn cost(
    reading: &Reading<'_>,
    collection: &Arc<Collection>,
    index: &CollectionIndex,
    candidate: &Candidate,
    wants_order: bool,
    limit: Option<u64>,
) -> Result<usize> {
    let mut entries = 0;
    for span in &candidate.spans {
        let room = PROBE_MAX - entries;
        if room == 0 {
            break;
        }
        let span = (&span.lower[..], &span.upper[..]);
        entries += reading.index(collection, index.number, span, None, Direction::Forward, room)?.len();
    }
    let ends_early = candidate.serves_sort && wants_order;
    Ok(match limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX)) {
        Some(limit) if ends_early => entries.min(limit),
        _ if ends_early => entries / SORT_FACTOR,
        _ => entries,
    })
}

fn used(index: &CollectionIndex, candidate: &Candidate) -> Used {
    Used {
        spec: index.spec.to_document(),
        bounds: candidate.bounds.clone(),
        direction: direction_of(candidate.direction),
        multikey: index.multikey,
    }
}

fn direction_of(direction: sort::Direction) -> Direction {
    match direction {
        sort::Direction::Ascending => Direction::Forward,
        sort::Direction::Descending => Direction::Backward,
    }
}

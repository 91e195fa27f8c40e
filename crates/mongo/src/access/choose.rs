//! Which way to take through a collection.
//!
//! A filter that names an `_id` needs no choice. Otherwise the language says which indexes can serve the filter or the sort
//! ([`mql::index::plan`]), and the living entries in their spans are counted, up to a bound: the way with the fewest wins. One
//! that comes in the wanted order wins over one that does not unless that one is far shorter, because the other must be
//! read whole before the first document can be shown.
//!
//! An `$or` whose branches each have an index can be answered by one leg of the way for each branch, if no single index is
//! shorter for all of them.

use std::sync::Arc;

use bson::{Collation, Document, Value};
use engine::collection::{Collection, CollectionIndex, IndexList, Reading};
use mql::Code;
use mql::filter::{Comparison, Filter, Measure, Node, Test};
use mql::index::{self, Available, Candidate, Hint, PartKind};
use mql::sort::{self, Sort};
use storage::Direction;

use super::walk::{Leg, Walk, Way};
use crate::error::{Error, Result};
use crate::room::Room;

/// How many entries are counted at most to compare two ways.
const PROBE_MAX: usize = 256;
/// The same for one branch of many.
const PROBE_LEAST: usize = 16;
/// How much longer a way may be that comes in the wanted order.
const SORT_FACTOR: usize = 8;

/// A way that was chosen.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) way: Way,
    /// Whether documents come in the wanted order.
    pub(crate) sorted: bool,
    /// Whether the entries on the way are exactly the documents, each once: to count them none has to be read.
    pub(crate) covered: bool,
    /// The indexes that are used, as explain shows them: one for each leg of the way.
    pub(crate) indexes: Vec<Used>,
    /// The others that were considered.
    pub(crate) rejected: Vec<Used>,
}

/// An index and what is read of it, as explain shows it.
#[derive(Debug, Clone)]
pub(crate) struct Used {
    list: Arc<IndexList>,
    number: u32,
    pub(crate) bounds: Document,
    pub(crate) direction: Direction,
}

impl Used {
    /// The index; none never, as its list goes with it.
    pub(crate) fn index(&self) -> Option<&CollectionIndex> {
        self.list.get(self.number)
    }
}

impl Plan {
    /// The walk along the way, which counts as a use of its indexes. `limit` is how many documents are wanted at most.
    pub(crate) fn into_walk(
        self,
        room: &Room,
        collection: &Arc<Collection>,
        filter: &Arc<Filter>,
        limit: Option<u64>,
    ) -> Walk {
        let uses = room.index_uses();
        room.meter().goes(collection, &self.way);
        match &self.way {
            Way::Nothing | Way::Natural(_) => {}
            Way::Id(_) => uses.note_id(collection),
            Way::Indexes(legs) => legs.iter().for_each(|leg| uses.note(collection, leg.index)),
        }
        Walk::new(Some(Arc::clone(collection)), Arc::clone(filter), self.way, limit)
    }

    fn plain(way: Way, sorted: bool) -> Plan {
        Plan { way, sorted, covered: false, indexes: Vec::new(), rejected: Vec::new() }
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
    check_near(filter, &list)?;
    let probe = Probe {
        reading,
        collection,
        list: &list,
        usable: list.iter().filter(|index| index.is_searchable() && !index.spec.is_hidden()).collect(),
        wants_order: sort.is_some(),
        limit,
    };
    let available = probe.available();
    let mut candidates = index::plan(filter, sort, collation, &available, hint)?;
    let branches = match hint {
        None => index::plan_branches(filter, collation, &available),
        Some(_) => None,
    };
    let best = match (candidates.len(), branches) {
        // There is nothing to compare it with.
        (1, None) => 0,
        (_, branches) => {
            let best = probe.cheapest(&candidates, PROBE_MAX)?;
            if let Some(branches) = branches
                && let Some(plan) = probe.by_branches(branches, best.map(|(_, cost)| cost))?
            {
                return Ok(plan);
            }
            let Some((best, _)) = best else {
                return Ok(Plan::plain(Way::Natural(Direction::Forward), sort.is_none()));
            };
            best
        }
    };
    let chosen = candidates.remove(best);
    let sorted = sort.is_none() || chosen.serves_sort;
    let covered = chosen.exact && !probe.usable[chosen.index].multikey;
    let (leg, used) = probe.take(chosen);
    Ok(Plan {
        way: Way::Indexes(vec![leg]),
        sorted,
        covered,
        indexes: vec![used],
        rejected: candidates.into_iter().map(|candidate| probe.take(candidate).1).collect(),
    })
}

/// The nearest on the globe are found by an index that knows places there, or not at all, as in MongoDB. In the plane there is
/// no index that could be asked for: they are looked for among all documents.
fn check_near(filter: &Filter, list: &IndexList) -> Result<()> {
    let Some(near) = filter.near().filter(|near| near.measure() != Measure::Plane) else { return Ok(()) };
    let serves = |part: &index::Part| part.kind == PartKind::Sphere && part.path == *near.path();
    let usable = |index: &&CollectionIndex| index.is_searchable() && !index.spec.is_hidden();
    if list.iter().filter(usable).any(|index| index.spec.parts().iter().any(serves)) {
        return Ok(());
    }
    let text = format!("unable to find index for $geoNear query: '{}' has no 2dsphere index", near.path());
    Err(Error::new(Code::NO_QUERY_EXECUTION_PLANS, text))
}

/// What it takes to compare ways through one collection.
struct Probe<'a> {
    reading: &'a Reading<'a>,
    collection: &'a Arc<Collection>,
    list: &'a Arc<IndexList>,
    /// The indexes that can be used.
    usable: Vec<&'a CollectionIndex>,
    wants_order: bool,
    limit: Option<u64>,
}

impl Probe<'_> {
    fn available(&self) -> Vec<Available<'_>> {
        let usable = self.usable.iter();
        usable
            .map(|index| Available { spec: &index.spec, multikey: index.multikey, cut: index.cut })
            .collect()
    }

    /// The candidate with the fewest entries, and its cost.
    fn cheapest(&self, candidates: &[Candidate], most: usize) -> Result<Option<(usize, usize)>> {
        let mut best: Option<(usize, usize)> = None;
        for (at, candidate) in candidates.iter().enumerate() {
            let cost = self.cost(candidate, most)?;
            if best.is_none_or(|(_, least)| cost < least) {
                best = Some((at, cost));
            }
        }
        Ok(best)
    }

    /// The way through one index for each branch of an `$or`; none if that costs no less than the best way through one index
    /// for all of them.
    fn by_branches(&self, branches: Vec<Vec<Candidate>>, best: Option<usize>) -> Result<Option<Plan>> {
        let most = (PROBE_MAX / branches.len().max(1)).max(PROBE_LEAST);
        let (mut chosen, mut cost) = (Vec::new(), 0);
        for mut candidates in branches {
            let Some((at, least)) = self.cheapest(&candidates, most)? else { return Ok(None) };
            cost += least;
            // A branch that nothing can meet needs no look.
            chosen.extend(Some(candidates.swap_remove(at)).filter(|candidate| !candidate.spans.is_empty()));
        }
        if best.is_some_and(|best| best <= cost) {
            return Ok(None);
        }
        let (legs, indexes) = chosen.into_iter().map(|candidate| self.take(candidate)).unzip();
        Ok(Some(Plan {
            way: Way::Indexes(legs),
            sorted: !self.wants_order,
            covered: false,
            indexes,
            rejected: Vec::new(),
        }))
    }

    /// How many entries will be looked at, roughly. Counting stops early, so large costs are all alike.
    fn cost(&self, candidate: &Candidate, most: usize) -> Result<usize> {
        let index = self.usable[candidate.index];
        let mut entries = 0;
        for span in &candidate.spans {
            let room = most.saturating_sub(entries);
            if room == 0 {
                break;
            }
            let span = (&span.lower[..], &span.upper[..]);
            let hits =
                self.reading.index(self.collection, index.number, span, None, Direction::Forward, room)?;
            entries += hits.len();
        }
        let ends_early = candidate.serves_sort && self.wants_order;
        Ok(match self.limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX)) {
            Some(limit) if ends_early => entries.min(limit),
            _ if ends_early => entries / SORT_FACTOR,
            _ => entries,
        })
    }

    /// The candidate as a part of a way, its spans in the order in which they are walked, and as explain shows it.
    fn take(&self, candidate: Candidate) -> (Leg, Used) {
        let Candidate { index, mut spans, bounds, direction, .. } = candidate;
        if direction == sort::Direction::Descending {
            spans.reverse();
        }
        let (number, direction) = (self.usable[index].number, direction_of(direction));
        let used = Used { list: Arc::clone(self.list), number, bounds, direction };
        (Leg { index: number, spans, direction }, used)
    }
}

fn direction_of(direction: sort::Direction) -> Direction {
    match direction {
        sort::Direction::Ascending => Direction::Forward,
        sort::Direction::Descending => Direction::Backward,
    }
}

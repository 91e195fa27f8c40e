//! Chooses the access path of a query on one collection.
//!
//! A filter that names an `_id` needs no choice. Otherwise [`mql::index::plan`] lists the indexes that can serve the filter or the
//! sort, and the planner counts the living entries in their spans, up to a bound: the index with the fewest wins. An index in the
//! wanted order wins over another one unless that is far cheaper, because without the order all documents must be read and sorted
//! before the first can be returned.
//!
//! An `$or` whose branches each have an index can be answered by one index scan for each branch, if no single index is cheaper
//! for all of them.

use std::sync::Arc;

use bson::{Collation, Document, Value};
use mql::Code;
use mql::filter::{Comparison, Filter, Measure, Node, Test};
use mql::index::{self, Available, Candidate, Hint, PartKind};
use mql::sort::{self, Sort};
use storage::Direction;

use super::access_path::{AccessPath, IndexScan};
use super::scan::DocumentScan;
use crate::collection::{Collection, CollectionIndex, IndexList, Reading};
use crate::types::error::Result;

/// How many entries are counted at most to compare two plans.
const PROBE_MAX: usize = 256;
/// The least bound of the same kind, for one branch of many.
const PROBE_LEAST: usize = 16;
/// How many times as many entries a plan in the wanted order may read.
const SORT_FACTOR: usize = 8;

/// A query over a collection.
#[derive(Debug, Clone, Copy)]
pub struct PlanRequest<'a> {
    /// The conditions that documents meet.
    pub filter: &'a Filter,
    /// The order that is wanted.
    pub sort: Option<&'a Sort>,
    /// How many documents are wanted at most.
    pub limit: Option<u64>,
    /// How strings are compared.
    pub collation: &'a Collation,
    /// The client's hint.
    pub hint: Option<&'a Hint>,
}

/// A chosen access path, and its properties.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The documents that are read.
    pub path: AccessPath,
    /// Whether documents come in the wanted order.
    pub sorted: bool,
    /// Whether the entries on the path are exactly the documents, each once: a count then reads no document.
    pub covered: bool,
    /// The indexes that are used, as `explain` shows them: one for each index scan.
    pub indexes: Vec<PlannedIndex>,
    /// The others that were considered.
    pub rejected: Vec<PlannedIndex>,
}

/// An index and the part of it that is read, as `explain` shows it.
#[derive(Debug, Clone)]
pub struct PlannedIndex {
    list: Arc<IndexList>,
    number: u32,
    /// The bounds of each field.
    pub bounds: Document,
    /// The direction in which it is read.
    pub direction: Direction,
}

impl PlannedIndex {
    /// Returns the index; always some, as its list goes with it.
    pub fn index(&self) -> Option<&CollectionIndex> {
        self.list.get(self.number)
    }
}

impl Plan {
    /// Begins a scan along the path. `limit` is how many documents are wanted at most.
    pub fn into_scan(
        self,
        collection: &Arc<Collection>,
        filter: &Arc<Filter>,
        limit: Option<u64>,
    ) -> DocumentScan {
        DocumentScan::new(Some(Arc::clone(collection)), Arc::clone(filter), self.path, limit)
    }

    fn without_index(path: AccessPath, sorted: bool) -> Plan {
        Plan { path, sorted, covered: false, indexes: Vec::new(), rejected: Vec::new() }
    }
}

/// Returns the one `_id` that can match, if the filter names it.
pub fn named_id(filter: &Filter, collation: &Collation) -> Option<Value> {
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

/// Chooses how a collection is read.
pub fn plan(reading: &Reading<'_>, collection: &Arc<Collection>, request: &PlanRequest<'_>) -> Result<Plan> {
    let PlanRequest { filter, sort, limit, collation, hint } = *request;
    if let Some(Hint::Natural(direction)) = hint {
        return Ok(Plan::without_index(AccessPath::CollectionScan(direction_of(*direction)), sort.is_none()));
    }
    if let Some(direction) = sort.and_then(Sort::natural) {
        return Ok(Plan::without_index(AccessPath::CollectionScan(direction_of(direction)), true));
    }
    let simple = Collation::simple();
    let same_collation = collection.definition.collation == *collation;
    if hint.is_none()
        && let Some(id) = named_id(filter, if same_collation { &simple } else { collation })
    {
        return Ok(Plan::without_index(AccessPath::Id(id), true));
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
        // A single candidate has nothing to be compared with.
        (1, None) => 0,
        (_, branches) => {
            let best = probe.cheapest(&candidates, PROBE_MAX)?;
            if let Some(branches) = branches
                && let Some(plan) = probe.by_branches(branches, best.map(|(_, cost)| cost))?
            {
                return Ok(plan);
            }
            let Some((best, _)) = best else {
                return Ok(Plan::without_index(
                    AccessPath::CollectionScan(Direction::Forward),
                    sort.is_none(),
                ));
            };
            best
        }
    };
    let chosen = candidates.remove(best);
    let sorted = sort.is_none() || chosen.serves_sort;
    let covered = chosen.exact && !probe.usable[chosen.index].multikey;
    let (scan, index) = probe.scan(chosen);
    Ok(Plan {
        path: AccessPath::IndexScans(vec![scan]),
        sorted,
        covered,
        indexes: vec![index],
        rejected: candidates.into_iter().map(|candidate| probe.scan(candidate).1).collect(),
    })
}

/// Refuses a search for the nearest points on the globe without an index on such points, as MongoDB does. In the plane there is
/// no such index: the search reads all documents.
fn check_near(filter: &Filter, list: &IndexList) -> Result<()> {
    let Some(near) = filter.near().filter(|near| near.measure() != Measure::Plane) else { return Ok(()) };
    let serves = |part: &index::Part| part.kind == PartKind::Sphere && part.path == *near.path();
    let usable = |index: &&CollectionIndex| index.is_searchable() && !index.spec.is_hidden();
    if list.iter().filter(usable).any(|index| index.spec.parts().iter().any(serves)) {
        return Ok(());
    }
    let text = format!("unable to find index for $geoNear query: '{}' has no 2dsphere index", near.path());
    Err(mql::Error::new(Code::NO_QUERY_EXECUTION_PLANS, text).into())
}

/// Compares candidates by counting living entries of one collection.
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

    /// Returns the candidate with the fewest entries, and its cost.
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

    /// Returns the plan with one index scan for each branch of an `$or`; `None` if that costs no less than the best single index
    /// for all of them.
    fn by_branches(&self, branches: Vec<Vec<Candidate>>, best: Option<usize>) -> Result<Option<Plan>> {
        let most = (PROBE_MAX / branches.len().max(1)).max(PROBE_LEAST);
        let (mut chosen, mut cost) = (Vec::new(), 0);
        for mut candidates in branches {
            let Some((at, least)) = self.cheapest(&candidates, most)? else { return Ok(None) };
            cost += least;
            // A branch that no document can meet needs no scan.
            chosen.extend(Some(candidates.swap_remove(at)).filter(|candidate| !candidate.spans.is_empty()));
        }
        if best.is_some_and(|best| best <= cost) {
            return Ok(None);
        }
        let (scans, indexes) = chosen.into_iter().map(|candidate| self.scan(candidate)).unzip();
        Ok(Some(Plan {
            path: AccessPath::IndexScans(scans),
            sorted: !self.wants_order,
            covered: false,
            indexes,
            rejected: Vec::new(),
        }))
    }

    /// Returns roughly how many entries will be read. Counting stops at a bound, so large costs compare as equal.
    fn cost(&self, candidate: &Candidate, most: usize) -> Result<usize> {
        let index = self.usable[candidate.index];
        let mut entries = 0;
        for span in &candidate.spans {
            let left = most.saturating_sub(entries);
            if left == 0 {
                break;
            }
            let span = (&span.lower[..], &span.upper[..]);
            let hits =
                self.reading.index(self.collection, index.number, span, None, Direction::Forward, left)?;
            entries += hits.len();
        }
        let ends_early = candidate.serves_sort && self.wants_order;
        Ok(match self.limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX)) {
            Some(limit) if ends_early => entries.min(limit),
            _ if ends_early => entries / SORT_FACTOR,
            _ => entries,
        })
    }

    /// Returns the scan of a candidate's index, its spans in the order in which they are read, and the index as `explain` shows
    /// it.
    fn scan(&self, candidate: Candidate) -> (IndexScan, PlannedIndex) {
        let Candidate { index, mut spans, bounds, direction, .. } = candidate;
        if direction == sort::Direction::Descending {
            spans.reverse();
        }
        let (number, direction) = (self.usable[index].number, direction_of(direction));
        let planned = PlannedIndex { list: Arc::clone(self.list), number, bounds, direction };
        (IndexScan { index: number, spans, direction }, planned)
    }
}

fn direction_of(direction: sort::Direction) -> Direction {
    match direction {
        sort::Direction::Ascending => Direction::Forward,
        sort::Direction::Descending => Direction::Backward,
    }
}

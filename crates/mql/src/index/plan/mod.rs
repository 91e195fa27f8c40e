//! The indexes that can answer a filter and serve a sort, and the spans of their keys.
//!
//! A candidate finds every matching document, and may find others: the executor checks the filter again, unless the
//! candidate is [`exact`](Candidate::exact). A document may be found more than once and counts once, at its first position.
//!
//! ```text
//! filter ── conditions on one field ──> set of keys (values.rs, set.rs)
//!        ── all conditions, one field of an index ──> constraint (constraint.rs)
//! index  ── constraints of its fields, first to last ──> spans (spans.rs), order (order.rs)
//! ```

mod constraint;
mod hint;
mod implication;
mod order;
mod set;
mod spans;
mod special;
mod values;

use bson::{Collation, Document};

pub use hint::Hint;

use super::IndexSpec;
use crate::error::Result;
use crate::filter::{Filter, Node};
use crate::sort::{Direction, Sort};
use values::Reader;

/// An index that a plan may use: ready, and not hidden.
#[derive(Debug, Clone, Copy)]
pub struct Available<'a> {
    /// Its specification.
    pub spec: &'a IndexSpec,
    /// Whether it has ever held a document with [`Entries::multikey`](super::Entries::multikey).
    pub multikey: bool,
    /// Whether it has ever held a document with [`Entries::cut`](super::Entries::cut).
    pub cut: bool,
}

/// A range of consecutive keys of an index.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// The first.
    pub lower: Vec<u8>,
    /// Behind the last.
    pub upper: Vec<u8>,
}

/// An index scan that can answer a filter.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The position of the index in the list.
    pub index: usize,
    /// Where to look, in the order of keys. No spans if nothing can match.
    pub spans: Vec<Span>,
    /// In which direction to read: keys and spans alike.
    pub direction: Direction,
    /// Whether documents then come in the order of the sort.
    pub serves_sort: bool,
    /// Whether every span holds a single key.
    pub point: bool,
    /// How many fields of the index the spans use.
    pub fields_used: usize,
    /// How many of these, from the first, are narrowed to single values.
    pub equalities: usize,
    /// Whether everything in the spans matches, so that the filter need not be checked again.
    pub exact: bool,
    /// The bounds as explain shows them.
    pub bounds: Document,
}

/// Returns all indexes that can help, the most promising first. With a hint that names an index, only that one; with
/// `$natural`, none.
pub fn plan(
    filter: &Filter,
    sort: Option<&Sort>,
    collation: &Collation,
    indexes: &[Available<'_>],
    hint: Option<&Hint>,
) -> Result<Vec<Candidate>> {
    let forced = match hint {
        None => None,
        Some(Hint::Natural(_)) => return Ok(Vec::new()),
        Some(hint) => Some(hint.find(indexes)?),
    };
    let conditions: Vec<&Node> = with_implied(filter.root().conjuncts()).collect();
    let mut candidates = Vec::new();
    for (number, index) in indexes.iter().enumerate() {
        if forced.is_some_and(|forced| forced != number) {
            continue;
        }
        let planner = Planner { filter, conditions: &conditions, sort, collation, index, number };
        candidates.extend(planner.candidate(forced.is_some()));
    }
    if forced.is_some() && candidates.is_empty() {
        return Err(hint::unusable());
    }
    candidates.sort_by_key(Candidate::rank);
    Ok(candidates)
}

/// Conditions, each followed by those that it implies.
fn with_implied(nodes: &[Node]) -> impl Iterator<Item = &Node> {
    nodes.iter().flat_map(|node| std::iter::once(node).chain(node.implied()))
}

/// The largest number of branches of an `$or` for which each branch is planned by itself.
const BRANCHES_MAX: usize = 100;

/// Returns the candidates of each branch of an `$or` whose branches each have an index of their own, the most promising
/// first. A document matches only if one of the branches finds it; several may. `None` if there is no such `$or`.
///
/// A candidate of [`plan()`] for all branches at once is better, if there is one.
pub fn plan_branches(
    filter: &Filter,
    collation: &Collation,
    indexes: &[Available<'_>],
) -> Option<Vec<Vec<Candidate>>> {
    let conjuncts = filter.root().conjuncts();
    conjuncts.iter().enumerate().find_map(|(place, node)| {
        let Node::Or(branches) = node else { return None };
        if branches.len() > BRANCHES_MAX {
            return None;
        }
        let (before, behind) = (&conjuncts[..place], &conjuncts[place + 1..]);
        let others: Vec<&Node> = with_implied(before).chain(with_implied(behind)).collect();
        let of_branch = |branch: &Node| {
            let conditions: Vec<&Node> =
                with_implied(branch.conjuncts()).chain(others.iter().copied()).collect();
            let mut candidates: Vec<Candidate> = indexes
                .iter()
                .enumerate()
                .filter_map(|(number, index)| {
                    Planner { filter, conditions: &conditions, sort: None, collation, index, number }
                        .candidate(false)
                })
                .collect();
            candidates.sort_by_key(Candidate::rank);
            (!candidates.is_empty()).then_some(candidates)
        };
        branches.iter().map(of_branch).collect()
    })
}

impl Candidate {
    /// Less is better: nothing to read, then single keys, then more fields, then an order that needs no sorting.
    fn rank(&self) -> (usize, usize, usize, usize) {
        let none = usize::from(!self.spans.is_empty());
        let narrow = usize::MAX - self.equalities * 2 - usize::from(self.fields_used > self.equalities);
        (none, narrow, usize::from(!self.serves_sort), self.spans.len())
    }
}

/// The inputs of one candidate.
struct Planner<'p> {
    filter: &'p Filter,
    /// The conditions that all have to hold: those of the filter, or of a part of it.
    conditions: &'p [&'p Node],
    sort: Option<&'p Sort>,
    collation: &'p Collation,
    index: &'p Available<'p>,
    number: usize,
}

impl<'p> Planner<'p> {
    fn spec(&self) -> &'p IndexSpec {
        self.index.spec
    }

    fn reader(&self) -> Reader<'p> {
        Reader { index: self.spec().collation(), query: self.collation }
    }

    fn conditions(&self) -> impl Iterator<Item = &'p Node> + Clone {
        self.conditions.iter().copied()
    }

    fn candidate(&self, forced: bool) -> Option<Candidate> {
        let spec = self.spec();
        if spec.is_collection_ttl() {
            return None;
        }
        if let Some(partial) = spec.partial_filter()
            && !implication::all_imply(self.conditions, partial.root(), self.reader())
        {
            return None;
        }
        if spec.wildcard.is_some() {
            return self.wildcard();
        }
        if spec.parts.iter().any(|part| !part.kind.is_ordinary() && part.kind != super::PartKind::Hashed) {
            return self.special();
        }
        let found = self.ordinary(&[]);
        // Documents without any of its fields are not in a sparse index. A hint overrides this.
        if spec.is_sparse() && !found.present && !forced {
            return None;
        }
        let candidate = found.candidate;
        let useful =
            forced || candidate.fields_used > 0 || candidate.serves_sort || candidate.spans.is_empty();
        useful.then_some(candidate)
    }
}

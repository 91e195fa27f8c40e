//! `AND` and `OR` of conditions; the conditions on one path are merged into one leaf.
//!
//! Two conditions on one path may be merged by `AND` only if they are about the same value. A property is one value,
//! and so is a name bound by `JOIN` within its row; but `ARRAY_CONTAINS(c.a, 1) AND ARRAY_CONTAINS(c.a, 2)` is about
//! two elements. A *binding* distinguishes them: each row scope has its own numbers. `OR` always merges: one element in
//! the first range or one in the second is one element in either.

use std::collections::BTreeMap;

use super::interval::ValueSet;
use super::{Condition, Leaf, Step, is_single};

/// The value that a condition is about: 0 for the item itself, a distinct number for each element of an array.
pub(super) type Binding = usize;

/// The binding of properties.
pub(super) const ITEM: Binding = 0;

/// The binding of a condition on no particular value: it is never merged by `AND`.
pub(super) const UNBOUND: Binding = usize::MAX;

/// The most ranges of one leaf; beyond that the narrowest gaps are closed. Every level of a nested filter processes
/// them again, so this bounds the cost of a short text full of constants.
const INTERVALS_MAX: usize = 16_384;

/// A condition under construction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Draft {
    Everything,
    Nothing,
    Leaf { path: Vec<Step>, binding: Binding, values: ValueSet },
    All(Vec<Draft>),
    Any(Vec<Draft>),
}

/// A draft, and whether it is equivalent to the expression it was derived from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DerivedCondition {
    pub(super) draft: Draft,
    pub(super) exact: bool,
}

impl DerivedCondition {
    /// Returns the condition of an expression of which nothing is known.
    pub(super) fn unknown() -> DerivedCondition {
        DerivedCondition { draft: Draft::Everything, exact: false }
    }

    /// Returns a condition that always holds, or never.
    pub(super) fn constant(holds: bool) -> DerivedCondition {
        DerivedCondition { draft: if holds { Draft::Everything } else { Draft::Nothing }, exact: true }
    }

    pub(super) fn at_most(self) -> DerivedCondition {
        // The only subset of nothing is nothing.
        DerivedCondition { exact: self.draft == Draft::Nothing, ..self }
    }
}

/// Returns the conjunction.
pub(super) fn all(parts: impl IntoIterator<Item = DerivedCondition>) -> DerivedCondition {
    let mut exact = true;
    // Collected first and merged at once: merging one by one would copy the intermediate result each time.
    let mut leaves: BTreeMap<(Vec<Step>, Binding), Vec<ValueSet>> = BTreeMap::new();
    let mut others = Vec::new();
    let mut waiting: Vec<Draft> = Vec::new();
    for part in parts {
        exact &= part.exact;
        waiting.push(part.draft);
        while let Some(draft) = waiting.pop() {
            match draft {
                Draft::Everything => {}
                Draft::Nothing => return DerivedCondition::constant(false),
                Draft::All(parts) => waiting.extend(parts),
                Draft::Any(_) | Draft::Leaf { binding: UNBOUND, .. } => others.push(draft),
                Draft::Leaf { path, binding, values } => {
                    leaves.entry((path, binding)).or_default().push(values);
                }
            }
        }
    }
    let mut parts = Vec::with_capacity(leaves.len() + others.len());
    for ((path, binding), standings) in leaves {
        let mut values = ValueSet::intersection(standings);
        if values.is_nothing() {
            return DerivedCondition::constant(false);
        }
        exact &= !values.widen(INTERVALS_MAX);
        parts.push(Draft::Leaf { path, binding, values });
    }
    parts.extend(others);
    DerivedCondition { draft: wrap(parts, Draft::Everything, Draft::All), exact }
}

/// Returns the disjunction.
pub(super) fn any(parts: impl IntoIterator<Item = DerivedCondition>) -> DerivedCondition {
    let mut exact = true;
    let mut leaves: BTreeMap<Vec<Step>, (Binding, Vec<ValueSet>)> = BTreeMap::new();
    let mut others = Vec::new();
    let mut waiting: Vec<Draft> = Vec::new();
    for part in parts {
        exact &= part.exact;
        waiting.push(part.draft);
        while let Some(draft) = waiting.pop() {
            match draft {
                Draft::Everything => return DerivedCondition { draft: Draft::Everything, exact: part.exact },
                Draft::Nothing => {}
                Draft::Any(parts) => waiting.extend(parts),
                Draft::All(_) => others.push(draft),
                Draft::Leaf { path, binding, values } => {
                    let known = leaves.entry(path).or_insert((binding, Vec::new()));
                    if known.0 != binding {
                        known.0 = UNBOUND;
                    }
                    known.1.push(values);
                }
            }
        }
    }
    let mut parts = Vec::with_capacity(leaves.len() + others.len());
    for (path, (binding, standings)) in leaves {
        let mut values = ValueSet::union(standings);
        exact &= !values.widen(INTERVALS_MAX);
        parts.push(Draft::Leaf { path, binding, values });
    }
    if parts.iter().any(is_anything) {
        return DerivedCondition { draft: Draft::Everything, exact };
    }
    parts.extend(others);
    DerivedCondition { draft: wrap(parts, Draft::Nothing, Draft::Any), exact }
}

fn is_anything(draft: &Draft) -> bool {
    matches!(draft, Draft::Leaf { path, values, .. } if is_single(path) && values.is_anything())
}

fn wrap(mut parts: Vec<Draft>, empty: Draft, several: fn(Vec<Draft>) -> Draft) -> Draft {
    match parts.len() {
        0 => empty,
        1 => parts.swap_remove(0),
        _ => several(parts),
    }
}

impl From<Draft> for Condition {
    fn from(draft: Draft) -> Condition {
        let list = |parts: Vec<Draft>| parts.into_iter().map(Condition::from).collect();
        match draft {
            Draft::Everything => Condition::Everything,
            Draft::Nothing => Condition::Nothing,
            Draft::Leaf { path, values, .. } => Condition::Leaf(Leaf { path, values }),
            Draft::All(parts) => Condition::All(list(parts)),
            Draft::Any(parts) => Condition::Any(list(parts)),
        }
    }
}

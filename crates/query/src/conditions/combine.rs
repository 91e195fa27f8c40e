//! `AND` and `OR` of conditions, with all that is said about one place gathered into one leaf.
//!
//! Two statements about one place may be merged by `AND` only if they are about one and the same value. A property is
//! one value, and so is a name bound by `JOIN` within its row; but `ARRAY_CONTAINS(c.a, 1) AND ARRAY_CONTAINS(c.a, 2)`
//! speaks of two elements. A *binding* tells them apart: each row scope has numbers of its own. `OR` merges always: one
//! element in the first range or one in the second is one element in either.

use std::collections::BTreeMap;

use super::interval::Standing;
use super::{Condition, Leaf, Step, is_single};

/// Who a statement is about: 0 for the item itself, a number of its own for everything that is one of many.
pub(super) type Binding = usize;

/// The binding of properties.
pub(super) const ITEM: Binding = 0;

/// The binding of a statement about no value in particular: nothing more can be said of the same.
pub(super) const NOBODY: Binding = usize::MAX;

/// Ranges that are told apart in one place; with more of them the narrow gaps are let go. Every level of a nested
/// filter goes over them again, so this bounds what a short text full of constants can cost.
const INTERVALS_MAX: usize = 16_384;

/// A condition in the making.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Draft {
    Everything,
    Nothing,
    Leaf { path: Vec<Step>, binding: Binding, standing: Standing },
    All(Vec<Draft>),
    Any(Vec<Draft>),
}

/// A draft and whether it is exactly what was meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) draft: Draft,
    pub(super) exact: bool,
}

impl Found {
    /// Nothing is known.
    pub(super) fn unknown() -> Found {
        Found { draft: Draft::Everything, exact: false }
    }

    /// It is always so, or never.
    pub(super) fn constant(holds: bool) -> Found {
        Found { draft: if holds { Draft::Everything } else { Draft::Nothing }, exact: true }
    }

    pub(super) fn at_most(self) -> Found {
        // Nothing is a superset of nothing only.
        Found { exact: self.draft == Draft::Nothing, ..self }
    }
}

/// Where all of these hold.
pub(super) fn all(parts: impl IntoIterator<Item = Found>) -> Found {
    let mut exact = true;
    // Gathered first and merged at once: one by one, each merge would copy all that is known by then.
    let mut leaves: BTreeMap<(Vec<Step>, Binding), Vec<Standing>> = BTreeMap::new();
    let mut others = Vec::new();
    let mut waiting: Vec<Draft> = Vec::new();
    for part in parts {
        exact &= part.exact;
        waiting.push(part.draft);
        while let Some(draft) = waiting.pop() {
            match draft {
                Draft::Everything => {}
                Draft::Nothing => return Found::constant(false),
                Draft::All(parts) => waiting.extend(parts),
                Draft::Any(_) | Draft::Leaf { binding: NOBODY, .. } => others.push(draft),
                Draft::Leaf { path, binding, standing } => {
                    leaves.entry((path, binding)).or_default().push(standing);
                }
            }
        }
    }
    let mut parts = Vec::with_capacity(leaves.len() + others.len());
    for ((path, binding), standings) in leaves {
        let mut standing = Standing::intersection(standings);
        if standing.is_nothing() {
            return Found::constant(false);
        }
        exact &= !standing.widen(INTERVALS_MAX);
        parts.push(Draft::Leaf { path, binding, standing });
    }
    parts.extend(others);
    Found { draft: wrap(parts, Draft::Everything, Draft::All), exact }
}

/// Where at least one of these holds.
pub(super) fn any(parts: impl IntoIterator<Item = Found>) -> Found {
    let mut exact = true;
    let mut leaves: BTreeMap<Vec<Step>, (Binding, Vec<Standing>)> = BTreeMap::new();
    let mut others = Vec::new();
    let mut waiting: Vec<Draft> = Vec::new();
    for part in parts {
        exact &= part.exact;
        waiting.push(part.draft);
        while let Some(draft) = waiting.pop() {
            match draft {
                Draft::Everything => return Found { draft: Draft::Everything, exact: part.exact },
                Draft::Nothing => {}
                Draft::Any(parts) => waiting.extend(parts),
                Draft::All(_) => others.push(draft),
                Draft::Leaf { path, binding, standing } => {
                    let known = leaves.entry(path).or_insert((binding, Vec::new()));
                    if known.0 != binding {
                        known.0 = NOBODY;
                    }
                    known.1.push(standing);
                }
            }
        }
    }
    let mut parts = Vec::with_capacity(leaves.len() + others.len());
    for (path, (binding, standings)) in leaves {
        let mut standing = Standing::union(standings);
        exact &= !standing.widen(INTERVALS_MAX);
        parts.push(Draft::Leaf { path, binding, standing });
    }
    if parts.iter().any(is_anything) {
        return Found { draft: Draft::Everything, exact };
    }
    parts.extend(others);
    Found { draft: wrap(parts, Draft::Nothing, Draft::Any), exact }
}

fn is_anything(draft: &Draft) -> bool {
    matches!(draft, Draft::Leaf { path, standing, .. } if is_single(path) && standing.is_anything())
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
            Draft::Leaf { path, standing, .. } => Condition::Leaf(Leaf { path, standing }),
            Draft::All(parts) => Condition::All(list(parts)),
            Draft::Any(parts) => Condition::Any(list(parts)),
        }
    }
}

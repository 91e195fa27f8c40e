//! Which indexes a query used, and which ones it could have used, for tuning an indexing policy.

use std::collections::BTreeSet;

use query::{Analysis, Condition, Sorting, Step};

use super::by_composite::{self, CompositePlan};
use super::context::QueryContext;
use crate::index::Composite;
use crate::types::request::IndexUse;

/// The indexes that a plan reads.
#[derive(Debug, Default)]
pub(super) struct Used {
    /// The paths whose entries are read.
    pub(super) paths: Vec<Vec<Step>>,
    /// The composite indexes.
    pub(super) composites: Vec<Composite>,
}

impl Used {
    /// Returns the use of one path.
    pub(super) fn path(path: &[Step]) -> Used {
        Used { paths: vec![path.to_vec()], composites: Vec::new() }
    }

    /// Adds the indexes that another part of the plan reads.
    pub(super) fn add(&mut self, other: Used) {
        self.paths.extend(other.paths);
        self.composites.extend(other.composites);
    }

    /// Returns whether no index is read.
    pub(super) fn is_empty(&self) -> bool {
        self.paths.is_empty() && self.composites.is_empty()
    }
}

/// The report in the making.
#[derive(Debug, Default)]
pub(super) struct Report {
    used: BTreeSet<String>,
    missing: BTreeSet<String>,
    used_composites: BTreeSet<Vec<String>>,
    missing_composites: BTreeSet<Vec<String>>,
}

impl Report {
    /// Records the paths that the query could use and that are not indexed.
    pub(super) fn consider(&mut self, analysis: &Analysis, contexts: &[QueryContext<'_>]) {
        let Some(ctx) = contexts.first() else { return };
        let mut paths = Vec::new();
        gather(&analysis.condition, &mut paths);
        let mut sorted = Vec::new();
        if let Sorting::Paths(keys) = &analysis.sorting {
            for key in keys {
                let path: Vec<Step> = key.path.iter().cloned().map(Step::Name).collect();
                let order = if key.descending { "DESC" } else { "ASC" };
                sorted.push(format!("{} {order}", text(&path)));
                paths.push(path);
            }
        }
        for path in paths {
            let is_of_the_system = matches!(path.first(), Some(Step::Name(name)) if name.starts_with('_'));
            if ctx.indexed(&path).is_none() && !is_of_the_system {
                self.missing.insert(specification(&path));
            }
        }
        if sorted.len() > 1 {
            self.missing_composites.insert(sorted);
        }
    }

    /// Notes the indexes that a plan reads.
    pub(super) fn use_indexes(&mut self, used: &Used) {
        self.used.extend(used.paths.iter().map(|path| specification(path)));
        self.used_composites.extend(used.composites.iter().map(by_composite::specification));
    }

    /// Notes the composite index that an order is read from.
    pub(super) fn use_order(&mut self, plan: &CompositePlan) {
        self.used_composites.insert(by_composite::specification(&plan.composite));
        self.missing_composites.clear();
    }

    pub(super) fn finish(self) -> IndexUse {
        IndexUse {
            utilized_single: self.used.into_iter().collect(),
            potential_single: self.missing.into_iter().collect(),
            utilized_composite: self.used_composites.into_iter().collect(),
            potential_composite: self.missing_composites.into_iter().collect(),
        }
    }
}

/// Collects the paths of a condition.
fn gather(condition: &Condition, paths: &mut Vec<Vec<Step>>) {
    match condition {
        Condition::Everything | Condition::Nothing => {}
        Condition::Leaf(leaf) => paths.push(leaf.path.clone()),
        Condition::All(parts) | Condition::Any(parts) => parts.iter().for_each(|part| gather(part, paths)),
    }
}

/// Returns a path as an indexing policy writes it: `/a/[]/b/?`.
fn specification(path: &[Step]) -> String {
    format!("{}/?", text(path))
}

fn text(path: &[Step]) -> String {
    let mut text = String::new();
    for step in path {
        text.push('/');
        match step {
            Step::Each => text.push_str("[]"),
            Step::Name(name) if name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-')) => {
                text.push_str(name);
            }
            Step::Name(name) => {
                text.push('"');
                text.push_str(&name.replace('\\', "\\\\").replace('"', "\\\""));
                text.push('"');
            }
        }
    }
    text
}

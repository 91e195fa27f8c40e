//! Determines the conditions that the collection itself can answer, and those that can be checked earlier than they are
//! written.

use std::sync::Arc;

use bson::Document;

use crate::error::Result;
use crate::pipeline::rewrite::Change;
use crate::pipeline::settings::PipelineContext;
use crate::pipeline::stage::Stage;
use crate::pipeline::stages::matching::{Match, all_of, conjuncts, fields_asked};
use crate::sort::Sort;

/// A filter with more conditions than this is moved as a whole or not at all.
const CONJUNCTS_MAX: usize = 64;

/// Moves conditions to the front as far as it is obviously safe.
pub(crate) fn move_conditions(stages: Vec<Stage>, around: &PipelineContext) -> Result<Vec<Stage>> {
    let mut moved: Vec<Stage> = Vec::with_capacity(stages.len());
    for stage in stages {
        let Stage::Match(matching) = stage else {
            moved.push(stage);
            continue;
        };
        let parts = conjuncts(&matching.document);
        if parts.is_empty() || parts.len() > CONJUNCTS_MAX {
            moved.push(Stage::Match(matching));
            continue;
        }
        let places: Vec<usize> = parts.iter().map(|part| landing(&moved, part)).collect();
        if places.iter().all(|place| *place == moved.len()) {
            moved.push(Stage::Match(matching));
            continue;
        }
        let mut parts: Vec<(usize, Document)> = places.into_iter().zip(parts).collect();
        parts.sort_by_key(|(place, _)| std::cmp::Reverse(*place));
        while let Some((place, _)) = parts.first() {
            let place = *place;
            let (here, rest): (Vec<_>, Vec<_>) = parts.into_iter().partition(|(other, _)| *other == place);
            let conditions = here.into_iter().map(|(_, condition)| condition).collect();
            moved.insert(place, Stage::Match(Match::of(all_of(conditions), around)?));
            parts = rest;
        }
    }
    Ok(moved)
}

/// Returns how far to the front a condition may go.
fn landing(stages: &[Stage], condition: &Document) -> usize {
    let requested_meta = fields_asked(condition.view());
    let mut place = stages.len();
    while place > 0 && lets_pass(&stages[place - 1], requested_meta.as_deref()) {
        place -= 1;
    }
    place
}

/// Returns `true` if a condition on these fields is the same before the stage as after it.
fn lets_pass(stage: &Stage, requested_meta: Option<&[&str]>) -> bool {
    let none_is =
        |written: &str| requested_meta.is_some_and(|requested_meta| !requested_meta.contains(&written));
    match stage {
        Stage::Sort(sorted) => sorted.limit.is_none(),
        Stage::Rewrite(Change::Project(project)) => requested_meta
            .is_some_and(|requested_meta| requested_meta.iter().all(|name| project.leaves(name))),
        Stage::Unwind(unwind) => {
            none_is(unwind.path.first()) && unwind.index.as_ref().is_none_or(|index| none_is(index.first()))
        }
        Stage::Lookup(lookup) => none_is(lookup.written()),
        Stage::GraphLookup(lookup) => none_is(lookup.written()),
        _ => false,
    }
}

/// Sets for each `$sort` how many rows are needed.
pub(crate) fn bound_sorts(stages: &mut [Stage]) {
    for place in 0..stages.len() {
        if let (Stage::Sort(_), Some(limit)) = (&stages[place], rows_wanted(&stages[place + 1..]))
            && let Stage::Sort(sorted) = &mut stages[place]
        {
            sorted.limit = Some(limit);
        }
    }
}

/// Returns how many rows of their input the stages need at most.
fn rows_wanted(stages: &[Stage]) -> Option<u64> {
    let mut skipped = 0_u64;
    for stage in stages {
        match stage {
            Stage::Skip(skip) => skipped = skipped.saturating_add(*skip),
            Stage::Limit(limit) => return Some(skipped.saturating_add(*limit)),
            Stage::Rewrite(_) => {}
            _ => return None,
        }
    }
    None
}

/// The part that the collection answers.
#[derive(Debug, Default)]
pub(crate) struct LeadingScan {
    pub(crate) conditions: Vec<Document>,
    pub(crate) sort: Option<Arc<Sort>>,
    pub(crate) limit: Option<u64>,
}

/// Removes the conditions at the front, and examines the stage after them.
pub(crate) fn take_leading(stages: &mut Vec<Stage>) -> LeadingScan {
    let count = stages.iter().take_while(|stage| matches!(stage, Stage::Match(_))).count();
    let conditions = stages
        .drain(..count)
        .filter_map(|stage| match stage {
            Stage::Match(matching) => Some(matching.document),
            _ => None,
        })
        .collect();
    let (sort, limit) = match stages.first() {
        Some(Stage::Sort(sorted)) => (Some(Arc::clone(&sorted.sort)), sorted.limit),
        _ => (None, rows_wanted(stages)),
    };
    LeadingScan { conditions, sort, limit }
}

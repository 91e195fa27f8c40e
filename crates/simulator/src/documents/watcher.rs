//! Watches over the whole database: one that continues page by page, over crashes, and one that starts over after each step.

use engine::Position;

use super::machine::Machine;
use super::model::Model;
use super::types::{ChangeKind, Event};
use crate::coverage::{Coverage, CoveragePoint};

/// Positions in the two worlds. They may differ: if the purge has emptied a collection, an index is complete from its
/// beginning, and one commit less is needed.
type Positions = (Position, Position);

/// The beginning of the watch, and the position of its reader.
pub(super) struct Watcher {
    since: Positions,
    at: Positions,
    /// Events that the reader has received, by their index in the model's list.
    told: Vec<usize>,
}

impl Watcher {
    /// Begins to watch before anything has happened.
    pub(super) fn begin(main: &Machine, twin: &Machine) -> Result<Watcher, String> {
        let since = (main.watch()?, twin.watch()?);
        Ok(Watcher { since, at: since, told: Vec::new() })
    }

    /// Checks that every event is returned, in order.
    pub(super) fn audit(
        &self,
        main: &Machine,
        twin: &Machine,
        model: &Model,
        coverage: &mut Coverage,
    ) -> Result<(), String> {
        let (seen, _) = read(main, twin, self.since, usize::MAX)?;
        if seen.len() != model.events.len() {
            return Err(format!("T28: told is {seen:?}, has happened {:?}", model.events));
        }
        let expired = |event: &Event| matches!(event.what, ChangeKind::Expired(_));
        coverage.reach_if(seen.iter().any(expired), CoveragePoint::DocumentExpiryTold);
        match_events(&model.events, &[], &seen).map(drop)
    }

    /// Continues the reader.
    pub(super) fn go_on(
        &mut self,
        main: &Machine,
        twin: &Machine,
        model: &Model,
        max_items: usize,
        coverage: &mut Coverage,
    ) -> Result<(), String> {
        let (seen, next) = read(main, twin, self.at, max_items)?;
        let told = match_events(&model.events, &self.told, &seen)?;
        self.told.extend(told);
        self.at = next;
        let left = model.events.len() - self.told.len();
        if seen.is_empty() && left > 0 {
            return Err(format!("T28: {left} events are not told: {:?}", model.events));
        }
        coverage.reach_if(!seen.is_empty() && left > 0, CoveragePoint::WatchInPages);
        Ok(())
    }
}

fn read(
    main: &Machine,
    twin: &Machine,
    after: Positions,
    max_items: usize,
) -> Result<(Vec<Event>, Positions), String> {
    let (main, next) = main.watched(after.0, max_items)?;
    let (twin, twin_next) = twin.watched(after.1, max_items)?;
    if main != twin {
        return Err(format!("invariant 8: told is {main:?}, and without purge {twin:?}"));
    }
    Ok((main, (next, twin_next)))
}

/// Matches the received events with those that have happened and were not received before, in order except within one turn.
fn match_events(events: &[Event], told: &[usize], seen: &[Event]) -> Result<Vec<usize>, String> {
    let mut open: Vec<usize> = (0..events.len()).filter(|at| !told.contains(at)).collect();
    let mut matched = Vec::new();
    for event in seen {
        let turn = open.first().map(|at| events[*at].turn);
        let same = |at: &&usize| {
            let expected = &events[**at];
            Some(expected.turn) == turn
                && (expected.time_ms, expected.name, &expected.what)
                    == (event.time_ms, event.name, &event.what)
        };
        let Some(found) = open.iter().find(same).copied() else {
            let expected = open.first().map(|at| &events[*at]);
            return Err(format!("T28: told is {event:?}, should be {expected:?}"));
        };
        open.retain(|at| *at != found);
        matched.push(found);
    }
    Ok(matched)
}

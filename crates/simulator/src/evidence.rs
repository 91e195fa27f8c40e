//! Archive and deletion record against the model: nothing that lives has a line or an entry, nobody who died is without one
//! when the bytes are gone, the chain of the record holds after any crash, and no purge is told twice.

use std::collections::BTreeMap;

use crate::coverage::Reach;
use crate::model::{Death, Evidence, Model};
use crate::operation::CONTAINERS;
use crate::run::Run;
use crate::world::{Testimony, World};

/// How often the chains are verified from their beginning.
const VERIFY_STEPS: u64 = 8;

impl Run {
    /// Looks at all evidence there is. `purged` says that nobody dead is left, so that evidence must be complete.
    pub(crate) fn check_evidence(&mut self, purged: bool) -> Result<(), String> {
        for container in CONTAINERS {
            let lines = self.main.archived(container)?;
            let backlog = self.main.backlogs().iter().find(|it| it.0 == container).map_or(0, |it| it.1);
            let left = if purged { 0 } else { backlog };
            check_testimonies(&self.model, container, Evidence::Archive, &lines)?;
            let archived = check_owed(&self.model, container, Evidence::Archive, &lines, left)?;
            let entries = self.main.recorded(container)?;
            check_testimonies(&self.model, container, Evidence::Record, &entries)?;
            check_once(&self.model, container, &entries)?;
            let recorded = check_owed(&self.model, container, Evidence::Record, &entries, left)?;
            let coverage = &mut self.situation.coverage;
            coverage.reach_if(archived, Reach::Archived);
            coverage.reach_if(recorded, Reach::Recorded);
        }
        if purged || self.situation.steps.is_multiple_of(VERIFY_STEPS) {
            self.main.verify_records()?;
        }
        Ok(())
    }

    /// Whether dropping a container depends on what the purge has done: its dead must be archived first.
    pub(crate) fn drop_waits_for_the_purge(&self, container: &str) -> bool {
        let archives = |model: &Model| {
            model.containers.get(container).is_some_and(|it| it.evidence.contains_key(&Evidence::Archive))
        };
        archives(&self.model)
    }

    /// All who died in a container that is gone are in its archive.
    pub(crate) fn check_archive_of_dropped(
        &self,
        before: &Model,
        container: &'static str,
    ) -> Result<(), String> {
        check_owed(before, container, Evidence::Archive, &self.main.archived(container)?, 0).map(drop)
    }

    /// The volume of a container's archive is full, or has room again.
    pub(crate) fn fill_archive(&mut self, container: &'static str, full: bool) -> Result<(), String> {
        self.full.retain(|name| *name != container);
        if full {
            self.full.push(container);
        }
        let (main, twin, _) = self.perform(None, |world: &mut World| world.fill_archive(container, full));
        main.and(twin)
    }
}

/// What a testimony tells has happened; of whom it is owed to, when and why it did.
fn check_testimonies(
    model: &Model,
    container: &'static str,
    evidence: Evidence,
    told: &[Testimony],
) -> Result<(), String> {
    let owed: Vec<*const Death> =
        model.owed(container, evidence).into_iter().map(std::ptr::from_ref).collect();
    for testimony in told {
        let died = |death: &&Death| death.name == container && is_about(testimony, death);
        let deaths: Vec<&Death> = model.deaths.iter().filter(died).collect();
        let is_true =
            |death: &&Death| !owed.contains(&std::ptr::from_ref(*death)) || is_exact(testimony, death);
        if !deaths.iter().any(is_true) {
            return Err(format!("T32: {container}: told is {testimony:?}, died has {deaths:?}"));
        }
    }
    Ok(())
}

fn is_about(testimony: &Testimony, death: &Death) -> bool {
    let body = &death.item.body;
    (testimony.key, &testimony.id, testimony.ts) == (body.key, &body.id, death.item.ts)
        && testimony.body.as_ref().is_none_or(|told| told == body)
}

fn is_exact(testimony: &Testimony, death: &Death) -> bool {
    let rule = (testimony.rule.as_str(), testimony.seconds);
    // One that was written at a time which was rejected later (T34) is not told to have died before its `_ts`.
    let (ts_ms, time_ms) = (death.item.ts * 1000, death.time_ms);
    let is_instant = testimony.expired_ms == time_ms || ts_ms > time_ms && testimony.expired_ms == ts_ms;
    is_instant && (death.twice || rule == (death.rule, death.seconds))
}

/// Those to whom evidence is owed have it, but for at most `left` whose bytes are still there. Says whether anybody has.
fn check_owed(
    model: &Model,
    container: &'static str,
    evidence: Evidence,
    told: &[Testimony],
    left: u64,
) -> Result<bool, String> {
    let mut open: Vec<&Testimony> = told.iter().collect();
    let (mut found, mut missing) = (false, Vec::new());
    for death in model.owed(container, evidence) {
        let fits = |testimony: &&Testimony| is_about(testimony, death) && is_exact(testimony, death);
        match open.iter().position(fits) {
            Some(at) => {
                open.remove(at);
                found = true;
            }
            None => missing.push(death),
        }
    }
    if missing.len() as u64 > left {
        return Err(format!(
            "T32: {container}: {evidence:?} tells nothing of {missing:?}; {left} are still there"
        ));
    }
    Ok(found)
}

/// A record tells of no purge twice: of one who died twice in a second, under the same name, at most that often.
fn check_once(model: &Model, container: &str, entries: &[Testimony]) -> Result<(), String> {
    let mut counts: BTreeMap<(usize, &str, u64), usize> = BTreeMap::new();
    for entry in entries {
        let count = counts.entry((entry.key, &entry.id, entry.ts)).or_default();
        *count += 1;
        let died = |death: &&Death| death.name == container && is_about(entry, death);
        if *count > model.deaths.iter().filter(died).count() {
            return Err(format!("a record tells too often of {entry:?}"));
        }
    }
    Ok(())
}

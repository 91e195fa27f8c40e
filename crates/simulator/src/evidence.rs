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
            check_testimonies(&self.model, container, &lines)?;
            let archived = check_owed(&self.model, container, Evidence::Archive, &lines, left)?;
            let entries = self.main.recorded(container)?;
            check_testimonies(&self.model, container, &entries)?;
            check_once(&entries)?;
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

/// What a testimony tells has happened, as it tells it.
fn check_testimonies(model: &Model, container: &str, told: &[Testimony]) -> Result<(), String> {
    for testimony in told {
        let died = |death: &&Death| death.name == container && is_about(testimony, death);
        let Some(death) = model.deaths.iter().find(died) else {
            return Err(format!("T32: {container}: told of one that has not died: {testimony:?}"));
        };
        if testimony.body.as_ref().is_some_and(|body| *body != death.item.body) {
            return Err(format!("T32: {container}: told is {testimony:?}, died has {death:?}"));
        }
    }
    Ok(())
}

fn is_about(testimony: &Testimony, death: &Death) -> bool {
    (testimony.key, &testimony.id, testimony.ts) == (death.item.body.key, &death.item.body.id, death.item.ts)
}

/// Those to whom evidence is owed have it, but for at most `left` whose bytes are still there. Says whether anybody has.
fn check_owed(
    model: &Model,
    container: &'static str,
    evidence: Evidence,
    told: &[Testimony],
    left: u64,
) -> Result<bool, String> {
    let (mut found, mut missing) = (false, Vec::new());
    for death in model.owed(container, evidence) {
        let Some(testimony) = told.iter().find(|testimony| is_about(testimony, death)) else {
            missing.push(death);
            continue;
        };
        found = true;
        let (expired_ms, rule, seconds) = (testimony.expired_ms, testimony.rule.as_str(), testimony.seconds);
        if (expired_ms, rule, seconds) != (death.time_ms, death.rule, death.seconds) {
            return Err(format!("T32: {container}: told is {testimony:?}, died has {death:?}"));
        }
    }
    if missing.len() as u64 > left {
        return Err(format!(
            "T32: {container}: {evidence:?} tells nothing of {missing:?}; {left} are still there"
        ));
    }
    Ok(found)
}

/// A record tells of no purge twice.
fn check_once(entries: &[Testimony]) -> Result<(), String> {
    let mut seen = BTreeMap::new();
    for entry in entries {
        if let Some(before) = seen.insert((entry.key, entry.id.clone(), entry.ts), entry) {
            return Err(format!("a record tells twice of {before:?}: {entry:?}"));
        }
    }
    Ok(())
}

//! Archive and deletion record against the model: nothing that lives has a line or an entry, nobody who died is without one
//! when the bytes are gone, the chain of the record holds after any crash, and no purge is told twice.

use crate::coverage::Reach;
use crate::inquest::{Case, Inquest};
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
            let archive = inquest(&self.model, container, Evidence::Archive, &lines);
            archive.check_truth()?;
            let archived = archive.check_complete(left)?;
            let entries = self.main.recorded(container)?;
            let record = inquest(&self.model, container, Evidence::Record, &entries);
            record.check_truth()?;
            record.check_once()?;
            let recorded = record.check_complete(left)?;
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
        let lines = self.main.archived(container)?;
        inquest(before, container, Evidence::Archive, &lines).check_complete(0).map(drop)
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

impl Case for Death {
    type Testimony = Testimony;
    type Subject = (usize, String, u64);

    fn subject(testimony: &Testimony) -> Self::Subject {
        (testimony.key, testimony.id.clone(), testimony.ts)
    }

    fn is_about(&self, testimony: &Testimony) -> bool {
        let body = &self.item.body;
        (testimony.key, &testimony.id, testimony.ts) == (body.key, &body.id, self.item.ts)
            && testimony.body.as_ref().is_none_or(|told| told == body)
    }

    fn is_exact(&self, testimony: &Testimony) -> bool {
        let rule = (testimony.rule.as_str(), testimony.seconds);
        // One that was written at a time which was rejected later (T34) is not told to have died before its `_ts`.
        let (ts_ms, time_ms) = (self.item.ts * 1000, self.time_ms);
        let is_instant = testimony.expired_ms == time_ms || ts_ms > time_ms && testimony.expired_ms == ts_ms;
        is_instant && (self.twice || rule == (self.rule, self.seconds))
    }
}

/// What is told of a container's dead at one place.
fn inquest<'a>(
    model: &'a Model,
    container: &'static str,
    evidence: Evidence,
    told: &'a [Testimony],
) -> Inquest<'a, Death> {
    Inquest {
        place: format!("{evidence:?} of {container}"),
        died: model.deaths.iter().filter(|death| death.name == container).collect(),
        owed: model.owed(container, evidence),
        told,
    }
}

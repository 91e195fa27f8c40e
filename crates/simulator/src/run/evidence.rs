//! Archive and deletion record against the model: no live item has a line or an entry, every expired item has one when its
//! bytes are gone, the chain of the record holds after any crash, and no purge is recorded twice.

use crate::coverage::CoveragePoint;
use crate::evidence_check::{EvidenceCheck, ExpectedExpiry};
use crate::model::{Evidence, Expiry, Model};
use crate::operation::CONTAINERS;
use crate::run::Run;
use crate::world::{EvidenceEntry, World};

/// How often the chains are verified from their beginning.
const VERIFY_STEPS: u64 = 8;

impl Run {
    /// Checks all evidence. `purged` means that no expired item is left, so that the evidence must be complete.
    pub(crate) fn check_evidence(&mut self, purged: bool) -> Result<(), String> {
        for container in CONTAINERS {
            let lines = self.main.archived(container)?;
            let backlog = self.main.backlogs().iter().find(|it| it.0 == container).map_or(0, |it| it.1);
            let left = if purged { 0 } else { backlog };
            let archive = evidence_check(&self.model, container, Evidence::Archive, &lines);
            archive.check_truth()?;
            let archived = archive.check_complete(left)?;
            let entries = self.main.recorded(container)?;
            let record = evidence_check(&self.model, container, Evidence::Record, &entries);
            record.check_truth()?;
            record.check_once()?;
            let recorded = record.check_complete(left)?;
            let coverage = &mut self.situation.coverage;
            coverage.reach_if(archived, CoveragePoint::Archived);
            coverage.reach_if(recorded, CoveragePoint::Recorded);
        }
        if purged || self.situation.steps.is_multiple_of(VERIFY_STEPS) {
            self.main.verify_records()?;
        }
        Ok(())
    }

    /// Returns `true` if dropping a container depends on how far the purge has come: its expired items must be archived
    /// first.
    pub(crate) fn drop_waits_for_the_purge(&self, container: &str) -> bool {
        let archives = |model: &Model| {
            model.containers.get(container).is_some_and(|it| it.evidence.contains_key(&Evidence::Archive))
        };
        archives(&self.model)
    }

    /// Checks that all items that expired in a deleted container are in its archive.
    pub(crate) fn check_archive_of_dropped(
        &self,
        before: &Model,
        container: &'static str,
    ) -> Result<(), String> {
        let lines = self.main.archived(container)?;
        evidence_check(before, container, Evidence::Archive, &lines).check_complete(0).map(drop)
    }

    /// Makes the volume of a container's archive full, or writable again.
    pub(crate) fn fill_archive(&mut self, container: &'static str, full: bool) -> Result<(), String> {
        self.full.retain(|name| *name != container);
        if full {
            self.full.push(container);
        }
        let (main, twin, _) = self.perform(None, |world: &mut World| world.fill_archive(container, full));
        main.and(twin)
    }
}

impl ExpectedExpiry for Expiry {
    type EvidenceEntry = EvidenceEntry;
    type Subject = (usize, String, u64);

    fn subject(entry: &EvidenceEntry) -> Self::Subject {
        (entry.key, entry.id.clone(), entry.ts)
    }

    fn is_about(&self, entry: &EvidenceEntry) -> bool {
        let body = &self.item.body;
        (entry.key, &entry.id, entry.ts) == (body.key, &body.id, self.item.ts)
            && entry.body.as_ref().is_none_or(|told| told == body)
    }

    fn is_exact(&self, entry: &EvidenceEntry) -> bool {
        let rule = (entry.rule.as_str(), entry.seconds);
        // An item that was written at a time which was rejected later (T34) is not recorded as expired before its
        // `_ts`.
        let (ts_ms, time_ms) = (self.item.ts * 1000, self.time_ms);
        let is_instant = entry.expired_ms == time_ms || ts_ms > time_ms && entry.expired_ms == ts_ms;
        is_instant && (self.twice || rule == (self.rule, self.seconds))
    }
}

/// Returns the check of one source of evidence of a container.
fn evidence_check<'a>(
    model: &'a Model,
    container: &'static str,
    evidence: Evidence,
    told: &'a [EvidenceEntry],
) -> EvidenceCheck<'a, Expiry> {
    EvidenceCheck {
        place: format!("{evidence:?} of {container}"),
        expired: model.expiries.iter().filter(|expiry| expiry.name == container).collect(),
        owed: model.owed(container, evidence),
        told,
    }
}

//! The state of a run for the coverage counters: facts about the past that the model does not keep.

use crate::coverage::{Coverage, CoveragePoint};
use crate::model::{Answer, Change, Countdown, DefaultTtl, Item, Model, Name, SettingChange, deadline};

/// The recent past.
#[derive(Debug)]
pub(crate) struct Situation {
    /// The situations reached so far.
    pub(crate) coverage: Coverage,
    /// Steps settled.
    pub(crate) steps: u64,
    /// Expired items not yet purged, as of the last step.
    pub(crate) backlog: u64,
    /// Nothing has expired, no container was deleted, and no feed was kept.
    pub(crate) nothing_to_purge: bool,
    /// The purge has removed some expired items and not all.
    half_purged: bool,
    /// The second of the last policy change, and how many there were in it.
    toggles: (u64, u32),
    deleted_containers: Vec<&'static str>,
    /// The id and unique value that the operation about to run would take over.
    takeover: Takeover,
}

/// The id and unique value that an operation takes over from expired items if it succeeds.
#[derive(Debug, Clone, Copy, Default)]
struct Takeover {
    id: bool,
    unique: bool,
    held: bool,
}

impl Takeover {
    fn by(model: &Model, container: &str, change: &Change) -> Takeover {
        let (Change::Create(body) | Change::Upsert(body, _) | Change::Replace(_, body, _)) = change else {
            return Takeover::default();
        };
        let expired = model.expired(container);
        let same_id = |item: &&Item| item.body.key == body.key && item.body.id == body.id;
        let same_value = |item: &&Item| {
            item.body.key == body.key && item.body.id != body.id && item.body.unique == body.unique
        };
        let inside = model.containers.get(container);
        let (unique, held) = inside.map_or((false, false), |container| (container.unique, container.hold));
        Takeover { id: expired.iter().any(same_id), unique: unique && expired.iter().any(same_value), held }
    }
}

impl Default for Situation {
    fn default() -> Situation {
        Situation {
            coverage: Coverage::default(),
            steps: 0,
            backlog: 0,
            nothing_to_purge: true,
            half_purged: false,
            toggles: (0, 0),
            deleted_containers: Vec::new(),
            takeover: Takeover::default(),
        }
    }
}

impl Situation {
    /// Records that an operation is about to run.
    pub(crate) fn change(&mut self, model: &Model, container: &str, key: usize, change: &Change) {
        let Some(inside) = model.containers.get(container) else { return };
        self.takeover = Takeover::by(model, container, change);
        if let Some(Name::Number(number)) = name_of(change) {
            let named = |item: &&Item| item.stamp.as_ref().is_some_and(|stamp| stamp.number == *number);
            let expired = inside
                .items
                .iter()
                .find(named)
                .is_some_and(|item| model.expired_versions.contains(&item.version));
            self.coverage.reach_if(expired, CoveragePoint::NumberOfAnExpiredItem);
        }
        let id = change.id();
        let same = |item: &&Item| item.body.key == key && Some(item.body.id.as_str()) == id;
        let Some(deadline) = inside.items.iter().find(same).and_then(|item| inside.deadline(item)) else {
            return;
        };
        if !matches!(change, Change::Read(..)) {
            self.coverage.reach_if(deadline == model.now, CoveragePoint::WriteAtTheDeadlinesSecond);
            self.coverage.reach_if(deadline == model.now + 1, CoveragePoint::WriteInTheLastSecond);
        }
    }

    /// Records the effect on countdowns of an operation that is about to run.
    pub(crate) fn counting(
        &mut self,
        model: &Model,
        container: &str,
        key: usize,
        change: &Change,
        countdown: Countdown,
    ) {
        let Some(inside) = model.containers.get(container) else { return };
        let same = |item: &&&Item| item.body.key == key && change.id() == Some(&item.body.id);
        let visible = model.visible(container);
        let target = visible.iter().find(same);
        let expiring = target.is_some_and(|item| inside.deadline(item).is_some());
        let writes = !matches!(change, Change::Read(..) | Change::Delete(..));
        self.coverage
            .reach_if(expiring && writes && countdown == Countdown::Keep, CoveragePoint::CountdownKept);
        let slides = target.is_some_and(|item| item.slides && item.counts_from < model.now);
        self.coverage.reach_if(
            expiring && !writes && slides && inside.ttl_modes.sliding,
            CoveragePoint::CountdownRestarted,
        );
        let based = target.is_some_and(|item| item.counts_from != item.ts);
        self.coverage.reach_if(expiring && based, CoveragePoint::CountedFromElsewhere);
        let named = target.is_some_and(|item| item.expires_at.is_some());
        self.coverage.reach_if(expiring && named, CoveragePoint::ExpiryNamed);
    }

    /// Records that the clock has moved and a prepared write is about to run.
    pub(crate) fn late(&mut self, model: &Model, container: &str, key: usize, change: &Change) {
        let expired = model.expired(container);
        let about = expired.iter().any(|item| item.body.key == key && change.id() == Some(&item.body.id));
        self.coverage
            .reach_if(about && !matches!(change, Change::Read(..)), CoveragePoint::WriteBegunBeforeRunAfter);
    }

    /// Records the answer to a request.
    pub(crate) fn answered(&mut self, answer: &Answer) {
        let takeover = std::mem::take(&mut self.takeover);
        if matches!(answer, Answer::Created | Answer::Replaced) {
            self.coverage.reach_if(takeover.id && self.backlog > 0, CoveragePoint::RecreateOverUnpurged);
            self.coverage.reach_if(takeover.id && self.half_purged, CoveragePoint::RecreateDuringPurge);
            self.coverage
                .reach_if(takeover.id && takeover.held && self.backlog > 0, CoveragePoint::RecreateUnderHold);
            self.coverage.reach_if(takeover.unique, CoveragePoint::UniqueTakenOverFromExpired);
        }
        match answer {
            Answer::BadTtl => self.coverage.reach(CoveragePoint::BadItemTtl),
            Answer::ClockSuspect => self.coverage.reach(CoveragePoint::RefusedWhileSuspect),
            Answer::BatchFailed(_, reason) => {
                self.coverage.reach(CoveragePoint::BatchRefused);
                self.coverage.reach_if(**reason == Answer::BadTtl, CoveragePoint::BadItemTtlInBatch);
            }
            _ => {}
        }
    }

    /// Records that a policy is about to change.
    pub(crate) fn policy(&mut self, model: &Model, container: &str, default_ttl: DefaultTtl) {
        if let DefaultTtl::Bad(_) = default_ttl {
            self.coverage.reach(CoveragePoint::BadDefaultTtl);
            return;
        }
        let Some(inside) = model.containers.get(container) else { return };
        if inside.default_ttl != default_ttl {
            let count = if self.toggles.0 == model.now { self.toggles.1 + 1 } else { 1 };
            self.toggles = (model.now, count);
            self.coverage.reach_if(count >= 3, CoveragePoint::PolicyToggledWithinASecond);
            let expired = !model.expired(container).is_empty() && self.backlog > 0;
            self.coverage.reach_if(expired, CoveragePoint::PolicyChangedOverUnpurged);
            let held = model.visible(container).iter().any(|item| inside.hold || item.held);
            self.coverage.reach_if(held, CoveragePoint::PolicyChangedUnderHold);
        }
    }

    /// Records that an owner is about to change a setting.
    pub(crate) fn change_setting(&mut self, model: &Model, container: &str, change: SettingChange) {
        let Some(inside) = model.containers.get(container) else { return };
        self.nothing_to_purge &= !matches!(change, SettingChange::Feed(Some(_)));
        let expired = !model.expired(container).is_empty() && self.backlog > 0;
        let coverage = &mut self.coverage;
        coverage.reach_if(
            change == SettingChange::Hold(true) && !model.visible(container).is_empty(),
            CoveragePoint::ContainerHeld,
        );
        coverage
            .reach_if(change == SettingChange::Hold(true) && expired, CoveragePoint::HoldOverUnpurgedItems);
        coverage.reach_if(
            change == SettingChange::Feed(None) && inside.feed.is_some(),
            CoveragePoint::FeedTurnedOff,
        );
        coverage.reach_if(
            matches!(change, SettingChange::Feed(Some(_))) && expired,
            CoveragePoint::FeedTurnedOnOverUnpurged,
        );
    }

    /// Records that a logical partition is about to be deleted.
    pub(crate) fn partition(&mut self, model: &Model, container: &str, key: usize) {
        let has = |items: Vec<&Item>| items.iter().any(|item| item.body.key == key);
        let both = has(model.visible(container)) && has(model.expired(container));
        self.coverage.reach_if(both, CoveragePoint::PartitionDeletedOverExpired);
    }

    /// Records that a container was created.
    pub(crate) fn container_made(&mut self, name: &'static str, feed: Option<u32>) {
        self.nothing_to_purge &= feed.is_none();
        self.coverage.reach_if(self.deleted_containers.contains(&name), CoveragePoint::ContainerRecreated);
    }

    /// Records that a container is about to be deleted.
    pub(crate) fn container_deleted(&mut self, name: &'static str) {
        self.deleted_containers.push(name);
        self.nothing_to_purge = false;
    }

    /// Records that a purge step has run.
    pub(crate) fn purged(&mut self, items: u64, left: u64) {
        self.coverage.reach(if items > 0 { CoveragePoint::Purged } else { CoveragePoint::PurgeIdle });
        self.half_purged = left > 0 && (items > 0 || self.half_purged);
    }

    /// Records that the process is about to end.
    pub(crate) fn restarting(&mut self, model: &Model, backlog: u64, suspect: bool) {
        self.backlog = backlog;
        for container in model.containers.values() {
            self.coverage.reach(match container.default_ttl {
                DefaultTtl::Off | DefaultTtl::Bad(_) => CoveragePoint::RestartTtlOff,
                DefaultTtl::Never => CoveragePoint::RestartTtlNever,
                DefaultTtl::After(_) => CoveragePoint::RestartTtlSeconds,
            });
        }
        self.coverage.reach_if(backlog > 0, CoveragePoint::RestartWithExpired);
        self.coverage.reach_if(backlog > 0 && self.half_purged, CoveragePoint::RestartHalfPurged);
        self.coverage.reach_if(suspect, CoveragePoint::RestartSuspect);
        for (name, container) in &model.containers {
            let overdue = |item: &&Item| {
                let deadline = deadline(container.default_ttl, item.body.ttl, item.counts_from);
                (container.hold || item.held) && deadline.is_some_and(|deadline| deadline <= model.now)
            };
            self.coverage
                .reach_if(model.visible(name).iter().any(overdue), CoveragePoint::RestartHeldPastDeadline);
        }
    }

    /// Records that a step has been settled.
    pub(crate) fn after(&mut self, model: &Model, backlog: u64) {
        self.steps += 1;
        self.backlog = backlog;
        self.half_purged &= backlog > 0;
        self.nothing_to_purge &= model.expired_versions.is_empty();
        for (name, container) in &model.containers {
            let outlives = |item: &&Item| {
                let written = deadline(container.default_ttl, item.body.ttl, item.ts);
                item.touched && written.is_some_and(|deadline| deadline <= model.now)
            };
            let outlives = model.visible(name).iter().any(outlives);
            self.coverage.reach_if(outlives, CoveragePoint::OutlivesItsHeader);
            let slid = model.expired(name).iter().any(|item| item.touched);
            self.coverage.reach_if(slid, CoveragePoint::SlidItemExpired);
        }
    }
}

fn name_of(change: &Change) -> Option<&Name> {
    match change {
        Change::Create(_) | Change::Upsert(..) => None,
        Change::Replace(name, ..)
        | Change::Patch(name, ..)
        | Change::Delete(name, _)
        | Change::Read(name, _) => Some(name),
    }
}

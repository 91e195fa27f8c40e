//! Steps of owners and operators.

use engine::Interval;

use super::{Generator, GeneratorView, KEYS, Step};
use crate::model::{Consent, CountdownOrigin, Evidence, Model, SettingChange};

/// A step of an owner or operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OwnerStep {
    /// An owner changes a setting.
    SettingChange { container: &'static str, change: SettingChange, consent: Consent },
    /// An item is held, or its hold is lifted.
    HoldItem { container: &'static str, key: usize, id: String, hold: bool },
    /// A reader of the feed of all versions continues.
    ReadHistory { container: &'static str, key: Option<usize>, max_items: usize },
    /// A forecast of expiries.
    Forecast { container: &'static str, interval: Interval, count: usize },
    /// The purge is paused or resumed.
    Pause { paused: bool },
    /// The volume of an archive becomes full, or writable again.
    FillArchive { container: &'static str, full: bool },
    /// The purge on demand, of one container or of all.
    PurgeNow { container: Option<&'static str>, limit: usize },
}

impl Generator {
    /// Returns the next step of an owner or operator.
    pub(super) fn owner_step(
        &mut self,
        container: &'static str,
        model: &Model,
        sight: GeneratorView,
    ) -> OwnerStep {
        let inside = model.containers.get(container);
        match self.random.u8(..28) {
            24..26 => {
                let sliding = !inside.is_some_and(|inside| inside.ttl_modes.sliding);
                self.change_setting(container, SettingChange::Sliding(sliding))
            }
            // If items name their expiry, counters cannot tell which items expire by two rules: the guard then asks too
            // often.
            26..28 if inside.is_none_or(|inside| inside.guard.is_none()) => {
                let absolute = !inside.is_some_and(|inside| inside.ttl_modes.absolute);
                self.change_setting(container, SettingChange::Absolute(absolute))
            }
            20..23 => {
                let evidence = [Evidence::Archive, Evidence::Record][self.random.usize(..2)];
                let is_on = self.random.u8(..4) != 0;
                self.change_setting(container, SettingChange::Evidence(evidence, is_on))
            }
            23 => OwnerStep::FillArchive { container, full: !sight.obstacles.full },
            0..5 => {
                let key = if self.random.u8(..3) == 0 { Some(self.random.usize(..KEYS)) } else { None };
                OwnerStep::ReadHistory { container, key, max_items: self.random.usize(1..5) }
            }
            5..7 => {
                let minutes = [None, Some(1), Some(2), Some(60)][self.random.usize(..4)];
                self.change_setting(container, SettingChange::Feed(minutes))
            }
            7..9 => {
                let hold = !model.containers.get(container).is_some_and(|inside| inside.hold);
                self.change_setting(container, SettingChange::Hold(hold))
            }
            9..14 => self.hold_or_lift(container, model, sight),
            14..16 => {
                let interval = [Interval::Minute, Interval::Hour, Interval::Day][self.random.usize(..3)];
                OwnerStep::Forecast { container, interval, count: self.random.usize(1..4) }
            }
            16 if self.random.u8(..4) == 0 => {
                let seconds = [None, Some(1), Some(60)][self.random.usize(..3)];
                self.change_setting(container, SettingChange::PurgeDelay(seconds))
            }
            16 if inside.is_none_or(|inside| inside.counted != CountdownOrigin::Named) => {
                let share = [None, Some(0), Some(400_000), Some(1_000_000)][self.random.usize(..4)];
                self.change_setting(container, SettingChange::Guard(share))
            }
            17 => OwnerStep::Pause { paused: !sight.obstacles.paused },
            _ => {
                let container = if self.random.bool() { Some(container) } else { None };
                OwnerStep::PurgeNow { container, limit: self.random.usize(1..20) }
            }
        }
    }

    fn change_setting(&mut self, container: &'static str, change: SettingChange) -> OwnerStep {
        OwnerStep::SettingChange { container, change, consent: self.consent() }
    }

    pub(super) fn consent(&mut self) -> Consent {
        if self.random.u8(..3) == 0 { Consent::Given } else { Consent::NotGiven }
    }

    /// Returns a hold on an item, or its end. A lift may have to wait for the purge, which must be able to run then.
    fn hold_or_lift(&mut self, container: &'static str, model: &Model, sight: GeneratorView) -> OwnerStep {
        let visible = model.visible(container);
        let held: Vec<_> = visible.iter().filter(|item| item.held).collect();
        if !held.is_empty() && !sight.suspect && self.random.u8(..3) != 0 {
            let item = held[self.random.usize(..held.len())];
            let (key, id) = (item.body.key, item.body.id.clone());
            let lift = OwnerStep::HoldItem { container, key, id, hold: false };
            if sight.obstacles.paused || sight.obstacles.full {
                let step = if sight.obstacles.paused {
                    OwnerStep::Pause { paused: false }
                } else {
                    OwnerStep::FillArchive { container, full: false }
                };
                self.queued.extend([
                    Step::Owner(OwnerStep::FillArchive { container, full: false }),
                    Step::Owner(lift),
                ]);
                return step;
            }
            return lift;
        }
        let (key, id) = match self.any_item(container, model) {
            Some(item) => (item.body.key, item.body.id.clone()),
            None => (self.random.usize(..KEYS), self.id()),
        };
        OwnerStep::HoldItem { container, key, id, hold: true }
    }

    /// Returns the step that lifts a container's hold, because the hold refuses nearly everything in it.
    pub(super) fn lift_container(&mut self, container: &'static str) -> Step {
        Step::Owner(OwnerStep::SettingChange {
            container,
            change: SettingChange::Hold(false),
            consent: self.consent(),
        })
    }
}

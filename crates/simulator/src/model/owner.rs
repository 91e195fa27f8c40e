//! Requests of owners and operators: holds (T31), and the guard against changes that expire many items at once (T30).

use super::history::ChangeKind;
use super::{Answer, Consent, CountdownOrigin, DefaultTtl, Item, MILLION, Model, SettingChange};

impl Model {
    /// Changes a setting of a container.
    pub(crate) fn change_setting(
        &mut self,
        name: &'static str,
        change: SettingChange,
        consent: Consent,
    ) -> Answer {
        let Some(container) = self.containers.get_mut(name) else { return Answer::NoContainer };
        match change {
            SettingChange::Feed(minutes) => self.keep_feed(name, minutes),
            SettingChange::Guard(share) => {
                container.guard = share;
                Answer::Changed
            }
            SettingChange::PurgeDelay(_) => Answer::Changed,
            SettingChange::Absolute(absolute) => self.listen(name, absolute),
            SettingChange::Sliding(sliding) => {
                container.ttl_modes.sliding = sliding;
                container.counted = container.counted.max(CountdownOrigin::Otherwise);
                Answer::Changed
            }
            SettingChange::Evidence(evidence, is_on) => {
                self.set_evidence(name, evidence, is_on);
                Answer::Changed
            }
            SettingChange::Hold(hold) if container.hold == hold => Answer::Changed,
            SettingChange::Hold(_) if self.suspect => Answer::ClockSuspect,
            SettingChange::Hold(hold) => {
                let before = self.clone();
                self.containers.get_mut(name).expect("looked up above").hold = hold;
                self.unless_too_many_expire(name, before, consent, Answer::Changed)
            }
        }
    }

    /// Changes the rules and expires overdue items, unless these are more than the owner allows.
    pub(super) fn unless_too_many_expire(
        &mut self,
        name: &'static str,
        before: Model,
        consent: Consent,
        answer: Answer,
    ) -> Answer {
        let living = before.visible(name).len() as u64;
        let expiring = self.expire_overdue(name);
        let guard = self.containers[name].guard.filter(|_| consent == Consent::NotGiven);
        if guard.is_some_and(|share| expiring * MILLION > u64::from(share) * living) {
            *self = before;
            return Answer::NotConfirmed;
        }
        answer
    }

    /// Expires the items that are overdue by the changed rules; returns their number.
    pub(super) fn expire_overdue(&mut self, name: &'static str) -> u64 {
        let container = &self.containers[name];
        let expiring: Vec<Item> = container
            .items
            .iter()
            .filter(|item| {
                !self.expired_versions.contains(&item.version) && container.overdue(item, self.trusted)
            })
            .cloned()
            .collect();
        self.turns += 1;
        for item in &expiring {
            self.expired_versions.insert(item.version);
            self.record_expiry(name, self.trusted_ms, item);
            self.happen_at_once(name, ChangeKind::Expired, Some(item.clone()), None);
        }
        expiring.len() as u64
    }

    /// Holds a live item.
    pub(crate) fn hold_item(&mut self, name: &str, key: usize, id: &str) -> Answer {
        self.with_live(name, key, id, |item| {
            item.held = true;
            Answer::Changed
        })
    }

    /// Lifts the hold of an item: if it is overdue, it expires now.
    pub(crate) fn lift_item(&mut self, name: &'static str, key: usize, id: &str) -> Answer {
        if self.containers.get(name).is_some_and(|container| container.hold) {
            return Answer::Held;
        }
        let lifted = self.with_live(name, key, id, |item| {
            if std::mem::take(&mut item.held) { Answer::Changed } else { Answer::NotFound }
        });
        if lifted == Answer::Changed {
            self.restore_named_expiry(name, key, id);
            self.expire_overdue(name);
        }
        lifted
    }

    /// Restores the expiry that an item names when its hold is lifted, by the TTL modes in force then.
    fn restore_named_expiry(&mut self, name: &str, key: usize, id: &str) {
        let container = self.containers.get_mut(name).expect("looked up above");
        let lifted = container.items.iter().position(|item| item.body.key == key && item.body.id == id);
        if let Some(at) = lifted {
            container.items[at].expires_at = container.named_expiry(&container.items[at].body);
        }
    }

    fn with_live(
        &mut self,
        name: &str,
        key: usize,
        id: &str,
        change: impl FnOnce(&mut Item) -> Answer,
    ) -> Answer {
        if !self.containers.contains_key(name) {
            return Answer::NoContainer;
        }
        match self.find(name, key, &super::Name::Id(id.to_owned())) {
            Err(answer) => answer,
            Ok(index) => change(&mut self.containers.get_mut(name).expect("looked up above").items[index]),
        }
    }

    /// Refuses a change of a held item.
    pub(super) fn check_hold(&self, name: &str, index: usize) -> Result<(), Answer> {
        let container = &self.containers[name];
        if container.hold || container.items[index].held { Err(Answer::Held) } else { Ok(()) }
    }

    /// Returns the versions that another `D` would expire at once (T30).
    pub(crate) fn would_expire(&self, name: &str, default_ttl: DefaultTtl) -> Vec<u64> {
        let Some(container) = self.containers.get(name) else { return Vec::new() };
        let mut changed = container.clone();
        changed.default_ttl = default_ttl;
        let living = self.visible(name).into_iter();
        living.filter(|item| changed.overdue(item, self.now)).map(|item| item.version).collect()
    }
}

//! What owners and operators may ask for: holds (T31), and the guard against changes that kill many at once (T30).

use super::history::What;
use super::{Answer, Consent, Counted, DefaultTtl, Item, MILLION, Model, Wish};

impl Model {
    /// The owner of a container asks for something.
    pub(crate) fn wish(&mut self, name: &'static str, wish: Wish, consent: Consent) -> Answer {
        let Some(container) = self.containers.get_mut(name) else { return Answer::NoContainer };
        match wish {
            Wish::Feed(minutes) => self.keep_feed(name, minutes),
            Wish::Guard(share) => {
                container.guard = share;
                Answer::Changed
            }
            Wish::PurgeDelay(_) => Answer::Changed,
            Wish::Absolute(absolute) => self.listen(name, absolute),
            Wish::Sliding(sliding) => {
                container.countings.sliding = sliding;
                container.counted = container.counted.max(Counted::Otherwise);
                Answer::Changed
            }
            Wish::Evidence(evidence, wished) => {
                self.wish_for(name, evidence, wished);
                Answer::Changed
            }
            Wish::Hold(hold) if container.hold == hold => Answer::Changed,
            Wish::Hold(_) if self.suspect => Answer::ClockSuspect,
            Wish::Hold(hold) => {
                let before = self.clone();
                self.containers.get_mut(name).expect("looked up above").hold = hold;
                self.unless_too_many_die(name, before, consent, Answer::Changed)
            }
        }
    }

    /// What the rules call dead from now on is dead; unless that is more than the owner allows.
    pub(super) fn unless_too_many_die(
        &mut self,
        name: &'static str,
        before: Model,
        consent: Consent,
        answer: Answer,
    ) -> Answer {
        let living = before.visible(name).len() as u64;
        let dying = self.die_by_the_rules(name);
        let guard = self.containers[name].guard.filter(|_| consent == Consent::NotGiven);
        if guard.is_some_and(|share| dying * MILLION > u64::from(share) * living) {
            *self = before;
            return Answer::NotConfirmed;
        }
        answer
    }

    /// Kills, now, whom the rules as they have just become call overdue; says how many that are.
    pub(super) fn die_by_the_rules(&mut self, name: &'static str) -> u64 {
        let container = &self.containers[name];
        let dying: Vec<Item> = container
            .items
            .iter()
            .filter(|item| !self.dead.contains(&item.version) && container.overdue(item, self.trusted))
            .cloned()
            .collect();
        self.turns += 1;
        for item in &dying {
            self.dead.insert(item.version);
            self.mourn(name, self.trusted_ms, item);
            self.happen_at_once(name, What::Expired, Some(item.clone()), None);
        }
        dying.len() as u64
    }

    /// Holds a living item.
    pub(crate) fn hold_item(&mut self, name: &str, key: usize, id: &str) -> Answer {
        self.with_living(name, key, id, |item| {
            item.held = true;
            Answer::Changed
        })
    }

    /// Lifts the hold of an item: if it is overdue, it dies now.
    pub(crate) fn lift_item(&mut self, name: &'static str, key: usize, id: &str) -> Answer {
        if self.containers.get(name).is_some_and(|container| container.hold) {
            return Answer::Held;
        }
        let lifted = self.with_living(name, key, id, |item| {
            if std::mem::take(&mut item.held) { Answer::Changed } else { Answer::NotFound }
        });
        if lifted == Answer::Changed {
            self.hear_again(name, key, id);
            self.die_by_the_rules(name);
        }
        lifted
    }

    /// A death that an item names counts again when its hold is lifted, by what is chosen then.
    fn hear_again(&mut self, name: &str, key: usize, id: &str) {
        let container = self.containers.get_mut(name).expect("looked up above");
        let lifted = container.items.iter().position(|item| item.body.key == key && item.body.id == id);
        if let Some(at) = lifted {
            container.items[at].dies_at = container.named_death(&container.items[at].body);
        }
    }

    fn with_living(
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

    /// Refuses a change of what is held.
    pub(super) fn check_hold(&self, name: &str, index: usize) -> Result<(), Answer> {
        let container = &self.containers[name];
        if container.hold || container.items[index].held { Err(Answer::Held) } else { Ok(()) }
    }

    /// The versions that another `D` would kill at once (T30).
    pub(crate) fn would_die(&self, name: &str, default_ttl: DefaultTtl) -> Vec<u64> {
        let Some(container) = self.containers.get(name) else { return Vec::new() };
        let mut changed = container.clone();
        changed.default_ttl = default_ttl;
        let living = self.visible(name).into_iter();
        living.filter(|item| changed.overdue(item, self.now)).map(|item| item.version).collect()
    }
}

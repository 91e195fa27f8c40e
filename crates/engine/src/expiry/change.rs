//! Changes of the expiry rules. No change rewrites a stored item, and no change brings an expired item back.
//!
//! Every change takes the same steps. The new rules are recorded. For each queue whose new rule expires items later
//! than the old one, or not at all, a cutoff preserves what the old rule had expired. Then every date rule whose
//! newest queue has got a cutoff continues with another generation:
//!
//! ```text
//!   rule, delay 60     queue 16:  a b c d e                 newest: 16
//!   delay 90 at T      queue 16:  a b c | d e     cutoff    newest: 17: items written from now on are not covered,
//!                      queue 17:                            however far back their dates lie
//!   purge              queue 16:  d e             cutoff dropped
//!   delay 120 at T2    queue 17:  f | g           cutoff    newest: 16 again
//! ```
//!
//! So a rule has at most one queue more than the largest number of cutoffs that it had open at one time, and that
//! number is bounded.

use std::collections::BTreeSet;

use document::Sequence;
use storage::Time;

use super::{Cutoff, DateRule, Lifecycle, Millis, Moment, Policy, Queue, from_time};
use crate::expiry::ttl::DefaultTtl;
use crate::types::error::{Error, Result};

/// The largest number of open cutoffs. A policy change that would exceed it has to wait for the purge.
pub(super) const CUTOFFS_MAX: usize = 256;

/// The largest number of date rules that indexes make; an item's header counts its bases in one byte.
pub(super) const RULES_MAX: usize = 128;

/// The number of rules that no index makes.
pub(super) const RESERVED_RULES: usize = 3;

/// How many numbers are tried for a new queue once all numbers have been used.
const QUEUE_TRIES_MAX: usize = 4096;

/// A change of the expiry rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// The default TTL (`D`) becomes this.
    DefaultTtl(DefaultTtl),
    /// A date rule is added. Items join its queue from now on; it expires nothing until it has a delay.
    AddRule { id: u32 },
    /// A date rule comes into force, or its delay changes.
    SetDelay { id: u32, delay_ms: Millis },
    /// A date rule ends, if there is one of that number. An item's entry in its queue is removed with the item's next
    /// version.
    DropRule { id: u32 },
    /// Countdowns may start elsewhere than at `_ts` from now on (T33).
    EnableTtlModes,
    /// The owner changes the lifecycle settings.
    Lifecycle(Lifecycle),
}

impl Policy {
    /// Returns the policy after a change at (`sequence`, `now`). `occupied` tells whether a queue has an entry up to
    /// a base: a cutoff that would cover nothing is not recorded, and the number of a queue that still has entries is
    /// not reused.
    pub(crate) fn change(
        &self,
        change: Change,
        now: Time,
        sequence: Sequence,
        occupied: impl Fn(Queue, Millis) -> Result<bool>,
    ) -> Result<Policy> {
        let mut next = Policy { version: self.version + 1, ..self.clone() };
        next.set(change, &occupied)?;
        next.begin_terms(self, Moment { time: from_time(now), sequence });
        for queue in self.queues() {
            let Some((through, term)) = self.horizon(queue, now).zip(self.term(queue)) else { continue };
            if !self.leaves_cutoff(&next, queue) || next.is_cut(queue, through) || !occupied(queue, through)?
            {
                continue;
            }
            if !next.lifecycle.tells_instants() {
                next.cutoffs.retain(|older| older.queue != queue || older.through > through);
            }
            next.cutoffs.push(Cutoff { queue, through, before: sequence, term });
        }
        if next.cutoffs.len() > CUTOFFS_MAX {
            return Err(Error::Unavailable(format!(
                "{CUTOFFS_MAX} earlier changes of expiry rules keep items expired that are not removed yet; let the purge \
                 remove them, and run bolide check --repair for those that it has set aside"
            )));
        }
        next.renew_generations(&occupied)?;
        Ok(next)
    }

    /// Returns whether the change would alter this policy.
    pub(crate) fn differs(&self, change: &Change) -> bool {
        match change {
            Change::DefaultTtl(default_ttl) => self.default_ttl != *default_ttl,
            Change::AddRule { .. } => true,
            Change::SetDelay { id, delay_ms } => {
                self.rule(*id).is_none_or(|rule| rule.delay_ms != Some(*delay_ms))
            }
            Change::DropRule { id } => self.rule(*id).is_some(),
            Change::EnableTtlModes => !self.has_ttl_modes(),
            Change::Lifecycle(lifecycle) => self.lifecycle != *lifecycle,
        }
    }

    /// Returns whether a change has to decide which items have expired by now. Such a change is refused while the
    /// clock is suspect.
    pub(crate) fn judges(&self, change: &Change) -> bool {
        match change {
            Change::DefaultTtl(_) => true,
            Change::AddRule { .. } | Change::EnableTtlModes => false,
            Change::SetDelay { id, .. } | Change::DropRule { id } => {
                self.rule(*id).is_some_and(|rule| rule.delay_ms.is_some())
            }
            Change::Lifecycle(lifecycle) => {
                self.lifecycle.hold.is_some() != lifecycle.hold.is_some()
                    || self.lifecycle.expire_at_path.is_some() && lifecycle.expire_at_path.is_none()
            }
        }
    }

    /// Applies a change to the rules themselves.
    fn set(&mut self, change: Change, occupied: &impl Fn(Queue, Millis) -> Result<bool>) -> Result<()> {
        match change {
            Change::DefaultTtl(default_ttl) => {
                self.default_ttl = default_ttl;
                self.follow_default_ttl();
            }
            Change::AddRule { id } if self.rule(id).is_some() => {
                return Err(Error::Corrupt(format!("there is a date rule {id} already")));
            }
            Change::AddRule { .. }
                if self.rules.iter().filter(|rule| rule.is_of_an_index()).count() >= RULES_MAX =>
            {
                return Err(Error::invalid(format!("More than {RULES_MAX} date rules.")));
            }
            Change::AddRule { id } => self.add_rule(id, None, occupied)?,
            Change::SetDelay { id, delay_ms } => {
                let rule = self.rules.iter_mut().find(|rule| rule.id == id);
                let rule = rule.ok_or_else(|| Error::Corrupt(format!("there is no date rule {id}")))?;
                rule.delay_ms = Some(delay_ms);
            }
            Change::DropRule { id } => self.rules.retain(|rule| rule.id != id),
            Change::EnableTtlModes => self.enable_ttl_modes(occupied)?,
            Change::Lifecycle(lifecycle) => {
                self.lifecycle = lifecycle;
                self.follow_lifecycle(occupied)?;
            }
        }
        Ok(())
    }

    fn add_rule(
        &mut self,
        id: u32,
        delay_ms: Option<Millis>,
        occupied: &impl Fn(Queue, Millis) -> Result<bool>,
    ) -> Result<()> {
        let queues = vec![self.empty_queue(occupied)?];
        self.rules.push(DateRule { id, delay_ms, queues });
        Ok(())
    }

    /// Adds the rules that the TTL modes in the settings need. Their queues are still empty, so the rules expire
    /// nothing yet and are in force at once. The rules of ttl stay for good, because items that use them may stay for
    /// as long.
    fn follow_lifecycle(&mut self, occupied: &impl Fn(Queue, Millis) -> Result<bool>) -> Result<()> {
        if self.lifecycle.ttl_property_path.is_some() || self.lifecycle.sliding {
            self.enable_ttl_modes(occupied)?;
        }
        match (self.lifecycle.expire_at_path.is_some(), self.rule(DateRule::ABSOLUTE).is_some()) {
            (true, false) => self.add_rule(DateRule::ABSOLUTE, Some(0), occupied)?,
            (false, true) => self.rules.retain(|rule| rule.id != DateRule::ABSOLUTE),
            (true, true) | (false, false) => {}
        }
        Ok(())
    }

    fn enable_ttl_modes(&mut self, occupied: &impl Fn(Queue, Millis) -> Result<bool>) -> Result<()> {
        if !self.has_ttl_modes() {
            for id in [DateRule::INHERITED, DateRule::OWNED] {
                self.add_rule(id, None, occupied)?;
            }
            self.follow_default_ttl();
        }
        Ok(())
    }

    /// Records which queues have another delay than in `before`, and since when.
    fn begin_terms(&mut self, before: &Policy, now: Moment) {
        for queue in self.queues() {
            match self.delay(queue) {
                None => drop(self.since.remove(&queue)),
                delay if delay != before.delay(queue) => drop(self.since.insert(queue, now)),
                Some(_) => {}
            }
        }
        let queues = self.queues();
        self.since.retain(|queue, _| queues.contains(queue));
    }

    /// Returns whether a cutoff has to preserve what the rule of a queue has expired when `next` takes over: where
    /// the next rule would not expire those items, and where instants of expiry are reported, because the next rule
    /// does not have them.
    fn leaves_cutoff(&self, next: &Policy, queue: Queue) -> bool {
        let changes = self.delay(queue) != next.delay(queue);
        self.is_relaxed(next, queue) || changes && next.lifecycle.tells_instants()
    }

    /// Returns whether the rule of a queue expires items later in `next` than here, or not at all. Otherwise the
    /// stricter rule expires everything that this one has expired, now and at every later time.
    fn is_relaxed(&self, next: &Policy, queue: Queue) -> bool {
        self.delay(queue).is_some_and(|delay| next.delay(queue).is_none_or(|later| later > delay))
    }

    /// Returns whether a cutoff already covers every entry of a date queue up to `through`, so that no item has
    /// joined the queue since.
    fn is_cut(&self, queue: Queue, through: Millis) -> bool {
        let covers = |cutoff: &Cutoff| cutoff.queue == queue && cutoff.through >= through;
        matches!(queue, Queue::Date(_)) && self.cutoffs.iter().any(covers)
    }

    /// Gives every date rule whose newest queue has a cutoff another newest queue: one of its own queues without
    /// cutoffs, whose items are judged as those that will join it, or else an empty one.
    fn renew_generations(&mut self, occupied: &impl Fn(Queue, Millis) -> Result<bool>) -> Result<()> {
        for at in 0..self.rules.len() {
            let is_open = |queue: &Queue| self.cutoffs.iter().all(|cutoff| cutoff.queue != *queue);
            let queues = &self.rules[at].queues;
            if is_open(&self.rules[at].newest()) {
                continue;
            }
            let next = match queues.iter().position(is_open) {
                Some(open) => self.rules[at].queues.remove(open),
                None => self.empty_queue(occupied)?,
            };
            self.rules[at].queues.push(next);
        }
        Ok(())
    }

    /// Continues the numbering as if that date queue had been opened last.
    #[cfg(test)]
    pub(crate) fn set_last_queue(&mut self, number: u16) {
        self.last_queue = number;
    }

    /// Returns the number of an empty date queue. Numbers are reused only when all have been used, and never while a
    /// header may still name one: every item whose header names a queue has an entry in it.
    fn empty_queue(&mut self, occupied: &impl Fn(Queue, Millis) -> Result<bool>) -> Result<Queue> {
        let known = self.queues();
        for _ in 0..QUEUE_TRIES_MAX {
            self.last_queue = self.last_queue.checked_add(1).unwrap_or_default().max(Queue::FIRST_DATE);
            let queue = Queue::Date(self.last_queue);
            if !known.contains(&queue) && !occupied(queue, Millis::MAX)? {
                return Ok(queue);
            }
        }
        Err(Error::Unavailable("no queue is free for a date rule".into()))
    }

    /// Returns the policy without those cutoffs of `queue` that reach no further than `through`, which the purge has
    /// passed. `left` has the bases of the items that the purge has set aside there. For each of them the cutoff by
    /// which it expired first is kept, so that it stays expired, as of the same instant. However often the rules
    /// change, no more cutoffs are kept than items are left.
    pub(crate) fn forget(&self, queue: Queue, through: Millis, left: &[Millis]) -> Option<Policy> {
        let first_of = |base: Millis| {
            let covering = self.cutoffs.iter().enumerate();
            let covering = covering.filter(|(_, cutoff)| cutoff.queue == queue && base <= cutoff.through);
            covering.min_by_key(|(_, cutoff)| cutoff.term.instant(base)).map(|(at, _)| at)
        };
        let needed: BTreeSet<usize> = left.iter().filter_map(|base| first_of(*base)).collect();
        let is_kept = |(at, cutoff): &(usize, &Cutoff)| {
            cutoff.queue != queue || cutoff.through > through || needed.contains(at)
        };
        let cutoffs: Vec<Cutoff> =
            self.cutoffs.iter().enumerate().filter(is_kept).map(|(_, cutoff)| *cutoff).collect();
        (cutoffs.len() < self.cutoffs.len()).then(|| Policy {
            version: self.version + 1,
            cutoffs,
            ..self.clone()
        })
    }
}

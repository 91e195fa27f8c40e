//! Changes of the rules. None rewrites an item, none revives one.
//!
//! All are the same few steps: the new rules are written down; for each queue whose rule kills later than before, or not at
//! all, a cutoff keeps what the old rule had killed; then every date rule whose newest queue has got a cutoff goes on with
//! another generation:
//!
//! ```text
//!   rule, delay 60     queue 16:  a b c d e                 newest: 16
//!   delay 90 at T      queue 16:  a b c | d e     cutoff    newest: 17: who is written now is not covered, however
//!                      queue 17:                            far back its date may lie
//!   purge              queue 16:  d e             forgotten
//!   delay 120 at T2    queue 17:  f | g           cutoff    newest: 16 again
//! ```
//!
//! So a rule has at most one queue more than it ever had open cutoffs at a time, and those are bounded.

use std::collections::BTreeSet;

use document::Sequence;
use storage::Time;

use super::{Cutoff, DateRule, Lifecycle, Millis, Moment, Policy, Queue, from_time};
use crate::definition::DefaultTtl;
use crate::error::{Error, Result};

/// More open cutoffs than this, and a policy change waits for the purge.
pub(super) const CUTOFFS_MAX: usize = 256;

/// Indexes make no more date rules than this; the header of an item counts its bases in a byte.
pub(super) const RULES_MAX: usize = 128;

/// Rules that no index makes.
pub(super) const COUNTINGS: usize = 3;

/// How many numbers are tried for a new queue, once all have been used.
const QUEUE_TRIES_MAX: usize = 4096;

/// A change of the rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// `D` becomes this.
    DefaultTtl(DefaultTtl),
    /// A date rule begins. Items join its queue from now on; it kills nobody until it has a delay.
    AddRule { id: u32 },
    /// A date rule comes into force, or kills sooner or later than before.
    SetDelay { id: u32, delay_ms: Millis },
    /// A date rule ends, if there is one of that number. Its entries go with their items' next versions.
    DropRule { id: u32 },
    /// Countdowns may begin elsewhere than at `_ts` from now on (T33).
    OpenCountings,
    /// The owner asks for something else beyond rules.
    Lifecycle(Lifecycle),
}

impl Policy {
    /// The policy after a change at (`sequence`, `now`). `occupied` tells whether a queue has an entry up to a base: a
    /// cutoff that covers nothing is not recorded, and a queue with entries is not used again.
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

    /// Whether a change changes anything.
    pub(crate) fn differs(&self, change: &Change) -> bool {
        match change {
            Change::DefaultTtl(default_ttl) => self.default_ttl != *default_ttl,
            Change::AddRule { .. } => true,
            Change::SetDelay { id, delay_ms } => {
                self.rule(*id).is_none_or(|rule| rule.delay_ms != Some(*delay_ms))
            }
            Change::DropRule { id } => self.rule(*id).is_some(),
            Change::OpenCountings => !self.has_countings(),
            Change::Lifecycle(lifecycle) => self.lifecycle != *lifecycle,
        }
    }

    /// Whether a change has to tell who is dead by now: not by a clock that is suspect.
    pub(crate) fn judges(&self, change: &Change) -> bool {
        match change {
            Change::DefaultTtl(_) => true,
            Change::AddRule { .. } | Change::OpenCountings => false,
            Change::SetDelay { id, .. } | Change::DropRule { id } => {
                self.rule(*id).is_some_and(|rule| rule.delay_ms.is_some())
            }
            Change::Lifecycle(lifecycle) => {
                self.lifecycle.hold.is_some() != lifecycle.hold.is_some()
                    || self.lifecycle.expire_at_path.is_some() && lifecycle.expire_at_path.is_none()
            }
        }
    }

    /// Writes a change down.
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
            Change::OpenCountings => self.open_countings(occupied)?,
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
        let queues = vec![self.fresh_queue(occupied)?];
        self.rules.push(DateRule { id, delay_ms, queues });
        Ok(())
    }

    /// Countings need the rules that they follow. Nobody stands in their queues yet, so they kill nobody and are in force at
    /// once. Those of ttl stay for ever: items that were counted so may be there for as long.
    fn follow_lifecycle(&mut self, occupied: &impl Fn(Queue, Millis) -> Result<bool>) -> Result<()> {
        if self.lifecycle.ttl_property_path.is_some() || self.lifecycle.sliding {
            self.open_countings(occupied)?;
        }
        match (self.lifecycle.expire_at_path.is_some(), self.rule(DateRule::ABSOLUTE).is_some()) {
            (true, false) => self.add_rule(DateRule::ABSOLUTE, Some(0), occupied)?,
            (false, true) => self.rules.retain(|rule| rule.id != DateRule::ABSOLUTE),
            (true, true) | (false, false) => {}
        }
        Ok(())
    }

    fn open_countings(&mut self, occupied: &impl Fn(Queue, Millis) -> Result<bool>) -> Result<()> {
        if !self.has_countings() {
            for id in [DateRule::INHERITED, DateRule::OWNED] {
                self.add_rule(id, None, occupied)?;
            }
            self.follow_default_ttl();
        }
        Ok(())
    }

    /// Writes down which queues have got another delay than in `before`, and when.
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

    /// Whether what a queue's rule has killed has to be remembered when `next` takes over: where the next rule would let it
    /// live, and where instants of death are told, which the next rule does not know.
    fn leaves_cutoff(&self, next: &Policy, queue: Queue) -> bool {
        let changes = self.delay(queue) != next.delay(queue);
        self.is_relaxed(next, queue) || changes && next.lifecycle.tells_instants()
    }

    /// Whether a queue's rule kills later in `next` than here, or no more. What a stricter rule kills includes what this one
    /// has killed, now and at every later time.
    fn is_relaxed(&self, next: &Policy, queue: Queue) -> bool {
        self.delay(queue).is_some_and(|delay| next.delay(queue).is_none_or(|later| later > delay))
    }

    /// Whether a cutoff covers every entry of a date queue up to `through` already: nobody has joined the queue since.
    fn is_cut(&self, queue: Queue, through: Millis) -> bool {
        let covers = |cutoff: &Cutoff| cutoff.queue == queue && cutoff.through >= through;
        matches!(queue, Queue::Date(_)) && self.cutoffs.iter().any(covers)
    }

    /// Gives every date rule whose newest queue has a cutoff another newest queue: one of its own without cutoffs, whose
    /// items are judged as those that will join it are, or a fresh one.
    fn renew_generations(&mut self, occupied: &impl Fn(Queue, Millis) -> Result<bool>) -> Result<()> {
        for at in 0..self.rules.len() {
            let is_open = |queue: &Queue| self.cutoffs.iter().all(|cutoff| cutoff.queue != *queue);
            let queues = &self.rules[at].queues;
            if is_open(&self.rules[at].newest()) {
                continue;
            }
            let next = match queues.iter().position(is_open) {
                Some(open) => self.rules[at].queues.remove(open),
                None => self.fresh_queue(occupied)?,
            };
            self.rules[at].queues.push(next);
        }
        Ok(())
    }

    /// Goes on as if that date queue had been opened last.
    #[cfg(test)]
    pub(crate) fn set_last_queue(&mut self, number: u16) {
        self.last_queue = number;
    }

    /// A date queue that nobody stands in. Numbers are used again only when all have been, and never one that a header may
    /// still name: whoever names a queue stands in it.
    fn fresh_queue(&mut self, occupied: &impl Fn(Queue, Millis) -> Result<bool>) -> Result<Queue> {
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

    /// The policy without those cutoffs of `queue` that reach no further than `through`: the purge has passed them. `left` are
    /// the bases of the items that it has left there: for each of them the cutoff stays by which it expired first, so that it
    /// stays expired, and as of the same instant. However often rules change, no more cutoffs are kept than items are left.
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

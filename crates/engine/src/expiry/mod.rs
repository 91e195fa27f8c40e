//! When an item is dead: the heart of Bolide, one small pure function.
//!
//! An item stands in one *queue* for each rule by which it can die, at a *base* time. A rule is nothing but a *delay* added
//! to the base of each entry of its queues:
//!
//! ```text
//!   queue     who stands in it          base         delay
//!   inherit   items without own ttl     _ts          D while D = n, else none
//!   own       items with ttl = m        _ts + m      0 unless D is off
//!   date      items with that date      the date     that of the date rule
//!   stamp     items not in inherit      _ts          never: it only serves queries on _ts
//! ```
//!
//! A countdown need not begin at `_ts`, and an item may name its death ([`counting`]): such items stand in numbered queues as
//! those with dates do.
//!
//! So the dead are a prefix of each queue, `base <= now - delay`, whatever D is. Changing D moves the end of the prefix
//! and rewrites nothing (T11). An item is dead if it is among the dead of any queue it stands in: the earliest rule wins,
//! and `ttl` = -1, which keeps an item out of the first two queues, stops no date rule (T27). All times are milliseconds
//! since 1970; `_ts` and ttl are whole seconds, and since `floor(now) >= _ts + ttl` holds exactly when `now >= _ts + ttl`,
//! the finer clock changes no answer (T1). Sums saturate: the far future means "not yet" (T7).
//!
//! **Expired is final (T13).** A policy change at (sequence S, time T) records for each rule that it relaxes or drops a
//! [`Cutoff`]: what the old rule had killed by T stays dead, although the new rule would let it live:
//!
//! ```text
//!   inherit queue, by _ts      a  b  c | d  e | f  g
//!                                      ^      ^
//!      cutoff: D was 60 until T: a, b, c       D = 30 now: d, e
//!              are dead for ever               are dead too; f, g live
//! ```
//!
//! Only items written before S are covered by it. For the first two queues that is implied by their base, because time
//! never falls. A date may lie in the past, so date rules have *generations* of queues: items join the newest, and a queue
//! with a cutoff is never the newest. So a cutoff always covers a whole prefix of one queue, and counters need not look at
//! items ([`change`]). A cutoff is forgotten once the purge has emptied the prefix it covers.

mod change;
mod counting;
mod lifecycle;
#[cfg(test)]
mod model;
mod moment;
mod place;
mod stored;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use document::Sequence;
use storage::Time;

pub(crate) use change::Change;
pub use counting::Countdown;
pub(crate) use counting::{bson_at, instant_of, instant_of_bson, seconds_of, seconds_of_bson};
pub use lifecycle::Lifecycle;
pub(crate) use moment::{Moment, Term};
pub(crate) use place::{Counted, Millis, Place, Places, Queue, from_seconds};

use crate::definition::DefaultTtl;
use crate::header::Header;

/// What a rule had killed when it was changed or dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cutoff {
    pub(crate) queue: Queue,
    /// Entries up to this base are covered,
    pub(crate) through: Millis,
    /// if their item was last written before this sequence.
    pub(crate) before: Sequence,
    /// The rule that killed them.
    pub(crate) term: Term,
}

impl Cutoff {
    fn covers(&self, place: Place, sequence: Sequence) -> bool {
        self.queue == place.queue && place.base <= self.through && sequence < self.before
    }
}

/// A rule by which items die at a date in them (T27), or otherwise than counted from their last write (T33).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DateRule {
    /// The number of the index that made it, or one of a few that no index has.
    pub(crate) id: u32,
    /// How long after its date an item dies; none as long as not every item stands in the rule's queues: it kills nobody yet.
    pub(crate) delay_ms: Option<Millis>,
    /// Its generations, the newest last; never empty.
    pub(crate) queues: Vec<Queue>,
}

impl DateRule {
    /// The generation that items join.
    pub(crate) fn newest(&self) -> Queue {
        *self.queues.last().expect("a date rule has a queue")
    }
}

/// When and why an item died.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cause {
    pub(crate) moment: Moment,
    /// The place by which it died,
    pub(crate) place: Place,
    /// and the delay that its rule had then.
    pub(crate) delay: Millis,
}

/// The rules of one physical partition, and what earlier rules left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Policy {
    /// Grows with every change, so that an older copy never replaces a newer one.
    pub(crate) version: u64,
    /// The container's `D`.
    pub(crate) default_ttl: DefaultTtl,
    /// Open cutoffs, oldest first.
    pub(crate) cutoffs: Vec<Cutoff>,
    /// The date rules.
    pub(crate) rules: Vec<DateRule>,
    /// The date queue that was opened last; 0 if there was none.
    last_queue: u16,
    /// Since when queues have the delay that they have; those that are not here have had no other.
    since: BTreeMap<Queue, Moment>,
    /// What the owner wants beyond rules.
    pub(crate) lifecycle: Lifecycle,
}

impl Policy {
    /// The policy of a new partition.
    pub(crate) fn new(default_ttl: DefaultTtl) -> Policy {
        Policy {
            version: 1,
            default_ttl,
            cutoffs: Vec::new(),
            rules: Vec::new(),
            last_queue: 0,
            since: BTreeMap::new(),
            lifecycle: Lifecycle::default(),
        }
    }

    /// **The one decision**: is an item with this header dead at `now`?
    pub(crate) fn is_dead(&self, header: &Header, now: Time) -> bool {
        header.mortal_places().any(|place| self.kills(place, header.sequence, now))
    }

    /// Whether an item that was last written at `sequence` is dead by its place in one queue.
    pub(crate) fn kills(&self, place: Place, sequence: Sequence, now: Time) -> bool {
        self.horizon(place.queue, now).is_some_and(|through| place.base <= through)
            || self.cutoffs.iter().any(|cutoff| cutoff.covers(place, sequence))
    }

    /// How long after its base an entry of the queue dies; none if the queue has no rule now (T2), or while the container is
    /// held (T31).
    fn delay(&self, queue: Queue) -> Option<Millis> {
        match (queue, self.default_ttl) {
            _ if self.lifecycle.hold.is_some() => None,
            (Queue::Date(_), _) => self.rule_of(queue).and_then(|rule| rule.delay_ms),
            (Queue::Stamp, _) | (_, DefaultTtl::Off) | (Queue::Inherit, DefaultTtl::Never) => None,
            (Queue::Inherit, DefaultTtl::Seconds(n)) => Some(from_seconds(u64::from(n))),
            (Queue::Own, DefaultTtl::Never | DefaultTtl::Seconds(_)) => Some(0),
        }
    }

    /// Whether the queue has a rule that kills.
    pub(crate) fn has_rule(&self, queue: Queue) -> bool {
        self.delay(queue).is_some()
    }

    /// The base up to which the current rule kills.
    fn horizon(&self, queue: Queue, now: Time) -> Option<Millis> {
        self.delay(queue).map(|delay| from_time(now).saturating_sub(delay))
    }

    /// The rule of a queue, and since when it is in force.
    fn term(&self, queue: Queue) -> Option<Term> {
        let since = self.since.get(&queue).copied().unwrap_or(Moment::ALWAYS);
        self.delay(queue).map(|delay| Term { delay, since })
    }

    /// The instant at which an item dies, or has died, by its place in one queue. It does not move once it has come: whatever
    /// happens to the rules later, what has killed an item is remembered until the purge has removed it.
    pub(crate) fn instant(&self, place: Place, sequence: Sequence) -> Option<Moment> {
        self.terms(place, sequence).map(|term| term.instant(place.base)).min()
    }

    /// The rules by which an item dies, or has died, at its place in one queue.
    fn terms(&self, place: Place, sequence: Sequence) -> impl Iterator<Item = Term> {
        let cutoffs = self.cutoffs.iter().filter(move |cutoff| cutoff.covers(place, sequence));
        cutoffs.map(|cutoff| cutoff.term).chain(self.term(place.queue))
    }

    /// The instant at which an item dies or has died, and the place by which it does.
    pub(crate) fn end_of(&self, header: &Header) -> Option<(Moment, Place)> {
        let ends = header
            .mortal_places()
            .filter_map(|place| self.instant(place, header.sequence).map(|moment| (moment, place)));
        // Not by the queue before the base: which number a generation has depends on when the purge forgot an older one.
        ends.min_by_key(|(moment, place)| (*moment, place.base, place.queue))
    }

    /// The same with the rule that did it.
    pub(crate) fn cause(&self, header: &Header) -> Option<Cause> {
        let (moment, place) = self.end_of(header)?;
        let term = self.terms(place, header.sequence).find(|term| term.instant(place.base) == moment)?;
        Some(Cause { moment, place, delay: term.delay })
    }

    /// What kills an item that has just come under the rules, by a write or by the end of its hold: those in force, not those
    /// of before that it was held against (T31).
    pub(crate) fn cause_in_force(&self, header: &Header) -> Option<Cause> {
        let cause = |place: Place| {
            let term = self.term(place.queue)?;
            Some(Cause { moment: term.instant(place.base), place, delay: term.delay })
        };
        let causes = header.mortal_places().filter_map(cause);
        causes.min_by_key(|cause| (cause.moment, cause.place.base, cause.place.queue))
    }

    /// The end of the queue's dead prefix, by the current rule or a cutoff.
    pub(crate) fn dead_through(&self, queue: Queue, now: Time) -> Option<Millis> {
        let cutoffs = self.cutoffs.iter().filter(|cutoff| cutoff.queue == queue);
        cutoffs.map(|cutoff| cutoff.through).chain(self.horizon(queue, now)).max()
    }

    /// Whether no item can be dead.
    pub(crate) fn kills_nobody(&self, now: Time) -> bool {
        self.queues().into_iter().all(|queue| self.dead_through(queue, now).is_none())
    }

    /// When an entry with this base dies; none if no rule will kill it.
    pub(crate) fn due(&self, place: Place) -> Option<Time> {
        let due = place.base.saturating_add(self.delay(place.queue)?);
        Some(Time::from_millis(due.max(0).unsigned_abs()))
    }

    /// When an item dies, by whichever rule comes first; none if no rule will kill it.
    pub(crate) fn death(&self, header: &Header) -> Option<Time> {
        header.mortal_places().filter_map(|place| self.due(place)).min()
    }

    /// In how many seconds an item dies, begun ones included; none if no rule will kill it.
    pub(crate) fn seconds_left(&self, header: &Header, now: Time) -> Option<u64> {
        self.death(header).map(|death| death.millis().saturating_sub(now.millis()).div_ceil(1000))
    }

    /// Whether a later policy kills nobody whom this one would let live.
    pub(crate) fn still_holds(&self, later: &Policy) -> bool {
        self.default_ttl == later.default_ttl
            && self.rules == later.rules
            && self.lifecycle == later.lifecycle
            && later.cutoffs.iter().all(|cutoff| self.cutoffs.contains(cutoff))
    }

    /// The queues by which items die, in groups of which an item stands in one queue at most.
    pub(crate) fn groups(&self) -> Vec<Vec<Queue>> {
        let (of_ttl, of_dates): (Vec<_>, Vec<_>) = self.rules.iter().partition(|rule| rule.is_of_ttl());
        let of_ttl = of_ttl.iter().flat_map(|rule| rule.queues.iter().copied());
        let mut groups = vec![[Queue::Inherit, Queue::Own].into_iter().chain(of_ttl).collect()];
        groups.extend(of_dates.iter().map(|rule| rule.queues.clone()));
        // A dropped rule has left cutoffs only; which of their queues were of one rule is not known any more.
        for Cutoff { queue, .. } in &self.cutoffs {
            if !groups.iter().flatten().any(|known| known == queue) {
                groups.push(vec![*queue]);
            }
        }
        groups
    }

    /// The queues by which items die.
    pub(crate) fn queues(&self) -> Vec<Queue> {
        self.groups().concat()
    }

    /// The date rule that the index of that number made.
    pub(crate) fn rule(&self, id: u32) -> Option<&DateRule> {
        self.rules.iter().find(|rule| rule.id == id)
    }

    /// The date rule that a queue is of.
    pub(crate) fn rule_of(&self, queue: Queue) -> Option<&DateRule> {
        self.rules.iter().find(|rule| rule.queues.contains(&queue))
    }

    /// The bases of an item that is written now: `date` tells the item's date for a rule, if it has one. Rules whose index
    /// is being built are asked too, so that nothing is missing when they come into force.
    pub(crate) fn bases(&self, mut date: impl FnMut(u32) -> Option<Millis>) -> Vec<Place> {
        let place = |rule: &DateRule| Some(Place { queue: rule.newest(), base: date(rule.id)? });
        self.rules.iter().filter_map(place).collect()
    }

    /// The bases of a stored, living item after an index build has learned its date for one rule. Its other places stay as
    /// they are; those of dropped rules go. A held item has none.
    pub(crate) fn rebase(&self, header: &Header, rule: u32, date: Option<Millis>) -> Vec<Place> {
        if header.held {
            return Vec::new();
        }
        let is_kept = |place: &&Place| self.rule_of(place.queue).is_some_and(|known| known.id != rule);
        let mut bases: Vec<Place> = header.bases.iter().filter(is_kept).copied().collect();
        let rule = self.rule(rule);
        bases.extend(rule.zip(date).map(|(rule, base)| Place { queue: rule.newest(), base }));
        bases
    }
}

fn from_time(time: Time) -> Millis {
    Millis::try_from(time.millis()).unwrap_or(Millis::MAX)
}

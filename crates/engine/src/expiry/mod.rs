//! Decides whether an item has expired: the core of Bolide, one small pure function.
//!
//! An item has an entry in one *queue* for each rule by which it can expire, at a *base* time. A rule is nothing but
//! a *delay* that is added to the base of each entry of its queues:
//!
//! ```text
//!   queue     items in it               base         delay
//!   inherit   items without own ttl     _ts          D while D = n, else none
//!   own       items with ttl = m        _ts + m      0 unless D is off
//!   date      items with that date      the date     that of the date rule
//!   stamp     items not in inherit      _ts          none: it only serves queries on _ts
//! ```
//!
//! An entry has expired once `base + delay <= now`. Queues are sorted by base, so the expired entries are always a
//! prefix of their queue, `base <= now - delay`, whatever `D` is. A change of `D` moves the end of that prefix and
//! rewrites no entry (T11). An item has expired if it is in the expired prefix of any of its queues: the earliest
//! rule wins. A `ttl` of -1 keeps an item out of the first two queues, and stops no date rule (T27).
//!
//! A countdown need not start at `_ts`, and an item may name the instant of its expiry ([`ttl_mode`]). Such items
//! have entries in numbered queues, as items with dates do.
//!
//! All times are milliseconds since 1970. `_ts` and ttl are whole seconds, and since `floor(now) >= _ts + ttl` holds
//! exactly when `now >= _ts + ttl`, the finer clock changes no answer (T1). Sums saturate: a base in the far future
//! means "not yet" (T7).
//!
//! **Expired is final (T13).** A policy change at (sequence S, time T) records a [`Cutoff`] for each rule that it
//! relaxes or drops. Items that the old rule had expired by T stay expired, although the new rule would not expire them:
//!
//! ```text
//!   inherit queue, by _ts      a  b  c | d  e | f  g
//!                                      ^      ^
//!      cutoff: D was 60 until T: a, b, c       D = 30 now: d, e
//!              stay expired                    have expired too; f, g are living
//! ```
//!
//! A cutoff covers only items that were written before S. In the first two queues that follows from the base, because
//! time never runs backwards. A date, however, may lie in the past. Therefore date rules have *generations* of
//! queues: items join the newest, and a queue with a cutoff is never the newest. So a cutoff always covers a whole
//! prefix of one queue, and the counters can be summed without reading items ([`change`]). The purge drops a cutoff once
//! it has emptied the prefix that the cutoff covers.

mod archive_directory;
mod change;
pub(crate) mod header;
pub(crate) mod item;
mod lifecycle;
#[cfg(test)]
mod model_tests;
mod moment;
mod queue_position;
mod stored;
#[cfg(test)]
mod tests;
pub(crate) mod ttl;
mod ttl_mode;

use std::collections::BTreeMap;

use document::Sequence;
use storage::Time;

pub use archive_directory::ArchiveDirectory;
pub(crate) use change::Change;
pub use lifecycle::Lifecycle;
pub(crate) use moment::{Moment, RuleTerm};
pub(crate) use queue_position::{CountdownBase, Millis, Queue, QueuePosition, QueuePositions, from_seconds};
pub use ttl_mode::Countdown;
pub(crate) use ttl_mode::{bson_at, instant_of, instant_of_bson, seconds_of, seconds_of_bson};

use crate::expiry::header::Header;
use crate::expiry::ttl::DefaultTtl;

/// The entries that a rule had expired when it was changed or dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cutoff {
    pub(crate) queue: Queue,
    /// Entries up to this base are covered,
    pub(crate) through: Millis,
    /// if their item was last written before this sequence.
    pub(crate) before: Sequence,
    /// The rule by which they expired.
    pub(crate) term: RuleTerm,
}

impl Cutoff {
    fn covers(&self, place: QueuePosition, sequence: Sequence) -> bool {
        self.queue == place.queue && place.base <= self.through && sequence < self.before
    }
}

/// A rule by which items expire at a date that they hold (T27), or by a TTL mode other than "since the last write"
/// (T33).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DateRule {
    /// The number of the index that made it, or one of the reserved numbers that no index has.
    pub(crate) id: u32,
    /// How long after its date an item expires. `None` until every item has its entry in the rule's queues: until
    /// then the rule expires nothing.
    pub(crate) delay_ms: Option<Millis>,
    /// The rule's queues, one for each generation, the newest last; never empty.
    pub(crate) queues: Vec<Queue>,
}

impl DateRule {
    /// Returns the queue of the newest generation, which items join.
    pub(crate) fn newest(&self) -> Queue {
        *self.queues.last().expect("a date rule has a queue")
    }
}

/// When and why an item expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cause {
    pub(crate) moment: Moment,
    /// The queue position by which it expired,
    pub(crate) place: QueuePosition,
    /// and the delay that its rule had then.
    pub(crate) delay: Millis,
}

/// The expiry rules of one physical partition, with the cutoffs of earlier rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Policy {
    /// Grows with every change, so that an older copy never replaces a newer one.
    pub(crate) version: u64,
    /// The container's default TTL, `D`.
    pub(crate) default_ttl: DefaultTtl,
    /// Open cutoffs, oldest first.
    pub(crate) cutoffs: Vec<Cutoff>,
    /// The date rules.
    pub(crate) rules: Vec<DateRule>,
    /// The number of the date queue that was opened last; 0 if there was none.
    last_queue: u16,
    /// When each queue got its present delay. A queue that is missing here has had no other delay.
    since: BTreeMap<Queue, Moment>,
    /// The lifecycle settings of the owner.
    pub(crate) lifecycle: Lifecycle,
}

impl Policy {
    /// Returns the policy of a new partition.
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

    /// **The one decision**: returns whether an item with this header has expired at `now`.
    pub(crate) fn is_expired(&self, header: &Header, now: Time) -> bool {
        header.expiry_positions().any(|place| self.expires(place, header.sequence, now))
    }

    /// Returns whether an item that was last written at `sequence` has expired by its position in one queue.
    pub(crate) fn expires(&self, place: QueuePosition, sequence: Sequence, now: Time) -> bool {
        self.horizon(place.queue, now).is_some_and(|through| place.base <= through)
            || self.cutoffs.iter().any(|cutoff| cutoff.covers(place, sequence))
    }

    /// Returns how long after its base an entry of the queue expires, or `None` if the queue has no rule now (T2) or
    /// the container is held (T31).
    fn delay(&self, queue: Queue) -> Option<Millis> {
        match (queue, self.default_ttl) {
            _ if self.lifecycle.hold.is_some() => None,
            (Queue::Date(_), _) => self.rule_of(queue).and_then(|rule| rule.delay_ms),
            (Queue::Stamp, _) | (_, DefaultTtl::Off) | (Queue::Inherit, DefaultTtl::Never) => None,
            (Queue::Inherit, DefaultTtl::Seconds(n)) => Some(from_seconds(u64::from(n))),
            (Queue::Own, DefaultTtl::Never | DefaultTtl::Seconds(_)) => Some(0),
        }
    }

    /// Returns whether the queue has a rule by which items expire.
    pub(crate) fn has_rule(&self, queue: Queue) -> bool {
        self.delay(queue).is_some()
    }

    /// Returns the base up to which the current rule has expired entries.
    fn horizon(&self, queue: Queue, now: Time) -> Option<Millis> {
        self.delay(queue).map(|delay| from_time(now).saturating_sub(delay))
    }

    /// Returns the rule of a queue with the time since when it is in force.
    fn term(&self, queue: Queue) -> Option<RuleTerm> {
        let since = self.since.get(&queue).copied().unwrap_or(Moment::ALWAYS);
        self.delay(queue).map(|delay| RuleTerm { delay, since })
    }

    /// Returns the instant at which an item expires, or expired, by its position in one queue. Once that instant has
    /// passed it does not move: whatever happens to the rules later, cutoffs remember the rule by which an item
    /// expired until the purge has removed the item.
    pub(crate) fn instant(&self, place: QueuePosition, sequence: Sequence) -> Option<Moment> {
        self.terms(place, sequence).map(|term| term.instant(place.base)).min()
    }

    /// Returns the rules by which an item expires, or expired, at its position in one queue.
    fn terms(&self, place: QueuePosition, sequence: Sequence) -> impl Iterator<Item = RuleTerm> {
        let cutoffs = self.cutoffs.iter().filter(move |cutoff| cutoff.covers(place, sequence));
        cutoffs.map(|cutoff| cutoff.term).chain(self.term(place.queue))
    }

    /// Returns the instant at which an item expires or expired, and the queue position by which it does.
    pub(crate) fn expiry_of(&self, header: &Header) -> Option<(Moment, QueuePosition)> {
        let ends = header
            .expiry_positions()
            .filter_map(|place| self.instant(place, header.sequence).map(|moment| (moment, place)));
        // Ordered by base before queue: the number of a generation depends on when the purge dropped an older cutoff.
        ends.min_by_key(|(moment, place)| (*moment, place.base, place.queue))
    }

    /// Returns the same instant and position together with the delay of the rule.
    pub(crate) fn cause(&self, header: &Header) -> Option<Cause> {
        let (moment, place) = self.expiry_of(header)?;
        let term = self.terms(place, header.sequence).find(|term| term.instant(place.base) == moment)?;
        Some(Cause { moment, place, delay: term.delay })
    }

    /// Returns the cause of expiry of an item that has just come under the rules, by a write or by the end of its
    /// hold. Only the rules in force count, not earlier ones that the hold protected it from (T31).
    pub(crate) fn cause_in_force(&self, header: &Header) -> Option<Cause> {
        let cause = |place: QueuePosition| {
            let term = self.term(place.queue)?;
            Some(Cause { moment: term.instant(place.base), place, delay: term.delay })
        };
        let causes = header.expiry_positions().filter_map(cause);
        causes.min_by_key(|cause| (cause.moment, cause.place.base, cause.place.queue))
    }

    /// Returns the end of the queue's expired prefix, by the current rule or a cutoff.
    pub(crate) fn expired_through(&self, queue: Queue, now: Time) -> Option<Millis> {
        let cutoffs = self.cutoffs.iter().filter(|cutoff| cutoff.queue == queue);
        cutoffs.map(|cutoff| cutoff.through).chain(self.horizon(queue, now)).max()
    }

    /// Returns whether no item can have expired at `now`.
    pub(crate) fn expires_nothing(&self, now: Time) -> bool {
        self.queues().into_iter().all(|queue| self.expired_through(queue, now).is_none())
    }

    /// Returns when an entry with this base expires, or `None` if no rule will expire it.
    pub(crate) fn due(&self, place: QueuePosition) -> Option<Time> {
        let due = place.base.saturating_add(self.delay(place.queue)?);
        Some(Time::from_millis(due.max(0).unsigned_abs()))
    }

    /// Returns when an item expires, by the earliest of its rules, or `None` if no rule will expire it.
    pub(crate) fn expiry_time(&self, header: &Header) -> Option<Time> {
        header.expiry_positions().filter_map(|place| self.due(place)).min()
    }

    /// Returns the seconds until an item expires, rounded up, or `None` if no rule will expire it.
    pub(crate) fn seconds_left(&self, header: &Header, now: Time) -> Option<u64> {
        self.expiry_time(header).map(|expiry| expiry.millis().saturating_sub(now.millis()).div_ceil(1000))
    }

    /// Returns whether a later policy expires no item that this one does not expire.
    pub(crate) fn still_holds(&self, later: &Policy) -> bool {
        self.default_ttl == later.default_ttl
            && self.rules == later.rules
            && self.lifecycle == later.lifecycle
            && later.cutoffs.iter().all(|cutoff| self.cutoffs.contains(cutoff))
    }

    /// Returns the queues by which items expire, in groups. An item has an entry in at most one queue of a group.
    pub(crate) fn groups(&self) -> Vec<Vec<Queue>> {
        let (of_ttl, of_dates): (Vec<_>, Vec<_>) = self.rules.iter().partition(|rule| rule.is_of_ttl());
        let of_ttl = of_ttl.iter().flat_map(|rule| rule.queues.iter().copied());
        let mut groups = vec![[Queue::Inherit, Queue::Own].into_iter().chain(of_ttl).collect()];
        groups.extend(of_dates.iter().map(|rule| rule.queues.clone()));
        // A dropped rule has left only cutoffs; which of their queues belonged to one rule is not known any more.
        for Cutoff { queue, .. } in &self.cutoffs {
            if !groups.iter().flatten().any(|known| known == queue) {
                groups.push(vec![*queue]);
            }
        }
        groups
    }

    /// Returns the queues by which items expire.
    pub(crate) fn queues(&self) -> Vec<Queue> {
        self.groups().concat()
    }

    /// Returns the date rule that the index of that number made.
    pub(crate) fn rule(&self, id: u32) -> Option<&DateRule> {
        self.rules.iter().find(|rule| rule.id == id)
    }

    /// Returns the date rule that a queue belongs to.
    pub(crate) fn rule_of(&self, queue: Queue) -> Option<&DateRule> {
        self.rules.iter().find(|rule| rule.queues.contains(&queue))
    }

    /// Returns the date queue positions of an item that is written now. `date` returns the item's date for a rule, if
    /// it has one. It is called also for rules whose index is still being built, so that no entry is missing when
    /// they come into force.
    pub(crate) fn bases(&self, mut date: impl FnMut(u32) -> Option<Millis>) -> Vec<QueuePosition> {
        let place = |rule: &DateRule| Some(QueuePosition { queue: rule.newest(), base: date(rule.id)? });
        self.rules.iter().filter_map(place).collect()
    }

    /// Returns the date queue positions of a stored, living item after an index build has learned its date for one
    /// rule. Its other positions stay, except those of dropped rules. A held item has none.
    pub(crate) fn rebase(&self, header: &Header, rule: u32, date: Option<Millis>) -> Vec<QueuePosition> {
        if header.held {
            return Vec::new();
        }
        let is_kept =
            |place: &&QueuePosition| self.rule_of(place.queue).is_some_and(|known| known.id != rule);
        let mut bases: Vec<QueuePosition> = header.bases.iter().filter(is_kept).copied().collect();
        let rule = self.rule(rule);
        bases.extend(rule.zip(date).map(|(rule, base)| QueuePosition { queue: rule.newest(), base }));
        bases
    }
}

fn from_time(time: Time) -> Millis {
    Millis::try_from(time.millis()).unwrap_or(Millis::MAX)
}

//! Instants of the store, and the terms of rules, from which follows the instant at which an item expires.

use document::Sequence;

use super::Millis;

/// An instant: a time and, within one millisecond, the sequence of the event in it. Items expire at the beginning of
/// the millisecond of their deadline, before anything that is written in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment {
    pub(crate) time: Millis,
    /// The sequence of the event in that millisecond; 0 for its beginning.
    pub(crate) sequence: Sequence,
}

impl Moment {
    /// The instant before all others.
    pub(crate) const ALWAYS: Moment = Moment { time: Millis::MIN, sequence: Sequence(0) };
}

/// The rule of one queue for as long as it is in force: how long after its base an entry expires, but not before the
/// rule began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RuleTerm {
    pub(crate) delay: Millis,
    pub(crate) since: Moment,
}

impl RuleTerm {
    /// The term that stands for rules of a store that did not yet record them. The instants at which its items
    /// expired are never needed, because that store kept no feed that reports them.
    pub(crate) const UNKNOWN: RuleTerm = RuleTerm { delay: 0, since: Moment::ALWAYS };

    /// Returns when an entry expires by this rule. The instant grows with the base, so a queue is also in the order
    /// of expiry.
    pub(crate) fn instant(self, base: Millis) -> Moment {
        let deadline = Moment { time: base.saturating_add(self.delay), sequence: Sequence(0) };
        deadline.max(self.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(time: Millis, sequence: u64) -> Moment {
        Moment { time, sequence: Sequence(sequence) }
    }

    #[test]
    fn t28_an_entry_expires_at_its_deadline_or_when_its_rule_began() {
        let term = RuleTerm { delay: 10, since: moment(100, 7) };
        for (base, instant) in [
            (Millis::MIN, moment(100, 7)),
            (0, moment(100, 7)),
            (90, moment(100, 7)),
            (91, moment(101, 0)),
            (Millis::MAX, moment(Millis::MAX, 0)),
        ] {
            assert_eq!(term.instant(base), instant, "{base}");
        }
    }
}

//! Instants of the store, and the rules that say at which of them an item dies.

use document::Sequence;

use super::Millis;

/// An instant: a time and, within one millisecond, the order of what happened in it. Items die at the beginning of the
/// millisecond of their deadline, before anything that is written in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment {
    pub(crate) time: Millis,
    /// The event of that millisecond; 0 for its beginning.
    pub(crate) sequence: Sequence,
}

impl Moment {
    /// Before everything.
    pub(crate) const ALWAYS: Moment = Moment { time: Millis::MIN, sequence: Sequence(0) };
}

/// A rule of one queue for as long as it is in force: how long after its base an entry dies, but not before the rule began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Term {
    pub(crate) delay: Millis,
    pub(crate) since: Moment,
}

impl Term {
    /// What is said of a rule of a store that did not remember them yet. Nobody asks when its items died: that store kept no
    /// feed that tells it.
    pub(crate) const UNKNOWN: Term = Term { delay: 0, since: Moment::ALWAYS };

    /// When an entry dies by this rule. It grows with the base, so the order of a queue is the order of its deaths.
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
    fn t28_an_entry_dies_at_its_deadline_or_when_its_rule_began() {
        let term = Term { delay: 10, since: moment(100, 7) };
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

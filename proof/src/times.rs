//! Bounds of the server's time as a client knows them, and the rules by which items expire.
//!
//! A client never knows the server's `now` exactly, only bounds of it. So every answer has two parts: what is
//! certain, and what is possible. An item that is neither certainly live nor certainly expired proves nothing.

use std::time::Instant;

/// How long the server's time may stand still while a commit is on its way.
const STANDSTILL_SECONDS: f64 = 3.0;

/// An interval of the server's time in which its `now` lies, in whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub low: i64,
    pub high: i64,
}

/// The server's time, followed by the machine's own.
pub struct Clock {
    origin: Instant,
    low_offset: f64,
    high_offset: f64,
}

impl Clock {
    pub fn new() -> Clock {
        Clock { origin: Instant::now(), low_offset: f64::NEG_INFINITY, high_offset: f64::INFINITY }
    }

    fn elapsed(&self) -> f64 {
        self.origin.elapsed().as_secs_f64()
    }

    /// Returns a moment to begin a reading at.
    pub fn begin(&self) -> f64 {
        self.elapsed()
    }

    /// Records that the server, asked since `begun`, returned `now`.
    pub fn read(&mut self, begun: f64, now: i64) {
        self.low_offset = now as f64 - self.elapsed();
        self.high_offset = now as f64 + 1.0 - begun;
    }

    /// Records that the clock may be moved from now on.
    pub fn advancing(&mut self, seconds: u64) {
        self.high_offset += seconds as f64;
    }

    /// Records that the clock was moved.
    pub fn advanced(&mut self, seconds: u64) {
        self.low_offset += seconds as f64;
    }

    pub fn now(&self) -> Span {
        let elapsed = self.elapsed();
        let low = elapsed + self.low_offset - STANDSTILL_SECONDS;
        Span { low: low.floor() as i64, high: (elapsed + self.high_offset).ceil() as i64 }
    }
}

impl Default for Clock {
    fn default() -> Clock {
        Clock::new()
    }
}

/// `defaultTtl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ttl {
    Off,
    Infinite,
    Seconds(i64),
}

/// An item's own rule of expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemExpiry {
    /// `ttl` is -1.
    Never,
    /// The time follows from its own `ttl`, or from a date.
    At(i64),
    /// It was written then, and expires by the container's default.
    Inherited(i64),
}

/// An interval with one `defaultTtl`.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    ttl: Ttl,
    from: Span,
    until: Span,
}

/// The rules of a container over time.
#[derive(Clone, Debug)]
pub struct Rules(Vec<Stretch>);

const ALWAYS: Span = Span { low: i64::MIN, high: i64::MAX };

impl Rules {
    /// Creates rules with one that has always held.
    pub fn new(ttl: Ttl) -> Rules {
        let from = Span { low: i64::MIN, high: i64::MIN };
        Rules(vec![Stretch { ttl, from, until: Span { low: i64::MAX, high: i64::MAX } }])
    }

    /// Returns the rule in force, as far as known.
    pub fn last(&self) -> Ttl {
        self.0.last().map_or(Ttl::Off, |stretch| stretch.ttl)
    }

    /// Records that the rule may change from `begun` on.
    pub fn changing(&mut self, ttl: Ttl, begun: Span) {
        if let Some(last) = self.0.last_mut() {
            // Until the change is known, only this is certain: the rule was in force when the change began.
            last.until = Span { low: begun.low, high: i64::MAX };
        }
        self.0.push(Stretch { ttl, from: Span { low: begun.low, high: i64::MAX }, until: ALWAYS });
    }

    /// Records that the last change was made by `ended`.
    pub fn changed(&mut self, ended: Span) {
        let count = self.0.len();
        if let [.., before, last] = self.0.as_mut_slice() {
            before.until.high = ended.high;
            last.from.high = ended.high;
            last.until = Span { low: i64::MAX, high: i64::MAX };
        }
        // No item is older than a few rounds: every round reads all of them.
        if count > 64 {
            self.0.drain(..count - 32);
        }
    }

    /// Records that the last change was not made.
    pub fn unchanged(&mut self) {
        self.0.pop();
        if let Some(last) = self.0.last_mut() {
            last.until = Span { low: i64::MAX, high: i64::MAX };
        }
    }

    /// Returns whether an item that was live at `alive` is expired at `now`: certainly, possibly.
    pub fn is_expired(&self, expiry: ItemExpiry, alive: i64, now: Span) -> (bool, bool) {
        let (mut certainly, mut possibly) = (false, false);
        for stretch in &self.0 {
            let deadline = match (expiry, stretch.ttl) {
                (ItemExpiry::Never, _) | (_, Ttl::Off) | (ItemExpiry::Inherited(_), Ttl::Infinite) => {
                    continue;
                }
                (ItemExpiry::At(deadline), _) => deadline,
                (ItemExpiry::Inherited(written), Ttl::Seconds(seconds)) => written + seconds,
            };
            certainly |= stretch.until.low.min(now.low) >= stretch.from.high.max(deadline);
            possibly |= stretch.until.high.min(now.high) >= stretch.from.low.max(deadline).max(alive);
        }
        (certainly, possibly)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Span {
        Span { low: second, high: second }
    }

    #[test]
    fn a_deadline_counts_unless_the_rule_is_off() {
        for (ttl, expected) in [(Ttl::Off, false), (Ttl::Infinite, true), (Ttl::Seconds(500), true)] {
            let rules = Rules::new(ttl);
            assert_eq!(rules.is_expired(ItemExpiry::At(100), 0, at(100)), (expected, expected));
            assert_eq!(rules.is_expired(ItemExpiry::At(100), 0, at(99)), (false, false));
            assert_eq!(rules.is_expired(ItemExpiry::Never, 0, at(99_999)), (false, false));
        }
        assert_eq!(
            Rules::new(Ttl::Seconds(5)).is_expired(ItemExpiry::Inherited(10), 0, at(15)),
            (true, true)
        );
        assert_eq!(
            Rules::new(Ttl::Infinite).is_expired(ItemExpiry::Inherited(10), 0, at(15)),
            (false, false)
        );
    }

    #[test]
    fn between_two_bounds_nothing_is_certain() {
        let rules = Rules::new(Ttl::Infinite);
        assert_eq!(rules.is_expired(ItemExpiry::At(100), 0, Span { low: 98, high: 101 }), (false, true));
    }

    #[test]
    fn t13_what_expired_under_a_rule_is_expired_under_the_next() {
        let mut rules = Rules::new(Ttl::Seconds(5));
        rules.changing(Ttl::Off, at(20));
        assert_eq!(
            rules.is_expired(ItemExpiry::Inherited(10), 0, at(21)),
            (true, true),
            "while it is being changed, too"
        );
        rules.changed(at(22));
        assert_eq!(rules.is_expired(ItemExpiry::Inherited(10), 0, at(99)), (true, true));
        assert_eq!(
            rules.is_expired(ItemExpiry::Inherited(16), 0, at(99)),
            (false, true),
            "it may have expired at 21"
        );
        assert_eq!(
            rules.is_expired(ItemExpiry::Inherited(16), 23, at(99)),
            (false, false),
            "but was seen alive later"
        );
        assert_eq!(rules.is_expired(ItemExpiry::Inherited(18), 0, at(99)), (false, false));
    }

    #[test]
    fn a_change_that_was_not_made_leaves_the_rule_in_force() {
        let mut rules = Rules::new(Ttl::Seconds(5));
        rules.changing(Ttl::Off, at(20));
        rules.unchanged();
        assert_eq!(rules.is_expired(ItemExpiry::Inherited(30), 0, at(40)), (true, true));
    }
}

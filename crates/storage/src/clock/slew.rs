//! Raw time with the precision that a rate of nine tenths needs.

use crate::Time;
use std::time::Duration;

/// Tenths of nanoseconds in a millisecond.
const PER_MILLI: u128 = 10_000_000;

/// A raw time in tenths of nanoseconds: nine tenths of any boot time are exact, so frequent readings lose nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Precise(u128);

impl Precise {
    /// Returns the time to show.
    pub(super) fn time(self) -> Time {
        Time::from_millis(u64::try_from(self.0 / PER_MILLI).unwrap_or(u64::MAX))
    }

    /// Rounds up to a whole millisecond.
    pub(super) fn round_up(self) -> Time {
        Self(self.0.saturating_add(PER_MILLI - 1)).time()
    }

    /// Returns this time after `elapsed` at full rate.
    pub(super) fn at_full_rate(self, elapsed: Duration) -> Self {
        Self(self.0.saturating_add(elapsed.as_nanos() * 10))
    }

    /// Returns this time after `elapsed` at nine tenths of the rate.
    pub(super) fn slewed(self, elapsed: Duration) -> Self {
        Self(self.0.saturating_add(elapsed.as_nanos() * 9))
    }
}

impl From<Time> for Precise {
    fn from(time: Time) -> Self {
        Self(u128::from(time.millis()) * PER_MILLI)
    }
}

#[cfg(test)]
mod tests {
    use super::Precise;
    use crate::Time;
    use std::time::Duration;

    #[test]
    fn t34_nine_tenths_are_exact_however_small_the_steps_are() {
        let start = Precise::from(Time::from_millis(1_000));
        let steps = (0..1_000_000).fold(start, |time, _| time.slewed(Duration::from_nanos(1_001)));
        assert_eq!(steps, start.slewed(Duration::from_millis(1_001)));
        assert_eq!(steps.time(), Time::from_millis(1_900));
    }
}

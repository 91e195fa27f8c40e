//! The store's time: milliseconds since the Unix epoch, never negative, never overflowing (T7).

use std::time::Duration;

/// An instant of the store's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The epoch.
    pub const ZERO: Self = Self(0);
    /// The end of the year 9999: no clock is moved beyond it.
    pub const LAST: Self = Self(253_402_300_799_999);

    /// Creates the instant this many milliseconds after the epoch.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Creates the instant this many seconds after the epoch, saturating.
    pub const fn from_seconds(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1000))
    }

    /// Returns the milliseconds since the epoch.
    pub const fn millis(self) -> u64 {
        self.0
    }

    /// Returns the whole seconds since the epoch, rounded down: the unit of `_ts`.
    pub const fn seconds(self) -> u64 {
        self.0 / 1000
    }

    /// Adds `millis`, saturating at the end of time.
    #[must_use]
    pub const fn plus_millis(self, millis: u64) -> Self {
        Self(self.0.saturating_add(millis))
    }

    /// Subtracts `millis`, saturating at the epoch.
    #[must_use]
    pub const fn minus_millis(self, millis: u64) -> Self {
        Self(self.0.saturating_sub(millis))
    }

    /// Adds `duration`, saturating at the end of time.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        self.plus_millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    }

    /// Returns the milliseconds from `earlier` to this instant; zero if it is not earlier.
    pub const fn millis_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Returns the milliseconds by which this instant is ahead of `other`; negative if it is behind.
    pub fn millis_ahead_of(self, other: Self) -> i64 {
        let distance = i64::try_from(self.0.abs_diff(other.0)).unwrap_or(i64::MAX);
        if self < other { -distance } else { distance }
    }
}

#[cfg(test)]
mod tests {
    use super::Time;
    use std::time::Duration;

    #[test]
    fn t7_time_saturates_instead_of_overflowing() {
        assert_eq!(Time::from_seconds(u64::MAX).millis(), u64::MAX);
        assert_eq!(Time::from_millis(5).plus(Duration::MAX).millis(), u64::MAX);
        assert_eq!(Time::from_millis(5).minus_millis(9), Time::ZERO);
        assert_eq!(Time::from_millis(1999).seconds(), 1);
        assert_eq!(Time::from_millis(5).millis_since(Time::from_millis(9)), 0);
        assert_eq!(Time::from_millis(u64::MAX).millis_ahead_of(Time::ZERO), i64::MAX);
        assert_eq!(Time::ZERO.millis_ahead_of(Time::from_millis(u64::MAX)), -i64::MAX);
    }

    #[test]
    fn an_instant_is_ahead_of_an_earlier_one_and_behind_a_later_one() {
        let [earlier, later] = [1_000, 3_500].map(Time::from_millis);
        assert_eq!(later.millis_ahead_of(earlier), 2_500);
        assert_eq!(earlier.millis_ahead_of(later), -2_500);
        assert_eq!(later.millis_ahead_of(later), 0);
    }
}

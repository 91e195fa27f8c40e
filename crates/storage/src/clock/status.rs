//! The clock's status.

use super::TestClock;
use crate::Time;

/// What made the clock suspect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leap {
    /// The wall clock leapt ahead of the boot-time clock; time continues without it.
    Running,
    /// The wall clock was too far ahead at the start; items are hidden by its time, but nothing is destroyed by it.
    Start,
    /// The wall clock is too far behind the time shown, which continues without it.
    Behind,
}

/// Why the clock is suspect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspicion {
    /// What happened.
    pub leap: Leap,
    /// The wall clock's time now.
    pub wall: Time,
    /// How far the wall clock is ahead of the trusted time, without the test clock's advance; zero if it is behind.
    pub ahead_ms: u64,
    /// The time that continues once the operator accepts the wall clock. It lies before the time shown if the wall
    /// clock has come back from a leap that is still shown.
    pub accepted: Time,
}

/// The state of a store's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockStatus {
    /// The time that every request sees.
    pub now: Time,
    /// The time by which data may be destroyed.
    pub trusted: Time,
    /// Set until the operator has accepted or rejected a leap.
    pub suspect: Option<Suspicion>,
    /// Whether requests may advance the clock.
    pub test_clock: TestClock,
    /// How far the test clock was advanced, in all.
    pub advanced_ms: u64,
    /// How far `now`, without the test clock's advance, is ahead of the machine's wall clock; negative if it is behind.
    /// A stopped test clock is compared with the wall clock as it was at the start.
    pub ahead_ms: i64,
    /// Whether time runs at nine tenths of its rate because it is noticeably ahead of the wall clock.
    pub slewing: bool,
}

impl ClockStatus {
    /// Returns the status of a trusted clock without test mode that shows `now`, this far ahead of the wall clock.
    pub fn trusted_at(now: Time, ahead_ms: i64) -> Self {
        let (suspect, test_clock, advanced_ms) = (None, TestClock::Off, 0);
        Self { now, trusted: now, suspect, test_clock, advanced_ms, ahead_ms, slewing: ahead_ms > 0 }
    }
}

/// The clock as one job sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) now: Time,
    pub(crate) trusted: Time,
    pub(crate) suspect: bool,
    pub(crate) advanced_ms: u64,
}

impl From<ClockStatus> for Moment {
    fn from(status: ClockStatus) -> Self {
        let ClockStatus { now, trusted, suspect, advanced_ms, .. } = status;
        Self { now, trusted, suspect: suspect.is_some(), advanced_ms }
    }
}

//! Options of a store's clock.

use super::WallClock;
use std::sync::Arc;
use std::time::Duration;

/// Options of a store's clock.
#[derive(Clone)]
pub struct ClockOptions {
    /// The machine's clocks.
    pub clock: Arc<dyn WallClock>,
    /// Whether requests may advance the clock (T29).
    pub test_clock: TestClock,
    /// How far the wall clock may get ahead of the boot-time clock, or behind the time shown, before the clock is suspect (T34).
    pub max_clock_jump: Duration,
    /// How far past the last known time the wall clock may be at a start (T34).
    pub max_start_gap: Duration,
}

impl ClockOptions {
    /// Creates options without a test clock, with jumps of up to an hour and gaps of up to thirty days.
    pub fn new(clock: Arc<dyn WallClock>) -> Self {
        Self {
            clock,
            test_clock: TestClock::Off,
            max_clock_jump: Duration::from_hours(1),
            max_start_gap: Duration::from_hours(30 * 24),
        }
    }
}

/// What advances the clock (T29).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TestClock {
    /// The machine alone.
    #[default]
    Off,
    /// The machine, and requests that advance the clock.
    Runs,
    /// Only requests that advance the clock: the machine's time is read at the start and then stands still, so that no
    /// slow test runs a second late. It never slews. Receipts of retried writes, which use real time, do not age
    /// either.
    Stopped,
}

impl TestClock {
    /// Returns `Runs` or `Off`.
    pub fn running(on: bool) -> TestClock {
        if on { TestClock::Runs } else { TestClock::Off }
    }

    /// Returns whether requests may advance the clock.
    pub fn is_on(self) -> bool {
        self != TestClock::Off
    }
}

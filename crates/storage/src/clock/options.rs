//! How a store's clock is set up.

use super::WallClock;
use std::sync::Arc;
use std::time::Duration;

/// How a store's clock behaves.
#[derive(Clone)]
pub struct ClockOptions {
    /// The machine's clocks.
    pub clock: Arc<dyn WallClock>,
    /// Whether the clock may be moved (T29).
    pub test_clock: TestClock,
    /// How far the wall clock may get ahead of the boot-time clock, or behind the time shown, before the clock is suspect (T34).
    pub max_clock_jump: Duration,
    /// How far past the last known time the wall clock may be at the start (T34).
    pub max_start_gap: Duration,
}

impl ClockOptions {
    /// No test clock, jumps of up to an hour, gaps of up to thirty days.
    pub fn new(clock: Arc<dyn WallClock>) -> Self {
        Self {
            clock,
            test_clock: TestClock::Off,
            max_clock_jump: Duration::from_hours(1),
            max_start_gap: Duration::from_hours(30 * 24),
        }
    }
}

/// What moves the clock (T29).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TestClock {
    /// The machine alone.
    #[default]
    Off,
    /// The machine, and requests that advance it.
    Runs,
    /// Only requests that advance it: the machine's time is taken at the start and then stands still, so that no slow test comes
    /// a second too late. It never slews. Receipts of retried writes, which live on real time, do not grow old either.
    Stopped,
}

impl TestClock {
    /// One that runs, or none.
    pub fn running(on: bool) -> TestClock {
        if on { TestClock::Runs } else { TestClock::Off }
    }

    /// Whether the clock may be moved.
    pub fn is_on(self) -> bool {
        self != TestClock::Off
    }
}

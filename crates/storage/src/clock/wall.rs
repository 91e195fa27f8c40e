//! The door to the machine's clocks, and the clock that tests move by hand.

use crate::Time;
use parking_lot::Mutex;
use std::time::Duration;

/// The machine's two clocks. The real one lives in `server`.
pub trait WallClock: Send + Sync {
    /// What the machine believes the time is. It may leap and may be set back.
    fn wall(&self) -> Time;

    /// Time passed since some fixed moment. It never goes back while the process runs.
    fn monotonic(&self) -> Duration;
}

/// A clock that stands still until it is moved: wall and monotonic time together or apart.
#[derive(Debug)]
pub struct ManualClock(Mutex<(Time, Duration)>);

impl ManualClock {
    /// A clock whose wall time is `wall`.
    pub const fn new(wall: Time) -> Self {
        Self(Mutex::new((wall, Duration::ZERO)))
    }

    /// Lets time pass on both clocks.
    pub fn advance(&self, duration: Duration) {
        let mut clocks = self.0.lock();
        clocks.0 = clocks.0.plus(duration);
        clocks.1 = clocks.1.saturating_add(duration);
    }

    /// Sets the wall clock alone, forward or backward.
    pub fn set_wall(&self, wall: Time) {
        self.0.lock().0 = wall;
    }

    /// Lets time pass on the monotonic clock alone.
    pub fn advance_monotonic(&self, duration: Duration) {
        let mut clocks = self.0.lock();
        clocks.1 = clocks.1.saturating_add(duration);
    }
}

impl WallClock for ManualClock {
    fn wall(&self) -> Time {
        self.0.lock().0
    }

    fn monotonic(&self) -> Duration {
        self.0.lock().1
    }
}

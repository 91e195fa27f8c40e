//! The machine's clocks: the one place that asks the operating system for the time.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::WallClock;
use crate::Time;

/// The real wall clock and the real monotonic clock.
pub struct RealClock {
    start: Instant,
}

impl RealClock {
    #[expect(clippy::disallowed_methods, reason = "this is the door")]
    /// The clocks of this machine.
    pub fn new() -> Self {
        Self { start: Instant::now() }
    }
}

impl Default for RealClock {
    fn default() -> Self {
        Self::new()
    }
}

impl WallClock for RealClock {
    #[expect(clippy::disallowed_methods, reason = "this is the door")]
    fn wall(&self) -> Time {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Time::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }
}

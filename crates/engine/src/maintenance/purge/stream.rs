//! Estimates how many items expire as a steady stream, as opposed to those that have expired at once.
//!
//! Expiries are counted over windows of several lengths, so that a stream is recognized whether its items expire every
//! second or in batches a minute apart. With each window the estimate may grow to [`GROWTH`] times its value and by
//! [`ITEMS_AT_FIRST`] more: several windows with many expiries make a stream, a single one does not. The fastest
//! estimate counts.

use super::pace::{RATE_SMOOTHING_SECONDS, toward};

/// Seconds.
const WINDOWS: [f64; 4] = [2.0, 15.0, 60.0, 300.0];
const GROWTH: f64 = 4.0;
const ITEMS_AT_FIRST: f64 = 1600.0;

/// The estimates.
#[derive(Debug, Clone, Default)]
pub(super) struct Stream([Estimate; WINDOWS.len()]);

#[derive(Debug, Clone, Copy, Default)]
struct Estimate {
    /// Items per second.
    speed: f64,
    /// The window that is being counted.
    seconds: f64,
    expired: u64,
}

impl Stream {
    /// Takes the number of items that have expired in the last `seconds`.
    pub(super) fn look(&mut self, seconds: f64, expired: u64) {
        for (estimate, window) in self.0.iter_mut().zip(WINDOWS) {
            estimate.look(window, seconds, expired);
        }
    }

    /// Returns the items per second.
    pub(super) fn speed(&self) -> f64 {
        self.0.iter().map(|estimate| estimate.speed).fold(0.0, f64::max)
    }
}

impl Estimate {
    fn look(&mut self, window: f64, seconds: f64, expired: u64) {
        self.seconds += seconds;
        self.expired += expired;
        if self.seconds >= window {
            let counted = self.expired as f64 / self.seconds;
            let speed = counted.min(GROWTH * self.speed + ITEMS_AT_FIRST / window);
            toward(&mut self.speed, speed, self.seconds / RATE_SMOOTHING_SECONDS);
            (self.seconds, self.expired) = (0.0, 0);
        }
    }
}

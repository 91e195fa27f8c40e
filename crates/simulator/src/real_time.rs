//! Real time, which neither the store nor its clocks have, and how far from it the store's may be (T34).
//!
//! A store's time is off by no more than the wall clock's largest error so far, plus a tenth of a second and a lease. Once an
//! operator has rejected the wall clock, the two are unrelated, and nothing is checked.

use crate::clock::{LEASE_MS, SLACK_MS};

/// Real time, and the causes of the store's distance from it.
#[derive(Debug, Clone)]
pub(crate) struct RealTime {
    real_ms: u64,
    /// The most that the wall clock was ahead and behind.
    ahead_ms: u64,
    behind_ms: u64,
    /// Restarts of the machine that took less than a lease: each may add one, and the rest of its length is lost while the
    /// clock is suspect.
    leases_ms: u64,
    down_ms: u64,
    rejected: bool,
}

impl RealTime {
    /// Creates the real time; the wall clock is right at the beginning.
    pub(crate) fn new(wall_ms: u64) -> RealTime {
        RealTime { real_ms: wall_ms, ahead_ms: 0, behind_ms: 0, leases_ms: 0, down_ms: 0, rejected: false }
    }

    /// Returns the real time.
    pub(crate) fn real_ms(&self) -> u64 {
        self.real_ms
    }

    /// Advances the time.
    pub(crate) fn pass(&mut self, ms: u64) {
        self.real_ms += ms;
    }

    /// Records a restart of the machine that took this long.
    pub(crate) fn reboot(&mut self, ms: u64) {
        self.pass(ms);
        self.down_ms += ms;
        self.leases_ms += LEASE_MS.saturating_sub(ms);
    }

    /// Records a reading of the wall clock.
    pub(crate) fn see(&mut self, wall_ms: u64) {
        self.ahead_ms = self.ahead_ms.max(wall_ms.saturating_sub(self.real_ms));
        self.behind_ms = self.behind_ms.max(self.real_ms.saturating_sub(wall_ms));
    }

    /// Records that an operator has rejected the wall clock.
    pub(crate) fn reject(&mut self) {
        self.rejected = true;
    }

    /// Checks the raw time that the store shows. A time that is `held` after a failed commit may fall behind.
    pub(crate) fn check(&self, raw_ms: u64, held: bool) -> Result<(), String> {
        let around = SLACK_MS + LEASE_MS;
        let most = self.real_ms + self.ahead_ms + self.leases_ms + around;
        let least = self.real_ms.saturating_sub(self.behind_ms + self.down_ms + around);
        if self.rejected || raw_ms <= most && (held || raw_ms >= least) {
            return Ok(());
        }
        Err(format!("T34: the store shows {raw_ms}, it is {} and must be {least} to {most}", self.real_ms))
    }
}

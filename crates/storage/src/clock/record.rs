//! The durable part of the clock, and the limit that follows from it.
//!
//! One function serves both sides of a crash (T13): a running store shows no time beyond [`ClockRecord::limit`], and a
//! start uses the same limit as its floor. Boot time does not go back within a boot, so the floor is never below a time
//! that was shown.

use super::wall::BootId;
use super::{LEASE_MS, Leap, SLACK_MS};
use crate::Time;
use std::time::Duration;

/// The durable part of the clock; every commit may carry a new one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClockRecord {
    /// No raw time beyond this has been shown.
    pub(crate) bound: Time,
    /// The test clock's advance.
    pub(crate) advanced_ms: u64,
    /// Set while the clock is suspect.
    pub(crate) suspicion: Option<RecordedSuspicion>,
    /// The point of the line within the writer's boot; `None` if the machine does not report its boot, and in a backup.
    pub(crate) boot: Option<BootLine>,
    /// How far behind shown time the operator has accepted the wall clock to be.
    pub(crate) accepted_ms: u64,
}

/// A suspicion the operator has not decided on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordedSuspicion {
    /// What made the clock suspect.
    pub(crate) leap: Leap,
    /// No trusted raw time beyond this has been shown.
    pub(crate) trusted: Time,
}

/// A point of the shown time within one boot of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BootLine {
    /// Which boot.
    pub(crate) id: BootId,
    /// The boot time when the record was made, in milliseconds.
    pub(crate) boot_ms: u64,
    /// The raw time at `boot_ms`. Up to [`SLACK_MS`] less if it was ahead of the wall clock: the limit covers it all
    /// the same, and crashes in quick succession do not add up.
    pub(crate) line: Time,
}

/// The machine's current boot: its id, and how long ago it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Boot {
    /// `None` if the machine does not report it.
    pub(super) id: Option<BootId>,
    /// The time since the boot, suspends included.
    pub(super) time: Duration,
}

impl ClockRecord {
    /// Returns the latest raw time that may be shown under this record. `None` if another boot wrote it: its boot time
    /// means nothing here, so a record of this boot must be durable before any time is shown.
    pub(super) fn limit(&self, boot: Boot) -> Option<Time> {
        let Some(line) = self.boot else { return Some(self.bound) };
        line.elapsed(boot).map(|elapsed| self.bound.min(line.line.plus(elapsed).plus_millis(SLACK_MS)))
    }

    /// Raises the bound to a lease from `now`.
    pub(super) fn lease_from(&mut self, now: Time) {
        self.bound = self.bound.max(now.plus_millis(LEASE_MS));
    }
}

impl BootLine {
    /// Returns how long ago the record was made; `None` if that was in another boot, or if boot time has gone back (a
    /// snapshot of the machine's memory, a time namespace).
    pub(super) fn elapsed(&self, boot: Boot) -> Option<Duration> {
        let elapsed = boot.time.checked_sub(Duration::from_millis(self.boot_ms))?;
        (boot.id == Some(self.id)).then_some(elapsed)
    }
}

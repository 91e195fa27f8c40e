//! The clock while the store runs: how shown time follows the machine's clocks.
//!
//! ```text
//!   believable wall clock     shown = max(wall, last shown + 9/10 of the boot time since)
//!   suspect                   shown = last shown + the boot time since
//! ```
//!
//! The first line covers following and slewing: a wall clock that is level or ahead is followed, and while it is behind,
//! time runs at nine tenths until both agree. Time stands still only for the length of a commit.

use super::record::{Boot, BootLine, ClockRecord, RecordedSuspicion};
use super::slew::Precise;
use super::{LEASE_MS, Leap, RENEW_MS, SLACK_MS};
use crate::Time;
use std::time::Duration;

#[derive(Debug)]
pub(super) struct State {
    /// The raw time at the last reading…
    shown: Precise,
    /// …which was taken at this boot time.
    boot: Boot,
    /// Set while the clock is suspect.
    pub(super) suspicion: Option<ActiveSuspicion>,
    /// How far a wall clock that the operator has rejected is ahead, or, if negative, behind.
    rejected_ms: i64,
    /// How far behind the operator has accepted the wall clock to be.
    accepted_ms: u64,
    /// Whether the last reading found time noticeably ahead of the wall clock that it follows.
    pub(super) slewing: bool,
    /// The record as it is on disk.
    pub(super) durable: ClockRecord,
    /// Whether a renewal was requested and has not arrived.
    pub(super) renewing: bool,
    /// The time of the pending commit, or of the one that failed, which is kept.
    pub(super) pending_commit: Option<Time>,
}

/// A suspicion, and how far trusted time is behind shown time. Both run at full rate, so the distance does not change.
#[derive(Clone, Copy, Debug)]
pub(super) struct ActiveSuspicion {
    pub(super) leap: Leap,
    pub(super) gap_ms: u64,
}

/// The state that takes effect once the operator's decision is durable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockDecision {
    at: Time,
    boot_time: Duration,
    rejected_ms: i64,
    accepted_ms: u64,
}

impl State {
    /// Creates the state of a trusted clock at `time`.
    pub(super) fn at(time: Time, boot: Boot, durable: ClockRecord) -> Self {
        Self {
            shown: time.into(),
            boot,
            suspicion: None,
            rejected_ms: 0,
            accepted_ms: durable.accepted_ms,
            slewing: false,
            durable,
            renewing: false,
            pending_commit: None,
        }
    }

    /// Advances time to a reading of the machine's clocks.
    pub(super) fn tick(&mut self, wall: Time, boot_time: Duration, max_clock_jump: Duration) {
        // Boot time that goes back is that of a broken clock; time does not follow it.
        let elapsed = boot_time.saturating_sub(self.boot.time);
        self.boot.time = self.boot.time.max(boot_time);
        self.slewing = false;
        let (full, slewed) = (self.shown.at_full_rate(elapsed), self.shown.slewed(elapsed));
        if self.suspicion.is_some() {
            self.shown = full;
            return;
        }
        let is_ahead = |wall: Time| wall > full.time().plus(max_clock_jump);
        let is_believable =
            |wall: &Time| !is_ahead(*wall) && !self.is_behind(*wall, slewed.time(), max_clock_jump);
        // A rejected offset is deducted as long as the wall clock still shows it.
        if let Some(wall) = [wall, shift(wall, self.rejected_ms)].into_iter().find(is_believable) {
            self.shown = slewed.max(wall.into());
            let ahead_ms = slewed.time().millis_since(wall);
            if ahead_ms <= u64::try_from(max_clock_jump.as_millis()).unwrap_or(u64::MAX) {
                self.accepted_ms = 0;
            }
            self.slewing = ahead_ms > SLACK_MS;
        } else {
            self.shown = full;
            let leap = if is_ahead(wall) { Leap::Running } else { Leap::Behind };
            self.suspicion = Some(ActiveSuspicion { leap, gap_ms: 0 });
        }
    }

    /// Returns whether the wall clock is further behind `time` than is believable.
    pub(super) fn is_behind(&self, wall: Time, time: Time, max_clock_jump: Duration) -> bool {
        time > wall.plus(max_clock_jump).plus_millis(self.accepted_ms)
    }

    /// Continues from a whole millisecond, from `floor` if that is later.
    pub(super) fn raise_to(&mut self, floor: Time) {
        self.shown = self.time().max(floor).into();
    }

    /// Returns the raw time as of the last reading.
    pub(super) fn time(&self) -> Time {
        self.shown.time()
    }

    /// Returns the raw time to show as of the last reading, unless it is limited.
    pub(super) fn now(&self) -> Time {
        self.pending_commit.unwrap_or_else(|| self.time())
    }

    /// Returns the latest raw time that may be shown as of the last reading.
    pub(super) fn limit(&self) -> Option<Time> {
        self.durable.limit(self.boot)
    }

    /// Returns the trusted time when `now` is shown: the same if the clock is not suspect.
    pub(super) fn trusted(&self, now: Time) -> Time {
        self.suspicion.map_or(now, |suspicion| now.minus_millis(suspicion.gap_ms))
    }

    /// Stops time until the commit now being made is durable.
    pub(super) fn begin_commit(&mut self) -> Time {
        let now = self.now();
        self.pending_commit = Some(now);
        now
    }

    /// Returns whether `record` must be renewed: less than half of the lease is left, the present time lies beyond its
    /// limit, or it differs in suspicion or accepted offset.
    pub(super) fn is_due(&self, record: &ClockRecord) -> bool {
        let now = self.time();
        record.bound < now.plus_millis(RENEW_MS)
            || record.limit(self.boot).is_none_or(|limit| limit < now)
            || record.suspicion.map(|suspicion| suspicion.leap)
                != self.suspicion.map(|suspicion| suspicion.leap)
            || record.accepted_ms != self.accepted_ms
    }

    /// Writes a lease into `record` if it is due.
    pub(super) fn renew(&self, record: &mut ClockRecord, wall: Time) {
        if self.is_due(record) {
            record.lease_from(self.time());
            // Rounded up, so that time at full rate stays within the limit.
            record.boot = self.line(self.shown.round_up(), wall);
            self.write(record);
        }
    }

    /// Writes the exact time into `record` as the last one.
    pub(super) fn close(&self, record: &mut ClockRecord) {
        record.bound = self.time();
        record.boot = self.line(self.time(), self.time());
        self.write(record);
    }

    /// Writes the suspicion and the accepted offset into `record`.
    fn write(&self, record: &mut ClockRecord) {
        record.suspicion = self.suspicion.map(|suspicion| RecordedSuspicion {
            leap: suspicion.leap,
            trusted: record.bound.minus_millis(suspicion.gap_ms),
        });
        record.accepted_ms = self.accepted_ms;
    }

    /// Returns the line of this boot through `time`.
    fn line(&self, time: Time, wall: Time) -> Option<BootLine> {
        let boot_ms = u64::try_from(self.boot.time.as_millis()).unwrap_or(u64::MAX);
        let line = wall.clamp(time.minus_millis(SLACK_MS), time);
        self.boot.id.map(|id| BootLine { id, boot_ms, line })
    }

    /// Returns the time that continues once the operator accepts the wall clock: the wall clock's, or the time shown,
    /// which slews towards it. If the wall clock has come back from a leap that is still shown, accepting it means that
    /// the leap was wrong: time then continues from the trusted time, so that nothing is destroyed because of the leap.
    pub(super) fn accepted(&self, wall: Time, jump: Duration) -> Time {
        let came_back = wall.plus(jump) < self.time();
        let floor = if came_back { self.trusted(self.time()) } else { self.time() };
        floor.max(wall)
    }

    /// Accepts the wall clock.
    pub(super) fn accept(&self, record: &mut ClockRecord, wall: Time, jump: Duration) -> ClockDecision {
        let at = self.accepted(wall, jump);
        self.record_decision(
            record,
            wall,
            ClockDecision {
                at,
                boot_time: self.boot.time,
                rejected_ms: 0,
                accepted_ms: at.millis_since(wall),
            },
        )
    }

    /// Rejects the wall clock: time continues from the trusted time, or from the wall clock's if it has come back from
    /// the leap that is still shown, because then the operator rejects the leap and not the wall clock.
    pub(super) fn reject(
        &self,
        record: &mut ClockRecord,
        wall: Time,
        jump: Duration,
        gap: Duration,
    ) -> ClockDecision {
        let (time, trusted) = (self.time(), self.trusted(self.time()));
        let came_back = wall.plus(jump) < time && wall <= trusted.plus(gap);
        let at = if came_back { trusted.max(wall) } else { trusted };
        let rejected_ms = wall.millis_ahead_of(at);
        self.record_decision(
            record,
            wall,
            ClockDecision { at, boot_time: self.boot.time, rejected_ms, accepted_ms: 0 },
        )
    }

    fn record_decision(
        &self,
        record: &mut ClockRecord,
        wall: Time,
        decision: ClockDecision,
    ) -> ClockDecision {
        *record = ClockRecord {
            bound: decision.at.plus_millis(LEASE_MS),
            advanced_ms: record.advanced_ms,
            suspicion: None,
            boot: self.line(decision.at, wall),
            accepted_ms: decision.accepted_ms,
        };
        decision
    }

    /// Takes over what has become durable.
    pub(super) fn publish(&mut self, record: ClockRecord, decision: Option<ClockDecision>) {
        self.durable = record;
        self.renewing = false;
        self.pending_commit = None;
        if let Some(decision) = decision {
            self.shown = decision.at.into();
            self.boot.time = decision.boot_time;
            self.suspicion = None;
            self.rejected_ms = decision.rejected_ms;
            self.accepted_ms = decision.accepted_ms;
        }
    }
}

/// Returns the wall clock without the offset that the operator has rejected.
fn shift(wall: Time, rejected_ms: i64) -> Time {
    let distance = rejected_ms.unsigned_abs();
    if rejected_ms < 0 { wall.plus_millis(distance) } else { wall.minus_millis(distance) }
}

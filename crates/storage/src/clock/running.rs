//! The clock while the store runs: what a look at the machine's clocks makes of the shown time.
//!
//! ```text
//!   believable wall clock     shown = max(wall, last shown + 9/10 of the boot time since)
//!   suspect                   shown = last shown + the boot time since
//! ```
//!
//! The first line is all of following, standing behind a set-back and slewing: a wall clock that is level or ahead is
//! followed, and while it is behind, time runs at nine tenths until they agree. Time never stands still, but for the
//! length of a commit.

use super::record::{Boot, BootLine, ClockRecord, RecordedSuspicion};
use super::slew::Precise;
use super::{LEASE_MS, Leap, RENEW_MS, SLACK_MS};
use crate::Time;
use std::time::Duration;

#[derive(Debug)]
pub(super) struct State {
    /// The raw time at the last look…
    shown: Precise,
    /// …which was then.
    boot: Boot,
    /// Open while the clock is suspect.
    pub(super) doubt: Option<Doubt>,
    /// How far a wall clock that an operator has rejected is ahead, or, if negative, behind.
    rejected_ms: i64,
    /// How far behind an operator has accepted the wall clock to be.
    accepted_ms: u64,
    /// Whether the last look found time noticeably ahead of the wall clock that it follows.
    pub(super) slewing: bool,
    /// The record as it is on disk.
    pub(super) durable: ClockRecord,
    /// Whether a renewal was asked for and has not arrived.
    pub(super) renewing: bool,
    /// The time of the pending commit, or of the one that failed: then it stays.
    pub(super) pending_commit: Option<Time>,
}

/// A suspicion, and how far the trusted time is behind the shown one. Both run at full rate, so that does not change.
#[derive(Clone, Copy, Debug)]
pub(super) struct Doubt {
    pub(super) leap: Leap,
    pub(super) gap_ms: u64,
}

/// The time that takes over once an operator's decision is durable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    at: Time,
    boot_time: Duration,
    rejected_ms: i64,
    accepted_ms: u64,
}

impl State {
    /// Not suspect, at a time.
    pub(super) fn at(time: Time, boot: Boot, durable: ClockRecord) -> Self {
        Self {
            shown: time.into(),
            boot,
            doubt: None,
            rejected_ms: 0,
            accepted_ms: durable.accepted_ms,
            slewing: false,
            durable,
            renewing: false,
            pending_commit: None,
        }
    }

    /// Moves time on to a look at the machine's clocks.
    pub(super) fn tick(&mut self, wall: Time, boot_time: Duration, max_clock_jump: Duration) {
        // Boot time that goes back would be that of a broken clock; time does not follow it.
        let elapsed = boot_time.saturating_sub(self.boot.time);
        self.boot.time = self.boot.time.max(boot_time);
        self.slewing = false;
        let (full, slewed) = (self.shown.at_full_rate(elapsed), self.shown.slewed(elapsed));
        if self.doubt.is_some() {
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
            self.doubt = Some(Doubt { leap, gap_ms: 0 });
        }
    }

    /// Whether the wall clock is further behind `time` than is believable.
    pub(super) fn is_behind(&self, wall: Time, time: Time, max_clock_jump: Duration) -> bool {
        time > wall.plus(max_clock_jump).plus_millis(self.accepted_ms)
    }

    /// Goes on from a whole millisecond, from `floor` if that is later.
    pub(super) fn raise_to(&mut self, floor: Time) {
        self.shown = self.time().max(floor).into();
    }

    /// The raw time as of the last look.
    pub(super) fn time(&self) -> Time {
        self.shown.time()
    }

    /// The raw time to show as of the last look, as long as nothing limits it.
    pub(super) fn now(&self) -> Time {
        self.pending_commit.unwrap_or_else(|| self.time())
    }

    /// The latest raw time that may be shown as of the last look.
    pub(super) fn limit(&self) -> Option<Time> {
        self.durable.limit(self.boot)
    }

    /// The trusted time when `now` is shown: the same if the clock is not suspect.
    pub(super) fn trusted(&self, now: Time) -> Time {
        self.doubt.map_or(now, |doubt| now.minus_millis(doubt.gap_ms))
    }

    /// Time stands still from here on until the commit that is being made is durable.
    pub(super) fn begin_commit(&mut self) -> Time {
        let now = self.now();
        self.pending_commit = Some(now);
        now
    }

    /// Whether `record` must be renewed: less than half of the lease is left, the present time lies beyond its limit, or it
    /// says something else about suspicion or what was accepted.
    pub(super) fn is_due(&self, record: &ClockRecord) -> bool {
        let now = self.time();
        record.bound < now.plus_millis(RENEW_MS)
            || record.limit(self.boot).is_none_or(|limit| limit < now)
            || record.suspicion.map(|suspicion| suspicion.leap) != self.doubt.map(|doubt| doubt.leap)
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

    /// Writes the exact time as the last one into `record`.
    pub(super) fn close(&self, record: &mut ClockRecord) {
        record.bound = self.time();
        record.boot = self.line(self.time(), self.time());
        self.write(record);
    }

    /// Writes what an operator decides on.
    fn write(&self, record: &mut ClockRecord) {
        record.suspicion = self.doubt.map(|doubt| RecordedSuspicion {
            leap: doubt.leap,
            trusted: record.bound.minus_millis(doubt.gap_ms),
        });
        record.accepted_ms = self.accepted_ms;
    }

    /// The line of this boot through `time`.
    fn line(&self, time: Time, wall: Time) -> Option<BootLine> {
        let boot_ms = u64::try_from(self.boot.time.as_millis()).unwrap_or(u64::MAX);
        let line = wall.clamp(time.minus_millis(SLACK_MS), time);
        self.boot.id.map(|id| BootLine { id, boot_ms, line })
    }

    /// The time that goes on once an operator takes the wall clock's word: that of the wall clock, or the time shown, which slews
    /// towards it. If the wall clock has come back from a leap that is shown since, its word is that the leap was wrong: then
    /// time goes on from the trusted time, so that nothing is destroyed by the leap.
    pub(super) fn accepted(&self, wall: Time, jump: Duration) -> Time {
        let came_back = wall.plus(jump) < self.time();
        let floor = if came_back { self.trusted(self.time()) } else { self.time() };
        floor.max(wall)
    }

    /// An operator takes the wall clock's word.
    pub(super) fn accept(&self, record: &mut ClockRecord, wall: Time, jump: Duration) -> Turn {
        let at = self.accepted(wall, jump);
        self.turn(
            record,
            wall,
            Turn { at, boot_time: self.boot.time, rejected_ms: 0, accepted_ms: at.millis_since(wall) },
        )
    }

    /// An operator does not take it: time goes on from the trusted time; or from the wall clock's, if it has come back from
    /// the leap that is shown since, because then it is the leap that is rejected and not the wall clock.
    pub(super) fn reject(&self, record: &mut ClockRecord, wall: Time, jump: Duration, gap: Duration) -> Turn {
        let (time, trusted) = (self.time(), self.trusted(self.time()));
        let came_back = wall.plus(jump) < time && wall <= trusted.plus(gap);
        let at = if came_back { trusted.max(wall) } else { trusted };
        let rejected_ms = wall.millis_ahead_of(at);
        self.turn(record, wall, Turn { at, boot_time: self.boot.time, rejected_ms, accepted_ms: 0 })
    }

    fn turn(&self, record: &mut ClockRecord, wall: Time, turn: Turn) -> Turn {
        *record = ClockRecord {
            bound: turn.at.plus_millis(LEASE_MS),
            advanced_ms: record.advanced_ms,
            suspicion: None,
            boot: self.line(turn.at, wall),
            accepted_ms: turn.accepted_ms,
        };
        turn
    }

    /// Takes over what has become durable.
    pub(super) fn publish(&mut self, record: ClockRecord, turn: Option<Turn>) {
        self.durable = record;
        self.renewing = false;
        self.pending_commit = None;
        if let Some(turn) = turn {
            self.shown = turn.at.into();
            self.boot.time = turn.boot_time;
            self.doubt = None;
            self.rejected_ms = turn.rejected_ms;
            self.accepted_ms = turn.accepted_ms;
        }
    }
}

/// A wall clock without the offset that an operator has rejected.
fn shift(wall: Time, rejected_ms: i64) -> Time {
    let distance = rejected_ms.unsigned_abs();
    if rejected_ms < 0 { wall.plus_millis(distance) } else { wall.minus_millis(distance) }
}

//! The guarded clock (T13, T29, T34): a time that never goes back, not even over a crash, never leaps unnoticed and
//! never stays ahead of the machine's.
//!
//! **Two clocks of the machine.** The wall clock tells the time of day, and may be wrong, step or be set back. The
//! boot-time clock tells how much time has passed since the machine started, suspends included; within one boot it does
//! not go back. A boot has an id, which distinguishes a restart of the process from a restart of the machine.
//!
//! **The record.** Shown time must survive a crash, and a commit for every reading would cost too much. So the store
//! keeps a record with a *bound* (a lease of two seconds from the last renewal) and a point of a *line* (raw time at a
//! boot time of one boot), and shows no time beyond the limit that follows from both:
//!
//! ```text
//!   raw time
//!     |                    - - - - - - - bound = time of the renewal + lease
//!     |              . '  '
//!     |          . '  .         limit = min(bound, line + boot time since + 100 ms)
//!     |      . '  . shown
//!     |  + 100 . '
//!     |  line'                  after a crash: within the boot continue from the limit,
//!     +------------------ boot time                in another boot from the bound
//! ```
//!
//! Small steps of the wall clock fit into the 100 ms. A larger step forward lies beyond the limit: callers wait until a
//! record that covers it is durable, and then it is shown. That is why a crash within a boot loses nothing. The line
//! alone would (at boot time 100 the record shows T with bound T+10; at 103 the wall clock steps by 5 and T+8 is shown;
//! after a crash the line says T+4 at 104), and the bound alone would put time ahead by a lease with every crash.
//!
//! A renewal is requested when less than half of the lease is left, without waiting for it; every commit may carry one.
//! A transaction's time may lie beyond the limit, because its outcome becomes visible only after the commit that also
//! raises the limit. A store without requests writes nothing.
//!
//! | subject | file |
//! |---|---|
//! | the record and its limit | `record.rs` |
//! | where time continues after a start | `start.rs` |
//! | following, slewing, suspicion, renewal | `running.rs` |
//! | nine tenths of a rate, exactly | `slew.rs` |
//! | the machine's clocks | `wall.rs`, `real.rs` |
//! | texts that describe the state | `describe.rs` |
//!
//! **Suspicion.** A wall clock that gets ahead of the boot-time clock by more than `max_clock_jump` is not followed
//! (running leap), nor is one that is behind the time shown by more than that (behind): time goes on at full rate. A start
//! that finds it more than `max_start_gap` past the last known time shows the wall clock's time, so that items which may
//! have expired are hidden, while the *trusted* time, by which data may be destroyed, goes on from the last known one
//! (start leap).
//! In each case the clock is suspect and nothing is destroyed until the operator accepts or rejects the wall clock. A
//! wall clock that comes back by itself does not end a suspicion, since either of its readings may have been the wrong
//! one. An accepted offset is kept in the record; a rejected one lasts as long as the process: a wall clock that is
//! still wrong at the next start is judged again.
//!
//! **A pending commit holds time.** All transactions of a commit have one time, and until the commit is visible no
//! later time is shown. Otherwise a reader could treat an item as expired although a write an instant earlier, visible
//! an instant later, has kept it living (T13). So shown time lags by at most the duration of a commit. If the commit
//! fails, its outcome is unknown and recovery may replay it: time stands still until the store is opened again.
//!
//! All this is in *raw* time; the test clock's advance (T29) is added when a time is shown.

mod describe;
mod options;
#[cfg(test)]
mod random_tests;
mod real;
mod record;
mod running;
mod slew;
mod start;
mod status;
#[cfg(test)]
mod table_tests;
mod wall;

pub use describe::ClockOffset;
pub use options::{ClockOptions, TestClock};
pub use real::RealClock;
pub(crate) use record::{BootLine, ClockRecord, RecordedSuspicion};
pub(crate) use running::ClockDecision;
pub(crate) use status::Moment;
pub use status::{ClockStatus, Leap, Suspicion};
pub use wall::{BootId, ManualClock, WallClock};

use crate::sync::Mutex;
use crate::{Error, Result, Time};
use record::Boot;
use running::State;
use std::sync::Arc;

/// The lease: how far the persisted bound lies ahead of shown time at most, and so how far time may be ahead after a
/// power loss. A store in use renews its lease twice in that time.
const LEASE_MS: u64 = 2_000;
/// The rest of a lease below which it is renewed.
const RENEW_MS: u64 = LEASE_MS / 2;
/// How far shown time may lie beyond the recorded line: slack for a wall clock that runs a little fast.
const SLACK_MS: u64 = 100;

/// A request that changes the durable record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Renew,
    Accept,
    Reject,
    Advance { seconds: u64 },
    Close,
}

/// The result of reading the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClockReading {
    /// The time, and whether the caller should request a renewal (once per renewal).
    Shown { status: ClockStatus, renew: bool },
    /// The time lies beyond the limit: a renewal must be durable first.
    Beyond,
}

/// Whether the caller has already waited for a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Renewed {
    Yes,
    No,
}

pub(crate) struct Clock {
    options: ClockOptions,
    state: Mutex<State>,
}

impl Clock {
    /// Starts the clock of a store whose record is `durable`; a new store has none.
    pub(crate) fn start(durable: Option<ClockRecord>, mut options: ClockOptions) -> Result<Self> {
        if options.test_clock == TestClock::Stopped {
            options.clock = Arc::new(ManualClock::stopped(options.clock.as_ref()));
        }
        let wall = options.clock.wall().min(Time::LAST);
        let boot = Boot { id: options.clock.boot_id(), time: options.clock.boot_time() };
        let state = match durable {
            None => State::new_store(wall, boot),
            Some(ClockRecord { advanced_ms, .. }) if advanced_ms > 0 && !options.test_clock.is_on() => {
                return Err(Error::TestClockStore { advanced_ms });
            }
            Some(durable) => State::reopened(durable, wall, boot, &options),
        };
        Ok(Self { options, state: Mutex::new(state) })
    }

    /// Returns the time now, unless it lies beyond the limit. A caller that has waited for a renewal is shown the limit
    /// then: the renewal began after the call did, so that time is not too early, however long the disk took.
    pub(crate) fn look(&self, renewed: Renewed) -> ClockReading {
        let mut state = self.state.lock();
        let wall = self.tick(&mut state);
        let now = match (state.limit(), renewed) {
            (Some(limit), _) if state.now() <= limit => state.now(),
            (Some(limit), Renewed::Yes) => limit,
            _ => return ClockReading::Beyond,
        };
        let renew = state.is_due(&state.durable) && !state.renewing;
        state.renewing |= renew;
        ClockReading::Shown { status: self.status(&state, now, wall), renew }
    }

    /// Returns the time of a transaction, which is that of the first one in its commit. Renews the lease in `record`,
    /// which the commit must carry; [`publish`](Self::publish) follows once the commit is durable.
    pub(crate) fn assign(&self, record: &mut ClockRecord) -> Moment {
        let mut state = self.state.lock();
        let wall = self.tick(&mut state);
        state.renew(record, wall);
        let now = state.begin_commit();
        Moment {
            now: now.plus_millis(record.advanced_ms),
            trusted: state.trusted(now).plus_millis(record.advanced_ms),
            suspect: state.suspicion.is_some(),
            advanced_ms: record.advanced_ms,
        }
    }

    /// Writes into `record` what `command` makes durable, and returns the decision to pass to
    /// [`publish`](Self::publish).
    pub(crate) fn prepare(
        &self,
        command: Command,
        record: &mut ClockRecord,
    ) -> Result<Option<ClockDecision>> {
        let ClockOptions { max_clock_jump, max_start_gap, .. } = self.options;
        let mut state = self.state.lock();
        let wall = self.tick(&mut state);
        if command == Command::Renew {
            // A lease changes no time, so time continues within the previous one.
            state.renew(record, wall);
            return Ok(None);
        }
        state.begin_commit();
        match command {
            Command::Advance { seconds } => {
                record.advanced_ms = self.advanced(record.advanced_ms, seconds, state.time())?;
                state.renew(record, wall);
            }
            Command::Accept if state.suspicion.is_some() => {
                return Ok(Some(state.accept(record, wall, max_clock_jump)));
            }
            Command::Reject if state.suspicion.is_some() => {
                return Ok(Some(state.reject(record, wall, max_clock_jump, max_start_gap)));
            }
            // A clock that never had a lease has shown no time, and an unused store writes nothing.
            Command::Close if record.bound > Time::ZERO => state.close(record),
            Command::Renew | Command::Accept | Command::Reject | Command::Close => {}
        }
        Ok(None)
    }

    /// Returns the test clock's advance after `seconds` more.
    fn advanced(&self, advanced_ms: u64, seconds: u64, raw: Time) -> Result<u64> {
        if !self.options.test_clock.is_on() {
            return Err(Error::TestClockOff);
        }
        let advanced_ms = advanced_ms.saturating_add(seconds.saturating_mul(1000));
        let is_possible = raw.plus_millis(advanced_ms).plus_millis(LEASE_MS) <= Time::LAST;
        if is_possible { Ok(advanced_ms) } else { Err(Error::TimeOutOfRange) }
    }

    /// Stops time: a commit has failed, and its outcome is unknown until the store is opened again.
    pub(crate) fn hold(&self) {
        let mut state = self.state.lock();
        self.tick(&mut state);
        state.begin_commit();
    }

    /// Takes over what has become durable. After a failed commit the caller calls [`hold`](Self::hold) instead.
    pub(crate) fn publish(&self, record: ClockRecord, decision: Option<ClockDecision>) {
        self.state.lock().publish(record, decision);
    }

    /// Reads the machine's clocks, moves time on accordingly and returns the wall clock's time.
    fn tick(&self, state: &mut State) -> Time {
        let (wall, boot_time) = (self.options.clock.wall().min(Time::LAST), self.options.clock.boot_time());
        state.tick(wall, boot_time, self.options.max_clock_jump);
        wall
    }

    /// Returns the status with the raw time `now` shown.
    fn status(&self, state: &State, now: Time, wall: Time) -> ClockStatus {
        let advanced_ms = state.durable.advanced_ms;
        let trusted = state.trusted(now);
        ClockStatus {
            now: now.plus_millis(advanced_ms),
            trusted: trusted.plus_millis(advanced_ms),
            suspect: state.suspicion.map(|suspicion| Suspicion {
                leap: suspicion.leap,
                wall,
                ahead_ms: wall.millis_since(trusted),
                accepted: state.accepted(wall, self.options.max_clock_jump).plus_millis(advanced_ms),
            }),
            test_clock: self.options.test_clock,
            advanced_ms,
            ahead_ms: now.millis_ahead_of(wall),
            slewing: state.slewing && self.options.test_clock != TestClock::Stopped,
        }
    }
}

//! The guarded clock (T29, T34): a time that never goes back, never leaps unnoticed and survives a crash.
//!
//! **A lease.** The store persists an upper bound a few seconds ahead and never shows a time beyond it. After a
//! crash it starts from the larger of wall clock and bound, so whatever was shown before lies behind it:
//!
//! ```text
//!   shown ---------------->|            |
//!                         now         bound          crash: go on from max(wall, bound)
//!                          |<- lease -->|            close: the bound becomes the last time shown
//! ```
//!
//! With less than half of the lease left a renewal is asked for without waiting; past the bound the caller waits
//! for it. Every commit may carry a renewal, and a transaction's time may lie beyond the bound, because nobody
//! sees its outcome before the commit that also raises the bound. A store that nobody asks writes nothing.
//!
//! **Two lines.** Time is a line: an anchor plus what the monotonic clock counted since. The wall clock moves the
//! anchor forward as long as it is believable. If it is behind, the line runs on (set-back). If it is ahead by
//! more than `max_clock_jump`, the line runs on too and the clock is *suspect* (running leap). If at the start it is
//! more than `max_start_gap` past the last known time, the line starts at the wall clock, so that what may have
//! expired is hidden, while a second line, the *trusted* one, starts at the last known time and says what may be
//! destroyed (start leap). Only an operator ends a suspicion, also one that a restart found in the record: a wall
//! clock that comes back to its senses by itself does not, since nobody can tell which of its words was the lie.
//!
//! **It stands still while a commit is on its way.** All transactions of a commit have one time, and until the commit is
//! visible, or has failed, nobody is shown a later one. Else a reader could take an item for dead by the running time which
//! a write of an instant before, visible an instant later, has kept alive (T13). So what is shown lags by at most the time
//! of a commit.
//!
//! All this is in *raw* time; the test clock's offset (T29) is added when a time is shown. Rejecting a leap lasts as
//! long as the process: a wall clock still wrong at the next start is judged anew.

mod describe;
mod real;
mod record;
mod wall;

pub use describe::ClockOffset;
pub use real::RealClock;
pub(crate) use record::{BootLine, ClockRecord, RecordedSuspicion};
pub use wall::{BootId, ManualClock, WallClock};

use crate::sync::Mutex;
use crate::transaction::Moment;
use crate::{Error, Result, Time};
use std::sync::Arc;
use std::time::Duration;

/// How far ahead of the shown time the persisted bound lies.
const LEASE_MS: u64 = 10_000;
/// A lease with less than this left is renewed.
const RENEW_MS: u64 = LEASE_MS / 2;

/// How a store's clock behaves.
#[derive(Clone)]
pub struct ClockOptions {
    /// The machine's clocks.
    pub clock: Arc<dyn WallClock>,
    /// Whether the clock may be moved (T29).
    pub test_clock: TestClock,
    /// How far the wall clock may get ahead of the monotonic one while the store runs (T34).
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

/// Who moves the clock (T29).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TestClock {
    /// The machine alone.
    #[default]
    Off,
    /// The machine, and whoever asks for it.
    Runs,
    /// Only who asks for it: the machine's time is taken at the start and then stands still, so that no slow test comes a second
    /// too late. Nor do receipts of retried writes, which live on real time, grow old.
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

/// Which leap made the clock suspect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leap {
    /// The wall clock leapt while the store ran; time goes on without it.
    Running,
    /// The wall clock was too far ahead at the start; items are hidden by it, nothing is destroyed by it.
    Start,
    /// The wall clock is too far behind the time shown, which goes on without it.
    Behind,
}

/// Why the clock is suspect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspicion {
    /// What happened.
    pub leap: Leap,
    /// What the wall clock says now.
    pub wall: Time,
    /// How far the wall clock is ahead of the trusted time, without the test clock's advance.
    pub ahead_ms: u64,
}

/// The state of a store's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockStatus {
    /// The time shown to everybody.
    pub now: Time,
    /// The time by which data may be destroyed.
    pub trusted: Time,
    /// Set until an operator has accepted or rejected a leap.
    pub suspect: Option<Suspicion>,
    /// Whether the clock may be moved.
    pub test_clock: TestClock,
    /// By how much the test clock was moved, in all.
    pub advanced_ms: u64,
    /// How far `now`, without the test clock's advance, is ahead of the machine's wall clock; negative if it is behind.
    pub ahead_ms: i64,
}

/// A request that changes the durable record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Renew,
    Accept,
    Reject,
    Advance { seconds: u64 },
    Close,
}

/// What a look at the clock gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// The time, and whether the caller should ask for a renewal (once per renewal).
    Shown { status: ClockStatus, renew: bool },
    /// The time lies beyond the bound: a renewal must be durable first.
    Beyond,
}

/// The line that takes over once an operator's decision is durable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    line: Line,
    rejected_ms: u64,
}

pub(crate) struct Clock {
    options: ClockOptions,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The time shown.
    main: Line,
    /// Open while the clock is suspect.
    doubt: Option<Doubt>,
    /// How far the wall clock is ahead by a leap that was rejected.
    rejected_ms: u64,
    /// The record as it is on disk.
    durable: ClockRecord,
    /// Whether a renewal was asked for and has not arrived.
    renewing: bool,
    /// The time of the commit that is on its way.
    on_its_way: Option<Time>,
}

#[derive(Clone, Copy, Debug)]
struct Doubt {
    leap: Leap,
    trusted: Line,
}

/// An anchor, and time counted from it by the monotonic clock.
#[derive(Clone, Copy, Debug)]
struct Line {
    at: Time,
    since: Duration,
}

impl Line {
    fn read(&self, monotonic: Duration) -> Time {
        self.at.plus(monotonic.saturating_sub(self.since))
    }
}

impl Clock {
    /// Starts the clock of a store whose record is `durable`; a new store has none and trusts the wall clock.
    pub(crate) fn start(durable: Option<ClockRecord>, mut options: ClockOptions) -> Result<Self> {
        if options.test_clock == TestClock::Stopped {
            options.clock = Arc::new(ManualClock::new(options.clock.wall()));
        }
        let (wall, since) = (options.clock.wall().min(Time::LAST), options.clock.monotonic());
        let Some(durable) = durable else {
            let state = State::new(Line { at: wall, since }, None, ClockRecord::default());
            return Ok(Self { options, state: Mutex::new(state) });
        };
        if durable.advanced_ms > 0 && !options.test_clock.is_on() {
            return Err(Error::TestClockStore { advanced_ms: durable.advanced_ms });
        }
        let main = Line { at: wall.max(durable.bound), since };
        let known = durable.suspicion.map_or(durable.bound, |suspicion| suspicion.trusted);
        let believable = wall <= known.plus(options.max_start_gap);
        let doubt = (durable.suspicion.is_some() || !believable)
            .then_some(Doubt { leap: Leap::Start, trusted: Line { at: known, since } });
        Ok(Self { options, state: Mutex::new(State::new(main, doubt, durable)) })
    }

    /// The time now, unless it lies beyond the bound.
    pub(crate) fn look(&self) -> Look {
        let mut state = self.state.lock();
        let (wall, monotonic) = self.tick(&mut state);
        let now = state.now(monotonic);
        if now > state.durable.bound {
            return Look::Beyond;
        }
        let due = state.durable.bound.millis_since(now) < RENEW_MS || state.doubt_is_new(&state.durable);
        let renew = due && !state.renewing;
        state.renewing |= renew;
        Look::Shown { status: self.status(&state, wall, monotonic), renew }
    }

    /// The time of a transaction, which is that of the first one of its commit. Raises the bound in `record`, which the
    /// commit must carry; then comes [`publish`](Self::publish) or [`release`](Self::release).
    pub(crate) fn assign(&self, record: &mut ClockRecord) -> Moment {
        let mut state = self.state.lock();
        let (_, monotonic) = self.tick(&mut state);
        state.renew(record, monotonic);
        let main = state.now(monotonic);
        state.on_its_way = Some(main);
        let trusted = state.trusted(monotonic);
        Moment {
            now: main.plus_millis(record.advanced_ms),
            trusted: trusted.plus_millis(record.advanced_ms),
            suspect: state.doubt.is_some(),
            advanced_ms: record.advanced_ms,
        }
    }

    /// Writes into `record` what `command` makes durable; the turn is for [`publish`](Self::publish).
    pub(crate) fn prepare(&self, command: Command, record: &mut ClockRecord) -> Result<Option<Turn>> {
        let mut state = self.state.lock();
        let (wall, monotonic) = self.tick(&mut state);
        let main = state.main.read(monotonic);
        let mut turn = None;
        match command {
            Command::Renew => state.renew(record, monotonic),
            Command::Advance { seconds } => {
                if !self.options.test_clock.is_on() {
                    return Err(Error::TestClockOff);
                }
                let advanced_ms = record.advanced_ms.saturating_add(seconds.saturating_mul(1000));
                if main.plus_millis(advanced_ms).plus_millis(LEASE_MS) > Time::LAST {
                    return Err(Error::TimeOutOfRange);
                }
                record.advanced_ms = advanced_ms;
                state.renew(record, monotonic);
            }
            Command::Accept if state.doubt.is_some() => {
                let at = main.max(wall);
                *record = ClockRecord { bound: at.plus_millis(LEASE_MS), suspicion: None, ..*record };
                turn = Some(Turn { line: Line { at, since: monotonic }, rejected_ms: 0 });
            }
            Command::Reject if state.doubt.is_some() => {
                let at = self.after_rejection(&state, wall, monotonic);
                *record = ClockRecord { bound: at.plus_millis(LEASE_MS), suspicion: None, ..*record };
                let line = Line { at, since: monotonic };
                turn = Some(Turn { line, rejected_ms: wall.millis_since(at) });
            }
            // A clock that never had a lease has shown nothing, and an unused store writes nothing.
            Command::Close if record.bound > Time::ZERO => {
                record.bound = main;
                record.suspicion = state.suspicion(state.trusted(monotonic));
                // No later look may show a time beyond the bound that is about to be written.
                state.durable.bound = record.bound;
            }
            Command::Accept | Command::Reject | Command::Close => {}
        }
        Ok(turn)
    }

    /// The time to go on from once a leap is rejected: the trusted time; or the wall clock's, if it has come back from
    /// the leap that is shown since, because then it is the leap that is rejected and not the wall clock.
    fn after_rejection(&self, state: &State, wall: Time, monotonic: Duration) -> Time {
        let trusted = state.trusted(monotonic);
        let came_back = wall.plus(self.options.max_clock_jump) < state.main.read(monotonic);
        let believable = wall <= trusted.plus(self.options.max_start_gap);
        if came_back && believable { trusted.max(wall) } else { trusted }
    }

    /// Takes over what has become durable.
    pub(crate) fn publish(&self, record: ClockRecord, turn: Option<Turn>) {
        let mut state = self.state.lock();
        state.durable = record;
        state.renewing = false;
        state.on_its_way = None;
        if let Some(turn) = turn {
            state.main = turn.line;
            state.doubt = None;
            state.rejected_ms = turn.rejected_ms;
        }
    }

    /// Nothing has become durable: the commit failed, and so will all others.
    pub(crate) fn release(&self) {
        self.state.lock().on_its_way = None;
    }

    /// Reads both clocks and moves the main line accordingly.
    fn tick(&self, state: &mut State) -> (Time, Duration) {
        let (wall, monotonic) = (self.options.clock.wall().min(Time::LAST), self.options.clock.monotonic());
        // A monotonic clock that goes back would be a broken one; the line does not follow it.
        let monotonic = monotonic.max(state.main.since);
        if state.doubt.is_none() {
            state.follow(wall, monotonic, self.options.max_clock_jump);
        }
        (wall, monotonic)
    }

    fn status(&self, state: &State, wall: Time, monotonic: Duration) -> ClockStatus {
        let advanced_ms = state.durable.advanced_ms;
        let (now, trusted) = (state.now(monotonic), state.trusted(monotonic));
        ClockStatus {
            now: now.plus_millis(advanced_ms),
            trusted: trusted.plus_millis(advanced_ms),
            suspect: state.doubt.map(|doubt| Suspicion {
                leap: doubt.leap,
                wall,
                ahead_ms: wall.millis_since(trusted),
            }),
            test_clock: self.options.test_clock,
            advanced_ms,
            ahead_ms: now.millis_ahead_of(wall),
        }
    }
}

impl State {
    fn new(main: Line, doubt: Option<Doubt>, durable: ClockRecord) -> Self {
        Self { main, doubt, rejected_ms: 0, durable, renewing: false, on_its_way: None }
    }

    /// Moves the line to a believable wall clock, or begins to doubt.
    fn follow(&mut self, wall: Time, monotonic: Duration, max_clock_jump: Duration) {
        let line = self.main.read(monotonic);
        let limit = line.plus(max_clock_jump);
        // A rejected leap is deducted as long as the wall clock still shows it.
        let wall = if wall <= limit { wall } else { wall.minus_millis(self.rejected_ms) };
        if wall > limit {
            self.doubt = Some(Doubt { leap: Leap::Running, trusted: self.main });
        } else if wall > line {
            self.main = Line { at: wall, since: monotonic };
        }
    }

    /// The time to show.
    fn now(&self, monotonic: Duration) -> Time {
        self.on_its_way.unwrap_or_else(|| self.main.read(monotonic))
    }

    /// The trusted time: the shown one if the clock is not suspect, and never beyond it.
    fn trusted(&self, monotonic: Duration) -> Time {
        let main = self.now(monotonic);
        self.doubt.map_or(main, |doubt| doubt.trusted.read(monotonic).min(main))
    }

    /// What is recorded of the present doubt.
    fn suspicion(&self, trusted: Time) -> Option<RecordedSuspicion> {
        self.doubt.map(|doubt| RecordedSuspicion { leap: doubt.leap, trusted })
    }

    fn doubt_is_new(&self, record: &ClockRecord) -> bool {
        self.doubt.is_some() && record.suspicion.is_none()
    }

    /// Raises the bound in `record` if less than half of the lease is left, or a suspicion is not recorded yet.
    fn renew(&self, record: &mut ClockRecord, monotonic: Duration) {
        let now = self.main.read(monotonic);
        if record.bound < now.plus_millis(RENEW_MS) || self.doubt_is_new(record) {
            record.bound = record.bound.max(now.plus_millis(LEASE_MS));
            record.suspicion = self.suspicion(self.trusted(monotonic).plus_millis(LEASE_MS));
        }
    }
}

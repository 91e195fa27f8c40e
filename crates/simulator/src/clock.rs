//! T34 as a plain program: the time that the store's clock must show, given the machine's clocks.
//!
//! While the store runs the answer is exact. After a crash the store may continue from anywhere within its lease, so there
//! the model checks bounds and takes over the store's time. It depends on nothing but `std`.
//! Times are in milliseconds and *raw*: without the test clock's advance.

/// The lease: how far the store's durable bound may be ahead of the shown time.
pub(crate) const LEASE_MS: u64 = 2_000;
/// How far beyond its recorded line a store may show a time.
pub(crate) const SLACK_MS: u64 = 100;
/// `maxClockJump`.
const JUMP_MS: u64 = 3_600_000;
/// How far past the last known time a start may find the wall clock.
const START_GAP_MS: u64 = 30 * 24 * 3_600_000;

/// A reading of the store's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ClockReading {
    /// The time of every request.
    pub(crate) now_ms: u64,
    /// The time by which data may be destroyed.
    pub(crate) trusted_ms: u64,
    /// Whether an operator has to decide.
    pub(crate) suspect: bool,
    /// The test clock's advance.
    pub(crate) advanced_ms: u64,
}

/// The machine's clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Machine {
    /// The wall clock.
    pub(crate) wall_ms: u64,
    /// The boot-time clock.
    pub(crate) boot_ms: u64,
}

/// A request to the clock in a step that a crash may have interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClockRequest {
    /// Nothing.
    Nothing,
    /// Accept.
    Accept,
    /// Reject.
    Reject,
    /// Advance by so many seconds.
    Advance(u64),
}

/// What was restarted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RestartKind {
    /// The process alone: boot time goes on.
    Process,
    /// The machine: boot time restarts.
    Machine,
}

/// The model of the clock.
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    /// The time shown, in tenths of milliseconds: it may run at nine tenths.
    tenths: u64,
    /// How far the trusted time is behind it.
    gap: u64,
    boot: u64,
    suspect: bool,
    /// How far a wall clock that an operator has rejected is ahead.
    rejected: i64,
    /// How far behind an operator has accepted the wall clock to be.
    accepted: u64,
    advanced: u64,
    /// A commit has failed: time stays until the store is opened again.
    held: bool,
}

impl Clock {
    /// Creates the clock of a new store, which trusts the wall clock.
    pub(crate) fn new(machine: Machine) -> Clock {
        Clock {
            tenths: machine.wall_ms * 10,
            gap: 0,
            boot: machine.boot_ms,
            suspect: false,
            rejected: 0,
            accepted: 0,
            advanced: 0,
            held: false,
        }
    }

    fn now(&self) -> u64 {
        self.tenths / 10
    }

    fn trusted(&self) -> u64 {
        self.now() - self.gap
    }

    /// Applies a request of an operator or a test.
    pub(crate) fn obey(&mut self, machine: Machine, asked: ClockRequest) {
        self.look(machine);
        match asked {
            ClockRequest::Nothing => {}
            ClockRequest::Accept => self.accept(machine),
            ClockRequest::Reject => self.reject(machine),
            ClockRequest::Advance(seconds) => self.advanced += seconds * 1000,
        }
    }

    /// Returns the expected reading, the store having run since the last look.
    pub(crate) fn look(&mut self, machine: Machine) -> ClockReading {
        if !self.held {
            self.run(machine);
        }
        self.shown()
    }

    /// Records that a commit has failed now.
    pub(crate) fn hold(&mut self, machine: Machine) {
        self.look(machine);
        self.held = true;
    }

    fn run(&mut self, machine: Machine) {
        let passed = machine.boot_ms - self.boot;
        self.boot = machine.boot_ms;
        let (full, slow) = (self.tenths + passed * 10, self.tenths + passed * 9);
        self.tenths = full;
        if self.suspect {
            return;
        }
        let without_rejected = machine.wall_ms.saturating_add_signed(-self.rejected);
        for wall in [machine.wall_ms, without_rejected] {
            if wall <= full / 10 + JUMP_MS && slow / 10 <= wall + JUMP_MS + self.accepted {
                self.tenths = slow.max(wall * 10);
                if slow / 10 <= wall + JUMP_MS {
                    self.accepted = 0;
                }
                return;
            }
        }
        self.suspect = true;
    }

    fn turn(&mut self, now: u64) {
        self.tenths = now * 10;
        self.gap = 0;
        self.suspect = false;
        self.rejected = 0;
        self.accepted = 0;
    }

    /// Accepts the wall clock for the operator: time becomes the wall clock's, or slews to it. If the wall clock has come back
    /// from the leap, the leap was wrong, so the trusted time counts.
    fn accept(&mut self, machine: Machine) {
        if self.suspect {
            let came_back = machine.wall_ms + JUMP_MS < self.now();
            let floor = if came_back { self.trusted() } else { self.now() };
            self.turn(floor.max(machine.wall_ms));
            self.accepted = self.now().saturating_sub(machine.wall_ms);
        }
    }

    /// Rejects the wall clock for the operator: the trusted time counts. If the wall clock has come back from
    /// the leap by itself and is believable, the leap is rejected and not the wall clock.
    fn reject(&mut self, machine: Machine) {
        if self.suspect {
            let came_back = machine.wall_ms + JUMP_MS < self.now();
            let believable = machine.wall_ms <= self.trusted() + START_GAP_MS;
            let wall = if came_back && believable { machine.wall_ms } else { 0 };
            self.turn(self.trusted().max(wall));
            self.rejected = machine.wall_ms as i64 - self.now() as i64;
        }
    }

    /// Restarts the store after an orderly end at the last reading.
    pub(crate) fn restart_clean(&mut self, machine: Machine, over: RestartKind) -> ClockReading {
        self.held = false;
        self.rejected = 0;
        match over {
            RestartKind::Process => {
                // Whole milliseconds are recorded, and gone on from.
                self.tenths = self.now() * 10;
                let known = self.now() + (machine.boot_ms - self.boot);
                if !self.suspect && machine.wall_ms > known + START_GAP_MS {
                    self.gap = machine.wall_ms - known;
                    self.tenths = machine.wall_ms * 10;
                    self.suspect = true;
                } else {
                    self.run(machine);
                    self.tenths = self.now() * 10;
                }
            }
            RestartKind::Machine => {
                let (now, trusted) = (self.now(), self.trusted());
                let started = now.max(machine.wall_ms);
                let is_behind = now > machine.wall_ms + JUMP_MS + self.accepted;
                let is_ahead = machine.wall_ms > trusted + START_GAP_MS;
                self.suspect |= is_behind || is_ahead;
                self.gap = if self.suspect { started - trusted } else { 0 };
                self.tenths = started * 10;
            }
        }
        self.boot = machine.boot_ms;
        self.shown()
    }

    /// Checks and takes over the time `seen` that the store shows after a crash. `certain` is false if the crash hit a commit
    /// that might have recorded a suspicion.
    pub(crate) fn restart_after_crash(
        &mut self,
        machine: Machine,
        over: RestartKind,
        seen: ClockReading,
        asked: ClockRequest,
        certain: bool,
    ) -> Result<(), String> {
        let wall = machine.wall_ms;
        let advance = if let ClockRequest::Advance(seconds) = asked { seconds * 1000 } else { 0 };
        let advances = [self.advanced, self.advanced + advance];
        check(advances.contains(&seen.advanced_ms), "the test clock's advance", &seen)?;
        let (now, trusted) = (seen.now_ms - seen.advanced_ms, seen.trusted_ms - seen.advanced_ms);
        let judged = matches!(asked, ClockRequest::Accept | ClockRequest::Reject);
        // The time that was shown, and the time if the store had run on.
        let passed = if over == RestartKind::Process { machine.boot_ms - self.boot } else { 0 };
        let floor = if judged { self.trusted() } else { self.now() };
        let (full, slow) = (self.now() + passed, floor + passed * 9 / 10);
        check(now >= floor, "time fell over a crash", &seen)?;
        check(now + SLACK_MS + LEASE_MS >= slow, "time was lost over a crash", &seen)?;
        // A wall clock that was rejected is followed at its distance until the crash, by steps that it may make.
        let followed = wall.saturating_add_signed(-self.rejected);
        let followed = if followed <= full + JUMP_MS { followed } else { wall };
        let most = full.max(wall).max(followed);
        check(now <= most + SLACK_MS + LEASE_MS, "time leapt over a crash", &seen)?;
        let known = self.trusted() + passed;
        if over == RestartKind::Machine {
            check(now >= wall, "a start in another boot shows no earlier time than the wall clock's", &seen)?;
            let far_ahead = wall > known + SLACK_MS + LEASE_MS + START_GAP_MS;
            // An operator's decision may have been kept.
            if (self.suspect && certain || far_ahead) && !judged {
                check(seen.suspect, "the clock must be suspect", &seen)?;
            }
        } else if self.suspect && certain && !judged {
            check(seen.suspect, "the clock must be suspect", &seen)?;
        }
        let believable = match over {
            RestartKind::Process => wall <= full + JUMP_MS - LEASE_MS,
            RestartKind::Machine => wall <= known + START_GAP_MS,
        };
        let behind = full + SLACK_MS + LEASE_MS > wall + JUMP_MS + self.accepted;
        if !self.suspect && certain && believable && !behind {
            check(!seen.suspect, "the clock must not be suspect", &seen)?;
        }
        check(trusted >= self.trusted(), "trusted time fell over a crash", &seen)?;
        check(trusted <= now, "trusted time is ahead of time", &seen)?;
        check(seen.suspect || trusted == now, "a clock that is not suspect is trusted", &seen)?;
        check(seen.suspect || now >= wall, "a believable wall clock is followed", &seen)?;
        self.tenths = now * 10;
        self.gap = now - trusted;
        self.boot = machine.boot_ms;
        self.suspect = seen.suspect;
        self.rejected = 0;
        self.held = false;
        self.advanced = seen.advanced_ms;
        if asked == ClockRequest::Accept && !seen.suspect {
            // It may have been done; what is believable by itself needs no acceptance.
            let ahead = now.saturating_sub(wall);
            self.accepted = if ahead <= JUMP_MS { 0 } else { ahead };
        }
        Ok(())
    }

    /// Returns what the model shows.
    pub(crate) fn shown(&self) -> ClockReading {
        ClockReading {
            now_ms: self.now() + self.advanced,
            trusted_ms: self.trusted() + self.advanced,
            suspect: self.suspect,
            advanced_ms: self.advanced,
        }
    }
}

fn check(condition: bool, what: &str, seen: &ClockReading) -> Result<(), String> {
    if condition { Ok(()) } else { Err(format!("clock: {what}; shown: {seen:?}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 1_700_000_000_000;

    /// Starts a store that crashed after the wall clock, rejected three hours behind, made a step.
    fn crashed(step_ms: u64, shown_ms: u64) -> Result<(), String> {
        let mut machine = Machine { wall_ms: START, boot_ms: 0 };
        let mut clock = Clock::new(machine);
        machine.wall_ms -= 3 * JUMP_MS;
        assert!(clock.look(machine).suspect);
        clock.obey(machine, ClockRequest::Reject);
        assert!(!clock.look(machine).suspect);
        machine.wall_ms += step_ms;
        let seen = ClockReading { now_ms: shown_ms, trusted_ms: shown_ms, suspect: true, advanced_ms: 0 };
        clock.restart_after_crash(machine, RestartKind::Process, seen, ClockRequest::Nothing, true)
    }

    /// T34: a rejected wall clock is followed at its distance, and a crash keeps a step that was followed.
    #[test]
    fn t34_a_step_of_a_rejected_wall_clock_may_be_kept_by_a_crash() {
        let step = 600_000;
        assert_eq!(crashed(step, START + step), Ok(()));
        assert_eq!(crashed(step, START), Ok(()), "the step was not seen before the crash");
        assert!(crashed(step, START + step + SLACK_MS + LEASE_MS + 1).is_err(), "more than the step");
        assert!(crashed(2 * JUMP_MS, START + 2 * JUMP_MS).is_err(), "no step of hours is followed");
    }
}

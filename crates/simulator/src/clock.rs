//! T34 as a plain program: what the store's clock must show, given what the machine's clocks say.
//!
//! While the store runs the answer is exact. After a crash the store may go on from anywhere within its lease, so there the
//! model checks bounds and takes the store's word. It depends on nothing but `std`.
//! Times are in milliseconds and *raw*: without what the test clock was advanced by.

/// How far ahead of the shown time a store may have promised not to go back behind.
const LEASE_MS: u64 = 10_000;
/// `maxClockJump`.
const JUMP_MS: u64 = 3_600_000;
/// How far past the last known time a start may find the wall clock.
const START_GAP_MS: u64 = 30 * 24 * 3_600_000;

/// What a look at the store's clock showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Shown {
    /// The time of every request.
    pub(crate) now_ms: u64,
    /// The time by which something may be destroyed.
    pub(crate) trusted_ms: u64,
    /// Whether an operator has to judge.
    pub(crate) suspect: bool,
    /// What the test clock was advanced by.
    pub(crate) advanced_ms: u64,
}

/// The machine's clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Machine {
    /// The wall clock.
    pub(crate) wall_ms: u64,
    /// The monotonic clock.
    pub(crate) monotonic_ms: u64,
}

/// What an operator or a test asked of the clock in a step that may have been cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Nothing.
    Nothing,
    /// Accept.
    Accept,
    /// Reject.
    Reject,
    /// Advance by so many seconds.
    Advance(u64),
}

/// The model of the clock.
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    now: u64,
    trusted: u64,
    monotonic: u64,
    suspect: bool,
    /// How far the wall clock is ahead by a leap that an operator has rejected.
    rejected: u64,
    advanced: u64,
    /// Set by a crash: no time beyond this had been promised.
    ceiling: u64,
}

impl Clock {
    /// A new store trusts the wall clock.
    pub(crate) fn new(machine: Machine) -> Clock {
        Clock {
            now: machine.wall_ms,
            trusted: machine.wall_ms,
            monotonic: machine.monotonic_ms,
            suspect: false,
            rejected: 0,
            advanced: 0,
            ceiling: 0,
        }
    }

    /// What an operator or a test asked for has been done.
    pub(crate) fn obey(&mut self, machine: Machine, asked: Asked) {
        self.look(machine);
        match asked {
            Asked::Nothing => {}
            Asked::Accept => self.accept(machine),
            Asked::Reject => self.reject(machine),
            Asked::Advance(seconds) => self.advanced += seconds * 1000,
        }
    }

    /// What must be shown now, the store having run since the last look.
    pub(crate) fn look(&mut self, machine: Machine) -> Shown {
        let passed = machine.monotonic_ms - self.monotonic;
        self.monotonic = machine.monotonic_ms;
        self.now += passed;
        if self.suspect {
            self.trusted += passed;
            return self.shown();
        }
        let believable = self.now + JUMP_MS;
        if machine.wall_ms <= believable {
            self.now = self.now.max(machine.wall_ms);
        } else {
            let without_leap = machine.wall_ms - self.rejected;
            if without_leap <= believable {
                self.now = self.now.max(without_leap);
            } else {
                self.suspect = true;
            }
        }
        self.trusted = self.now;
        self.shown()
    }

    /// The operator believes the wall clock.
    fn accept(&mut self, machine: Machine) {
        if self.suspect {
            self.now = self.now.max(machine.wall_ms);
            self.trusted = self.now;
            self.suspect = false;
            self.rejected = 0;
        }
    }

    /// The operator does not: the trusted time counts, the only case in which time falls. If the wall clock has come back from
    /// the leap by itself and is believable, it is the leap that is rejected and not the wall clock.
    fn reject(&mut self, machine: Machine) {
        if self.suspect {
            let came_back = machine.wall_ms + JUMP_MS < self.now;
            let believable = machine.wall_ms <= self.trusted + START_GAP_MS;
            self.now = if came_back && believable { self.trusted.max(machine.wall_ms) } else { self.trusted };
            self.trusted = self.now;
            self.suspect = false;
            self.rejected = machine.wall_ms.saturating_sub(self.now);
        }
    }

    /// The store has started again after an orderly end at the last look.
    pub(crate) fn restart_clean(&mut self, machine: Machine) -> Shown {
        let believable = machine.wall_ms <= self.trusted + START_GAP_MS;
        self.now = self.now.max(machine.wall_ms);
        self.suspect = self.suspect || !believable;
        if !self.suspect {
            self.trusted = self.now;
        }
        self.monotonic = machine.monotonic_ms;
        self.rejected = 0;
        self.shown()
    }

    /// The process dies, perhaps while it was doing what was asked.
    pub(crate) fn crash(&mut self, machine: Machine, asked: Asked) {
        let mut probe = self.clone();
        probe.look(machine);
        if asked == Asked::Accept {
            probe.accept(machine);
        }
        self.ceiling = probe.now + LEASE_MS;
    }

    /// The store has started again after a crash and shows `seen`. `certain` is false if the crash struck a commit that
    /// might have recorded a suspicion.
    pub(crate) fn restart_after_crash(
        &mut self,
        machine: Machine,
        seen: Shown,
        asked: Asked,
        certain: bool,
    ) -> Result<(), String> {
        let wall = machine.wall_ms;
        let advance = if let Asked::Advance(seconds) = asked { seconds * 1000 } else { 0 };
        let advances = [self.advanced, self.advanced + advance];
        check(advances.contains(&seen.advanced_ms), "the test clock's advance", &seen)?;
        let (now, trusted) = (seen.now_ms - seen.advanced_ms, seen.trusted_ms - seen.advanced_ms);
        let judged = matches!(asked, Asked::Accept | Asked::Reject);
        let floor = if asked == Asked::Reject { self.trusted } else { self.now };
        check(now >= floor.max(wall), "time fell over a crash", &seen)?;
        check(now <= self.ceiling.max(wall), "time leapt over a crash", &seen)?;
        let far_ahead = wall > self.ceiling + START_GAP_MS;
        if self.suspect && certain && !judged || far_ahead {
            check(seen.suspect, "the clock must be suspect", &seen)?;
        }
        if !self.suspect && certain && wall <= self.trusted + START_GAP_MS {
            check(!seen.suspect, "the clock must not be suspect", &seen)?;
        }
        check(trusted >= self.trusted, "trusted time fell over a crash", &seen)?;
        check(trusted <= now, "trusted time is ahead of time", &seen)?;
        check(seen.suspect || trusted == now, "a clock that nobody suspects is trusted", &seen)?;
        self.now = now;
        self.trusted = trusted;
        self.monotonic = machine.monotonic_ms;
        self.suspect = seen.suspect;
        self.rejected = 0;
        self.advanced = seen.advanced_ms;
        Ok(())
    }

    /// What the model shows.
    pub(crate) fn shown(&self) -> Shown {
        Shown {
            now_ms: self.now + self.advanced,
            trusted_ms: self.trusted + self.advanced,
            suspect: self.suspect,
            advanced_ms: self.advanced,
        }
    }
}

fn check(condition: bool, what: &str, seen: &Shown) -> Result<(), String> {
    if condition { Ok(()) } else { Err(format!("clock: {what}; shown: {seen:?}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 24 * JUMP_MS;

    fn at(wall_ms: u64, monotonic_ms: u64) -> Machine {
        Machine { wall_ms, monotonic_ms }
    }

    #[test]
    fn t34_a_set_back_clock_runs_on() {
        let mut clock = Clock::new(at(DAY, 0));
        assert_eq!(clock.look(at(5, 7)).now_ms, DAY + 7);
    }

    #[test]
    fn t34_a_running_leap_is_not_followed_until_accepted() {
        let mut clock = Clock::new(at(DAY, 0));
        let shown = clock.look(at(2 * DAY, 7));
        assert!(shown.suspect && shown.now_ms == DAY + 7 && shown.trusted_ms == DAY + 7);
        clock.obey(at(2 * DAY, 8), Asked::Accept);
        assert_eq!(clock.shown().now_ms, 2 * DAY);
    }

    #[test]
    fn t34_a_leap_at_start_hides_and_falls_back_when_rejected() {
        let mut clock = Clock::new(at(DAY, 0));
        let shown = clock.restart_clean(at(60 * DAY, 0));
        assert!(shown.suspect && shown.now_ms == 60 * DAY && shown.trusted_ms == DAY);
        clock.obey(at(60 * DAY, 5), Asked::Reject);
        assert_eq!((clock.shown().now_ms, clock.shown().suspect), (DAY + 5, false));
        assert_eq!(clock.look(at(60 * DAY + 10, 15)).now_ms, DAY + 15);
    }
}

//! Random histories of a clock: runs, kills, reboots, clean stops, failed commits and a wall clock that steps.
//!
//! Time never goes back (the bench of `table_tests.rs` checks every time shown), and its distance from real time is bounded
//! by the wall clock's error.

use super::table_tests::{Bench, Commit, START_MS};
use super::*;
use std::time::Duration;

const SEEDS: u64 = 400;
const STEPS: usize = 120;

/// The errors of the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wall {
    /// It is right.
    True,
    /// It is wrong by up to this many milliseconds, either way.
    Within(u64),
    /// It shows any time at all.
    Wild,
}

/// Whether the machine may restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Boots {
    One,
    Several,
}

struct History {
    bench: Bench,
    random: fastrand::Rng,
    real_ms: u64,
    wall: Wall,
    boots: Boots,
    /// Whether time was level with the wall clock when it was last shown.
    level: bool,
    /// A commit has failed: nothing is written until the store is opened again.
    failed: bool,
}

impl History {
    fn new(seed: u64, wall: Wall, boots: Boots) -> Self {
        let mut bench = Bench::new();
        bench.show();
        let random = fastrand::Rng::with_seed(seed);
        Self { bench, random, real_ms: START_MS, wall, boots, level: true, failed: false }
    }

    fn pass(&mut self, limit: u64) {
        let ms = self.random.u64(..limit);
        self.real_ms += ms;
        self.bench.pass(ms);
    }

    fn step(&mut self) {
        match self.random.u8(..12) {
            0..4 => self.pass(700),
            4 => {
                let limit = if self.random.bool() { 20_000 } else { 2 * 3_600_000 };
                self.pass(limit);
            }
            5 => self.set_wall(),
            6 | 7 => self.commit(),
            8 => self.restart(),
            9 if self.wall == Wall::Wild && !self.failed => {
                if self.random.bool() {
                    self.bench.accept();
                } else {
                    self.bench.command(Command::Renew);
                }
            }
            _ => {}
        }
        if !self.failed {
            self.level = self.bench.show().ahead_ms <= 0;
        }
    }

    fn set_wall(&mut self) {
        let wall = match self.wall {
            Wall::True => return,
            Wall::Within(ms) => self.real_ms - ms + self.random.u64(..=2 * ms),
            Wall::Wild => match self.random.u8(..4) {
                0 => self.real_ms,
                1 => self.random.u64(..2 * START_MS),
                _ => self.real_ms - 10_000_000 + self.random.u64(..20_000_000),
            },
        };
        self.bench.machine.set_wall(Time::from_millis(wall));
    }

    fn commit(&mut self) {
        if !self.failed {
            let ends = match self.random.u8(..8) {
                0 => Commit::FailsAndIsLost,
                1 => Commit::FailsAndIsKept,
                _ => Commit::Succeeds,
            };
            self.bench.commit(ends);
            self.failed = ends != Commit::Succeeds;
        }
    }

    fn restart(&mut self) {
        if self.failed || self.random.bool() {
            self.bench.kill();
        } else {
            self.bench.stop();
        }
        self.failed = false;
        if self.boots == Boots::Several && self.random.bool() {
            // Reboots that are quicker than a lease put time ahead, so it must be level before the next one.
            let least = if self.level { 0 } else { LEASE_MS };
            let down = least + self.random.u64(..5_000);
            self.real_ms += down;
            self.bench.machine.reboot(Duration::from_millis(down));
        }
        let limit = if self.random.bool() { 50 } else { 5_000 };
        self.pass(limit);
        self.set_wall();
        self.bench.start();
    }
}

/// Runs all seeds and fails where shown time is further from real time than `ahead_ms` or `behind_ms`, or is suspect.
fn check(wall: Wall, boots: Boots, ahead_ms: u64, behind_ms: u64) {
    for seed in 0..SEEDS {
        let mut history = History::new(seed, wall, boots);
        for step in 0..STEPS {
            history.step();
            if history.failed {
                continue;
            }
            let status = history.bench.show();
            let (now, real) = (status.now.millis(), history.real_ms);
            let place = format!("seed {seed}, step {step}: shown {now}, real {real}, {status:?}");
            assert!(status.suspect.is_none(), "{place}");
            assert!(now <= real + ahead_ms && now + behind_ms >= real, "{place}");
        }
    }
}

#[test]
fn t34_t13_with_a_true_wall_clock_kills_within_a_boot_leave_at_most_a_tenth_of_a_second() {
    check(Wall::True, Boots::One, SLACK_MS, 0);
}

#[test]
fn t34_t13_with_a_true_wall_clock_reboots_leave_at_most_a_lease() {
    check(Wall::True, Boots::Several, SLACK_MS + LEASE_MS, 0);
}

#[test]
fn t34_t13_time_is_as_wrong_as_the_wall_clock_was_and_no_more() {
    for wrong_ms in [300, 60_000, 1_700_000] {
        for boots in [Boots::One, Boots::Several] {
            check(Wall::Within(wrong_ms), boots, wrong_ms + SLACK_MS + LEASE_MS, wrong_ms);
        }
    }
}

#[test]
fn t13_time_never_goes_back_whatever_the_wall_clock_says_but_by_a_decision() {
    for boots in [Boots::One, Boots::Several] {
        for seed in 0..SEEDS {
            let mut history = History::new(seed, Wall::Wild, boots);
            for _ in 0..STEPS {
                history.step();
            }
        }
    }
}

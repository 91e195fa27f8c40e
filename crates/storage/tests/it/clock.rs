//! The guarded clock, on both stores: T29 (test clock) and T34 (guard), step by step in tables.

use crate::support::{Bench, START, put, run};
use std::time::Duration;
use storage::{CrashMode, Error, Leap, TestClock, Time};

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
const YEAR: u64 = 365 * DAY;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Seconds pass on both clocks.
    Pass(u64),
    /// The wall clock alone moves forward…
    Leap(u64),
    /// …or back.
    Back(u64),
    /// The store is closed and opened again in another boot of the machine after this time.
    Reopen(u64),
    /// The store is closed and opened again within the boot after this time.
    Restart(u64),
    Accept,
    Reject,
    Advance(u64),
}

use Step::{Accept, Advance, Back, Pass, Reject, Reopen, Restart};

/// Performs each step and compares now, trusted (seconds after the start) and the suspicion with the expectation.
fn check(script: &[(Step, u64, u64, Option<Leap>)]) {
    for mut bench in Bench::both() {
        let mut wall = START;
        bench.store().now().unwrap();
        for (number, &(step, now, trusted, suspect)) in script.iter().enumerate() {
            take(&mut bench, step, &mut wall);
            let status = bench.store().clock_status().unwrap();
            let found = (
                status.now.seconds() - START,
                status.trusted.seconds() - START,
                status.suspect.map(|suspicion| suspicion.leap),
            );
            assert_eq!(found, (now, trusted, suspect), "after step {number}, {step:?}");
            let in_job = run(bench.store(), |transaction| {
                Ok((transaction.time(), transaction.trusted_time(), transaction.clock_is_suspect()))
            });
            assert_eq!(in_job, Ok((status.now, status.trusted, status.suspect.is_some())));
        }
    }
}

fn take(bench: &mut Bench, step: Step, wall: &mut u64) {
    let set_wall = |bench: &Bench, wall| bench.clock.set_wall(Time::from_seconds(wall));
    match step {
        Pass(seconds) => {
            *wall += seconds;
            bench.pass(Duration::from_secs(seconds));
        }
        Step::Leap(seconds) => {
            *wall += seconds;
            set_wall(bench, *wall);
        }
        Back(seconds) => {
            *wall -= seconds;
            set_wall(bench, *wall);
        }
        Reopen(seconds) => {
            bench.close();
            *wall += seconds;
            bench.clock.reboot(Duration::from_secs(seconds));
            bench.open().unwrap();
        }
        Restart(seconds) => {
            bench.close();
            *wall += seconds;
            bench.pass(Duration::from_secs(seconds));
            bench.open().unwrap();
        }
        Accept => drop(bench.store().accept_clock().unwrap()),
        Reject => drop(bench.store().reject_clock().unwrap()),
        Advance(seconds) => drop(bench.store().advance_clock(seconds).unwrap()),
    }
}

#[test]
fn t34_a_status_says_how_far_time_is_from_the_wall_clock_apart_from_the_advance_of_a_test_clock() {
    for mut bench in Bench::both() {
        let ahead = |bench: &Bench| bench.store().clock_status().unwrap().ahead_ms;
        let mut wall = START;
        assert_eq!(ahead(&bench), 0);
        // The machine's clock is set back by two seconds: time continues and is ahead.
        take(&mut bench, Back(2), &mut wall);
        assert_eq!(ahead(&bench), 2_000);
        take(&mut bench, Advance(DAY), &mut wall);
        assert_eq!(ahead(&bench), 2_000);
        // Time stays behind a leap that it does not follow.
        take(&mut bench, Step::Leap(2 + 2 * HOUR), &mut wall);
        let status = bench.store().clock_status().unwrap();
        assert_eq!(status.suspect.map(|suspicion| suspicion.leap), Some(Leap::Running));
        assert_eq!(status.ahead_ms, -7_200_000);
    }
}

#[test]
fn t34_after_a_set_back_time_runs_on_at_nine_tenths_of_the_rate() {
    check(&[
        (Pass(100), 100, 100, None),
        (Back(30 * MINUTE), 100, 100, None),
        (Pass(50), 145, 145, None),
        (Restart(10), 154, 154, None),
        (Reopen(10), 154, 154, None),
        (Pass(10), 163, 163, None),
        // The wall clock is put right again.
        (Step::Leap(30 * MINUTE), 180, 180, None),
        (Pass(20), 200, 200, None),
    ]);
}

#[test]
fn t34_a_wall_clock_far_behind_is_suspect_and_slewed_to_once_it_is_accepted() {
    let behind = Some(Leap::Behind);
    check(&[
        (Pass(100), 100, 100, None),
        (Back(YEAR), 100, 100, behind),
        (Pass(50), 150, 150, behind),
        (Restart(10), 160, 160, behind),
        (Reopen(10), 160, 160, behind),
        (Accept, 160, 160, None),
        (Pass(100), 250, 250, None),
        (Restart(100), 340, 340, None),
        (Reopen(100), 340, 340, None),
    ]);
    check(&[
        (Back(YEAR), 0, 0, behind),
        (Reject, 0, 0, None),
        // The wall clock is followed without its error.
        (Pass(100), 100, 100, None),
        (Step::Leap(YEAR), 100, 100, None),
        (Pass(100), 200, 200, None),
    ]);
}

#[test]
fn t34_a_wall_clock_slightly_ahead_is_followed() {
    check(&[
        (Step::Leap(2), 2, 2, None),
        (Pass(10), 12, 12, None),
        (Step::Leap(HOUR), 12 + HOUR, 12 + HOUR, None),
        (Step::Leap(59 * MINUTE), 12 + HOUR + 59 * MINUTE, 12 + HOUR + 59 * MINUTE, None),
    ]);
}

#[test]
fn t34_a_running_leap_is_not_followed_until_it_is_accepted() {
    let running = Some(Leap::Running);
    check(&[
        (Pass(10), 10, 10, None),
        (Step::Leap(2 * HOUR), 10, 10, running),
        (Pass(30), 40, 40, running),
        (Accept, 2 * HOUR + 40, 2 * HOUR + 40, None),
        (Pass(5), 2 * HOUR + 45, 2 * HOUR + 45, None),
        (Accept, 2 * HOUR + 45, 2 * HOUR + 45, None),
    ]);
}

#[test]
fn t34_a_rejected_running_leap_is_forgotten_but_another_is_seen() {
    let running = Some(Leap::Running);
    check(&[
        (Step::Leap(5 * YEAR), 0, 0, running),
        (Pass(30), 30, 30, running),
        (Reject, 30, 30, None),
        (Pass(60), 90, 90, None),
        // The drift of a wall clock that is wrong by a known leap is still followed.
        (Step::Leap(3), 93, 93, None),
        (Step::Leap(2 * HOUR), 93, 93, running),
        (Reject, 93, 93, None),
        (Back(5 * YEAR + 2 * HOUR), 93, 93, None),
        (Pass(10), 103, 103, None),
    ]);
}

#[test]
fn t34_a_leap_that_heals_by_itself_stays_suspect_until_an_operator_decides() {
    let running = Some(Leap::Running);
    check(&[
        (Step::Leap(YEAR), 0, 0, running),
        (Back(YEAR), 0, 0, running),
        (Pass(10), 10, 10, running),
        (Accept, 10, 10, None),
    ]);
}

#[test]
fn t34_a_start_leap_hides_by_the_wall_clock_and_destroys_nothing() {
    let start = Some(Leap::Start);
    let gap = 31 * DAY;
    check(&[
        (Pass(10), 10, 10, None),
        (Reopen(29 * DAY), 29 * DAY + 10, 29 * DAY + 10, None),
        (Reopen(gap), 60 * DAY + 10, 29 * DAY + 10, start),
        (Pass(7), 60 * DAY + 17, 29 * DAY + 17, start),
        (Accept, 60 * DAY + 17, 60 * DAY + 17, None),
        (Reopen(3), 60 * DAY + 20, 60 * DAY + 20, None),
    ]);
}

#[test]
fn t34_rejecting_a_start_leap_falls_back_to_the_trusted_time() {
    let start = Some(Leap::Start);
    check(&[
        (Reopen(YEAR), YEAR, 0, start),
        (Pass(20), YEAR + 20, 20, start),
        (Reject, 20, 20, None),
        (Pass(5), 25, 25, None),
        // The wall clock is put right, and time with it.
        (Back(YEAR), 25, 25, None),
        (Reopen(100), 125, 125, None),
    ]);
}

#[test]
fn t34_a_suspicion_survives_a_restart() {
    let (running, start) = (Some(Leap::Running), Some(Leap::Start));
    check(&[
        (Step::Leap(2 * HOUR), 0, 0, running),
        (Pass(10), 10, 10, running),
        // How long the store was closed is unknown: items stay hidden by the wall clock, which is still suspect.
        (Reopen(5), 2 * HOUR + 15, 10, start),
        (Pass(5), 2 * HOUR + 20, 15, start),
        (Reject, 15, 15, None),
        (Pass(5), 20, 20, None),
    ]);
    check(&[
        (Reopen(YEAR), YEAR, 0, start),
        (Reopen(5), YEAR + 5, 0, start),
        (Pass(1), YEAR + 6, 1, start),
        // The wall clock was put right before this start: the time shown stays until the leap is rejected.
        (Back(YEAR), YEAR + 6, 1, start),
        (Reopen(2 * DAY), YEAR + 6, 1, Some(Leap::Behind)),
        (Reject, 2 * DAY + 6, 2 * DAY + 6, None),
        (Pass(5), 2 * DAY + 11, 2 * DAY + 11, None),
    ]);
}

#[test]
fn t29_the_test_clock_moves_at_once_and_goes_on_ticking() {
    check(&[
        (Advance(YEAR), YEAR, YEAR, None),
        (Pass(10), YEAR + 10, YEAR + 10, None),
        (Advance(5), YEAR + 15, YEAR + 15, None),
        (Advance(0), YEAR + 15, YEAR + 15, None),
        (Reopen(10), YEAR + 25, YEAR + 25, None),
        (Step::Leap(2 * HOUR), YEAR + 25, YEAR + 25, Some(Leap::Running)),
        (Accept, YEAR + 2 * HOUR + 25, YEAR + 2 * HOUR + 25, None),
    ]);
}

#[test]
fn t29_the_test_clock_is_refused_when_the_mode_is_off() {
    for mut bench in Bench::both() {
        bench.options.test_clock = TestClock::Off;
        bench.reopen();
        assert_eq!(bench.store().advance_clock(1), Err(Error::TestClockOff));
        assert_eq!(bench.store().now(), Ok(Time::from_seconds(START)));
        assert_eq!(bench.store().clock_status().unwrap().test_clock, TestClock::Off);
    }
}

#[test]
fn t29_a_stopped_clock_goes_by_nothing_but_what_it_is_moved() {
    for mut bench in Bench::both() {
        bench.options.test_clock = TestClock::Stopped;
        bench.reopen();
        let after = |seconds| Ok(Time::from_seconds(START + seconds));
        put(bench.store(), "a", "1").unwrap();
        for moved in [0, 7] {
            bench.clock.advance(Duration::from_secs(HOUR));
            assert_eq!(bench.store().now(), after(moved));
            bench.store().advance_clock(7).unwrap();
            assert_eq!(bench.store().now(), after(moved + 7));
        }
        bench.reopen();
        assert_eq!(bench.store().now(), after(2 * HOUR + 14), "a start takes the machine's time");
    }
}

#[test]
fn t29_a_store_that_was_advanced_refuses_to_open_without_the_mode() {
    for mut bench in Bench::both() {
        put(bench.store(), "a", "1").unwrap();
        bench.store().advance_clock(7).unwrap();
        bench.close();
        bench.options.test_clock = TestClock::Off;
        assert_eq!(bench.open(), Err(Error::TestClockStore { advanced_ms: 7000 }));
        bench.options.test_clock = TestClock::Runs;
        bench.open().unwrap();
        assert_eq!(bench.store().clock_status().unwrap().advanced_ms, 7000);
    }
}

#[test]
fn t29_the_test_clock_stops_at_the_end_of_the_year_9999() {
    for bench in Bench::both() {
        assert_eq!(bench.store().advance_clock(u64::MAX), Err(Error::TimeOutOfRange));
        assert_eq!(bench.store().advance_clock(1000 * YEAR), Ok(Time::from_seconds(START + 1000 * YEAR)));
        assert_eq!(bench.store().advance_clock(8000 * YEAR), Err(Error::TimeOutOfRange));
    }
}

#[test]
fn t13_no_time_shown_before_a_crash_lies_after_one_shown_behind_it() {
    for seed in 0..200 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut bench = Bench::memory();
        let mut shown = Time::ZERO;
        for _ in 0..40 {
            match random.u8(..10) {
                0..4 => bench.pass(Duration::from_millis(random.u64(..15_000))),
                4 => bench.clock.set_wall(Time::from_millis(START * 1000 + random.u64(..4_000_000))),
                5 => {
                    let mode = if random.bool() { CrashMode::BeforeCommit } else { CrashMode::AfterCommit };
                    bench.disk().crash_after(random.u64(..3), mode);
                }
                6 => {
                    let _ = bench.store().advance_clock(random.u64(..10));
                }
                7 => {
                    if let Ok(time) = run(bench.store(), |transaction| Ok(transaction.time())) {
                        assert!(time >= shown, "seed {seed}");
                        shown = time;
                    }
                }
                _ => {}
            }
            if random.u8(..8) == 0 || bench.store().stats().poisoned {
                bench.crash();
                bench.disk().clear_faults();
                bench.open().unwrap();
            }
            if let Ok(now) = bench.store().now() {
                assert!(now >= shown, "seed {seed}: {now:?} after {shown:?}");
                shown = now;
            }
        }
    }
}

#[test]
fn looking_at_the_clock_costs_one_small_write_a_second_and_none_when_idle() {
    for bench in Bench::both() {
        bench.store().now().unwrap();
        bench.pass(Duration::from_hours(1));
        bench.store().now().unwrap();
        let before = bench.store().stats().commits;
        assert_eq!(before, 2);
        for _ in 0..1000 {
            bench.pass(Duration::from_millis(100));
            bench.store().now().unwrap();
        }
        bench.store().accept_clock().unwrap();
        let commits = bench.store().stats().commits - before;
        assert!((40..=101).contains(&commits), "{commits} commits in 100 seconds");
    }
}

#[test]
fn a_clean_close_keeps_the_exact_time() {
    for mut bench in Bench::both() {
        bench.store().now().unwrap();
        bench.pass(Duration::from_millis(1234));
        let before = bench.store().now().unwrap();
        bench.reopen();
        assert_eq!(bench.store().now(), Ok(before));
    }
}

/// T34, T13: items that had expired by trusted time before a crash must not be living by it afterwards.
#[test]
fn t34_trusted_time_does_not_fall_over_a_crash_while_the_clock_is_suspect() {
    let mut bench = Bench::memory();
    bench.store().now().unwrap();
    bench.clock.set_wall(Time::from_seconds(START + 2 * HOUR));
    assert!(bench.store().clock_status().unwrap().suspect.is_some());
    for millis in [200, 3_800, 4_500, 900, 7_000] {
        bench.pass(Duration::from_millis(millis));
        let before = bench.store().clock_status().unwrap().trusted;
        bench.crash();
        bench.open().unwrap();
        assert!(bench.store().clock_status().unwrap().trusted >= before, "after {millis} ms");
    }
    let before = bench.store().clock_status().unwrap().trusted;
    assert!(bench.store().reject_clock().unwrap().now >= before);
}

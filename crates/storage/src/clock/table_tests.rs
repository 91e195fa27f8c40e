//! The table of cases: one test for each row of T34's cases, on the clock alone.
//!
//! The bench is a machine, a clock and the record that a disk would hold. Every time shown passes through
//! [`Bench::show`], which fails if time goes back.

use super::*;
use std::time::Duration;

/// Raw milliseconds at which every machine starts.
pub(super) const START_MS: u64 = 1_800_000_000_000;
const SECOND: u64 = 1_000;
const HOUR: u64 = 3_600 * SECOND;
const DAY: u64 = 24 * HOUR;

pub(super) struct Bench {
    pub(super) machine: Arc<ManualClock>,
    pub(super) options: ClockOptions,
    clock: Option<Clock>,
    durable: Option<ClockRecord>,
    pub(super) commits: u64,
    last: Time,
}

impl Bench {
    pub(super) fn new() -> Self {
        let machine = Arc::new(ManualClock::new(Time::from_millis(START_MS)));
        let options = ClockOptions::new(machine.clone());
        let mut bench = Self { machine, options, clock: None, durable: None, commits: 0, last: Time::ZERO };
        bench.start();
        bench
    }

    fn clock(&self) -> &Clock {
        self.clock.as_ref().expect("the store is open")
    }

    pub(super) fn start(&mut self) {
        self.clock = Some(Clock::start(self.durable, self.options.clone()).unwrap());
    }

    /// Kills the process.
    pub(super) fn kill(&mut self) {
        self.clock = None;
    }

    pub(super) fn stop(&mut self) {
        self.command(Command::Close);
        self.clock = None;
    }

    pub(super) fn command(&mut self, command: Command) {
        let mut record = self.durable.unwrap_or_default();
        let turn = self.clock().prepare(command, &mut record).unwrap();
        self.clock().publish(record, turn);
        self.commits += u64::from(self.durable != Some(record));
        self.durable = Some(record);
    }

    /// The operator accepts the wall clock. Time may fall because of it, but not behind the trusted time.
    pub(super) fn accept(&mut self) {
        let trusted = self.show().trusted;
        self.command(Command::Accept);
        self.last = trusted;
    }

    /// Commits a transaction. If that fails, its record may be kept all the same.
    pub(super) fn commit(&mut self, ends: Commit) -> Time {
        let mut record = self.durable.unwrap_or_default();
        let now = self.clock().assign(&mut record).now;
        if ends != Commit::FailsAndIsLost {
            self.durable = Some(record);
        }
        if ends == Commit::Succeeds {
            self.clock().publish(record, None);
            self.shown(now);
        }
        now
    }

    /// Returns the status that a request sees.
    pub(super) fn show(&mut self) -> ClockStatus {
        let mut renewed = Renewed::No;
        loop {
            match self.clock().look(renewed) {
                ClockReading::Shown { status, renew } => {
                    if renew {
                        self.command(Command::Renew);
                    }
                    self.shown(status.now);
                    return status;
                }
                ClockReading::Beyond => self.command(Command::Renew),
            }
            renewed = Renewed::Yes;
        }
    }

    fn shown(&mut self, now: Time) {
        assert!(now >= self.last, "time went back from {:?} to {now:?}", self.last);
        self.last = now;
    }

    /// Returns the time shown, in milliseconds after the start.
    pub(super) fn now(&mut self) -> u64 {
        self.show().now.millis() - START_MS
    }

    fn ahead(&mut self) -> i64 {
        self.show().ahead_ms
    }

    fn leap(&mut self) -> Option<Leap> {
        self.show().suspect.map(|suspicion| suspicion.leap)
    }

    pub(super) fn pass(&self, ms: u64) {
        self.machine.advance(Duration::from_millis(ms));
    }

    /// Steps the wall clock alone.
    pub(super) fn step(&self, ms: i64) {
        let wall = self.machine.wall();
        let distance = ms.unsigned_abs();
        let stepped = if ms < 0 { wall.minus_millis(distance) } else { wall.plus_millis(distance) };
        self.machine.set_wall(stepped);
    }

    /// Runs for `ms`, reading the clock ten times a second.
    fn run(&mut self, ms: u64) {
        for _ in 0..ms / 100 {
            self.pass(100);
            self.show();
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Commit {
    Succeeds,
    FailsAndIsLost,
    FailsAndIsKept,
}

#[test]
fn t34_t13_kill_within_a_boot_goes_on_with_an_offset_of_at_most_a_tenth_of_a_second() {
    let mut bench = Bench::new();
    for round in 0..200 {
        bench.run(100 * (round % 7));
        bench.show();
        bench.kill();
        bench.pass(round % 50);
        bench.start();
        let ahead = bench.ahead();
        assert!((0..=100).contains(&ahead), "round {round}: ahead by {ahead}");
        assert_eq!(bench.leap(), None);
    }
    bench.run(SECOND);
    assert_eq!(bench.ahead(), 0, "it heals");
}

#[test]
fn t34_kill_within_a_boot_and_a_long_pause_is_no_leap() {
    let mut bench = Bench::new();
    bench.run(5 * SECOND);
    bench.kill();
    // More than max-clock-jump, but boot time confirms it.
    bench.pass(3 * DAY);
    bench.start();
    assert_eq!((bench.now(), bench.leap()), (5 * SECOND + 3 * DAY, None));
}

#[test]
fn t34_kill_within_a_boot_follows_a_wall_clock_that_stepped_by_up_to_max_clock_jump() {
    for (step, expected, leap) in
        [(HOUR, HOUR, None), (HOUR + 1, 0, Some(Leap::Running)), (31 * DAY, 31 * DAY, Some(Leap::Start))]
    {
        let mut bench = Bench::new();
        bench.run(5 * SECOND);
        bench.kill();
        bench.pass(10 * SECOND);
        bench.step(step as i64);
        bench.start();
        assert_eq!((bench.now(), bench.leap()), (15 * SECOND + expected, leap), "a step of {step} ms");
    }
}

#[test]
fn t34_clean_stop_within_a_boot_goes_on_from_the_last_time_shown_and_the_time_since() {
    let mut bench = Bench::new();
    bench.run(5 * SECOND);
    bench.stop();
    bench.pass(2 * HOUR);
    bench.start();
    assert_eq!((bench.now(), bench.ahead(), bench.leap()), (5 * SECOND + 2 * HOUR, 0, None));
    // The wall clock, set back by half an hour meanwhile, makes no difference.
    bench.stop();
    bench.pass(SECOND);
    bench.step(-(HOUR as i64) / 2);
    bench.start();
    let status = bench.show();
    assert_eq!(status.now.millis() - START_MS, 5 * SECOND + 2 * HOUR + 900, "nine tenths of the second");
    assert!(status.slewing && status.suspect.is_none());
}

#[test]
fn t34_t13_after_a_reboot_time_goes_on_from_the_wall_clock_or_the_bound() {
    for down in [0, 500, 1_999, 2_000, 60 * SECOND, 29 * DAY] {
        let mut bench = Bench::new();
        bench.run(10 * SECOND);
        bench.kill();
        bench.machine.reboot(Duration::from_millis(down));
        bench.start();
        let ahead = bench.ahead();
        assert!((0..=LEASE_MS as i64).contains(&ahead), "down for {down}: ahead by {ahead}");
        assert_eq!(bench.leap(), None);
        bench.run(20 * SECOND);
        assert_eq!(bench.ahead(), 0, "down for {down}: it heals in ten times the offset");
    }
}

#[test]
fn t34_t13_without_a_boot_id_or_with_a_smaller_boot_time_a_start_is_one_in_another_boot() {
    let restarts: [fn(&ManualClock); 3] = [
        |machine| machine.set_boot(None, machine.boot_time()),
        // A snapshot of the machine's memory, taken before the record was written.
        |machine| machine.set_boot(machine.boot_id(), Duration::ZERO),
        // Another machine, or the same one in a time namespace of its own.
        |machine| machine.set_boot(BootId::new([7; 16]), machine.boot_time()),
    ];
    for (number, restart) in restarts.into_iter().enumerate() {
        let mut bench = Bench::new();
        bench.run(10 * SECOND);
        let bound = bench.durable.unwrap().bound;
        bench.kill();
        restart(&bench.machine);
        bench.start();
        assert_eq!(bench.show().now, bound, "restart {number}");
        // And back again: the times shown by the other machine count.
        bench.kill();
        bench.start();
        bench.show();
    }
}

#[test]
fn t34_a_restored_backup_goes_on_from_its_time_or_the_wall_clock() {
    let mut bench = Bench::new();
    bench.run(10 * SECOND);
    let now = bench.show().now;
    bench.kill();
    bench.durable = Some(ClockRecord { bound: now, ..ClockRecord::default() });
    bench.step(-(60 * SECOND as i64));
    bench.start();
    assert_eq!(bench.show().now, now);
}

#[test]
fn t34_a_machine_restored_from_its_memory_follows_the_wall_clock_once_it_is_right() {
    for (pause, leap) in [(HOUR, None), (HOUR + SECOND, Some(Leap::Running))] {
        let mut bench = Bench::new();
        bench.run(10 * SECOND);
        bench.kill();
        // Restored later: id, boot time and wall clock are those of the snapshot.
        bench.start();
        let before = bench.now();
        bench.step(pause as i64);
        assert_eq!(bench.leap(), leap);
        let followed = if leap.is_none() { 10 * SECOND + pause } else { before };
        assert_eq!(bench.now(), followed);
    }
}

#[test]
fn t34_a_suspended_laptop_is_no_leap() {
    let mut bench = Bench::new();
    bench.run(SECOND);
    // Boot time counts it.
    bench.pass(10 * DAY);
    assert_eq!((bench.now(), bench.ahead(), bench.leap()), (SECOND + 10 * DAY, 0, None));
}

#[test]
fn t34_a_paused_virtual_machine_follows_up_to_max_clock_jump_and_is_suspect_beyond() {
    for (pause, leap) in [(HOUR, None), (HOUR + 1, Some(Leap::Running))] {
        let mut bench = Bench::new();
        bench.run(SECOND);
        bench.step(pause as i64);
        assert_eq!(bench.leap(), leap);
        let expected = if leap.is_none() { SECOND + pause } else { SECOND };
        assert_eq!(bench.now(), expected);
        bench.command(Command::Accept);
        assert_eq!((bench.now(), bench.leap()), (SECOND + pause, None), "accepted");
    }
}

#[test]
fn t34_time_goes_on_while_a_renewal_is_written() {
    let mut bench = Bench::new();
    bench.run(SECOND);
    let (before, mut record) = (bench.now(), bench.durable.unwrap_or_default());
    bench.clock().prepare(Command::Renew, &mut record).unwrap();
    bench.pass(100);
    assert_eq!(bench.now(), before + 100);
}

#[test]
fn t34_accepting_a_wall_clock_that_was_repaired_destroys_nothing_by_the_leap() {
    for reboots in [false, true] {
        let mut bench = Bench::new();
        bench.run(SECOND);
        let known = bench.now();
        // A start finds the wall clock years ahead; it is repaired, and the server started again.
        bench.kill();
        bench.step(100 * 365 * DAY as i64);
        bench.start();
        assert_eq!(bench.leap(), Some(Leap::Start));
        assert!(bench.show().trusted.millis() - START_MS < known + HOUR);
        bench.kill();
        bench.step(-(100 * 365 * DAY as i64));
        if reboots {
            bench.machine.reboot(Duration::ZERO);
        }
        bench.start();
        assert!(bench.leap().is_some());
        bench.accept();
        let status = bench.show();
        assert_eq!((status.suspect, status.trusted), (None, status.now));
        assert!(status.ahead_ms.unsigned_abs() <= 2 * LEASE_MS + SLACK_MS, "{}", status.ahead_ms);
    }
}

#[test]
fn t34_an_offset_within_a_lease_heals_and_time_does_not_stand_still() {
    let mut bench = Bench::new();
    bench.run(SECOND);
    bench.step(-(LEASE_MS as i64));
    let before = bench.now();
    bench.pass(SECOND);
    assert_eq!(bench.now(), before + 900);
    bench.run(19 * SECOND);
    assert_eq!((bench.ahead(), bench.leap()), (0, None));
}

#[test]
fn t34_an_offset_up_to_max_clock_jump_heals_at_nine_tenths_and_is_told_meanwhile() {
    let mut bench = Bench::new();
    bench.run(SECOND);
    // An hour ahead for ten seconds, and back.
    bench.step(HOUR as i64);
    bench.run(10 * SECOND);
    bench.step(-(HOUR as i64));
    let status = bench.show();
    assert_eq!((status.ahead_ms, status.slewing, status.suspect), (HOUR as i64, true, None));
    let before = bench.now();
    for minutes in 1..=600 {
        bench.pass(60 * SECOND);
        let status = bench.show();
        assert_eq!(status.now.millis() - START_MS, before + minutes * 54 * SECOND);
        assert_eq!(status.ahead_ms, (HOUR - minutes * 6 * SECOND) as i64);
        assert_eq!(status.slewing, minutes < 600, "after {minutes} minutes");
    }
    bench.pass(60 * SECOND);
    assert_eq!(bench.ahead(), 0, "and then it runs with the wall clock");
}

#[test]
fn t34_a_wall_clock_further_behind_is_suspect_and_time_runs_at_full_rate_until_it_is_accepted() {
    let mut bench = Bench::new();
    bench.run(SECOND);
    bench.step(-(HOUR as i64) - 1);
    assert_eq!(bench.leap(), Some(Leap::Behind));
    let before = bench.now();
    bench.pass(10 * SECOND);
    assert_eq!(bench.now(), before + 10 * SECOND);
    // A kill and a reboot do not end it.
    bench.kill();
    bench.start();
    assert_eq!(bench.leap(), Some(Leap::Behind));
    bench.kill();
    bench.machine.reboot(Duration::ZERO);
    bench.start();
    assert_eq!(bench.leap(), Some(Leap::Behind));
    bench.command(Command::Accept);
    let before = bench.now();
    bench.pass(10 * SECOND);
    let status = bench.show();
    assert_eq!((status.now.millis() - START_MS, status.suspect), (before + 9 * SECOND, None));
    assert!(status.slewing);
    // What was accepted stays accepted, over a kill and over a reboot.
    bench.kill();
    bench.start();
    assert_eq!(bench.leap(), None);
    bench.kill();
    bench.machine.reboot(Duration::ZERO);
    bench.start();
    assert_eq!(bench.leap(), None);
    // But not a wall clock that falls behind by as much once more.
    bench.step(-(HOUR as i64) - 3_000);
    assert_eq!(bench.leap(), Some(Leap::Behind));
}

/// The reboot corrects the wall clock: the suspicion stays, with the reason it had and not one of the start.
#[test]
fn t34_a_suspicion_keeps_its_reason_over_a_reboot_that_puts_the_wall_clock_right() {
    let distance = 2 * HOUR as i64;
    for (step, leap, reason) in [
        (-distance, Leap::Behind, "the system clock was far behind the time shown"),
        (distance, Leap::Running, "while the server ran, the system clock leapt ahead"),
    ] {
        // Below a lease time goes on from the bound, ahead of the wall clock.
        for (down, now) in [(20 * SECOND, "agrees with"), (0, "is 1.5 s behind")] {
            let mut bench = Bench::new();
            bench.show();
            bench.step(step);
            assert_eq!(bench.leap(), Some(leap));
            bench.pass(500);
            bench.kill();
            bench.machine.reboot(Duration::from_millis(down));
            bench.step(-step);
            bench.start();
            assert_eq!(bench.leap(), Some(leap), "down for {down}");
            let expected = format!("{reason}, and it {now} the time shown now");
            assert_eq!(bench.show().suspicion(), Some(expected));
            bench.accept();
            assert_eq!(bench.leap(), None);
        }
    }
}

#[test]
fn t34_a_running_leap_that_is_still_there_after_a_reboot_is_one_of_the_start() {
    let mut bench = Bench::new();
    bench.run(SECOND);
    bench.step(2 * HOUR as i64);
    assert_eq!(bench.leap(), Some(Leap::Running));
    bench.kill();
    bench.machine.reboot(Duration::ZERO);
    bench.start();
    let status = bench.show();
    assert_eq!(status.suspect.map(|suspicion| suspicion.leap), Some(Leap::Start));
    assert_eq!(
        status.suspicion().as_deref(),
        Some("at its start the server found the system clock 1 h 59 m ahead")
    );
    assert!(status.now.millis_since(status.trusted) > HOUR, "hidden by it, and nothing is destroyed by it");
}

#[test]
fn t34_a_rejected_wall_clock_that_is_behind_is_followed_without_its_offset() {
    let mut bench = Bench::new();
    bench.run(SECOND);
    bench.step(-(DAY as i64));
    assert_eq!(bench.leap(), Some(Leap::Behind));
    bench.command(Command::Reject);
    assert_eq!((bench.now(), bench.leap()), (SECOND, None));
    bench.pass(10 * SECOND);
    let status = bench.show();
    assert_eq!((status.now.millis() - START_MS, status.slewing), (11 * SECOND, false));
    // The clock is put right: time is not set back, and nothing leaps.
    bench.step(DAY as i64);
    assert_eq!((bench.now(), bench.leap()), (11 * SECOND, None));
}

#[test]
fn t34_a_start_in_another_boot_far_ahead_hides_by_the_wall_clock_and_destroys_nothing() {
    let mut bench = Bench::new();
    bench.run(10 * SECOND);
    bench.stop();
    bench.machine.reboot(Duration::from_millis(31 * DAY));
    bench.start();
    let status = bench.show();
    assert_eq!(status.suspect.map(|suspicion| suspicion.leap), Some(Leap::Start));
    let seconds = |time: Time| time.seconds() - START_MS / 1000;
    assert_eq!((seconds(status.now), seconds(status.trusted)), (31 * DAY / 1000 + 10, 10));
}

#[test]
fn t29_t34_a_running_test_clock_slews_in_raw_time_and_a_stopped_one_never() {
    for (test_clock, passed) in [(TestClock::Runs, 9 * SECOND), (TestClock::Stopped, 0)] {
        let mut bench = Bench::new();
        bench.options.test_clock = test_clock;
        bench.show();
        bench.stop();
        bench.start();
        bench.command(Command::Advance { seconds: DAY / 1000 });
        bench.step(-(60 * SECOND as i64));
        let before = bench.now();
        assert!(before >= DAY);
        bench.pass(10 * SECOND);
        let status = bench.show();
        assert_eq!(status.now.millis() - START_MS, before + passed, "{test_clock:?}");
        assert_eq!(status.slewing, test_clock == TestClock::Runs);
        // A kill within the boot adds no offset to either.
        bench.kill();
        bench.start();
        let restarted = bench.now();
        assert!(restarted <= before + 10 * SECOND + SLACK_MS, "{test_clock:?}: {restarted}");
    }
}

#[test]
fn t34_a_forward_step_is_durable_before_it_is_shown() {
    let mut bench = Bench::new();
    bench.run(500);
    let commits = bench.commits;
    bench.step(90);
    bench.show();
    assert_eq!(bench.commits, commits, "a small step fits into the slack");
    bench.step(5_000);
    assert!(matches!(bench.clock().look(Renewed::No), ClockReading::Beyond));
    assert_eq!((bench.now(), bench.commits), (5_590, commits + 1));
}

/// The counterexample to "anchor plus boot time since": the record at boot time 100 shows T with a bound of T+10; at 103 the
/// wall clock steps by 5 and T+8 is shown within the bound, without a commit; a start at 104 would show T+4.
#[test]
fn t13_a_step_within_the_bound_is_not_undone_by_a_crash_as_the_line_alone_would() {
    // The times that the obvious repair shows, before the crash and after it, with a lease of ten seconds.
    let (line, bound, wall) = (100, 110, |boot: u64| if boot < 103 { boot } else { boot + 5 });
    let shown = wall(103).min(bound);
    let restarted = line + (104 - 100);
    assert!(restarted < shown, "the obvious repair goes back: {restarted} after {shown}");
    // The same steps on this clock, at each distance from the renewal; the bench fails if time goes back.
    for renewed in 0..20 {
        let mut bench = Bench::new();
        bench.run(100 * renewed);
        bench.step(800);
        let before = bench.now();
        bench.kill();
        bench.pass(10);
        // The wall clock is put right before the start.
        bench.step(-800);
        bench.start();
        assert!(bench.now() >= before);
    }
}

#[test]
fn t13_after_a_commit_of_unknown_outcome_time_stays_until_the_store_is_opened_again() {
    for ends in [Commit::FailsAndIsLost, Commit::FailsAndIsKept] {
        let mut bench = Bench::new();
        bench.run(5 * SECOND);
        bench.pass(200);
        let failed = bench.commit(ends);
        for _ in 0..5 {
            bench.pass(SECOND);
            match bench.clock().look(Renewed::No) {
                ClockReading::Shown { status, .. } => assert_eq!(status.now, failed),
                ClockReading::Beyond => panic!("{ends:?}: the time of the commit was within the lease"),
            }
        }
        bench.kill();
        bench.start();
        let ahead = bench.ahead();
        assert!((0..=100).contains(&ahead), "{ends:?}: ahead by {ahead}");
    }
}

#[test]
fn t34_a_slow_disk_delays_a_look_and_does_not_keep_it_for_ever() {
    let mut bench = Bench::new();
    bench.show();
    bench.pass(60 * SECOND);
    assert!(matches!(bench.clock().look(Renewed::No), ClockReading::Beyond));
    let mut record = bench.durable.unwrap();
    bench.clock().prepare(Command::Renew, &mut record).unwrap();
    // The commit takes longer than a lease.
    bench.pass(5 * SECOND);
    bench.clock().publish(record, None);
    bench.durable = Some(record);
    assert!(matches!(bench.clock().look(Renewed::No), ClockReading::Beyond));
    let ClockReading::Shown { status, .. } = bench.clock().look(Renewed::Yes) else {
        panic!("it was renewed")
    };
    assert_eq!(status.now, Time::from_millis(START_MS + 60 * SECOND + LEASE_MS));
}

//! The pace against an arithmetic model of a machine: a number of items expires each second, removing one takes a
//! given time of the writer, and users leave a given share of it and of the processors.

use std::collections::VecDeque;
use std::time::Duration;

use super::ConcurrentUse;
use super::pace::{Backlog, Observation, Pace, PaceStatus};

/// The share of the writer's time that an old backlog is granted.
const SHARE: f64 = 0.25;
/// The writer's time for a transaction besides its items.
const TRANSACTION_SECONDS: f64 = 50e-6;
/// The writer's time for a group of users' writes.
const GROUP_SECONDS: f64 = 500e-6;
/// As in the server's loop.
const LOOK_SECONDS: f64 = 0.25;

#[derive(Debug, Clone, Copy)]
struct Machine {
    /// Items that expire in a second,
    expiring: f64,
    /// in batches that are this many seconds apart.
    apart: u64,
    /// Items that have expired before the first second.
    expired_at_first: f64,
    /// The writer's time for an item, in seconds.
    cost: f64,
    /// The share of the writer's time that users take.
    writing: f64,
    /// Processors that users leave; preparing and compaction take one and a half times what the writer takes.
    processors: f64,
}

/// The result of the second half.
#[derive(Debug, Default)]
struct Outcome {
    backlog: f64,
    age: f64,
    /// The share of the writer's time that the purge took.
    share: f64,
    /// The longest writer's time of a slice.
    slice: f64,
    /// Items that wait at the end.
    left: f64,
    status: PaceStatus,
}

/// Runs the loop of the server for this many seconds.
fn run(machine: Machine, seconds: f64) -> Outcome {
    let (mut pace, mut outcome) = (Pace::new(SHARE), Outcome::default());
    let mut waiting = VecDeque::from([(0.0, machine.expired_at_first)]);
    let (mut now, mut next_due, mut worked) = (0.0_f64, 0.0, 0.0);
    let present = Observation { concurrent_use: ConcurrentUse::Present, ..Observation::default() };
    let mut slice = pace.next(&present);
    while now < seconds {
        let removed = remove(&mut waiting, slice.items as f64);
        let work = if removed > 0.0 { TRANSACTION_SECONDS + removed * machine.cost } else { 0.0 };
        // It waits for a group of users' writes in progress.
        let took = work + machine.writing * GROUP_SECONDS;
        let pause = slice.pause(Duration::from_secs_f64(took)).as_secs_f64();
        let is_drained = backlog(&waiting) == 0.0;
        let elapsed =
            if is_drained { (now.floor() + 1.0 - now).max(0.001) } else { (took + pause).max(0.0001) };
        for second in (now.floor() as u64 + 1)..=((now + elapsed).floor() as u64) {
            if second % machine.apart == 0 {
                waiting.push_back((second as f64, machine.expiring * machine.apart as f64));
            }
        }
        now += elapsed;
        let age = waiting.front().map_or(0.0, |(since, _)| now - since);
        let looked = (now >= next_due)
            .then(|| Backlog { items: backlog(&waiting) as u64, age: Duration::from_secs_f64(age) });
        next_due = if looked.is_some() { now + LOOK_SECONDS } else { next_due };
        let busy = 1.5 * work / elapsed;
        slice = pace.next(&Observation {
            elapsed: Duration::from_secs_f64(elapsed),
            concurrent_use: ConcurrentUse::Present,
            purged_items: removed as u64,
            background_items: removed as u64,
            purging: Duration::from_secs_f64(work),
            writing: Duration::from_secs_f64(machine.writing * elapsed),
            merging_lags: false,
            idle_processors: looked.map(|_| (machine.processors - busy).max(0.0)),
            backlog: looked,
        });
        if now >= seconds / 2.0 {
            worked += work;
            outcome.backlog = outcome.backlog.max(backlog(&waiting));
            outcome.age = outcome.age.max(age);
            outcome.slice = outcome.slice.max(work);
        }
    }
    outcome.share = worked / (seconds / 2.0);
    (outcome.left, outcome.status) = (backlog(&waiting), pace.status());
    outcome
}

fn backlog(waiting: &VecDeque<(f64, f64)>) -> f64 {
    waiting.iter().map(|(_, items)| items).sum()
}

/// Removes the oldest items. Returns how many.
fn remove(waiting: &mut VecDeque<(f64, f64)>, limit: f64) -> f64 {
    let mut left = limit;
    while let Some((_, items)) = waiting.front_mut() {
        let removed = items.min(left);
        *items -= removed;
        left -= removed;
        if *items > 0.0 {
            break;
        }
        waiting.pop_front();
    }
    limit - left
}

/// The load that a user measured: 4,400 inserts a second with a ttl of 20 seconds.
const STEADY: Machine =
    Machine { expiring: 4400.0, apart: 1, expired_at_first: 0.0, cost: 25e-6, writing: 0.7, processors: 0.6 };

#[test]
fn t20_the_backlog_is_bounded_under_steady_load() {
    for (machine, why) in [
        (STEADY, "some capacity is left"),
        (Machine { processors: 0.0, ..STEADY }, "no processor is idle"),
        (Machine { writing: 0.9, processors: 0.0, ..STEADY }, "nothing is left at all"),
        (Machine { expired_at_first: 200_000.0, ..STEADY }, "it begins with a backlog"),
        (Machine { writing: 0.0, processors: 0.0, ..STEADY }, "users only read"),
        (Machine { expiring: 40.0, cost: 1e-3, ..STEADY }, "few large items"),
    ] {
        let outcome = run(machine, 120.0);
        assert!(outcome.age <= 10.0, "{why}: {outcome:?}");
        assert!(outcome.backlog <= 10.0 * machine.expiring, "{why}: {outcome:?}");
        assert!(!outcome.status.is_capacity_short, "{why}: {outcome:?}");
    }
}

#[test]
fn t20_users_give_up_no_more_than_the_share_that_was_granted() {
    // Items so costly that they would need more than half of the writer's time.
    let dear = Machine { cost: 120e-6, writing: 0.9, processors: 0.0, ..STEADY };
    let outcome = run(dear, 240.0);
    assert!((0.15..=SHARE + 0.02).contains(&outcome.share), "{outcome:?}");
    let PaceStatus { expiring_per_second, purging_per_second, drained_in_seconds, is_capacity_short } =
        outcome.status;
    assert!(is_capacity_short && drained_in_seconds.is_none(), "{outcome:?}");
    assert!((4000..=4800).contains(&expiring_per_second), "{outcome:?}");
    assert!((1000..=2200).contains(&purging_per_second), "{outcome:?}");
}

#[test]
fn t20_a_storm_is_removed_gently_while_users_are_there_and_says_when_it_is_over() {
    let storm = Machine { expiring: 0.0, expired_at_first: 3e6, processors: 0.4, ..STEADY };
    for (machine, items) in
        [(storm, 3e6), (Machine { writing: 0.1, processors: 2.0, ..storm }, 3e6), (storm, 300_000.0)]
    {
        let machine = Machine { expired_at_first: items, ..machine };
        let outcome = run(machine, 60.0);
        // Within half an hour, and 400 a second at least.
        let rate = (items / 1800.0).max(400.0);
        let share = rate * (machine.cost + TRANSACTION_SECONDS / 8.0);
        assert!((0.5 * share..=1.2 * share).contains(&outcome.share), "{machine:?}: {outcome:?}, {share}");
        assert!(!outcome.status.is_capacity_short, "{machine:?}: {outcome:?}");
        let left = outcome.status.drained_in_seconds.expect("it shrinks") as f64;
        assert!((0.5..=1.5).contains(&(left * rate / items)), "{machine:?}: {outcome:?}");
    }
}

#[test]
fn t20_a_storm_is_over_after_half_an_hour_although_users_never_pause() {
    let storm = Machine { expiring: 0.0, expired_at_first: 1.5e6, writing: 0.3, processors: 1.0, ..STEADY };
    let half = run(storm, 900.0);
    let left = half.status.drained_in_seconds.expect("it shrinks");
    assert!((700..=1100).contains(&left), "{half:?}");
    assert!(run(storm, 1900.0).left < 1.0);
}

#[test]
fn t20_what_expires_in_batches_again_and_again_is_a_stream() {
    for (apart, seconds) in [(3, 240.0), (5, 240.0), (10, 480.0), (60, 2400.0)] {
        let machine = Machine { expiring: 1000.0, apart, cost: 100e-6, ..STEADY };
        let outcome = run(machine, seconds);
        assert!(outcome.age <= 10.0 + apart as f64, "{apart} s apart: {outcome:?}");
        assert!(outcome.backlog <= 2.0 * 1000.0 * (10.0 + apart as f64), "{apart} s apart: {outcome:?}");
        assert!(!outcome.status.is_capacity_short, "{apart} s apart: {outcome:?}");
    }
}

#[test]
fn t20_a_slice_beside_users_is_short_whatever_an_item_costs() {
    let mut random = fastrand::Rng::with_seed(11);
    for _ in 0..60 {
        let machine = Machine {
            expiring: random.f64() * 20_000.0,
            apart: 1,
            expired_at_first: random.f64() * 500_000.0,
            cost: 5e-6 * 50_f64.powf(random.f64()),
            writing: random.f64(),
            processors: random.f64() * 4.0,
        };
        let outcome = run(machine, 20.0);
        // Eight items are the minimum, and the estimate may lag a little.
        let most = (800e-6_f64).max(8.0 * machine.cost) + 2.0 * TRANSACTION_SECONDS;
        assert!(outcome.slice <= most, "{machine:?}: {outcome:?}");
        let spare = 0.5 * (1.0 - machine.writing).min(machine.processors);
        assert!(outcome.share <= spare.max(SHARE) + 0.05, "{machine:?}: {outcome:?}");
    }
}

#[test]
fn t20_merging_that_lags_leaves_nothing_but_what_is_granted() {
    let seen = Observation {
        elapsed: Duration::from_secs(10),
        concurrent_use: ConcurrentUse::Present,
        purged_items: 1000,
        background_items: 1000,
        purging: Duration::from_millis(25),
        idle_processors: Some(4.0),
        backlog: Some(Backlog { items: 1_000_000, age: Duration::from_secs(1) }),
        ..Observation::default()
    };
    let rate = |merging_lags| {
        let mut pace = Pace::new(SHARE);
        // A stream, not a storm.
        for second in 1..=20 {
            let backlog = Backlog { items: second * 100_000, age: Duration::from_secs(1) };
            pace.next(&Observation { merging_lags, backlog: Some(backlog), ..seen });
        }
        let (elapsed, concurrent_use) = (Duration::from_millis(2), ConcurrentUse::Present);
        let slice =
            pace.next(&Observation { elapsed, concurrent_use, merging_lags, ..Observation::default() });
        slice.items as f64 / slice.pause(Duration::ZERO).as_secs_f64()
    };
    // A twentieth of the writer's time at 25 us an item.
    assert!((1000.0..=3000.0).contains(&rate(true)), "{}", rate(true));
    assert!(rate(false) > 5000.0, "{}", rate(false));
}

#[test]
fn t20_the_price_of_an_item_is_learned_from_background_work_alone() {
    let mut pace = Pace::new(SHARE);
    // A retention promise has removed many items, in the time of the others.
    let urgent = Observation {
        elapsed: Duration::from_secs(10),
        concurrent_use: ConcurrentUse::Present,
        purged_items: 100_000,
        writing: Duration::from_secs(5),
        backlog: Some(Backlog { items: 1_000_000, age: Duration::from_secs(10) }),
        ..Observation::default()
    };
    let slice = pace.next(&urgent);
    assert!(slice.items <= 8, "{slice:?}");
}

#[test]
fn t20_slices_grow_with_each_pause_without_users_and_the_first_request_ends_that() {
    let mut pace = Pace::new(SHARE);
    let ms = Duration::from_millis;
    let mut next = |concurrent_use| {
        pace.next(&Observation { concurrent_use, elapsed: ms(10), ..Observation::default() })
    };
    let with_users = next(ConcurrentUse::Present);
    assert!(with_users.items == 8 && with_users.pause(ms(1)) >= ms(1), "{with_users:?}");
    for pause in 1..5 {
        let moment = next(ConcurrentUse::Absent);
        assert_eq!(moment.items, 8, "no request came for {pause} pauses of 10 ms");
    }
    assert_eq!(next(ConcurrentUse::Present).items, 8);
    assert!((1..5).all(|_| next(ConcurrentUse::Absent).items == 8), "each request restarts the count");
    let growing = next(ConcurrentUse::Absent);
    assert_eq!(growing.items, 256);
    for (took, pause) in [(0, 5), (4, 36), (50, 100)] {
        assert_eq!(growing.pause(ms(took)), ms(pause));
    }
    for _ in 0..3 {
        let alone = next(ConcurrentUse::Absent);
        assert_eq!((alone.items, alone.pause(ms(200))), (4096, ms(1)));
    }
    assert_eq!(next(ConcurrentUse::Present), with_users);
}

/// A backlog as the server's loop sees it, measured four times a second, and the measurements at which capacity was
/// reported short.
#[derive(Default)]
struct Seen {
    items: u64,
    short_looks: u64,
}

impl Seen {
    /// Runs this many seconds in which `expiring` items expire and `purging` are removed per second.
    fn watch(&mut self, pace: &mut Pace, seconds: u64, expiring: u64, purging: u64) {
        for quarter in 0..seconds * 4 {
            let purged_items = if quarter % 4 == 0 { purging.min(self.items) } else { 0 };
            self.items += if quarter % 4 == 0 { expiring } else { 0 };
            self.items -= purged_items;
            let age = Duration::from_secs(if self.items > 0 { 10 } else { 0 });
            pace.next(&Observation {
                elapsed: Duration::from_millis(250),
                concurrent_use: ConcurrentUse::Present,
                purged_items,
                backlog: Some(Backlog { items: self.items, age }),
                ..Observation::default()
            });
            self.short_looks += u64::from(pace.status().is_capacity_short);
        }
    }
}

#[test]
fn t20_a_backlog_that_waits_for_units_and_does_not_grow_is_no_shortage() {
    let (mut pace, mut seen) = (Pace::new(SHARE), Seen::default());
    seen.watch(&mut pace, 1, 52, 0);
    // Users leave nothing for two minutes, then something.
    seen.watch(&mut pace, 120, 0, 0);
    seen.watch(&mut pace, 60, 0, 1);
    assert_eq!((seen.items, seen.short_looks), (0, 0));
    // The same, while as much expires as is removed.
    seen.watch(&mut pace, 1, 5200, 0);
    seen.watch(&mut pace, 300, 52, 52);
    assert_eq!((seen.items, seen.short_looks), (5200, 0));
}

#[test]
fn t20_a_backlog_that_grows_for_half_a_minute_is_a_shortage_until_it_no_longer_grows() {
    let (mut pace, mut seen) = (Pace::new(SHARE), Seen::default());
    seen.watch(&mut pace, 29, 20, 10);
    assert_eq!(seen.short_looks, 0);
    seen.watch(&mut pace, 31, 20, 10);
    assert!((80..=124).contains(&seen.short_looks), "{}", seen.short_looks);
    // The backlog stays constant though nothing of it is removed: within a minute this is no shortage any more.
    seen.watch(&mut pace, 60, 0, 0);
    assert!(!pace.status().is_capacity_short);
    let before = seen.short_looks;
    seen.watch(&mut pace, 60, 0, 0);
    assert_eq!(seen.short_looks, before);
}

#[test]
fn t20_what_expired_while_an_operator_had_paused_the_purge_is_no_shortage() {
    let (mut pace, mut seen) = (Pace::new(SHARE), Seen::default());
    seen.watch(&mut pace, 20, 20, 10);
    // Nothing is measured for ten minutes.
    pace.next(&Observation { elapsed: Duration::from_mins(10), ..Observation::default() });
    seen.items += 12_000;
    seen.watch(&mut pace, 20, 20, 10);
    assert_eq!(seen.short_looks, 0);
}

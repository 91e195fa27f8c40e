//! Countdowns that reads restart (T33, *sliding*), beside everything else that has to know when an item dies.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use engine::{
    ArchiveDirectory, Container, DefaultTtl, Error, Interval, ItemAddress, ItemName, Operation, Outcome,
    Precondition,
};
use storage::CrashMode;

use crate::countings::{assert_dies, holder, read, wish};
use crate::history::{self, MINUTES};
use crate::world::{START, World, body, key};

/// A world with a container whose reads restart countdowns.
fn sliding(more: &str) -> World {
    let world = World::new();
    world.container(more);
    wish(&world, |wishes| wishes.sliding = true);
    world
}

/// A point read without its touch.
fn look(world: &World, container: &Container, id: &str) -> Outcome {
    let name = ItemName::Id(id.into());
    world.engine.read(container, &key("a"), &name, &Precondition::None).expect("it lives")
}

fn address(id: &str) -> ItemAddress {
    ItemAddress::Id(key("a"), id.into())
}

/// Each reader reads once in every second: that is one small write a second, however many they are, and nobody else writes.
#[test]
fn t33_ten_thousand_readers_keep_an_item_alive_with_bounded_writes() {
    const READERS: u64 = 10_000;
    const THREADS: u64 = 8;
    const SECONDS: u64 = 12;
    let world = sliding(r#","defaultTtl":5"#);
    let made = world.create("a", &format!(r#""id":"x","padding":"{}""#, "x".repeat(2000))).expect("created");
    let (container, before) = (world.current(), world.engine.storage_stats());
    for second in 1..=SECONDS {
        world.pass(1);
        let restarts = AtomicU64::new(0);
        let readers = || {
            for _ in 0..READERS / THREADS {
                let outcome = look(&world, &container, "x");
                assert_eq!(outcome.seconds_left, Some(5));
                if let Some(touch) = outcome.touch.and_then(|touch| world.engine.touch(&touch)) {
                    assert_eq!(touch.wait(), Ok(Some(5)));
                    restarts.fetch_add(1, Ordering::Relaxed);
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(readers);
            }
        });
        let restarts = restarts.into_inner();
        assert!((1..=THREADS).contains(&restarts), "{restarts}: those who came before it was durable");
        let jobs = world.engine.storage_stats().jobs - before.jobs;
        assert!(jobs <= THREADS * second, "{jobs}: the others have looked at the item alone");
    }
    let after = world.engine.storage_stats();
    let commits = after.commits - before.commits;
    assert!(commits <= 2 * SECONDS, "{commits}: those, and the renewals of the clock's lease");
    let growth = after.disk_bytes.abs_diff(before.disk_bytes);
    assert!(growth < 200, "{growth} bytes more: the item itself was not written again");
    let item = world.read("a", "x").expect("it lives");
    assert_eq!((item.ts, item.etag, item.sequence), (made.ts, made.etag, made.sequence));
    assert_eq!(world.drain(), 0);
    assert_dies(&world, START + SECONDS + 5, "since the last read");
}

/// Nobody is promised what a crash could take back.
#[test]
fn t33_who_reads_before_a_touch_is_known_to_be_durable_waits_for_it_too() {
    let world = sliding(r#","defaultTtl":5"#);
    world.create("a", r#""id":"x""#).expect("created");
    world.pass(3);
    let touch = look(&world, &world.current(), "x").touch.expect("it slides");
    let first = world.engine.touch(&touch).expect("nobody has");
    let second = world.engine.touch(&touch).expect("it is not known to be durable");
    assert_eq!((first.wait(), second.wait()), (Ok(Some(5)), Ok(Some(5))));
    assert!(world.engine.touch(&touch).is_none(), "now it is");
}

/// Read, replace, read within one second: the new version counts from its property until it is read itself.
#[test]
fn t33_a_version_is_touched_though_the_one_before_it_was() {
    let world = sliding(r#","defaultTtl":1000,"ttlPropertyPath":"/from""#);
    let text = format!(r#""id":"x","from":{}"#, START - 600);
    world.create("a", &text).expect("created");
    assert_eq!(read(&world, "x").expect("it lives").seconds_left, Some(1000));
    world.replace("a", "x", &text).expect("replaced");
    assert_eq!(read(&world, "x").expect("it lives").seconds_left, Some(1000));
    world.pass(999);
    assert!(world.is_alive("a", "x"));
    world.pass(1);
    assert!(!world.is_alive("a", "x"));
}

/// Items that are read together are touched together.
#[test]
fn t33_a_page_restarts_all_its_countdowns_in_few_transactions() {
    let world = sliding(r#","defaultTtl":10"#);
    let ids: Vec<String> = (0..600).map(|n| format!("i{n}")).collect();
    for id in &ids {
        world.create("a", &format!(r#""id":"{id}""#)).expect("created");
    }
    world.pass(9);
    let touches: Vec<_> = ids.iter().filter_map(|id| look(&world, &world.current(), id).touch).collect();
    let before = world.engine.storage_stats().jobs;
    world.engine.touch_all(&touches).expect("touched");
    assert_eq!(world.engine.storage_stats().jobs - before, 3);
    assert!(touches.iter().all(|touch| world.engine.touch(touch).is_none()), "all are done");
    world.pass(9);
    assert_eq!(world.counts(), (600, 0));
    world.pass(1);
    assert_eq!(world.counts(), (0, 600));
}

/// T34: a time that was rejected moves no countdown, whichever way an item is read after it; what was written at that time
/// keeps its `_ts`, and counts from there.
#[test]
fn t33_t34_a_read_gives_way_to_the_next_if_its_time_is_rejected() {
    const DAY: u64 = 24 * 3600;
    let days = |days: u64| Some(days * DAY);
    let mut world = sliding(&format!(r#","defaultTtl":{}"#, 100 * DAY));
    world.create("a", r#""id":"x""#).expect("created");
    world.clock.reboot(Duration::from_secs(60 * DAY));
    world.restart();
    assert!(world.engine.clock_status().expect("a status").suspect.is_some());
    world.create("a", r#""id":"y""#).expect("created");
    world.pass(1);
    for id in ["x", "y"] {
        assert_eq!(read(&world, id).expect("it lives").seconds_left, days(100));
    }
    world.engine.reject_clock().expect("rejected");
    let in_batch = |id: &str| {
        let read = Operation::Read { name: ItemName::Id(id.into()), precondition: Precondition::None };
        world.run("a", read).expect("it lives").seconds_left
    };
    let alone = |id: &str| read(&world, id).expect("it lives").seconds_left;
    assert_eq!((alone("x"), in_batch("x")), (days(100), days(100)));
    assert_eq!(alone("y"), in_batch("y"), "written at the rejected time");
    assert!(alone("y") > days(100));
    world.pass(100 * DAY);
    assert!(!world.is_alive("a", "x") && world.is_alive("a", "y"));
}

/// T13: the touch of a read that was in time may come too late.
#[test]
fn t13_t33_a_touch_that_comes_too_late_revives_nobody() {
    let world = sliding(r#","defaultTtl":5"#);
    world.create("a", r#""id":"x""#).expect("created");
    world.pass(4);
    let container = world.current();
    let in_time = look(&world, &container, "x");
    assert_eq!(in_time.seconds_left, Some(5), "if its touch is made now");
    let late = in_time.touch.expect("it slides");
    world.pass(1);
    assert_eq!(world.engine.touch(&late).expect("the first").wait(), Ok(Some(0)), "nothing is left");
    assert!(!world.is_alive("a", "x"));
    assert_eq!(world.counts(), (0, 1));
    world.create("a", r#""id":"x""#).expect("the id is free");
    world.pass(3);
    assert_eq!(world.engine.touch(&late).expect("not done").wait(), Ok(Some(0)), "another item is there");
    assert_eq!(look(&world, &world.current(), "x").seconds_left, Some(5));
    assert_dies(&world, START + 10, "nobody has read the new one");
}

/// A touch happens whole or not at all, and one that was acknowledged stays.
#[test]
fn t33_a_crash_leaves_no_half_a_touch() {
    for (mode, lives) in [(CrashMode::BeforeCommit, 1000), (CrashMode::AfterCommit, 1600)] {
        let mut world = sliding(r#","defaultTtl":1000"#);
        world.create("a", r#""id":"x""#).expect("created");
        world.pass(600);
        let touch = look(&world, &world.current(), "x").touch.expect("it slides");
        world.crash_after(0, mode);
        assert!(world.engine.touch(&touch).expect("the first").wait().is_err());
        world.restart();
        assert_eq!(world.counts(), (1, 0));
        assert_dies(&world, START + lives, "as if it had been done, or not");
    }
}

/// T14: whichever way a query comes by an item that has outlived what its header says.
#[test]
fn t14_t33_every_way_of_looking_sees_a_slid_item_and_no_other() {
    let composite = r#""indexingPolicy":{"compositeIndexes":[[{"path":"/v"},{"path":"/w"}]]}"#;
    let world = sliding(&format!(r#","defaultTtl":10,{composite}"#));
    for id in ["x", "y"] {
        world.create("a", &format!(r#""id":"{id}","v":1,"w":"{id}""#)).expect("created");
    }
    let ways = [
        "SELECT VALUE c.id FROM c",
        "SELECT VALUE c.id FROM c WHERE c.v = 1",
        "SELECT VALUE c.id FROM c WHERE c.id IN ('x', 'y')",
        "SELECT VALUE c.id FROM c WHERE c.pk = 'a' AND c.w > 'a'",
        "SELECT VALUE c.id FROM c ORDER BY c.w",
        "SELECT VALUE c.id FROM c ORDER BY c.v, c.w",
        "SELECT VALUE c.id FROM c WHERE c._ts >= 0",
        "SELECT VALUE c.id FROM c ORDER BY c._ts DESC",
        "SELECT DISTINCT VALUE c.w FROM c",
        "SELECT VALUE c.w FROM c GROUP BY c.w",
    ];
    let counts = ["SELECT VALUE COUNT(1) FROM c", "SELECT VALUE COUNT(1) FROM c WHERE c.v = 1"];
    world.pass(6);
    read(&world, "x").expect("it lives");
    for (at, living) in
        [(9, vec![r#""x""#, r#""y""#]), (10, vec![r#""x""#]), (15, vec![r#""x""#]), (16, vec![])]
    {
        world.pass(START + at - world.engine.now().expect("a time").seconds());
        for way in ways {
            let mut rows = world.rows(way, 10);
            rows.sort_unstable();
            assert_eq!(rows, living, "{way} at {at}");
        }
        for way in counts {
            assert_eq!(world.rows(way, 10), [living.len().to_string()], "{way} at {at}");
        }
    }
}

/// T15: what a slid item has taken is taken until it has died.
#[test]
fn t15_t33_a_slid_item_keeps_its_id_and_its_unique_values() {
    let world = sliding(r#","defaultTtl":10,"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/u"]}]}"#);
    world.create("a", r#""id":"x","u":1"#).expect("created");
    world.pass(9);
    read(&world, "x").expect("it lives");
    world.pass(9);
    let taken = |text: &str| world.create("a", text).expect_err("a living item has it");
    assert!(matches!(taken(r#""id":"x","u":2"#), Error::Exists { .. }));
    assert!(matches!(taken(r#""id":"y","u":1"#), Error::UniqueKeyTaken { .. }));
    assert_eq!(world.drain(), 0);
    world.pass(1);
    world.create("a", r#""id":"y","u":1"#).expect("the value is free");
    world.create("a", r#""id":"x","u":2"#).expect("the id is free");
    assert_eq!((world.counts(), world.drain()), ((2, 0), 0), "the dead one went with the write");
    world.engine.check_index(&world.current()).expect("nothing is left behind");
}

/// T28: the feed tells the death of a slid item as of its instant, in its place among all events, whether or not the purge has
/// been there, and tells nothing of the reads.
#[test]
fn t28_t33_the_feed_tells_when_a_slid_item_died() {
    let mut world = sliding(r#","defaultTtl":10"#);
    history::keep(&world, Some(MINUTES));
    let begun = history::now(&world);
    for id in ["slid", "still"] {
        world.create("a", &format!(r#""id":"{id}","v":1"#)).expect("created");
    }
    world.pass(6);
    read(&world, "slid").expect("it lives");
    world.pass(5);
    world.create("a", r#""id":"later","v":1"#).expect("created");
    let until_now = ["Create slid >1 @0", "Create still >1 @0", "Expire still 1> @10", "Create later >1 @11"];
    let (events, next) = history::after(&world, begun);
    assert_eq!(events, until_now);
    read(&world, "slid").expect("it lives");
    world.pass(10);
    // Another dies at the same instant; the purge must not be seen.
    let since = ["Expire later 1> @21", "Expire slid 1> @21"];
    let sorted = |(mut events, _): (Vec<String>, _)| {
        events.sort_unstable();
        events
    };
    let in_order = history::after(&world, next).0;
    assert_eq!(sorted((in_order.clone(), next)), since);
    assert_eq!(world.drain(), 3);
    assert_eq!(history::after(&world, next).0, in_order);
    world.restart();
    world.create("a", r#""id":"slid","v":2"#).expect("created anew");
    let (events, _) = history::after(&world, begun);
    assert_eq!(events[..4], until_now);
    assert_eq!(events[4..6], in_order);
    assert!(events[6].starts_with("Create slid >2"), "{events:?}");
}

/// T31: nobody restarts the countdown of what is held; when the hold is lifted, the last read before it counts.
#[test]
fn t31_t33_a_held_item_does_not_slide() {
    for (lifted_at, dies_at) in [(9, 14), (100, 100)] {
        let world = sliding(r#","defaultTtl":10"#);
        world.create("a", r#""id":"x""#).expect("created");
        world.pass(4);
        read(&world, "x").expect("it lives");
        world.engine.hold_item(&holder(&world), &address("x"), "a case").expect("it lives");
        let jobs = world.engine.storage_stats().jobs;
        world.pass(lifted_at - 4);
        assert_eq!(read(&world, "x").expect("it is held").seconds_left, None);
        assert_eq!(world.engine.storage_stats().jobs, jobs, "the read has written nothing");
        world.engine.lift_item(&holder(&world), &address("x")).expect("lifted");
        if dies_at > lifted_at {
            assert_dies(&world, START + dies_at, "ten seconds after its last read");
        } else {
            assert_eq!((world.counts(), world.drain(), world.counts()), ((0, 1), 1, (0, 0)));
        }
        world.engine.check_index(&world.current()).expect("nothing is left behind");
    }
}

#[test]
fn t31_t33_in_a_held_container_nothing_slides() {
    let world = sliding(r#","defaultTtl":10"#);
    for (id, read_at) in [("x", 4), ("y", 8)] {
        world.create("a", &format!(r#""id":"{id}""#)).expect("created");
        world.pass(START + read_at - world.engine.now().expect("a time").seconds());
        read(&world, id).expect("it lives");
    }
    wish(&world, |wishes| wishes.hold = Some("a case".into()));
    world.pass(8);
    for id in ["x", "y"] {
        assert_eq!(read(&world, id).expect("it is held").seconds_left, None);
    }
    wish(&world, |wishes| wishes.hold = None);
    assert!(!world.is_alive("a", "x"), "overdue since {}", START + 14);
    assert_eq!((world.counts(), world.drain()), ((1, 1), 1));
    assert_eq!(look(&world, &world.current(), "y").seconds_left, Some(10), "from now on it slides again");
}

/// T11, T13: a change of `defaultTtl` counts from the last read, and what was dead then stays dead.
#[test]
fn t11_t13_t33_a_change_of_the_default_counts_from_the_last_read() {
    let world = sliding(r#","defaultTtl":10"#);
    for id in ["x", "y"] {
        world.create("a", &format!(r#""id":"{id}""#)).expect("created");
    }
    world.pass(8);
    read(&world, "x").expect("it lives");
    world.set_default(Some(5));
    assert!(!world.is_alive("a", "y"));
    assert!(world.is_alive("a", "x"), "read just now");
    world.pass(4);
    world.set_default(None);
    world.pass(100);
    assert_eq!(read(&world, "x").expect("ttl is off").seconds_left, None, "nothing to restart");
    world.set_default(Some(105));
    assert_eq!(look(&world, &world.current(), "x").seconds_left, Some(105));
    world.pass(1);
    assert!(!world.is_alive("a", "x"), "a look without its touch restarts nothing");
    world.set_default(Some(1000));
    assert!(!world.is_alive("a", "x") && !world.is_alive("a", "y"));
    assert_eq!((world.counts(), world.drain()), ((0, 2), 2));
}

/// T30: forecasts and dry runs know of reads.
#[test]
fn t30_t33_forecasts_and_dry_runs_count_from_the_last_read() {
    let world = sliding(r#","defaultTtl":100"#);
    for id in ["x", "y"] {
        world.create("a", &format!(r#""id":"{id}""#)).expect("created");
    }
    world.pass(50);
    read(&world, "x").expect("it lives");
    let forecast = world.engine.forecast(&holder(&world), Interval::Minute, 2).expect("a forecast");
    assert!(forecast.exact);
    assert_eq!(forecast.intervals.iter().map(|tally| tally.items).collect::<Vec<_>>(), [1, 1]);
    world.pass(20);
    let dry_run = world.engine.dry_run(&holder(&world), DefaultTtl::Seconds(40)).expect("figures");
    assert_eq!((dry_run.dying.tally.items, dry_run.remaining().items), (1, 1));
    world.set_default(Some(40));
    assert_eq!(world.counts(), (1, 1));
    assert!(world.is_alive("a", "x"));
    assert_eq!(world.drain(), 1);
    assert_dies(&world, START + 90, "forty seconds after it was read");
}

/// A batch reads inside its own commit, and so restarts countdowns there.
#[test]
fn t33_a_read_in_a_batch_restarts_the_countdown() {
    let world = sliding(r#","defaultTtl":10"#);
    world.create("a", r#""id":"x""#).expect("created");
    world.pass(6);
    let name = ItemName::Id("x".into());
    let operations = vec![
        Operation::Create { body: body("a", r#""id":"y","ttl":1"#) },
        Operation::Read { name, precondition: Precondition::None },
    ];
    let outcomes = world.engine.batch(&world.current(), &key("a"), operations).wait().expect("done");
    assert_eq!(outcomes.iter().map(|outcome| outcome.seconds_left).collect::<Vec<_>>(), [Some(1), Some(10)]);
    world.pass(1);
    assert_eq!(world.drain(), 1);
    assert_dies(&world, START + 16, "since the batch");
}

/// T32, and the deletion record: neither tells of an item that a read has kept alive, and both tell the true instant in the end,
/// whether the purge removes it or a write that finds it in its way.
#[test]
fn t32_t33_evidence_tells_when_a_slid_item_died() {
    for by_write in [false, true] {
        let world = sliding(r#","defaultTtl":60"#);
        wish(&world, |wishes| {
            (wishes.archive, wishes.deletion_record) = (ArchiveDirectory::parse("cold"), true);
        });
        world.create("a", r#""id":"x""#).expect("created");
        world.create("a", r#""id":"y","ttl":100"#).expect("created");
        world.pass(50);
        read(&world, "x").expect("it lives");
        world.pass(50);
        assert_eq!(world.drain(), 1, "only the one that nobody has read");
        assert_eq!(world.archive.lines("cold").len(), 1);
        world.pass(1000);
        if by_write {
            world.create("a", r#""id":"x","ttl":-1"#).expect("the id is free");
        }
        assert_eq!(world.drain(), 1);
        let lines = world.archive.lines("cold");
        let told = concat!(
            r#""_ts":1700000000,"expired":"2023-11-14T22:15:10.000Z","#,
            r#""rule":"defaultTtl","seconds":60,"from":"2023-11-14T22:14:10.000Z","#
        );
        assert!(lines.len() == 2 && lines[1].contains(told), "{lines:?}");
        let log = world.engine.deletion_logs_of(&holder(&world)).expect("logs").remove(0);
        let page = world.engine.deletion_page(log.log, 0).expect("a page");
        let record = String::from_utf8(page.lines).expect("text");
        assert_eq!(record.matches(r#""event":"purged""#).count(), 2);
        assert_eq!(record.matches(told).count(), 1, "{record}");
        assert_eq!(record.matches(r#""hold":null,"sliding":true}"#).count(), 1, "{record}");
    }
}

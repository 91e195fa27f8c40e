//! Countdowns that reads restart (T33, *sliding*), beside all other code that depends on when an item expires.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use engine::{ArchiveDirectory, Container, ItemName, Operation, Outcome, Precondition};

use crate::ttl_modes::{assert_expires, read, set_lifecycle};
use crate::world::{START, World, key};

/// Returns a world with a container whose reads restart countdowns.
fn sliding(more: &str) -> World {
    let world = World::new();
    world.container(more);
    set_lifecycle(&world, |settings| settings.sliding = true);
    world
}

/// Returns a point read without its renewal.
fn look(world: &World, container: &Container, id: &str) -> Outcome {
    let name = ItemName::Id(id.into());
    world.engine.read(container, &key("a"), &name, &Precondition::None).expect("it lives")
}

/// Each reader reads once in every second: that is one small write a second, however many they are, and there is no other write.
#[test]
fn t33_ten_thousand_readers_renew_an_item_with_bounded_writes() {
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
                if let Some(renewal) = outcome.renewal.and_then(|renewal| world.engine.renew(&renewal)) {
                    assert_eq!(renewal.wait(), Ok(Some(5)));
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
    assert_expires(&world, START + SECONDS + 5, "since the last read");
}

/// No reader is promised a renewal that a crash could undo.
#[test]
fn t33_who_reads_before_a_touch_is_known_to_be_durable_waits_for_it_too() {
    let world = sliding(r#","defaultTtl":5"#);
    world.create("a", r#""id":"x""#).expect("created");
    world.pass(3);
    let renewal = look(&world, &world.current(), "x").renewal.expect("it slides");
    let first = world.engine.renew(&renewal).expect("not yet renewed");
    let second = world.engine.renew(&renewal).expect("it is not known to be durable");
    assert_eq!((first.wait(), second.wait()), (Ok(Some(5)), Ok(Some(5))));
    assert!(world.engine.renew(&renewal).is_none(), "now it is");
}

/// Items that are read together are renewed together.
#[test]
fn t33_a_page_restarts_all_its_countdowns_in_few_transactions() {
    let world = sliding(r#","defaultTtl":10"#);
    let ids: Vec<String> = (0..600).map(|n| format!("i{n}")).collect();
    for id in &ids {
        world.create("a", &format!(r#""id":"{id}""#)).expect("created");
    }
    world.pass(9);
    let renewals: Vec<_> = ids.iter().filter_map(|id| look(&world, &world.current(), id).renewal).collect();
    let before = world.engine.storage_stats().jobs;
    world.engine.renew_all(&renewals).expect("touched");
    assert_eq!(world.engine.storage_stats().jobs - before, 3);
    assert!(renewals.iter().all(|renewal| world.engine.renew(renewal).is_none()), "all are done");
    world.pass(9);
    assert_eq!(world.counts(), (600, 0));
    world.pass(1);
    assert_eq!(world.counts(), (0, 600));
}

/// T34: a time that was rejected moves no countdown, however an item is read after it; an item written at that time keeps
/// its `_ts`, and its countdown starts there.
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
    assert!(!world.is_living("a", "x") && world.is_living("a", "y"));
}

/// T13: the renewal of a read that was in time may come too late.
#[test]
fn t13_t33_a_renewal_that_comes_too_late_revives_no_item() {
    let world = sliding(r#","defaultTtl":5"#);
    world.create("a", r#""id":"x""#).expect("created");
    world.pass(4);
    let container = world.current();
    let in_time = look(&world, &container, "x");
    assert_eq!(in_time.seconds_left, Some(5), "if its touch is made now");
    let late = in_time.renewal.expect("it slides");
    world.pass(1);
    assert_eq!(world.engine.renew(&late).expect("the first").wait(), Ok(Some(0)), "nothing is left");
    assert!(!world.is_living("a", "x"));
    assert_eq!(world.counts(), (0, 1));
    world.create("a", r#""id":"x""#).expect("the id is free");
    world.pass(3);
    assert_eq!(world.engine.renew(&late).expect("not done").wait(), Ok(Some(0)), "another item is there");
    assert_eq!(look(&world, &world.current(), "x").seconds_left, Some(5));
    assert_expires(&world, START + 10, "the new one was not read");
}

/// T32, and the deletion record: neither has an item that a read has kept living, and both have the true instant in the end,
/// whether the purge removes the item or a write that takes its id.
#[test]
fn t32_t33_evidence_tells_when_a_renewed_item_expired() {
    for by_write in [false, true] {
        let world = sliding(r#","defaultTtl":60"#);
        set_lifecycle(&world, |settings| {
            (settings.archive, settings.deletion_record) = (ArchiveDirectory::parse("cold"), true);
        });
        world.create("a", r#""id":"x""#).expect("created");
        world.create("a", r#""id":"y","ttl":100"#).expect("created");
        world.pass(50);
        read(&world, "x").expect("it lives");
        world.pass(50);
        assert_eq!(world.drain(), 1, "only the one that was not read");
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
        let log = world.engine.deletion_logs_of(&world.owner()).expect("logs").remove(0);
        let page = world.engine.deletion_page(log.log, 0).expect("a page");
        let record = String::from_utf8(page.lines).expect("text");
        assert_eq!(record.matches(r#""event":"purged""#).count(), 2);
        assert_eq!(record.matches(told).count(), 1, "{record}");
        assert_eq!(record.matches(r#""hold":null,"sliding":true}"#).count(), 1, "{record}");
    }
}

//! LSNs of ranges: they count the commits of their range, and nothing else (decision 0027).

use std::sync::Arc;

use engine::{
    Container, Event, EventKind, FeedStart, HistoryFrom, Item, ItemName, Operation, Precondition, RangeLsn,
    Scope,
};
use storage::CrashMode;

use crate::holds::address;
use crate::world::{World, body, definition, key};

fn lsn(world: &World) -> u64 {
    let container = world.current();
    let known = container.partitions[0].lsn();
    let page = world.engine.changes(&container, &Scope::default(), &FeedStart::Now, 1).expect("a page");
    assert_eq!(page.range, RangeLsn { range: 0, lsn: known }, "as the store has it");
    assert!(known <= world.engine.last_sequence());
    known
}

fn other(world: &World) -> Arc<Container> {
    let database = world.engine.database("db").expect("made at the start");
    world.engine.create_container(&database, definition("other", ""), None).expect("made")
}

fn write_elsewhere(world: &World, other: &Arc<Container>, n: u64) {
    let operation = Operation::Create { body: body("x", &format!(r#""id":"{n}""#)) };
    world.engine.write(other, Some(key("x")), operation).wait().expect("created");
}

#[test]
fn the_lsn_of_a_range_counts_its_own_commits_alone() {
    let world = World::new();
    let container = world.container("");
    let other = other(&world);
    let first = lsn(&world);
    for n in 1..=20 {
        write_elsewhere(&world, &other, n);
        let item = world.create("a", &format!(r#""id":"{n}""#)).expect("created");
        assert_eq!((item.lsn, lsn(&world)), (first + n, first + n));
    }
    let before = lsn(&world);
    write_elsewhere(&world, &other, 100);
    assert_eq!(world.replace("a", "1", r#""id":"1","n":1"#).expect("there").lsn, before + 1);
    write_elsewhere(&world, &other, 101);
    let upserted = world.upsert("a", r#""id":"1","n":2"#).expect("there");
    assert_eq!((upserted.range.lsn, upserted.item.expect("an item").lsn), (before + 2, before + 2));
    let patch = r#"{"operations":[{"op":"incr","path":"/n","value":1}]}"#;
    assert_eq!(world.patch("a", "1", patch).expect("there").lsn, before + 3);
    assert_eq!(world.delete("a", "1").expect("there").range.lsn, before + 4);

    let create = |id: &str| Operation::Create { body: body("a", &format!(r#""id":"{id}""#)) };
    let name = ItemName::Id("x".into());
    let read = Operation::Read { name: name.clone(), precondition: Precondition::None };
    let delete = Operation::Delete { name, precondition: Precondition::None };
    let batch = vec![create("x"), read, create("y"), delete];
    let outcomes = world.engine.batch(&container, &key("a"), batch).wait().expect("committed");
    assert!(outcomes.iter().all(|outcome| outcome.range.lsn == before + 5), "a batch counts once");
    assert_eq!(world.read("a", "y").expect("there").lsn, before + 5);
    let failing = vec![create("z"), create("y")];
    world.engine.batch(&container, &key("a"), failing).wait().expect_err("a conflict");
    world.create("a", r#""id":"y""#).expect_err("a conflict");
    world.delete("a", "missing").expect_err("not there");
    assert_eq!(lsn(&world), before + 5, "what failed counts for nothing");
    assert_eq!(world.read("a", "20").expect("there").lsn, before, "a version keeps its LSN");
    let emptied = world.engine.delete_partition(&container, &key("a")).expect("deleted");
    assert_eq!((emptied.items, emptied.range.lsn, lsn(&world)), (20, before + 6, before + 6));
    let emptied = world.engine.delete_partition(&container, &key("a")).expect("nothing to delete");
    assert_eq!((emptied.items, emptied.range.lsn), (0, before + 6));
    world.engine.check_index(&world.current()).expect("sound");
}

/// T21, T28, T33, invariant 8.
#[test]
fn t21_t28_t33_what_no_user_writes_takes_no_lsn() {
    let world = World::new();
    let container = world.container(r#","defaultTtl":10,"changeFeedPolicy":{"retentionDuration":10}"#);
    let settings =
        |sliding| world.engine.change_lifecycle(&world.owner(), |settings| settings.sliding = sliding);
    let from = world.engine.history(&container, &Scope::default(), &HistoryFrom::Now, 9).expect("a page");
    world.create("a", r#""id":"expires""#).expect("created");
    world.create("a", r#""id":"held""#).expect("created");
    let last = world.create("a", r#""id":"stays","ttl":-1"#).expect("created").lsn;
    world.engine.hold_item(&world.owner(), &address("a", "held"), "a trial").expect("held");
    assert_eq!(lsn(&world), last, "a hold");
    world.pass(20);
    assert_eq!(lsn(&world), last, "an expiry");
    world.drain();
    assert_eq!(lsn(&world), last, "a purge");
    world.engine.lift_item(&world.owner(), &address("a", "held")).expect("lifted");
    assert_eq!(lsn(&world), last, "the end of a hold, and with it an expiry");
    settings(true).expect("a valid setting");
    let name = ItemName::Id("slides".into());
    let slides = world.create("a", r#""id":"slides""#).expect("created").lsn;
    world.pass(5);
    let read = world.engine.read(&world.current(), &key("a"), &name, &Precondition::None).expect("there");
    world.engine.renew(&read.renewal.expect("a renewal")).expect("not yet renewed").wait().expect("durable");
    assert_eq!((lsn(&world), read.range.lsn), (slides, slides), "a renewal by a read");
    let indexing = r#","defaultTtl":10,"indexingPolicy":{"includedPaths":[{"path":"/n/?"}],"excludedPaths":[{"path":"/*"}]}"#;
    let definition = definition("c", indexing);
    world.engine.replace_container(&world.current(), definition, &Precondition::None).expect("valid");
    while world.engine.index_step(1).expect("a step").more {}
    assert_eq!(lsn(&world), slides, "a change of policy, and an index build");
    assert_eq!(world.create("a", r#""id":"next""#).expect("created").lsn, slides + 1);
    world.delete("a", "next").expect("deleted");

    let from = HistoryFrom::After(from.continuation);
    let page = world.engine.history(&world.current(), &Scope::default(), &from, 99).expect("a page");
    let told = |event: &Event<Item>| (event.kind, event.lsn, event.previous_lsn);
    let first = last - 2;
    let expected = [
        (EventKind::Create, first, None),
        (EventKind::Create, first + 1, None),
        (EventKind::Create, last, None),
        (EventKind::Expire, last, Some(first)),
        (EventKind::Expire, last, Some(first + 1)),
        (EventKind::Create, slides, None),
        (EventKind::Create, slides + 1, None),
        (EventKind::Delete, slides + 2, Some(slides + 1)),
    ];
    assert_eq!(page.events.iter().map(told).collect::<Vec<_>>(), expected);
    assert_eq!(page.range.lsn, slides + 2);
}

#[test]
fn an_lsn_outlives_items_restarts_and_crashes() {
    let mut world = World::new();
    world.container("");
    world.create("a", r#""id":"x""#).expect("created");
    world.delete("a", "x").expect("deleted");
    let before = lsn(&world);
    world.restart();
    assert_eq!((world.counts(), lsn(&world)), ((0, 0), before), "an empty container keeps its LSN");
    for (mode, kept) in [(CrashMode::BeforeCommit, 0), (CrashMode::AfterCommit, 1)] {
        let before = lsn(&world);
        world.crash_after(0, mode);
        world.create("a", r#""id":"y""#).expect_err("the outcome is unknown");
        let known = world.current().partitions[0].lsn();
        assert_eq!(known, before, "{mode:?}: nothing is shown that a crash may undo");
        world.restart();
        assert_eq!(lsn(&world), before + kept, "{mode:?}");
    }
}

#[test]
fn a_container_that_is_made_again_is_not_behind_its_predecessor() {
    let world = World::new();
    let container = world.container("");
    for n in 0..10 {
        world.create("a", &format!(r#""id":"{n}""#)).expect("created");
    }
    let shown = lsn(&world);
    world.engine.delete_container(&container, &Precondition::None).expect("deleted");
    world.container("");
    assert!(lsn(&world) > shown, "a token of the old one is not of the future");
}

/// Clients compute the lag of a reader as the LSN of the range less that of the first pending change, plus one.
#[test]
fn the_lag_of_a_reader_is_the_commits_of_its_range() {
    let world = World::new();
    let container = world.container("");
    let other = other(&world);
    world.create("a", r#""id":"old""#).expect("created");
    let read =
        |from: &FeedStart| world.engine.changes(&container, &Scope::default(), from, 1).expect("a page");
    let from = FeedStart::After(read(&FeedStart::Now).continuation);
    for n in 0..150 {
        write_elsewhere(&world, &other, n);
    }
    world.create("a", r#""id":"new""#).expect("created");
    for n in 150..300 {
        write_elsewhere(&world, &other, n);
    }
    let lag = |page: &engine::Changes| page.range.lsn - page.items[0].lsn + 1;
    assert_eq!(lag(&read(&from)), 1);
    for n in 0..4 {
        world.create("a", &format!(r#""id":"{n}""#)).expect("created");
        write_elsewhere(&world, &other, 1000 + n);
    }
    assert_eq!(lag(&read(&from)), 5);
}

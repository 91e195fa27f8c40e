//! Archive before purge (T32): which lines are written, when, and what happens while they cannot be written.

use std::sync::{Arc, Barrier};
use std::time::Duration;

use bson::{Document, Value};
use engine::{
    ArchiveDirectory, Collection, DefaultTtl, Error, ItemAddress, Operation, Owner, Precondition, PurgeNews,
};
use storage::Time;

use crate::collections::{by, date, item};
use crate::world::{START, World, body, definition, key};

fn set_archive(world: &World, owner: &Owner, directory: Option<&str>) {
    let directory = directory.map(|name| ArchiveDirectory::parse(name).expect("a good name"));
    world.engine.change_lifecycle(owner, |settings| settings.archive = directory).expect("a valid setting");
}

/// Returns a container `c` with an archive `cold`.
fn archived(more: &str) -> World {
    let world = World::new();
    set_archive(&world, &Owner::Container(world.container(more)), Some("cold"));
    world
}

/// Returns the ids of all lines, in their order.
fn ids(world: &World) -> Vec<String> {
    let id = |line: &String| {
        let (_, rest) = line.split_once(r#""id":""#).expect("a line names its item");
        rest.split('"').next().expect("an id ends").to_owned()
    };
    world.archive.lines("cold").iter().map(id).collect()
}

fn status(world: &World) -> engine::ArchiveStatus {
    world.engine.archive_status(&world.owner()).expect("figures").expect("an archive is configured")
}

/// Returns how many expired items are not purged.
fn backlog(world: &World) -> u64 {
    world.engine.purge_figures(&world.owner()).expect("figures").backlog.items
}

#[test]
fn t32_a_line_tells_what_the_item_was_and_why_it_expired() {
    let world = archived(r#","defaultTtl":60"#);
    world.create("a", r#""id":"x","n":[1,{"m":"ü\n"}]"#).expect("created");
    world.create("b", r#""id":"y","ttl":100"#).expect("created");
    world.pass(60);
    assert_eq!(world.archive.lines("cold"), Vec::<String>::new(), "nothing is written before the purge");
    assert_eq!(world.drain(), 1);
    assert_eq!(
        world.archive.lines("cold"),
        [concat!(
            r#"{"database":"db","container":"c","id":"x","partitionKey":["a"],"_ts":1700000000,"#,
            r#""expired":"2023-11-14T22:14:20.000Z","rule":"defaultTtl","seconds":60,"#,
            r#""item":{"pk":"a","id":"x","n":[1,{"m":"ü\n"}]}}"#
        )]
    );
    world.pass(40);
    assert_eq!(world.drain(), 1);
    let line = world.archive.lines("cold").remove(1);
    assert!(line.contains(r#""expired":"2023-11-14T22:15:00.000Z","rule":"ttl","seconds":100,"#), "{line}");
    assert_eq!(status(&world).archived.items, 2);
}

/// The line of an item has the instant and the rule of its expiry, even if the rule has been dropped since.
#[test]
fn t32_a_line_names_the_rule_that_expired_the_item_though_others_came_since() {
    let world = archived(r#","defaultTtl":60"#);
    world.create("a", r#""id":"x""#).expect("created");
    world.pass(100);
    world.set_default(Some(10));
    world.set_default(Some(1000));
    world.set_default(None);
    assert_eq!(world.drain(), 1);
    let line = world.archive.lines("cold").remove(0);
    assert!(
        line.contains(r#""expired":"2023-11-14T22:14:20.000Z","rule":"defaultTtl","seconds":60,"#),
        "{line}"
    );
}

#[test]
fn t32_many_expire_and_each_has_one_line_in_the_order_of_expiry() {
    let world = archived(r#","defaultTtl":-1"#);
    let mut expected = Vec::new();
    for number in 0..700 {
        world.create("a", &format!(r#""id":"{number}","ttl":{}"#, 10 + number / 7)).expect("created");
        expected.push(number.to_string());
    }
    world.pass(30);
    world.drain();
    world.pass(1000);
    world.drain();
    assert_eq!(ids(&world), expected);
    assert_eq!((world.counts(), backlog(&world)), ((0, 0), 0));
}

#[test]
fn t32_the_purge_waits_for_a_full_archive_says_so_and_goes_on_when_there_is_room() {
    let world = archived(r#","defaultTtl":10"#);
    let database = world.engine.database("db").expect("made");
    let other = definition("other", r#","defaultTtl":10"#);
    let other = world.engine.create_container(&database, other, None).expect("created");
    set_archive(&world, &Owner::Container(Arc::clone(&other)), Some("warm"));
    for id in ["x", "y", "z"] {
        world.create("a", &format!(r#""id":"{id}""#)).expect("created");
        let create = Operation::Create { body: body("a", &format!(r#""id":"{id}""#)) };
        world.engine.write(&other, None, create).wait().expect("created");
    }
    world.archive.set_full("cold", true);
    world.pass(10);
    assert_eq!(world.drain(), 3, "the other container goes on");
    assert_eq!(world.archive.lines("warm").len(), 3);
    assert_eq!(backlog(&world), 3, "nothing is lost");
    let failure = status(&world).failure.expect("it fails");
    assert!(failure.error.contains("no room in 'cold'"), "{failure:?}");
    assert_eq!((failure.since, failure.tries), (Time::from_seconds(START + 10), 1));
    assert_eq!(failure.retry_at, Time::from_seconds(START + 11));
    assert_eq!(world.engine.archive_sums().waiting, 1);
    let container = "db/c".to_owned();
    let error = failure.error.clone();
    assert_eq!(world.engine.take_purge_news(), [PurgeNews::Waits { container: container.clone(), error }]);

    let due = world.engine.purge_step(100).expect("a step").next_due;
    assert_eq!(due, Some(failure.retry_at), "it does not try before");
    world.create("a", r#""id":"w","ttl":1"#).expect("writes go on");
    for _ in 0..10 {
        world.pass(120);
        world.drain();
    }
    let failure = status(&world).failure.expect("it still fails");
    assert_eq!((failure.since, failure.tries), (Time::from_seconds(START + 10), 11));
    assert_eq!(world.engine.take_purge_news(), [], "said once");
    assert_eq!(world.engine.archive_sums().failures, 11);

    world.archive.set_full("cold", false);
    world.pass(60);
    assert_eq!(world.drain(), 4);
    assert_eq!(status(&world).failure, None);
    assert_eq!(world.engine.take_purge_news(), [PurgeNews::GoesOn { container }]);
    for id in ["x", "y", "z", "w"] {
        assert!(ids(&world).contains(&id.to_owned()), "{id}");
    }
    assert_eq!(backlog(&world), 0);
}

/// After freeing space an operator need not wait for the next attempt.
#[test]
fn t32_an_operator_hurries_it() {
    let world = archived(r#","defaultTtl":10"#);
    world.create("a", r#""id":"x""#).expect("created");
    world.archive.set_full("cold", true);
    world.pass(10);
    world.drain();
    world.archive.set_full("cold", false);
    assert_eq!(world.drain(), 0);
    world.engine.retry_archives(Some(&world.owner())).expect("tried");
    assert_eq!(world.drain(), 1);
}

/// T15: an expired item whose id a write takes is absent at once for every client, and has its line before its bytes are removed.
#[test]
fn t32_what_a_write_finds_in_its_way_is_archived_before_it_is_dropped() {
    let mut world = archived(r#","defaultTtl":10,"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/email"]}]}"#);
    world.create("a", r#""id":"x","email":"e","v":1"#).expect("created");
    world.create("a", r#""id":"y","email":"f","v":2"#).expect("created");
    world.archive.set_full("cold", true);
    world.pass(10);
    world.create("a", r#""id":"x","email":"f","v":3,"ttl":-1"#).expect("both are in the way");
    assert_eq!(world.counts(), (1, 0), "they are gone for every reader");
    assert_eq!(backlog(&world), 2, "and their bytes are not");
    assert_eq!(status(&world).aside.items, 2);
    world.drain();
    world.restart();
    assert_eq!((world.archive.lines("cold").len(), backlog(&world)), (1, 2), "half of them arrived");
    world.archive.set_full("cold", false);
    world.pass(5);
    assert_eq!(world.drain(), 2);
    assert_eq!((status(&world).aside.items, backlog(&world)), (0, 0));
    let lines = world.archive.lines("cold");
    for v in [1, 2] {
        let line = lines.iter().rfind(|line| line.contains(&format!(r#""v":{v}}}"#))).expect("archived");
        assert!(line.contains(r#""expired":"2023-11-14T22:13:30.000Z","rule":"defaultTtl","seconds":10"#));
    }
    assert!(world.is_living("a", "x"));
    assert!(!lines.iter().any(|line| line.contains(r#""v":3"#)), "the living have no line");
}

#[test]
fn t32_what_is_archived_already_is_not_moved_aside() {
    let world = archived(r#","defaultTtl":10"#);
    for id in 0..20 {
        world.create("a", &format!(r#""id":"{id}""#)).expect("created");
    }
    world.pass(10);
    assert_eq!(world.engine.purge_step(3).expect("a step").purged_items, 3);
    assert_eq!(ids(&world).len(), 20, "archived ahead");
    world.create("a", r#""id":"15""#).expect("created");
    assert_eq!(status(&world).aside.items, 0);
    world.drain();
    assert_eq!(ids(&world).len(), 20, "and once");
}

#[test]
fn t32_without_the_setting_what_waits_goes_without_a_line() {
    let world = archived(r#","defaultTtl":10"#);
    for id in ["x", "y"] {
        world.create("a", &format!(r#""id":"{id}""#)).expect("created");
    }
    world.archive.set_full("cold", true);
    world.pass(10);
    world.create("a", r#""id":"x""#).expect("created");
    world.drain();
    assert_eq!(backlog(&world), 2);
    set_archive(&world, &world.owner(), None);
    assert_eq!(world.drain(), 2);
    assert_eq!((backlog(&world), world.engine.archive_sums().waiting), (0, 0));
    assert_eq!(world.engine.archive_status(&world.owner()).expect("figures"), None);
}

#[test]
fn t32_another_directory_gets_what_is_not_removed_yet() {
    let world = archived(r#","defaultTtl":10"#);
    for id in 0..20 {
        world.create("a", &format!(r#""id":"{id}""#)).expect("created");
    }
    world.pass(10);
    assert_eq!(world.engine.purge_step(3).expect("a step").purged_items, 3);
    set_archive(&world, &world.owner(), Some("warm"));
    assert_eq!(world.drain(), 17);
    assert_eq!((ids(&world).len(), world.archive.lines("warm").len()), (20, 17));
}

#[test]
fn t32_a_drop_archives_what_has_expired_and_is_refused_while_it_cannot() {
    let world = archived(r#","defaultTtl":10"#);
    world.create("a", r#""id":"x""#).expect("created");
    world.create("a", r#""id":"lives","ttl":-1"#).expect("created");
    world.archive.set_full("cold", true);
    world.pass(10);
    let refused = world.engine.delete_container(&world.current(), &Precondition::None);
    assert_eq!(refused, Err(Error::Unarchived));
    let database = world.engine.database("db").expect("there");
    assert_eq!(world.engine.delete_database(&database, &Precondition::None), Err(Error::Unarchived));
    assert!(world.is_living("a", "lives"));
    world.archive.set_full("cold", false);
    world.engine.delete_container(&world.current(), &Precondition::None).expect("dropped");
    assert_eq!(ids(&world), ["x"], "what lived was deleted by its owner");
}

/// A drop while the background archives is not refused because of that, and writes no lines of its own.
#[test]
fn t32_a_drop_while_the_background_archives_is_not_refused() {
    let world = World::new();
    for round in 0..60 {
        let database = world.engine.database("db").expect("there");
        let container =
            world.engine.create_container(&database, definition("c", r#","defaultTtl":10"#), None);
        let container = container.expect("created");
        let directory = format!("round-{round}");
        set_archive(&world, &Owner::Container(container.clone()), Some(&directory));
        for id in 0..100 {
            world.create("a", &format!(r#""id":"{id}""#)).expect("created");
        }
        world.pass(10);
        let start = Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                start.wait();
                world.engine.purge_step(1000).expect("a step");
            });
            start.wait();
            world.engine.delete_container(&container, &Precondition::None).expect("dropped");
        });
        let mut lines = world.archive.lines(&directory);
        lines.sort();
        lines.dedup();
        assert_eq!((lines.len(), world.archive.lines(&directory).len()), (100, 100), "each of them, once");
    }
}

/// A drop succeeds although items expire all the time, and only items that expire during the drop have no line.
#[test]
fn t32_a_drop_while_documents_expire_is_not_refused() {
    let world = World::new();
    let (collection, _) = collection_of(&world);
    world.index(&collection, &by("at").with("expireAfterSeconds", 0));
    for number in 0..2000 {
        let expires = Value::DateTime((START as i64 + 10) * 1000 + i64::from(number));
        world.put(&collection, &item(number).with("at", expires)).expect("inserted");
    }
    world.pass(10);
    world.clock.set_step(Duration::from_millis(1));
    world.engine.drop_collection(&collection).expect("dropped");
    world.clock.set_step(Duration::ZERO);
    let lines = world.archive.lines("cold").len();
    assert!((1..2000).contains(&lines), "some had expired before, some with the drop: {lines}");
}

/// T31 takes precedence: a held container is not purged, so none of its items is archived.
#[test]
fn t31_nothing_of_a_held_container_is_archived() {
    let world = archived(r#","defaultTtl":10"#);
    world.create("a", r#""id":"x""#).expect("created");
    world.create("a", r#""id":"held""#).expect("created");
    world.engine.hold_item(&world.owner(), &ItemAddress::Id(key("a"), "held".into()), "7").expect("lives");
    world.pass(10);
    world
        .engine
        .change_lifecycle(&world.owner(), |settings| settings.hold = Some("7".into()))
        .expect("a valid setting");
    assert_eq!((world.drain(), ids(&world).len()), (0, 0));
    world.engine.change_lifecycle(&world.owner(), |settings| settings.hold = None).expect("a valid setting");
    assert_eq!((world.drain(), ids(&world)), (1, vec!["x".to_owned()]));
    world.pass(90);
    world.engine.lift_item(&world.owner(), &ItemAddress::Id(key("a"), "held".into())).expect("held");
    assert_eq!((backlog(&world), world.counts()), (1, (0, 0)), "it expired when the hold was lifted");
    assert_eq!(world.drain(), 1);
    let line = world.archive.lines("cold").remove(1);
    assert!(line.contains(r#""expired":"2023-11-14T22:15:00.000Z""#), "{line}");
}

/// T34: an item that has expired only by a suspect clock has no line.
#[test]
fn t34_nothing_is_archived_by_a_suspect_clock() {
    let mut world = archived(r#","defaultTtl":1000"#);
    world.create("a", r#""id":"x""#).expect("created");
    world.clock.set_wall(Time::from_seconds(START + 90 * 86_400));
    world.restart();
    assert!(!world.is_living("a", "x"), "hidden by the wall clock");
    world.drain();
    assert_eq!(ids(&world).len(), 0);
    world.engine.accept_clock().expect("accepted");
    assert_eq!((world.drain(), ids(&world).len()), (1, 1));
}

/// T32 takes precedence over T24: a bound that passes while the archive is full is reported as missed, also for items moved aside.
#[test]
fn t24_a_full_archive_makes_a_bound_be_missed_and_told() {
    let world = archived(r#","defaultTtl":10"#);
    let promise = |settings: &mut engine::Lifecycle| settings.max_purge_delay = Some(60);
    world.engine.change_lifecycle(&world.owner(), promise).expect("a valid setting");
    world.engine.retention_step().expect("a look");
    world.create("a", r#""id":"x""#).expect("created");
    world.archive.set_full("cold", true);
    world.pass(10);
    world.create("a", r#""id":"x","ttl":-1"#).expect("created");
    world.drain();
    world.pass(59);
    assert_eq!(world.engine.retention_step().expect("a look").missed, Vec::<String>::new());
    world.pass(1);
    assert_eq!(world.engine.retention_step().expect("a look").missed, ["db/c"]);
}

fn collection_of(world: &World) -> (Arc<Collection>, Owner) {
    let collection = world.collection("c");
    let owner = Owner::Collection(Arc::clone(&collection));
    set_archive(world, &owner, Some("cold"));
    (collection, owner)
}

#[test]
fn t32_documents_are_archived_in_canonical_extended_json() {
    let world = World::new();
    let (collection, _) = collection_of(&world);
    let ttl = by("at").with("expireAfterSeconds", 30);
    world.index(&collection, &ttl);
    let document = item(7).with("at", date(START)).with("n", Value::Int64(5)).with("d", 1.5);
    world.put(&collection, &document).expect("inserted");
    world.pass(30);
    assert_eq!(world.drain(), 1);
    assert_eq!(
        world.archive.lines("cold"),
        [concat!(
            r#"{"database":"db","container":"c","_id":{"$numberInt":"7"},"_ts":1700000000,"#,
            r#""expired":"2023-11-14T22:13:50.000Z","rule":"dateIndex","index":"at_1","seconds":30,"#,
            r#""item":{"_id":{"$numberInt":"7"},"at":{"$date":{"$numberLong":"1700000000000"}},"#,
            r#""n":{"$numberLong":"5"},"d":{"$numberDouble":"1.5"}}}"#
        )]
    );
}

/// A document that has expired when it is written expires at the write, not at its date.
#[test]
fn t32_a_document_in_the_way_and_one_that_is_written_expired_are_archived() {
    let world = World::new();
    let (collection, owner) = collection_of(&world);
    let ttl = by("at").with("expireAfterSeconds", 0);
    world.index(&collection, &ttl);
    world.pass_millis(125);
    world.put(&collection, &item(1).with("at", date(START - 1000))).expect("inserted");
    world.put(&collection, &item(1).with("v", 2)).expect("the expired one is no obstacle");
    assert_eq!(world.drain(), 1);
    let lines = world.archive.lines("cold");
    assert_eq!(lines.len(), 1);
    assert!(lines[0].contains(r#""expired":"2023-11-14T22:13:20.125Z""#), "{}", lines[0]);
    world.archive.set_full("cold", true);
    world.put(&collection, &item(3).with("at", date(START))).expect("inserted");
    let dropped = world.engine.drop_collection(&collection);
    assert_eq!(dropped, Err(Error::Unarchived));
    let other = world.collection("other");
    let renamed = world.engine.rename_collection(&other, "db", "c", true);
    assert_eq!(renamed.map(drop), Err(Error::Unarchived));
    world.engine.change_lifecycle(&owner, |settings| settings.archive = None).expect("a valid setting");
    world.engine.rename_collection(&other, "db", "c", true).expect("renamed");
}

/// Each of them is written already expired, while no archive is named, and precedes those that are archived and not
/// removed yet.
#[test]
fn t32_documents_written_expired_in_descending_order_have_one_line_each() {
    for limit in [1, 3] {
        let world = World::new();
        let (collection, owner) = collection_of(&world);
        world.index(&collection, &by("at").with("expireAfterSeconds", 0));
        let mut purged = 0;
        for pair in 0..100_i32 {
            set_archive(&world, &owner, None);
            for number in [2 * pair, 2 * pair + 1] {
                let at = date(START - 1 - u64::from(number.unsigned_abs()));
                world.put(&collection, &item(number).with("at", at)).expect("inserted");
            }
            set_archive(&world, &owner, Some("cold"));
            purged += world.engine.purge_step(limit).expect("a step").purged_items;
        }
        assert!(purged >= 100, "each step has removed something: {purged}");
        assert_eq!(purged + world.drain(), 200);
        let mut lines = world.archive.lines("cold");
        let all = lines.len();
        lines.sort();
        lines.dedup();
        assert_eq!((lines.len(), all), (200, 200), "each of them, once");
    }
}

/// A failure in one directory does not delay another.
#[test]
fn t32_another_directory_does_not_wait_for_one_that_is_full() {
    let world = archived(r#","defaultTtl":10"#);
    world.create("a", r#""id":"x""#).expect("created");
    world.archive.set_full("cold", true);
    world.pass(10);
    assert_eq!(world.drain(), 0);
    set_archive(&world, &world.owner(), Some("warm"));
    assert_eq!((world.drain(), world.archive.lines("warm").len()), (1, 1));
    assert_eq!(status(&world).failure, None);
}

/// A collection that replaces another gets the other's archive and deletion record together with its name, not before.
#[test]
fn t32_what_replaces_a_collection_has_its_archive_and_record_from_then_on() {
    let world = World::new();
    let (_, owner) = collection_of(&world);
    world
        .engine
        .change_lifecycle(&owner, |settings| settings.deletion_record = true)
        .expect("a valid setting");
    let staged = world.collection("staged");
    world.index(&staged, &by("at").with("expireAfterSeconds", 0));
    world.put(&staged, &item(1).with("at", date(START + 10))).expect("inserted");
    world.put(&staged, &item(2).with("at", date(START - 10))).expect("inserted");
    world.drain();
    assert_eq!(world.archive.lines("cold"), Vec::<String>::new());
    assert_eq!(world.engine.deletion_logs().expect("logs").len(), 1);

    let replaced = world.engine.replace_collection(&staged, "db", "c").expect("replaced");
    assert_eq!(Owner::Collection(Arc::clone(&replaced)).lifecycle(), owner.lifecycle());
    world.pass(10);
    assert_eq!(world.drain(), 1);
    let lines = world.archive.lines("cold");
    assert!(
        lines.len() == 1 && lines[0].starts_with(r#"{"database":"db","container":"c","_id":"#),
        "{lines:?}"
    );
    let logs = world.engine.deletion_logs().expect("logs");
    assert_eq!(logs.iter().map(|log| (log.count, log.is_open)).collect::<Vec<_>>(), [(2, false), (2, true)]);
    let page = world.engine.deletion_page(logs[1].log, 0).expect("a page");
    let text = String::from_utf8(page.lines).expect("text");
    assert!(text.contains(r#""event":"opened","api":"mongodb","database":"db","container":"c","#), "{text}");
    assert!(!text.contains("staged"), "{text}");
}

#[test]
fn t32_a_database_of_collections_is_dropped_when_its_expired_documents_are_archived() {
    let world = World::new();
    let (collection, _) = collection_of(&world);
    world.index(&collection, &by("at").with("expireAfterSeconds", 0));
    world.put(&collection, &item(1).with("at", date(START + 10))).expect("inserted");
    world.pass(10);
    world.archive.set_full("cold", true);
    assert_eq!(world.engine.drop_collection_database("db"), Err(Error::Unarchived));
    world.archive.set_full("cold", false);
    world.engine.drop_collection_database("db").expect("dropped");
    assert_eq!(world.archive.lines("cold").len(), 1);
}

/// A transaction over several documents archives the expired items that it removes when it is committed, and not before.
#[test]
fn t32_a_draft_moves_nothing_aside() {
    let world = World::new();
    let (collection, owner) = collection_of(&world);
    let default_ttl = Document::new()
        .with("key", Document::new().with("_ts", 1))
        .with("name", "_ts_1")
        .with("expireAfterSeconds", 10);
    world.index(&collection, &default_ttl);
    assert_eq!(owner.default_ttl(), DefaultTtl::Seconds(10));
    world.put(&collection, &item(1)).expect("inserted");
    world.pass(10);
    let aside = || world.engine.archive_status(&owner).expect("figures").expect("configured").aside.items;
    let mut workspace = world.engine.begin().expect("begun");
    workspace.insert(&collection, crate::collections::raw(&item(1).with("v", 2))).expect("inserted");
    assert_eq!(aside(), 0);
    world.engine.commit(workspace, None).wait().expect("committed");
    assert_eq!(aside(), 1);
    assert_eq!(world.drain(), 1);
    assert_eq!(world.archive.lines("cold").len(), 1);
}

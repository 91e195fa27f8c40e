//! Other countings than from the last write (T33), rule by rule.

use std::time::Duration;

use document::Path;
use engine::collection::{Decision, Target};
use engine::{
    Api, ArchiveDirectory, Countdown, Error, Holder, ItemName, Lifecycle, Operation, Outcome, Patch,
    Precondition, QueryRequest,
};

use crate::collections::{by, date, item, raw};
use crate::world::{START, World, body, definition, key, parse, value};

pub(crate) fn holder(world: &World) -> Holder {
    world.engine.holder(Api::NoSql, "db", "c").expect("made by the test")
}

pub(crate) fn wish(world: &World, wish: impl FnOnce(&mut Lifecycle)) {
    world.engine.change_lifecycle(&holder(world), wish).expect("a wish");
}

fn path(text: &str) -> Option<Path> {
    Path::parse(text).ok()
}

/// A write that keeps the countdown.
fn keep(world: &World, operation: Operation) -> Result<Outcome, Error> {
    world.engine.write_with(&world.current(), Some(key("a")), operation, Countdown::Keep).wait()
}

fn replace(text: &str) -> Operation {
    let (name, body) = (ItemName::Id("x".into()), body("a", text));
    Operation::Replace { name, body, precondition: Precondition::None }
}

/// Reads as a front end does: what the read has to restart is restarted.
pub(crate) fn read(world: &World, id: &str) -> Result<Outcome, Error> {
    let name = ItemName::Id(id.into());
    let outcome = world.engine.read(&world.current(), &key("a"), &name, &Precondition::None)?;
    if let Some(touch) = outcome.touch.as_ref().and_then(|touch| world.engine.touch(touch)) {
        touch.wait().expect("touched");
    }
    Ok(outcome)
}

fn seconds_left(world: &World) -> Option<u64> {
    read(world, "x").expect("it lives").seconds_left
}

/// The item lives for so many seconds more, and not longer.
pub(crate) fn assert_lives(world: &World, seconds: u64, what: &str) {
    let now = world.engine.now().expect("a time");
    assert_dies(world, now.seconds() + seconds, what);
}

/// The item dies at that second.
pub(crate) fn assert_dies(world: &World, at: u64, what: &str) {
    world.pass(at - 1 - world.engine.now().expect("a time").seconds());
    assert!(world.is_alive("a", "x"), "{what}");
    assert_eq!((world.ids("SELECT * FROM c").len(), world.counts()), (1, (1, 0)), "{what}");
    world.pass(1);
    assert!(!world.is_alive("a", "x"), "{what}");
    assert_eq!((world.ids("SELECT * FROM c").len(), world.counts()), (0, (0, 1)), "{what}");
    assert_eq!(world.drain(), 1, "{what}");
    world.engine.check_index(&world.current()).expect("nothing is left behind");
    assert_eq!(world.counts(), (0, 0));
}

#[test]
fn t33_answers_tell_the_seconds_left() {
    let world = World::new();
    world.container(r#","defaultTtl":10"#);
    let create = |text| Operation::Create { body: body("a", text) };
    let created = world.run("a", create(r#""id":"x""#)).expect("created");
    assert_eq!(created.seconds_left, Some(10));
    world.clock.advance(std::time::Duration::from_millis(2500));
    assert_eq!(seconds_left(&world), Some(8), "a second that has begun counts");
    world.clock.advance(std::time::Duration::from_millis(7499));
    assert_eq!(seconds_left(&world), Some(1), "the living have some time left");
    assert_eq!(world.upsert("a", r#""id":"x","ttl":3"#).expect("written").seconds_left, Some(3));
    assert_eq!(world.upsert("a", r#""id":"x","ttl":-1"#).expect("written").seconds_left, None);
    assert_eq!(seconds_left(&world), None);
    assert_eq!(world.delete("a", "x").expect("deleted").seconds_left, None);
    world.set_default(None);
    assert_eq!(world.run("a", create(r#""id":"x","ttl":5"#)).expect("created").seconds_left, None);
    world.set_default(Some(7));
    assert_eq!(seconds_left(&world), Some(5));
}

#[test]
fn t33_a_write_may_keep_the_countdown() {
    let patch = r#"[{"op":"set","path":"/v","value":1}]"#;
    let patch = Operation::Patch {
        name: ItemName::Id("x".into()),
        patch: Patch::from_value(&value(patch)).expect("a patch"),
        precondition: Precondition::None,
    };
    let upsert = Operation::Upsert {
        body: body("a", r#""id":"x","ttl":2000,"v":2"#),
        precondition: Precondition::None,
    };
    let ways = [(2000, patch), (2000, upsert), (2000, replace(r#""id":"x","ttl":2000"#))];
    let others = [(1000, replace(r#""id":"x""#)), (3000, replace(r#""id":"x","ttl":3000"#))];
    for (lives, operation) in ways.into_iter().chain(others) {
        let mut world = World::new();
        world.container(r#","defaultTtl":1000"#);
        let made = world.create("a", r#""id":"x","ttl":2000"#).expect("created");
        world.pass(4);
        let what = format!("{operation:?}");
        let kept = keep(&world, operation).expect("it lives");
        assert_eq!(kept.seconds_left, Some(lives - 4), "{what}");
        let item = kept.item.expect("an item");
        assert_eq!(item.ts, START + 4, "it is a write all the same");
        assert_ne!(item.etag, made.etag);
        world.restart();
        // A restart takes time.
        assert_dies(&world, START + lives, &what);
    }
}

#[test]
fn t33_a_kept_countdown_is_kept_again_and_an_ordinary_write_restarts_it() {
    let world = World::new();
    world.container(r#","defaultTtl":10"#);
    world.create("a", r#""id":"x""#).expect("created");
    for seconds in [3, 3, 3] {
        world.pass(seconds);
        keep(&world, replace(r#""id":"x""#)).expect("it lives");
    }
    assert_eq!(seconds_left(&world), Some(1));
    world.replace("a", "x", r#""id":"x""#).expect("it lives");
    assert_eq!(seconds_left(&world), Some(10));
    // D follows, whatever it is counted from (T11).
    world.pass(3);
    keep(&world, replace(r#""id":"x""#)).expect("it lives");
    world.set_default(Some(100));
    assert_eq!(seconds_left(&world), Some(97));
    world.set_default(Some(-1));
    assert_eq!(seconds_left(&world), None);
    world.set_default(Some(5));
    assert_lives(&world, 2, "of five seconds three had passed");
    let created = keep(&world, Operation::Create { body: body("a", r#""id":"x""#) }).expect("created");
    assert_eq!(created.seconds_left, Some(5), "there is nothing to keep");
}

/// T13, T15: a shorter ttl may let the countdown end before it was written.
#[test]
fn t33_a_kept_countdown_may_be_over_at_once() {
    for history in ["", r#","changeFeedPolicy":{"retentionDuration":10}"#] {
        let world = World::new();
        world.container(&format!(r#","defaultTtl":-1{history}"#));
        world.create("a", r#""id":"x","ttl":20"#).expect("created");
        world.pass(10);
        let dead = keep(&world, replace(r#""id":"x","ttl":5"#)).expect("written");
        assert_eq!(dead.seconds_left, Some(0));
        assert!(!world.is_alive("a", "x"));
        assert_eq!(world.counts().0, 0);
        // D off revives nobody, and neither does another rule.
        world.set_default(None);
        assert!(!world.is_alive("a", "x"));
        world.set_default(Some(1000));
        assert!(!world.is_alive("a", "x"));
        world.create("a", r#""id":"x""#).expect("the id is free");
        assert!(world.is_alive("a", "x"));
    }
}

/// The truth table of T2 with a property in the place of `_ts`.
#[test]
fn t33_a_base_property_takes_the_place_of_ts() {
    let ago = format!(r#","created":{}"#, START - 5);
    let ahead = format!(r#","created":{}"#, START + 5);
    let fraction = format!(r#","created":{}.5"#, START - 6);
    let text = format!(r#","created":"{}""#, START - 5);
    let cells = [
        (Some(10), "", ago.as_str(), Some(5)),
        (Some(10), r#","ttl":7"#, &ago, Some(2)),
        (Some(10), r#","ttl":-1"#, &ago, None),
        (Some(-1), "", &ago, None),
        (Some(-1), r#","ttl":7"#, &ago, Some(2)),
        (None, r#","ttl":7"#, &ago, None),
        (Some(10), "", &ahead, Some(15)),
        (Some(10), r#","ttl":7"#, &ahead, Some(12)),
        (Some(10), "", "", Some(10)),
        (Some(10), "", &text, Some(10)),
        (Some(10), r#","ttl":7"#, r#","created":null"#, Some(7)),
        (Some(10), "", r#","created":{"created":1}"#, Some(10)),
        (Some(10), "", &fraction, Some(5)),
    ];
    for (default, own, created, lives) in cells {
        let world = World::new();
        world.container(r#","ttlPropertyPath":"/created""#);
        world.set_default(default);
        let what = format!("{default:?} {own} {created}");
        let text = format!(r#""id":"x"{own}{created}"#);
        let outcome = world.run("a", Operation::Create { body: body("a", &text) }).expect("created");
        assert_eq!((outcome.seconds_left, outcome.item.expect("an item").ts), (lives, START), "{what}");
        assert_eq!(world.ids(&format!("SELECT * FROM c WHERE c._ts = {START}")).len(), 1, "{what}");
        match lives {
            None => {
                world.pass(1_000_000);
                assert!(world.is_alive("a", "x"), "{what}");
            }
            Some(_) if created == fraction => {
                world.clock.advance(std::time::Duration::from_millis(4499));
                assert!(world.is_alive("a", "x"));
                world.clock.advance(std::time::Duration::from_millis(1));
                assert!(!world.is_alive("a", "x"));
            }
            Some(lives) => assert_lives(&world, lives, &what),
        }
    }
}

#[test]
fn t33_a_base_property_applies_to_what_is_written_from_then_on() {
    let world = World::new();
    world.container(r#","defaultTtl":100"#);
    let text = format!(r#""id":"x","created":{}"#, START - 50);
    world.create("a", &text).expect("created");
    let chosen = definition("c", r#","defaultTtl":100,"ttlPropertyPath":"/created""#);
    world.engine.replace_container(&world.current(), chosen, &Precondition::None).expect("a change");
    assert_eq!(seconds_left(&world), Some(100), "as it was written");
    world.replace("a", "x", &text).expect("it lives");
    assert_eq!(seconds_left(&world), Some(50));
    // Not every client can send the property: leaving it out keeps it.
    world.set_default(Some(60));
    assert_eq!(world.current().definition.ttl_property_path(), path("/created"));
    assert_eq!(seconds_left(&world), Some(10));
    let given_up = definition("c", r#","defaultTtl":60,"ttlPropertyPath":"""#);
    world.engine.replace_container(&world.current(), given_up, &Precondition::None).expect("a change");
    assert_eq!(world.current().definition.to_value().get("ttlPropertyPath"), None);
    assert_eq!(seconds_left(&world), Some(10), "as it was written");
    world.replace("a", "x", &text).expect("it lives");
    assert_eq!(seconds_left(&world), Some(60));
    let refused =
        world.engine.change_lifecycle(&holder(&world), |wishes| wishes.ttl_property_path = path("/x"));
    assert!(refused.expect_err("a wish").to_string().contains("part of its definition"));
}

/// T13, T22: what is dead on arrival is inserted and gone, wherever the purge's hand stands, and nothing revives it.
#[test]
fn t33_an_item_whose_countdown_is_over_is_inserted_and_gone() {
    let world = World::new();
    world.container(r#","defaultTtl":10,"ttlPropertyPath":"/created""#);
    for (id, age) in [(1, 10), (2, 1000), (3, 11), (4, START)] {
        let text = format!(r#""id":"{id}","created":{}"#, START - age);
        assert_eq!(
            world.run("a", Operation::Create { body: body("a", &text) }).expect("created").seconds_left,
            Some(0)
        );
        assert!(!world.is_alive("a", &id.to_string()));
        assert_eq!(world.counts(), (0, 1));
        assert_eq!(world.drain(), 1);
    }
    world.create("a", &format!(r#""id":"x","created":{}"#, START - 10)).expect("created");
    world.set_default(Some(50));
    assert!(!world.is_alive("a", "x"), "it was dead");
    world.create("a", &format!(r#""id":"y","created":{}"#, START - 10)).expect("created");
    assert!(world.is_alive("a", "y"), "whom the old rule never met");
    assert_eq!((world.counts(), world.drain(), world.counts()), ((1, 1), 1, (1, 0)));
    world.engine.check_index(&world.current()).expect("nothing is left behind");
}

#[test]
fn t33_an_item_may_name_the_instant_of_its_death() {
    for (names, lives) in [
        (format!("{}", START + 7), Some(7)),
        ("\"2023-11-14T22:13:27Z\"".to_owned(), Some(7)),
        (format!("{}", START - 7), Some(0)),
        ("\"soon\"".to_owned(), None),
        ("null".to_owned(), None),
    ] {
        for default in [None, Some(-1), Some(5), Some(100)] {
            let world = World::new();
            world.container("");
            wish(&world, |wishes| wishes.expire_at_path = path("/end/at"));
            world.set_default(default);
            // `ttl` = -1 stops the rule of ttl alone, as with dates (T27).
            for ttl in ["", r#","ttl":-1"#] {
                let by_ttl = default.filter(|ttl_default| *ttl_default > 0 && ttl.is_empty());
                let expected = lives.into_iter().chain(by_ttl.map(i64::unsigned_abs)).min();
                let text = format!(r#""id":"x","end":{{"at":{names}}}{ttl}"#);
                let made = world.upsert("a", &text).expect("written");
                assert_eq!(made.seconds_left, expected, "{names} {default:?} {ttl}");
                assert_eq!(world.is_alive("a", "x"), expected != Some(0));
                assert_eq!(world.counts().0, u64::from(expected != Some(0)));
                let since = format!("SELECT * FROM c WHERE c._ts >= {START}");
                assert_eq!(world.ids(&since).len() as u64, world.counts().0, "{names} {default:?} {ttl}");
            }
        }
    }
}

#[test]
fn t13_t33_giving_up_a_named_death_revives_nobody() {
    let world = World::new();
    world.container("");
    wish(&world, |wishes| wishes.expire_at_path = path("/at"));
    for (id, at) in [("dead", START + 5), ("x", START + 50)] {
        world.create("a", &format!(r#""id":"{id}","at":{at}"#)).expect("created");
    }
    world.pass(5);
    wish(&world, |wishes| wishes.expire_at_path = None);
    assert!(!world.is_alive("a", "dead"));
    assert_eq!(world.counts(), (1, 1));
    let recent = format!("SELECT * FROM c WHERE c._ts >= {START}");
    assert_eq!(world.ids(&recent), ["x"]);
    assert_eq!(world.drain(), 1);
    world.pass(100);
    assert!(world.is_alive("a", "x"));
    // Chosen again, it applies to what is written from then on.
    wish(&world, |wishes| wishes.expire_at_path = path("/at"));
    assert_eq!((world.counts(), world.drain()), ((1, 0), 0));
    world.replace("a", "x", &format!(r#""id":"x","at":{}"#, START + 50)).expect("it lives");
    assert_eq!((world.counts(), world.drain()), ((0, 1), 1));
}

#[test]
fn t33_reads_restart_a_sliding_countdown_and_change_nothing_else() {
    let mut world = World::new();
    world.container(r#","defaultTtl":100"#);
    wish(&world, |wishes| wishes.sliding = true);
    let made = world.create("a", r#""id":"x","ttl":50"#).expect("created");
    world.create("a", r#""id":"y""#).expect("created");
    for _ in 0..10 {
        world.pass(40);
        assert_eq!(seconds_left(&world), Some(50));
        let item = world.read("a", "x").expect("it lives");
        assert_eq!((item.ts, item.etag, item.sequence), (made.ts, made.etag, made.sequence));
    }
    assert!(!world.is_alive("a", "y"), "nobody has read it");
    world.restart();
    world.drain();
    assert_eq!(world.ids("SELECT * FROM c"), ["x"]);
    let created = format!("SELECT * FROM c WHERE c._ts = {START}");
    assert_eq!(world.ids(&created), ["x"]);
    assert_dies(&world, START + 450, "since the last read");
}

/// Who asks for known ids reads items; who asks otherwise looks at them.
#[test]
fn t33_a_query_for_known_ids_reads_and_any_other_does_not() {
    for (query, reads) in [
        ("SELECT * FROM c WHERE c.id IN ('x', 'y')", true),
        ("SELECT * FROM c WHERE (c.id = 'x' AND c.pk = 'a') OR (c.id = 'z' AND c.pk = 'b')", true),
        ("SELECT * FROM c WHERE c.id IN ('y')", false),
        ("SELECT * FROM c WHERE c.id IN ('x') AND c.v = 2", false),
        ("SELECT * FROM c", false),
        ("SELECT * FROM c WHERE c.v = 1", false),
        ("SELECT c.id FROM c WHERE c.id = 'x'", false),
        ("SELECT VALUE COUNT(1) FROM c WHERE c.id = 'x'", false),
    ] {
        let world = World::new();
        world.container(r#","defaultTtl":10"#);
        wish(&world, |wishes| wishes.sliding = true);
        world.create("a", r#""id":"x","v":1"#).expect("created");
        world.pass(6);
        let parsed = parse(query);
        let page =
            world.engine.query(&world.current(), &QueryRequest::new(Some(&parsed), 10)).expect("a page");
        for touch in &page.touches {
            world.engine.touch(touch).expect("the first").wait().expect("touched");
        }
        assert_eq!(page.touches.len(), usize::from(reads), "{query}");
        assert_lives(&world, if reads { 10 } else { 4 }, query);
    }
}

#[test]
fn t33_sliding_begins_and_ends_with_the_wish() {
    let world = World::new();
    world.container(r#","defaultTtl":10"#);
    world.create("a", r#""id":"x""#).expect("created");
    wish(&world, |wishes| wishes.sliding = true);
    world.pass(5);
    assert_eq!(seconds_left(&world), Some(5), "written before the wish");
    world.replace("a", "x", r#""id":"x""#).expect("it lives");
    world.pass(5);
    assert_eq!(seconds_left(&world), Some(10));
    world.pass(5);
    // A countdown that a read has restarted can be kept by a write.
    assert_eq!(keep(&world, replace(r#""id":"x""#)).expect("it lives").seconds_left, Some(5));
    assert_eq!(seconds_left(&world), Some(10));
    wish(&world, |wishes| wishes.sliding = false);
    world.pass(4);
    assert_eq!(seconds_left(&world), Some(6), "what was restarted stays so; no read restarts it any more");
    assert_lives(&world, 6, "as it was read last while it was sliding");
    let collection = world.collection("d");
    let holder = Holder::Collection(collection);
    let refused = world.engine.change_lifecycle(&holder, |wishes| wishes.sliding = true);
    assert!(refused.expect_err("a wish").to_string().contains("not supported"));
}

/// A batch is one commit, and its answers are those of its operations in their order.
#[test]
fn t33_in_a_batch_a_write_keeps_the_countdown_and_the_read_behind_it_restarts_it() {
    let world = World::new();
    world.container(r#","defaultTtl":20"#);
    wish(&world, |wishes| wishes.sliding = true);
    world.create("a", r#""id":"x""#).expect("created");
    world.pass(15);
    let read = || Operation::Read { name: ItemName::Id("x".into()), precondition: Precondition::None };
    let operations = vec![replace(r#""id":"x","n":1"#), read()];
    let answers = world.engine.batch_with(&world.current(), &key("a"), operations, Countdown::Keep).wait();
    let left: Vec<_> = answers.expect("done").iter().map(|outcome| outcome.seconds_left).collect();
    assert_eq!(left, [Some(5), Some(20)]);
    assert_lives(&world, 20, "as it was read last");
}

/// A header knows the second of the write alone. Whoever is told when an item died is told the instant, and no earlier one.
#[test]
fn t32_t33_who_is_written_dead_has_died_at_that_instant() {
    for (archived, recorded) in [(true, false), (false, true), (true, true)] {
        let world = World::new();
        world.container(r#","defaultTtl":10,"ttlPropertyPath":"/created""#);
        wish(&world, |wishes| {
            wishes.archive = ArchiveDirectory::parse("cold").filter(|_| archived);
            wishes.deletion_record = recorded;
            wishes.expire_at_path = path("/at");
        });
        world.create("a", r#""id":"x""#).expect("created");
        world.clock.advance(Duration::from_millis(5567));
        world.create("a", &format!(r#""id":"y","created":{}"#, START - 10)).expect("created");
        world.create("a", &format!(r#""id":"z","at":{}"#, START + 5)).expect("created");
        keep(&world, replace(r#""id":"x","ttl":3"#)).expect("replaced");
        assert_eq!(world.counts(), (0, 0), "nobody stands in a queue");
        world.pass(7);
        assert_eq!(world.drain(), if archived { 3 } else { 0 });
        let mut told = vec![world.archive.lines("cold")];
        for log in world.engine.deletion_logs_of(&holder(&world)).expect("logs") {
            let lines = world.engine.deletion_page(log.log, 0).expect("a page").lines;
            let lines = String::from_utf8(lines).expect("text");
            told.push(lines.lines().filter(|line| line.contains("purged")).map(str::to_owned).collect());
        }
        told.retain(|lines| !lines.is_empty());
        assert_eq!(told.len(), usize::from(archived) + usize::from(recorded));
        for line in told.into_iter().inspect(|lines| assert_eq!(lines.len(), 3)).flatten() {
            assert!(line.contains(r#""expired":"2023-11-14T22:13:25.567Z""#), "{line}");
        }
        world.engine.check_index(&world.current()).expect("nothing is left behind");
    }
}

#[test]
fn t33_documents_may_be_counted_from_a_property_or_name_their_death() {
    let world = World::new();
    let collection = world.collection("d");
    let holder = Holder::Collection(collection.clone());
    let chosen = world.engine.change_lifecycle(&holder, |wishes| {
        (wishes.ttl_property_path, wishes.expire_at_path) = (path("/created"), path("/at"));
    });
    chosen.expect("a wish");
    world.index(&collection, &by("_ts").with("expireAfterSeconds", 10));
    let created = |id, seconds: u64| item(id).with("created", seconds as i64);
    let documents = [
        created(1, START - 5),
        created(2, START - 5).with("ttl", 7),
        created(3, START - 5).with("ttl", -1),
        created(4, START - 10),
        item(5).with("created", date(START - 5)),
        item(6).with("at", date(START + 3)),
        item(7).with("ttl", -1).with("at", START as i64 + 8),
    ];
    for document in &documents {
        world.put(&collection, document).expect("inserted");
    }
    let mut deaths = Vec::new();
    for second in 0..=10 {
        let reading = world.engine.reading(&[&collection]).expect("a reading");
        let living = reading.natural(&collection, None, storage::Direction::Forward, 100, usize::MAX);
        let living: Vec<i32> = living.expect("a page").iter().map(crate::collections::id_of).collect();
        for id in 1..=7 {
            if !living.contains(&id) && !deaths.iter().any(|(known, _)| *known == id) {
                deaths.push((id, second));
            }
        }
        let check = world.engine.check_collection(&collection).expect("a check");
        assert!(check.faults.is_empty(), "{:?}", check.faults);
        world.pass(1);
    }
    assert_eq!(deaths, [(4, 0), (2, 2), (6, 3), (1, 5), (7, 8), (5, 10)]);
    assert_eq!(world.drain(), 6);
    let renewed = created(3, START).with("ttl", 20);
    let target = Target::Id(bson::Value::Int32(3));
    world.modify(&collection, target, Decision::Replace(raw(&renewed))).expect("replaced");
    world.pass(9);
    assert_eq!(world.drain(), 1, "twenty seconds after it says it was created");
}

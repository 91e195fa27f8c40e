//! TTL modes other than "since the last write" (T33), rule by rule.

use document::Path;
use engine::collection::{Decision, Target};
use engine::{
    ArchiveDirectory, Countdown, Error, ItemName, Lifecycle, Operation, Outcome, Owner, Precondition,
};

use crate::collections::{by, date, item, raw};
use crate::world::{START, World, body, definition, key};

pub(crate) fn set_lifecycle(world: &World, change: impl FnOnce(&mut Lifecycle)) {
    world.engine.change_lifecycle(&world.owner(), change).expect("a valid setting");
}

fn path(text: &str) -> Option<Path> {
    Path::parse(text).ok()
}

/// Runs a write that keeps the countdown.
fn keep(world: &World, operation: Operation) -> Result<Outcome, Error> {
    world.engine.write_with(&world.current(), Some(key("a")), operation, Countdown::Keep).wait()
}

fn replace(text: &str) -> Operation {
    let (name, body) = (ItemName::Id("x".into()), body("a", text));
    Operation::Replace { name, body, precondition: Precondition::None }
}

/// Reads as a front end does, and restarts the countdown that the read has to restart.
pub(crate) fn read(world: &World, id: &str) -> Result<Outcome, Error> {
    let name = ItemName::Id(id.into());
    let outcome = world.engine.read(&world.current(), &key("a"), &name, &Precondition::None)?;
    if let Some(renewal) = outcome.renewal.as_ref().and_then(|renewal| world.engine.renew(renewal)) {
        renewal.wait().expect("touched");
    }
    Ok(outcome)
}

fn seconds_left(world: &World) -> Option<u64> {
    read(world, "x").expect("it lives").seconds_left
}

/// Checks that the item expires at that second.
pub(crate) fn assert_expires(world: &World, at: u64, what: &str) {
    world.pass(at - 1 - world.engine.now().expect("a time").seconds());
    assert!(world.is_living("a", "x"), "{what}");
    assert_eq!((world.ids("SELECT * FROM c").len(), world.counts()), (1, (1, 0)), "{what}");
    world.pass(1);
    assert!(!world.is_living("a", "x"), "{what}");
    assert_eq!((world.ids("SELECT * FROM c").len(), world.counts()), (0, (0, 1)), "{what}");
    assert_eq!(world.drain(), 1, "{what}");
    world.engine.check_index(&world.current()).expect("nothing is left behind");
    assert_eq!(world.counts(), (0, 0));
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
        world.engine.change_lifecycle(&world.owner(), |settings| settings.ttl_property_path = path("/x"));
    assert!(refused.expect_err("a valid setting").to_string().contains("part of its definition"));
}

/// A header has only the second of the write. Evidence has the instant at which an item expired, and no earlier one.
#[test]
fn t32_t33_an_item_written_expired_expired_at_that_instant() {
    for (archived, recorded) in [(true, false), (false, true), (true, true)] {
        let world = World::new();
        world.container(r#","defaultTtl":10,"ttlPropertyPath":"/created""#);
        set_lifecycle(&world, |settings| {
            settings.archive = ArchiveDirectory::parse("cold").filter(|_| archived);
            settings.deletion_record = recorded;
            settings.expire_at_path = path("/at");
        });
        world.create("a", r#""id":"x""#).expect("created");
        world.pass_millis(5567);
        world.create("a", &format!(r#""id":"y","created":{}"#, START - 10)).expect("created");
        world.create("a", &format!(r#""id":"z","at":{}"#, START + 5)).expect("created");
        keep(&world, replace(r#""id":"x","ttl":3"#)).expect("replaced");
        assert_eq!(world.counts(), (0, 0), "no queue has an item");
        world.pass(7);
        assert_eq!(world.drain(), if archived { 3 } else { 0 });
        let mut told = vec![world.archive.lines("cold")];
        for log in world.engine.deletion_logs_of(&world.owner()).expect("logs") {
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
fn t33_documents_may_count_from_a_property_or_name_their_expiry() {
    let world = World::new();
    let collection = world.collection("d");
    let owner = Owner::Collection(collection.clone());
    let chosen = world.engine.change_lifecycle(&owner, |settings| {
        (settings.ttl_property_path, settings.expire_at_path) = (path("/created"), path("/at"));
    });
    chosen.expect("a valid setting");
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
    let mut expiries = Vec::new();
    for second in 0..=10 {
        let reading = world.engine.reading(&[&collection]).expect("a reading");
        let living = reading.natural(&collection, None, storage::Direction::Forward, 100, usize::MAX);
        let living: Vec<i32> = living.expect("a page").iter().map(crate::collections::id_of).collect();
        for id in 1..=7 {
            if !living.contains(&id) && !expiries.iter().any(|(known, _)| *known == id) {
                expiries.push((id, second));
            }
        }
        let check = world.engine.check_collection(&collection).expect("a check");
        assert!(check.faults.is_empty(), "{:?}", check.faults);
        world.pass(1);
    }
    assert_eq!(expiries, [(4, 0), (2, 2), (6, 3), (1, 5), (7, 8), (5, 10)]);
    assert_eq!(world.drain(), 6);
    let renewed = created(3, START).with("ttl", 20);
    let target = Target::Id(bson::Value::Int32(3));
    world.modify(&collection, target, Decision::Replace(raw(&renewed))).expect("replaced");
    world.pass(9);
    assert_eq!(world.drain(), 1, "twenty seconds after it says it was created");
}

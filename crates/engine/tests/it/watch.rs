//! Watches over collections: the events of collections that are created and dropped (T28, decision 0014).

use bson::{Document, RawDocument};
use engine::{CollectionDefinition, Error, EventKind, Position, Watch, WatchEvent, Watched};

use crate::world::World;

fn database() -> Watch {
    Watch::Database("db".into())
}

/// Returns the events of a watch after a position.
fn told(world: &World, watch: &Watch, after: Position) -> Result<Vec<String>, Error> {
    let barrier = world.engine.barrier().expect("a barrier");
    let page = world.engine.watch_page(watch, &barrier, after, 100)?;
    assert_eq!(page.next, barrier.position());
    Ok(page.events.iter().map(short).collect())
}

fn short(event: &WatchEvent) -> String {
    let what = match &event.what {
        Watched::Item(_, item) => match item.kind {
            EventKind::Create => "insert".to_owned(),
            EventKind::Replace => "replace".to_owned(),
            EventKind::Delete => "delete".to_owned(),
            EventKind::Expire => "expire".to_owned(),
        },
        Watched::Created => "create".to_owned(),
        Watched::Dropped => "drop".to_owned(),
        Watched::Renamed { name, .. } => format!("rename to {name}"),
        Watched::DatabaseDropped => "drop database".to_owned(),
    };
    format!("{what} {}", event.name)
}

fn insert(world: &World, name: &str, id: i32, ttl: i32) {
    let collection = match world.engine.collection("db", name) {
        Some(collection) => collection,
        None => {
            world.engine.create_collection("db", name, CollectionDefinition::default(), None).expect("made")
        }
    };
    let document = RawDocument::from_document(&Document::new().with("_id", id).with("ttl", ttl));
    let outcomes = world.engine.insert(&collection, vec![document], true, None).wait();
    outcomes.expect("an answer").pop().expect("one outcome").expect("inserted");
}

#[test]
fn t28_a_retired_collection_is_told_of_for_a_day_and_cleared_then() {
    let world = World::new();
    let since = world.engine.watch(&database()).expect("watched");
    insert(&world, "c", 1, -1);
    let collection = world.engine.collection("db", "c").expect("there");
    world.engine.drop_collection(&collection).expect("dropped");
    let expected = ["create c", "insert c", "drop c"];
    assert_eq!(told(&world, &database(), since).expect("told"), expected);
    assert!(world.engine.collection("db", "c").is_none());
    let late = RawDocument::from_document(&Document::new().with("_id", 2));
    let refused = world.engine.insert(&collection, vec![late], true, None).wait();
    assert!(matches!(refused, Err(Error::OwnerNotFound { .. })), "nothing is written to it: {refused:?}");

    let due = world.engine.purge_step(100).expect("a step").next_due;
    assert_eq!(due.map(|due| due.seconds() - world.engine.now().expect("now").seconds()), Some(24 * 60 * 60));
    assert_eq!(told(&world, &database(), since).expect("told"), expected, "not before its time");
    world.pass(24 * 60 * 60 + 1);
    assert_eq!(told(&world, &database(), since), Err(Error::HistoryGone));
    let cleared: u64 = (0..5).map(|_| world.engine.purge_step(100).expect("a step").other_entries).sum();
    assert!(cleared > 0, "its entries go");
    assert_eq!(world.engine.purge_step(100).expect("a step").next_due, None, "and nothing is left to do");
}

#[test]
fn t28_names_are_those_of_the_time() {
    let world = World::new();
    insert(&world, "before", 0, -1);
    let one = Watch::Collection { database: "db".into(), name: "a".into() };
    let since = world.engine.watch(&one).expect("watched");
    insert(&world, "a", 1, -1);
    insert(&world, "other", 2, -1);
    let rename = |from: &str, to: &str| {
        let collection = world.engine.collection("db", from).expect("there");
        world.engine.rename_collection(&collection, "db", to, true).expect("renamed");
    };
    rename("a", "x");
    insert(&world, "x", 3, -1);
    rename("before", "a");
    insert(&world, "a", 4, -1);
    rename("x", "a");
    insert(&world, "a", 5, -1);
    let expected = [
        "create a",
        "insert a",
        "rename to x a",
        "rename to a before",
        "insert a",
        "rename to a x",
        "insert a",
    ];
    assert_eq!(told(&world, &one, since).expect("told"), expected);
}

#[test]
fn an_unused_watch_covers_nothing_new() {
    let world = World::new();
    let keeps = |name: &str| {
        if world.engine.collection("db", name).is_none() {
            insert(&world, name, 1, -1);
        }
        let collection = world.engine.collection("db", name).expect("there");
        engine::Owner::Collection(collection).lifecycle().history_minutes.is_some()
    };
    assert!(!keeps("a"), "it costs every write, so it is off");
    world.engine.watch(&database()).expect("watched");
    assert!(keeps("a") && keeps("b"));
    world.pass(24 * 60 * 60 + 1);
    assert!(!keeps("c"));
    let since = world.engine.watch(&database()).expect("watched again");
    assert!(keeps("c"));
    assert_eq!(told(&world, &database(), since).expect("told"), ["insert c"; 0]);
}

#[test]
fn t28_the_owner_turns_the_feed_off_while_no_client_watches_and_the_next_watch_turns_it_on() {
    let world = World::new();
    insert(&world, "a", 1, -1);
    let owner = || engine::Owner::Collection(world.engine.collection("db", "a").expect("there"));
    let turn_off = || world.engine.change_lifecycle(&owner(), |settings| settings.history_minutes = None);
    let keeps = || owner().lifecycle().history_minutes.is_some();
    turn_off().expect("it is off");
    let since = world.engine.watch(&database()).expect("watched");
    let refused = turn_off();
    assert!(matches!(&refused, Err(Error::Invalid { .. })), "a client watches: {refused:?}");
    assert!(keeps());
    insert(&world, "a", 2, -1);
    assert_eq!(told(&world, &database(), since).expect("told"), ["insert a"]);
    world.pass(24 * 60 * 60 + 1);
    turn_off().expect("no client watches");
    assert!(!keeps());
    insert(&world, "a", 3, -1);
    let again = world.engine.watch(&database()).expect("watched again");
    assert!(keeps());
    insert(&world, "a", 4, -1);
    assert_eq!(told(&world, &database(), again).expect("told"), ["insert a"]);
    assert!(matches!(told(&world, &database(), since), Err(Error::HistoryGone)));
}

//! Emptying the store.

use std::sync::Arc;

use bson::{Document, RawDocument};
use engine::collection::{Collection, CollectionDefinition};
use engine::{Api, Error, ItemAddress};

use super::world::{World, definition, key};

fn collection(world: &World, name: &str) -> Arc<Collection> {
    let definition = CollectionDefinition::default();
    let collection = world.engine.create_collection("app", name, definition, None).expect("new");
    let document = RawDocument::from_document(&Document::new().with("_id", 1));
    world.engine.insert(&collection, vec![document], true, None).wait().expect("room for one");
    collection
}

#[test]
fn t13_everything_goes_at_once_and_nothing_comes_back() {
    let mut world = World::new();
    let before = world.container(r#","defaultTtl":10"#);
    world.create("a", r#""id":"x""#).expect("new");
    world.create("a", r#""id":"expired""#).expect("new");
    world.pass(10);
    world.create("a", r#""id":"y""#).expect("new");
    collection(&world, "c");
    world.engine.create_database("other", None).expect("new");
    let sequence = world.engine.last_sequence();

    assert_eq!(world.engine.reset(), Ok(3));
    assert!(world.engine.databases().is_empty() && world.engine.collection_databases().is_empty());
    assert!(world.engine.collections("app").is_empty());
    world.restart();
    assert!(world.engine.databases().is_empty() && world.engine.collection_databases().is_empty());

    world.engine.create_database("db", None).expect("its name is free");
    let after = world.container(r#","defaultTtl":-1"#);
    assert!(world.engine.last_sequence() > sequence, "what clients have seen is never ahead of us");
    assert_ne!(after.rid, before.rid);
    assert!(["x", "y", "expired"].iter().all(|id| !world.is_living("a", id)));
    world.create("a", r#""id":"x""#).expect("its name is free");
    assert_eq!(world.ids("SELECT * FROM c"), ["x"]);
    world.drain();
    assert_eq!(world.counts(), (1, 0));
    assert!(world.engine.collection("app", "c").is_none());
    let again = collection(&world, "c");
    assert_eq!(
        world
            .engine
            .usage_of(&world.engine.owner(Api::MongoDb, "app", &again.name).expect("there"))
            .expect("figures")
            .living
            .items,
        1
    );
}

#[test]
fn t31_a_hold_anywhere_keeps_everything() {
    let world = World::new();
    world.container("");
    world.create("a", r#""id":"x""#).expect("new");
    collection(&world, "c");
    let other = world.engine.create_database("other", None).expect("new");
    world.engine.create_container(&other, definition("last", ""), None).expect("new");

    let in_collection = world.engine.owner(Api::MongoDb, "app", "c").expect("there");
    let document = ItemAddress::DocumentId(bson::Value::Int32(1));
    let last = world.engine.owner(Api::NoSql, "other", "last").expect("there");
    let item = world.engine.owner(Api::NoSql, "db", "c").expect("there");
    let address = ItemAddress::Id(key("a"), "x".to_owned());
    let refused = |place: &str| match world.engine.reset() {
        Err(Error::Held { reason, .. }) => {
            assert!(reason.contains("case 7") && reason.contains(place), "{reason}");
        }
        other => panic!("{place}: {other:?}"),
    };
    world.engine.hold_item(&in_collection, &document, "case 7").expect("it lives");
    refused("'app/c'");
    world.engine.lift_item(&in_collection, &document).expect("it is held");
    world.engine.hold_item(&item, &address, "case 7").expect("it lives");
    refused("'db/c'");
    world.engine.lift_item(&item, &address).expect("it is held");
    world
        .engine
        .change_lifecycle(&last, |settings| settings.hold = Some("case 7".into()))
        .expect("a valid setting");
    refused("'other/last'");

    assert!(world.is_living("a", "x"), "nothing has gone");
    assert_eq!((world.engine.databases().len(), world.engine.collections("app").len()), (2, 1));
    world.engine.change_lifecycle(&last, |settings| settings.hold = None).expect("a valid setting");
    assert_eq!(world.engine.reset(), Ok(3));
}

//! A disk without free space for writes that make the store larger: writes that free space still run, and no request is left half done
//! without an error.

use bson::Value;
use engine::limits::INSERT_CHUNK_ITEMS;
use engine::{Error, ItemAddress, Owner, Precondition, Scrubbed};

use crate::collections::{by, item, raw};
use crate::holds::address;
use crate::world::{World, definition};

/// T19: on a full disk the purge frees space, and so do users by deleting items or letting them expire.
#[test]
fn t19_without_free_space_expired_items_are_purged_and_nothing_is_added() {
    let world = World::new();
    world.container(r#","defaultTtl":-1,"changeFeedPolicy":{"retentionDuration":10}"#);
    for id in ["expires", "goes", "stays"] {
        let ttl = if id == "expires" { r#","ttl":10"# } else { "" };
        world.create("a", &format!(r#""id":"{id}","n":1{ttl}"#)).expect("created");
    }
    world.set_disk_short(true);
    for outcome in [
        world.create("a", r#""id":"new""#).map(drop),
        world.upsert("a", r#""id":"stays","n":2"#).map(drop),
        world.replace("a", "stays", r#""id":"stays","n":2"#).map(drop),
        world.patch("a", "stays", r#"[{"op":"set","path":"/n","value":2}]"#).map(drop),
    ] {
        assert!(matches!(outcome, Err(Error::NoRoom(_))), "{outcome:?}");
    }
    world.delete("a", "goes").expect("deleted");
    world.pass(10);
    assert_eq!((world.drain(), world.counts()), (1, (1, 0)));
    world.set_default(Some(20));
    world.pass(20);
    assert_eq!((world.drain(), world.counts()), (1, (0, 0)));
    world.set_disk_short(false);
    world.create("a", r#""id":"new""#).expect("created");
}

/// T19: an index build that waits for free space does not make the purge wait.
#[test]
fn t19_the_purge_does_not_wait_for_room_with_an_index_build() {
    let world = World::new();
    let container = world.container(r#","defaultTtl":10"#);
    for number in 0..20 {
        world.create("a", &format!(r#""id":"{number}","n":{number}"#)).expect("created");
    }
    world.set_disk_short(true);
    let policy = r#","defaultTtl":10,"indexingPolicy":{"includedPaths":[{"path":"/n/?"}],"excludedPaths":[{"path":"/*"}]}"#;
    world
        .engine
        .replace_container(&container, definition("c", policy), &Precondition::None)
        .expect("a policy");
    world.pass(10);
    assert_eq!((world.drain(), world.counts()), (20, (0, 0)));
    world.create("a", r#""id":"new""#).expect_err("there is no room");
    world.set_disk_short(false);
    world.create("a", r#""id":"new","n":7"#).expect("created");
    world.pass(5);
    world.drain();
    assert_eq!(world.ids("SELECT * FROM c WHERE c.n = 7"), ["new"]);
}

/// T24: without free space for a scrub the bytes stay, and the missed bound is reported.
#[test]
fn t24_a_promise_that_is_missed_for_want_of_room_is_told() {
    let world = World::new();
    let kept = Owner::Container(world.container(r#","defaultTtl":10"#));
    world
        .engine
        .change_lifecycle(&kept, |settings| settings.max_purge_delay = Some(60))
        .expect("a valid setting");
    world.create("a", r#""id":"x""#).expect("created");
    world.pass(10);
    assert_eq!(world.drain(), 1);
    world.set_disk_short(true);
    world.pass(60);
    let look = world.engine.retention_step().expect("a look");
    assert!(matches!(look.failures[..], [Error::NoRoom(_)]), "{look:?}");
    assert_eq!((look.missed, look.scrubbed), (vec!["db/c".to_owned()], None));
    assert!(look.next_due.is_some(), "it is tried again");
    world.set_disk_short(false);
    assert_eq!(world.engine.retention_step().expect("a look").scrubbed, Some(Scrubbed::Done));
}

/// T31: a hold can be placed, and lifted, on a full disk, where the purge continues.
#[test]
fn t31_holds_are_placed_and_lifted_without_room() {
    let world = World::new();
    world.container(r#","defaultTtl":10"#);
    let collection = world.collection("c");
    world.create("a", r#""id":"x","n":1"#).expect("created");
    world.put(&collection, &item(1)).expect("inserted");
    world.set_disk_short(true);
    let kept = Owner::Collection(collection.clone());
    let document = ItemAddress::DocumentId(Value::Int32(1));
    for (owner, address) in [(world.owner(), address("a", "x")), (kept, document)] {
        world.engine.hold_item(&owner, &address, "case 7").expect("held");
        world.engine.lift_item(&owner, &address).expect("lifted");
        world.engine.hold_item(&owner, &address, "case 8").expect("held");
    }
    world.pass(100);
    assert_eq!(world.drain(), 0);
    assert!(world.is_living("a", "x"));
}

/// An insert runs in pieces. A piece that finds no free space is reported, whatever the result of the later ones.
#[test]
fn an_insert_of_many_tells_that_there_was_no_room_for_some() {
    let world = World::new();
    let collection = world.collection("c");
    world.put(&collection, &item(0)).expect("inserted");
    world.set_disk_short(true);
    // The last piece has only existing documents, and so needs no space.
    let documents = (1..=INSERT_CHUNK_ITEMS as i32).chain([0]).map(|id| raw(&item(id)));
    let told = world.engine.insert(&collection, documents.collect(), false, None).wait();
    assert!(matches!(told, Err(Error::NoRoom(_))), "{told:?}");
    assert!(world.get(&collection, 1).is_none());
}

/// T27: an index that cannot be built does not exist later on, when its rule would expire documents.
#[test]
fn t27_an_index_over_items_is_refused_without_room() {
    let world = World::new();
    let collection = world.collection("c");
    world.put(&collection, &item(1)).expect("inserted");
    let spec = by("at").with("expireAfterSeconds", 0);
    world.set_disk_short(true);
    let refused = world.try_index(&collection, &spec);
    assert!(matches!(refused, Err(Error::NoRoom(_))), "{refused:?}");
    assert_eq!(collection.indexes().iter().count(), 1, "that on _id");
    world.set_disk_short(false);
    world.index(&collection, &spec);
}

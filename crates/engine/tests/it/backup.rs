//! Living and expired items in a restored store (T13).

use std::path::Path;
use std::sync::Arc;

use bson::Document;
use engine::{Container, Engine, Error, ItemName, Precondition};
use storage::{BackupReader, ClockOptions, EmbeddedOptions, EmbeddedStore, ManualClock, Time};

use crate::collections::{by, date, item};
use crate::world::{START, World, key};

/// Whether items expire in the restored store.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expiry {
    AsItWas,
    Off,
}

fn options(directory: &Path, seconds: u64) -> EmbeddedOptions {
    let clock = ClockOptions::new(Arc::new(ManualClock::new(Time::from_seconds(seconds))));
    EmbeddedOptions::new(directory, clock)
}

/// Restores a backup of the world as `bolide restore` does, and opens it while the wall clock shows `seconds`.
fn restored(world: &World, directory: &Path, expiry: Expiry, seconds: u64) -> Engine {
    let mut backup = world.engine.backup().expect("a backup");
    let taken_at = backup.info().time.seconds();
    let mut bytes = Vec::new();
    while let Some(piece) = backup.next_piece().expect("a piece") {
        bytes.extend_from_slice(&piece);
    }
    let mut reader = BackupReader::open(&bytes[..]).expect("a backup");
    EmbeddedStore::restore(&options(directory, taken_at), &mut reader, |_| ()).expect("restored");
    if expiry == Expiry::Off {
        let store = EmbeddedStore::open(options(directory, taken_at)).expect("it opens");
        let engine = Engine::open(Arc::new(store)).expect("it opens");
        assert!(engine.disable_expiry().expect("turned off") > 0);
        engine.close().expect("closed");
    }
    let store = EmbeddedStore::open(options(directory, seconds)).expect("it opens");
    let engine = Engine::open(Arc::new(store)).expect("it opens");
    let report = engine.check().expect("an inspection");
    assert!(report.is_sound(), "{:#?}", report.told);
    engine
}

fn container(engine: &Engine) -> Arc<Container> {
    engine.container(&engine.database("db").expect("there"), "c").expect("there")
}

fn lives(engine: &Engine, id: &str) -> bool {
    match engine.read(&container(engine), &key("a"), &ItemName::Id(id.into()), &Precondition::None) {
        Ok(_) => true,
        Err(Error::NotFound { .. }) => false,
        Err(other) => panic!("{other}"),
    }
}

/// Returns a world in which some items have expired and are not purged.
fn world() -> World {
    let world = World::new();
    world.container(r#","defaultTtl":10"#);
    world.create("a", r#""id":"old""#).expect("created");
    world.create("a", r#""id":"own","ttl":5"#).expect("created");
    world.create("a", r#""id":"never","ttl":-1"#).expect("created");
    world.pass(11);
    world.create("a", r#""id":"young""#).expect("created");
    world.create("a", r#""id":"younger","ttl":30"#).expect("created");
    world
}

#[test]
fn t13_a_restored_store_goes_on_from_the_time_of_its_backup() {
    let (world, directory) = (world(), tempfile::tempdir().expect("a directory"));
    let engine = restored(&world, directory.path(), Expiry::AsItWas, START - 1000);
    assert_eq!(engine.now().expect("a time").seconds(), START + 11, "the wall clock is behind");
    let living = ["old", "own", "never", "young", "younger"].map(|id| lives(&engine, id));
    assert_eq!(living, [false, false, true, true, true]);
}

#[test]
fn t13_time_passes_for_a_backup_too() {
    let (world, directory) = (world(), tempfile::tempdir().expect("a directory"));
    let engine = restored(&world, directory.path(), Expiry::AsItWas, START + 31);
    let living = ["old", "own", "never", "young", "younger"].map(|id| lives(&engine, id));
    assert_eq!(living, [false, false, true, false, true]);
}

#[test]
fn t13_without_expiry_living_items_remain_and_expired_ones_stay_expired() {
    let (world, directory) = (world(), tempfile::tempdir().expect("a directory"));
    let year = START + 365 * 86_400;
    let engine = restored(&world, directory.path(), Expiry::Off, year);
    let living = |engine: &Engine| ["old", "own", "never", "young", "younger"].map(|id| lives(engine, id));
    assert_eq!(living(&engine), [false, false, true, true, true]);
    let usage = engine.usage(&container(&engine)).expect("figures");
    assert_eq!((usage.living.items, usage.expired.items), (3, 2));
    engine.accept_clock().expect("the year has passed");
    while engine.purge_step(10).expect("a step").purged_items > 0 {}
    assert_eq!(
        living(&engine),
        [false, false, true, true, true],
        "no expired item comes back, no living one goes"
    );
}

#[test]
fn t13_t27_rules_by_date_are_turned_off_as_of_the_backup() {
    let (world, directory) = (World::new(), tempfile::tempdir().expect("a directory"));
    let collection = world.collection("docs");
    world.index(&collection, &by("at").with("expireAfterSeconds", 100));
    world.index(&collection, &by("_ts").with("expireAfterSeconds", 1000));
    world.put(&collection, &item(1).with("at", date(START - 95))).expect("inserted");
    world.put(&collection, &item(2).with("at", date(START))).expect("inserted");
    world.pass(20);
    let engine = restored(&world, directory.path(), Expiry::Off, START + 86_400);
    let docs = engine.collection("db", "docs").expect("there");
    let ids = |engine: &Engine| {
        let reading = engine.reading(&[&docs]).expect("a reading");
        let found = reading.natural(&docs, None, storage::Direction::Forward, 10, 1 << 20).expect("a page");
        found.iter().map(crate::collections::id_of).collect::<Vec<_>>()
    };
    assert_eq!(ids(&engine), [2], "1 had expired at the backup, 2 lives on");
    let specs: Vec<Document> = docs.indexes().iter().map(|index| index.spec.to_document()).collect();
    assert_eq!(specs.len(), 2, "{specs:?}");
    assert!(specs.iter().all(|spec| spec.get("expireAfterSeconds").is_none()), "{specs:?}");
    while engine
        .purge_step(10)
        .expect("a step")
        .next_due
        .is_some_and(|due| due <= engine.now().expect("a time"))
    {}
    assert_eq!(ids(&engine), [2]);
    assert!(engine.check().expect("an inspection").is_sound());
}

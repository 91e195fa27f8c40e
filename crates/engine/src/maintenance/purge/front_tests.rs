//! Removals by watermark, on the store that does not make them one by one.

use std::sync::Arc;
use std::time::Duration;

use document::{Document, ItemNumber, parse_json};
use storage::{
    ClockOptions, Direction, Durability, EmbeddedOptions, EmbeddedStore, KeyRange, Keyspace, ManualClock,
    Store, Time, watermark,
};
use tempfile::TempDir;

use crate::{Container, ContainerDefinition, Engine, Operation, Precondition, QueryRequest};

const ITEMS: u64 = 40;
const TTL_SECONDS: u64 = 10;

struct World {
    directory: TempDir,
    clock: Arc<ManualClock>,
    store: Arc<EmbeddedStore>,
    engine: Engine,
}

impl World {
    /// Returns a container with items of every shape, all of which expire together.
    fn new() -> World {
        let directory = tempfile::tempdir().expect("a directory");
        let clock = Arc::new(ManualClock::new(Time::from_seconds(1_700_000_000)));
        let (store, engine) = open(&directory, &clock);
        let database = engine.create_database("db", None).expect("a database");
        engine.create_container(&database, definition(TTL_SECONDS, "{}"), None).expect("a container");
        let world = World { directory, clock, store, engine };
        (0..ITEMS).for_each(|number| world.create(number));
        world
    }

    fn restart(&mut self) {
        self.engine.close().expect("closed");
        (self.store, self.engine) = open(&self.directory, &self.clock);
    }

    fn container(&self) -> Arc<Container> {
        let database = self.engine.database("db").expect("there");
        self.engine.container(&database, "c").expect("there")
    }

    fn create(&self, number: u64) {
        self.write(number, "");
    }

    fn write(&self, number: u64, more: &str) {
        let text = format!(
            r#"{{"id":"{number}","pk":"{}","n":{number},"g":{},"tags":["all","{number}"]{more}}}"#,
            number % 3,
            number % 4
        );
        let body = Document::from_json(text.as_bytes()).expect("valid JSON");
        self.engine.write(&self.container(), None, Operation::Create { body }).wait().expect("created");
    }

    fn upsert(&self, number: u64) {
        let text = format!(r#"{{"id":"{number}","pk":"{}","n":{number}}}"#, number % 3);
        let body = Document::from_json(text.as_bytes()).expect("valid JSON");
        let upsert = Operation::Upsert { body, precondition: Precondition::None };
        self.engine.write(&self.container(), None, upsert).wait().expect("written");
    }

    fn replace_definition(&self, default_ttl: u64, indexing: &str) {
        let definition = definition(default_ttl, indexing);
        self.engine.replace_container(&self.container(), definition, &Precondition::None).expect("replaced");
    }

    fn purge(&self) -> u64 {
        self.clock.advance(Duration::from_secs(TTL_SECONDS));
        let mut purged = 0;
        loop {
            let report = self.engine.purge_step(9).expect("a step");
            purged += report.purged_items;
            if report.purged_items == 0 {
                return purged;
            }
        }
    }

    fn rows(&self, text: &str) -> Vec<String> {
        let query = query::parse(text, &[], &query::Dialect::default()).expect("a query");
        let request = QueryRequest::new(Some(&query), 1000);
        let page = self.engine.query(&self.container(), &request).expect("a page");
        page.rows.iter().map(|row| String::from_utf8(row.clone()).expect("JSON")).collect()
    }

    /// Returns the items that each access path of the index finds.
    fn counted(&self) -> Vec<Vec<String>> {
        [
            "SELECT VALUE COUNT(1) FROM c",
            "SELECT VALUE COUNT(1) FROM c WHERE c.n >= 0",
            "SELECT VALUE COUNT(1) FROM c WHERE c.g = 1",
            "SELECT VALUE COUNT(1) FROM c WHERE c.g = 1 AND c.n >= 3",
            "SELECT VALUE COUNT(1) FROM c WHERE ARRAY_CONTAINS(c.tags, 'all')",
            "SELECT VALUE COUNT(1) FROM c WHERE NOT IS_DEFINED(c.absent)",
            "SELECT DISTINCT VALUE c.n FROM c",
            "SELECT VALUE c.n FROM c ORDER BY c.n DESC",
            "SELECT VALUE c.n FROM c ORDER BY c._ts",
            "SELECT VALUE c.n FROM c WHERE c._ts > 0",
        ]
        .map(|query| self.rows(query))
        .to_vec()
    }

    fn watermark(&self) -> u64 {
        let snapshot = self.store.snapshot().expect("a snapshot");
        watermark(&*snapshot, self.container().partitions[0].id.0.to_be_bytes()).expect("readable")
    }

    fn entries(&self, keyspace: Keyspace) -> usize {
        let snapshot = self.store.snapshot().expect("a snapshot");
        snapshot.scan(keyspace, KeyRange::all(), Direction::Forward).count()
    }

    fn check(&self) {
        let report = self.engine.check().expect("an inspection");
        assert!(report.is_sound(), "{:#?}", report.told);
    }
}

fn open(directory: &TempDir, clock: &Arc<ManualClock>) -> (Arc<EmbeddedStore>, Engine) {
    let mut options = EmbeddedOptions::new(directory.path(), ClockOptions::new(clock.clone()));
    options.durability = Durability::Buffered;
    let store = Arc::new(EmbeddedStore::open(options).expect("the store opens"));
    (Arc::clone(&store), Engine::open(store).expect("the engine opens"))
}

fn definition(default_ttl: u64, indexing: &str) -> ContainerDefinition {
    let text = format!(
        r#"{{"id":"c","partitionKey":{{"paths":["/pk"]}},"defaultTtl":{default_ttl},"indexingPolicy":{indexing}}}"#
    );
    ContainerDefinition::from_value(&parse_json(text.as_bytes()).expect("valid JSON")).expect("valid")
}

/// T13, T14, T22: the entries that are left in tables have marks that have not expired under later rules.
#[test]
fn t13_t14_t22_no_reader_finds_what_a_watermark_stands_for_whatever_becomes_of_the_rules() {
    let mut world = World::new();
    assert_eq!(world.purge(), ITEMS);
    assert!(world.watermark() > 0);
    assert_eq!((world.entries(Keyspace::Index), world.entries(Keyspace::Queue)), (0, 0));
    assert_eq!((world.entries(Keyspace::Feed), world.entries(Keyspace::Item)), (0, 0));
    world.replace_definition(1_000_000, "{}");
    for found in world.counted() {
        assert!(found.is_empty() || found == ["0"], "{found:?}");
    }
    // The same ids and values again: their entries are those of other items.
    (0..3).for_each(|number| world.create(number));
    let expected = |world: &World| {
        let found = world.counted();
        for (at, counts) in [(0, "3"), (1, "3"), (2, "1"), (3, "0"), (4, "3"), (5, "3")] {
            assert_eq!(found[at], [counts], "{at}");
        }
        let numbers = [["0", "1", "2"], ["2", "1", "0"], ["0", "1", "2"], ["0", "1", "2"]];
        assert_eq!(found[6..], numbers.map(|rows| rows.map(str::to_owned).to_vec()));
        world.check();
    };
    expected(&world);
    world.restart();
    expected(&world);
}

#[test]
fn t22_an_item_that_lives_longer_holds_the_watermark_back() {
    let world = World::new();
    world.write(ITEMS, r#","ttl":-1"#);
    (ITEMS + 1..2 * ITEMS).for_each(|number| world.create(number));
    assert_eq!(world.purge(), 2 * ITEMS - 1);
    let keeps = ItemNumber(world.watermark());
    let snapshot = world.store.snapshot().expect("a snapshot");
    let items: Vec<_> = snapshot
        .scan(Keyspace::Item, KeyRange::all(), Direction::Forward)
        .map(|entry| crate::keys::item_number(&entry.expect("readable").0).expect("a number"))
        .collect();
    assert_eq!(items.len(), 1);
    assert!(keeps <= items[0], "{keeps:?} {items:?}");
    assert!(keeps > ItemNumber(0));
    assert_eq!(world.counted()[0], ["1"]);
    world.check();
}

/// Entries of later versions have the numbers of their items, but are as new as their writes: only a watermark above those writes
/// shows a store that all of them are covered.
#[test]
fn t24_the_watermark_of_an_empty_partition_is_behind_its_last_write() {
    let world = World::new();
    for number in 0..ITEMS {
        world.upsert(number);
    }
    let last = crate::types::events::last_of_commit(world.store.last_sequence());
    assert_eq!(world.purge(), ITEMS);
    assert_eq!(world.watermark(), last.0 + 1);
    world.create(1);
    assert_eq!(world.counted()[0], ["1"]);
    world.check();
    assert_eq!(world.purge(), 1);
    assert!(world.watermark() > last.0 + 1);
}

#[test]
fn t22_an_index_that_is_built_beside_watermarks_is_whole() {
    let world = World::new();
    assert_eq!(world.purge(), ITEMS);
    (0..ITEMS).for_each(|number| world.create(number));
    world.replace_definition(
        TTL_SECONDS,
        r#"{"excludedPaths":[{"path":"/tags/*"}],"includedPaths":[{"path":"/*"}]}"#,
    );
    // Entries that are being cleared may be of any item, so the watermark does not move.
    let before = world.watermark();
    world.clock.advance(Duration::from_secs(TTL_SECONDS));
    while world.engine.index_step(7).expect("a step").more {}
    world.check();
    (ITEMS..ITEMS + 5).for_each(|number| world.create(number));
    assert_eq!(world.engine.purge_step(9).expect("a step").purged_items, 9);
    assert!(world.watermark() > before);
    assert_eq!(world.counted()[0], ["5"]);
    world.check();
    assert_eq!(world.purge(), ITEMS - 9 + 5);
    assert_eq!(world.entries(Keyspace::Index), 0);
    world.check();
}

#[test]
fn t22_a_dropped_container_leaves_nothing_that_can_be_seen() {
    let mut world = World::new();
    assert_eq!(world.purge(), ITEMS);
    world.create(1);
    let container = world.container();
    world.engine.delete_container(&container, &Precondition::None).expect("dropped");
    while world.engine.purge_step(100).expect("a step").other_entries > 0 {}
    let snapshot = world.store.snapshot().expect("a snapshot");
    let below = watermark(&*snapshot, container.partitions[0].id.0.to_be_bytes()).expect("readable");
    assert_eq!(below, u64::MAX, "tables that had its entries may go");
    drop(snapshot);
    for keyspace in [Keyspace::Item, Keyspace::Index, Keyspace::Queue, Keyspace::Feed] {
        assert_eq!(world.entries(keyspace), 0, "{}", keyspace.name());
    }
    world.check();
    world.restart();
    world.check();
}

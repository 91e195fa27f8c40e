//! The index through its public functions: what queries find in it while items are written, expire and are purged,
//! and while a new policy is being built.

use std::sync::Arc;
use std::time::Duration;

use document::{Document, PartitionKey, Value, ValueRef, parse_json};
use storage::{ClockOptions, KeyRange, Keyspace, ManualClock, MemoryDisk, MemoryStore, Time};

use super::*;
use crate::access::gate::View;
use crate::definition::Step;
use crate::{
    Container, ContainerDefinition, DefaultTtl, Engine, ItemName, Operation, Precondition, QueryRequest,
};

struct World {
    engine: Engine,
    clock: Arc<ManualClock>,
    disk: MemoryDisk,
}

impl World {
    fn new(more: &str) -> World {
        let clock = Arc::new(ManualClock::new(Time::from_seconds(1_700_000_000)));
        let disk = MemoryDisk::new();
        let engine = open(&disk, &clock);
        let database = engine.create_database("db", None).expect("a database");
        engine.create_container(&database, definition(more), None).expect("a container");
        World { engine, clock, disk }
    }

    fn restart(&mut self) {
        // The old engine must release the disk first.
        self.engine = open(&MemoryDisk::new(), &self.clock);
        self.engine = open(&self.disk, &self.clock);
    }

    fn container(&self) -> Arc<Container> {
        let database = self.engine.database("db").expect("made at the start");
        self.engine.container(&database, "c").expect("made at the start")
    }

    fn write(&self, text: &str) {
        let body = Document::from_json(format!(r#"{{"pk":"k",{text}}}"#).as_bytes()).expect("valid JSON");
        let upsert = Operation::Upsert { body, precondition: Precondition::None };
        self.engine.write(&self.container(), None, upsert).wait().expect("written");
    }

    fn delete(&self, id: &str) {
        let key = PartitionKey::from_header(r#"["k"]"#).expect("a key");
        let delete = Operation::Delete { name: ItemName::Id(id.into()), precondition: Precondition::None };
        self.engine.write(&self.container(), Some(key), delete).wait().expect("deleted");
    }

    fn change(&self, more: &str) {
        self.engine
            .replace_container(&self.container(), definition(more), &Precondition::None)
            .expect("changed");
    }

    fn pass(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    /// Runs steps until there is nothing to do. Returns how many steps did something.
    fn work(&self, limit: usize) -> usize {
        let mut steps = 0;
        while self.engine.purge_step(limit).expect("a step").next_due.is_some_and(|due| due <= self.now()) {
            steps += 1;
        }
        steps
    }

    fn now(&self) -> Time {
        self.engine.now().expect("a clock")
    }

    fn check(&self) -> u64 {
        self.engine.check_index(&self.container()).expect("the index agrees with the items")
    }

    fn view(&self) -> View {
        View::open(&*self.engine.store, &self.container().partitions[0]).expect("a view")
    }

    fn index(&self) -> Option<Index> {
        self.view().index(&self.container().partitions[0]).expect("a readable state")
    }

    /// Returns the living items in a range, as `id` or `id!` if the entry is inexact, in the order of the index.
    fn found(&self, range: impl Fn(&Index) -> (KeyRange, usize)) -> Vec<String> {
        let (view, index) = (self.view(), self.index().expect("an index"));
        let (range, prefix) = range(&index);
        let mut found = Vec::new();
        for entry in view.snapshot.scan(Keyspace::Index, range, storage::Direction::Forward) {
            let (key, value) = entry.expect("a readable entry");
            let entry = IndexEntry::decode(prefix, &key, &value).expect("well-formed");
            if view.is_living(entry.number, &entry.mark).expect("a readable item") {
                let record =
                    view.by_number(entry.number).expect("readable").expect("living, as the entry said");
                let id = record.body.get("id").and_then(ValueRef::as_str).expect("an id");
                found.push(format!("{id}{}", if entry.mark.inexact { "!" } else { "" }));
            }
        }
        found
    }

    fn equal(&self, name: &str, value: &Value) -> Vec<String> {
        let path = path(name);
        let term = Term::new(value.view()).expect("a scalar");
        self.found(|index| {
            let prefix = index.path_prefix(&path);
            (KeyRange::prefix([&prefix, term.as_bytes()].concat()), prefix.len())
        })
    }

    fn all_at(&self, name: &str) -> Vec<String> {
        let path = path(name);
        self.found(|index| {
            let prefix = index.path_prefix(&path);
            (KeyRange::prefix(prefix.clone()), prefix.len())
        })
    }

    /// Returns all bytes of the index, to see that a write left it unchanged.
    fn raw(&self) -> Vec<(bytes::Bytes, bytes::Bytes)> {
        let snapshot = self.engine.store.snapshot().expect("a snapshot");
        let scan = snapshot.scan(Keyspace::Index, KeyRange::all(), storage::Direction::Forward);
        scan.map(|entry| entry.expect("readable")).collect()
    }
}

fn open(disk: &MemoryDisk, clock: &Arc<ManualClock>) -> Engine {
    let store = MemoryStore::open(disk.clone(), ClockOptions::new(clock.clone())).expect("the store opens");
    Engine::open(Arc::new(store)).expect("the engine opens")
}

fn definition(more: &str) -> ContainerDefinition {
    let text = format!(r#"{{"id":"c","partitionKey":{{"paths":["/pk"]}}{more}}}"#);
    ContainerDefinition::from_value(&parse_json(text.as_bytes()).expect("valid JSON")).expect("valid")
}

fn path(name: &str) -> PathKey {
    let step = |name: &str| match name {
        "[]" => Step::Items,
        name => Step::Property(name.to_owned()),
    };
    PathKey::new(&name.split('/').map(step).collect::<Vec<_>>()).expect("short")
}

const NO_INDEX: &str = r#","indexingPolicy":{"indexingMode":"none","automatic":false}"#;
const ONLY_N: &str =
    r#","indexingPolicy":{"includedPaths":[{"path":"/n/?"}],"excludedPaths":[{"path":"/*"}]}"#;

#[test]
fn a_path_holds_its_scalars_in_their_order() {
    let world = World::new("");
    for (id, n) in
        [("a", "1"), ("b", "2.0"), ("c", "2.5"), ("d", "-3"), ("s", "\"two\""), ("t", "\"x\\u0000\"")]
    {
        world.write(&format!(r#""id":"{id}","n":{n}"#));
    }
    for (id, n) in
        [("null", "null"), ("true", "true"), ("false", "false"), ("array", "[2]"), ("object", "{}")]
    {
        world.write(&format!(r#""id":"{id}","n":{n}"#));
    }
    assert_eq!(world.equal("n", &Value::Int(2)), ["b!"]);
    assert_eq!(world.equal("n", &Value::Bool(true)), ["true"]);
    let scalars = ["null", "false", "true", "d", "a", "b!", "c", "s", "t"];
    assert_eq!(world.all_at("n"), scalars, "arrays and objects have no term");
    assert_eq!(world.equal("n/[]", &Value::Int(2)), ["array"]);
}

#[test]
fn long_strings_are_found_by_their_beginning_and_marked() {
    let world = World::new("");
    let long = "y".repeat(300);
    for (id, text) in [("a", "y"), ("b", &long), ("c", &format!("{long}z")), ("d", "yz"), ("e", "x")] {
        world.write(&format!(r#""id":"{id}","s":"{text}""#));
    }
    assert_eq!(world.equal("s", &Value::from(long.as_str())), ["b!", "c!"]);
    assert_eq!(world.all_at("s"), ["e", "a", "b!", "c!", "d"]);
}

#[test]
fn shapes_find_items_without_a_property() {
    let world = World::new("");
    for (id, more) in
        [("a", r#","n":1"#), ("b", ""), ("c", r#","n":{"m":1}"#), ("d", r#","n":[]"#), ("e", r#","x":1"#)]
    {
        world.write(&format!(r#""id":"{id}"{more}"#));
    }
    let with = |name: &str, kind: Option<Kind>| {
        let (view, index) = (world.view(), world.index().expect("an index"));
        let shapes = index.shapes(&*view.snapshot).map(|shape| shape.expect("readable"));
        let shapes = shapes.filter(|shape| shape.places.kind_at(&path(name)) == kind);
        let mut found: Vec<String> = shapes
            .flat_map(|shape| {
                let prefix = index.shape_prefix(&shape.hash);
                world.found(|_| (KeyRange::prefix(prefix.clone()), prefix.len()))
            })
            .collect();
        found.sort();
        found
    };
    assert_eq!(with("n", None), ["b", "e"]);
    assert_eq!(with("n", Some(Kind::Scalar)), ["a"]);
    assert_eq!(with("n", Some(Kind::Object)), ["c"]);
    assert_eq!(with("n", Some(Kind::Array)), ["d"]);
    assert_eq!(with("n/m", Some(Kind::Scalar)), ["c"]);
    world.delete("b");
    assert_eq!(with("n", None), ["e"]);
}

#[test]
fn composite_indexes_are_in_their_order_and_tell_their_values() {
    let world = World::new(
        r#","indexingPolicy":{"compositeIndexes":[[{"path":"/a"},{"path":"/b","order":"descending"}],
            [{"path":"/a"},{"path":"/_ts","order":"descending"}]]}"#,
    );
    for (id, more) in [
        ("1", r#""a":1,"b":1"#),
        ("2", r#""a":1,"b":2.5"#),
        ("3", r#""a":0,"b":"t""#),
        ("4", r#""a":1"#),
        ("5", r#""b":[1]"#),
    ] {
        world.write(&format!(r#""id":"{id}",{more}"#));
        world.pass(1);
    }
    let composites = world.index().expect("an index").coverage.composites().to_vec();
    let all = |at: usize, equal: &[Option<ValueRef<'_>>]| {
        world.found(|index| {
            let composite = &composites[at];
            (index.composite_equal(composite, equal), index.composite_prefix(composite).len())
        })
    };
    let one = Some(ValueRef::Int(1));
    assert_eq!(all(0, &[]), ["5!", "3", "2", "1", "4"]);
    assert_eq!(all(1, &[]), ["5", "3", "4", "2", "1"]);
    assert_eq!(all(0, &[one]), ["2", "1", "4"]);
    assert_eq!(all(0, &[None]), ["5!"]);
    assert_eq!(all(0, &[one, one]), ["1"]);

    let (view, index) = (world.view(), world.index().expect("an index"));
    let prefix = index.composite_prefix(&composites[0]);
    let first =
        view.snapshot.scan(Keyspace::Index, KeyRange::prefix(prefix.clone()), storage::Direction::Forward);
    let mut values = first.map(|entry| {
        let (key, value) = entry.expect("readable");
        let entry = IndexEntry::decode(prefix.len(), &key, &value).expect("well-formed");
        let parts = composites[0].parts(&entry.term).expect("well-formed");
        assert_eq!(parts.last().map(|(_, place)| place.end), Some(entry.term.len()));
        parts.into_iter().map(|(value, _)| value).collect::<Vec<_>>()
    });
    assert_eq!(values.next(), Some(vec![PartValue::Undefined, PartValue::Untold]));
    let text = PartValue::Scalar(Value::from("t"));
    assert_eq!(values.next(), Some(vec![PartValue::Scalar(Value::Int(0)), text]));
    let half = PartValue::Scalar(Value::Double(2.5));
    assert_eq!(values.next(), Some(vec![PartValue::Scalar(Value::Int(1)), half]));
}

#[test]
fn outliers_are_found_where_every_query_looks() {
    let world = World::new("");
    let numbers: Vec<String> = (0..5000).map(|n| n.to_string()).collect();
    world.write(&format!(r#""id":"wide","a":[{}]"#, numbers.join(",")));
    world.write(r#""id":"small","a":[1]"#);
    let outliers = || world.found(|index| (index.outliers(), index.outlier_prefix().len()));
    assert_eq!(
        (outliers(), world.equal("a/[]", &Value::Int(1))),
        (vec!["wide!".to_owned()], vec!["small".to_owned()])
    );
    world.write(r#""id":"wide","a":[1]"#);
    assert_eq!((outliers().len(), world.equal("a/[]", &Value::Int(1)).len()), (0, 2));
    assert_eq!(world.check(), 8);
}

#[test]
fn a_replace_that_changes_nothing_indexed_writes_nothing_to_the_index() {
    let world = World::new(r#","defaultTtl":100,"indexingPolicy":{"excludedPaths":[{"path":"/hidden/*"}]}"#);
    world.write(r#""id":"x","n":1,"hidden":1"#);
    let before = world.raw();
    world.pass(5);
    world.write(r#""id":"x","n":1,"hidden":[2,3]"#);
    assert_eq!(world.raw(), before, "a later base bounds what an earlier one did");
    world.write(r#""id":"x","n":2,"hidden":[2,3]"#);
    let changed = world.raw().iter().filter(|entry| !before.contains(entry)).count();
    assert_eq!((changed, world.raw().len()), (1, before.len()));
    world.check();
}

/// T14: an index shows only living items, whatever its marks say, whether or not the purge has run.
#[test]
fn t14_no_entry_of_an_expired_item_is_living() {
    for (first, second, lives) in [
        // A longer ttl keeps the mark of the shorter one; an expired mark only means that the header is read.
        (r#","ttl":10"#, r#","ttl":60"#, 60),
        (r#","ttl":60"#, r#","ttl":10"#, 10),
        ("", r#","ttl":10"#, 10),
        (r#","ttl":10"#, "", 100),
        (r#","ttl":-1"#, r#","ttl":10"#, 10),
        (r#","ttl":-1"#, "", 100),
        ("", "", 100),
    ] {
        for paused in [false, true] {
            let world = World::new(r#","defaultTtl":100"#);
            world.engine.pause_purge(paused);
            world.write(&format!(r#""id":"x","n":1{first}"#));
            world.pass(5);
            world.write(&format!(r#""id":"x","n":1{second}"#));
            world.check();
            world.pass(lives - 1);
            world.work(5);
            assert_eq!(world.equal("n", &Value::Int(1)), ["x"], "{first} then {second}");
            world.pass(1);
            world.work(5);
            assert_eq!(world.equal("n", &Value::Int(1)), [""; 0], "{first} then {second}");
            assert_eq!(world.check() == 0, !paused, "the purge leaves nothing behind");
        }
    }
}

/// T11, T13: a change of `D` changes when items expire without changing an entry, and what had expired stays expired.
#[test]
fn t11_t13_marks_follow_the_policy() {
    let world = World::new(r#","defaultTtl":10"#);
    world.engine.pause_purge(true);
    world.write(r#""id":"expired","n":1"#);
    world.write(r#""id":"own","n":1,"ttl":10"#);
    world.pass(5);
    world.write(r#""id":"young","n":1"#);
    world.pass(5);
    let before = world.raw();
    assert_eq!(world.equal("n", &Value::Int(1)), ["young"]);
    for more in [r#","defaultTtl":1000"#, r#","defaultTtl":-1"#, ""] {
        world.change(more);
        assert_eq!(world.equal("n", &Value::Int(1)), ["young"], "{more}");
    }
    world.change(r#","defaultTtl":5"#);
    assert_eq!(world.equal("n", &Value::Int(1)), [""; 0], "a lower default expires items at once");
    assert_eq!(world.raw(), before, "T11: no entry was touched");
    world.engine.pause_purge(false);
    world.work(10);
    assert_eq!(world.check(), 0);
}

#[test]
fn a_new_policy_is_built_while_the_old_one_serves() {
    let world = World::new("");
    for n in 0..20 {
        world.write(&format!(r#""id":"{n:02}","n":{n},"m":{n}"#));
    }
    let before = world.index().expect("an index");
    world.change(ONLY_N);
    assert_eq!(world.engine.index_progress(&world.container()), 0);
    let mut seen = Vec::new();
    for round in 0..9 {
        world.engine.index_step(2).expect("a step");
        world.check();
        // Items behind and before the builder are changed, removed and created.
        world.write(&format!(r#""id":"{:02}","n":{}"#, round * 2, 100 + round));
        world.write(&format!(r#""id":"{:02}","m":"late""#, 19 - round));
        world.write(&format!(r#""id":"new {round}","n":200"#));
        world.check();
        let index = world.index().expect("an index");
        assert_eq!(index.generation, before.generation, "the old one serves");
        assert_eq!(world.equal("n", &Value::Int(200)).len(), round + 1, "and is kept");
        seen.push(world.engine.index_progress(&world.container()));
    }
    assert_eq!(seen, [10, 20, 30, 40, 50, 60, 70, 80, 90]);
    world.delete("03");
    world.work(2);
    let after = world.index().expect("an index");
    assert!(after.generation > before.generation && !after.coverage.covers(&[Step::Property("m".into())]));
    assert_eq!(world.engine.index_progress(&world.container()), 100);
    let kept = world.check();
    assert_eq!(kept, world.raw().len() as u64, "the old generation is cleared away");
    assert_eq!(world.equal("n", &Value::Int(200)).len(), 9);
}

/// After a crash at any commit the build continues where it was.
#[test]
fn a_build_survives_a_crash_at_any_step() {
    let mut world = World::new(r#","defaultTtl":1000"#);
    for n in 0..12 {
        let ttl = if n % 3 == 0 { r#","ttl":30"# } else { "" };
        world.write(&format!(r#""id":"{n:02}","n":{n}{ttl}"#));
    }
    world.change(&format!(r#","defaultTtl":1000{ONLY_N}"#));
    let mut steps = 0;
    while world.container().partitions[0].indexes().state.has_work() {
        world.engine.index_step(1).expect("a step");
        world.restart();
        world.check();
        if steps == 4 {
            world.pass(40);
        }
        if steps == 6 {
            world.engine.purge_step(2).expect("purges behind and before the builder");
            world.check();
        }
        steps += 1;
    }
    assert!(steps > 12);
    world.work(3);
    assert_eq!(world.check(), 8 * 3, "id, n and shape of eight items");
    assert_eq!(world.equal("n", &Value::Int(0)), [""; 0]);
}

#[test]
fn a_policy_may_change_again_before_it_is_built() {
    let world = World::new("");
    for n in 0..10 {
        world.write(&format!(r#""id":"{n}","n":{n}"#));
    }
    let serving = world.index().expect("an index").generation;
    world.change(ONLY_N);
    world.engine.index_step(3).expect("a step");
    world.change("");
    assert_eq!(world.index().expect("an index").generation, serving, "the old one is as wanted");
    assert_eq!(world.engine.index_progress(&world.container()), 100);
    world.change(ONLY_N);
    world.engine.index_step(3).expect("a step");
    world.change(NO_INDEX);
    assert!(world.index().is_none());
    world.check();
    world.work(5);
    assert_eq!((world.check(), world.raw().len()), (0, 0));
    world.write(r#""id":"5","n":55"#);
    assert_eq!(world.raw().len(), 0, "no index, no entries");
    world.change(ONLY_N);
    assert!(world.index().is_none(), "not before it is whole");
    world.work(5);
    assert_eq!(world.equal("n", &Value::Int(55)), ["5"]);
    world.check();
}

#[test]
fn an_empty_container_follows_a_new_policy_at_once() {
    let world = World::new("");
    world.change(ONLY_N);
    assert!(!world.index().expect("an index").coverage.covers(&[Step::Property("m".into())]));
    world.write(r#""id":"x","n":1,"m":1"#);
    assert_eq!(world.check(), 3);
    world.change(&format!(r#","defaultTtl":5{ONLY_N}"#));
    assert_eq!(world.container().definition.default_ttl, DefaultTtl::Seconds(5));
    assert!(world.container().partitions[0].indexes().state.building.is_none(), "the terms are the same");
}

/// A write that was prepared under one policy and runs under another writes what the other asks for.
#[test]
fn a_write_through_an_old_handle_follows_the_new_policy() {
    let world = World::new("");
    world.write(r#""id":"a","n":1,"m":1"#);
    let old = world.container();
    world.change(ONLY_N);
    let body = Document::from_json(br#"{"id":"b","pk":"k","n":1,"m":1}"#).expect("valid JSON");
    world.engine.write(&old, None, Operation::Create { body }).wait().expect("written");
    world.check();
    world.work(10);
    assert_eq!((world.check(), world.equal("n", &Value::Int(1))), (6, vec!["a".to_owned(), "b".to_owned()]));
}

#[test]
fn a_dropped_container_ends_its_build() {
    let world = World::new("");
    for n in 0..10 {
        world.write(&format!(r#""id":"{n}","n":{n}"#));
    }
    world.change(ONLY_N);
    world.engine.index_step(2).expect("a step");
    world.engine.delete_container(&world.container(), &Precondition::None).expect("deleted");
    world.work(7);
    let snapshot = world.engine.store.snapshot().expect("a snapshot");
    for keyspace in [Keyspace::Index, Keyspace::Counter, Keyspace::Item] {
        assert_eq!(snapshot.scan(keyspace, KeyRange::all(), storage::Direction::Forward).count(), 0);
    }
    let catalog = snapshot.scan(Keyspace::Catalog, KeyRange::all(), storage::Direction::Forward);
    assert_eq!(catalog.count(), 2, "the database and the last number");
}

/// A store that was written before there were indexes: the records of its index are missing.
#[test]
fn a_store_without_an_index_gets_one_built() {
    let mut world = World::new("");
    world.change(NO_INDEX);
    world.work(10);
    for n in 0..10 {
        world.write(&format!(r#""id":"{n}","n":{n}"#));
    }
    world.change("");
    let id = world.container().partitions[0].id;
    world.engine.change(move |tx| forget(tx, id)).expect("forgotten");
    world.restart();
    assert_eq!(world.engine.index_progress(&world.container()), 0);
    let page = world.engine.query(&world.container(), &QueryRequest::new(None, 100)).expect("a page");
    assert_eq!(page.rows.len(), 10, "everything is served meanwhile");
    world.work(4);
    assert_eq!((world.equal("n", &Value::Int(7)), world.check()), (vec!["7".to_owned()], 40));
}

/// The removals of a transaction are limited by entries, not only by items.
#[test]
fn items_of_many_entries_are_purged_and_deleted_in_several_transactions() {
    let world = World::new(r#","defaultTtl":10"#);
    let numbers: Vec<String> = (0..4000).map(|n| n.to_string()).collect();
    let write_ten = || {
        for n in 0..10 {
            world.write(&format!(r#""id":"{n}","a":[{}]"#, numbers.join(",")));
        }
    };
    write_ten();
    world.pass(10);
    let transactions_of_a_step = || {
        let before = world.engine.storage_stats().jobs;
        let report = world.engine.purge_step(100).expect("a step");
        (report.purged_items, world.engine.storage_stats().jobs - before)
    };
    let (purged, busy) = transactions_of_a_step();
    let (_, idle) = transactions_of_a_step();
    assert!(purged == 10 && busy >= idle + 2, "{purged} items in {busy} transactions, {idle} without any");
    assert_eq!(world.check(), 0);
    write_ten();
    let key = PartitionKey::from_header(r#"["k"]"#).expect("a key");
    assert_eq!(world.engine.delete_partition(&world.container(), &key).map(|emptied| emptied.items), Ok(10));
    assert_eq!(world.check(), 0);
}

/// T22: damage in one item stops its container's build, and nothing else.
#[test]
fn a_damaged_item_stops_neither_the_purge_nor_other_builds() {
    let world = World::new(r#","defaultTtl":10"#);
    world.write(r#""id":"good","n":1"#);
    let id = world.container().partitions[0].id;
    let number = document::ItemNumber(1);
    world
        .engine
        .change(move |tx| {
            let (keyspace, key) = crate::keys::Key::Item(id, number).encode();
            tx.put(keyspace, key, vec![0xFF]);
            Ok(())
        })
        .expect("written");
    world.change(&format!(r#","defaultTtl":10{ONLY_N}"#));
    world.pass(10);
    assert!(matches!(world.engine.purge_step(10), Err(crate::Error::Corrupt(_))));
    assert_eq!(world.engine.purge_status().purged_items, 1, "the expired item was purged all the same");
}

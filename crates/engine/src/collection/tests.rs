//! Tests that read the store itself: no entry is left of removed items.

use std::sync::Arc;
use std::time::Duration;

use bson::{Document, RawDocument, Value};
use mql::index::IndexSpec;
use storage::{
    ClockOptions, Direction, KeyRange, Keyspace, ManualClock, MemoryDisk, MemoryStore, Store, Time,
};

use super::{Collection, CollectionDefinition, Decision, Target};
use crate::Engine;
use crate::expiry::header::decode_header;
use crate::keys::{PARTITIONED, item_number, partition};
use crate::tests::below;

const START: u64 = 1_700_000_000;

struct World {
    store: Arc<MemoryStore>,
    engine: Engine,
    clock: Arc<ManualClock>,
}

fn world() -> World {
    let clock = Arc::new(ManualClock::new(Time::from_seconds(START)));
    let store = MemoryStore::open(MemoryDisk::new(), ClockOptions::new(clock.clone())).expect("a store");
    let store = Arc::new(store);
    let engine = Engine::open(store.clone()).expect("an engine");
    World { store, engine, clock }
}

impl World {
    /// Returns a collection's entries in the store, except the purge's cursors.
    fn left(&self, collection: &Collection) -> Vec<(Keyspace, Vec<u8>)> {
        let snapshot = self.store.snapshot().expect("a snapshot");
        let mut left = Vec::new();
        for keyspace in PARTITIONED {
            let range = KeyRange::prefix(partition(collection.partition.id));
            for entry in snapshot.scan(keyspace, range, Direction::Forward) {
                let (key, _) = entry.expect("an entry");
                if keyspace != Keyspace::Counter || key.get(4) != Some(&0x30) {
                    left.push((keyspace, key.to_vec()));
                }
            }
        }
        left
    }

    fn index(&self, collection: &Arc<Collection>, field: &str, options: &[(&str, Value)]) -> u32 {
        let mut spec = Document::new().with("key", Document::new().with(field, 1)).with("name", field);
        for (name, value) in options {
            spec.push(*name, value.clone());
        }
        let spec = IndexSpec::parse(spec.view()).expect("valid");
        let numbers = self.engine.create_indexes(collection, vec![spec]).expect("made");
        while !self.engine.build_indexes_step(collection, &numbers, 3).expect("a step").done {}
        numbers[0]
    }

    fn run_background(&self) {
        while self
            .engine
            .purge_step(7)
            .expect("a step")
            .next_due
            .is_some_and(|due| due <= self.engine.now().expect("a time"))
        {}
    }
}

fn item(id: i32) -> Document {
    let tags = vec![Value::Int32(id), Value::String("x".repeat(2000)), Value::Null];
    let item = Document::new().with("_id", id).with("tags", tags).with("u", id);
    let item = item.with("d", Value::DateTime((START as i64 + 500 + i64::from(id)) * 1000 + 7));
    if id % 3 == 0 { item.with("ttl", id + 1) } else { item }
}

/// T22.
#[test]
fn t22_the_purge_leaves_no_entry_behind() {
    let world = world();
    let collection = world.engine.create_collection("db", "c", CollectionDefinition::default(), None);
    let collection = collection.expect("made");
    world.index(&collection, "_ts", &[("expireAfterSeconds", Value::Int32(100))]);
    world.index(&collection, "tags", &[]);
    let documents = |ids: std::ops::Range<i32>| ids.map(|id| RawDocument::from_document(&item(id))).collect();
    world.engine.insert(&collection, documents(0..40), true, None).wait().expect("inserted");
    world.index(&collection, "u", &[("unique", Value::Bool(true))]);
    world.index(&collection, "d", &[("expireAfterSeconds", Value::Int32(10))]);
    world.engine.insert(&collection, documents(40..60), true, None).wait().expect("inserted");
    for id in 0..30 {
        let next = RawDocument::from_document(&item(id).with("again", true).with("u", id + 1000));
        let decide = move |found: Option<&super::LivingDocument>, _| {
            Ok(if found.is_some() { Decision::Replace(next) } else { Decision::Keep }.into())
        };
        world.engine.modify(&collection, Target::Id(Value::Int32(id)), decide, None).wait().expect("changed");
        world.clock.advance(Duration::from_secs(1));
        if id % 7 == 0 {
            world.engine.purge_step(2).expect("a step");
        }
    }
    assert!(!world.left(&collection).is_empty());
    world.clock.advance(Duration::from_secs(1000));
    world.run_background();
    assert_eq!(world.left(&collection), []);
}

/// T15: an expired document that an index cannot hold does not stop the index's build, and is purged like any other.
#[test]
fn t15_an_index_build_ignores_an_expired_document_that_it_could_not_hold() {
    let array = || vec![Value::Int32(1), Value::Int32(2)];
    let unfit = Document::new().with("_id", 1).with("a", array()).with("b", array()).with("t", "secret");
    for key in [
        Document::new().with("a", 1).with("t", "text"),
        Document::new().with("a", 1).with("b", 1),
        Document::new().with("a", "hashed"),
        Document::new().with("t", "2dsphere"),
    ] {
        let world = world();
        let collection = world.engine.create_collection("db", "c", CollectionDefinition::default(), None);
        let collection = collection.expect("made");
        world.index(&collection, "_ts", &[("expireAfterSeconds", Value::Int32(100))]);
        let documents = vec![RawDocument::from_document(&unfit)];
        world.engine.insert(&collection, documents, true, None).wait().expect("inserted");
        let build = || {
            let spec = Document::new().with("key", key.clone()).with("name", "new");
            let spec = IndexSpec::parse(spec.view()).expect("valid");
            let numbers = world.engine.create_indexes(&collection, vec![spec]).expect("made");
            while !world.engine.build_indexes_step(&collection, &numbers, 3)?.done {}
            crate::Result::Ok(())
        };
        let refused = build().expect_err("a living document that does not fit").to_string();
        assert_eq!(refused.contains("secret"), key.contains("t") && key.len() == 1, "{refused}");
        world.clock.advance(Duration::from_secs(101));
        build().expect("the expired document is ignored");
        let check = world.engine.check_collection(&collection).expect("a check");
        assert!(check.faults.is_empty(), "{key:?}: {:?}", check.faults);
        world.run_background();
        assert_eq!(world.left(&collection), [], "{key:?}");
    }
}

/// Only an expired document may be without an entry: a living one that the index cannot hold is damage.
#[test]
fn a_check_tells_of_a_document_that_an_index_cannot_hold() {
    let array = || vec![Value::Int32(1), Value::Int32(2)];
    for (ttl, waited, is_told) in [(None, 200, true), (Some(100), 50, true), (Some(100), 200, false)] {
        let world = world();
        let collection = world.engine.create_collection("db", "c", CollectionDefinition::default(), None);
        let collection = collection.expect("made");
        if let Some(seconds) = ttl {
            world.index(&collection, "_ts", &[("expireAfterSeconds", Value::Int32(seconds))]);
        }
        let spec =
            Document::new().with("key", Document::new().with("a", 1).with("b", 1)).with("name", "pair");
        let spec = IndexSpec::parse(spec.view()).expect("valid");
        let numbers = world.engine.create_indexes(&collection, vec![spec]).expect("made");
        while !world.engine.build_indexes_step(&collection, &numbers, 3).expect("a step").done {}
        let document = |b: Value| {
            RawDocument::from_document(&Document::new().with("_id", 1).with("a", array()).with("b", b))
        };
        let documents = vec![document(Value::Int32(1))];
        world.engine.insert(&collection, documents, true, None).wait().expect("inserted");
        let faults = || {
            let check = world.engine.check_collection(&collection).expect("a check");
            check.faults.into_iter().filter(|fault| fault.contains("cannot hold it")).collect::<Vec<_>>()
        };
        assert!(faults().is_empty());
        let (key, value) = below::entries(&*world.store, Keyspace::Item, collection.partition.id).remove(0);
        let number = item_number(&key).expect("a number");
        let (_, header) = decode_header(number, &value.clone().into()).expect("a header");
        let unfit = document(Value::Array(array()));
        let value = [&value[..header], unfit.as_bytes()].concat();
        below::change(&*world.store, move |tx| tx.put(Keyspace::Item, key, value));
        world.clock.advance(Duration::from_secs(waited));
        assert_eq!(faults().len(), usize::from(is_told), "ttl {ttl:?} after {waited} s: {:?}", faults());
        assert!(faults().iter().all(|fault| fault.contains("'pair'")), "{:?}", faults());
    }
}

/// A dropped index leaves no entry, whatever state it was in; neither does a dropped collection.
#[test]
fn what_is_dropped_is_cleared_away() {
    let world = world();
    let collection = world.engine.create_collection("db", "c", CollectionDefinition::default(), None);
    let collection = collection.expect("made");
    let documents: Vec<_> = (0..20).map(|id| RawDocument::from_document(&item(id))).collect();
    let without = world.left(&collection).len();
    world.engine.insert(&collection, documents, true, None).wait().expect("inserted");
    let bare = world.left(&collection);
    let whole = world.index(&collection, "tags", &[]);
    let spec = Document::new().with("key", Document::new().with("u", 1)).with("name", "u");
    let spec = IndexSpec::parse(spec.view()).expect("valid");
    let begun = world.engine.create_indexes(&collection, vec![spec]).expect("made")[0];
    world.engine.build_indexes_step(&collection, &[begun], 4).expect("a step");
    assert!(world.left(&collection).len() > bare.len());
    world.engine.drop_indexes(&collection, &[whole, begun]).expect("dropped");
    world.run_background();
    assert_eq!(world.left(&collection), bare);
    world.engine.drop_collection(&collection).expect("dropped");
    world.run_background();
    assert_eq!(world.left(&collection).len(), without);
}

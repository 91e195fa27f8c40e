//! Plans and scans against a full scan, with random documents, filters and pauses.

use std::collections::BTreeSet;
use std::sync::Arc;

use bson::{Collation, Document, RawDocument, Value};
use mql::Context;
use mql::filter::{Filter, Settings};
use mql::index::IndexSpec;
use storage::{ClockOptions, Direction, ManualClock, MemoryStore, Time};

use super::scan::{LAST_CHUNK, SEEN_MAX};
use super::{AccessPath, DocumentScan, Plan, PlanRequest, plan};
use crate::collection::{Collection, CollectionDefinition, LivingDocument, Reading};
use crate::tests::model_test::each_seed;
use crate::{Engine, Result};

const SEEDS: u64 = 8;

const INDEXES: &[&str] = &[
    r#"{"key": {"a": 1}, "name": "a"}"#,
    r#"{"key": {"b": -1}, "name": "b"}"#,
    r#"{"key": {"c": 1, "a": 1}, "name": "ca"}"#,
    r#"{"key": {"d": 1, "c": 1}, "name": "dc"}"#,
    r#"{"key": {"c": 1}, "name": "partial", "partialFilterExpression": {"c": {"$gt": 5}}}"#,
];

fn json(text: &str) -> Document {
    match bson::parse_extended_json(text).unwrap() {
        Value::Document(document) => document,
        other => panic!("not a document but {other:?}"),
    }
}

fn filled(random: &mut fastrand::Rng) -> (Arc<Engine>, Arc<Collection>) {
    let clock = Arc::new(ManualClock::new(Time::from_seconds(1_700_000_000)));
    let store = Arc::new(MemoryStore::new(ClockOptions::new(clock)).unwrap());
    let engine = Arc::new(Engine::open(store).unwrap());
    let definition = CollectionDefinition {
        uuid: [7; 16],
        options: RawDocument::default(),
        collation: Collation::simple(),
        shard_key: None,
    };
    let collection = engine.create_collection("db", "c", definition, None).unwrap();
    let specs = INDEXES.iter().map(|spec| IndexSpec::parse(json(spec).view()).unwrap());
    engine.create_indexes(&collection, specs.collect()).unwrap();
    let value = |random: &mut fastrand::Rng| match random.u8(..4) {
        0 => {
            let items = (0..random.usize(..4)).map(|_| Value::Int32(random.i32(0..10)));
            Value::Array(items.collect())
        }
        _ => Value::Int32(random.i32(0..10)),
    };
    let documents = (0..60).map(|id| {
        let document = Document::new().with("_id", id).with("a", value(random)).with("b", value(random));
        // Two arrays cannot be in one index.
        let document = document.with("c", random.i32(0..10));
        RawDocument::from_document(&match random.u8(..4) {
            0 => document,
            1 => document.with("d", "text"),
            _ => document.with("d", random.i32(0..4)),
        })
    });
    let documents = documents.collect();
    for outcome in engine.insert(&collection, documents, false, None).wait().unwrap() {
        outcome.unwrap();
    }
    (engine, collection)
}

fn branch(random: &mut fastrand::Rng) -> String {
    let condition = |random: &mut fastrand::Rng| {
        let (field, number) = (random.choice(["a", "b", "c"]).unwrap(), random.i32(0..10));
        match random.u8(..3) {
            0 => format!(r#""{field}": {number}"#),
            1 => format!(r#""{field}": {{"$gte": {number}}}"#),
            _ => format!(r#""{field}": {{"$in": [{number}, {}]}}"#, random.i32(0..10)),
        }
    };
    format!("{{{}}}", condition(random))
}

fn read<T>(engine: &Engine, collection: &Arc<Collection>, work: impl FnOnce(&Reading<'_>) -> Result<T>) -> T {
    work(&engine.reading(&[collection]).unwrap()).unwrap()
}

fn planned(engine: &Engine, collection: &Arc<Collection>, filter: &Filter) -> Plan {
    let collation = &Collation::simple();
    let request = PlanRequest { filter, sort: None, limit: None, collation, hint: None };
    read(engine, collection, |reading| plan(reading, collection, &request))
}

/// Returns the ids that a scan finds, which pauses at random points.
fn scanned(
    mut scan: DocumentScan,
    engine: &Engine,
    collection: &Arc<Collection>,
    random: &mut fastrand::Rng,
) -> Vec<i32> {
    let context = Context::at(0);
    let mut ids = Vec::new();
    loop {
        let some = random.usize(1..9);
        let returned: Vec<LivingDocument> = read(engine, collection, |reading| {
            (0..some).filter_map(|_| scan.next(reading, &context).transpose()).collect()
        });
        scan.rest();
        let id = |found: &LivingDocument| match found.document.get("_id") {
            Some(bson::ValueRef::Int32(id)) => id,
            other => panic!("no _id but {other:?}"),
        };
        ids.extend(returned.iter().map(id));
        if returned.len() < some {
            return ids;
        }
    }
}

#[test]
fn branches_find_what_a_look_at_everything_finds_each_document_once() {
    let mut several = 0;
    let seeds = each_seed(SEEDS, |seed| {
        let mut random = fastrand::Rng::with_seed(seed);
        let (engine, collection) = filled(&mut random);
        for _ in 0..25 {
            let branches: Vec<String> = (0..random.usize(2..5)).map(|_| branch(&mut random)).collect();
            let filter = json(&format!(r#"{{"$or": [{}]}}"#, branches.join(", ")));
            let parsed = Arc::new(Filter::parse(filter.view(), &Settings::default()).unwrap());
            let all = DocumentScan::new(
                Some(Arc::clone(&collection)),
                Arc::clone(&parsed),
                AccessPath::CollectionScan(Direction::Forward),
                None,
            );
            let expected: BTreeSet<i32> =
                scanned(all, &engine, &collection, &mut random).into_iter().collect();
            let plan = planned(&engine, &collection, &parsed);
            several += usize::from(plan.indexes.len() > 1);
            for seen_max in [0, 3, SEEN_MAX] {
                let mut scan = plan.clone().into_scan(&collection, &parsed, None);
                scan.seen_max = seen_max;
                let returned = scanned(scan, &engine, &collection, &mut random);
                let once: BTreeSet<i32> = returned.iter().copied().collect();
                assert_eq!(returned.len(), once.len(), "each once: {filter:?}, {seen_max}");
                assert_eq!(once, expected, "{filter:?}, {seen_max}");
            }
        }
    });
    assert!(seeds < SEEDS || several > 20, "only {several} of 200 filters were answered by several indexes");
}

/// A stage behind the scan, as `$skip`, drops rows that the scan has returned: as many as that are read at once.
#[test]
fn rows_that_are_dropped_behind_the_scan_are_read_in_larger_and_larger_chunks() {
    let (engine, collection) = filled(&mut fastrand::Rng::with_seed(1));
    let document = |id: i32| RawDocument::from_document(&Document::new().with("_id", id));
    let more = (60..3_000).map(document).collect();
    engine.insert(&collection, more, true, None).wait().unwrap();
    let filter = Arc::new(Filter::parse(Document::new().view(), &Settings::default()).unwrap());
    let reads = |shown_before: usize, wanted: usize| {
        let path = AccessPath::CollectionScan(Direction::Forward);
        let mut scan = DocumentScan::new(Some(Arc::clone(&collection)), Arc::clone(&filter), path, None);
        read(&engine, &collection, |reading| {
            let mut given = 0;
            while given < 2_000 {
                // So many are shown, all others are dropped.
                scan.wants(Some(wanted - given.min(shown_before)));
                assert!(scan.next(reading, &Context::at(0))?.is_some());
                given += 1;
            }
            Ok(())
        });
        let ahead = scan.ahead.len();
        (scan.read - scan.documents as usize - ahead, ahead)
    };
    for (shown_before, wanted) in [(0, 1), (3, 5)] {
        let (reads, ahead) = reads(shown_before, wanted);
        assert!(reads < 25, "{reads} scans for 2,000 documents");
        assert!(ahead <= LAST_CHUNK, "{ahead} are read ahead");
    }
}

#[test]
fn where_entries_alone_are_counted_there_are_as_many_documents() {
    let mut covered = 0;
    let seeds = each_seed(SEEDS, |seed| {
        let mut random = fastrand::Rng::with_seed(seed);
        let (engine, collection) = filled(&mut random);
        for _ in 0..25 {
            let number = random.i32(0..4);
            let condition = match random.u8(..8) {
                0 => format!("{number}"),
                1 => format!(r#"{{"$lt": {number}}}"#),
                2 => format!(r#"{{"$in": [{number}, "text", 3]}}"#),
                3 => r#"{"$in": [null, 1]}"#.to_owned(),
                4 => "null".to_owned(),
                5 => r#"{"$exists": true}"#.to_owned(),
                6 => format!(r#"{{"$ne": {number}}}"#),
                _ => r#"{"$type": "string"}"#.to_owned(),
            };
            let other = random.choice(["", r#", "c": {"$gte": 5}"#, r#", "a": 3"#]).unwrap();
            let filter = json(&format!(r#"{{"d": {condition}{other}}}"#));
            let parsed = Arc::new(Filter::parse(filter.view(), &Settings::default()).unwrap());
            let plan = planned(&engine, &collection, &parsed);
            if !plan.covered {
                continue;
            }
            covered += 1;
            let scan = plan.into_scan(&collection, &parsed, None);
            let counted = read(&engine, &collection, |reading| scan.count_entries(reading, &Context::at(0)));
            let found = scanned(scan, &engine, &collection, &mut random).len();
            assert_eq!(counted, found as u64, "{filter:?}");
        }
    });
    assert!(seeds < SEEDS || covered > 20, "only {covered} of 200 filters were answered by entries alone");
}

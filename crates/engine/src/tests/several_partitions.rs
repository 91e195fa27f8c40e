//! A container of several physical partitions. No front end makes one yet, but every layer must already support it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use document::{Document, EffectiveKey, EffectiveRange, PartitionKey, parse_json};
use storage::{ClockOptions, ManualClock, MemoryStore, Time};

use crate::{
    Container, ContainerDefinition, Engine, Error, EventKind, FeedStart, HistoryFrom, ItemName, Operation,
    Owner, Precondition, QueryRequest, Scope,
};

const ITEMS: usize = 40;

fn definition(default_ttl: &str) -> ContainerDefinition {
    let text =
        format!(r#"{{"id":"c","partitionKey":{{"paths":["/pk"],"kind":"Hash","version":2}}{default_ttl}}}"#);
    ContainerDefinition::from_value(&parse_json(text.as_bytes()).expect("valid JSON")).expect("valid")
}

/// Returns an engine with a container of four ranges and items in all of them, half of which expire soon.
fn world() -> (Engine, Arc<Container>, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new(Time::from_seconds(1_700_000_000)));
    let store = MemoryStore::new(ClockOptions::new(clock.clone())).expect("a store");
    let engine = Engine::open(Arc::new(store)).expect("an engine");
    let database = engine.create_database("db", None).expect("a database");
    let bounds: Vec<EffectiveKey> =
        ["", "10", "20", "30", "FF"].iter().map(|hex| hex.parse().expect("hex")).collect();
    let ranges = bounds.windows(2).map(|pair| EffectiveRange::new(pair[0].clone(), pair[1].clone()));
    let container = engine
        .create_partitioned(&database, definition(r#","defaultTtl":-1"#), None, ranges.collect())
        .expect("a container");
    for n in 0..ITEMS {
        let ttl = if n % 2 == 0 { r#","ttl":10"# } else { "" };
        let body = format!(r#"{{"id":"{n:02}","pk":"k{n}"{ttl}}}"#);
        let body = Document::from_json(body.as_bytes()).expect("valid JSON");
        engine.write(&container, None, Operation::Create { body }).wait().expect("created");
    }
    (engine, container, clock)
}

fn id(row: &[u8]) -> String {
    let item = parse_json(row).expect("a row is JSON");
    item.get("id").and_then(document::Value::as_str).expect("a row is an item").to_owned()
}

/// Returns all ids that a query finds, in pages of `page` items; no id twice.
fn walk(engine: &Engine, container: &Container, query: &str, page: usize) -> BTreeSet<String> {
    let query = query::parse(query, &[], &query::Dialect::default()).expect("supported");
    let (mut found, mut continuation) = (BTreeSet::new(), None);
    loop {
        let request = QueryRequest { continuation, ..QueryRequest::new(Some(&query), page) };
        let answer = engine.query(container, &request).expect("a page");
        for row in &answer.rows {
            assert!(found.insert(id(row)), "{} comes twice", id(row));
        }
        continuation = answer.continuation;
        if continuation.is_none() {
            return found;
        }
    }
}

#[test]
fn pages_go_through_all_partitions() {
    let (engine, container, _) = world();
    for query in ["SELECT * FROM c", "SELECT * FROM c WHERE c._ts > 5"] {
        for page in 1..=7 {
            assert_eq!(walk(&engine, &container, query, page).len(), ITEMS, "{query} by {page}");
        }
    }
}

#[test]
fn every_item_lies_in_the_range_of_its_key_and_nowhere_else() {
    let (engine, container, _) = world();
    let mut sum = 0;
    for partition in &container.partitions {
        let scope = Scope { key: None, range: Some(partition.range.clone()) };
        let request = QueryRequest { scope, ..QueryRequest::new(None, 1000) };
        let page = engine.query(&container, &request).expect("a page");
        assert!(!page.rows.is_empty(), "forty keys reach every quarter");
        for row in &page.rows {
            let item = Document::from_json(row).expect("valid JSON");
            let key = PartitionKey::extract(&container.definition.partition_key, item.root()).expect("a key");
            let effective = key.effective(&container.definition.partition_key);
            assert!(partition.range.contains(&effective));
            let name = ItemName::Id(id(row));
            engine.read(&container, &key, &name, &Precondition::None).expect("found by its key");
        }
        sum += page.rows.len();
    }
    assert_eq!(sum, ITEMS);
}

/// T11, T13, T18, T22 in every partition alike.
#[test]
fn t13_a_policy_change_and_the_purge_reach_every_partition() {
    let (engine, container, clock) = world();
    clock.advance(Duration::from_secs(10));
    let container =
        engine.replace_container(&container, definition(""), &Precondition::None).expect("TTL switched off");
    let usage = engine.usage(&container).expect("figures");
    assert_eq!((usage.living.items, usage.expired.items), (20, 20));
    assert_eq!(walk(&engine, &container, "SELECT * FROM c", 3).len(), 20);
    loop {
        let report = engine.purge_step(5).expect("a step");
        if report.next_due.is_none() {
            break;
        }
    }
    let usage = engine.usage(&container).expect("figures");
    assert_eq!((usage.living.items, usage.expired.items), (20, 0));
    assert_eq!(walk(&engine, &container, "SELECT * FROM c", 3).len(), 20);
}

/// Partitions are read in turn; nothing is lost or repeated, also when others write meanwhile.
#[test]
fn t28_both_feeds_go_through_all_partitions() {
    let (engine, container, clock) = world();
    let owner = Owner::Container(Arc::clone(&container));
    engine.change_lifecycle(&owner, |lifecycle| lifecycle.history_minutes = Some(10)).expect("a change");
    let scope = Scope::default();
    let mut from = HistoryFrom::After(
        engine.history(&container, &scope, &HistoryFrom::Now, 1).expect("a page").continuation,
    );
    let (mut latest, mut start) = (Vec::new(), FeedStart::Beginning);
    for n in 0.. {
        let changes = engine.changes(&container, &scope, &start, 3).expect("a page");
        if changes.items.is_empty() && !changes.more {
            break;
        }
        latest.extend(changes.items.iter().map(|item| item.id().to_owned()));
        start = FeedStart::After(changes.continuation);
        if n < 5 {
            let body = format!(r#"{{"id":"new{n}","pk":"n{n}"}}"#);
            let body = Document::from_json(body.as_bytes()).expect("valid JSON");
            engine.write(&container, None, Operation::Create { body }).wait().expect("created");
        }
    }
    assert_eq!(latest.len(), ITEMS + 5);
    assert_eq!(latest.iter().collect::<BTreeSet<_>>().len(), ITEMS + 5, "each once");

    clock.advance(Duration::from_secs(10));
    engine.purge_step(7).expect("a step");
    let (mut expired, mut created) = (BTreeSet::new(), 0);
    loop {
        let page = engine.history(&container, &scope, &from, 3).expect("a page");
        assert!(page.events.is_sorted_by_key(|event| event.position));
        for event in &page.events {
            match event.kind {
                EventKind::Create => created += 1,
                EventKind::Expire => {
                    let item = event.previous.as_ref().expect("the item that died");
                    assert!(expired.insert(item.id().to_owned()), "{} expires twice", item.id());
                }
                other => panic!("{other:?}"),
            }
        }
        if page.events.is_empty() && !page.more {
            break;
        }
        from = HistoryFrom::After(page.continuation);
    }
    assert_eq!((expired.len(), created), (ITEMS / 2, 5));
    let one = Scope { key: None, range: Some(container.partitions[1].range.clone()) };
    engine.history(&container, &one, &from, 3).expect("a part of what the position is for");
    let foreign = HistoryFrom::After("nonsense".into());
    let refused = engine.history(&container, &scope, &foreign, 3);
    assert!(matches!(refused, Err(Error::InvalidContinuation { .. })));
}

//! A container of several physical partitions: pages, feeds, changes of rules and the purge go through all of them.

use std::collections::BTreeSet;

use document::{Document, PartitionKey};
use engine::{Error, EventKind, FeedStart, HistoryFrom, ItemName, Precondition, Scope};

use crate::world::{World, ids, value};

const ITEMS: usize = 40;

/// Returns a world with a container of four ranges and items in all of them, half of which expire soon.
fn world() -> World {
    let world = World::of_partitions(4);
    world.container(r#","defaultTtl":-1"#);
    for n in 0..ITEMS {
        let ttl = if n % 2 == 0 { r#","ttl":10"# } else { "" };
        world.create(&format!("k{n}"), &format!(r#""id":"{n:02}"{ttl}"#)).expect("created");
    }
    world
}

/// Returns all ids that a query finds, in pages of `page` items; no id twice.
fn walk(world: &World, query: &str, page: usize) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for row in world.rows(query, page) {
        let id = value(&row).get("id").and_then(document::Value::as_str).expect("an item").to_owned();
        assert!(found.insert(id), "{row} comes twice");
    }
    found
}

#[test]
fn pages_go_through_all_partitions() {
    let world = world();
    for query in ["SELECT * FROM c", "SELECT * FROM c WHERE c._ts > 5"] {
        for page in 1..=7 {
            assert_eq!(walk(&world, query, page).len(), ITEMS, "{query} by {page}");
        }
    }
}

#[test]
fn every_item_lies_in_the_range_of_its_key_and_nowhere_else() {
    let world = world();
    let (container, mut sum) = (world.current(), 0);
    for partition in &container.partitions {
        let scope = Scope { key: None, range: Some(partition.range.clone()) };
        let page = world.page_in(&scope, None, 1000, None);
        assert!(!page.rows.is_empty(), "forty keys reach every quarter");
        for (row, id) in page.rows.iter().zip(ids(&page)) {
            let item = Document::from_json(row).expect("valid JSON");
            let key = PartitionKey::extract(&container.definition.partition_key, item.root()).expect("a key");
            let effective = key.effective(&container.definition.partition_key);
            assert!(partition.range.contains(&effective));
            let name = ItemName::Id(id);
            world.engine.read(&container, &key, &name, &Precondition::None).expect("found by its key");
        }
        sum += page.rows.len();
    }
    assert_eq!(sum, ITEMS);
}

/// T11, T13, T18, T22 in every partition alike.
#[test]
fn t13_a_policy_change_and_the_purge_reach_every_partition() {
    let world = world();
    world.pass(10);
    world.set_default(None);
    assert_eq!(world.counts(), (20, 20));
    assert_eq!(walk(&world, "SELECT * FROM c", 3).len(), 20);
    while world.engine.purge_step(5).expect("a step").next_due.is_some() {}
    assert_eq!(world.counts(), (20, 0));
    assert_eq!(walk(&world, "SELECT * FROM c", 3).len(), 20);
    world.set_default(Some(10));
    assert_eq!(world.counts(), (0, 20));
}

/// Partitions are read in turn; nothing is lost or repeated, also when others write meanwhile.
#[test]
fn t28_both_feeds_go_through_all_partitions() {
    let world = world();
    let (engine, container) = (&world.engine, world.current());
    engine
        .change_lifecycle(&world.owner(), |lifecycle| lifecycle.history_minutes = Some(10))
        .expect("a change");
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
            world.create(&format!("n{n}"), &format!(r#""id":"new{n}""#)).expect("created");
        }
    }
    assert_eq!(latest.len(), ITEMS + 5);
    assert_eq!(latest.iter().collect::<BTreeSet<_>>().len(), ITEMS + 5, "each once");

    world.pass(10);
    engine.purge_step(7).expect("a step");
    let (mut expired, mut created) = (BTreeSet::new(), 0);
    loop {
        let page = engine.history(&container, &scope, &from, 3).expect("a page");
        assert!(page.events.is_sorted_by_key(|event| event.position));
        for event in &page.events {
            match event.kind {
                EventKind::Create => created += 1,
                EventKind::Expire => {
                    let item = event.previous.as_ref().expect("the item that expired");
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

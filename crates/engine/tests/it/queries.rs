//! Queries: what they find, page by page.

use document::PartitionKey;
use engine::{QueryRequest, Scope};

use crate::world::{START, World, ids, key};

fn world() -> World {
    let world = World::new();
    world.container(r#","defaultTtl":-1"#);
    for (pk, id, more) in [
        ("a", "1", r#","v":1"#),
        ("a", "2", r#","v":2,"ttl":50"#),
        ("b", "3", r#","v":3"#),
        ("b", "4", r#","v":4,"ttl":-1"#),
        ("c", "5", r#","v":5"#),
    ] {
        world.create(pk, &format!(r#""id":"{id}"{more}"#)).expect("created");
        world.pass(10);
    }
    world
}

fn sorted(mut ids: Vec<String>) -> Vec<String> {
    ids.sort();
    ids
}

#[test]
fn filters_on_id_key_stamp_and_any_property() {
    let world = world();
    let at = |n: u64| START + n;
    for (filter, expected) in [
        ("c.id = '3'".to_owned(), vec!["3"]),
        ("c.pk = 'a'".to_owned(), vec!["1", "2"]),
        ("c.pk = 'a' AND c.id IN ('2', '3')".to_owned(), vec!["2"]),
        ("(c.id = '1' AND c.pk = 'a') OR (c.id = '3' AND c.pk = 'b')".to_owned(), vec!["1", "3"]),
        ("c.v >= 4".to_owned(), vec!["4", "5"]),
        (format!("c._ts > {}", at(10)), vec!["3", "4", "5"]),
        (format!("c._ts >= {} AND c._ts <= {}", at(10), at(30)), vec!["2", "3", "4"]),
        (format!("c._ts < {} AND c.v != 1", at(30)), vec!["2", "3"]),
        ("c.id = 'nobody'".to_owned(), vec![]),
    ] {
        assert_eq!(sorted(world.ids(&format!("SELECT * FROM c WHERE {filter}"))), expected, "{filter}");
    }
}

/// Queries on `_ts` come in the order of `_ts`, from the queues of items with and without own ttl alike.
#[test]
fn a_stamp_query_merges_the_queues_in_order_of_time() {
    let world = world();
    let query = format!("SELECT * FROM c WHERE c._ts >= {START}");
    assert_eq!(world.ids(&query), ["1", "2", "3", "4", "5"]);
}

/// T14: the dead are in no answer and in no figure.
#[test]
fn t14_the_dead_are_neither_found_nor_counted() {
    let world = world();
    world.pass(10);
    for purged in [false, true] {
        if purged {
            world.drain();
        }
        let page = world.page(Some("SELECT * FROM c WHERE c._ts >= 1"), 100, None);
        assert_eq!((page.metrics.loaded_items, page.metrics.output_items), (4, 4));
        assert_eq!(page.charge, engine::Charge::query(&page.metrics, 1));
    }
}

#[test]
fn pages_neither_repeat_nor_skip_while_items_come_and_go() {
    for filter in ["", "WHERE c._ts >= 1", "WHERE c.pk IN ('a','b','c')", "WHERE c.v > 0"] {
        let world = world();
        let query = format!("SELECT * FROM c {filter}");
        let (mut seen, mut token) = (Vec::new(), None);
        loop {
            let page = world.page(Some(&query), 2, token);
            assert!(page.rows.len() <= 2);
            seen.extend(ids(&page));
            if seen.len() == 2 {
                world
                    .delete("a", &seen[0])
                    .or_else(|_| world.delete("b", &seen[0]))
                    .or_else(|_| world.delete("c", &seen[0]))
                    .expect("deleted");
            }
            token = page.continuation;
            if token.is_none() {
                break;
            }
        }
        assert_eq!(sorted(seen), ["1", "2", "3", "4", "5"], "{filter}");
    }
}

#[test]
fn a_scope_limits_a_query_to_a_key_or_a_range() {
    let world = world();
    let container = world.current();
    let ids = |query: Option<&str>, scope: &Scope| sorted(ids(&world.page_in(scope, query, 100, None)));
    let by_key = Scope { key: Some(key("b")), range: None };
    assert_eq!(ids(None, &by_key), ["3", "4"]);
    assert_eq!(ids(Some("SELECT * FROM c WHERE c._ts > 1"), &by_key), ["3", "4"]);
    assert_eq!(ids(Some("SELECT * FROM c WHERE c.pk = 'a'"), &by_key), Vec::<String>::new());
    let range = key("b").effective_range(&container.definition.partition_key);
    let by_range = Scope { key: None, range: Some(range) };
    assert_eq!(ids(None, &by_range), ["3", "4"]);
    assert_eq!(ids(Some("SELECT * FROM c WHERE c._ts > 1"), &by_range), ["3", "4"]);
}

#[test]
fn a_prefix_of_a_hierarchical_key_finds_all_below_it() {
    let world = World::new();
    let database = world.engine.database("db").expect("made");
    let text = r#"{"id":"h","partitionKey":{"paths":["/t","/u","/s"],"kind":"MultiHash","version":2}}"#;
    let definition = engine::ContainerDefinition::from_value(&crate::world::value(text)).expect("valid");
    let container = world.engine.create_container(&database, definition, None).expect("created");
    for (t, u, s) in [("x", "1", "p"), ("x", "1", "q"), ("x", "2", "p"), ("y", "1", "p")] {
        let text = format!(r#"{{"id":"{t}{u}{s}","t":"{t}","u":"{u}","s":"{s}"}}"#);
        let body = document::Document::from_json(text.as_bytes()).expect("valid");
        world.engine.write(&container, None, engine::Operation::Create { body }).wait().expect("created");
    }
    for (prefix, expected) in [(r#"["x"]"#, 3), (r#"["x","1"]"#, 2), (r#"["x","1","q"]"#, 1), (r#"["z"]"#, 0)]
    {
        let scope = Scope { key: Some(PartitionKey::from_header(prefix).expect("valid")), range: None };
        let request = QueryRequest { scope, ..QueryRequest::new(None, 100) };
        let page = world.engine.query(&container, &request).expect("a page");
        assert_eq!(page.rows.len(), expected, "{prefix}");
    }
}

/// T14: a token names no dead item, so it is the same whether or not the purge has run.
#[test]
fn t14_a_token_does_not_tell_of_the_dead() {
    for filter in ["", "WHERE c._ts >= 1"] {
        let world = world();
        world.pass(10);
        let query = format!("SELECT * FROM c {filter}");
        let tokens = || {
            let (mut tokens, mut next) = (Vec::new(), None);
            loop {
                let page = world.page(Some(&query), 1, next);
                let Some(token) = page.continuation else { return tokens };
                tokens.push(token.clone());
                next = Some(token);
            }
        };
        let before = tokens();
        assert_eq!((before.len(), world.drain()), (3, 1));
        assert_eq!(tokens(), before);
    }
}

#[test]
fn a_foreign_continuation_is_refused() {
    let world = world();
    for token in ["nonsense", "AAAAAQFh", ""] {
        let request = QueryRequest { continuation: Some(token.into()), ..QueryRequest::new(None, 1) };
        assert!(world.engine.query(&world.current(), &request).is_err(), "{token}");
    }
}

//! Hierarchical keys with levels that items do not have: such a level is undefined, which is a value of its own.
//!
//! One table of items goes through every operation, in containers of one and of several ranges.

use std::sync::Arc;

use document::{Document, PartitionKey};
use engine::{
    Container, ContainerDefinition, Effect, Error, EventKind, FeedStart, HistoryFrom, ItemName, Operation,
    Patch, Precondition, QueryRequest, Scope, Throughput,
};

use crate::world::{World, ids, parse, value};

/// Id, the members that the key is made of, the key.
const ITEMS: [(&str, &str, &str); 8] = [
    ("both", r#""x":"a","y":"b""#, r#"["a","b"]"#),
    ("first", r#""x":"a""#, r#"["a",{}]"#),
    ("first and null", r#""x":"a","y":null"#, r#"["a",null]"#),
    ("first and list", r#""x":"a","y":["b"]"#, r#"["a",{}]"#),
    ("second", r#""y":"b""#, r#"[{},"b"]"#),
    ("null and second", r#""x":null,"y":"b""#, r#"[null,"b"]"#),
    ("neither", r#""n":1"#, "[{},{}]"),
    ("nulls", r#""x":null,"y":null"#, "[null,null]"),
];

const KEYS: [&str; 7] = [
    r#"["a","b"]"#,
    r#"["a",{}]"#,
    r#"["a",null]"#,
    r#"[{},"b"]"#,
    r#"[null,"b"]"#,
    "[{},{}]",
    "[null,null]",
];

fn key(text: &str) -> PartitionKey {
    PartitionKey::from_header(text).expect("a key")
}

fn body(id: &str, members: &str, more: &str) -> Document {
    Document::from_json(format!(r#"{{"id":"{id}",{members}{more}}}"#).as_bytes()).expect("valid JSON")
}

struct Keyed {
    world: World,
    container: Arc<Container>,
}

impl Keyed {
    fn new(paths: &str, more: &str, throughput: u32) -> Keyed {
        let world = World::new();
        let database = world.engine.database("db").expect("made at the start");
        let text = format!(
            r#"{{"id":"c","partitionKey":{{"paths":{paths},"kind":"MultiHash","version":2}}{more}}}"#
        );
        let definition = ContainerDefinition::from_value(&value(&text)).expect("a valid definition");
        let throughput = Some(Throughput::Manual(throughput));
        let container = world.engine.create_container(&database, definition, throughput).expect("created");
        Keyed { world, container }
    }

    /// Containers of one range and of several, each with all items.
    fn filled(more: &str) -> [Keyed; 2] {
        [400, 50_000].map(|throughput| {
            let keyed = Keyed::new(r#"["/x","/y"]"#, more, throughput);
            assert_eq!(keyed.container.partitions.len() > 1, throughput > 10_000);
            for (id, members, text) in ITEMS {
                let outcome = keyed.run(Some(text), Operation::Create { body: body(id, members, "") });
                assert_eq!(outcome.expect("created").effect, Effect::Created, "{id}");
            }
            keyed
        })
    }

    fn run(&self, key_text: Option<&str>, operation: Operation) -> Result<engine::Outcome, Error> {
        self.world.engine.write(&self.container, key_text.map(key), operation).wait()
    }

    fn is_there(&self, key_text: &str, id: &str) -> bool {
        let name = ItemName::Id(id.into());
        match self.world.engine.read(&self.container, &key(key_text), &name, &Precondition::None) {
            Ok(_) => true,
            Err(Error::NotFound { .. }) => false,
            Err(other) => panic!("{id} under {key_text}: {other}"),
        }
    }

    fn ids(&self, scope: &Scope, query: Option<&str>) -> Vec<String> {
        let query = query.map(parse);
        let (mut found, mut continuation) = (Vec::new(), None);
        loop {
            let scope = scope.clone();
            let request = QueryRequest { scope, continuation, ..QueryRequest::new(query.as_ref(), 2) };
            let page = self.world.engine.query(&self.container, &request).expect("a page");
            found.extend(ids(&page));
            continuation = page.continuation;
            if continuation.is_none() {
                found.sort();
                return found;
            }
        }
    }

    fn feed(&self, scope: &Scope) -> Vec<String> {
        let page = self.world.engine.changes(&self.container, scope, &FeedStart::Beginning, 100);
        let mut found: Vec<String> =
            page.expect("a page").items.iter().map(|item| item.id().to_owned()).collect();
        found.sort();
        found
    }

    fn is_sound(&self) {
        let report = self.world.engine.check().expect("an inspection");
        assert!(report.is_sound(), "{:#?}", report.told);
    }
}

/// Returns the ids of the items whose key begins with these parts, sorted.
fn below(prefix: &str) -> Vec<String> {
    let prefix = key(prefix);
    let below = ITEMS.iter().filter(|(_, _, text)| prefix.is_prefix_of(&key(text)));
    let mut ids: Vec<String> = below.map(|(id, _, _)| (*id).to_owned()).collect();
    ids.sort();
    ids
}

fn by_key(text: &str) -> Scope {
    Scope { key: Some(key(text)), range: None }
}

#[test]
fn an_item_is_found_under_its_own_key_alone() {
    for keyed in Keyed::filled("") {
        for (id, _, own) in ITEMS {
            for other in KEYS {
                assert_eq!(keyed.is_there(other, id), other == own, "{id} under {other}");
            }
        }
        keyed.is_sound();
    }
}

#[test]
fn prefixes_and_ranges_find_missing_levels_in_queries_and_feeds() {
    let queries = [
        None,
        Some("SELECT * FROM c WHERE c._ts > 1"),
        Some("SELECT * FROM c ORDER BY c.id"),
        Some("SELECT * FROM c WHERE IS_DEFINED(c.id)"),
    ];
    for keyed in Keyed::filled("") {
        for text in [r#"["a"]"#, "[{}]", "[null]", r#"["b"]"#].into_iter().chain(KEYS) {
            let range = key(text).effective_range(&keyed.container.definition.partition_key);
            for scope in [by_key(text), Scope { key: None, range: Some(range) }] {
                for query in queries {
                    assert_eq!(keyed.ids(&scope, query), below(text), "{text}, {scope:?}, {query:?}");
                }
                assert_eq!(keyed.feed(&scope), below(text), "{text}, {scope:?}");
            }
        }
    }
}

#[test]
fn a_filter_tells_undefined_from_null() {
    let rows = [
        ("NOT IS_DEFINED(c.y)", &["first", "neither"][..]),
        ("NOT IS_DEFINED(c.x) AND c.y = 'b'", &["second"]),
        ("NOT IS_DEFINED(c.x) AND NOT IS_DEFINED(c.y)", &["neither"]),
        ("c.x = 'a' AND NOT IS_DEFINED(c.y)", &["first"]),
        ("c.x = 'a' AND IS_NULL(c.y)", &["first and null"]),
        ("c.x = 'a' AND c.y = ['b']", &["first and list"]),
        ("IS_NULL(c.x)", &["null and second", "nulls"]),
    ];
    for keyed in Keyed::filled("") {
        for (filter, expected) in rows {
            let query = format!("SELECT * FROM c WHERE {filter}");
            assert_eq!(keyed.ids(&Scope::default(), Some(&query)), expected, "{filter}");
            let narrowed: Vec<&str> =
                expected.iter().copied().filter(|id| below("[{}]").iter().any(|own| own == id)).collect();
            assert_eq!(keyed.ids(&by_key("[{}]"), Some(&query)), narrowed, "{filter} below [{{}}]");
        }
    }
}

#[test]
fn every_write_keeps_the_key_as_it_is() {
    for keyed in Keyed::filled("") {
        for (id, members, own) in ITEMS {
            let name = || ItemName::Id(id.into());
            for (step, operation) in [
                Operation::Upsert { body: body(id, members, r#","m":1"#), precondition: Precondition::None },
                Operation::Replace {
                    name: name(),
                    body: body(id, members, r#","m":2"#),
                    precondition: Precondition::None,
                },
                Operation::Patch {
                    name: name(),
                    patch: Patch::from_value(&value(r#"[{"op":"incr","path":"/m","value":1}]"#))
                        .expect("valid"),
                    precondition: Precondition::None,
                },
            ]
            .into_iter()
            .enumerate()
            {
                // The key of an upsert follows from the body.
                let given = (step > 0).then_some(own);
                assert_eq!(
                    keyed.run(given, operation).expect("written").effect,
                    Effect::Replaced,
                    "{id} {step}"
                );
            }
            let (_, others, wrong) =
                ITEMS.into_iter().find(|(_, _, other)| *other != own).expect("another key");
            let replace = |members| Operation::Replace {
                name: name(),
                body: body(id, members, ""),
                precondition: Precondition::None,
            };
            let moved = keyed.run(Some(own), replace(others)).expect_err("another key in the body");
            assert!(matches!(moved, Error::KeyMismatch { .. }), "{moved}");
            let missing = keyed.run(Some(wrong), replace(members)).expect_err("not under that key");
            assert!(matches!(missing, Error::NotFound { .. }), "{missing}");
        }
        let patch = Patch::from_value(&value(r#"[{"op":"add","path":"/y","value":"b"}]"#)).expect("valid");
        let name = ItemName::Id("first".into());
        let added = Operation::Patch { name, patch, precondition: Precondition::None };
        assert!(keyed.run(Some(r#"["a",{}]"#), added).is_err(), "a level cannot be added");
        let short = keyed.run(Some(r#"["a"]"#), Operation::Create { body: body("new", r#""x":"a""#, "") });
        assert!(matches!(short, Err(Error::KeyMismatch { .. })), "a prefix is no key of an item");
        assert_eq!(keyed.ids(&Scope::default(), None).len(), ITEMS.len());
        keyed.is_sound();
    }
}

#[test]
fn a_batch_and_a_partition_delete_reach_one_key_alone() {
    for keyed in Keyed::filled("") {
        let operations = vec![
            Operation::Create { body: body("one", r#""x":"a""#, "") },
            Operation::Read { name: ItemName::Id("first".into()), precondition: Precondition::None },
            Operation::Delete { name: ItemName::Id("first".into()), precondition: Precondition::None },
        ];
        let batch =
            |operations| keyed.world.engine.batch(&keyed.container, &key(r#"["a",{}]"#), operations).wait();
        assert_eq!(batch(operations).expect("written").len(), 3);
        let foreign = vec![Operation::Create { body: body("two", r#""x":"a","y":null"#, "") }];
        let refused = batch(foreign).expect_err("another key");
        assert!(matches!(refused.error, Error::KeyMismatch { .. }), "{}", refused.error);
        let emptied = keyed.world.engine.delete_partition(&keyed.container, &key(r#"["a",{}]"#));
        assert_eq!(emptied.expect("deleted").items, 2, "what the batch made, and the item with a list");
        let emptied = keyed.world.engine.delete_partition(&keyed.container, &key("[{},{}]"));
        assert_eq!(emptied.expect("deleted").items, 1);
        let left = ["both", "first and null", "null and second", "nulls", "second"];
        assert_eq!(keyed.ids(&Scope::default(), None), left);
        keyed.is_sound();
    }
}

/// T14, T15, T28: items without levels expire, are purged and are in the feed as any other.
#[test]
fn t28_items_without_levels_expire_and_leave_nothing_behind() {
    let more = r#","defaultTtl":10,"changeFeedPolicy":{"retentionDuration":10}"#;
    for mut keyed in Keyed::filled(more) {
        let scope = by_key("[{}]");
        let now = keyed.world.engine.history(&keyed.container, &scope, &HistoryFrom::Now, 1).expect("a page");
        keyed.world.pass(10);
        for (id, _, own) in ITEMS {
            assert!(!keyed.is_there(own, id), "{id}");
        }
        let after = HistoryFrom::After(now.continuation);
        let page = keyed.world.engine.history(&keyed.container, &scope, &after, 100).expect("a page");
        let mut expired: Vec<&str> = page
            .events
            .iter()
            .map(|event| {
                assert_eq!(event.kind, EventKind::Expire);
                event.previous.as_ref().expect("the expired item").id()
            })
            .collect();
        expired.sort_unstable();
        assert_eq!(expired, below("[{}]"));
        assert_eq!(keyed.world.drain(), ITEMS.len() as u64);
        keyed.is_sound();
        keyed.world.restart();
        let database = keyed.world.engine.database("db").expect("there");
        keyed.container = keyed.world.engine.container(&database, "c").expect("there");
        assert!(keyed.ids(&Scope::default(), None).is_empty());
        keyed.is_sound();
    }
}

/// Entity Framework's definition for every entity: one path of kind `MultiHash`, which no item has.
#[test]
fn a_hierarchical_key_of_one_level_may_be_missing_in_every_item() {
    for throughput in [400, 50_000] {
        let mut keyed = Keyed::new(r#"["/__partitionKey"]"#, "", throughput);
        for n in 0..5 {
            let create = Operation::Create { body: body(&format!("{n}"), r#""n":1"#, "") };
            keyed.run(Some("[{}]"), create).expect("created");
        }
        let named = body("named", r#""__partitionKey":"k""#, "");
        keyed.run(None, Operation::Create { body: named }).expect("created");
        let range = key("[{}]").effective_range(&keyed.container.definition.partition_key);
        for scope in [by_key("[{}]"), Scope { key: None, range: Some(range) }] {
            for query in [None, Some("SELECT * FROM c WHERE c.n = 1"), Some("SELECT * FROM c ORDER BY c.id")]
            {
                assert_eq!(keyed.ids(&scope, query), ["0", "1", "2", "3", "4"], "{query:?}");
            }
            assert_eq!(keyed.feed(&scope).len(), 5);
        }
        assert_eq!(keyed.ids(&by_key(r#"["k"]"#), None), ["named"]);
        assert_eq!(keyed.ids(&Scope::default(), None).len(), 6);
        keyed.world.restart();
        let database = keyed.world.engine.database("db").expect("there");
        keyed.container = keyed.world.engine.container(&database, "c").expect("there");
        assert!(keyed.is_there("[{}]", "3") && !keyed.is_there("[null]", "3"));
        let emptied = keyed.world.engine.delete_partition(&keyed.container, &key("[{}]"));
        assert_eq!(emptied.expect("deleted").items, 5);
        keyed.is_sound();
    }
}

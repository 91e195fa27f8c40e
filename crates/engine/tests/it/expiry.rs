//! TTL.md T1 to T16, rule by rule.

use engine::{Effect, Error, ItemName, Operation, Precondition};

use crate::world::{START, World, body, ids};

/// T2: the nine cells, read a second before and at the only instant that could matter.
#[test]
fn t2_truth_table() {
    let cells = [
        (None, "", None),
        (None, r#","ttl":-1"#, None),
        (None, r#","ttl":7"#, None),
        (Some(-1), "", None),
        (Some(-1), r#","ttl":-1"#, None),
        (Some(-1), r#","ttl":7"#, Some(7)),
        (Some(10), "", Some(10)),
        (Some(10), r#","ttl":-1"#, None),
        (Some(10), r#","ttl":7"#, Some(7)),
    ];
    for (default, own, lives) in cells {
        let world = World::new();
        world.container("");
        world.set_default(default);
        world.create("a", &format!(r#""id":"x"{own}"#)).expect("created");
        let Some(lives) = lives else {
            world.pass(100_000_000);
            assert!(world.is_alive("a", "x"), "{default:?} {own}");
            continue;
        };
        world.pass(lives - 1);
        assert!(world.is_alive("a", "x"), "{default:?} {own}");
        assert_eq!((world.ids("SELECT * FROM c").len(), world.counts()), (1, (1, 0)));
        world.pass(1);
        assert!(!world.is_alive("a", "x"), "{default:?} {own}");
        assert_eq!((world.ids("SELECT * FROM c").len(), world.counts()), (0, (0, 1)));
    }
}

/// T5: an invalid `ttl` is refused on every kind of write and changes nothing, whether or not `D` is set.
#[test]
fn t5_invalid_ttl_is_refused_everywhere() {
    for default in [None, Some(-1), Some(10)] {
        let world = World::new();
        world.container("");
        world.set_default(default);
        let before = world.create("a", r#""id":"x","ttl":20.0"#).expect("20.0 is an integer");
        for bad in ["0", "-10", "null", "1.5", "\"x\"", "2147483648", "true", "{}", "[]"] {
            let text = format!(r#""id":"x","ttl":{bad}"#);
            let expected = Error::InvalidTtl { text: bad.to_owned() };
            assert_eq!(world.create("a", &text.replace("\"x\",", "\"y\",")).expect_err(bad), expected);
            assert_eq!(world.upsert("a", &text).expect_err(bad), expected);
            assert_eq!(world.replace("a", "x", &text).expect_err(bad), expected);
            let patch = format!(r#"[{{"op":"set","path":"/ttl","value":{bad}}}]"#);
            assert_eq!(world.patch("a", "x", &patch).expect_err(bad), expected);
            assert_eq!(world.read("a", "x").expect("untouched").etag, before.etag);
            assert!(!world.is_alive("a", "y"));
        }
    }
}

/// T9: every write restarts the countdown; a read does not.
#[test]
fn t9_writes_restart_the_countdown() {
    let world = World::new();
    world.container(r#","defaultTtl":10"#);
    world.create("a", r#""id":"x""#).expect("created");
    world.pass(9);
    world.upsert("a", r#""id":"x","v":1"#).expect("alive");
    world.pass(9);
    world.replace("a", "x", r#""id":"x","v":2"#).expect("alive");
    world.pass(9);
    let patched = world.patch("a", "x", r#"[{"op":"incr","path":"/v","value":1}]"#).expect("alive");
    assert_eq!(patched.ts, START + 27);
    world.pass(9);
    assert!(world.is_alive("a", "x"));
    world.pass(1);
    assert!(!world.is_alive("a", "x"));
}

/// T10: removing `ttl` makes `D` apply again, -1 stops it.
#[test]
fn t10_own_ttl_is_an_ordinary_property() {
    let world = World::new();
    world.container(r#","defaultTtl":100"#);
    world.create("a", r#""id":"x","ttl":5"#).expect("created");
    world.patch("a", "x", r#"[{"op":"remove","path":"/ttl"}]"#).expect("alive");
    world.pass(99);
    assert!(world.is_alive("a", "x"));
    world.patch("a", "x", r#"[{"op":"add","path":"/ttl","value":-1}]"#).expect("alive");
    world.pass(1_000_000);
    assert!(world.is_alive("a", "x"));
}

/// T11, T12: a new `D` re-dates every inheriting item at once, off stops everything, on again counts from `_ts`.
#[test]
fn t11_t12_changing_the_default_redates_at_once() {
    let world = World::new();
    world.container(r#","defaultTtl":1000"#);
    world.create("a", r#""id":"x""#).expect("created");
    world.create("a", r#""id":"own","ttl":50"#).expect("created");
    world.pass(20);
    world.set_default(Some(21));
    assert!(world.is_alive("a", "x"));
    world.set_default(None);
    world.pass(100);
    assert!(world.is_alive("a", "x") && world.is_alive("a", "own"), "off: nothing expires");
    world.set_default(Some(-1));
    assert!(world.is_alive("a", "x"));
    assert!(!world.is_alive("a", "own"), "stored ttl values count again, from _ts");
    world.set_default(Some(120));
    assert!(!world.is_alive("a", "x"));
}

/// T13: neither a policy change, nor a restart, nor a clock set back brings anything back.
#[test]
fn t13_expired_is_final() {
    for next in [None, Some(-1), Some(100_000)] {
        for purge_between in [false, true] {
            let mut world = World::new();
            world.container(r#","defaultTtl":10"#);
            world.create("a", r#""id":"x""#).expect("created");
            world.create("a", r#""id":"own","ttl":10"#).expect("created");
            world.create("a", r#""id":"young""#).expect("created");
            world.pass(9);
            world.replace("a", "young", r#""id":"young""#).expect("alive");
            world.pass(1);
            world.set_default(next);
            let check = |world: &World| {
                assert!(!world.is_alive("a", "x") && !world.is_alive("a", "own"), "{next:?}");
                assert_eq!(world.ids("SELECT * FROM c"), ["young"]);
                assert_eq!(world.counts().0, 1);
            };
            check(&world);
            if purge_between {
                assert_eq!(world.drain(), 2);
            }
            world.clock.set_wall(storage::Time::from_seconds(START - 500));
            check(&world);
            world.restart();
            check(&world);
            world.set_default(Some(100));
            world.set_default(None);
            check(&world);
        }
    }
}

/// T13, T15: a write that was built while the item lived and runs after its death meets a dead item.
#[test]
fn t13_a_write_begun_before_the_deadline_meets_a_dead_item() {
    let world = World::new();
    world.container(r#","defaultTtl":10"#);
    let item = world.create("a", r#""id":"x""#).expect("created");
    let precondition = Precondition::IfMatch(item.etag.to_string());
    let name = ItemName::Id("x".into());
    let begun = Operation::Replace { name, body: body("a", r#""id":"x""#), precondition };
    world.pass(10);
    assert!(matches!(world.run("a", begun), Err(Error::NotFound { .. })), "404, not 412");
}

/// T15: writes treat a dead item as not there.
#[test]
fn t15_dead_items_do_not_stand_in_the_way() {
    let world = World::new();
    world.container(r#","defaultTtl":10,"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/email"]}]}"#);
    let old = world.create("a", r#""id":"x","email":"e""#).expect("created");
    assert!(matches!(world.create("a", r#""id":"y","email":"e""#), Err(Error::UniqueKeyTaken { .. })));
    world.pass(10);
    assert!(matches!(world.replace("a", "x", r#""id":"x""#), Err(Error::NotFound { .. })));
    assert!(matches!(
        world.patch("a", "x", r#"[{"op":"set","path":"/v","value":1}]"#),
        Err(Error::NotFound { .. })
    ));
    assert!(matches!(world.delete("a", "x"), Err(Error::NotFound { .. })));
    let if_match = Precondition::IfMatch(old.etag.to_string());
    let delete = Operation::Delete { name: ItemName::Id("x".into()), precondition: if_match };
    assert!(matches!(world.run("a", delete), Err(Error::NotFound { .. })));
    let by_number = ItemName::Number(old.rid.item_number());
    assert!(
        world
            .engine
            .read(&world.current(), &crate::world::key("a"), &by_number, &Precondition::None)
            .is_err()
    );

    world.create("a", r#""id":"y","email":"e""#).expect("the unique value is free at once");
    let outcome = world.upsert("a", r#""id":"x","email":"f""#).expect("created");
    assert_eq!(outcome.effect, Effect::Created);
    let new = outcome.item.expect("an item");
    assert_ne!(new.rid, old.rid, "a new item, not the old one revived");
    assert_eq!(world.drain(), 0, "the writes have done the purge's work");
    assert_eq!(world.counts(), (2, 0));
}

/// T16: a page sees one `now`; what dies between pages is not sent.
#[test]
fn t16_each_page_is_a_request_of_its_own() {
    let world = World::new();
    world.container(r#","defaultTtl":-1"#);
    for (id, ttl) in [("a", 5), ("b", 50), ("c", 5), ("d", 50)] {
        world.create("k", &format!(r#""id":"{id}","ttl":{ttl}"#)).expect("created");
    }
    let page = |continuation| world.page(None, 1, continuation);
    let first = page(None);
    assert_eq!(ids(&first), ["a"]);
    world.pass(5);
    let second = page(first.continuation);
    assert_eq!(ids(&second), ["b"]);
    let third = page(second.continuation);
    assert_eq!(ids(&third), ["d"]);
    assert_eq!(third.continuation, None);
}

/// T4, T25: what a definition may say of TTL.
#[test]
fn t4_t25_definitions_are_checked() {
    let definition = |more: &str| {
        let text = format!(r#"{{"id":"c","partitionKey":{{"paths":["/pk"]}}{more}}}"#);
        engine::ContainerDefinition::from_value(&crate::world::value(&text))
    };
    for bad in ["0", "-2", "1.5", "\"10\"", "2147483648", "true", "{}"] {
        assert!(definition(&format!(r#","defaultTtl":{bad}"#)).is_err(), "{bad}");
    }
    for good in ["-1", "1", "20.0", "2147483647", "null"] {
        assert!(definition(&format!(r#","defaultTtl":{good}"#)).is_ok(), "{good}");
    }
    let none = r#","indexingPolicy":{"indexingMode":"none","automatic":false}"#;
    assert!(definition(none).is_ok());
    assert!(definition(&format!(r#"{none},"defaultTtl":-1"#)).is_err());
}

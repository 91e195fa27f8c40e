//! Items: create, read, upsert, replace, patch, delete, names, keys, conditions.

use engine::{Effect, Error, ItemName, Operation, Precondition};

use crate::world::{World, body, key};

#[test]
fn an_item_comes_back_as_it_was_stored_with_the_system_properties_behind() {
    let world = World::new();
    world.container("");
    let text = r#""id":"x","b":1.0,"a":[9007199254740993,{"ü":null}],"_ts":5,"_etag":"mine""#;
    let item = world.create("a", text).expect("created");
    let json = String::from_utf8(world.read("a", "x").expect("read").to_json()).expect("utf-8");
    let etag = item.etag.to_string().replace('"', "\\\"");
    let expected = format!(
        r#"{{"pk":"a","id":"x","b":1.0,"a":[9007199254740993,{{"ü":null}}],"_rid":"{}","_self":"{}","_etag":"{etag}","_attachments":"attachments/","_ts":{}}}"#,
        item.rid,
        item.self_link(),
        item.ts
    );
    assert_eq!(json, expected);
}

#[test]
fn ids_are_unique_within_a_partition_key_and_free_across() {
    let world = World::new();
    world.container("");
    world.create("a", r#""id":"x""#).expect("created");
    assert!(matches!(world.create("a", r#""id":"x""#), Err(Error::Exists { .. })));
    world.create("b", r#""id":"x""#).expect("another partition key");
    world.delete("a", "x").expect("deleted");
    assert!(world.is_alive("b", "x") && !world.is_alive("a", "x"));
    world.create("a", r#""id":"x""#).expect("free again");
}

#[test]
fn numbers_are_one_key_as_doubles() {
    let world = World::new();
    let container = world.container("");
    let create = |text: &str| {
        let body = document::Document::from_json(text.as_bytes()).expect("valid JSON");
        world.engine.write(&container, None, Operation::Create { body }).wait()
    };
    create(r#"{"id":"x","pk":1}"#).expect("created");
    assert!(matches!(create(r#"{"id":"x","pk":1.0}"#), Err(Error::Exists { .. })));
    create(r#"{"id":"x"}"#).expect("undefined is a key of its own");
    create(r#"{"id":"x","pk":null}"#).expect("and so is null");
    create(r#"{"id":"x","pk":true}"#).expect("and true");
}

#[test]
fn a_key_beside_the_body_must_agree_with_it() {
    let world = World::new();
    world.container("");
    let create = Operation::Create { body: body("a", r#""id":"x""#) };
    assert!(matches!(world.run("b", create), Err(Error::KeyMismatch { .. })));
    assert!(!world.is_alive("a", "x") && !world.is_alive("b", "x"));
}

#[test]
fn bad_ids_are_refused() {
    let world = World::new();
    world.container("");
    let long = format!(r#""id":"{}""#, "x".repeat(1024));
    for bad in [r#""v":1"#, r#""id":5"#, r#""id":"""#, r#""id":"a/b""#, r#""id":"a\\b""#, &long] {
        assert!(matches!(world.create("a", bad), Err(Error::Invalid { .. })), "{bad}");
    }
}

#[test]
fn conditions_are_on_the_current_version() {
    let world = World::new();
    world.container("");
    let first = world.create("a", r#""id":"x""#).expect("created").etag.to_string();
    let second = world.replace("a", "x", r#""id":"x","v":2"#).expect("replaced").etag.to_string();
    assert_ne!(first, second);
    let replace = |precondition| {
        let name = ItemName::Id("x".into());
        world.run("a", Operation::Replace { name, body: body("a", r#""id":"x""#), precondition })
    };
    assert!(matches!(replace(Precondition::IfMatch(first.clone())), Err(Error::PreconditionFailed { .. })));
    assert!(matches!(
        replace(Precondition::IfNoneMatch(second.clone())),
        Err(Error::PreconditionFailed { .. })
    ));
    replace(Precondition::IfMatch(second.clone())).expect("the current version");
    let read = |precondition| {
        world.engine.read(&world.current(), &key("a"), &ItemName::Id("x".into()), &precondition)
    };
    let now = world.read("a", "x").expect("read").etag.to_string();
    assert_eq!(read(Precondition::IfNoneMatch(now)).expect("read").effect, Effect::NotModified);
    assert_eq!(read(Precondition::IfNoneMatch(second)).expect("read").effect, Effect::Read);
    let upsert =
        Operation::Upsert { body: body("a", r#""id":"new""#), precondition: Precondition::IfMatch(first) };
    assert!(matches!(world.run("a", upsert), Err(Error::NotFound { .. })));
}

#[test]
fn a_replace_may_rename_within_the_partition_key() {
    let world = World::new();
    world.container("");
    let item = world.create("a", r#""id":"x""#).expect("created");
    world.create("a", r#""id":"taken""#).expect("created");
    assert!(matches!(world.replace("a", "x", r#""id":"taken""#), Err(Error::Exists { .. })));
    assert_eq!(world.replace("a", "x", r#""id":"y""#).expect("renamed").rid, item.rid);
    assert!(!world.is_alive("a", "x") && world.is_alive("a", "y"));
    assert_eq!(world.counts(), (2, 0));
}

#[test]
fn unique_keys_hold_per_partition_key_and_move_with_a_replace() {
    let world = World::new();
    world.container(r#","uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/email"]}]}"#);
    world.create("a", r#""id":"x","email":"e""#).expect("created");
    world.create("b", r#""id":"x","email":"e""#).expect("another partition key");
    assert!(matches!(world.upsert("a", r#""id":"y","email":"e""#), Err(Error::UniqueKeyTaken { .. })));
    world.replace("a", "x", r#""id":"x","email":"f""#).expect("replaced");
    world.create("a", r#""id":"y","email":"e""#).expect("free now");
    world.create("a", r#""id":"none""#).expect("a missing value counts as null");
    assert!(matches!(world.create("a", r#""id":"none2","email":null"#), Err(Error::UniqueKeyTaken { .. })));
}

#[test]
fn unique_values_that_no_key_can_hold_are_refused() {
    let world = World::new();
    world.container(r#","uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/email"]}]}"#);
    let long = format!(r#""id":"x","email":"{}""#, "e".repeat(70_000));
    assert!(matches!(world.create("a", &long), Err(Error::Invalid { .. })));
    assert!(!world.is_alive("a", "x"));
}

#[test]
fn a_patch_condition_decides() {
    let world = World::new();
    world.container("");
    world.create("a", r#""id":"x","v":1"#).expect("created");
    let patch = r#"{"condition":"from c where c.v = 2","operations":[{"op":"set","path":"/v","value":9}]}"#;
    assert!(matches!(world.patch("a", "x", patch), Err(Error::PreconditionFailed { .. })));
    world.patch("a", "x", &patch.replace("= 2", "= 1")).expect("the condition holds");
    assert_eq!(
        world.read("a", "x").expect("read").body.get("v").and_then(document::ValueRef::as_i64),
        Some(9)
    );
}

#[test]
fn a_patch_condition_that_computes_too_much_is_refused_and_not_taken_for_false() {
    let world = World::new();
    world.container("");
    let list: Vec<String> = (0..2_000).map(|number| number.to_string()).collect();
    world.create("a", &format!(r#""id":"x","l":[{}]"#, list.join(","))).expect("created");
    let patch = |condition: &str| {
        let operations = r#"[{"op":"set","path":"/v","value":9}]"#;
        world.patch(
            "a",
            "x",
            &format!(r#"{{"condition":"from c where {condition}","operations":{operations}}}"#),
        )
    };
    let product = "EXISTS(SELECT VALUE 1 FROM a IN c.l JOIN b IN c.l JOIN d IN c.l WHERE a + b + d < 0)";
    for condition in [product.to_owned(), format!("NOT {product}"), vec!["c.l = c.l"; 5_000].join(" AND ")] {
        let outcome = patch(&condition);
        assert!(matches!(outcome, Err(Error::Fault(_))), "{outcome:?}");
    }
    assert!(world.read("a", "x").expect("read").body.get("v").is_none());
    patch(&vec!["c.l = c.l"; 100].join(" AND ")).expect("that much is allowed");
}

#[test]
fn an_item_over_two_megabytes_is_refused() {
    let world = World::new();
    world.container("");
    let text = format!(r#""id":"x","v":"{}""#, "y".repeat(2 * 1024 * 1024));
    assert!(matches!(world.create("a", &text), Err(Error::TooLarge { .. })));
}

#[test]
fn deleting_a_partition_leaves_the_others() {
    let world = World::new();
    let container = world.container(r#","defaultTtl":10"#);
    for n in 0..600 {
        world.create("a", &format!(r#""id":"{n}""#)).expect("created");
    }
    world.create("b", r#""id":"x""#).expect("created");
    assert_eq!(world.engine.delete_partition(&container, &key("a")).map(|emptied| emptied.items), Ok(600));
    assert_eq!(world.ids("SELECT * FROM c"), ["x"]);
    assert_eq!(world.counts(), (1, 0));
}

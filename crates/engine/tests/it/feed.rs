//! The latest-version change feed.

use engine::{Error, FeedStart, Scope};

use crate::world::{START, World, key};

fn ids(world: &World, scope: &Scope, start: &FeedStart, max: usize) -> (Vec<String>, String) {
    let changes = world.engine.changes(&world.current(), scope, start, max).expect("changes");
    (changes.items.iter().map(|item| item.id().to_owned()).collect(), changes.continuation)
}

#[test]
fn every_living_item_comes_once_at_its_last_write() {
    let world = World::new();
    world.container(r#","defaultTtl":-1"#);
    for id in ["1", "2", "3"] {
        world.create("a", &format!(r#""id":"{id}""#)).expect("created");
    }
    world.create("b", r#""id":"dying","ttl":5"#).expect("created");
    world.replace("a", "1", r#""id":"1","v":2"#).expect("replaced");
    world.delete("a", "2").expect("deleted");
    let scope = Scope::default();
    let (first, token) = ids(&world, &scope, &FeedStart::Beginning, 2);
    assert_eq!(first, ["3", "dying"]);
    let (second, token) = ids(&world, &scope, &FeedStart::After(token), 2);
    assert_eq!(second, ["1"]);
    let (nothing, token) = ids(&world, &scope, &FeedStart::After(token), 2);
    assert!(nothing.is_empty());
    world.create("b", r#""id":"4""#).expect("created");
    assert_eq!(ids(&world, &scope, &FeedStart::After(token), 2).0, ["4"]);
    world.pass(5);
    assert_eq!(
        ids(&world, &scope, &FeedStart::Beginning, 9).0,
        ["3", "1", "4"],
        "T14: the dead do not appear"
    );
}

#[test]
fn a_reader_may_begin_now_at_a_time_or_with_one_key() {
    let world = World::new();
    world.container("");
    world.create("a", r#""id":"old""#).expect("created");
    world.pass(10);
    let scope = Scope::default();
    let (nothing, token) = ids(&world, &scope, &FeedStart::Now, 9);
    assert!(nothing.is_empty());
    world.create("b", r#""id":"new""#).expect("created");
    assert_eq!(ids(&world, &scope, &FeedStart::After(token), 9).0, ["new"]);
    assert_eq!(ids(&world, &scope, &FeedStart::Time(START + 5), 9).0, ["new"]);
    assert_eq!(ids(&world, &scope, &FeedStart::Time(START + 9), 9).0, ["new"]);
    assert_eq!(
        ids(&world, &scope, &FeedStart::Time(START), 9).0,
        ["new"],
        "not what was written in that second"
    );
    let (nothing, token) = ids(&world, &scope, &FeedStart::Time(START + 10), 9);
    assert!(nothing.is_empty(), "the second of the last write");
    world.create("b", r#""id":"same second""#).expect("created");
    assert!(ids(&world, &scope, &FeedStart::After(token.clone()), 9).0.is_empty());
    world.pass(1);
    world.create("b", r#""id":"next second""#).expect("created");
    assert_eq!(ids(&world, &scope, &FeedStart::After(token), 9).0, ["next second"]);
    assert!(ids(&world, &scope, &FeedStart::Time(u64::MAX), 9).0.is_empty());
    let one = Scope { key: Some(key("a")), range: None };
    assert_eq!(ids(&world, &one, &FeedStart::Beginning, 9).0, ["old"]);
    let foreign = FeedStart::After("nonsense".into());
    assert!(matches!(
        world.engine.changes(&world.current(), &scope, &foreign, 9),
        Err(Error::InvalidContinuation { .. })
    ));
}

/// T14: the continuation names no dead item, so it is the same whether or not the purge has run.
#[test]
fn t14_the_continuation_does_not_tell_of_the_dead() {
    let world = World::new();
    world.container(r#","defaultTtl":-1"#);
    for (id, ttl) in [("1", -1), ("dead", 5), ("2", -1), ("dead too", 5)] {
        world.create("a", &format!(r#""id":"{id}","ttl":{ttl}"#)).expect("created");
    }
    world.pass(5);
    let scope = Scope::default();
    let walk = || {
        let (first, one) = ids(&world, &scope, &FeedStart::Beginning, 1);
        let (second, two) = ids(&world, &scope, &FeedStart::After(one.clone()), 1);
        (first, second, one, two)
    };
    let before = walk();
    assert_eq!((before.0[0].as_str(), before.1[0].as_str(), world.drain()), ("1", "2", 2));
    assert_eq!(walk(), before);
}

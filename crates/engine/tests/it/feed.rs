//! The latest-version change feed.

use engine::{FeedStart, Scope};

use crate::world::World;

fn ids(world: &World, scope: &Scope, start: &FeedStart, max: usize) -> (Vec<String>, String) {
    let changes = world.engine.changes(&world.current(), scope, start, max).expect("changes");
    (changes.items.iter().map(|item| item.id().to_owned()).collect(), changes.continuation)
}

/// T14: the continuation names no expired item, so it is the same whether or not the purge has run.
#[test]
fn t14_the_continuation_does_not_disclose_expired_items() {
    let world = World::new();
    world.container(r#","defaultTtl":-1"#);
    for (id, ttl) in [("1", -1), ("expired", 5), ("2", -1), ("expired too", 5)] {
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

/// A reader that has seen everything keeps its position, whatever is written elsewhere: clients store each new one.
#[test]
fn a_position_at_the_end_stays_while_only_others_are_written() {
    let world = World::new();
    world.container(r#","defaultTtl":-1"#);
    let scope = Scope::default();
    let (_, empty) = ids(&world, &scope, &FeedStart::Beginning, 10);
    world.create("a", r#""id":"1""#).expect("created");
    let (seen, at_end) = ids(&world, &scope, &FeedStart::After(empty), 10);
    assert_eq!(seen, ["1"]);
    let (_, first) = ids(&world, &scope, &FeedStart::After(at_end), 10);
    for number in 0..3 {
        world.engine.create_database(&format!("other{number}"), None).expect("created");
        assert_eq!(ids(&world, &scope, &FeedStart::After(first.clone()), 10), (vec![], first.clone()));
    }
    world.create("a", r#""id":"2""#).expect("created");
    let (seen, later) = ids(&world, &scope, &FeedStart::After(first.clone()), 10);
    assert!(seen == ["2"] && later != first);
}

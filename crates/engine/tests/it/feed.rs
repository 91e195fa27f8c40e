//! The latest-version change feed.

use engine::{FeedStart, Scope};

use crate::world::World;

fn ids(world: &World, scope: &Scope, start: &FeedStart, max: usize) -> (Vec<String>, String) {
    let changes = world.engine.changes(&world.current(), scope, start, max).expect("changes");
    (changes.items.iter().map(|item| item.id().to_owned()).collect(), changes.continuation)
}

/// T14: the continuation names no expired item, so it is the same whether or not the purge has run.
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

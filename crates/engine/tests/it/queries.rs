//! Queries: what they find, page by page.

use crate::world::World;

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

/// T14: a token names no expired item, so it is the same whether or not the purge has run.
#[test]
fn t14_a_token_does_not_disclose_expired_items() {
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

//! What owners wish: the guard against many deaths at once (T30).

use engine::{Api, Consent, Error, Holder, Precondition};

use super::world::{World, definition};

fn holder(world: &World) -> Holder {
    world.engine.holder(Api::NoSql, "db", "c").expect("made by the test")
}

#[test]
fn t30_a_change_that_kills_more_than_the_guard_allows_wants_consent() {
    let mut world = World::new();
    world.container("");
    let guarded = world.engine.change_lifecycle(&holder(&world), |wishes| {
        wishes.max_instant_expiry = Some(500_000);
    });
    assert_eq!(guarded.expect("a wish").max_instant_expiry, Some(500_000));
    for id in 0..4 {
        world.create("a", &format!(r#""id":"{id}""#)).expect("new");
        world.pass(10);
    }
    let change = |world: &World, seconds: u32, consent: Consent| {
        let definition = definition("c", &format!(r#","defaultTtl":{seconds}"#));
        let container = world.current();
        world.engine.replace_container_with(&container, definition, &Precondition::None, consent)
    };
    // 40, 30, 20 and 10 seconds old.
    world.restart();
    let Err(Error::NotConfirmed { what }) = change(&world, 20, Consent::NotGiven) else {
        panic!("three of four may not die");
    };
    assert!(what.starts_with("3 of 4 living items"), "{what}");
    assert_eq!(world.current().definition.default_ttl.to_member(), None, "nothing has changed");
    assert_eq!(world.engine.usage(&world.current()).expect("figures").living.items, 4);

    change(&world, 30, Consent::NotGiven).expect("half of them may die");
    assert_eq!(world.engine.usage(&world.current()).expect("figures").living.items, 2);
    change(&world, 10, Consent::NotGiven).expect_err("now two of two would die");
    change(&world, 10, Consent::Given).expect("they may");
    assert_eq!(world.engine.usage(&world.current()).expect("figures").living.items, 0);
    change(&world, 5, Consent::NotGiven).expect("nobody is left to die");
}

#[test]
fn t30_a_guard_of_zero_lets_nobody_die_at_once_and_every_change_that_kills_nobody_pass() {
    let world = World::new();
    world.container(r#","defaultTtl":100"#);
    world
        .engine
        .change_lifecycle(&holder(&world), |wishes| wishes.max_instant_expiry = Some(0))
        .expect("a wish");
    world.create("a", r#""id":"x""#).expect("new");
    world.pass(50);
    world.set_default(Some(51));
    let strict = definition("c", r#","defaultTtl":50"#);
    let refused = world.engine.replace_container(&world.current(), strict, &Precondition::None);
    assert!(matches!(refused, Err(Error::NotConfirmed { .. })), "{refused:?}");
    world.set_default(None);
    assert!(world.is_alive("a", "x"));
}

#[test]
fn t30_t31_lifting_a_hold_that_kills_more_than_the_guard_allows_wants_consent() {
    let world = World::new();
    world.container(r#","defaultTtl":10"#);
    world.create("a", r#""id":"x""#).expect("new");
    let held = world.engine.change_lifecycle(&holder(&world), |wishes| {
        wishes.hold = Some("why".to_owned());
        wishes.max_instant_expiry = Some(0);
    });
    held.expect("a wish");
    world.pass(100);
    let refused = world.engine.change_lifecycle(&holder(&world), |wishes| wishes.hold = None);
    assert!(matches!(refused, Err(Error::NotConfirmed { .. })), "{refused:?}");
    assert!(world.is_alive("a", "x") && holder(&world).lifecycle().hold.is_some());
    let lifted =
        world.engine.change_lifecycle_with(&holder(&world), Consent::Given, |wishes| wishes.hold = None);
    lifted.expect("confirmed");
    assert!(!world.is_alive("a", "x"));
}

//! The purge: T19, T22, T12's end, dropped containers, and that nobody can tell whether it has run.

use engine::Precondition;
use storage::Time;

use crate::world::{START, World};

/// T19: nothing to do while nothing is due, and the next due time is exact.
#[test]
fn t19_the_purge_says_when_it_is_next_wanted() {
    let world = World::new();
    world.container(r#","defaultTtl":100"#);
    assert_eq!(
        world.engine.purge_step(10).expect("a step").next_due,
        None,
        "an empty store never wants a purge"
    );
    world.create("a", r#""id":"x""#).expect("created");
    world.create("a", r#""id":"y","ttl":30"#).expect("created");
    let due = |seconds| Some(Time::from_seconds(START + seconds));
    assert_eq!(world.engine.purge_step(10).expect("a step").next_due, due(30));
    world.pass(30);
    let report = world.engine.purge_step(10).expect("a step");
    assert_eq!((report.purged_items, report.next_due), (1, due(100)));
    let report = world.engine.purge_step(10).expect("a step");
    assert_eq!((report.purged_items, report.next_due), (0, due(100)));
}

/// T22: steps of any size, restarts in between, nothing living lost, nothing dead left.
#[test]
fn t22_the_purge_may_stop_anywhere() {
    let mut world = World::new();
    world.container(r#","defaultTtl":10"#);
    for n in 0..20 {
        let ttl = if n % 2 == 0 { "" } else { r#","ttl":-1"# };
        world.create("a", &format!(r#""id":"{n:02}"{ttl}"#)).expect("created");
    }
    world.pass(10);
    assert_eq!(world.counts(), (10, 10));
    for purged in 1..=10 {
        assert_eq!(world.engine.purge_step(1).expect("a step").purged_items, 1);
        assert_eq!(world.counts(), (10, 10 - purged));
        world.restart();
    }
    assert_eq!(world.drain(), 0);
    assert_eq!(world.ids("SELECT * FROM c").len(), 10);
}

/// T22: an item that was re-created before the purge came is not purged with its predecessor.
#[test]
fn t22_a_recreated_item_survives_the_purge_of_its_predecessor() {
    let world = World::new();
    world.container(r#","defaultTtl":10"#);
    world.create("a", r#""id":"x""#).expect("created");
    world.pass(10);
    world.create("a", r#""id":"x""#).expect("re-created");
    world.drain();
    assert!(world.is_alive("a", "x"));
    assert_eq!(world.counts(), (1, 0));
}

/// T12: once what was dead has been purged, a container with TTL off has no work and no cutoffs.
#[test]
fn t12_ttl_off_leaves_no_background_work() {
    let world = World::new();
    world.container(r#","defaultTtl":10"#);
    world.create("a", r#""id":"x""#).expect("created");
    world.pass(10);
    world.set_default(None);
    assert_eq!(world.drain(), 1);
    assert_eq!(world.engine.purge_step(10).expect("a step").next_due, None);
}

#[test]
fn a_paused_purge_does_nothing_and_hides_nothing_less() {
    let world = World::new();
    world.container(r#","defaultTtl":10"#);
    world.create("a", r#""id":"x""#).expect("created");
    world.engine.pause_purge(true);
    world.pass(10);
    assert_eq!(world.engine.purge_step(10).expect("a step").purged_items, 0);
    assert!(world.engine.purge_status().paused && !world.is_alive("a", "x"));
    world.engine.pause_purge(false);
    assert_eq!(world.drain(), 1);
    assert_eq!(world.engine.purge_status().purged_items, 1);
}

/// The alarm rings only for what is due before the purge would wake by itself.
#[test]
fn the_alarm_rings_for_earlier_deaths_only() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    let world = World::new();
    world.container(r#","defaultTtl":-1"#);
    let rings = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&rings);
    world.engine.on_purge_due(move || {
        counter.fetch_add(1, Ordering::Relaxed);
    });
    world.create("a", r#""id":"x","ttl":50"#).expect("created");
    world.engine.purge_step(10).expect("a step");
    let before = rings.load(Ordering::Relaxed);
    world.create("a", r#""id":"later","ttl":60"#).expect("created");
    world.create("a", r#""id":"never""#).expect("created");
    assert_eq!(rings.load(Ordering::Relaxed), before);
    world.create("a", r#""id":"sooner","ttl":40"#).expect("created");
    assert_eq!(rings.load(Ordering::Relaxed), before + 1);
}

#[test]
fn a_dropped_container_is_cleared_away() {
    let mut world = World::new();
    let container = world.container("");
    for n in 0..50 {
        world.create("a", &format!(r#""id":"{n}""#)).expect("created");
    }
    let survivor = world.engine.create_container(
        &world.engine.database("db").expect("made"),
        crate::world::definition("other", ""),
        None,
    );
    let survivor = survivor.expect("created");
    let body = crate::world::body("a", r#""id":"x""#);
    world.engine.write(&survivor, None, engine::Operation::Create { body }).wait().expect("created");
    world.engine.delete_container(&container, &Precondition::None).expect("deleted");
    let write = engine::Operation::Create { body: crate::world::body("a", r#""id":"late""#) };
    assert!(world.engine.write(&container, None, write).wait().is_err(), "an old handle writes nothing");
    for _ in 0..20 {
        world.engine.purge_step(7).expect("a step");
        world.restart();
    }
    world.drain();
    let usage =
        world.engine.usage(&world.engine.container_by_rid(survivor.rid).expect("kept")).expect("figures");
    assert_eq!(usage.living.items, 1, "the neighbour is untouched");
    let again = world.container("");
    assert_ne!(again.rid, container.rid);
    assert_eq!(world.counts(), (0, 0));
}

//! The purge: T19, T22, T12's end, dropped containers, and that no answer shows whether it has run.

use std::sync::atomic::{AtomicBool, Ordering};

use engine::{Owner, Precondition};

use crate::world::World;

/// T23: when a purge on demand reports that nothing is due, no expired item is left, although the background sweeps as well.
#[test]
fn t23_a_purge_on_demand_does_not_end_before_the_backgrounds_sweep() {
    let world = World::new();
    let owner = Owner::Container(world.container(r#","defaultTtl":10"#));
    for round in 0..20 {
        for id in 0..40 {
            world.create("a", &format!(r#""id":"{round}-{id}""#)).expect("created");
        }
        world.pass(10);
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Acquire) {
                    world.engine.purge_step(1).expect("a step");
                }
            });
            while world.engine.purge_at_once(Some(&owner), 5).expect("a step").next_due.is_some() {}
            let backlog = world.engine.purge_figures(&owner).expect("figures").backlog.items;
            done.store(true, Ordering::Release);
            assert_eq!(backlog, 0, "round {round}");
        });
    }
}

/// T20: containers take turns; a huge one has no more of a round than each of a thousand small ones.
#[test]
fn t20_a_huge_container_does_not_starve_a_thousand_small_ones() {
    const SMALL: usize = 1000;
    let world = World::new();
    let database = world.engine.database("db").expect("made");
    let make = |name: &str, items: usize| {
        let definition = crate::world::definition(
            name,
            r#","defaultTtl":10,"indexingPolicy":{"excludedPaths":[{"path":"/*"}]}"#,
        );
        let container = world.engine.create_container(&database, definition, None).expect("created");
        for item in 0..items {
            let body = crate::world::body("a", &format!(r#""id":"{item}""#));
            world.engine.write(&container, None, engine::Operation::Create { body }).wait().expect("created");
        }
        Owner::Container(container)
    };
    let huge = make("huge", 2 * SMALL);
    let small: Vec<Owner> = (0..SMALL).map(|number| make(&format!("small{number}"), 1)).collect();
    world.pass(10);
    let mut steps = 0;
    let backlog = |owner: &Owner| world.engine.purge_figures(owner).expect("figures").backlog.items;
    while small.iter().any(|owner| backlog(owner) > 0) {
        world.engine.purge_step(16).expect("a step");
        steps += 1;
    }
    // Each step visits 16 small ones, or the huge one and some of them.
    assert!(steps <= SMALL / 8 + 2, "{steps} steps");
    assert!(backlog(&huge) > SMALL as u64, "the huge one had its turns and no more");
    world.drain();
    assert_eq!(backlog(&huge), 0);
}

/// The alarm wakes the loop only for items that are due before the purge would wake by itself.
#[test]
fn the_alarm_rings_for_earlier_expiries_only() {
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

/// A paused purge has nothing to do, so writes do not wake the loop around it, whether or not there is a backlog.
#[test]
fn t23_a_paused_purge_is_not_woken_by_writes() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    for is_waiting in [true, false] {
        let world = World::new();
        world.container(r#","defaultTtl":-1"#);
        world.create("a", r#""id":"first","ttl":5"#).expect("created");
        world.pass(if is_waiting { 5 } else { 0 });
        let rings = Arc::new(AtomicU32::new(0));
        let counter = Arc::clone(&rings);
        world.engine.on_purge_due(move || {
            counter.fetch_add(1, Ordering::Relaxed);
        });
        world.engine.pause_purge(true);
        assert_eq!(rings.load(Ordering::Relaxed), 1, "the pause itself rings");
        assert_eq!(world.engine.purge_step(10).expect("a step").next_due, None);
        for number in 0..10 {
            world.create("a", &format!(r#""id":"{number}","ttl":50"#)).expect("created");
        }
        assert_eq!(rings.load(Ordering::Relaxed), 1, "something waits: {is_waiting}");
        world.engine.pause_purge(false);
        assert_eq!(rings.load(Ordering::Relaxed), 2);
        world.pass(50);
        assert_eq!(world.drain(), 11);
    }
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

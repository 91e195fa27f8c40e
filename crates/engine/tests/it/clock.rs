//! T29 and T34, through the engine.

use std::time::Duration;

use engine::Error;
use storage::Time;

use crate::world::{START, World};

/// T34: after a set-back time runs on; expiry goes on with it.
#[test]
fn t34_a_clock_set_back_neither_stops_nor_revives() {
    let world = World::new();
    world.container(r#","defaultTtl":10"#);
    world.create("a", r#""id":"x""#).expect("created");
    world.pass(5);
    world.engine.now().expect("looked at");
    world.clock.set_wall(Time::from_seconds(START - 1_000_000));
    world.clock.advance_boot_time(Duration::from_secs(5));
    assert!(!world.is_living("a", "x"));
}

/// T13: a write whose sync failed may be replayed; until then no reader sees its item expired.
#[test]
fn t13_t16_what_a_failed_write_renews_is_not_called_expired_before_the_restart() {
    let mut world = World::new();
    world.container(r#","defaultTtl":10"#);
    world.create("a", r#""id":"x""#).expect("created");
    world.pass(9);
    let failed = world.engine.now().expect("looked at");
    world.fail_next_sync();
    world.replace("a", "x", r#""id":"x","v":1"#).expect_err("the sync fails");
    for _ in 0..5 {
        world.pass(1);
        assert!(world.is_living("a", "x"), "its last write may have restarted the countdown");
        assert_eq!(world.engine.now().expect("a time"), failed);
    }
    world.restart();
    assert!(world.is_living("a", "x"), "it has");
    world.pass(4);
    assert!(world.is_living("a", "x"), "18.1 seconds at most");
    world.pass(1);
    assert!(!world.is_living("a", "x"));
}

/// T34: a start that finds the wall clock months ahead hides items by its time, but destroys none until an operator decides.
#[test]
fn t34_a_leap_at_start_hides_but_destroys_nothing() {
    for accept in [true, false] {
        let mut world = World::new();
        world.container(r#","defaultTtl":1000,"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/email"]}]}"#);
        world.create("a", r#""id":"x","email":"e""#).expect("created");
        world.clock.set_wall(Time::from_seconds(START + 90 * 86_400));
        world.restart();
        assert!(!world.is_living("a", "x"), "hidden by the wall clock");
        assert_eq!(world.drain(), 0, "nothing is purged");
        for (id, email) in [("x", "other"), ("y", "e")] {
            let taken = world.create("a", &format!(r#""id":"{id}","email":"{email}""#));
            assert!(matches!(taken, Err(Error::ClockSuspect { .. })), "nor overwritten");
        }
        let more = r#","uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/email"]}]}"#;
        let off = crate::world::definition("c", more);
        let refused = world.engine.replace_container(&world.current(), off, &engine::Precondition::None);
        assert!(matches!(refused, Err(Error::ClockSuspect { .. })), "nor made final by a policy change");
        world.create("a", r#""id":"z","email":"z""#).expect("other writes go on");
        if accept {
            world.engine.accept_clock().expect("accepted");
            assert_eq!(world.drain(), 1);
            assert!(!world.is_living("a", "x"));
        } else {
            world.engine.reject_clock().expect("rejected");
            assert!(world.is_living("a", "x"), "the rejected time never was");
        }
    }
}

/// T29: without the mode the clock cannot be moved.
#[test]
fn t29_the_clock_is_not_moved_without_the_mode() {
    let world = World::new();
    assert!(matches!(world.engine.advance_clock(5), Err(Error::Invalid { .. })));
}

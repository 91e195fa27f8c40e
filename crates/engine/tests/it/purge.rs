//! The purge: T19, T22, T12's end, dropped containers, and that nobody can tell whether it has run.

use std::sync::atomic::{AtomicBool, Ordering};

use engine::{Holder, Precondition, PurgeFigures, RetentionStatus, Scrubbed};
use storage::{CrashMode, Time};

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

/// T20: the purge waits for no disk. What a power failure brings back is dead and goes again; but not where somebody was told
/// that it is gone: by the deletion record, or because they had asked for it.
#[test]
fn t20_a_purge_that_a_power_failure_undoes_is_done_again() {
    for (is_recorded, at_once, undone) in [(false, false, 2), (true, false, 0), (false, true, 0)] {
        let mut world = World::new();
        let holder = Holder::Container(world.container(r#","defaultTtl":10"#));
        world
            .engine
            .change_lifecycle(&holder, |wishes| wishes.deletion_record = is_recorded)
            .expect("a wish");
        for id in ["x", "y"] {
            world.create("a", &format!(r#""id":"{id}""#)).expect("created");
        }
        world.pass(10);
        if at_once {
            world.engine.purge_at_once(None, 100).expect("purged");
        } else {
            world.drain();
        }
        assert_eq!(world.counts(), (0, 0));
        world.crash_after(0, CrashMode::BeforeCommit);
        world.create("a", r#""id":"z""#).expect_err("the power fails");
        world.restart();
        assert_eq!(world.counts(), (0, undone), "{is_recorded} {at_once}");
        assert!(!world.is_alive("a", "x") && !world.is_alive("a", "y"));
        assert_eq!(world.drain(), undone);
        world.create("a", r#""id":"x""#).expect("a new one");
        assert_eq!(world.counts(), (1, 0));
    }
}

/// T23: what waits, since when, what was done: exact at every instant, per container and in sum.
#[test]
fn t23_the_purge_tells_of_itself() {
    let world = World::new();
    let holder = Holder::Container(world.container(r#","defaultTtl":100"#));
    let figures = || world.engine.purge_figures(&holder).expect("figures");
    assert_eq!(figures().backlog.items, 0);
    for (id, ttl) in [("a", 10), ("b", 20), ("c", 20), ("d", 500)] {
        world.create("a", &format!(r#""id":"{id}","ttl":{ttl}"#)).expect("created");
    }
    world.drain();
    assert_eq!(figures().next_due, Some(Time::from_seconds(START + 10)));
    world.pass(25);
    let before = figures();
    assert_eq!((before.backlog.items, before.purged.items, before.last_pass), (3, 0, None));
    assert_eq!(before.oldest_death, Some(Time::from_seconds(START + 10)));
    assert_eq!(world.engine.purge_step(1).expect("a step").purged_items, 1);
    let after = figures();
    assert_eq!((after.backlog.items, after.purged.items), (2, 1));
    assert_eq!(after.backlog.bytes + after.purged.bytes, before.backlog.bytes);
    assert_eq!(after.oldest_death, Some(Time::from_seconds(START + 20)));
    assert_eq!(after.last_pass, Some(Time::from_seconds(START + 25)));
    let all = world.engine.purge_figures_of_all().expect("figures");
    assert_eq!(
        all.iter().map(|(_, figures)| *figures).fold(PurgeFigures::default(), PurgeFigures::plus),
        after
    );
    world.drain();
    assert_eq!((figures().backlog.items, figures().oldest_death), (0, None));
}

/// T23: one container can be purged by itself; the others wait for their turn.
#[test]
fn t23_one_container_is_purged_on_demand() {
    let world = World::new();
    let database = world.engine.database("db").expect("made");
    let both = ["c", "other"].map(|name| {
        let definition = crate::world::definition(name, r#","defaultTtl":10"#);
        let container = world.engine.create_container(&database, definition, None).expect("created");
        let body = crate::world::body("a", r#""id":"x""#);
        world.engine.write(&container, None, engine::Operation::Create { body }).wait().expect("created");
        Holder::Container(container)
    });
    world.pass(10);
    let report = world.engine.purge_at_once(Some(&both[1]), 10).expect("a step");
    assert_eq!((report.purged_items, report.next_due), (1, None));
    let backlog = |holder| world.engine.purge_figures(holder).expect("figures").backlog.items;
    assert_eq!((backlog(&both[0]), backlog(&both[1])), (1, 0));
    world.engine.pause_purge(true);
    assert_eq!(world.engine.purge_at_once(Some(&both[0]), 10).expect("a step").purged_items, 0);
    world.engine.pause_purge(false);
    assert_eq!(world.drain(), 1);
    assert_eq!(world.engine.purge_status().purged_items, 2);
}

/// T23: whoever asks for a purge now and is told that nothing is due finds nothing, though the background sweeps as well.
#[test]
fn t23_a_purge_on_demand_does_not_end_before_the_backgrounds_sweep() {
    let world = World::new();
    let holder = Holder::Container(world.container(r#","defaultTtl":10"#));
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
            while world.engine.purge_at_once(Some(&holder), 5).expect("a step").next_due.is_some() {}
            let backlog = world.engine.purge_figures(&holder).expect("figures").backlog.items;
            done.store(true, Ordering::Release);
            assert_eq!(backlog, 0, "round {round}");
        });
    }
}

/// A container whose dead leave the data directory within a minute.
fn newly_promised(more: &str) -> World {
    let world = World::new();
    let holder = Holder::Container(world.container(more));
    world
        .engine
        .change_lifecycle(&holder, |lifecycle| lifecycle.max_purge_delay = Some(60))
        .expect("changed");
    world
}

/// The same, and a look after a start that found nothing left from before.
fn promised(more: &str) -> World {
    let mut world = newly_promised(more);
    world.restart();
    let first = world.engine.retention_step().expect("a look");
    assert_eq!(first.scrubbed, Some(Scrubbed::Done), "nobody knows what lies there from before the start");
    // After a crash time is a tenth of a second ahead; that is over.
    world.pass(2);
    world
}

/// T24: what lies in a container that was made since the start is known.
#[test]
fn t24_a_new_container_causes_no_scrub() {
    let world = newly_promised(r#","defaultTtl":10"#);
    let look = world.engine.retention_step().expect("a look");
    assert_eq!((look.scrubbed, look.next_due), (None, None));
    world.create("a", r#""id":"x""#).expect("created");
    world.pass(10);
    assert_eq!(world.drain(), 1);
    world.pass(30);
    assert_eq!(world.engine.retention_step().expect("a look").scrubbed, Some(Scrubbed::Done));
}

/// T24: what was purged is scrubbed in time, and nothing is scrubbed for nothing.
#[test]
fn t24_what_was_purged_is_scrubbed_at_half_the_bound() {
    let world = promised(r#","defaultTtl":10"#);
    let began = world.engine.now().expect("a time");
    world.create("a", r#""id":"x""#).expect("created");
    world.pass(10);
    assert_eq!(world.engine.retention_step().expect("a look").scrubbed, None, "it is not purged yet");
    assert_eq!(world.drain(), 1);
    let look = world.engine.retention_step().expect("a look");
    assert_eq!((look.scrubbed, look.next_due), (None, Some(began.plus_millis(40_000))));
    world.pass(30);
    assert_eq!(world.engine.retention_step().expect("a look").scrubbed, Some(Scrubbed::Done));
    world.pass(1000);
    let look = world.engine.retention_step().expect("a look");
    assert_eq!((look.scrubbed, look.next_due, look.missed.len()), (None, None, 0));
}

/// T24: a dead item that a write finds in its way leaves bytes behind, too.
#[test]
fn t24_what_a_write_removes_is_scrubbed_as_well() {
    let world = promised(r#","defaultTtl":10"#);
    world.create("a", r#""id":"x""#).expect("created");
    world.pass(10);
    world.create("a", r#""id":"x""#).expect("created over the dead");
    world.pass(30);
    assert_eq!(world.engine.retention_step().expect("a look").scrubbed, Some(Scrubbed::Done));
}

/// T24: near the bound the purge waits for nobody, and a bound that passes is told once.
#[test]
fn t24_urgency_and_misses() {
    let world = promised(r#","defaultTtl":10"#);
    world.create("a", r#""id":"x""#).expect("created");
    world.create("a", r#""id":"y","ttl":-1"#).expect("created");
    world.engine.pause_purge(true);
    world.pass(24);
    world.engine.pause_purge(false);
    let container = Holder::Container(world.current());
    assert!(!world.engine.purge_step(0).expect("a step").urgent, "14 seconds are less than a quarter");
    world.pass(1);
    assert!(world.engine.purge_step(0).expect("a step").urgent);
    world.pass(46);
    let missed = |world: &World| world.engine.retention_step().expect("a look").missed;
    assert_eq!((missed(&world), missed(&world)), (vec!["db/c".to_owned()], vec![]));
    assert_eq!(world.drain(), 1);
    assert_eq!(world.engine.retention_step().expect("a look").scrubbed, Some(Scrubbed::Done));
    assert_eq!(world.engine.retention_status(), RetentionStatus { missed: 1, scrubs: 2, held_scrubs: 0 });
    assert_eq!(world.engine.purge_figures(&container).expect("figures").backlog.items, 0);
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
        Holder::Container(container)
    };
    let huge = make("huge", 2 * SMALL);
    let small: Vec<Holder> = (0..SMALL).map(|number| make(&format!("small{number}"), 1)).collect();
    world.pass(10);
    let mut steps = 0;
    let backlog = |holder: &Holder| world.engine.purge_figures(holder).expect("figures").backlog.items;
    while small.iter().any(|holder| backlog(holder) > 0) {
        world.engine.purge_step(16).expect("a step");
        steps += 1;
    }
    // Each step visits 16 small ones, or the huge one and some of them.
    assert!(steps <= SMALL / 8 + 2, "{steps} steps");
    assert!(backlog(&huge) > SMALL as u64, "the huge one had its turns and no more");
    world.drain();
    assert_eq!(backlog(&huge), 0);
}

/// T31: while a container is held nothing in it is purged, not even what was dead before.
#[test]
fn t31_nothing_is_purged_from_a_held_container() {
    let world = World::new();
    let holder = Holder::Container(world.container(r#","defaultTtl":10"#));
    world.create("a", r#""id":"x""#).expect("created");
    world.pass(10);
    let hold = |why: Option<&str>| {
        let why = why.map(str::to_owned);
        world.engine.change_lifecycle(&holder, |lifecycle| lifecycle.hold = why).expect("changed");
    };
    hold(Some("case 7"));
    assert_eq!((world.drain(), world.counts()), (0, (0, 1)));
    hold(None);
    assert_eq!((world.drain(), world.counts()), (1, (0, 0)));
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

/// A paused purge has nothing to do, so writes do not wake the loop around it, whether or not something waits.
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

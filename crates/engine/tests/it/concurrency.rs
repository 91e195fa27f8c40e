//! What only real threads and a real store can get wrong: transactions that have run but are not committed yet while others
//! look, and time that passes meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use engine::{Engine, Operation, Precondition};
use storage::{ClockOptions, EmbeddedOptions, EmbeddedStore, ManualClock, Time};

use crate::world::{START, body, definition};

struct Machine {
    engine: Engine,
    clock: Arc<ManualClock>,
    _directory: tempfile::TempDir,
}

fn machine(more: &str) -> Machine {
    let directory = tempfile::tempdir().expect("a directory");
    let clock = Arc::new(ManualClock::new(Time::from_seconds(START)));
    let options = EmbeddedOptions::new(directory.path(), ClockOptions::new(clock.clone()));
    let engine = Engine::open(Arc::new(EmbeddedStore::open(options).expect("a store"))).expect("an engine");
    let database = engine.create_database("db", None).expect("a database");
    engine.create_container(&database, definition("c", more), None).expect("a container");
    Machine { engine, clock, _directory: directory }
}

fn upsert(id: u32, ttl: u32) -> Operation {
    let body = body("a", &format!(r#""id":"{id}","ttl":{ttl}"#));
    Operation::Upsert { body, precondition: Precondition::None }
}

/// T22, T13: the purge's hand passes no entry of a write that was timed before the purge looked and committed after, and
/// nothing that died comes back when TTL is switched off.
#[test]
fn t22_the_purge_leaves_nothing_behind_while_writers_and_clock_run() {
    const WRITERS: u32 = 4;
    const WRITES: u32 = 400;
    let Machine { engine, clock, _directory } = &machine(r#","defaultTtl":-1"#);
    let database = engine.database("db").expect("made");
    let container = engine.container(&database, "c").expect("made");
    let running = AtomicU32::new(WRITERS);
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (container, running) = (&container, &running);
            scope.spawn(move || {
                for n in 0..WRITES {
                    let ticket = engine.write(container, None, upsert(n * 7 % 40 + writer * 40, n % 3 + 1));
                    // Time passes between the transaction and its commit.
                    clock.advance(Duration::from_millis(u64::from(n * 37 % 400)));
                    ticket.wait().expect("written");
                }
                running.fetch_sub(1, Ordering::Release);
            });
        }
        scope.spawn(|| {
            while running.load(Ordering::Acquire) > 0 {
                engine.purge_step(16).expect("a step");
            }
        });
    });
    clock.advance(Duration::from_secs(10));
    while engine.purge_step(1000).expect("a step").next_due.is_some() {}
    let usage = engine.usage(&container).expect("figures");
    assert_eq!((usage.living.items, usage.dead.items), (0, 0), "every item was due");
    engine.replace_container(&container, definition("c", ""), &Precondition::None).expect("TTL off");
    assert_eq!(engine.usage(&container).expect("figures").living.items, 0, "expired is final");
}

/// T19: a write rings before its commit; the purge must see it all the same and not sleep past it.
#[test]
fn t19_a_death_set_before_its_commit_is_not_slept_past() {
    let Machine { engine, clock, _directory } = machine(r#","defaultTtl":-1"#);
    let engine = Arc::new(engine);
    let container = engine.container(&engine.database("db").expect("made"), "c").expect("made");
    let rung = Arc::new(AtomicBool::new(false));
    let bell = Arc::clone(&rung);
    engine.on_purge_due(move || bell.store(true, Ordering::Release));
    for n in 0..50 {
        assert_eq!(engine.purge_step(10).expect("a step").next_due, None);
        rung.store(false, Ordering::Release);
        let ticket = engine.write(&container, None, upsert(n, 5));
        while !rung.load(Ordering::Acquire) {
            std::hint::spin_loop();
        }
        let report = engine.purge_step(10).expect("a step");
        assert!(report.next_due.is_some(), "the item that rang is seen");
        ticket.wait().expect("written");
        clock.advance(Duration::from_secs(5));
        assert_eq!(engine.purge_step(10).expect("a step").purged_items, 1);
    }
}

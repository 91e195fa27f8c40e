//! Races that only real threads and a real store show: transactions that have run but are not committed yet while others
//! read, and time that passes meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use bson::{Document, RawDocument, Value, ValueRef};
use engine::collection::{Decision, LivingDocument, Modified, Target};
use engine::{CollectionDefinition, Engine, Error, Operation, Precondition};
use mql::index::IndexSpec;
use storage::{ClockOptions, Direction, EmbeddedOptions, EmbeddedStore, ManualClock, Time};

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

/// T22, T13: the purge cursor passes no entry of a write that got its time before the purge searched and committed after, and
/// no expired item becomes visible again when TTL is switched off.
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
    assert_eq!((usage.living.items, usage.expired.items), (0, 0), "every item was due");
    engine.replace_container(&container, definition("c", ""), &Precondition::None).expect("TTL off");
    assert_eq!(engine.usage(&container).expect("figures").living.items, 0, "expired is final");
}

/// T19: a write wakes the purge before its commit; the purge must see it all the same and not sleep past it.
#[test]
fn t19_an_expiry_set_before_its_commit_is_not_slept_past() {
    let Machine { engine, clock, _directory } = machine(r#","defaultTtl":-1"#);
    let engine = Arc::new(engine);
    let container = engine.container(&engine.database("db").expect("made"), "c").expect("made");
    let rung = Arc::new(AtomicBool::new(false));
    let wakeup = Arc::clone(&rung);
    engine.on_purge_due(move || wakeup.store(true, Ordering::Release));
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

fn counter(found: &LivingDocument) -> i32 {
    let Some(ValueRef::Int32(counter)) = found.document.get("counter") else { panic!("no counter") };
    counter
}

/// Counts one up, or begins.
fn count(found: Option<&LivingDocument>, fresh: Document) -> Decision {
    let Some(found) = found else {
        return Decision::Insert(RawDocument::from_document(&fresh.with("counter", 1)));
    };
    let mut next = found.document.to_document();
    next.insert("counter", counter(found) + 1);
    Decision::Replace(RawDocument::from_document(&next))
}

/// T15, T13: writers hammer one `_id` and one unique key of a collection around the instants at which their items expire. Each
/// acknowledged write was the only one there; none is lost, and none makes an expired item visible again.
#[test]
fn t15_one_id_and_one_unique_key_have_one_living_holder_around_the_deadline() {
    const WRITERS: i32 = 4;
    const WRITES: i32 = 150;
    let Machine { engine, clock, _directory } = &machine("");
    let collection =
        engine.create_collection("db", "c", CollectionDefinition::default(), None).expect("made");
    let index = |spec: Document| {
        let spec = IndexSpec::parse(spec.view()).expect("valid");
        engine.create_indexes(&collection, vec![spec]).expect("made");
    };
    let by = |field: &str| Document::new().with("key", Document::new().with(field, 1)).with("name", field);
    index(by("_ts").with("expireAfterSeconds", -1));
    index(by("u").with("unique", true));
    let running = AtomicU32::new(WRITERS as u32);
    let (inserted, replaced) = (AtomicU32::new(0), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (collection, running, inserted, replaced) = (&collection, &running, &inserted, &replaced);
            scope.spawn(move || {
                let seen_all = || [inserted, replaced].iter().all(|count| count.load(Ordering::Relaxed) > 10);
                // Half of them want the id, the others the key. Those of the id continue until both answers occurred: once they
                // are alone, they only need time to pass.
                let wants_id = writer % 2 == 0;
                for n in (0..).take_while(|n| *n < WRITES || wants_id && !seen_all()) {
                    let id = if wants_id { 0 } else { 1 + n + writer * WRITES };
                    let document = Document::new().with("_id", id).with("u", 1).with("ttl", 1 + n % 2);
                    let decide = move |found: Option<&LivingDocument>, _| Ok(count(found, document).into());
                    let ticket = engine.modify(collection, Target::Id(Value::Int32(id)), decide, None);
                    // Every eighth step is a leap over any deadline: writers that follow closely would keep the item for ever.
                    let step = if n % 8 == 7 { 2_500 } else { n as u64 * 37 % 400 };
                    clock.advance(Duration::from_millis(step));
                    match ticket.wait() {
                        Ok(Modified { before: None, .. }) => inserted.fetch_add(1, Ordering::Relaxed),
                        Ok(_) => replaced.fetch_add(1, Ordering::Relaxed),
                        Err(Error::DuplicateKey { .. }) => 0,
                        Err(error) => panic!("{error}"),
                    };
                }
                running.fetch_sub(1, Ordering::Release);
            });
        }
        scope.spawn(|| {
            while running.load(Ordering::Acquire) > 0 {
                engine.purge_step(16).expect("a step");
            }
        });
        scope.spawn(|| {
            let mut last: Option<(u64, i32)> = None;
            while running.load(Ordering::Acquire) > 0 {
                let reading = engine.reading(&[&collection]).expect("a reading");
                let all = reading.natural(&collection, None, Direction::Forward, 9, 1 << 20).expect("a page");
                assert!(all.len() <= 1, "two living holders of one key: {all:?}");
                let Some(found) = all.first() else { continue };
                let counter = counter(found);
                if let Some((number, before)) = last {
                    assert!(found.number.0 >= number, "an item that was gone is back");
                    assert!(found.number.0 > number || counter >= before, "a write was lost");
                }
                last = Some((found.number.0, counter));
            }
        });
    });
    assert!(inserted.load(Ordering::Relaxed) > 10 && replaced.load(Ordering::Relaxed) > 10);
    clock.advance(Duration::from_secs(10));
    while engine.purge_step(100).expect("a step").purged_items > 0 {}
    let check = engine.check_collection(&collection).expect("a check");
    assert_eq!((check.items, check.faults), (0, Vec::new()));
}

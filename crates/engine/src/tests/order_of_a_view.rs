//! Why a view takes policy, snapshot and `now` in that order and under the policy lock: one test for each sentence in
//! `gate` that says so.
//!
//! The store here stops a view at a chosen point and runs an event there, on the same thread. An event that would
//! have to wait for the policy lock runs only if the lock is free, and otherwise once the view is open, as it would
//! on a thread of its own. So every interleaving is tried and none is left to chance.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use document::{Document, PartitionKey, parse_json};
use parking_lot::Mutex;
use storage::{
    ClockOptions, ClockStatus, Job, Keyspace, Lanes, ManualClock, MemoryStore, Scrubbed, Snapshot, Stats,
    Store, Time,
};

use crate::access::gate::View;
use crate::catalog::container::Partition;
use crate::catalog::home::home_of_key;
use crate::{Container, ContainerDefinition, Engine, Operation, Precondition};

/// A point at which an event can run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Point {
    BeforeSequence,
    AfterSequence,
    BeforeSnapshot,
    AfterSnapshot,
    BeforeNow,
    AfterNow,
    AfterCommit,
}

/// Every point at which a view can be stopped, whatever its order is.
const IN_A_VIEW: [Point; 6] = [
    Point::BeforeSequence,
    Point::AfterSequence,
    Point::BeforeSnapshot,
    Point::AfterSnapshot,
    Point::BeforeNow,
    Point::AfterNow,
];

/// A memory store that runs an event when a point is reached for the first time.
struct Eventful {
    store: MemoryStore,
    plan: Mutex<Option<(Point, Event)>>,
}

type Event = Box<dyn FnOnce() + Send>;

/// A way to open a view.
type Open = fn(&World) -> View;

impl Eventful {
    fn plan(&self, point: Point, event: impl FnOnce() + Send + 'static) {
        *self.plan.lock() = Some((point, Box::new(event)));
    }

    /// Runs `step` between its two points.
    fn around<R>(&self, before: Option<Point>, after: Point, step: impl FnOnce(&MemoryStore) -> R) -> R {
        self.reach(before);
        let result = step(&self.store);
        self.reach(Some(after));
        result
    }

    fn reach(&self, point: Option<Point>) {
        // The lock must be free when the event runs, because it uses the store as well.
        let event = self.plan.lock().take_if(|(planned, _)| Some(*planned) == point);
        if let Some((_, event)) = event {
            event();
        }
    }
}

impl Store for Eventful {
    fn snapshot(&self) -> storage::Result<Arc<dyn Snapshot>> {
        self.around(Some(Point::BeforeSnapshot), Point::AfterSnapshot, MemoryStore::snapshot)
    }

    fn submit(&self, lanes: Lanes, job: Box<dyn Job>) {
        self.around(None, Point::AfterCommit, |store| store.submit(lanes, job));
    }

    fn last_sequence(&self) -> u64 {
        self.around(Some(Point::BeforeSequence), Point::AfterSequence, MemoryStore::last_sequence)
    }

    fn commits(&self) -> u64 {
        self.store.commits()
    }

    fn now(&self) -> storage::Result<Time> {
        self.around(Some(Point::BeforeNow), Point::AfterNow, MemoryStore::now)
    }

    fn clock_status(&self) -> storage::Result<ClockStatus> {
        self.store.clock_status()
    }

    fn accept_clock(&self) -> storage::Result<ClockStatus> {
        self.store.accept_clock()
    }

    fn reject_clock(&self) -> storage::Result<ClockStatus> {
        self.store.reject_clock()
    }

    fn advance_clock(&self, seconds: u64) -> storage::Result<Time> {
        self.store.advance_clock(seconds)
    }

    fn stats(&self) -> Stats {
        self.store.stats()
    }

    fn operations(&self) -> u64 {
        self.store.operations()
    }

    fn scrub(&self, keyspaces: &[Keyspace]) -> storage::Result<Scrubbed> {
        self.store.scrub(keyspaces)
    }

    fn backup(&self) -> storage::Result<storage::Backup> {
        self.store.backup()
    }

    fn close(&self) -> storage::Result<()> {
        self.store.close()
    }
}

/// What an event must wait for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WaitsFor {
    NoWriter,
    /// It changes the policy in force.
    ThePolicy,
}

struct World {
    engine: Engine,
    store: Arc<Eventful>,
    clock: Arc<ManualClock>,
    container: Arc<Container>,
}

impl World {
    /// Returns a container with that `D`, and item `x` in it.
    fn new(default_ttl: u32) -> Arc<World> {
        let clock = Arc::new(ManualClock::new(Time::from_seconds(1_700_000_000)));
        let store = MemoryStore::new(ClockOptions::new(clock.clone())).expect("a store");
        let store = Arc::new(Eventful { store, plan: Mutex::new(None) });
        let engine = Engine::open(store.clone()).expect("an engine");
        let database = engine.create_database("db", None).expect("a database");
        let container = engine.create_container(&database, definition(Some(default_ttl)), None);
        let world = World { engine, store, clock, container: container.expect("a container") };
        world.create("x");
        Arc::new(world)
    }

    fn partition(&self) -> &Arc<Partition> {
        &self.container.partitions[0]
    }

    fn create(&self, id: &str) {
        self.engine
            .write(&self.container, None, Operation::Create { body: body(id) })
            .wait()
            .expect("created");
    }

    fn upsert(&self, id: &str) {
        let operation = Operation::Upsert { body: body(id), precondition: Precondition::None };
        self.engine.write(&self.container, None, operation).wait().expect("written");
    }

    fn set_default(&self, default_ttl: Option<u32>) {
        self.engine
            .replace_container(&self.container, definition(default_ttl), &Precondition::None)
            .expect("a valid change");
    }

    fn pass(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    fn open(&self) -> View {
        View::open(&*self.store, self.partition()).expect("a view")
    }

    /// Returns the other way to open a view.
    fn open_all(&self) -> View {
        View::open_all(&*self.store, &self.container.partitions).expect("views").remove(0)
    }

    /// Returns whether the view shows a living item of that name.
    fn shows(&self, view: &View, id: &str) -> bool {
        let key = PartitionKey::from_header(r#"["a"]"#).expect("a key");
        let home = home_of_key(&self.container, Some(key)).expect("a home");
        view.by_id_key(&home.id_key(id)).expect("readable").is_some()
    }

    /// Opens a view during which `event` runs at `point`, or right after it if it has to wait for that long.
    fn view_during(
        self: &Arc<Self>,
        open: Open,
        point: Point,
        waits_for: WaitsFor,
        event: impl Fn(&World) + Clone + Send + 'static,
    ) -> View {
        let happened = Arc::new(AtomicBool::new(false));
        let (world, flag, now) = (Arc::clone(self), Arc::clone(&happened), event.clone());
        self.store.plan(point, move || {
            let free = world.partition().policy.try_write().is_some();
            if free || waits_for == WaitsFor::NoWriter {
                now(&world);
                flag.store(true, Ordering::Relaxed);
            }
        });
        let view = open(self);
        assert!(self.store.plan.lock().is_none(), "{point:?} was not reached");
        if !happened.load(Ordering::Relaxed) {
            event(self);
        }
        view
    }
}

fn body(id: &str) -> Document {
    Document::from_json(format!(r#"{{"id":"{id}","pk":"a"}}"#).as_bytes()).expect("valid JSON")
}

fn definition(default_ttl: Option<u32>) -> ContainerDefinition {
    let ttl = default_ttl.map_or(String::new(), |ttl| format!(r#","defaultTtl":{ttl}"#));
    let text = format!(r#"{{"id":"c","partitionKey":{{"paths":["/pk"],"kind":"Hash","version":2}}{ttl}}}"#);
    ContainerDefinition::from_value(&parse_json(text.as_bytes()).expect("valid JSON")).expect("valid")
}

/// Returns both ways to open a view, each stopped at every point.
fn interruptions() -> impl Iterator<Item = (Open, &'static str, Point)> {
    let ways: [(Open, _); 2] = [(World::open, "one"), (World::open_all, "all")];
    ways.into_iter().flat_map(|(open, way)| IN_A_VIEW.map(|point| (open, way, point)))
}

/// `now` after the snapshot. A client learns that `x` has expired, and then writes `y`. A view that shows `y` does
/// not show `x`, and neither does a session that includes `y`.
#[test]
fn t17_who_sees_what_followed_an_expiry_does_not_see_the_expired() {
    for (open, way, point) in interruptions() {
        let world = World::new(10);
        let view = world.view_during(open, point, WaitsFor::NoWriter, |world| {
            world.pass(10);
            assert!(!world.shows(&world.open(), "x"), "it has expired");
            world.create("y");
        });
        let sees_y = world.shows(&view, "y") || view.sequence == world.store.last_sequence();
        assert!(!(sees_y && world.shows(&view, "x")), "{way}, {point:?}");
    }
}

/// No commit between snapshot and `now`. `x` is nine seconds old when it is written again, and is living throughout: no
/// view may have its old version and a time at which that version would have expired.
#[test]
fn t13_no_view_takes_for_expired_what_a_concurrent_write_renews() {
    for (open, way, point) in interruptions() {
        let world = World::new(10);
        world.pass(9);
        let view = world.view_during(open, point, WaitsFor::NoWriter, |world| {
            world.upsert("x");
            world.pass(2);
        });
        assert!(world.shows(&view, "x"), "{way}, {point:?}");
    }
}

/// All under the lock, the reader's half. `x` is living throughout: it is five seconds old when `D` grows from 10 to
/// 1000. No view may apply the 10 at a later time.
#[test]
fn t13_no_view_judges_by_a_rule_that_is_no_longer_in_force() {
    for (open, way, point) in interruptions() {
        let world = World::new(10);
        world.pass(5);
        let view = world.view_during(open, point, WaitsFor::ThePolicy, |world| {
            world.set_default(Some(1000));
            world.pass(10);
        });
        assert!(world.shows(&view, "x"), "{way}, {point:?}");
        assert!(world.shows(&world.open(), "x"), "the new rule lets it live");
    }
}

/// All under the lock, the other half: a change has taken its time and is not in force yet. A view that opens then
/// must wait, or the old rule would expire items that the new one does not.
#[test]
fn t13_no_view_opens_between_the_time_of_a_change_and_its_coming_into_force() {
    let world = World::new(10);
    world.pass(5);
    let shown_expired = Arc::new(AtomicBool::new(false));
    let (reader, flag) = (Arc::clone(&world), Arc::clone(&shown_expired));
    world.store.plan(Point::AfterCommit, move || {
        reader.pass(10);
        if reader.partition().policy.try_read().is_some() {
            flag.store(!reader.shows(&reader.open(), "x"), Ordering::Relaxed);
        }
    });
    world.set_default(Some(1000));
    assert!(world.shows(&world.open(), "x"), "the new rule lets it live");
    assert!(!shown_expired.load(Ordering::Relaxed), "it was shown as expired before");
}

/// The policy before the snapshot. `x` has expired and TTL is off: only a cutoff keeps it expired, until the purge
/// has removed both. No view may have the item without the cutoff.
#[test]
fn t13_a_forgotten_cutoff_brings_no_item_back() {
    for (open, way, point) in interruptions() {
        let world = World::new(10);
        world.pass(10);
        world.set_default(None);
        let view = world.view_during(open, point, WaitsFor::ThePolicy, |world| {
            assert_eq!(world.engine.purge_step(10).expect("a step").purged_items, 1);
            assert!(world.partition().policy.read().cutoffs.is_empty(), "the purge forgets the cutoff");
        });
        assert!(!world.shows(&view, "x"), "{way}, {point:?}");
    }
}

/// Sequence and LSN before the snapshot: a session token never names a commit that the view does not have.
#[test]
fn the_sequence_and_the_lsn_of_a_view_are_in_its_snapshot() {
    for (open, way, point) in interruptions() {
        let world = World::new(10);
        let view = world.view_during(open, point, WaitsFor::NoWriter, |world| world.create("y"));
        let claims_y = view.sequence == world.store.last_sequence();
        let counts_y = view.range.lsn == world.partition().lsn();
        assert!(!(claims_y || counts_y) || world.shows(&view, "y"), "{way}, {point:?}");
    }
}

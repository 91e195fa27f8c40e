//! A steady stream of inserts into a container whose items expire, and the purge beside it at the pace that the engine's own
//! controller sets: the backlog must stay bounded, however little capacity is left of the machine.
//!
//! The engine is the real one; the time of its work is computed. It is the time of one writer, which serves users first and is a
//! hundred times slower than a real machine, so that a run of two minutes has a few thousand inserts.

use std::sync::Arc;
use std::time::Duration;

use document::{Document, parse_json};
use engine::{
    Backlog, ConcurrentUse, Container, ContainerDefinition, Engine, Observation, Operation, Owner, Pace,
    Slice,
};
use storage::{ClockOptions, ManualClock, MemoryStore, Time};

const TTL_SECONDS: u64 = 20;
/// The share of the writer's time that an old backlog is granted.
const SHARE: f64 = 0.25;
/// The writer's time for an item that is removed.
const REMOVAL_MS: f64 = 2.5;
/// The writer's time for a group of users' writes.
const GROUP_MS: f64 = 50.0;
/// As in the server's loop.
const LOOK_MS: f64 = 250.0;
/// The time after which the bounds must hold.
const WARM_UP_MS: f64 = 60_000.0;
const MAX_AGE: Duration = Duration::from_secs(30);
const MAX_BACKLOG: u64 = 2;

/// The load of users and the resources they leave.
#[derive(Debug, Clone, Copy)]
pub struct UserLoad {
    /// Inserts in a second.
    pub inserts: f64,
    /// The share of the writer's time that they take.
    pub writing: f64,
    /// Processors that are idle.
    pub idle_processors: f64,
}

impl UserLoad {
    /// Returns a load drawn from a seed: from an idle machine to one without any capacity left.
    pub fn of_seed(seed: u64) -> UserLoad {
        let mut random = fastrand::Rng::with_seed(seed);
        let writing = random.f64() * 0.9;
        UserLoad {
            inserts: 5.0 + random.f64() * 40.0,
            writing,
            idle_processors: (random.f64() - 0.3).max(0.0) * 2.0,
        }
    }
}

/// The largest backlog after the first minute.
#[derive(Debug, Default)]
pub struct WorstBacklog {
    /// Expired items that were not purged.
    pub backlog: u64,
    /// How long the oldest of them had been expired.
    pub age: Duration,
    /// Items removed in the whole run.
    pub purged: u64,
}

struct World {
    engine: Engine,
    container: Arc<Container>,
    clock: Arc<ManualClock>,
    load: UserLoad,
    now_ms: f64,
    /// The fraction of an insert that is due.
    owed: f64,
    inserted: u64,
}

/// Runs a load for so many seconds; returns the largest backlog, or the property that did not hold.
pub fn run(load: UserLoad, seconds: u64) -> Result<WorstBacklog, String> {
    let mut world = World::new(load)?;
    let (mut pace, mut waited, mut next_look) = (Pace::new(SHARE), WorstBacklog::default(), 0.0);
    let mut slice =
        pace.next(&Observation { concurrent_use: ConcurrentUse::Present, ..Observation::default() });
    while world.now_ms < seconds as f64 * 1000.0 {
        let began = world.now_ms;
        let (purged, work_ms) = world.step(slice)?;
        waited.purged += purged;
        let elapsed_ms = world.now_ms - began;
        let backlog = if world.now_ms >= next_look { Some(world.look(&mut waited)?) } else { None };
        next_look = if backlog.is_some() { world.now_ms + LOOK_MS } else { next_look };
        slice = pace.next(&Observation {
            elapsed: millis(elapsed_ms),
            concurrent_use: ConcurrentUse::Present,
            purged_items: purged,
            background_items: purged,
            purging: millis(work_ms),
            writing: millis(elapsed_ms * load.writing),
            merging_lags: false,
            idle_processors: backlog.map(|_| load.idle_processors),
            backlog,
        });
    }
    Ok(waited)
}

impl World {
    fn new(load: UserLoad) -> Result<World, String> {
        let clock = Arc::new(ManualClock::new(Time::from_seconds(1_800_000_000)));
        let store = MemoryStore::new(ClockOptions::new(clock.clone())).map_err(text)?;
        let engine = Engine::open(Arc::new(store)).map_err(text)?;
        let database = engine.create_database("db", None).map_err(text)?;
        let definition = format!(
            r#"{{"id":"c","partitionKey":{{"paths":["/id"],"kind":"Hash"}},"defaultTtl":{TTL_SECONDS}}}"#
        );
        let definition = parse_json(definition.as_bytes()).map_err(text)?;
        let definition = ContainerDefinition::from_value(&definition).map_err(text)?;
        let container = engine.create_container(&database, definition, None).map_err(text)?;
        Ok(World { engine, container, clock, load, now_ms: 0.0, owed: 0.0, inserted: 0 })
    }

    /// Runs one slice and the pause after it. Returns the number of removed items and the writer's time for them.
    fn step(&mut self, slice: Slice) -> Result<(u64, f64), String> {
        let report = self.engine.purge_step(slice.items).map_err(text)?;
        let work_ms = report.purged_items as f64 * REMOVAL_MS;
        // It waits for a group of users that is under way.
        let took_ms = work_ms + self.load.writing * GROUP_MS;
        let pause_ms = slice.pause(millis(took_ms)).as_secs_f64() * 1000.0;
        let rest_ms = if report.purged_items == 0 { 10.0 } else { 0.0 };
        self.pass((took_ms + pause_ms).max(1.0) + rest_ms)?;
        Ok((report.purged_items, work_ms))
    }

    /// Lets time pass while users insert.
    fn pass(&mut self, ms: f64) -> Result<(), String> {
        self.owed += self.load.inserts * ms / 1000.0;
        for _ in 0..self.owed as u64 {
            let body = format!(r#"{{"id":"{}","name":"n"}}"#, self.inserted);
            let body = Document::from_json(body.as_bytes()).map_err(text)?;
            self.engine.write(&self.container, None, Operation::Create { body }).wait().map_err(text)?;
            self.inserted += 1;
        }
        self.owed = self.owed.fract();
        // The clock has whole milliseconds.
        let (before, after) = (self.now_ms.floor(), (self.now_ms + ms).floor());
        self.now_ms += ms;
        self.clock.advance(millis(after - before));
        Ok(())
    }

    /// Returns the backlog, and checks its bounds.
    fn look(&self, waited: &mut WorstBacklog) -> Result<Backlog, String> {
        let backlog = self.engine.backlog().map_err(text)?.ok_or("the purge is stopped")?;
        if self.now_ms >= WARM_UP_MS {
            let owner = Owner::Container(Arc::clone(&self.container));
            let living = self.engine.usage_of(&owner).map_err(text)?.living.items;
            if backlog.items > MAX_BACKLOG * living || backlog.age > MAX_AGE {
                return Err(format!(
                    "{backlog:?} beside {living} living at {:.0} ms: {:?}",
                    self.now_ms, self.load
                ));
            }
            waited.backlog = waited.backlog.max(backlog.items);
            waited.age = waited.age.max(backlog.age);
        }
        Ok(backlog)
    }
}

fn millis(ms: f64) -> Duration {
    Duration::from_secs_f64(ms.max(0.0) / 1000.0)
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

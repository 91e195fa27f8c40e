//! The engine that a script runs on, and everything around it that a script may change.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use engine::{Api, Container, Engine, MemoryArchive, Options, Owner, Position};
use storage::{
    ClockOptions, CrashMode, Durability, EmbeddedOptions, EmbeddedStore, ManualClock, MemoryDisk,
    MemoryStore, Store, Time,
};
use tempfile::TempDir;

use super::call::Call;
use super::labels::{Labels, START_SECONDS};
use super::{Answer, verbs};

/// The kind of store.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Memory,
    Embedded,
}

/// The state that stays over a restart.
enum Ground {
    Memory(MemoryDisk),
    Embedded(TempDir),
}

pub(super) struct Stage {
    ground: Ground,
    pub(super) clock: Arc<ManualClock>,
    pub(super) archive: Arc<MemoryArchive>,
    pub(super) partitions: u32,
    /// None between a stop and the next start.
    open: Option<(Arc<dyn Store>, Engine)>,
    pub(super) labels: Labels,
    /// Where `query`, `feed` and `history` continue with `from=next`, by command and name.
    pub(super) tokens: BTreeMap<String, String>,
    /// The last commit that was counted.
    pub(super) counted: u64,
    pub(super) positions: BTreeMap<String, Position>,
}

impl Stage {
    pub(super) fn new(kind: Kind) -> Stage {
        let ground = match kind {
            Kind::Memory => Ground::Memory(MemoryDisk::new()),
            Kind::Embedded => Ground::Embedded(tempfile::tempdir().expect("a directory")),
        };
        let mut stage = Stage {
            ground,
            clock: Arc::new(ManualClock::new(Time::from_seconds(START_SECONDS))),
            archive: Arc::new(MemoryArchive::default()),
            partitions: 1,
            open: None,
            labels: Labels::default(),
            tokens: BTreeMap::new(),
            counted: 0,
            positions: BTreeMap::new(),
        };
        stage.start();
        stage.engine().create_database("db", None).expect("a fresh store");
        stage
    }

    pub(super) fn start(&mut self) {
        let clock = ClockOptions::new(self.clock.clone());
        let store: Arc<dyn Store> = match &self.ground {
            Ground::Memory(disk) => {
                Arc::new(MemoryStore::open(disk.clone(), clock).expect("the store opens"))
            }
            Ground::Embedded(folder) => {
                let durability = Durability::Buffered;
                let options = EmbeddedOptions { durability, ..EmbeddedOptions::new(folder.path(), clock) };
                Arc::new(EmbeddedStore::open(options).expect("the store opens"))
            }
        };
        let archive: Option<Arc<dyn engine::Archive>> = Some(self.archive.clone());
        let options = Options { archive, partitions: self.partitions, ..Options::default() };
        let engine = Engine::open_with(Arc::clone(&store), options).expect("the engine opens");
        self.open = Some((store, engine));
    }

    /// Stops cleanly and starts again.
    pub(super) fn restart(&mut self) {
        self.engine().close().expect("the store closes");
        self.open = None;
        self.start();
    }

    /// Stops at once and starts again.
    pub(super) fn kill(&mut self) {
        self.open = None;
        self.start();
    }

    /// The machine fails, with all that was not synced lost, and starts again.
    pub(super) fn crash(&mut self) {
        self.plan_crash(CrashMode::BeforeCommit);
        self.engine().create_database("struck by the crash", None).expect_err("the disk fails");
        self.start_after_crash();
    }

    /// Plans a crash at the next commit.
    pub(super) fn plan_crash(&self, mode: CrashMode) {
        self.disk().crash_after(0, mode);
    }

    pub(super) fn start_after_crash(&mut self) {
        self.open = None;
        self.disk().clear_faults();
        self.start();
    }

    pub(super) fn disk(&self) -> &MemoryDisk {
        match &self.ground {
            Ground::Memory(disk) => disk,
            Ground::Embedded(_) => panic!("only the memory store can crash"),
        }
    }

    pub(super) fn store(&self) -> &dyn Store {
        &*self.open.as_ref().expect("it is open").0
    }

    pub(super) fn engine(&self) -> &Engine {
        &self.open.as_ref().expect("it is open").1
    }

    pub(super) fn advance(&self, millis: u64) {
        self.clock.advance(Duration::from_millis(millis));
    }

    pub(super) fn now(&self) -> Time {
        self.engine().now().expect("a running clock")
    }

    /// The container of a name.
    pub(super) fn container(&self, name: &str) -> engine::Result<Arc<Container>> {
        let database = self.engine().database("db")?;
        self.engine().container(&database, name)
    }

    /// The container or collection of a name.
    pub(super) fn owner(&self, name: &str) -> engine::Result<Owner> {
        let api = match self.engine().collection("db", name) {
            Some(_) => Api::MongoDb,
            None => Api::NoSql,
        };
        self.engine().owner(api, "db", name)
    }

    /// Runs a command and returns its output.
    pub(super) fn run(&mut self, mut call: Call<'_>) -> Vec<String> {
        let answer = self.answer(&mut call);
        call.end();
        let lines = answer.unwrap_or_else(|error| vec![describe(&error)]);
        lines.iter().map(|line| self.labels.rename(line)).collect()
    }

    pub(super) fn answer(&mut self, call: &mut Call<'_>) -> Answer {
        verbs::find(call.verb)(self, call)
    }

    /// Checks at the end that the store has the entries of its items and no others, whatever the script did.
    pub(super) fn finish(&self) {
        let report = engine::check::check(self.store(), &mut |_| {}).expect("an inspection");
        assert!(report.is_sound() && report.unchecked.is_empty(), "the store is damaged: {:#?}", report.told);
    }
}

/// Describes an error by its kind and its message.
pub(super) fn describe(error: &engine::Error) -> String {
    let kind = format!("{error:?}");
    let kind = kind.split(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default();
    format!("error {kind}: {error}")
}

//! One engine that enforces throughput, and one container in it.

use std::sync::Arc;

use document::{Document, PartitionKey, parse_json};
use engine::{
    Budget, Burst, Container, ContainerDefinition, Enforcement, Engine, Error, ItemName, Operation, Options,
    Owner, Precondition, PurgeReport, Throughput,
};
use storage::{ClockOptions, ManualClock, MemoryDisk, MemoryStore};

/// How a request ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It succeeded, with an item of that number, for `cost` hundredths of units.
    Done { number: u64, cost: u64 },
    /// It was admitted and failed.
    Failed,
    /// It was refused and may be retried after so many milliseconds.
    Refused(u64),
}

/// An engine, its disk and its clock.
pub(super) struct Machine {
    disk: MemoryDisk,
    clock: Arc<ManualClock>,
    bursts: bool,
    engine: Option<Engine>,
}

impl Machine {
    /// Creates a fresh one, with a container of so many units.
    pub(super) fn new(clock: Arc<ManualClock>, units: u32, bursts: bool) -> Result<Machine, String> {
        let mut machine = Machine { disk: MemoryDisk::new(), clock, bursts, engine: None };
        machine.restart()?;
        let engine = machine.engine();
        let database = engine.create_database("db", None).map_err(text)?;
        let definition =
            br#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},"defaultTtl":-1}"#;
        let definition = parse_json(definition).expect("the text is JSON");
        let definition = ContainerDefinition::from_value(&definition).map_err(|error| error.to_string())?;
        engine.create_container(&database, definition, Some(Throughput::Manual(units))).map_err(text)?;
        Ok(machine)
    }

    /// Crashes the process and starts another.
    pub(super) fn restart(&mut self) -> Result<(), String> {
        self.engine = None;
        let store = MemoryStore::open(self.disk.clone(), ClockOptions::new(self.clock.clone()));
        let store = store.map_err(|error| error.to_string())?;
        let burst = if self.bursts { Burst::On } else { Burst::Off };
        let enforcement = Enforcement::On { clock: self.clock.clone(), burst };
        let options = Options { enforcement, ..Options::default() };
        self.engine = Some(Engine::open_with(Arc::new(store), options).map_err(text)?);
        Ok(())
    }

    /// Returns the store's time.
    pub(super) fn now_ms(&self) -> Result<u64, String> {
        Ok(self.engine().now().map_err(text)?.millis())
    }

    /// Creates an item.
    pub(super) fn create(&self, body: Document) -> Outcome {
        let written = self.engine().write(&self.container(), None, Operation::Create { body }).wait();
        outcome(written)
    }

    /// Reads an item that does not exist.
    pub(super) fn read_nothing(&self) -> Outcome {
        let name = ItemName::Id("missing".to_owned());
        outcome(self.engine().read(&self.container(), &key(), &name, &Precondition::None))
    }

    /// Runs one step of the purge.
    pub(super) fn purge(&self, limit: usize) -> Result<PurgeReport, String> {
        self.engine().purge_step(limit).map_err(text)
    }

    /// Returns the units that the purge may spend now.
    pub(super) fn left_over(&self) -> u64 {
        self.budget().left_over().expect("throughput is enforced").0
    }

    /// Returns how many expired items are not purged.
    pub(super) fn backlog(&self) -> Result<u64, String> {
        let usage = self.engine().usage(&self.container()).map_err(text)?;
        Ok(usage.expired.items)
    }

    /// Sets the retention promise for the bytes of expired items.
    pub(super) fn promise(&self, seconds: Option<u32>) -> Result<(), String> {
        let is_on = self.engine().change_lifecycle(&Owner::Container(self.container()), |lifecycle| {
            lifecycle.max_purge_delay = seconds;
        });
        is_on.map(drop).map_err(text)
    }

    /// Returns whether a broken promise is reported.
    pub(super) fn look_at_promises(&self) -> Result<bool, String> {
        Ok(!self.engine().retention_step().map_err(text)?.missed.is_empty())
    }

    fn budget(&self) -> Budget {
        let container = self.container();
        let partition = Arc::clone(&container.partitions[0]);
        self.engine().budget(&Owner::Container(container), &partition)
    }

    fn container(&self) -> Arc<Container> {
        let database = self.engine().database("db").expect("it was made");
        self.engine().container(&database, "c").expect("it was made")
    }

    fn engine(&self) -> &Engine {
        self.engine.as_ref().expect("a process runs")
    }
}

/// Returns an item that expires by itself.
pub(super) fn expiring(name: u64, ttl: u64, padding: usize) -> Document {
    let body = format!(r#"{{"id":"{name}","pk":"p","ttl":{ttl},"pad":"{}"}}"#, "x".repeat(padding));
    Document::from_json(body.as_bytes()).expect("the text is a document")
}

fn outcome(answer: engine::Result<engine::Outcome>) -> Outcome {
    match answer {
        Ok(done) => {
            let number = done.item.map_or(0, |item| item.rid.number);
            Outcome::Done { number, cost: done.charge.0 }
        }
        Err(Error::TooManyRequests { retry_after_ms }) => Outcome::Refused(retry_after_ms),
        Err(_) => Outcome::Failed,
    }
}

fn key() -> PartitionKey {
    PartitionKey::from_header("[\"p\"]").expect("the text is a partition key")
}

#[expect(clippy::needless_pass_by_value, reason = "it is for map_err")]
fn text(error: Error) -> String {
    error.to_string()
}

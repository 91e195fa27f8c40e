//! Bolide inside your own process: containers of JSON items that expire, in a directory or in memory, without a server.
//!
//! ```
//! use serde_json::{Value, json};
//!
//! # fn main() -> bolide::Result<()> {
//! let store = bolide::Options::in_memory().test_clock(true).open()?;
//! let sessions = store.container("app", &json!({
//!     "id": "sessions",
//!     "partitionKey": {"paths": ["/user"], "kind": "Hash"},
//!     "defaultTtl": 3600,
//! }))?;
//!
//! sessions.upsert(&json!({"id": "web", "user": "ann"}))?;
//! sessions.upsert(&json!({"id": "kiosk", "user": "ann", "ttl": 60}))?;
//! assert_eq!(sessions.query::<u64>("SELECT VALUE COUNT(1) FROM c", &[])?, [2]);
//!
//! store.advance_clock(60)?;
//! assert!(sessions.read::<Value>("ann", "kiosk")?.is_none());
//! assert!(sessions.read::<Value>("ann", "web")?.is_some());
//! store.close()
//! # }
//! ```
//!
//! The directory has the format of the server's: a server can serve data written here, and the other way round, one
//! process at a time. [`Bolide::engine`] gives access to the features that this crate does not offer.

mod container;
mod error;
mod purge;

use std::path::PathBuf;
use std::sync::Arc;

use engine::{ContainerDefinition, Engine, Throughput};
use storage::{ClockOptions, EmbeddedOptions, EmbeddedStore, MemoryStore, RealClock, Store, TestClock};

pub use container::Container;
pub use error::{Error, Result};
pub use storage::Durability;

use crate::purge::Purge;

/// Where data is stored.
#[derive(Debug, Clone)]
enum Location {
    Directory(PathBuf),
    Memory,
}

/// Options for opening a store.
#[derive(Debug, Clone)]
pub struct Options {
    location: Location,
    test_clock: TestClock,
    durability: Durability,
}

impl Options {
    /// Stores data in a directory, which is created if it does not exist.
    pub fn in_directory(directory: impl Into<PathBuf>) -> Options {
        Options::of(Location::Directory(directory.into()))
    }

    /// Stores data in memory, until the store is closed.
    pub fn in_memory() -> Options {
        Options::of(Location::Memory)
    }

    fn of(location: Location) -> Options {
        Options { location, test_clock: TestClock::Off, durability: Durability::Sync }
    }

    /// Sets whether [`Bolide::advance_clock`] may advance the time. A store that was advanced opens only with this
    /// option.
    #[must_use]
    pub fn test_clock(mut self, on: bool) -> Options {
        self.test_clock = TestClock::running(on);
        self
    }

    /// Sets a test clock that stands still until it is advanced, so that no slow test runs a second late.
    #[must_use]
    pub fn stopped_clock(mut self) -> Options {
        self.test_clock = TestClock::Stopped;
        self
    }

    /// Sets what an acknowledged write survives; a power loss by default.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Options {
        self.durability = durability;
        self
    }

    /// Opens the store and starts the thread that purges expired items.
    pub fn open(self) -> Result<Bolide> {
        let mut clock = ClockOptions::new(Arc::new(RealClock::new()));
        clock.test_clock = self.test_clock;
        let store: Arc<dyn Store> = match self.location {
            Location::Memory => Arc::new(MemoryStore::new(clock).map_err(engine::Error::from)?),
            Location::Directory(path) => {
                let mut options = EmbeddedOptions::new(&path, clock);
                options.durability = self.durability;
                Arc::new(EmbeddedStore::open(options).map_err(engine::Error::from)?)
            }
        };
        let engine = Arc::new(Engine::open(store)?);
        let purge = Purge::start(&engine);
        Ok(Bolide { engine, purge: Some(purge) })
    }
}

/// An open store. Closed cleanly when dropped; [`Bolide::close`] also returns errors.
pub struct Bolide {
    engine: Arc<Engine>,
    purge: Option<Purge>,
}

impl Bolide {
    /// Opens a store in a directory, with the defaults.
    pub fn open(directory: impl Into<PathBuf>) -> Result<Bolide> {
        Options::in_directory(directory).open()
    }

    /// Returns the container with the definition's id in a database; creates both if they do not exist. An existing
    /// container keeps its definition.
    ///
    /// The definition is that of the `NoSQL` API: `id`, `partitionKey`, and optionally `defaultTtl`, `indexingPolicy`,
    /// `uniqueKeyPolicy`.
    pub fn container(&self, database: &str, definition: &serde_json::Value) -> Result<Container> {
        let definition = document::parse_json(definition.to_string().as_bytes())?;
        let definition = ContainerDefinition::from_value(&definition).map_err(engine::Error::from)?;
        definition.check_known().map_err(engine::Error::from)?;
        let name = definition.id.clone();
        let database = made(self.engine.create_database(database, None), || self.engine.database(database))?;
        let container =
            made(self.engine.create_container(&database, definition, Some(Throughput::DEFAULT)), || {
                self.engine.container(&database, &name)
            })?;
        Ok(Container::new(Arc::clone(&self.engine), container))
    }

    /// Advances the clock of a store opened with a test clock: a time to live of a year passes in a millisecond.
    pub fn advance_clock(&self, seconds: u64) -> Result<()> {
        self.engine.advance_clock(seconds)?;
        Ok(())
    }

    /// Returns the engine, for everything else: feeds, forecasts, holds, archives, collections.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Finishes running work and releases the data.
    pub fn close(mut self) -> Result<()> {
        self.purge.take();
        Ok(self.engine.close()?)
    }
}

impl Drop for Bolide {
    fn drop(&mut self) {
        if self.purge.take().is_some() {
            // There is no caller to report to; acknowledged writes are durable all the same.
            let _ = self.engine.close();
        }
    }
}

/// Returns the created resource, or the one that exists already.
fn made<T>(made: engine::Result<T>, there: impl FnOnce() -> engine::Result<T>) -> Result<T> {
    match made {
        Err(engine::Error::Exists { .. }) => Ok(there()?),
        other => Ok(other?),
    }
}

//! Bolide inside your own process: containers of JSON items that know when to die, in a directory or in memory, no server.
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
//! The directory is the one that the server uses: what is written here can be served later, and the other way round, one
//! process at a time. Whatever this page does not offer, the engine does: [`Bolide::engine`].

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

/// Where data lives.
#[derive(Debug, Clone)]
enum Place {
    Directory(PathBuf),
    Memory,
}

/// How a store is opened.
#[derive(Debug, Clone)]
pub struct Options {
    place: Place,
    test_clock: TestClock,
    durability: Durability,
}

impl Options {
    /// Data in a directory, which is made if it is not there.
    pub fn in_directory(directory: impl Into<PathBuf>) -> Options {
        Options::of(Place::Directory(directory.into()))
    }

    /// Data in memory, gone when the store is closed.
    pub fn in_memory() -> Options {
        Options::of(Place::Memory)
    }

    fn of(place: Place) -> Options {
        Options { place, test_clock: TestClock::Off, durability: Durability::Sync }
    }

    /// Whether [`Bolide::advance_clock`] may move the time forward. A store that was advanced opens with it only.
    #[must_use]
    pub fn test_clock(mut self, on: bool) -> Options {
        self.test_clock = TestClock::running(on);
        self
    }

    /// A test clock that stands still until it is moved, so that no slow test comes a second too late.
    #[must_use]
    pub fn stopped_clock(mut self) -> Options {
        self.test_clock = TestClock::Stopped;
        self
    }

    /// When a write counts as done; on disk unless said otherwise.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Options {
        self.durability = durability;
        self
    }

    /// Opens the store and starts the thread that removes what has expired.
    pub fn open(self) -> Result<Bolide> {
        let mut clock = ClockOptions::new(Arc::new(RealClock::new()));
        clock.test_clock = self.test_clock;
        let store: Arc<dyn Store> = match self.place {
            Place::Memory => Arc::new(MemoryStore::new(clock).map_err(engine::Error::from)?),
            Place::Directory(path) => {
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

/// An open store. Closed in order when dropped; [`Bolide::close`] also tells whether that went well.
pub struct Bolide {
    engine: Arc<Engine>,
    purge: Option<Purge>,
}

impl Bolide {
    /// Opens a store in a directory, with the defaults.
    pub fn open(directory: impl Into<PathBuf>) -> Result<Bolide> {
        Options::in_directory(directory).open()
    }

    /// The container with the definition's id in that database; both are made if they are not there. A container that is there
    /// stays as it is, whatever else the definition says.
    ///
    /// The definition is that of the `NoSQL` API: `id`, `partitionKey`, and if you like `defaultTtl`, `indexingPolicy`,
    /// `uniqueKeyPolicy`.
    pub fn container(&self, database: &str, definition: &serde_json::Value) -> Result<Container> {
        let definition = document::parse_json(definition.to_string().as_bytes())?;
        let definition = ContainerDefinition::from_value(&definition).map_err(engine::Error::from)?;
        let name = definition.id.clone();
        let database = made(self.engine.create_database(database, None), || self.engine.database(database))?;
        let container =
            made(self.engine.create_container(&database, definition, Some(Throughput::DEFAULT)), || {
                self.engine.container(&database, &name)
            })?;
        Ok(Container::new(Arc::clone(&self.engine), container))
    }

    /// Moves the clock forward, where the store was opened with a test clock: a year's time to live takes a millisecond.
    pub fn advance_clock(&self, seconds: u64) -> Result<()> {
        self.engine.advance_clock(seconds)?;
        Ok(())
    }

    /// Everything else that the engine can do: feeds, forecasts, holds, archives, collections.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Finishes what is under way and lets go of the data.
    pub fn close(mut self) -> Result<()> {
        self.purge.take();
        Ok(self.engine.close()?)
    }
}

impl Drop for Bolide {
    fn drop(&mut self) {
        if self.purge.take().is_some() {
            // Nobody is left who could be told; what was acknowledged is durable all the same.
            let _ = self.engine.close();
        }
    }
}

/// What was made, or what was there already.
fn made<T>(made: engine::Result<T>, there: impl FnOnce() -> engine::Result<T>) -> Result<T> {
    match made {
        Err(engine::Error::Exists { .. }) => Ok(there()?),
        other => Ok(other?),
    }
}

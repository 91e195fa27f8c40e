//! Stores to test, their clocks, and short ways to read and write.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use storage::{
    ClockOptions, Direction, Durability, EmbeddedOptions, EmbeddedStore, Error, KeyRange, Keyspace, Lanes,
    ManualClock, MemoryDisk, MemoryStore, Read, Result, Store, TestClock, Time, Transaction, transact,
};
use tempfile::TempDir;

/// When the tests' wall clocks start, in seconds.
pub(crate) const START: u64 = 1_800_000_000;

/// A store that can be closed and opened again, and its clock.
pub(crate) struct Bench {
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) options: ClockOptions,
    pub(crate) durability: Durability,
    place: Medium,
    store: Option<Arc<dyn Store>>,
}

enum Medium {
    Memory(MemoryDisk),
    Embedded(TempDir),
}

impl Bench {
    pub(crate) fn memory() -> Self {
        Self::new(Medium::Memory(MemoryDisk::new()))
    }

    pub(crate) fn embedded() -> Self {
        Self::new(Medium::Embedded(tempfile::tempdir().unwrap()))
    }

    /// One of each kind.
    pub(crate) fn both() -> [Self; 2] {
        [Self::memory(), Self::embedded()]
    }

    fn new(place: Medium) -> Self {
        let clock = Arc::new(ManualClock::new(Time::from_seconds(START)));
        let mut options = ClockOptions::new(clock.clone());
        options.test_clock = TestClock::Runs;
        let mut bench = Self { clock, options, durability: Durability::Buffered, place, store: None };
        bench.open().unwrap();
        bench
    }

    pub(crate) fn store(&self) -> &dyn Store {
        self.store.as_deref().expect("the store is open")
    }

    pub(crate) fn disk(&self) -> &MemoryDisk {
        match &self.place {
            Medium::Memory(disk) => disk,
            Medium::Embedded(_) => panic!("not a memory store"),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        match &self.place {
            Medium::Memory(_) => panic!("not an embedded store"),
            Medium::Embedded(directory) => directory.path(),
        }
    }

    /// Opens the store with the current options.
    pub(crate) fn open(&mut self) -> Result<()> {
        assert!(self.store.is_none(), "the store is closed");
        self.store = Some(match &self.place {
            Medium::Memory(disk) => Arc::new(MemoryStore::open(disk.clone(), self.options.clone())?),
            Medium::Embedded(directory) => {
                Arc::new(EmbeddedStore::open(self.embedded_options(directory.path()))?)
            }
        });
        Ok(())
    }

    fn embedded_options(&self, path: &Path) -> EmbeddedOptions {
        let mut options = EmbeddedOptions::new(path, self.options.clone());
        options.durability = self.durability;
        options
    }

    /// Closes the store cleanly.
    pub(crate) fn close(&mut self) {
        self.store.take().expect("the store is open").close().unwrap();
    }

    pub(crate) fn reopen(&mut self) {
        self.close();
        self.open().unwrap();
    }

    /// Drops the store without closing it, as a crash would. Memory only: an embedded store closes when dropped.
    pub(crate) fn crash(&mut self) {
        assert!(matches!(self.place, Medium::Memory(_)));
        self.store = None;
    }

    /// Drops a store whose writes have stopped, without closing it cleanly.
    pub(crate) fn abandon(&mut self) {
        assert!(self.store().stats().poisoned);
        self.store = None;
    }

    pub(crate) fn pass(&self, duration: Duration) {
        self.clock.advance(duration);
    }
}

/// Runs a transaction and waits for it.
pub(crate) fn run<R: Send + 'static>(
    store: &dyn Store,
    job: impl FnOnce(&mut Transaction<'_>) -> Result<R, Error> + Send + 'static,
) -> Result<R, Error> {
    transact(store, Lanes::all(), job).wait()
}

pub(crate) fn put(store: &dyn Store, key: &str, value: &str) -> Result<()> {
    let (key, value) = (key.to_owned(), value.to_owned());
    run(store, move |transaction| {
        transaction.put(Keyspace::Item, key, value);
        Ok(())
    })
}

pub(crate) fn get(store: &dyn Store, key: &str) -> Option<String> {
    let value = store.snapshot().unwrap().get(Keyspace::Item, key.as_bytes()).unwrap();
    value.map(|value| String::from_utf8(value.to_vec()).unwrap())
}

/// Returns a range of a keyspace as text, for comparing.
pub(crate) fn list(
    read: &dyn Read,
    keyspace: Keyspace,
    range: KeyRange,
    direction: Direction,
) -> Vec<String> {
    read.scan(keyspace, range, direction)
        .map(|entry| {
            let (key, value) = entry.unwrap();
            format!("{key:?}={value:?}")
        })
        .collect()
}

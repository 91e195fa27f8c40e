//! Databases, containers, items and their exact expiry: the only API that the front ends call.
//!
//! Plain data in, plain data out: the engine has no HTTP and no wire codes, and no clock or disk of its own;
//! those come in through [`storage::Store`].
//!
//! A write: [`Engine::write`] checks and prepares on the caller's thread (`write`). The store runs the rest as a
//! transaction, in which the [`gate`](access::gate) decides which items are living, and the item's whole
//! [`footprint`](index::footprint) is written in one commit. A read: the engine opens a view (snapshot, policy, now),
//! and every item that leaves the view has passed the gate. Whether an item has expired is decided in [`expiry`], by
//! one function.
//!
//! [`Engine::purge_step`] removes expired items. It is a bounded piece of work that returns when it is next due; the
//! loop around it is in the server.

mod access;
mod catalog;
pub mod collection;
pub mod definition;
mod entries;
mod evidence;
mod expiry;
mod feed;
mod index;
mod keys;
mod maintenance;
mod query;
mod schema;
#[cfg(test)]
mod tests;
mod types;
mod write;

/// The files that tests here share with `tests/it` call this crate by its name.
#[cfg(test)]
extern crate self as engine;

use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use storage::{Store, Time};

pub use access::browse::{BrowsePosition, Browsed, BrowsedBody, BrowsedItem};
pub use access::continuation::{decode_token, encode_token};
pub use access::export::{ExportPage, Exported};
pub use access::gate::Usage;
pub use access::outcome::{Effect, Outcome};
pub use access::renewal::{PendingRenewal, SlidingRenewal};
pub use catalog::budget::{Budget, Burst, Enforcement, PendingCharge};
pub use catalog::container::{Api, Container, Database, Partition};
pub use catalog::owner::{DateRuleView, Owner};
pub use catalog::resources::{Resource, ResourceParent};
pub use collection::{Collection, CollectionDefinition};
pub use definition::patch;
pub use definition::patch::Patch;
pub use definition::{ContainerDefinition, DefaultTtl};
pub use entries::counters::{Count, Tally};
pub use evidence::archive::{
    Archive, ArchiveError, ArchiveFailure, ArchiveStatus, ArchiveSums, MemoryArchive, PurgeNews,
};
pub use evidence::deletions::{DeletionGap, DeletionLog, DeletionPage, Tampering, Verifier};
pub use expiry::item::{Item, SYSTEM_PROPERTIES, SystemMembers};
pub use expiry::{ArchiveDirectory, Countdown, Lifecycle};
pub use feed::changes::{Changes, FeedStart};
pub use feed::history::{Barrier, Event, EventKind, History, HistoryFrom, HistoryPage, HistoryStart, Manner};
pub use feed::watch::{Watch, WatchEvent, WatchPage, Watched};
pub use keys::{PartitionId, Position};
pub use maintenance::check;
pub use maintenance::forecast::{DryRun, Forecast, Interval};
pub use maintenance::hold::HeldItem;
pub use maintenance::purge::{
    Backlog, ConcurrentUse, DiskCopy, Observation, Pace, PaceStatus, PurgeFigures, PurgeReport, PurgeStatus,
    RetentionReport, RetentionStatus, Slice,
};
pub use query::find;
pub use query::request::{CancelOnDrop, FullPage, QueryPage, QueryRequest, ResumeFilter};
pub use schema::guard::Consent;
pub use storage::{ClockStatus, Leap, Scrubbed, Stats, TestClock, WriterLoad};
pub use types::charge::Charge;
pub use types::error::{Error, Result};
pub use types::index_report::IndexReport;
pub use types::item_address::ItemAddress;
pub use types::limits;
pub use types::lsn::RangeLsn;
pub use types::request::{IndexUse, ItemName, Precondition, QueryMetrics, Scope};
pub use types::throughput::{Offer, PerformanceLevel, Throughput};
pub use write::check_batch_size;
pub use write::delete_partition::Emptied;
pub use write::operation::{BatchError, Operation};

/// An open database system. Cheap to share behind an `Arc`; every method takes `&self`.
pub struct Engine {
    store: Arc<dyn Store>,
    catalog: RwLock<Arc<catalog::Catalog>>,
    /// Held while the catalog is changed.
    changes: Mutex<()>,
    alarm: Arc<types::alarm::Alarm>,
    purge: maintenance::purge::PurgeState,
    /// The turns of index builds of containers.
    index_turn: catalog::turn::Turn,
    /// The turns of index builds of collections.
    collection_turn: catalog::turn::Turn,
    claims: Arc<collection::Claims>,
    news: evidence::archive::PurgeNewsQueue,
    options: Options,
}

/// How an engine behaves.
#[derive(Clone)]
pub struct Options {
    /// The fewest physical partitions that a new container gets; its throughput may require more.
    pub partitions: u32,
    /// Whether requests beyond the provisioned throughput are refused.
    pub enforcement: Enforcement,
    /// Where expired items of containers with an archive are written (T32). Without it no container may name an
    /// archive.
    pub archive: Option<Arc<dyn Archive>>,
    /// Bytes that a page of a query may keep in memory: rows being sorted, groups, distinct rows.
    pub query_memory_bytes: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            partitions: 1,
            enforcement: Enforcement::Off,
            archive: None,
            query_memory_bytes: ::query::DEFAULT_MEMORY,
        }
    }
}

impl Engine {
    /// Opens the engine over a store.
    pub fn open(store: Arc<dyn Store>) -> Result<Engine> {
        Engine::open_with(store, Options::default())
    }

    /// Opens the engine over a store, with options.
    pub fn open_with(store: Arc<dyn Store>, options: Options) -> Result<Engine> {
        let catalog = catalog::Catalog::load(&*store.snapshot()?)?;
        let engine = Engine {
            store,
            catalog: RwLock::new(Arc::new(catalog)),
            changes: Mutex::new(()),
            alarm: Arc::default(),
            purge: maintenance::purge::PurgeState::default(),
            index_turn: catalog::turn::Turn::default(),
            collection_turn: catalog::turn::Turn::default(),
            claims: Arc::default(),
            news: evidence::archive::PurgeNewsQueue::default(),
            options,
        };
        engine.adopt_unindexed()?;
        engine.adopt_uncounted()?;
        Ok(engine)
    }

    /// Returns the store's time.
    pub fn now(&self) -> Result<Time> {
        Ok(self.store.now()?)
    }

    /// Returns the number of the last commit that changed something, in any database.
    pub fn last_sequence(&self) -> u64 {
        self.store.last_sequence()
    }

    /// Returns the time, and whether it can be trusted (T34).
    pub fn clock_status(&self) -> Result<ClockStatus> {
        let status = self.store.clock_status()?;
        self.alarm.clock_is_suspect(status.suspect.is_some());
        Ok(status)
    }

    /// Returns whether the clock was suspect at the last [`clock_status`](Self::clock_status). Does not use the
    /// store.
    pub fn was_clock_suspect(&self) -> bool {
        self.alarm.was_clock_suspect()
    }

    /// Moves the test clock forward (T29). Refused unless the store was opened with one.
    pub fn advance_clock(&self, seconds: u64) -> Result<Time> {
        let now = self.store.advance_clock(seconds).map_err(|error| match error {
            storage::Error::TestClockOff | storage::Error::TimeOutOfRange => {
                Error::invalid(error.to_string())
            }
            other => other.into(),
        })?;
        self.alarm.ring();
        Ok(now)
    }

    /// Accepts a suspect time as true, on behalf of an operator.
    pub fn accept_clock(&self) -> Result<ClockStatus> {
        let status = self.store.accept_clock()?;
        self.alarm.ring();
        Ok(status)
    }

    /// Rejects a suspect time, on behalf of an operator.
    pub fn reject_clock(&self) -> Result<ClockStatus> {
        let status = self.store.reject_clock()?;
        self.alarm.ring();
        Ok(status)
    }

    /// Returns a backup of the whole store as it is now. The store cannot reclaim the backup's space while the value
    /// exists.
    pub fn backup(&self) -> Result<storage::Backup> {
        Ok(self.store.backup()?)
    }

    /// Returns the store's statistics.
    pub fn storage_stats(&self) -> storage::Stats {
        self.store.stats()
    }

    /// Returns how many times the store was used since it was opened. Background work that yields to users reads it
    /// often.
    pub fn operations(&self) -> u64 {
        self.store.operations()
    }

    /// Returns how busy the store's writer is.
    pub fn writer_load(&self) -> WriterLoad {
        self.store.writer_load()
    }

    /// Makes everything durable and closes the store.
    pub fn close(&self) -> Result<()> {
        Ok(self.store.close()?)
    }
}

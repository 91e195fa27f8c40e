//! Databases, containers and items that know when to die: the only API that the front ends call.
//!
//! Plain data in, plain data out; no HTTP, no wire codes, no clock and no disk of its own: those come in through
//! [`storage::Store`]. The life of a write: [`Engine::write`] checks and prepares on the caller's thread (`write`), the store
//! runs the rest as a transaction, in which the [`gate`] decides who is alive, and the item's whole [`footprint`] is
//! written in one commit. The life of a read: a view is opened (snapshot, policy, now), and whatever leaves it has passed the
//! gate. Whether an item is dead is decided in [`expiry`], by one function.
//!
//! What the dead leave behind is removed by [`Engine::purge_step`], a bounded piece of work that says when it next wants to
//! run; the loop around it is not here.

mod alarm;
mod archive;
#[cfg(test)]
mod below;
mod browse;
mod budget;
mod burial;
mod catalog;
mod changes;
mod charge;
pub mod check;
mod clearing;
pub mod collection;
mod container;
mod continuation;
mod counters;
#[cfg(test)]
mod countings;
#[cfg(test)]
mod date_rules;
pub mod definition;
mod delete_partition;
mod deletions;
mod error;
mod events;
mod expiry;
mod export;
mod footprint;
mod forecast;
mod gate;
mod guard;
mod header;
mod history;
mod hold;
mod holder;
mod index;
mod item;
mod keys;
pub mod limits;
mod lsn;
mod obituary;
mod operation;
#[cfg(test)]
mod order_of_a_view;
mod outlook;
pub mod patch;
mod purge;
mod query;
mod read;
mod reset;
mod resources;
#[cfg(test)]
mod several_partitions;
mod standstill;
mod throughput;
mod touch;
mod watch;
mod write;

use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use storage::{Store, Time};

pub use archive::{
    Archive, ArchiveDirectory, ArchiveError, ArchiveFailure, ArchiveStatus, ArchiveSums, MemoryArchive,
    PurgeNews,
};
pub use browse::{BrowsePlace, Browsed, Seen, SeenBody};
pub use budget::{Budget, Burst, Enforcement, Toll};
pub use changes::{Changes, FeedStart};
pub use charge::Charge;
pub use collection::{Collection, CollectionDefinition};
pub use container::{Api, Container, Database, Partition};
pub use continuation::{decode_token, encode_token};
pub use counters::{Count, Tally};
pub use definition::{ContainerDefinition, DefaultTtl};
pub use delete_partition::Emptied;
pub use deletions::{DeletionGap, DeletionLog, DeletionPage, Tampering, Verifier};
pub use error::{Error, Result};
pub use expiry::{Countdown, Lifecycle};
pub use export::{ExportPage, Exported};
pub use forecast::{DryRun, Forecast, Interval};
pub use gate::Usage;
pub use guard::Consent;
pub use history::{
    Barrier, Event, EventKind, History, HistoryFrom, HistoryPage, HistoryStart, Manner, Position,
};
pub use hold::{HeldItem, ItemAddress};
pub use holder::{DateRuleView, Holder};
pub use index::IndexReport;
pub use item::{Item, SYSTEM_PROPERTIES};
pub use keys::PartitionId;
pub use lsn::RangeLsn;
pub use operation::{
    BatchError, Effect, IndexUse, ItemName, Operation, Outcome, Precondition, QueryMetrics, QueryPage,
    QueryRequest, ResumeFilter, Scope,
};
pub use patch::Patch;
pub use purge::{
    Backlog, DiskCopy, Neighbours, Observation, Pace, PaceStatus, PurgeFigures, PurgeReport, PurgeStatus,
    RetentionReport, RetentionStatus, Slice,
};
pub use resources::{Owner, Resource};
pub use storage::{ClockStatus, Leap, Scrubbed, Stats, TestClock, WriterLoad};
pub use throughput::{Offer, Throughput};
pub use touch::{Touch, Touched};
pub use watch::{Watch, WatchEvent, WatchPage, Watched};
pub use write::check_batch_size;

/// An open database system. Cheap to share behind an `Arc`; every method takes `&self`.
pub struct Engine {
    store: Arc<dyn Store>,
    catalog: RwLock<Arc<catalog::Catalog>>,
    /// Held by whoever changes the catalog.
    changes: Mutex<()>,
    alarm: Arc<alarm::Alarm>,
    purge: purge::PurgeState,
    index_turn: index::IndexTurn,
    /// The collection whose indexes were worked on last.
    collection_turn: Mutex<Option<PartitionId>>,
    claims: Arc<collection::Claims>,
    news: archive::NewsDesk,
    options: Options,
}

/// How an engine behaves.
#[derive(Clone)]
pub struct Options {
    /// The fewest physical partitions that a new container gets; its throughput may ask for more.
    pub partitions: u32,
    /// Whether requests beyond the provisioned throughput are refused.
    pub enforcement: Enforcement,
    /// Where dead items are written in containers that name an archive (T32); without it none may.
    pub archive: Option<Arc<dyn Archive>>,
    /// Bytes that a page of a query may keep in memory: rows that are sorted, groups, distinct rows.
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

    /// Opens the engine over a store, with other options than the default.
    pub fn open_with(store: Arc<dyn Store>, options: Options) -> Result<Engine> {
        let catalog = catalog::Catalog::load(&*store.snapshot()?)?;
        let engine = Engine {
            store,
            catalog: RwLock::new(Arc::new(catalog)),
            changes: Mutex::new(()),
            alarm: Arc::default(),
            purge: purge::PurgeState::default(),
            index_turn: index::IndexTurn::default(),
            collection_turn: Mutex::default(),
            claims: Arc::default(),
            news: archive::NewsDesk::default(),
            options,
        };
        engine.adopt_unindexed()?;
        engine.adopt_uncounted()?;
        Ok(engine)
    }

    /// The store's time.
    pub fn now(&self) -> Result<Time> {
        Ok(self.store.now()?)
    }

    /// The number of the last commit that changed something, in any database.
    pub fn last_sequence(&self) -> u64 {
        self.store.last_sequence()
    }

    /// Time, and whether it can be trusted (T34).
    pub fn clock_status(&self) -> Result<ClockStatus> {
        let status = self.store.clock_status()?;
        self.alarm.clock_is_suspect(status.suspect.is_some());
        Ok(status)
    }

    /// Whether the clock was suspect at the last [`clock_status`](Self::clock_status). Costs nothing.
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

    /// An operator takes a suspect time for true.
    pub fn accept_clock(&self) -> Result<ClockStatus> {
        let status = self.store.accept_clock()?;
        self.alarm.ring();
        Ok(status)
    }

    /// An operator takes a suspect time for wrong.
    pub fn reject_clock(&self) -> Result<ClockStatus> {
        let status = self.store.reject_clock()?;
        self.alarm.ring();
        Ok(status)
    }

    /// The whole store as it is now, to be kept elsewhere. It holds space back while it lives.
    pub fn backup(&self) -> Result<storage::Backup> {
        Ok(self.store.backup()?)
    }

    /// Figures of the store.
    pub fn storage_stats(&self) -> storage::Stats {
        self.store.stats()
    }

    /// How many times the store was used since it was opened: who makes way for users looks at it often.
    pub fn operations(&self) -> u64 {
        self.store.operations()
    }

    /// How busy the store's writer is.
    pub fn writer_load(&self) -> WriterLoad {
        self.store.writer_load()
    }

    /// Makes everything durable and lets go of the store.
    pub fn close(&self) -> Result<()> {
        Ok(self.store.close()?)
    }
}

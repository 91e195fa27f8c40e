//! Ordered bytes with atomic, durable commits, consistent snapshots and a guarded clock.
//!
//! This crate handles keys and values, not documents; the engine defines what the bytes mean. The interface is [`Store`]:
//! [`Store::snapshot`] to read, [`transact`] to write, [`Store::now`] for the time. It has two implementations,
//! [`MemoryStore`] and [`EmbeddedStore`], and one test suite that compares them step by step.
//!
//! A transaction is a function that runs while no other one writes: it sees the current state, the time and the next
//! sequence, so there is no gap between check and commit and nothing to retry. Its [`Ticket`] resolves once the outcome
//! is durable.

mod backup;
mod clock;
mod embedded;
mod error;
mod free_space;
mod job;
mod keyspace;
mod lanes;
mod load;
mod memory;
mod overlay;
mod read;
mod record;
mod scratch;
mod store;
mod sync;
mod ticket;
mod time;
mod transact;
mod transaction;
mod watermark;
mod writer;

pub use backup::{Backup, BackupInfo, BackupReader, Contents};
pub use clock::{
    BootId, ClockOffset, ClockOptions, ClockStatus, Leap, ManualClock, RealClock, Suspicion, TestClock,
    WallClock,
};
pub use embedded::{EmbeddedOptions, EmbeddedStore, Recovery, ScrubProgress};
pub use error::{Error, Result};
pub use free_space::FreeSpace;
pub use job::{Durability, Job, Priority, Verdict};
pub use keyspace::{Direction, KeyRange, Keyspace};
pub use lanes::Lanes;
pub use load::WriterLoad;
pub use memory::{CrashMode, MemoryDisk, MemoryStore};
pub use read::{Read, Scan, Snapshot};
pub use record::FORMAT;
pub use scratch::Scratch;
pub use store::{DeferredWork, Scrubbed, Stats, Store};
pub use ticket::Ticket;
pub use time::Time;
pub use transact::{transact, transact_in_background, transact_noting, transact_with};
pub use transaction::{MAX_KEY_BYTES, MAX_VALUE_BYTES, Transaction};
pub use watermark::{SLOT_BITS, WATERMARK, watermark};

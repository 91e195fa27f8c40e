//! Archive before purge (T32): in containers that name an archive, each expired item is written there as a line of
//! JSON before its bytes are dropped. A duplicate line is allowed, a missing one is not, and no living item ever gets
//! a line.
//!
//! ```text
//!   queues      expired expired expired | living …     unarchived   expired items that writes have moved aside
//!                 |                                      |
//!                 +--- batch: read in a view ------------+
//!                 |
//!               append + sync, outside of every transaction: a slow disk delays only the purge
//!                 |
//!               sweeps remove exactly the items of the batch, each in a transaction (`purge`)
//! ```
//!
//! The [`Archive`] is an interface to the world, given to [`Engine::open_with`](crate::Engine::open_with); it writes
//! the files, and this module has no path. A transaction writes no file either: a write that claims the id or a unique
//! value of an expired item moves it aside, to `unarchived`, and the purge archives and removes it from there first.
//!
//! A batch is kept in memory until its items are removed. After a crash the batch is unknown, and items that were not
//! removed get another line. If the archive cannot be written, the purge of that container waits, longer after each
//! failure, and reports it; other containers are not affected. Items are judged by trusted time and behind a barrier
//! as in `history::read`: an item that has expired then cannot be kept from expiring by a write that began before.

mod batch;
mod memory;
mod settle;
mod status;
pub(crate) mod unarchived;

use storage::Time;

use crate::expiry::ArchiveDirectory;

pub(crate) use batch::Removable;
pub use memory::MemoryArchive;
pub(crate) use settle::check_drop;
pub(crate) use status::PurgeNewsQueue;
pub use status::{ArchiveStatus, ArchiveSums, PurgeNews};

pub(crate) use crate::catalog::archive_state::Batch;
pub use crate::catalog::archive_state::{ArchiveError, ArchiveFailure};

/// Where lines are written. The directory that a container names is below a root that only the implementation knows.
pub trait Archive: Send + Sync {
    /// Appends whole lines, each with its line end, and makes them durable before it returns. `at` is the store's
    /// time. After an error any part of the lines may have been written; they will be appended again.
    fn append(&self, directory: &ArchiveDirectory, at: Time, lines: &[u8]) -> Result<(), ArchiveError>;
}

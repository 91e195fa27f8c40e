//! Archive before purge (T32): in containers that name an archive, each dead item is written there as a line of JSON before
//! its bytes are dropped. A duplicate line is allowed, a missing one is not, and no living item ever gets one.
//!
//! ```text
//!   queues      dead dead dead | living …            unarchived   dead items that writes found in their way
//!                 |                                      |
//!                 +--- batch: read in a view ------------+
//!                 |
//!               append + sync, outside of every transaction: a slow disk stops nobody but the purge
//!                 |
//!               sweeps remove exactly what the batch has, each in a transaction (`purge`)
//! ```
//!
//! Files are written by whoever was given at [`Engine::open_with`](crate::Engine::open_with): the [`Archive`] is a door to the
//! world, and nothing here knows a path. A transaction writes no file either: a write that finds a dead item in its way
//! moves it aside, to `unarchived`, and the purge archives and drops it from there first.
//!
//! A batch is kept in memory until its items are gone. After a crash it is unknown, and what was not removed gets another line.
//! If the archive cannot be written, the purge of that container waits, longer after each failure, and says so; the others go
//! on. Lines are judged by trusted time and behind a barrier as in `history::read`: who is dead then cannot be saved by a
//! write that began before.

mod batch;
mod memory;
mod settle;
mod state;
pub(crate) mod unarchived;

use storage::Time;

pub(crate) use batch::Leave;
pub use memory::MemoryArchive;
pub(crate) use settle::check_drop;
pub use state::{ArchiveFailure, ArchiveStatus, ArchiveSums, PurgeNews};
pub(crate) use state::{ArchiveState, Batch, NewsDesk};

/// Where lines go. The directory that a container names lies below a root that only the door knows.
pub trait Archive: Send + Sync {
    /// Appends whole lines, each with its end, and makes them durable before it returns. `at` is the time of the store. After
    /// an error any part of them may be there; they will come again.
    fn append(&self, directory: &ArchiveDirectory, at: Time, lines: &[u8]) -> Result<(), ArchiveError>;
}

/// Why lines could not be made durable: words for the operator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ArchiveError(pub String);

/// The name of a directory below the archive's root. No name leads anywhere else: letters, digits, `-`, `_` and dots, of
/// which none is the first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArchiveDirectory(String);

impl ArchiveDirectory {
    /// The longest name.
    pub const BYTES_MAX: usize = 100;

    /// Checks a name; none if it is not acceptable.
    pub fn parse(name: &str) -> Option<ArchiveDirectory> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let is_acceptable = (1..=Self::BYTES_MAX).contains(&name.len())
            && name.bytes().all(is_plain)
            && !name.starts_with('.');
        is_acceptable.then(|| ArchiveDirectory(name.to_owned()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t32_a_name_leads_nowhere_else() {
        for good in ["a", "cold-2026_v1.2", "A..b", &"x".repeat(100)] {
            assert_eq!(ArchiveDirectory::parse(good).map(|name| name.0), Some(good.to_owned()));
        }
        for bad in [
            "",
            ".",
            "..",
            ".hidden",
            "a/b",
            "../a",
            "/a",
            "a\\b",
            "a b",
            "ä",
            "a\0",
            "a\n",
            &"x".repeat(101),
        ] {
            assert_eq!(ArchiveDirectory::parse(bad), None, "{bad:?}");
        }
    }
}

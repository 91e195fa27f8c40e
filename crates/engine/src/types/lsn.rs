//! LSNs as clients see them: a count of the commits of one range.
//!
//! Clients compute how far a reader of the change feed lags behind as a difference of LSNs, so the LSN of a range
//! counts the commits that wrote or deleted items in it, and nothing else. A transactional batch is one commit; the
//! purge, an expiry, a sliding renewal, a hold and an index build are none. The store's sequence, which runs over all
//! containers, remains the basis of etags, item numbers, feeds, cutoffs and tokens (decision 0027).
//!
//! ```text
//!   sequence of the store   41   42   43   44   45   46          commits of all containers
//!   LSN of range 0          41   42   .    .    43   .           created at 41; then its own commits
//!   LSN of range 1          41   .    42   43   .    44
//! ```
//!
//! A partition begins at the sequence of its creation, and one of an older store at the last sequence of that store.
//! So an LSN is never above the sequence of its commit, and no number that a client has kept is ahead of the
//! partition, not even after its container was dropped and created again under the same name. A header stores the
//! difference to the commit number, which is small. Collections of the MongoDB API have no LSNs: there the difference
//! is always 0, and takes no byte.
//!
//! The count is stored in the partition's total. A copy in memory saves readers that lookup: it is raised when a
//! commit is durable and before it is acknowledged, so it is neither ahead of what recovery would find nor behind
//! what a client was shown.

use std::sync::atomic::{AtomicU64, Ordering};

use document::Sequence;

use super::error::Error;
use super::events;

/// A range of a container with an LSN of it. The two belong together: LSNs of different ranges are not comparable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RangeLsn {
    /// The position of the range in its container.
    pub range: usize,
    /// How many of its commits a client has seen, from its beginning on.
    pub lsn: u64,
}

/// The highest LSN of a partition that is durable or was shown.
#[derive(Debug, Default)]
pub(crate) struct KnownLsn(AtomicU64);

impl KnownLsn {
    /// Returns the LSN; 0 if it is not known yet.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// Raises it to at least this one.
    pub(crate) fn raise(&self, lsn: u64) {
        self.0.fetch_max(lsn, Ordering::AcqRel);
    }
}

/// The numbers of one write of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WriteNumber {
    /// Its position among all events of the store.
    pub(crate) sequence: Sequence,
    /// The LSN of its commit; in a collection, which has none, the number of the commit.
    pub(crate) lsn: u64,
}

impl WriteNumber {
    /// Returns the number of a write where LSNs are not counted.
    pub(crate) fn uncounted(sequence: Sequence) -> WriteNumber {
        WriteNumber { sequence, lsn: events::commit_of(sequence) }
    }

    /// Returns how far the LSN is behind the number of the commit, which is what the header stores.
    pub(crate) fn behind(self) -> u64 {
        events::commit_of(self.sequence).saturating_sub(self.lsn)
    }
}

/// Returns the error for an LSN that is ahead of its commit.
pub(crate) fn ahead(lsn: u64, commit: u64) -> Error {
    Error::Corrupt(format!("LSN {lsn} is ahead of commit {commit}"))
}

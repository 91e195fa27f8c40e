//! The status of a partition's archive in memory: the lines written, whether the archive can be written, and what
//! operators see of it.

use parking_lot::Mutex;

use super::unarchived;
use crate::Engine;
use crate::access::gate::View;
use crate::catalog::archive_state::ArchiveFailure;
use crate::catalog::owner::Owner;
use crate::entries::counters::Tally;
use crate::expiry::ArchiveDirectory;
use crate::types::error::Result;

/// The number of unread news that are kept; older ones are dropped.
const NEWS_MAX: usize = 1000;

/// The archive of a container or collection, as an operator sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveStatus {
    /// The directory that lines are written to.
    pub directory: ArchiveDirectory,
    /// Lines written since the engine was opened, and their bytes.
    pub archived: Tally,
    /// Expired items that writes have moved aside and that wait for their line.
    pub aside: Tally,
    /// Why the archive cannot be written; `None` if it can.
    pub failure: Option<ArchiveFailure>,
}

/// The sums over all archives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ArchiveSums {
    /// Lines written since the engine was opened, and their bytes.
    pub archived: Tally,
    /// Attempts that have failed since then.
    pub failures: u64,
    /// Containers and collections whose purge waits for their archive.
    pub waiting: u64,
}

/// An event of the purge that the log should report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PurgeNews {
    /// The purge of a container waits from now on.
    Waits {
        /// `database/container`.
        container: String,
        /// The error.
        error: String,
    },
    /// The purge of a container continues.
    GoesOn {
        /// `database/container`.
        container: String,
    },
    /// An expired item cannot be removed, and the purge continues without it.
    SetAside {
        /// `database/container`.
        container: String,
        /// The number of the item, as `bolide check` names it.
        item: u64,
        /// What is wrong with it.
        reason: String,
    },
}

/// News for the log, until [`Engine::take_purge_news`] is called.
#[derive(Debug, Default)]
pub(crate) struct PurgeNewsQueue(Mutex<Vec<PurgeNews>>);

impl PurgeNewsQueue {
    pub(crate) fn tell(&self, news: PurgeNews) {
        let mut all = self.0.lock();
        if all.len() >= NEWS_MAX {
            all.remove(0);
        }
        all.push(news);
    }
}

impl Engine {
    /// Returns the archive of a container or collection, or `None` if its owner wants none.
    pub fn archive_status(&self, owner: &Owner) -> Result<Option<ArchiveStatus>> {
        let Some(directory) = owner.lifecycle().archive else { return Ok(None) };
        let (archived, aside, failure) = (Tally::default(), Tally::default(), None);
        let mut status = ArchiveStatus { directory, archived, aside, failure };
        for view in View::open_all(&*self.store, owner.partitions())? {
            status.aside = status.aside.plus(unarchived::sum(&*view.snapshot, view.gate.partition)?);
        }
        for partition in owner.partitions() {
            let known = partition.archive.known.lock();
            status.archived = status.archived.plus(known.archived);
            let failures = status.failure.take().into_iter().chain(known.failure.clone());
            status.failure = failures.min_by_key(|failure| failure.since);
        }
        Ok(Some(status))
    }

    /// Returns the figures of all archives.
    pub fn archive_sums(&self) -> ArchiveSums {
        let mut sums = ArchiveSums::default();
        let mut last = None;
        for (owner, partition) in self.catalog().owned_partitions() {
            let known = partition.archive.known.lock();
            sums.archived = sums.archived.plus(known.archived);
            sums.failures += known.failures;
            let first = owner.partitions()[0].id;
            if known.failure.is_some() && last.replace(first) != Some(first) {
                sums.waiting += 1;
            }
        }
        sums
    }

    /// Returns what the log should report of the purge since the last call.
    pub fn take_purge_news(&self) -> Vec<PurgeNews> {
        std::mem::take(&mut *self.news.0.lock())
    }

    /// Retries archives that could not be written with the next step: of one container or collection, or of all.
    pub fn retry_archives(&self, of: Option<&Owner>) -> Result<()> {
        let now = self.store.now()?;
        let catalog = self.catalog();
        let all = catalog.owned_partitions().map(|(_, partition)| partition);
        let chosen = all.filter(|partition| {
            of.is_none_or(|owner| owner.partitions().iter().any(|own| own.id == partition.id))
        });
        for partition in chosen.filter(|partition| partition.archive.hurry(now)) {
            partition.next_due.at_once();
        }
        self.alarm.ring();
        Ok(())
    }
}

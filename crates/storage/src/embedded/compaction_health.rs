//! Failing compactions: how the store continues until the cause is gone.
//!
//! A compaction reads tables and writes new ones beside them; the list of tables changes only at its end. So a
//! compaction that fails, because the disk is full or a file cannot be read, has changed nothing, and is retried with
//! growing pauses. Reads and writes continue meanwhile. New tables pile up in the first level, and at 30 runs fjall
//! would halt the writer indefinitely, so jobs are refused before that until a compaction succeeds.
//!
//! The one exception is a list of tables that reached the disk although fjall was told that it did not: then memory and
//! disk disagree about the contents of the store, and it takes no more writes until it is opened again. The lists are
//! compared after each failure; where the disk cannot be read they are compared again before the next compaction.
//!
//! A flush that fails is another matter: fjall's own worker ends with it and sets a flag that nothing resets
//! (decision 0038).

use super::database::Database;
use super::manifest;
use super::throttle::pause;
use crate::{Error, Result};
use lsm_tree::AbstractTree;
use parking_lot::Mutex;
use std::time::Duration;

/// The first pause after a failure, and the longest; each failure doubles it.
const RETRY_MIN: Duration = Duration::from_millis(250);
const RETRY_MAX: Duration = Duration::from_mins(1);

/// The number of runs in the first level from which jobs are refused while compactions fail. fjall slows writes down at
/// 20.
const RUNS_MAX: usize = 18;

/// How often disk and memory are compared before they count as different: a flush may be changing both.
const READ_ATTEMPTS: usize = 1000;

/// The operation named in the error if the number of a list cannot be read.
const READ_CURRENT: &str = "read the file 'current' of a keyspace";

/// Whether compactions fail.
#[derive(Default)]
pub(super) struct CompactionHealth {
    failure: Mutex<Option<Failure>>,
}

struct Failure {
    error: Error,
    pause: Duration,
}

impl CompactionHealth {
    /// Returns how long to wait before the next attempt; `None` while compactions succeed.
    pub(super) fn pause(&self) -> Option<Duration> {
        self.failure.lock().as_ref().map(|failure| failure.pause)
    }

    /// Returns whether the last compaction failed.
    pub(super) fn fails(&self) -> bool {
        self.failure.lock().is_some()
    }

    pub(super) fn succeeded(&self) {
        if self.failure.lock().take().is_some() {
            log::warn!("compaction works again");
        }
    }

    pub(super) fn failed(&self, error: &Error) {
        let mut failure = self.failure.lock();
        let pause = if let Some(before) = &*failure {
            (before.pause * 2).min(RETRY_MAX)
        } else {
            log::error!("compaction failed and is retried until it succeeds: {error}");
            RETRY_MIN
        };
        *failure = Some(Failure { error: error.clone(), pause });
    }

    /// Returns an error while compactions fail and too many runs wait for them.
    pub(super) fn check(&self, database: &Database) -> Result<()> {
        let failure = self.failure.lock();
        let Some(Failure { error, .. }) = &*failure else { return Ok(()) };
        let runs = database
            .opened_keyspaces()
            .map(|keyspace| keyspace.tree.l0_run_count())
            .max()
            .unwrap_or_default();
        if runs < RUNS_MAX {
            return Ok(());
        }
        let doing = "write while compaction fails; it is retried";
        Err(Error::Io { doing, cause: error.to_string() })
    }
}

/// Whether the lists of tables on disk are those in memory, so that the store can continue after a failed compaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TableLists {
    Agree,
    /// A list on the disk differs from the one in memory.
    Differ,
    /// The current list on the disk could not be read: the lists are compared again before the next compaction.
    Unread(Error),
}

impl TableLists {
    pub(super) fn compare(database: &Database) -> TableLists {
        let mut all = TableLists::Agree;
        for keyspace in database.opened_keyspaces() {
            match TableLists::compare_in(keyspace) {
                TableLists::Agree => {}
                TableLists::Unread(error) => all = TableLists::Unread(error),
                TableLists::Differ => return TableLists::Differ,
            }
        }
        all
    }

    fn compare_in(keyspace: &fjall::Keyspace) -> TableLists {
        for _ in 0..READ_ATTEMPTS {
            match manifest::current(keyspace.path()) {
                Ok(Some(number)) if number == keyspace.tree.current_version().id() => {
                    return TableLists::Agree;
                }
                Ok(Some(_)) => pause(),
                Ok(None) => {
                    return TableLists::Unread(Error::io(READ_CURRENT, &"it is missing or names no list"));
                }
                Err(error) => return TableLists::Unread(error),
            }
        }
        TableLists::Differ
    }
}

#[cfg(test)]
mod tests {
    use super::{CompactionHealth, RETRY_MAX, RETRY_MIN};
    use crate::Error;

    #[test]
    fn pauses_double_up_to_a_minute_and_end_with_a_success() {
        let (compaction_health, error) = (CompactionHealth::default(), Error::io("compact", &"no space"));
        assert_eq!((compaction_health.pause(), compaction_health.fails()), (None, false));
        let mut expected = RETRY_MIN;
        for _ in 0..12 {
            compaction_health.failed(&error);
            assert_eq!(compaction_health.pause(), Some(expected));
            expected = (expected * 2).min(RETRY_MAX);
        }
        assert_eq!(expected, RETRY_MAX);
        compaction_health.succeeded();
        assert_eq!((compaction_health.pause(), compaction_health.fails()), (None, false));
    }
}

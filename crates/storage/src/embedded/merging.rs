//! Merges that fail: what the store does until the cause is gone.
//!
//! A merge reads tables and writes new ones beside them; only at its end does the list of tables change. So a merge that fails,
//! because the disk is full or a file cannot be read, has changed nothing, and is tried again with growing pauses. Reading and
//! writing go on meanwhile. What is written piles up in the first level, and at 30 runs fjall would halt the writer without an
//! end, so jobs are refused before that until a merge succeeds.
//!
//! The one exception is a list of tables that reached the disk although its writer was told that it did not: then memory and disk
//! disagree about what the store is, and it takes no more writes until it is opened again. They are compared after each failure;
//! where the disk cannot be read they are compared again before the next merge.
//!
//! A flush that fails is another matter: fjall's own worker ends with it and sets a flag that nothing resets
//! (decision 0038).

use super::database::Database;
use super::manifest;
use super::pace::pause;
use crate::{Error, Result};
use lsm_tree::AbstractTree;
use parking_lot::Mutex;
use std::time::Duration;

/// How long the first pause after a failure is, and the longest; each failure doubles it.
const RETRY_MIN: Duration = Duration::from_millis(250);
const RETRY_MAX: Duration = Duration::from_mins(1);

/// Runs in the first level from which on jobs are refused while merges fail. fjall slows writes down at 20.
const RUNS_MAX: usize = 18;

/// How often disk and memory are compared before they are taken to differ: a flush may be changing both.
const LOOKS: usize = 1000;

/// What cannot be done where no number of a list can be read.
const READING: &str = "read the file 'current' of a keyspace";

/// Whether merges fail.
#[derive(Default)]
pub(super) struct Merging {
    failure: Mutex<Option<Failure>>,
}

struct Failure {
    error: Error,
    pause: Duration,
}

impl Merging {
    /// How long to wait before the next try; none while merges succeed.
    pub(super) fn pause(&self) -> Option<Duration> {
        self.failure.lock().as_ref().map(|failure| failure.pause)
    }

    /// Whether the last merge failed.
    pub(super) fn fails(&self) -> bool {
        self.failure.lock().is_some()
    }

    pub(super) fn succeeded(&self) {
        if self.failure.lock().take().is_some() {
            log::warn!("tables are merged again");
        }
    }

    pub(super) fn failed(&self, error: &Error) {
        let mut failure = self.failure.lock();
        let pause = if let Some(before) = &*failure {
            (before.pause * 2).min(RETRY_MAX)
        } else {
            log::error!("tables cannot be merged, which is tried again until it succeeds: {error}");
            RETRY_MIN
        };
        *failure = Some(Failure { error: error.clone(), pause });
    }

    /// An error while merges fail and too much waits for them.
    pub(super) fn check(&self, database: &Database) -> Result<()> {
        let failure = self.failure.lock();
        let Some(Failure { error, .. }) = &*failure else { return Ok(()) };
        let runs = database.made().map(|keyspace| keyspace.tree.l0_run_count()).max().unwrap_or_default();
        if runs < RUNS_MAX {
            return Ok(());
        }
        let doing = "write before tables are merged, which fails and is tried again";
        Err(Error::Io { doing, cause: error.to_string() })
    }
}

/// What is known of the lists of tables: whether those on the disk are those in memory, so that the store can go on after a
/// merge that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Lists {
    Agree,
    /// A list on the disk is another one than in memory.
    Differ,
    /// Which list counts on the disk could not be read, which says nothing of it: they are compared again before the next merge.
    Unread(Error),
}

impl Lists {
    pub(super) fn compare(database: &Database) -> Lists {
        let mut all = Lists::Agree;
        for keyspace in database.made() {
            match Lists::compare_in(keyspace) {
                Lists::Agree => {}
                Lists::Unread(error) => all = Lists::Unread(error),
                Lists::Differ => return Lists::Differ,
            }
        }
        all
    }

    fn compare_in(keyspace: &fjall::Keyspace) -> Lists {
        for _ in 0..LOOKS {
            match manifest::current(keyspace.path()) {
                Ok(Some(number)) if number == keyspace.tree.current_version().id() => return Lists::Agree,
                Ok(Some(_)) => pause(),
                Ok(None) => return Lists::Unread(Error::io(READING, &"it is missing or names no list")),
                Err(error) => return Lists::Unread(error),
            }
        }
        Lists::Differ
    }
}

#[cfg(test)]
mod tests {
    use super::{Merging, RETRY_MAX, RETRY_MIN};
    use crate::Error;

    #[test]
    fn pauses_double_up_to_a_minute_and_end_with_a_success() {
        let (merging, error) = (Merging::default(), Error::io("compact", &"no space"));
        assert_eq!((merging.pause(), merging.fails()), (None, false));
        let mut expected = RETRY_MIN;
        for _ in 0..12 {
            merging.failed(&error);
            assert_eq!(merging.pause(), Some(expected));
            expected = (expected * 2).min(RETRY_MAX);
        }
        assert_eq!(expected, RETRY_MAX);
        merging.succeeded();
        assert_eq!((merging.pause(), merging.fails()), (None, false));
    }
}

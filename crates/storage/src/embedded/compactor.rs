//! Work on tables and memtables that nobody should have to wait for, on a thread of its own.
//!
//! Left to itself fjall hurts whoever uses the store, in three ways:
//!
//! - *Compaction.* Of two workers one spins, at the price of a whole core, for as long as the other compacts; and a single
//!   worker does not flush while it compacts, so that writers end up waiting for it. So fjall is told of levels so large that
//!   its workers find nothing to do ([`left_alone`]), its only worker flushes, and this thread asks for compactions.
//! - *Large tables.* A table is synced in one go, the last one of a compaction under the lock that every reader of the
//!   keyspace takes, and a commit's own sync waits its turn behind it. So tables have a few megabytes ([`TABLE_BYTES`]), not
//!   64, which take a disk some 200 ms.
//! - *Memtables.* When a flushed memtable is forgotten, it is freed under the same lock: some hundred thousand entries, for
//!   a tenth of a second. So the writer holds on to every memtable it has seen ([`Memtables`]), and when nobody else does
//!   any more, this thread frees it, under no lock.

use super::database::{Database, cannot};
use crate::writer::Shared;
use crate::{Error, Result};
use fjall::compaction::Leveled;
use lsm_tree::{AbstractTree, Memtable};
use parking_lot::{Condvar, Mutex};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// What is synced at once.
pub(super) const TABLE_BYTES: u64 = 8 << 20;
/// So many tables of the first level are merged into the next one.
const FIRST_LEVEL_TABLES: u8 = 4;
/// Larger than anything there will be.
const ENDLESS_BYTES: u64 = 1 << 50;
/// How long flushes may come together after a commit.
const PAUSE: Duration = Duration::from_millis(100);

/// Levels in which fjall's own worker finds nothing to compact.
pub(super) fn left_alone() -> Arc<Leveled> {
    Arc::new(Leveled::default().with_l0_threshold(u8::MAX).with_table_target_size(ENDLESS_BYTES))
}

/// Levels as they should be.
fn levels() -> Arc<Leveled> {
    Arc::new(Leveled::default().with_l0_threshold(FIRST_LEVEL_TABLES).with_table_target_size(TABLE_BYTES))
}

/// The thread.
pub(super) struct Compactor {
    bell: Arc<Bell>,
    thread: JoinHandle<()>,
}

/// What the thread is told.
#[derive(Default)]
pub(super) struct Bell {
    state: Mutex<State>,
    rung: Condvar,
}

#[derive(Default)]
struct State {
    committed: bool,
    closing: bool,
    /// Memtables that only this list has.
    retired: Vec<Arc<Memtable>>,
}

impl Bell {
    /// Something was committed, and nobody else has these memtables any more.
    fn ring(&self, retired: impl Iterator<Item = Arc<Memtable>>) {
        let mut state = self.state.lock();
        state.retired.extend(retired);
        if !state.committed {
            state.committed = true;
            self.rung.notify_one();
        }
    }

    /// Waits until something was committed, and a little longer. False once the store is being closed.
    fn wait(&self) -> bool {
        let mut state = self.state.lock();
        while !state.committed && !state.closing {
            self.rung.wait(&mut state);
        }
        if !state.closing {
            self.rung.wait_for(&mut state, PAUSE);
        }
        state.committed = false;
        !state.closing
    }

    fn is_closing(&self) -> bool {
        self.state.lock().closing
    }

    /// Frees what waits for it.
    pub(super) fn free_memtables(&self) {
        let retired = std::mem::take(&mut self.state.lock().retired);
        drop(retired);
    }
}

/// The memtables that the writer holds on to.
pub(super) struct Memtables {
    held: Vec<Arc<Memtable>>,
    bell: Arc<Bell>,
}

impl Memtables {
    pub(super) fn new(bell: Arc<Bell>) -> Self {
        Self { held: Vec::new(), bell }
    }

    /// Something was committed: takes hold of new memtables, and hands over those that nobody else has any more.
    pub(super) fn committed(&mut self, database: &Database) {
        for keyspace in database.made() {
            let active = keyspace.tree.active_memtable();
            if !self.held.iter().any(|held| Arc::ptr_eq(held, &active)) {
                self.held.push(active);
            }
        }
        self.bell.ring(self.held.extract_if(.., |memtable| Arc::strong_count(memtable) == 1));
    }
}

impl Compactor {
    pub(super) fn start(database: Arc<Database>, shared: Arc<Shared>, bell: Arc<Bell>) -> Result<Self> {
        let ear = Arc::clone(&bell);
        let body = move || {
            while ear.wait() {
                let work = || compact(&database, &ear);
                let outcome = catch_unwind(AssertUnwindSafe(work))
                    .unwrap_or_else(|_| Err(Error::Internal { message: "a compaction panicked".to_owned() }));
                if let Err(error) = outcome {
                    // As fjall does when one of its own workers fails.
                    shared.stop(&error);
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("bolide-compact".to_owned()).spawn(body);
        let thread = thread.map_err(|error| Error::io("start the compaction thread", &error))?;
        Ok(Self { bell, thread })
    }

    /// Ends the thread; a compaction that runs is finished first.
    pub(super) fn stop(self) -> Result<()> {
        self.bell.state.lock().closing = true;
        self.bell.rung.notify_one();
        self.thread.join().map_err(|_| Error::Internal { message: "the compaction thread died".to_owned() })
    }
}

/// Compacts until there is nothing left to compact.
pub(super) fn compact(database: &Database, bell: &Bell) -> Result<()> {
    let levels = levels();
    loop {
        let mut changed = false;
        for keyspace in database.made() {
            bell.free_memtables();
            if bell.is_closing() {
                return Ok(());
            }
            let look = || (keyspace.tree.l0_run_count(), keyspace.table_count(), keyspace.disk_space());
            let before = look();
            let _compacting = database.compacting.lock();
            let outcome = keyspace.tree.compact(Arc::clone(&levels) as _, database.oldest_snapshot());
            outcome.map_err(|error| cannot("compact", &error.into()))?;
            changed |= look() != before;
        }
        if !changed {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Bell, FIRST_LEVEL_TABLES, compact};
    use crate::embedded::EmbeddedOptions;
    use crate::embedded::database::{Committer, Database};
    use crate::overlay::Overlay;
    use crate::record::StoreRecord;
    use crate::writer::Backend;
    use crate::{ClockOptions, Extent, Keyspace, ManualClock, Time};
    use lsm_tree::AbstractTree;
    use std::sync::Arc;

    /// A database without threads of ours, and how to commit a few entries to it.
    fn open(directory: &tempfile::TempDir, bell: &Arc<Bell>) -> (Arc<Database>, impl FnMut(u8)) {
        let clock = ClockOptions::new(Arc::new(ManualClock::new(Time::from_seconds(1))));
        let options = EmbeddedOptions::new(directory.path(), clock);
        let database = Arc::new(Database::open(&options).unwrap());
        let path = directory.path().to_owned();
        let mut committer =
            Committer::new(Arc::clone(&database), options.durability, path, None, Arc::clone(bell));
        let commit = move |value: u8| {
            let mut overlay = Overlay::default();
            let mut undo = overlay.begin();
            for key in 0..10 {
                overlay.set(Keyspace::Item, vec![key].into(), Some(vec![value].into()), &mut undo);
            }
            committer.commit(overlay, &StoreRecord::default(), Extent::Synced).unwrap();
        };
        (database, commit)
    }

    #[test]
    fn flushed_tables_are_merged_by_nobody_else() {
        let (directory, bell) = (tempfile::tempdir().unwrap(), Arc::new(Bell::default()));
        let (database, mut commit) = open(&directory, &bell);
        // The first table may be moved to where there is none yet.
        for value in 0..=FIRST_LEVEL_TABLES {
            commit(value);
            database.flush().unwrap();
        }
        let keyspace = database.made_already(Keyspace::Item).unwrap();
        assert!(keyspace.tree.l0_run_count() >= usize::from(FIRST_LEVEL_TABLES));
        compact(&database, &bell).unwrap();
        assert_eq!((keyspace.tree.l0_run_count(), keyspace.table_count()), (0, 1));
    }

    #[test]
    fn a_memtable_that_fjall_forgets_is_left_to_us() {
        let (directory, bell) = (tempfile::tempdir().unwrap(), Arc::new(Bell::default()));
        let (database, mut commit) = open(&directory, &bell);
        commit(0);
        let first = Arc::downgrade(&database.made_already(Keyspace::Item).unwrap().tree.active_memtable());
        // fjall forgets old versions of its tables when it flushes again, once there are newer commits.
        let is_retired = || bell.state.lock().retired.iter().any(|one| Arc::as_ptr(one) == first.as_ptr());
        for value in 1..10 {
            database.flush().unwrap();
            commit(value);
        }
        assert!(is_retired(), "the writer holds on to it, and hands it over");
        bell.free_memtables();
        assert!(first.upgrade().is_none());
    }
}

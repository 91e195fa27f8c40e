//! Work on tables and memtables that nobody should have to wait for, on threads of their own.
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
//!   any more, another thread frees it, under no lock. Not the one that compacts: a merge takes seconds, in which a hundred
//!   megabytes of them would pile up.

use super::database::{Database, cannot};
use super::merging::Lists;
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

/// The threads.
pub(super) struct Compactor {
    bell: Arc<Bell>,
    threads: [JoinHandle<()>; 2],
}

/// What the threads are told.
#[derive(Default)]
pub(super) struct Bell {
    state: Mutex<State>,
    /// Something was committed.
    rung: Condvar,
    /// There are memtables to free.
    retired: Condvar,
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
        if !state.retired.is_empty() {
            self.retired.notify_one();
        }
        if !state.committed {
            state.committed = true;
            self.rung.notify_one();
        }
    }

    /// Waits until something was committed, and a little longer; after a failure for that pause. False once the store is being
    /// closed.
    fn wait(&self, retry: Option<Duration>) -> bool {
        let mut state = self.state.lock();
        while retry.is_none() && !state.committed && !state.closing {
            self.rung.wait(&mut state);
        }
        // As long as it is set, commits do not ring, and only the end of the store cuts the pause short.
        state.committed = true;
        if !state.closing {
            self.rung.wait_for(&mut state, retry.unwrap_or(PAUSE));
        }
        state.committed = false;
        !state.closing
    }

    fn is_closing(&self) -> bool {
        self.state.lock().closing
    }

    fn close(&self) {
        self.state.lock().closing = true;
        self.rung.notify_one();
        self.retired.notify_one();
    }

    /// Frees the memtables that wait for it.
    pub(super) fn free_memtables(&self) {
        let retired = std::mem::take(&mut self.state.lock().retired);
        drop(retired);
    }

    /// The same whenever there are some, until the store is being closed.
    fn keep_freeing_memtables(&self) {
        while !self.is_closing() {
            self.free_memtables();
            let mut state = self.state.lock();
            if state.retired.is_empty() && !state.closing {
                self.retired.wait(&mut state);
            }
        }
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
            let mut lists = Lists::Agree;
            while ear.wait(database.merging.pause()) {
                let work = || merge(&database, &ear, &mut lists);
                let panicked = |_| Error::Internal { message: "a compaction panicked".to_owned() };
                match catch_unwind(AssertUnwindSafe(work)).map_err(panicked) {
                    Ok(Ok(())) => database.merging.succeeded(),
                    Ok(Err(error)) if lists != Lists::Differ => database.merging.failed(&error),
                    // What the store is cannot be told: writes stop, as when one of fjall's own workers fails.
                    Ok(Err(error)) | Err(error) => {
                        shared.stop(&error);
                        return;
                    }
                }
            }
        };
        let (freeing, compacting) = (Arc::clone(&bell), start_thread("bolide-compact", body)?);
        let freeing = start_thread("bolide-free", move || freeing.keep_freeing_memtables());
        // A store that does not open leaves no thread behind.
        let freeing = freeing.inspect_err(|_| bell.close())?;
        Ok(Self { bell, threads: [compacting, freeing] })
    }

    /// Ends the threads; a compaction that runs is finished first.
    pub(super) fn stop(self) -> Result<()> {
        self.bell.close();
        for thread in self.threads {
            thread
                .join()
                .map_err(|_| Error::Internal { message: "a thread of the store died".to_owned() })?;
        }
        Ok(())
    }
}

fn start_thread(name: &str, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    let thread = thread::Builder::new().name(name.to_owned()).spawn(body);
    thread.map_err(|error| Error::io("start a thread of the store", &error))
}

/// Compacts once it is known that disk and memory have the same lists of tables; a failure has them compared.
fn merge(database: &Database, bell: &Bell, lists: &mut Lists) -> Result<()> {
    if *lists != Lists::Agree {
        *lists = Lists::compare(database);
    }
    let outcome = match lists {
        Lists::Agree => compact(database, bell),
        Lists::Unread(error) => return Err(error.clone()),
        Lists::Differ => {
            let what = "a list of tables on the disk is not the one in memory".to_owned();
            return Err(Error::Corrupt { what });
        }
    };
    if outcome.is_err() {
        *lists = Lists::compare(database);
    }
    outcome
}

/// Compacts until there is nothing left to compact. A keyspace in which that fails keeps no other from it; the first failure is
/// returned.
pub(super) fn compact(database: &Database, bell: &Bell) -> Result<()> {
    compact_into(&levels(), database, bell)
}

fn compact_into(levels: &Arc<Leveled>, database: &Database, bell: &Bell) -> Result<()> {
    let (mut outcome, mut failed) = (Ok(()), Vec::new());
    loop {
        let mut changed = false;
        for (number, keyspace) in database.made().enumerate() {
            if bell.is_closing() {
                return Ok(());
            }
            if failed.contains(&number) {
                continue;
            }
            let before = shape(keyspace);
            let _compacting = database.compacting.lock();
            match keyspace.tree.compact(Arc::clone(levels) as _, database.oldest_snapshot()) {
                Ok(()) => changed |= shape(keyspace) != before,
                Err(error) => {
                    failed.push(number);
                    outcome = outcome.and(Err(cannot("compact", &error.into())));
                }
            }
        }
        if !changed {
            return outcome;
        }
    }
}

/// What changes whenever tables are merged, or moved from one level to another, after which there may be more to do.
fn shape(keyspace: &fjall::Keyspace) -> (usize, u64, Vec<usize>) {
    let tree = &keyspace.tree;
    let tables = (0..).map_while(|level| tree.level_table_count(level)).collect();
    (tree.l0_run_count(), keyspace.disk_space(), tables)
}

#[cfg(test)]
mod tests {
    use super::{Bell, Compactor, FIRST_LEVEL_TABLES, Lists, compact, compact_into, merge, shape};
    use crate::embedded::database::{Committer, Database};
    use crate::embedded::pace::pause;
    use crate::embedded::{Durability, EmbeddedOptions};
    use crate::overlay::Overlay;
    use crate::record::StoreRecord;
    use crate::writer::{Backend, Shared};
    use crate::{ClockOptions, Error, Extent, Keyspace, ManualClock, Time};
    use fjall::Readable;
    use fjall::compaction::Leveled;
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

    /// A store with as many tables in its first level as are merged.
    fn with_first_level_tables(directory: &tempfile::TempDir, bell: &Arc<Bell>) -> Arc<Database> {
        let (database, mut commit) = open(directory, bell);
        // The first table may be moved to where there is none yet.
        for value in 0..=FIRST_LEVEL_TABLES {
            commit(value);
            database.flush().unwrap();
        }
        database
    }

    #[test]
    fn flushed_tables_are_merged_by_nobody_else() {
        let (directory, bell) = (tempfile::tempdir().unwrap(), Arc::new(Bell::default()));
        let database = with_first_level_tables(&directory, &bell);
        let keyspace = database.made_already(Keyspace::Item).unwrap();
        assert!(keyspace.tree.l0_run_count() >= usize::from(FIRST_LEVEL_TABLES));
        compact(&database, &bell).unwrap();
        assert_eq!((keyspace.tree.l0_run_count(), keyspace.table_count()), (0, 1));
    }

    #[test]
    fn compaction_ends_when_there_is_nothing_to_merge_or_to_move() {
        let (directory, bell) = (tempfile::tempdir().unwrap(), Arc::new(Bell::default()));
        let clock = ClockOptions::new(Arc::new(ManualClock::new(Time::from_seconds(1))));
        let database = Arc::new(Database::open(&EmbeddedOptions::new(directory.path(), clock)).unwrap());
        let path = directory.path().to_owned();
        let mut committer =
            Committer::new(Arc::clone(&database), Durability::Buffered, path, None, Arc::clone(&bell));
        let small = Arc::new(Leveled::default().with_l0_threshold(2).with_table_target_size(1 << 12));
        let mut random = fastrand::Rng::with_seed(7);
        for round in 0..60_u32 {
            // Mostly rising keys, whose tables are moved, and some that lie anywhere.
            let first = if random.u8(..4) == 0 { random.u32(..6000) } else { round * 100 };
            let mut overlay = Overlay::default();
            let mut undo = overlay.begin();
            for key in first..first + 100 {
                let value: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(60).collect();
                overlay.set(Keyspace::Item, key.to_be_bytes().to_vec().into(), Some(value.into()), &mut undo);
            }
            // fjall's worker looks at a table that it has flushed, and nobody else can have it meanwhile. Two flushes of
            // something else later it has looked.
            for overlay in [overlay, Overlay::default(), Overlay::default()] {
                committer.commit(overlay, &StoreRecord::default(), Extent::Written).unwrap();
                database.flush().unwrap();
            }
            compact_into(&small, &database, &bell).unwrap();
            let keyspace = database.made_already(Keyspace::Item).unwrap();
            let settled = shape(keyspace);
            keyspace.tree.compact(Arc::clone(&small) as _, database.oldest_snapshot()).unwrap();
            assert_eq!(shape(keyspace), settled, "round {round}");
        }
    }

    /// Where the tables of items are, and where they are put so that no table can be made or read.
    fn hide_tables(directory: &tempfile::TempDir, hide: bool) {
        let keyspaces = std::fs::read_dir(directory.path().join("keyspaces")).unwrap();
        for keyspace in keyspaces.map(|keyspace| keyspace.unwrap().path()) {
            let [tables, hidden] = ["tables", "hidden"].map(|name| keyspace.join(name));
            let (from, to) = if hide { (tables, hidden) } else { (hidden, tables) };
            std::fs::rename(from, to).unwrap();
        }
    }

    #[test]
    fn a_merge_that_fails_changes_nothing_and_succeeds_when_the_cause_is_gone() {
        let (directory, bell) = (tempfile::tempdir().unwrap(), Arc::new(Bell::default()));
        let database = with_first_level_tables(&directory, &bell);
        let keyspace = database.made_already(Keyspace::Item).unwrap();
        let before = shape(keyspace);
        hide_tables(&directory, true);
        for _ in 0..3 {
            assert!(matches!(compact(&database, &bell), Err(Error::Io { .. })));
            assert_eq!(shape(keyspace), before);
            assert_eq!(Lists::compare(&database), Lists::Agree);
        }
        hide_tables(&directory, false);
        compact(&database, &bell).unwrap();
        assert_eq!((keyspace.tree.l0_run_count(), keyspace.table_count()), (0, 1));
        let value = database.own().0.snapshot().get(keyspace, [3]).unwrap();
        assert_eq!(value.as_deref(), Some(&[FIRST_LEVEL_TABLES][..]));
        drop(database);
        let (database, _) = open(&directory, &bell);
        let keyspace = database.made_already(Keyspace::Item).unwrap();
        let value = database.own().0.snapshot().get(keyspace, [3]).unwrap();
        assert_eq!(value.as_deref(), Some(&[FIRST_LEVEL_TABLES][..]), "also after a restart");
    }

    #[test]
    fn a_list_of_tables_that_memory_does_not_know_stops_the_writes() {
        let (directory, bell) = (tempfile::tempdir().unwrap(), Arc::new(Bell::default()));
        let (database, mut commit) = open(&directory, &bell);
        commit(1);
        database.flush().unwrap();
        assert_eq!(Lists::compare(&database), Lists::Agree);
        let current = database.made_already(Keyspace::Item).unwrap().path().join("current");
        let plant = || {
            let mut bytes = std::fs::read(&current).unwrap();
            bytes[0] += 1;
            std::fs::write(&current, bytes).unwrap();
            Lists::compare(&database)
        };
        // fjall's worker may move the flushed table meanwhile, and then the list is a new one.
        assert!((0..5).any(|_| plant() == Lists::Differ));
    }

    /// Puts the lists of tables out of sight, as a mount that has gone does, or back.
    fn hide_lists(database: &Database, hide: bool) {
        for keyspace in database.made() {
            let [current, hidden] = ["current", "hidden-current"].map(|name| keyspace.path().join(name));
            let (from, to) = if hide { (current, hidden) } else { (hidden, current) };
            std::fs::rename(from, to).unwrap();
        }
    }

    #[test]
    fn a_list_of_tables_that_cannot_be_read_is_a_failed_merge_and_stops_nothing() {
        let (directory, bell) = (tempfile::tempdir().unwrap(), Arc::new(Bell::default()));
        let database = with_first_level_tables(&directory, &bell);
        let clock = ClockOptions::new(Arc::new(ManualClock::new(Time::from_seconds(1))));
        let shared = Shared::start(None, clock).unwrap();
        hide_tables(&directory, true);
        hide_lists(&database, true);
        assert!(matches!(Lists::compare(&database), Lists::Unread(Error::Io { .. })));
        let mut lists = Lists::Agree;
        for _ in 0..3 {
            assert!(matches!(merge(&database, &bell, &mut lists), Err(Error::Io { .. })));
            assert!(matches!(lists, Lists::Unread(_)));
        }
        // The thread tries it again by itself until the cause is gone.
        let error = Error::io("compact", &"no space");
        database.merging.failed(&error);
        let first = database.merging.pause();
        let compactor =
            Compactor::start(Arc::clone(&database), Arc::clone(&shared), Arc::clone(&bell)).unwrap();
        let wait_until = |is_so: &dyn Fn() -> bool| {
            (0..30_000).any(|_| {
                is_so() || {
                    pause();
                    false
                }
            })
        };
        assert!(wait_until(&|| database.merging.pause() > first), "it fails again");
        hide_tables(&directory, false);
        hide_lists(&database, false);
        assert!(wait_until(&|| !database.merging.fails()), "it succeeds");
        assert!(shared.poison().is_none());
        compactor.stop().unwrap();
        let keyspace = database.made_already(Keyspace::Item).unwrap();
        assert_eq!((keyspace.tree.l0_run_count(), keyspace.table_count()), (0, 1));
    }

    #[test]
    fn writes_go_on_while_merges_fail_until_too_much_waits_and_again_when_they_succeed() {
        let (directory, bell) = (tempfile::tempdir().unwrap(), Arc::new(Bell::default()));
        let (database, mut commit) = open(&directory, &bell);
        let clock = ClockOptions::new(Arc::new(ManualClock::new(Time::from_seconds(1))));
        let shared = Shared::start(None, clock).unwrap();
        let compactor =
            Compactor::start(Arc::clone(&database), Arc::clone(&shared), Arc::clone(&bell)).unwrap();
        // A failure that a merge would meet; the thread finds it gone and goes on.
        database.merging.failed(&Error::io("compact", &"no space"));
        assert_eq!(database.merging.check(&database), Ok(()), "little waits");
        for value in 0..20 {
            commit(value);
        }
        for _ in 0..30_000 {
            if !database.merging.fails() {
                break;
            }
            pause();
        }
        assert!(!database.merging.fails(), "it is tried again by itself");
        assert!(shared.poison().is_none());
        compactor.stop().unwrap();
        // Nobody merges any more: what waits is counted.
        let runs = || database.made_already(Keyspace::Item).unwrap().tree.l0_run_count();
        while runs() < 18 {
            commit(0);
            database.flush().unwrap();
        }
        assert_eq!(database.merging.check(&database), Ok(()), "merges succeed, so more of them will");
        database.merging.failed(&Error::io("compact", &"no space"));
        let Err(Error::Io { cause, .. }) = database.merging.check(&database) else {
            panic!("too much waits")
        };
        assert_eq!(cause, "cannot compact: no space");
        database.merging.succeeded();
        assert_eq!(database.merging.check(&database), Ok(()));
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

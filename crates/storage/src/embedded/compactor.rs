//! Background threads that compact tables and free memtables, so that neither readers nor the writer wait for it.
//!
//! fjall's defaults stall users of the store in three ways:
//!
//! - *Compaction.* Of two workers one spins, at the cost of a whole core, for as long as the other compacts; and a
//!   single worker does not flush while it compacts, so that writers end up waiting for it. So fjall is configured with
//!   levels so large that its workers find nothing to do ([`no_automatic_compaction`]), its only worker flushes, and this
//!   thread requests compactions.
//! - *Large tables.* A table is synced at once, the last one of a compaction under the lock that every reader of the
//!   keyspace takes, and a commit's own sync queues behind it. So tables have a few megabytes ([`TABLE_BYTES`]), not 64,
//!   which take a disk some 200 ms.
//! - *Memtables.* A flushed memtable is freed under the same lock: some hundred thousand entries, for a tenth of a
//!   second. So the writer keeps a reference to every memtable it has seen ([`Memtables`]), and when it holds the last
//!   one, another thread frees the memtable, under no lock. The compaction thread does not do it: a compaction takes
//!   seconds, while a hundred megabytes of memtables would pile up.

use super::compaction_health::TableLists;
use super::database::{Database, cannot};
use super::reclaim::Reclaim;
use super::throttle::instant;
use crate::writer::Shared;
use crate::{DeferredWork, Error, Result};
use fjall::compaction::Leveled;
use lsm_tree::{AbstractTree, Memtable};
use parking_lot::{Condvar, Mutex};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The target size of a table, which is synced at once.
pub(super) const TABLE_BYTES: u64 = 8 << 20;
/// The number of first-level tables that are merged into the next level.
const FIRST_LEVEL_TABLES: u8 = 4;
/// A level size that is never reached.
const ENDLESS_BYTES: u64 = 1 << 50;
/// How long flushes are collected after a commit.
const PAUSE: Duration = Duration::from_millis(100);

/// Returns levels in which fjall's own worker finds nothing to compact.
pub(super) fn no_automatic_compaction() -> Arc<Leveled> {
    Arc::new(Leveled::default().with_l0_threshold(u8::MAX).with_table_target_size(ENDLESS_BYTES))
}

/// Returns the levels to compact into.
fn levels() -> Arc<Leveled> {
    Arc::new(Leveled::default().with_l0_threshold(FIRST_LEVEL_TABLES).with_table_target_size(TABLE_BYTES))
}

/// The background threads.
pub(super) struct Compactor {
    signal: Arc<CompactorSignal>,
    threads: [JoinHandle<()>; 2],
}

/// The signals to the background threads.
#[derive(Default)]
pub(super) struct CompactorSignal {
    state: Mutex<State>,
    /// Signals a commit.
    wake_compactor: Condvar,
    /// Signals memtables to free.
    retired: Condvar,
}

#[derive(Default)]
struct State {
    committed: bool,
    closing: bool,
    /// Memtables that only this list references.
    retired: Vec<Arc<Memtable>>,
}

impl CompactorSignal {
    /// Signals a commit, and hands over memtables that nothing else references.
    fn notify_commit(&self, retired: impl Iterator<Item = Arc<Memtable>>) {
        let mut state = self.state.lock();
        state.retired.extend(retired);
        if !state.retired.is_empty() {
            self.retired.notify_one();
        }
        if !state.committed {
            state.committed = true;
            self.wake_compactor.notify_one();
        }
    }

    /// Waits for a commit and a little longer, or after a failure for the pause `retry`, and for a commit no longer than
    /// `longest`. Returns false once the store is closing.
    fn wait(&self, retry: Option<Duration>, longest: Option<Duration>) -> bool {
        let until = longest.map(|longest| instant() + longest);
        let mut state = self.state.lock();
        while retry.is_none() && !state.committed && !state.closing {
            match until {
                None => self.wake_compactor.wait(&mut state),
                Some(until) if self.wake_compactor.wait_until(&mut state, until).timed_out() => break,
                Some(_) => {}
            }
        }
        // While this is set, commits do not signal, and only closing the store cuts the pause short.
        state.committed = true;
        if !state.closing {
            self.wake_compactor.wait_for(&mut state, retry.unwrap_or(PAUSE));
        }
        state.committed = false;
        !state.closing
    }

    pub(super) fn is_closing(&self) -> bool {
        self.state.lock().closing
    }

    fn close(&self) {
        self.state.lock().closing = true;
        self.wake_compactor.notify_one();
        self.retired.notify_one();
    }

    /// Frees the memtables handed over.
    pub(super) fn free_memtables(&self) {
        let retired = std::mem::take(&mut self.state.lock().retired);
        drop(retired);
    }

    /// Frees memtables as they are handed over, until the store is closing.
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

/// The memtables that the writer keeps references to.
pub(super) struct Memtables {
    held: Vec<Arc<Memtable>>,
    signal: Arc<CompactorSignal>,
}

impl Memtables {
    pub(super) fn new(signal: Arc<CompactorSignal>) -> Self {
        Self { held: Vec::new(), signal }
    }

    /// Takes references to new memtables after a commit, and hands over those that nothing else references.
    pub(super) fn committed(&mut self, database: &Database) {
        for keyspace in database.opened_keyspaces() {
            let active = keyspace.tree.active_memtable();
            if !self.held.iter().any(|held| Arc::ptr_eq(held, &active)) {
                self.held.push(active);
            }
        }
        self.signal.notify_commit(self.held.extract_if(.., |memtable| Arc::strong_count(memtable) == 1));
    }
}

impl Compactor {
    pub(super) fn start(
        database: Arc<Database>,
        shared: Arc<Shared>,
        signal: Arc<CompactorSignal>,
    ) -> Result<Self> {
        // So many tables may wait from before that fjall would halt the first commit until they are merged.
        signal.state.lock().committed = true;
        let compact_signal = Arc::clone(&signal);
        let body = move || {
            let (mut lists, mut reclaim) = (TableLists::Agree, Reclaim::default());
            while compact_signal.wait(database.compaction_health.pause(), reclaim.pause(instant())) {
                let work = || {
                    reclaim.step(&database, instant());
                    merge(&database, &compact_signal, &mut lists)
                };
                let panicked = |_| Error::Internal { message: "a compaction panicked".to_owned() };
                match catch_unwind(AssertUnwindSafe(work)).map_err(panicked) {
                    Ok(Ok(())) => database.compaction_health.succeeded(),
                    Ok(Err(error)) if lists != TableLists::Differ => {
                        database.compaction_health.failed(&error);
                    }
                    // The state of the store is unknown: writes stop, as when one of fjall's own workers fails.
                    Ok(Err(error)) | Err(error) => {
                        shared.stop(&error);
                        return;
                    }
                }
            }
        };
        let (freeing, compacting) = (Arc::clone(&signal), start_thread("bolide-compact", body)?);
        let freeing = start_thread("bolide-free", move || freeing.keep_freeing_memtables());
        // A store that fails to open leaves no thread behind.
        let freeing = freeing.inspect_err(|_| signal.close())?;
        Ok(Self { signal, threads: [compacting, freeing] })
    }

    /// Ends the threads, after a running compaction has finished.
    pub(super) fn stop(self) -> Result<()> {
        self.signal.close();
        for thread in self.threads {
            thread
                .join()
                .map_err(|_| Error::Internal { message: "a thread of the store has panicked".to_owned() })?;
        }
        Ok(())
    }
}

fn start_thread(name: &str, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    let thread = thread::Builder::new().name(name.to_owned()).spawn(body);
    thread.map_err(|error| Error::io("start a thread of the store", &error))
}

/// Compacts once disk and memory are known to have the same lists of tables; a failure has them compared.
fn merge(database: &Database, signal: &CompactorSignal, lists: &mut TableLists) -> Result<()> {
    if *lists != TableLists::Agree {
        *lists = TableLists::compare(database);
    }
    let outcome = match lists {
        TableLists::Agree => compact_round(database, signal),
        TableLists::Unread(error) => return Err(error.clone()),
        TableLists::Differ => {
            let what = "a list of tables on the disk is not the one in memory".to_owned();
            return Err(Error::Corrupt { what });
        }
    };
    if outcome.is_err() {
        *lists = TableLists::compare(database);
    }
    outcome
}

/// Drops the tables that watermarks cover, and compacts what is left.
pub(super) fn compact_round(database: &Database, signal: &CompactorSignal) -> Result<()> {
    // One sync for all watermarks of a round: none of them is settled before.
    let synced =
        if database.watermarks.wants_sync() { database.sync_watermarks().map(|_| ()) } else { Ok(()) };
    let dropped = database.covered_tables.drop_from(database, signal);
    compact(database, signal).and(dropped).and(synced)
}

/// Compacts until nothing is left to compact. A keyspace in which that fails does not keep the others from it; the
/// first failure is returned.
pub(super) fn compact(database: &Database, signal: &CompactorSignal) -> Result<()> {
    compact_into(&levels(), database, signal)
}

fn compact_into(levels: &Arc<Leveled>, database: &Database, signal: &CompactorSignal) -> Result<()> {
    let (mut outcome, mut failed) = (Ok(()), Vec::new());
    loop {
        let mut changed = false;
        for (number, keyspace) in database.opened_keyspaces().enumerate() {
            if signal.is_closing() {
                return Ok(());
            }
            if failed.contains(&number) {
                continue;
            }
            let before = shape(keyspace);
            let _compacting = database.compacting.lock();
            database.settle_watermarks();
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

impl Database {
    /// Returns the flushes and merges that wait or run.
    pub(super) fn deferred_work(&self) -> DeferredWork {
        let (fjall, _) = self.own();
        let waits =
            |keyspace: &&fjall::Keyspace| keyspace.l0_table_count() >= usize::from(FIRST_LEVEL_TABLES);
        let is_merging = self.compacting.try_lock().is_none();
        DeferredWork {
            memtable_bytes: fjall.write_buffer_size(),
            sealed_memtables: self.opened_keyspaces().map(fjall::Keyspace::sealed_memtable_count).sum(),
            pending_merges: self.opened_keyspaces().filter(waits).count() + usize::from(is_merging),
        }
    }
}

/// Returns what changes whenever tables are merged or moved to another level, after which there may be more to do.
fn shape(keyspace: &fjall::Keyspace) -> (usize, u64, Vec<usize>) {
    let tree = &keyspace.tree;
    let tables = (0..).map_while(|level| tree.level_table_count(level)).collect();
    (tree.l0_run_count(), keyspace.disk_space(), tables)
}

#[cfg(test)]
mod tests {
    use super::{
        Compactor, CompactorSignal, FIRST_LEVEL_TABLES, TableLists, compact, compact_into, merge, shape,
    };
    use crate::embedded::EmbeddedOptions;
    use crate::embedded::database::{Committer, Database};
    use crate::embedded::throttle::pause;
    use crate::overlay::Overlay;
    use crate::record::StoreRecord;
    use crate::writer::{Backend, Shared};
    use crate::{ClockOptions, DeferredWork, Durability, Error, Keyspace, ManualClock, Time};
    use fjall::Readable;
    use fjall::compaction::Leveled;
    use lsm_tree::AbstractTree;
    use std::sync::Arc;

    /// Opens a database without background threads, and returns a function that commits a few entries to it.
    fn open(directory: &tempfile::TempDir, signal: &Arc<CompactorSignal>) -> (Arc<Database>, impl FnMut(u8)) {
        let clock = ClockOptions::new(Arc::new(ManualClock::new(Time::from_seconds(1))));
        let options = EmbeddedOptions::new(directory.path(), clock);
        let database = Arc::new(Database::open(&options).unwrap());
        let path = directory.path().to_owned();
        let mut committer =
            Committer::new(Arc::clone(&database), options.durability, path, None, Arc::clone(signal));
        let commit = move |value: u8| {
            let mut overlay = Overlay::default();
            let mut undo = overlay.begin();
            for key in 0..10 {
                overlay.set(Keyspace::Item, vec![key].into(), Some(vec![value].into()), &mut undo);
            }
            committer.commit(overlay, &StoreRecord::default(), Durability::Sync).unwrap();
        };
        (database, commit)
    }

    /// Returns a store with as many tables in its first level as are merged.
    fn with_first_level_tables(
        directory: &tempfile::TempDir,
        signal: &Arc<CompactorSignal>,
    ) -> Arc<Database> {
        let (database, mut commit) = open(directory, signal);
        // The first table may be moved into an empty level.
        for value in 0..=FIRST_LEVEL_TABLES {
            commit(value);
            database.flush().unwrap();
        }
        database
    }

    #[test]
    fn flushed_tables_are_compacted_by_this_crate_alone() {
        let (directory, signal) = (tempfile::tempdir().unwrap(), Arc::new(CompactorSignal::default()));
        let database = with_first_level_tables(&directory, &signal);
        let keyspace = database.opened_keyspace(Keyspace::Item).unwrap();
        assert!(keyspace.tree.l0_run_count() >= usize::from(FIRST_LEVEL_TABLES));
        compact(&database, &signal).unwrap();
        assert_eq!((keyspace.tree.l0_run_count(), keyspace.table_count()), (0, 1));
    }

    /// Returns the deferred work once no more memtable bytes are counted than these, or after thousands of pauses: fjall's
    /// worker counts those of a memtable out only after the memtable is gone.
    fn counted_out(database: &Database, memtable_bytes: u64) -> DeferredWork {
        for _ in 0..10_000 {
            if database.deferred_work().memtable_bytes == memtable_bytes {
                break;
            }
            pause();
        }
        database.deferred_work()
    }

    #[test]
    fn flushes_and_merges_that_wait_are_counted() {
        let (directory, signal) = (tempfile::tempdir().unwrap(), Arc::new(CompactorSignal::default()));
        let (database, mut commit) = open(&directory, &signal);
        let empty = database.deferred_work();
        commit(0);
        let written = database.deferred_work();
        assert!(written.memtable_bytes > empty.memtable_bytes, "{written:?}");
        database.flush().unwrap();
        assert_eq!(counted_out(&database, empty.memtable_bytes), empty, "one table is not merged");
        for value in 0..FIRST_LEVEL_TABLES {
            commit(value);
            database.flush().unwrap();
        }
        // The store's own keyspace is written by each commit, too.
        let merges_wait = DeferredWork { pending_merges: 2, ..empty };
        assert_eq!(counted_out(&database, empty.memtable_bytes), merges_wait);
        let merging = database.compacting.lock();
        assert_eq!(database.deferred_work().pending_merges, 3);
        drop(merging);
        compact(&database, &signal).unwrap();
        assert_eq!(database.deferred_work(), empty);
    }

    #[test]
    fn compaction_ends_when_there_is_nothing_to_merge_or_to_move() {
        let (directory, signal) = (tempfile::tempdir().unwrap(), Arc::new(CompactorSignal::default()));
        let clock = ClockOptions::new(Arc::new(ManualClock::new(Time::from_seconds(1))));
        let database = Arc::new(Database::open(&EmbeddedOptions::new(directory.path(), clock)).unwrap());
        let path = directory.path().to_owned();
        let mut committer =
            Committer::new(Arc::clone(&database), Durability::Buffered, path, None, Arc::clone(&signal));
        let small = Arc::new(Leveled::default().with_l0_threshold(2).with_table_target_size(1 << 12));
        let mut random = fastrand::Rng::with_seed(7);
        for round in 0..60_u32 {
            // Mostly ascending keys, whose tables are moved, and some at random.
            let first = if random.u8(..4) == 0 { random.u32(..6000) } else { round * 100 };
            let mut overlay = Overlay::default();
            let mut undo = overlay.begin();
            for key in first..first + 100 {
                let value: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(60).collect();
                overlay.set(Keyspace::Item, key.to_be_bytes().to_vec().into(), Some(value.into()), &mut undo);
            }
            // fjall's worker inspects each table it has flushed, and holds it meanwhile. After two more flushes it has
            // finished.
            for overlay in [overlay, Overlay::default(), Overlay::default()] {
                committer.commit(overlay, &StoreRecord::default(), Durability::Buffered).unwrap();
                database.flush().unwrap();
            }
            compact_into(&small, &database, &signal).unwrap();
            let keyspace = database.opened_keyspace(Keyspace::Item).unwrap();
            let settled = shape(keyspace);
            keyspace.tree.compact(Arc::clone(&small) as _, database.oldest_snapshot()).unwrap();
            assert_eq!(shape(keyspace), settled, "round {round}");
        }
    }

    /// Moves the tables of items out of the way, so that no table can be written or read, or back.
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
        let (directory, signal) = (tempfile::tempdir().unwrap(), Arc::new(CompactorSignal::default()));
        let database = with_first_level_tables(&directory, &signal);
        let keyspace = database.opened_keyspace(Keyspace::Item).unwrap();
        let before = shape(keyspace);
        hide_tables(&directory, true);
        for _ in 0..3 {
            assert!(matches!(compact(&database, &signal), Err(Error::Io { .. })));
            assert_eq!(shape(keyspace), before);
            assert_eq!(TableLists::compare(&database), TableLists::Agree);
        }
        hide_tables(&directory, false);
        compact(&database, &signal).unwrap();
        assert_eq!((keyspace.tree.l0_run_count(), keyspace.table_count()), (0, 1));
        let value = database.own().0.snapshot().get(keyspace, [3]).unwrap();
        assert_eq!(value.as_deref(), Some(&[FIRST_LEVEL_TABLES][..]));
        drop(database);
        let (database, _) = open(&directory, &signal);
        let keyspace = database.opened_keyspace(Keyspace::Item).unwrap();
        let value = database.own().0.snapshot().get(keyspace, [3]).unwrap();
        assert_eq!(value.as_deref(), Some(&[FIRST_LEVEL_TABLES][..]), "also after a restart");
    }

    #[test]
    fn a_list_of_tables_that_memory_does_not_know_stops_the_writes() {
        let (directory, signal) = (tempfile::tempdir().unwrap(), Arc::new(CompactorSignal::default()));
        let (database, mut commit) = open(&directory, &signal);
        commit(1);
        database.flush().unwrap();
        assert_eq!(TableLists::compare(&database), TableLists::Agree);
        let current = database.opened_keyspace(Keyspace::Item).unwrap().path().join("current");
        let plant = || {
            let mut bytes = std::fs::read(&current).unwrap();
            bytes[0] += 1;
            std::fs::write(&current, bytes).unwrap();
            TableLists::compare(&database)
        };
        // fjall's worker may move the flushed table meanwhile, which makes the list a new one.
        assert!((0..5).any(|_| plant() == TableLists::Differ));
    }

    /// Moves the lists of tables out of the way, as an unmounted disk does, or back.
    fn hide_lists(database: &Database, hide: bool) {
        for keyspace in database.opened_keyspaces() {
            let [current, hidden] = ["current", "hidden-current"].map(|name| keyspace.path().join(name));
            let (from, to) = if hide { (current, hidden) } else { (hidden, current) };
            std::fs::rename(from, to).unwrap();
        }
    }

    #[test]
    fn a_list_of_tables_that_cannot_be_read_is_a_failed_merge_and_stops_nothing() {
        let (directory, signal) = (tempfile::tempdir().unwrap(), Arc::new(CompactorSignal::default()));
        let database = with_first_level_tables(&directory, &signal);
        let clock = ClockOptions::new(Arc::new(ManualClock::new(Time::from_seconds(1))));
        let shared = Shared::start(None, clock).unwrap();
        hide_tables(&directory, true);
        hide_lists(&database, true);
        assert!(matches!(TableLists::compare(&database), TableLists::Unread(Error::Io { .. })));
        let mut lists = TableLists::Agree;
        for _ in 0..3 {
            assert!(matches!(merge(&database, &signal, &mut lists), Err(Error::Io { .. })));
            assert!(matches!(lists, TableLists::Unread(_)));
        }
        // The thread retries by itself until the cause is gone.
        let error = Error::io("compact", &"no space");
        database.compaction_health.failed(&error);
        let first = database.compaction_health.pause();
        let compactor =
            Compactor::start(Arc::clone(&database), Arc::clone(&shared), Arc::clone(&signal)).unwrap();
        let wait_until = |is_so: &dyn Fn() -> bool| {
            (0..30_000).any(|_| {
                is_so() || {
                    pause();
                    false
                }
            })
        };
        assert!(wait_until(&|| database.compaction_health.pause() > first), "it fails again");
        hide_tables(&directory, false);
        hide_lists(&database, false);
        assert!(wait_until(&|| !database.compaction_health.fails()), "it succeeds");
        assert!(shared.poison().is_none());
        compactor.stop().unwrap();
        let keyspace = database.opened_keyspace(Keyspace::Item).unwrap();
        assert_eq!((keyspace.tree.l0_run_count(), keyspace.table_count()), (0, 1));
    }

    /// fjall halts writers at 30 runs in the first level; a store whose processes ended early may be opened with so many.
    #[test]
    fn what_waits_from_before_is_merged_without_a_commit() {
        let (directory, signal) = (tempfile::tempdir().unwrap(), Arc::new(CompactorSignal::default()));
        let (database, mut commit) = open(&directory, &signal);
        for value in 0..20 {
            commit(value);
            database.flush().unwrap();
        }
        drop((database, commit));
        let signal = Arc::new(CompactorSignal::default());
        let (database, _) = open(&directory, &signal);
        let clock = ClockOptions::new(Arc::new(ManualClock::new(Time::from_seconds(1))));
        let shared = Shared::start(None, clock).unwrap();
        let runs = || database.opened_keyspace(Keyspace::Item).unwrap().tree.l0_run_count();
        assert!(runs() >= usize::from(FIRST_LEVEL_TABLES), "{}", runs());
        let compactor = Compactor::start(Arc::clone(&database), shared, signal).unwrap();
        let is_merged = (0..30_000).any(|_| {
            runs() == 0 || {
                pause();
                false
            }
        });
        assert!(is_merged, "{}", runs());
        compactor.stop().unwrap();
    }

    #[test]
    fn writes_go_on_while_merges_fail_until_too_much_waits_and_again_when_they_succeed() {
        let (directory, signal) = (tempfile::tempdir().unwrap(), Arc::new(CompactorSignal::default()));
        let (database, mut commit) = open(&directory, &signal);
        let clock = ClockOptions::new(Arc::new(ManualClock::new(Time::from_seconds(1))));
        let shared = Shared::start(None, clock).unwrap();
        let compactor =
            Compactor::start(Arc::clone(&database), Arc::clone(&shared), Arc::clone(&signal)).unwrap();
        // A failure that a compaction would meet; the thread finds it gone and continues.
        database.compaction_health.failed(&Error::io("compact", &"no space"));
        assert_eq!(database.compaction_health.check(&database), Ok(()), "little waits");
        for value in 0..20 {
            commit(value);
        }
        for _ in 0..30_000 {
            if !database.compaction_health.fails() {
                break;
            }
            pause();
        }
        assert!(!database.compaction_health.fails(), "it is tried again by itself");
        assert!(shared.poison().is_none());
        compactor.stop().unwrap();
        // No compaction runs any more, so the number of waiting runs is stable.
        let runs = || database.opened_keyspace(Keyspace::Item).unwrap().tree.l0_run_count();
        while runs() < 18 {
            commit(0);
            database.flush().unwrap();
        }
        assert_eq!(
            database.compaction_health.check(&database),
            Ok(()),
            "merges succeed, so more of them will"
        );
        database.compaction_health.failed(&Error::io("compact", &"no space"));
        let Err(Error::Io { cause, .. }) = database.compaction_health.check(&database) else {
            panic!("too many runs wait")
        };
        assert_eq!(cause, "cannot compact: no space");
        database.compaction_health.succeeded();
        assert_eq!(database.compaction_health.check(&database), Ok(()));
    }

    #[test]
    fn a_memtable_that_fjall_forgets_is_left_to_us() {
        let (directory, signal) = (tempfile::tempdir().unwrap(), Arc::new(CompactorSignal::default()));
        let (database, mut commit) = open(&directory, &signal);
        commit(0);
        let first = Arc::downgrade(&database.opened_keyspace(Keyspace::Item).unwrap().tree.active_memtable());
        // fjall drops old versions of its tables when it flushes again, once there are newer commits.
        let is_retired = || signal.state.lock().retired.iter().any(|one| Arc::as_ptr(one) == first.as_ptr());
        for value in 1..10 {
            database.flush().unwrap();
            commit(value);
        }
        assert!(is_retired(), "the writer holds on to it, and hands it over");
        signal.free_memtables();
        assert!(first.upgrade().is_none());
    }
}

//! The state that readers see: a snapshot taken between two batches, which they share.
//!
//! fjall gives a batch its number first, and makes it visible when it is applied. But a flush or a compaction that ends
//! meanwhile takes a later number, makes that visible, and with it the batch that is not applied yet: a snapshot taken
//! then has half of the batch, and a moment later all of it. So no reader takes its own snapshot. All batches are
//! committed here, one at a time, and after each this module takes a snapshot for the readers that follow (decision 0073).

use std::sync::Arc;

use fjall::{OwnedWriteBatch, Snapshot};
use parking_lot::{Mutex, RwLock};

/// The newest state without a part of a batch.
pub(super) struct Published {
    /// Held while a batch is committed.
    committing: Mutex<()>,
    newest: RwLock<Arc<Snapshot>>,
}

impl Published {
    /// Publishes the state of a database into which no batch is being written.
    pub(super) fn new(database: &fjall::Database) -> Self {
        Self { committing: Mutex::default(), newest: RwLock::new(Arc::new(database.snapshot())) }
    }

    /// Commits a batch, and publishes the state after it.
    pub(super) fn commit(&self, database: &fjall::Database, batch: OwnedWriteBatch) -> fjall::Result<()> {
        let _committing = self.committing.lock();
        batch.commit()?;
        self.publish(database);
        Ok(())
    }

    /// Replaces the newest state by the same one under a later number, so that no snapshot needs the older numbers. Does
    /// nothing while a batch is being committed, which has the same effect.
    pub(super) fn refresh(&self, database: &fjall::Database) {
        let Some(_committing) = self.committing.try_lock() else { return };
        let supervisor = &database.supervisor;
        supervisor.snapshot_tracker.publish(supervisor.seqno.next());
        self.publish(database);
    }

    fn publish(&self, database: &fjall::Database) {
        let newest = Arc::new(database.snapshot());
        let before = std::mem::replace(&mut *self.newest.write(), newest);
        // Outside the lock that readers take.
        drop(before);
    }

    /// Returns the newest state.
    pub(super) fn newest(&self) -> Arc<Snapshot> {
        Arc::clone(&self.newest.read())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::super::compactor::{CompactorSignal, compact};
    use super::super::database::{Committer, Database, EmbeddedSnapshot};
    use crate::overlay::Overlay;
    use crate::record::StoreRecord;
    use crate::writer::Backend;
    use crate::{ClockOptions, Durability, EmbeddedOptions, Keyspace, ManualClock, Read, Time};

    const COMMITS: u32 = 400;

    /// Returns many entries that are the same in each commit, so that a reader is likely to meet one that is being
    /// applied.
    fn commit_of(number: u32) -> Overlay {
        let mut overlay = Overlay::default();
        let mut undo = overlay.begin();
        for keyspace in [Keyspace::Catalog, Keyspace::Item, Keyspace::Receipt] {
            for key in 0..100_u8 {
                let value = number.to_be_bytes().to_vec();
                overlay.set(keyspace, vec![key].into(), Some(value.into()), &mut undo);
            }
        }
        overlay
    }

    #[test]
    fn no_snapshot_has_half_of_a_batch_while_tables_change() {
        let directory = tempfile::tempdir().unwrap();
        let clock = ClockOptions::new(Arc::new(ManualClock::new(Time::from_seconds(1))));
        let database = Arc::new(Database::open(&EmbeddedOptions::new(directory.path(), clock)).unwrap());
        let signal = Arc::new(CompactorSignal::default());
        let path = directory.path().to_owned();
        let mut committer =
            Committer::new(Arc::clone(&database), Durability::Sync, path, None, Arc::clone(&signal));
        let mut commit = |number| {
            committer.commit(commit_of(number), &StoreRecord::default(), Durability::Sync).unwrap();
        };
        commit(0);
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                (1..COMMITS).for_each(&mut commit);
                done.store(true, Ordering::Release);
            });
            scope.spawn(|| {
                while !done.load(Ordering::Acquire) {
                    database.flush().unwrap();
                    compact(&database, &signal).unwrap();
                }
            });
            while !done.load(Ordering::Acquire) {
                let snapshot = EmbeddedSnapshot::new(Arc::clone(&database));
                let first = snapshot.get(Keyspace::Receipt, &[99]).unwrap();
                for (keyspace, key) in [(Keyspace::Catalog, 0), (Keyspace::Item, 50), (Keyspace::Receipt, 99)]
                {
                    assert_eq!(snapshot.get(keyspace, &[key]).unwrap(), first, "{keyspace:?}");
                }
            }
        });
        let last = EmbeddedSnapshot::new(database).get(Keyspace::Item, &[0]).unwrap();
        assert_eq!(last.as_deref(), Some(&(COMMITS - 1).to_be_bytes()[..]));
    }
}

//! Collections that transactions have created.
//!
//! The first write creates a collection, also within a transaction, where the write itself may be undone. Every open transaction
//! that writes to such a collection holds it, and it is removed when the last of them has ended without a commit. It stays as
//! soon as one of them has committed, or a command outside of all transactions has used it.
//!
//! Meanwhile other clients see it, empty. If the process ends before the transaction, the collection stays, empty as well.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use engine::Engine;
use engine::collection::{Collection, CollectionDefinition};
use parking_lot::Mutex;

use crate::access::executor::SharedState;

/// All provisional collections.
#[derive(Debug, Default)]
pub(crate) struct Provisional {
    /// How many open transactions hold each, by its `uuid`. Locked while one is made or dropped.
    holders: Mutex<HashMap<[u8; 16], usize>>,
    /// At least the number of provisional collections: raised before one can be found, lowered when it cannot be found any
    /// more. As a rule it is zero, and then no command has to take the lock.
    count: AtomicUsize,
}

/// The collections that one transaction holds. Dropping it releases them.
pub(crate) struct HeldCollections {
    shared: Arc<SharedState>,
    collections: Mutex<Vec<Arc<Collection>>>,
}

impl Provisional {
    /// Keeps a collection that a command uses outside of transactions.
    pub(crate) fn confirm(&self, collection: &Collection) {
        if !self.is_empty() && self.holders.lock().remove(&collection.definition.uuid).is_some() {
            self.forget_one();
        }
    }

    fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    fn forget_one(&self) {
        self.count.fetch_sub(1, Ordering::AcqRel);
    }

    /// Releases a collection. It is dropped while no other transaction can hold it.
    fn release(&self, engine: &Engine, collection: &Collection) {
        let mut holders = self.holders.lock();
        let Some(count) = holders.get_mut(&collection.definition.uuid) else { return };
        *count -= 1;
        if *count > 0 {
            return;
        }
        holders.remove(&collection.definition.uuid);
        match engine.drop_collection(collection) {
            Ok(()) | Err(engine::Error::NotFound { .. } | engine::Error::OwnerNotFound { .. }) => {}
            Err(error) => tracing::warn!(
                "{} stays, though the transaction that made it came to nothing: {error}",
                collection.namespace()
            ),
        }
        self.forget_one();
    }
}

impl HeldCollections {
    pub(crate) fn new(shared: &Arc<SharedState>) -> HeldCollections {
        HeldCollections { shared: Arc::clone(shared), collections: Mutex::default() }
    }

    /// Returns the collection of that name. One that the transaction, or another one, has made is held from now on.
    pub(crate) fn find(&self, database: &str, name: &str) -> Option<Arc<Collection>> {
        let collection = self.shared.engine.collection(database, name)?;
        if self.shared.provisional.is_empty() {
            return Some(collection);
        }
        let mut holders = self.shared.provisional.holders.lock();
        // Another thread may have dropped the first one before the lock was taken.
        let collection = self.shared.engine.collection(database, name)?;
        if let Some(count) = holders.get_mut(&collection.definition.uuid) {
            let mut mine = self.collections.lock();
            if !mine.iter().any(|held| held.definition.uuid == collection.definition.uuid) {
                *count += 1;
                mine.push(Arc::clone(&collection));
            }
        }
        Some(collection)
    }

    /// Whether it holds that collection.
    pub(crate) fn holds(&self, collection: &Collection) -> bool {
        self.collections.lock().iter().any(|held| held.definition.uuid == collection.definition.uuid)
    }

    /// Creates a collection and holds it.
    pub(crate) fn create(
        &self,
        database: &str,
        name: &str,
        definition: CollectionDefinition,
    ) -> engine::Result<Arc<Collection>> {
        let provisional = &self.shared.provisional;
        let mut holders = provisional.holders.lock();
        provisional.count.fetch_add(1, Ordering::AcqRel);
        let created = self.shared.engine.create_collection(database, name, definition, None);
        let collection = created.inspect_err(|_| provisional.forget_one())?;
        holders.insert(collection.definition.uuid, 1);
        self.collections.lock().push(Arc::clone(&collection));
        Ok(collection)
    }

    /// Passes its collections to the commit: they stay, unless the commit is known to have failed.
    pub(crate) fn commit(&self) -> Committing {
        let collections = std::mem::take(&mut *self.collections.lock());
        Committing { shared: Arc::clone(&self.shared), collections }
    }
}

impl Drop for HeldCollections {
    fn drop(&mut self) {
        for collection in self.collections.get_mut().drain(..) {
            self.shared.provisional.release(&self.shared.engine, &collection);
        }
    }
}

/// The collections of a transaction that is being committed. The task that waits for the outcome may be stopped when the
/// process ends; the commit goes on, and its writes must not go with an unconfirmed collection. So dropping this confirms.
pub(crate) struct Committing {
    shared: Arc<SharedState>,
    collections: Vec<Arc<Collection>>,
}

impl Committing {
    /// Releases the collections of a commit that has failed.
    pub(crate) fn release(mut self) {
        for collection in self.collections.drain(..) {
            self.shared.provisional.release(&self.shared.engine, &collection);
        }
    }
}

impl Drop for Committing {
    fn drop(&mut self) {
        for collection in self.collections.drain(..) {
            self.shared.provisional.confirm(&collection);
        }
    }
}

#[cfg(test)]
impl Provisional {
    /// Runs `work` while no collection can be made or dropped.
    pub(crate) fn stand_still<T>(&self, work: impl FnOnce() -> T) -> T {
        let _still = self.holders.lock();
        work()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use bson::RawDocument;
    use storage::{ClockOptions, ManualClock, MemoryStore, Time};

    use super::*;
    use crate::access::catalog;

    fn shared() -> Arc<SharedState> {
        let clock = Arc::new(ManualClock::new(Time::from_seconds(1_700_000_000)));
        let store = Arc::new(MemoryStore::new(ClockOptions::new(clock)).unwrap());
        Arc::new(SharedState::new(Arc::new(Engine::open(store).unwrap())))
    }

    fn fresh() -> CollectionDefinition {
        catalog::definition(RawDocument::default()).unwrap()
    }

    #[test]
    fn who_uses_what_was_always_there_waits_for_no_transaction() {
        let shared = shared();
        let collection = shared.engine.create_collection("db", "c", fresh(), None).unwrap();
        let (say, hear) = mpsc::channel();
        std::thread::scope(|scope| {
            let heard = shared.provisional.stand_still(|| {
                scope.spawn(|| {
                    shared.provisional.confirm(&collection);
                    assert!(HeldCollections::new(&shared).find("db", "c").is_some());
                    say.send(()).unwrap();
                });
                hear.recv_timeout(Duration::from_secs(20))
            });
            assert_eq!(heard, Ok(()));
        });
    }

    #[test]
    fn what_is_counted_comes_to_nothing_whatever_becomes_of_it() {
        let shared = shared();
        let (held, other) = (HeldCollections::new(&shared), HeldCollections::new(&shared));
        let made = held.create("db", "c", fresh()).unwrap();
        held.create("db", "d", fresh()).unwrap();
        assert!(held.create("db", "c", fresh()).is_err());
        assert!(other.find("db", "c").is_some());
        shared.provisional.confirm(&made);
        shared.provisional.confirm(&made);
        assert!(!shared.provisional.is_empty());
        drop(held);
        drop(other);
        assert!(shared.provisional.is_empty());
        let there = |name| shared.engine.collection("db", name).is_some();
        assert!(there("c") && !there("d"));
    }

    #[test]
    fn a_collection_goes_only_with_a_commit_that_is_known_to_have_failed() {
        let shared = shared();
        for (name, fails) in [("unknown", false), ("failed", true)] {
            let held = HeldCollections::new(&shared);
            held.create("db", name, fresh()).unwrap();
            let made = held.commit();
            drop(held);
            if fails {
                made.release();
            } else {
                drop(made);
            }
            assert_eq!(shared.engine.collection("db", name).is_none(), fails, "{name}");
        }
        assert!(shared.provisional.is_empty());
    }
}

//! Collections that transactions have brought into being.
//!
//! The first write makes a collection, also within a transaction, where the write itself may come to nothing. Such a
//! collection is held by every open transaction that writes to it, and goes when the last of them has ended without a commit.
//! It is there to stay as soon as one of them has committed, or somebody outside of all transactions has used it.
//!
//! Others see it meanwhile, empty. What an open transaction has made when the process ends stays, empty as well.

use std::collections::HashMap;
use std::sync::Arc;

use engine::Engine;
use engine::collection::{Collection, CollectionDefinition};
use parking_lot::Mutex;

use crate::room::Common;

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Provisional {
    /// How many open transactions hold each, by its `uuid`.
    holders: Mutex<HashMap<[u8; 16], usize>>,
}

/// Those that one transaction holds. When it is dropped, it lets go of them.
pub(crate) struct Held {
    common: Arc<Common>,
    collections: Mutex<Vec<Arc<Collection>>>,
}

impl Provisional {
    /// A collection is used outside of transactions: it stays.
    pub(crate) fn confirm(&self, collection: &Collection) {
        self.holders.lock().remove(&collection.definition.uuid);
    }

    /// Lets go of a collection. It is dropped while nobody else can take hold of it.
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
    }
}

impl Held {
    pub(crate) fn new(common: &Arc<Common>) -> Held {
        Held { common: Arc::clone(common), collections: Mutex::default() }
    }

    /// The collection of that name. One that the transaction, or another one, has made is held from now on.
    pub(crate) fn find(&self, database: &str, name: &str) -> Option<Arc<Collection>> {
        let mut holders = self.common.provisional.holders.lock();
        let collection = self.common.engine.collection(database, name)?;
        if let Some(count) = holders.get_mut(&collection.definition.uuid) {
            let mut mine = self.collections.lock();
            if !mine.iter().any(|held| held.definition.uuid == collection.definition.uuid) {
                *count += 1;
                mine.push(Arc::clone(&collection));
            }
        }
        Some(collection)
    }

    /// Makes a collection and holds it.
    pub(crate) fn create(
        &self,
        database: &str,
        name: &str,
        definition: CollectionDefinition,
    ) -> engine::Result<Arc<Collection>> {
        let mut holders = self.common.provisional.holders.lock();
        let collection = self.common.engine.create_collection(database, name, definition, None)?;
        holders.insert(collection.definition.uuid, 1);
        self.collections.lock().push(Arc::clone(&collection));
        Ok(collection)
    }

    /// The transaction has committed: what it holds stays.
    pub(crate) fn confirm(&self) {
        for collection in self.collections.lock().drain(..) {
            self.common.provisional.confirm(&collection);
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        for collection in self.collections.get_mut().drain(..) {
            self.common.provisional.release(&self.common.engine, &collection);
        }
    }
}

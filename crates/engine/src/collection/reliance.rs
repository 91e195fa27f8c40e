//! What a transaction relies on besides the items that it writes: those that it was shown.
//!
//! If one of them dies before the commit, what was written because of it must not be (T16): the transaction conflicts. That
//! somebody changes or deletes such an item is no conflict, as ever under snapshot isolation.
//!
//! Not every item is remembered, as there may be millions: for each partition it is enough to know by which rules its items
//! were judged and when the first of them dies. Other rules at the commit are a conflict too, because then nobody knows which
//! of the items they have killed.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use storage::{Time, Transaction};

use super::Collection;
use crate::error::{Error, Result};
use crate::expiry::Policy;
use crate::gate::Gate;
use crate::header::Header;
use crate::keys::PartitionId;

/// The items that a transaction was shown.
#[derive(Debug, Default)]
pub(super) struct Reliance {
    partitions: Mutex<BTreeMap<PartitionId, Relied>>,
}

/// Those of one partition.
#[derive(Debug)]
struct Relied {
    namespace: String,
    policy: Arc<Policy>,
    /// When the first of them dies.
    death: Option<Time>,
}

impl Reliance {
    /// An item was shown that lives by the rules of this gate.
    pub(super) fn note(&self, collection: &Collection, gate: &Gate, header: &Header) {
        let mut partitions = self.partitions.lock();
        let relied = partitions.entry(gate.partition).or_insert_with(|| Relied {
            namespace: collection.namespace(),
            policy: Arc::clone(&gate.policy),
            death: None,
        });
        let death = gate.policy.death(header);
        relied.death = relied.death.into_iter().chain(death).min();
    }

    /// Where the items lie.
    pub(super) fn partitions(&self) -> Vec<PartitionId> {
        self.partitions.lock().keys().copied().collect()
    }

    /// A conflict if one of the items may have died.
    pub(super) fn check(&self, tx: &Transaction<'_>) -> Result<()> {
        for (partition, relied) in &*self.partitions.lock() {
            let gate = match Gate::for_write(tx, *partition) {
                // Dropped with everything in it: deleted, not expired.
                Err(Error::OwnerNotFound { .. }) => continue,
                gate => gate?,
            };
            if relied.death.is_some_and(|death| death <= gate.now) || !relied.policy.still_holds(&gate.policy)
            {
                let what = format!("a document of '{}' that the transaction has read", relied.namespace);
                return Err(Error::Conflict { what });
            }
        }
        Ok(())
    }
}

//! The items that a transaction has read and relies on, besides those that it writes.
//!
//! If one of them expires before the commit, writes that depend on it must not be committed (T16): the transaction
//! conflicts. A change or deletion of such an item by another writer is no conflict, as usual under snapshot isolation.
//!
//! There may be millions of items, so they are not stored one by one: for each partition it is enough to store the rules by
//! which its items were judged and when the first of them expires. Other rules at the commit are a conflict too, because then it is unknown
//! which of the items they have expired.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use storage::{Time, Transaction};

use super::Collection;
use crate::access::gate::Gate;
use crate::expiry::Policy;
use crate::expiry::header::Header;
use crate::keys::PartitionId;
use crate::types::error::{Error, Result};

/// The items that a transaction has read.
#[derive(Debug, Default)]
pub(super) struct Reliance {
    partitions: Mutex<BTreeMap<PartitionId, Relied>>,
}

/// The items read in one partition.
#[derive(Debug)]
struct Relied {
    namespace: String,
    policy: Arc<Policy>,
    /// When the first of them expires.
    expiry: Option<Time>,
}

impl Reliance {
    /// Notes the read of an item that is living by the rules of this gate.
    pub(super) fn note(&self, collection: &Collection, gate: &Gate, header: &Header) {
        let mut partitions = self.partitions.lock();
        let relied = partitions.entry(gate.partition).or_insert_with(|| Relied {
            namespace: collection.namespace(),
            policy: Arc::clone(&gate.policy),
            expiry: None,
        });
        let expiry = gate.policy.expiry_time(header);
        relied.expiry = relied.expiry.into_iter().chain(expiry).min();
    }

    /// Returns the partitions of the items.
    pub(super) fn partitions(&self) -> Vec<PartitionId> {
        self.partitions.lock().keys().copied().collect()
    }

    /// Returns a conflict if one of the items may have expired.
    pub(super) fn check(&self, tx: &Transaction<'_>) -> Result<()> {
        for (partition, relied) in &*self.partitions.lock() {
            let gate = match Gate::for_write(tx, *partition) {
                // Dropped with everything in it: deleted, not expired.
                Err(Error::OwnerNotFound { .. }) => continue,
                gate => gate?,
            };
            if relied.expiry.is_some_and(|expiry| expiry <= gate.now)
                || !relied.policy.still_holds(&gate.policy)
            {
                let what = format!("a document of '{}' that the transaction has read", relied.namespace);
                return Err(Error::Conflict { what });
            }
        }
        Ok(())
    }
}

//! Which documents the open transactions have written. Of two that write the same one, the second conflicts at once: it could
//! not commit after the first anyway. Writes outside of transactions claim nothing. Their callers may ask here first, and wait
//! until the transaction has ended; a write that does not wait wins over a transaction that is open.

use std::collections::HashMap;
use std::sync::Arc;

use document::ItemNumber;
use parking_lot::Mutex;

use crate::keys::PartitionId;

/// A document that is claimed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Claim {
    /// By the key of its `_id`, also of one that is not there yet.
    Id(Vec<u8>),
    /// By its number, which only stored documents have.
    Item(PartitionId, ItemNumber),
}

/// What is called when the transaction that holds a claim has ended.
type Ring = Box<dyn FnOnce() + Send>;

/// Claims of all open transactions.
#[derive(Default)]
pub(crate) struct Claims(Mutex<Held>);

#[derive(Default)]
struct Held {
    last_claimant: u64,
    by_document: HashMap<Claim, u64>,
    /// Who waits for the end of which transaction.
    waiting: HashMap<u64, Vec<Ring>>,
}

impl Claims {
    /// Has `ring` called when the transaction that has written the document ends. False, and nothing is called, if there is none.
    pub(super) fn when_released(&self, claim: &Claim, ring: Ring) -> bool {
        let mut held = self.0.lock();
        let Some(holder) = held.by_document.get(claim).copied() else { return false };
        held.waiting.entry(holder).or_default().push(ring);
        true
    }
}

/// One transaction among them. What it holds is free when it is dropped.
pub(super) struct Claimant {
    claims: Arc<Claims>,
    number: u64,
    held: Vec<Claim>,
}

impl Claimant {
    pub(super) fn new(claims: &Arc<Claims>) -> Claimant {
        let mut held = claims.0.lock();
        held.last_claimant += 1;
        Claimant { claims: Arc::clone(claims), number: held.last_claimant, held: Vec::new() }
    }

    /// Claims a document; false if another transaction holds it.
    pub(super) fn claim(&mut self, document: Claim) -> bool {
        let mut held = self.claims.0.lock();
        if let Some(holder) = held.by_document.get(&document) {
            return *holder == self.number;
        }
        held.by_document.insert(document.clone(), self.number);
        self.held.push(document);
        true
    }
}

impl Drop for Claimant {
    fn drop(&mut self) {
        let mut held = self.claims.0.lock();
        for document in &self.held {
            held.by_document.remove(document);
        }
        let waiting = held.waiting.remove(&self.number);
        drop(held);
        waiting.into_iter().flatten().for_each(|ring| ring());
    }
}

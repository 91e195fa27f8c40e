//! The documents that open transactions have written. If two transactions write the same document, the second conflicts at
//! once: it could not commit after the first anyway. Writes outside of transactions claim nothing. Their callers may check
//! here first, and wait until the transaction has ended; a write that does not wait wins over an open transaction.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use document::ItemNumber;
use parking_lot::Mutex;

use crate::keys::PartitionId;

/// A document that is claimed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Claim {
    /// By the key of its `_id`, also if it does not exist yet.
    Id(Vec<u8>),
    /// By its number, which only stored documents have.
    Item(PartitionId, ItemNumber),
}

/// The callback for the end of the transaction that holds a claim.
type Callback = Box<dyn FnOnce() + Send>;

/// Claims of all open transactions.
#[derive(Default)]
pub(crate) struct Claims {
    held: Mutex<Held>,
    /// The number of claims, for writes that check without a lock whether there are any.
    count: AtomicUsize,
}

#[derive(Default)]
struct Held {
    last_claimant: u64,
    by_document: HashMap<Claim, u64>,
    last_waiter: u64,
    /// The callbacks for the ends of transactions, by the number of the waiter.
    waiting: HashMap<u64, BTreeMap<u64, Callback>>,
}

impl Claims {
    /// Returns whether nothing is claimed.
    pub(super) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// Returns whether an open transaction has written the document.
    pub(super) fn holds(&self, claim: &Claim) -> bool {
        self.held.lock().by_document.contains_key(claim)
    }

    /// Calls `ring` when the transaction that has written the document ends. Returns `None`, and never calls it, if there is no
    /// such transaction.
    pub(super) fn when_released(self: &Arc<Self>, claim: &Claim, ring: Callback) -> Option<ReleaseWait> {
        let mut held = self.held.lock();
        let holder = held.by_document.get(claim).copied()?;
        held.last_waiter += 1;
        let number = held.last_waiter;
        held.waiting.entry(holder).or_default().insert(number, ring);
        Some(ReleaseWait { claims: Arc::clone(self), holder, number })
    }
}

/// A wait for the end of a transaction. Dropping it ends the wait without a call.
pub struct ReleaseWait {
    claims: Arc<Claims>,
    holder: u64,
    number: u64,
}

impl Drop for ReleaseWait {
    fn drop(&mut self) {
        let mut held = self.claims.held.lock();
        let ring = held.waiting.get_mut(&self.holder).and_then(|waiting| waiting.remove(&self.number));
        drop(held);
        drop(ring);
    }
}

/// One transaction. Dropping it releases its claims.
pub(super) struct Claimant {
    claims: Arc<Claims>,
    number: u64,
    held: Vec<Claim>,
}

impl Claimant {
    pub(super) fn new(claims: &Arc<Claims>) -> Claimant {
        let mut held = claims.held.lock();
        held.last_claimant += 1;
        Claimant { claims: Arc::clone(claims), number: held.last_claimant, held: Vec::new() }
    }

    /// Claims a document; false if another transaction holds it.
    pub(super) fn claim(&mut self, document: Claim) -> bool {
        let mut held = self.claims.held.lock();
        if let Some(holder) = held.by_document.get(&document) {
            return *holder == self.number;
        }
        held.by_document.insert(document.clone(), self.number);
        self.claims.count.fetch_add(1, Ordering::Release);
        self.held.push(document);
        true
    }
}

impl Drop for Claimant {
    fn drop(&mut self) {
        let mut held = self.claims.held.lock();
        for document in &self.held {
            held.by_document.remove(document);
        }
        self.claims.count.fetch_sub(self.held.len(), Ordering::Release);
        let waiting = held.waiting.remove(&self.number);
        drop(held);
        waiting.into_iter().flatten().for_each(|(_, ring)| ring());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(byte: u8) -> Claim {
        Claim::Id(vec![byte])
    }

    #[test]
    fn a_wait_that_is_given_up_leaves_nothing_behind() {
        let claims = Arc::new(Claims::default());
        assert!(claims.is_empty());
        let mut transaction = Claimant::new(&claims);
        assert!(transaction.claim(claim(1)) && transaction.claim(claim(1)));
        assert!(!claims.is_empty() && claims.holds(&claim(1)) && !claims.holds(&claim(2)));
        assert!(claims.when_released(&claim(2), Box::new(|| {})).is_none());
        let calls = Arc::new(AtomicUsize::new(0));
        let ring = || -> Callback {
            let calls = Arc::clone(&calls);
            Box::new(move || {
                calls.fetch_add(1, Ordering::Relaxed);
            })
        };
        let kept = claims.when_released(&claim(1), ring()).expect("it is claimed");
        let given_up = claims.when_released(&claim(1), ring()).expect("it is claimed");
        drop(given_up);
        assert_eq!(claims.held.lock().waiting.values().map(BTreeMap::len).sum::<usize>(), 1);
        drop(transaction);
        assert_eq!(calls.load(Ordering::Relaxed), 1, "the one that went on waiting");
        drop(kept);
        assert!(claims.is_empty() && claims.held.lock().waiting.is_empty());
    }
}

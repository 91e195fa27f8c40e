//! Which documents the open transactions have written. Of two that write the same one, the second conflicts at once: it could
//! not commit after the first anyway. Writes outside of transactions claim nothing; they win over a transaction that is open.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// Claims of all open transactions.
#[derive(Debug, Default)]
pub(crate) struct Claims(Mutex<Held>);

#[derive(Debug, Default)]
struct Held {
    last_claimant: u64,
    /// By the key that leads to a document.
    by_document: HashMap<Vec<u8>, u64>,
}

/// One transaction among them. What it holds is free when it is dropped.
#[derive(Debug)]
pub(super) struct Claimant {
    claims: Arc<Claims>,
    number: u64,
    held: Vec<Vec<u8>>,
}

impl Claimant {
    pub(super) fn new(claims: &Arc<Claims>) -> Claimant {
        let mut held = claims.0.lock();
        held.last_claimant += 1;
        Claimant { claims: Arc::clone(claims), number: held.last_claimant, held: Vec::new() }
    }

    /// Claims a document; false if another transaction holds it.
    pub(super) fn claim(&mut self, document: Vec<u8>) -> bool {
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
    }
}

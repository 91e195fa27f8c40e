//! Sequences of events: what a commit takes from the store, and the finer order within it.
//!
//! The store assigns one number per commit that changes something a client can see; a transactional batch takes one,
//! however many operations it has. The LSNs of the wire are counted separately, for each range:
//! [`lsn`](crate::types::lsn). Within the commit every event has a slot, so that each version of an item has its own
//! sequence, etag and feed position:
//!
//! ```text
//!   sequence of an event  =  number of the commit << 7  |  slot
//! ```
//!
//! Stores rely on this form (`storage`, `watermark.rs`).
//!
//! The purge takes none, so that no number reveals whether it has run.

use document::Sequence;
use storage::{SLOT_BITS, Transaction};

const SLOTS: u64 = 1 << SLOT_BITS;

/// The events of one transaction.
#[derive(Debug, Default)]
pub(crate) struct Events {
    taken: u64,
    commit: u64,
}

impl Events {
    /// Returns the next event's sequence. Takes a number from the store for the first one, and when the slots are
    /// used up.
    pub(crate) fn next(&mut self, tx: &mut Transaction<'_>) -> Sequence {
        let slot = self.taken % SLOTS;
        if slot == 0 {
            self.commit = tx.next_sequence();
        }
        self.taken += 1;
        Sequence(self.commit << SLOT_BITS | slot)
    }
}

/// Returns the number of the commit that an event belongs to.
pub(crate) fn commit_of(sequence: Sequence) -> u64 {
    sequence.0 >> SLOT_BITS
}

/// Returns the last sequence that an event of a commit can have: a feed that begins after the commit begins behind
/// it.
pub(crate) fn last_of_commit(commit: u64) -> Sequence {
    Sequence(commit << SLOT_BITS | (SLOTS - 1))
}

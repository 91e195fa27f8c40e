//! Sequences of events: what a commit takes from the store, and the finer order within it.
//!
//! The store hands out one number per commit that changes something a client can see; a transactional batch takes one,
//! however many operations it has. The LSNs of the wire are another count, of each range by itself: [`lsn`](crate::lsn). Within the commit every event has a slot, so that each
//! version of an item has a sequence, an etag and a feed position of its own:
//!
//! ```text
//!   sequence of an event  =  number of the commit << 7  |  slot
//! ```
//!
//! The purge takes none: nobody can tell by a number whether it has run.

use document::Sequence;
use storage::Transaction;

const SLOT_BITS: u32 = 7;
const SLOTS: u64 = 1 << SLOT_BITS;

/// The events of one transaction.
#[derive(Debug, Default)]
pub(crate) struct Events {
    taken: u64,
    commit: u64,
}

impl Events {
    /// The next event's sequence; takes a number from the store for the first one, and when the slots are used up.
    pub(crate) fn next(&mut self, tx: &mut Transaction<'_>) -> Sequence {
        let slot = self.taken % SLOTS;
        if slot == 0 {
            self.commit = tx.next_sequence();
        }
        self.taken += 1;
        Sequence(self.commit << SLOT_BITS | slot)
    }
}

/// The number of the commit that an event belongs to.
pub(crate) fn commit_of(sequence: Sequence) -> u64 {
    sequence.0 >> SLOT_BITS
}

/// The last sequence that an event of a commit can have: what a feed that begins after the commit has behind it.
pub(crate) fn last_of_commit(commit: u64) -> Sequence {
    Sequence(commit << SLOT_BITS | (SLOTS - 1))
}

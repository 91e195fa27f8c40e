//! Lower bounds of the number of index entries in ranges that recent queries have counted, so that the next query need
//! not count them again.
//!
//! A query counts the entries of a range to learn whether it is larger than some small number. Until the partition is
//! written to, its rules change, or one of the counted entries expires, there are at least as many. So a remembered
//! number changes no choice: counting would give the same.

use parking_lot::Mutex;
use query::Leaf;
use storage::Time;

use crate::keys::Generation;

/// Ranges that a partition remembers.
const FLOORS_MAX: usize = 16;

/// The state on which a number of living entries depends, besides the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EntryState {
    pub(crate) generation: Generation,
    /// The partition's last commit.
    pub(crate) lsn: u64,
    /// The version of its policy.
    pub(crate) policy: u64,
}

/// A number of entries that are living until a certain time.
#[derive(Debug, Clone)]
pub(crate) struct EntryFloor {
    pub(crate) state: EntryState,
    pub(crate) leaf: Leaf,
    pub(crate) living: usize,
    /// When the first of them may expire; `None` if none of them will.
    pub(crate) until: Option<Time>,
}

/// The ranges that a partition remembers, the newest last.
#[derive(Debug, Default)]
pub(crate) struct EntryFloors(Mutex<Vec<EntryFloor>>);

impl EntryFloors {
    /// Returns how many living entries a leaf is known to have at least.
    pub(crate) fn of(&self, leaf: &Leaf, state: EntryState, now: Time) -> usize {
        let floors = self.0.lock();
        let holds = |floor: &&EntryFloor| floor.state == state && floor.until.is_none_or(|until| now < until);
        floors.iter().filter(holds).find(|floor| floor.leaf == *leaf).map_or(0, |floor| floor.living)
    }

    /// Remembers a number instead of earlier ones of the same leaf and those of earlier states.
    pub(crate) fn remember(&self, floor: EntryFloor) {
        let mut floors = self.0.lock();
        floors.retain(|known| known.state == floor.state && known.leaf != floor.leaf);
        if floors.len() == FLOORS_MAX {
            floors.remove(0);
        }
        floors.push(floor);
    }
}

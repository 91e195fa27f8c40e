//! Open snapshots: counts reads, and waits for all snapshots opened before some moment.
//!
//! Removed data stays in the files as long as a snapshot from before may read it, and fjall does not report which are
//! open. So snapshots are counted in two *phases*. To wait, a thread switches to the other phase and waits until the
//! first one is empty: snapshots opened meanwhile are counted in the other phase, so the wait ends however busy the
//! store is.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

/// Open snapshots by phase.
#[derive(Default)]
pub(super) struct Readers {
    phase: AtomicUsize,
    open: [AtomicUsize; 2],
    /// Snapshots taken for users since the store was opened.
    taken: AtomicU64,
    /// Held during a wait: two waits that switch phases would count new snapshots as old ones.
    waiting: Mutex<()>,
}

impl Readers {
    /// Counts a snapshot about to be taken, and returns its phase.
    pub(super) fn enter(&self) -> usize {
        let phase = self.phase.load(Ordering::SeqCst) & 1;
        self.open[phase].fetch_add(1, Ordering::SeqCst);
        // A thread that found this phase empty before has committed what this snapshot must see.
        fence(Ordering::SeqCst);
        phase
    }

    /// Counts the close of a snapshot of this phase.
    pub(super) fn leave(&self, phase: usize) {
        self.open[phase].fetch_sub(1, Ordering::SeqCst);
    }

    /// Counts a snapshot taken for a user.
    pub(super) fn count(&self) {
        self.taken.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of snapshots taken for users.
    pub(super) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Waits until every snapshot that is open now is closed. Calls `pause` between two checks; when it returns false,
    /// gives up and returns false.
    pub(super) fn wait_for_all(&self, mut pause: impl FnMut() -> bool) -> bool {
        let _waiting = self.waiting.lock();
        // Snapshots that an earlier wait gave up on may still be in the other phase: wait for those, too.
        for _ in 0..2 {
            let old = self.phase.fetch_add(1, Ordering::SeqCst) & 1;
            fence(Ordering::SeqCst);
            while self.open[old].load(Ordering::SeqCst) > 0 {
                if !pause() {
                    return false;
                }
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::Readers;

    #[test]
    fn old_readers_are_waited_for_and_new_ones_are_not() {
        let readers = Readers::default();
        assert!(readers.wait_for_all(|| unreachable!("no snapshot is open")));
        let (old, mut newcomers, mut looks) = (readers.enter(), Vec::new(), 0);
        let done = readers.wait_for_all(|| {
            looks += 1;
            newcomers.push(readers.enter());
            match looks {
                3 => readers.leave(old),
                // Snapshots opened before the phase was switched again.
                6 => newcomers.drain(..3).for_each(|phase| readers.leave(phase)),
                _ => {}
            }
            looks < 10
        });
        assert_eq!((done, looks, newcomers.len()), (true, 6, 3));
    }

    #[test]
    fn a_wait_that_was_given_up_is_taken_up_by_the_next() {
        let readers = Readers::default();
        let old = readers.enter();
        for _ in 0..3 {
            assert!(!readers.wait_for_all(|| false));
        }
        readers.leave(old);
        assert!(readers.wait_for_all(|| false));
    }
}

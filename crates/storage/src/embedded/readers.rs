//! Who reads: enough to count what is read, and to wait for everybody who began before some moment.
//!
//! What was removed stays in the files as long as a snapshot from before may read it, and fjall does not say which are open.
//! So snapshots are counted in two *phases*. Whoever wants to wait turns to the other phase and waits until the first one is
//! empty: those who come meanwhile are counted elsewhere, so the wait ends however busy the store is.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

/// Open snapshots by phase.
#[derive(Default)]
pub(super) struct Readers {
    phase: AtomicUsize,
    open: [AtomicUsize; 2],
    /// Snapshots ever taken for users.
    taken: AtomicU64,
    /// Held by whoever waits: two who turn the phase would count newcomers as old ones.
    waiting: Mutex<()>,
}

impl Readers {
    /// A snapshot is about to be taken; it belongs to the phase that is returned.
    pub(super) fn enter(&self) -> usize {
        let phase = self.phase.load(Ordering::SeqCst) & 1;
        self.open[phase].fetch_add(1, Ordering::SeqCst);
        // Whoever found this phase empty before has committed what this snapshot must see.
        fence(Ordering::SeqCst);
        phase
    }

    /// A snapshot of that phase is closed.
    pub(super) fn leave(&self, phase: usize) {
        self.open[phase].fetch_sub(1, Ordering::SeqCst);
    }

    /// Counts a snapshot that was taken for a user.
    pub(super) fn count(&self) {
        self.taken.fetch_add(1, Ordering::Relaxed);
    }

    /// How many snapshots were taken for users.
    pub(super) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Waits until every snapshot that is open now is closed. `pause` is called between two looks; when it says false, the
    /// wait is given up, and false is returned.
    pub(super) fn wait_for_all(&self, mut pause: impl FnMut() -> bool) -> bool {
        let _waiting = self.waiting.lock();
        // Those whom an earlier wait gave up may still be in the other phase: they are waited for, too.
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
        assert!(readers.wait_for_all(|| unreachable!("nobody reads")));
        let (old, mut newcomers, mut looks) = (readers.enter(), Vec::new(), 0);
        let done = readers.wait_for_all(|| {
            looks += 1;
            newcomers.push(readers.enter());
            match looks {
                3 => readers.leave(old),
                // Those who came before the phase was turned again.
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

//! Wakes whoever runs the purge when something becomes due earlier than it knew, or when the clock is suspect (T34).
//!
//! Without it the loop would have to look every second; with it an idle store does nothing at all (T19).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::RwLock;
use storage::Time;

type Ring = Box<dyn Fn() + Send + Sync>;

/// The earliest known due time, and whom to tell.
#[derive(Default)]
pub(crate) struct Alarm {
    /// Milliseconds; the loop sleeps until then.
    sleeping_until: AtomicU64,
    /// Whether the clock was suspect when somebody last looked.
    suspect: AtomicBool,
    ring: RwLock<Option<Ring>>,
}

impl Alarm {
    /// Says what to call when work becomes due earlier.
    pub(crate) fn on_ring(&self, ring: Ring) {
        *self.ring.write() = Some(ring);
    }

    /// The loop is at work: whatever is set meanwhile may be missed by it, so it rings.
    pub(crate) fn awake(&self) {
        self.sleeping_until.store(u64::MAX, Ordering::Release);
    }

    /// The loop is going to sleep until `due`, or until it is rung.
    pub(crate) fn sleep_until(&self, due: Option<Time>) {
        self.sleeping_until.store(due.map_or(u64::MAX, Time::millis), Ordering::Release);
    }

    /// Something is due at `due`: rings if the loop would sleep past it.
    pub(crate) fn set(&self, due: Time) {
        let before = self.sleeping_until.fetch_min(due.millis(), Ordering::AcqRel);
        if due.millis() < before {
            self.ring();
        }
    }

    /// Rings if the clock has become suspect since somebody last looked, or has ceased to be: the loop is who says so in the
    /// log, and it may be asleep for long.
    pub(crate) fn clock_is_suspect(&self, suspect: bool) {
        if self.suspect.swap(suspect, Ordering::AcqRel) != suspect {
            self.ring();
        }
    }

    /// Whether the clock was suspect when it was last looked at.
    pub(crate) fn was_clock_suspect(&self) -> bool {
        self.suspect.load(Ordering::Acquire)
    }

    /// Rings in any case: the time or a policy has changed.
    pub(crate) fn ring(&self) {
        if let Some(ring) = &*self.ring.read() {
            ring();
        }
    }
}

impl std::fmt::Debug for Alarm {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Alarm").field("sleeping_until", &self.sleeping_until).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicU32;

    use super::*;

    fn counted(alarm: &Alarm) -> Arc<AtomicU32> {
        let rings = Arc::new(AtomicU32::new(0));
        let counter = Arc::clone(&rings);
        alarm.on_ring(Box::new(move || {
            counter.fetch_add(1, Ordering::Relaxed);
        }));
        rings
    }

    #[test]
    fn t34_a_suspicion_rings_once_and_its_end_once() {
        let alarm = Alarm::default();
        let rings = counted(&alarm);
        for (suspect, expected) in [(false, 0), (true, 1), (true, 1), (false, 2), (false, 2)] {
            alarm.clock_is_suspect(suspect);
            assert_eq!(rings.load(Ordering::Relaxed), expected);
        }
    }

    /// What is set while a step runs is not in the step's snapshot, so the step's own due time knows nothing of it.
    #[test]
    fn what_is_set_during_a_step_rings() {
        let alarm = Alarm::default();
        let rings = counted(&alarm);
        alarm.sleep_until(Some(Time::from_seconds(10)));
        alarm.awake();
        alarm.set(Time::from_seconds(20));
        assert_eq!(rings.load(Ordering::Relaxed), 1);
        alarm.sleep_until(Some(Time::from_seconds(30)));
        alarm.set(Time::from_seconds(30));
        assert_eq!(rings.load(Ordering::Relaxed), 1, "the loop wakes by itself then");
        alarm.set(Time::from_seconds(29));
        assert_eq!(rings.load(Ordering::Relaxed), 2);
    }
}

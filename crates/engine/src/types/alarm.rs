//! Wakes the purge loop when something becomes due earlier than the loop expects, or when the clock is suspect (T34).
//!
//! Without it the loop would have to poll every second; with it an idle store does no work (T19).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::RwLock;
use storage::Time;

type Callback = Box<dyn Fn() + Send + Sync>;

/// The earliest known due time, and the callback of the loop.
#[derive(Default)]
pub(crate) struct Alarm {
    /// Milliseconds; the loop sleeps until then.
    sleeping_until: AtomicU64,
    /// Whether the clock was suspect when it was last read.
    suspect: AtomicBool,
    ring: RwLock<Option<Callback>>,
}

impl Alarm {
    /// Sets the callback to call when work becomes due earlier.
    pub(crate) fn on_ring(&self, ring: Callback) {
        *self.ring.write() = Some(ring);
    }

    /// Notes that the loop is working: it may miss what is set meanwhile, so that calls the callback.
    pub(crate) fn awake(&self) {
        self.sleeping_until.store(u64::MAX, Ordering::Release);
    }

    /// Notes that the loop sleeps until `due`, or until it is woken.
    pub(crate) fn sleep_until(&self, due: Option<Time>) {
        self.sleeping_until.store(due.map_or(u64::MAX, Time::millis), Ordering::Release);
    }

    /// Notes that something is due at `due`: wakes the loop if it would sleep past it.
    pub(crate) fn set(&self, due: Time) {
        let before = self.sleeping_until.fetch_min(due.millis(), Ordering::AcqRel);
        if due.millis() < before {
            self.ring();
        }
    }

    /// Wakes the loop if the clock has become suspect since it was last read, or trusted again: the loop writes that
    /// to the log, and it may sleep for long.
    pub(crate) fn clock_is_suspect(&self, suspect: bool) {
        if self.suspect.swap(suspect, Ordering::AcqRel) != suspect {
            self.ring();
        }
    }

    /// Returns whether the clock was suspect when it was last read.
    pub(crate) fn was_clock_suspect(&self) -> bool {
        self.suspect.load(Ordering::Acquire)
    }

    /// Wakes the loop in any case: the time or a policy has changed.
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

    /// A due time that is set while a step runs is not in the step's snapshot, so the step's own due time does not include it.
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

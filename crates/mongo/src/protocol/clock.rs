//! The logical clock behind `operationTime` and `$clusterTime`: seconds and a counter within the second.
//!
//! It follows the engine's time, never goes back, and gives every write a time of its own. Clients gossip the greatest time
//! they have seen; the clock takes over a time a little ahead, so that a client with a time from an earlier process never
//! waits for it. It ignores a time far ahead: no client must be able to use up the clock.

use std::sync::atomic::{AtomicU64, Ordering};

use bson::Timestamp;
use storage::Time;

/// How far ahead of the time a client may move the clock.
const GOSSIP_AHEAD_SECONDS: u64 = 24 * 60 * 60;

/// The clock of one process.
#[derive(Debug, Default)]
pub(crate) struct ClusterClock {
    last: AtomicU64,
}

impl ClusterClock {
    /// Returns the time as it is.
    pub(crate) fn current(&self, now: Time) -> Timestamp {
        let floor = second(now);
        unpack(self.last.fetch_max(floor, Ordering::AcqRel).max(floor))
    }

    /// Returns a time of its own for a write.
    pub(crate) fn tick(&self, now: Time) -> Timestamp {
        let floor = second(now);
        let next = |last: u64| last.saturating_add(1).max(floor);
        let last = self.last.fetch_update(Ordering::AcqRel, Ordering::Acquire, |last| Some(next(last)));
        unpack(next(last.unwrap_or_else(|last| last)))
    }

    /// Takes over a time that a client has seen. Returns false if it lies too far ahead.
    pub(crate) fn observe(&self, seen: Timestamp, now: Time) -> bool {
        if u64::from(seen.seconds) > now.seconds() + GOSSIP_AHEAD_SECONDS {
            return false;
        }
        self.last.fetch_max(pack(seen), Ordering::AcqRel);
        true
    }
}

fn second(now: Time) -> u64 {
    pack(Timestamp { seconds: u32::try_from(now.seconds()).unwrap_or(u32::MAX), increment: 1 })
}

fn pack(timestamp: Timestamp) -> u64 {
    u64::from(timestamp.seconds) << 32 | u64::from(timestamp.increment)
}

fn unpack(packed: u64) -> Timestamp {
    Timestamp { seconds: (packed >> 32) as u32, increment: packed as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_have_times_of_their_own_and_time_never_goes_back() {
        let clock = ClusterClock::default();
        let at = |seconds, increment| Timestamp { seconds, increment };
        assert_eq!(clock.current(Time::from_seconds(10)), at(10, 1));
        assert_eq!(clock.tick(Time::from_seconds(10)), at(10, 2));
        assert_eq!(clock.tick(Time::from_seconds(10)), at(10, 3));
        assert_eq!(clock.current(Time::from_seconds(9)), at(10, 3));
        assert_eq!(clock.tick(Time::from_seconds(11)), at(11, 1));
        assert!(clock.observe(at(20, 7), Time::from_seconds(11)));
        assert_eq!(clock.tick(Time::from_seconds(12)), at(20, 8));
        assert!(!clock.observe(at(u32::MAX, u32::MAX), Time::from_seconds(12)));
        assert_eq!(clock.current(Time::from_seconds(12)), at(20, 8));
    }
}

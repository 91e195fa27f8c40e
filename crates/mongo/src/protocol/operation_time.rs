//! Times of operations: `operationTime` of replies and `clusterTime` of events, which are the same for a write and its event.
//!
//! ```text
//!   seconds   | millisecond in the second | number of the commit | 0 of a write or an expiry, 1 behind it |
//!   32 bits   | 10 bits                   | 19 bits              | 1 bit                                  |
//! ```
//!
//! A read gets the time behind the last commit that it can have seen, so that a stream which starts there shows every later
//! change and nothing twice. Only the last bits of a commit's number fit: they tell the commits of one millisecond apart.

use bson::Timestamp;
use engine::Position;
use storage::Time;

/// How many bits of a counter are left below the millisecond.
const ORDER_BITS: u32 = 20;

/// Returns the time of a change, or of an expiry, that stands at a position.
pub(crate) fn cluster_time(position: Position) -> Timestamp {
    stamp(position.time(), position.commit() << 1)
}

/// Returns the time behind the last commit, for a reader that begins now. The caller must ask for `now` before the commit.
pub(crate) fn behind(now: Time, last_commit: u64) -> Timestamp {
    stamp(now, last_commit << 1 | 1)
}

/// Returns the millisecond of a position, without the order of what happened in it. It grows with positions; beyond the
/// year 2106, which no timestamp can hold, it stays the last.
pub(crate) fn millisecond(position: Position) -> Timestamp {
    let time = stamp(position.time(), 0);
    let increment = if time.seconds == u32::MAX { u32::MAX } else { time.increment };
    Timestamp { increment, ..time }
}

fn stamp(time: Time, order: u64) -> Timestamp {
    let increment = (time.millis() % 1000) << ORDER_BITS | order & ((1 << ORDER_BITS) - 1);
    Timestamp {
        seconds: u32::try_from(time.seconds()).unwrap_or(u32::MAX),
        increment: u32::try_from(increment).unwrap_or(u32::MAX).max(1),
    }
}

/// Returns the millisecond of a time: of one that this module has made, or of any other, whose counter is small.
pub(crate) fn time_of(timestamp: Timestamp) -> Time {
    let millis = u64::from(timestamp.increment >> ORDER_BITS).min(999);
    Time::from_millis(u64::from(timestamp.seconds) * 1000 + millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_tells_the_millisecond_and_what_came_before_it() {
        let time = Time::from_millis(1_700_000_000_999);
        assert_eq!(time_of(cluster_time(Position::beginning_of(time))), time);
        let foreign = Timestamp { seconds: 1_700_000_000, increment: 7 };
        assert_eq!(time_of(foreign), Time::from_seconds(1_700_000_000));
        let write = |commit: u64| stamp(time, commit << 1);
        let later = stamp(Time::from_millis(1_700_000_001_000), 3 << 1);
        let times = [write(7), behind(time, 7), write(8), behind(time, 8), later];
        let packed = times.map(|time| u64::from(time.seconds) << 32 | u64::from(time.increment));
        assert!(packed.is_sorted_by(|one, other| one < other), "{times:?}");
    }
}

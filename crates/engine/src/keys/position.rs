//! The position of an event in the feed of all versions: readers keep it to resume from.

use document::{ItemNumber, Sequence};
use storage::Time;

use crate::expiry::{Millis, Moment};
use crate::keys;
use crate::types::events;

/// A position in the feed. Positions of one store are in the order in which things happened, also across partitions;
/// the bytes of [`Position::to_bytes`] sort as positions do.
///
/// A change has the time and sequence of its commit, an expiry the moment at which the item expired. Many items may
/// expire at one moment, so base and number of the item follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub(crate) time: Millis,
    pub(crate) order: Sequence,
    pub(crate) base: Millis,
    pub(crate) number: ItemNumber,
}

/// The length of a position's bytes.
const LENGTH: usize = 32;

impl Position {
    /// Returns the position of a change.
    pub(crate) fn of_change(time: Time, sequence: Sequence) -> Position {
        Position { time: millis(time), order: sequence, base: 0, number: ItemNumber(0) }
    }

    /// Returns the position of an expiry: the moment, then base and number of the expired item.
    pub(crate) fn of_expiry(moment: Moment, base: Millis, number: ItemNumber) -> Position {
        Position { time: moment.time, order: moment.sequence, base, number }
    }

    /// Returns the position of the expiry of an item that expired with its own write: directly behind that write.
    pub(crate) fn on_arrival(time: Time, sequence: Sequence, number: ItemNumber) -> Position {
        Position { number, ..Position::of_change(time, sequence) }
    }

    /// Returns the position before everything that happens in a millisecond.
    pub(crate) fn before(time: Millis) -> Position {
        Position { time, order: Sequence(0), base: Millis::MIN, number: ItemNumber(0) }
    }

    /// Returns the position behind everything up to a sequence in a millisecond.
    pub(crate) fn behind(time: Time, sequence: Sequence) -> Position {
        Position { time: millis(time), order: sequence, base: Millis::MAX, number: ItemNumber(u64::MAX) }
    }

    /// Returns the position before everything that happens at a time.
    pub fn beginning_of(time: Time) -> Position {
        Position::before(millis(time))
    }

    pub(crate) fn moment(self) -> Moment {
        Moment { time: self.time, sequence: self.order }
    }

    /// Returns the time at which the event happened.
    pub fn time(self) -> Time {
        Time::from_millis(self.time.max(0).unsigned_abs())
    }

    /// Returns the number of the commit that the position is at, or behind.
    pub fn commit(self) -> u64 {
        events::commit_of(self.order)
    }

    /// Returns the bytes in which the position is stored; they sort as positions do.
    pub fn to_bytes(self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        bytes[..8].copy_from_slice(&keys::ordered(self.time));
        bytes[8..16].copy_from_slice(&self.order.0.to_be_bytes());
        bytes[16..24].copy_from_slice(&keys::ordered(self.base));
        bytes[24..].copy_from_slice(&self.number.0.to_be_bytes());
        bytes
    }

    /// Reads a stored position back.
    pub fn from_bytes(bytes: [u8; LENGTH]) -> Position {
        let part = |at: usize| {
            let mut part = [0; 8];
            part.copy_from_slice(&bytes[at..at + 8]);
            part
        };
        Position {
            time: keys::from_ordered(part(0)),
            order: Sequence(u64::from_be_bytes(part(8))),
            base: keys::from_ordered(part(16)),
            number: ItemNumber(u64::from_be_bytes(part(24))),
        }
    }
}

/// Converts a time of the store.
pub(crate) fn millis(time: Time) -> Millis {
    Millis::try_from(time.millis()).unwrap_or(Millis::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t28_positions_sort_as_their_bytes_and_read_back() {
        let numbers = [0, 1, u64::MAX];
        let times = [Millis::MIN, -1, 0, 1, Millis::MAX];
        let mut positions = Vec::new();
        for time in times {
            for order in numbers {
                for base in times {
                    for number in numbers {
                        let (order, number) = (Sequence(order), ItemNumber(number));
                        positions.push(Position { time, order, base, number });
                    }
                }
            }
        }
        assert!(positions.is_sorted());
        assert!(positions.is_sorted_by_key(|position| position.to_bytes()));
        for position in positions {
            assert_eq!(Position::from_bytes(position.to_bytes()), position);
        }
    }

    #[test]
    fn t28_an_item_written_expired_expires_behind_its_own_write_and_before_the_next() {
        let (time, number) = (Time::from_millis(7), ItemNumber(900));
        let written = Position::of_change(time, Sequence(900));
        let expired = Position::on_arrival(time, Sequence(900), number);
        assert!(written < expired && expired < Position::of_change(time, Sequence(901)));
        assert!(Position::before(7) < written && expired < Position::behind(time, Sequence(900)));
    }
}

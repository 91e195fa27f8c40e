//! The mark of an index entry, its value: a bound of its item's expiry.
//!
//! ```text
//! value:  byte 0       bits 0-1 queue: 0 none, 1 inherit, 2 own; bit 2 date positions follow; bit 7 inexact
//!         8 bytes      base i64, milliseconds, big-endian, if there is a queue
//!         n * 10       (date queue u16, base i64), big-endian, to the end, if bit 2
//! ```
//!
//! The *mark* has the item's queue positions at the write that made the entry, or earlier bases in the same queues: a
//! bound, never behind the item (decision 0004).

use crate::expiry::{Millis, Queue, QueuePosition, QueuePositions};
use crate::types::error::{Error, Result};

const QUEUE_BITS: u8 = 0b0000_0011;
const DATES: u8 = 0b0000_0100;
const INEXACT: u8 = 0b1000_0000;
const BASE_BYTES: usize = 8;
const DATE_BYTES: usize = 2 + BASE_BYTES;

/// The value of an index entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark {
    /// A lower bound of the item's queue positions; `None` for an item that cannot expire.
    pub(crate) places: QueuePositions,
    /// Whether the key is less precise than the item's value: a cut string, 1 for 1.0, or only the type of an array.
    pub(crate) inexact: bool,
}

impl Mark {
    /// Returns the value's bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let QueuePositions { ttl, dates } = &self.places;
        let mut flags = ttl.map_or(0, |place| place.queue.number() as u8);
        flags |= if dates.is_empty() { 0 } else { DATES };
        flags |= if self.inexact { INEXACT } else { 0 };
        let mut bytes = Vec::with_capacity(1 + BASE_BYTES + dates.len() * DATE_BYTES);
        bytes.push(flags);
        if let Some(place) = ttl {
            bytes.extend_from_slice(&place.base.to_be_bytes());
        }
        for QueuePosition { queue, base } in dates {
            bytes.extend_from_slice(&queue.number().to_be_bytes());
            bytes.extend_from_slice(&base.to_be_bytes());
        }
        bytes
    }

    /// Reads the value back.
    pub(crate) fn decode(value: &[u8]) -> Result<Mark> {
        Mark::try_decode(value).ok_or_else(|| Error::Corrupt("the value of an index entry".into()))
    }

    fn try_decode(value: &[u8]) -> Option<Mark> {
        let (flags, rest) = value.split_first()?;
        let queue = match flags & QUEUE_BITS {
            0 => None,
            1 => Some(Queue::Inherit),
            2 => Some(Queue::Own),
            _ => return None,
        };
        let (base, dates) = rest.split_at_checked(if queue.is_some() { BASE_BYTES } else { 0 })?;
        if flags & !(QUEUE_BITS | DATES | INEXACT) != 0 || (flags & DATES != 0) == dates.is_empty() {
            return None;
        }
        let place = |queue, base: &[u8]| {
            Some(QueuePosition { queue, base: Millis::from_be_bytes(base.try_into().ok()?) })
        };
        let date = |bytes: &[u8]| {
            let (queue, base) = bytes.split_first_chunk()?;
            place(Queue::date(u16::from_be_bytes(*queue))?, base)
        };
        let ttl = match queue {
            Some(queue) => Some(place(queue, base)?),
            None => None,
        };
        let dates = dates.chunks(DATE_BYTES).map(date).collect::<Option<Vec<_>>>()?;
        Some(Mark { places: QueuePositions { ttl, dates }, inexact: flags & INEXACT != 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_reads_back_as_written() {
        let place = |queue, base| QueuePosition { queue, base };
        let by_ttl = [None, Some(place(Queue::Inherit, 6)), Some(place(Queue::Own, Millis::MIN))];
        let by_date = [vec![], vec![place(Queue::Date(16), -1), place(Queue::Date(u16::MAX), Millis::MAX)]];
        for ttl in by_ttl {
            for dates in &by_date {
                for inexact in [false, true] {
                    let mark = Mark { places: QueuePositions { ttl, dates: dates.clone() }, inexact };
                    assert_eq!(Mark::decode(&mark.encode()).as_ref(), Ok(&mark));
                }
            }
        }
        let damaged: [&[u8]; 9] = [
            &[],
            &[0, 0],
            &[1, 2],
            &[3; 9],
            &[0x41; 9],
            &[1; 10],
            &[DATES],
            &[DATES, 0, 15, 0, 0, 0, 0, 0, 0, 0, 0],
            &[DATES, 0, 16, 0, 0, 0, 0, 0, 0, 0],
        ];
        for damaged in damaged {
            assert!(Mark::decode(damaged).is_err(), "{damaged:?}");
        }
    }

    /// Marks without dates are stored as they were before there were date rules.
    #[test]
    fn a_mark_without_dates_has_no_byte_for_them() {
        let place = QueuePosition { queue: Queue::Own, base: 5 };
        let mark = Mark { places: place.into(), inexact: true };
        assert_eq!(mark.encode(), [0x82, 0, 0, 0, 0, 0, 0, 0, 5]);
        assert_eq!(Mark { places: QueuePositions::default(), inexact: false }.encode(), [0]);
    }
}

//! Index entries as they are read back: which item, what it says of the value, and what it says of the item's death.
//!
//! ```text
//! value:  byte 0       bits 0-1 queue: 0 none, 1 inherit, 2 own; bit 2 date places follow; bit 7 inexact
//!         8 bytes      base i64, milliseconds, big-endian, if there is a queue
//!         n * 10       (date queue u16, base i64), big-endian, to the end, if bit 2
//! ```
//!
//! The *mark* has the item's places at the write that made the entry, or earlier bases in the same queues: a bound, never
//! behind the item (decision 0004). An entry whose mark is not among the dead belongs to a living item; for the others the
//! item's header is asked ([`View::is_living`](crate::gate::View::is_living)).

use bytes::Bytes;
use document::{ItemNumber, Value};

use super::term;
use crate::error::{Error, Result};
use crate::expiry::{Millis, Place, Places, Queue};

const QUEUE_BITS: u8 = 0b0000_0011;
const DATES: u8 = 0b0000_0100;
const INEXACT: u8 = 0b1000_0000;
const NUMBER_BYTES: usize = 8;
const BASE_BYTES: usize = 8;
const DATE_BYTES: usize = 2 + BASE_BYTES;

/// What an entry's value says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark {
    /// A lower bound of the item's places; none for an item that cannot die.
    pub(crate) places: Places,
    /// Whether the key tells less than the item's value: a cut string, 1 for 1.0, the mere type of an array.
    pub(crate) inexact: bool,
}

impl Mark {
    /// The value's bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let Places { ttl, dates } = &self.places;
        let mut flags = ttl.map_or(0, |place| place.queue.number() as u8);
        flags |= if dates.is_empty() { 0 } else { DATES };
        flags |= if self.inexact { INEXACT } else { 0 };
        let mut bytes = Vec::with_capacity(1 + BASE_BYTES + dates.len() * DATE_BYTES);
        bytes.push(flags);
        if let Some(place) = ttl {
            bytes.extend_from_slice(&place.base.to_be_bytes());
        }
        for Place { queue, base } in dates {
            bytes.extend_from_slice(&queue.number().to_be_bytes());
            bytes.extend_from_slice(&base.to_be_bytes());
        }
        bytes
    }

    /// The value read back.
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
        let place =
            |queue, base: &[u8]| Some(Place { queue, base: Millis::from_be_bytes(base.try_into().ok()?) });
        let date = |bytes: &[u8]| {
            let (queue, base) = bytes.split_first_chunk()?;
            place(Queue::date(u16::from_be_bytes(*queue))?, base)
        };
        let ttl = match queue {
            Some(queue) => Some(place(queue, base)?),
            None => None,
        };
        let dates = dates.chunks(DATE_BYTES).map(date).collect::<Option<Vec<_>>>()?;
        Some(Mark { places: Places { ttl, dates }, inexact: flags & INEXACT != 0 })
    }
}

/// One entry of a path, a composite index, a shape or the outliers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IndexEntry {
    /// What stands between the prefix of the range and the number: a term, values of a composite index, or nothing.
    pub(crate) term: Bytes,
    /// The item.
    pub(crate) number: ItemNumber,
    /// What the value says.
    pub(crate) mark: Mark,
}

impl IndexEntry {
    /// Takes an entry apart. `prefix` is how many bytes of the key come before the term: the length of the prefix that the
    /// range was made from ([`Index`](super::scan::Index)).
    pub(crate) fn decode(prefix: usize, key: &Bytes, value: &[u8]) -> Result<IndexEntry> {
        let end = key.len().checked_sub(NUMBER_BYTES).filter(|end| *end >= prefix);
        let end = end.ok_or_else(|| Error::Corrupt("an index key of wrong length".into()))?;
        let number = key[end..].first_chunk().expect("the length was checked");
        Ok(IndexEntry {
            term: key.slice(prefix..end),
            number: ItemNumber(u64::from_be_bytes(*number)),
            mark: Mark::decode(value)?,
        })
    }

    /// The scalar of a path entry; none if the item must be asked, because the string was cut. Where the mark says inexact,
    /// a number may be written in another way in the item.
    pub(crate) fn scalar(&self) -> Result<Option<Value>> {
        term::decode(&self.term)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_reads_back_as_written() {
        let place = |queue, base| Place { queue, base };
        let by_ttl = [None, Some(place(Queue::Inherit, 6)), Some(place(Queue::Own, Millis::MIN))];
        let by_date = [vec![], vec![place(Queue::Date(16), -1), place(Queue::Date(u16::MAX), Millis::MAX)]];
        for ttl in by_ttl {
            for dates in &by_date {
                for inexact in [false, true] {
                    let mark = Mark { places: Places { ttl, dates: dates.clone() }, inexact };
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

    /// Marks without dates lie as they did before there were date rules.
    #[test]
    fn a_mark_without_dates_has_no_byte_for_them() {
        let place = Place { queue: Queue::Own, base: 5 };
        let mark = Mark { places: place.into(), inexact: true };
        assert_eq!(mark.encode(), [0x82, 0, 0, 0, 0, 0, 0, 0, 5]);
        assert_eq!(Mark { places: Places::default(), inexact: false }.encode(), [0]);
    }

    #[test]
    fn an_entry_is_taken_apart_behind_its_prefix() {
        let mut key = vec![1, 2, 3];
        key.extend_from_slice(&[0x05, 0xBF, 0xF0, 0, 0, 0, 0, 0, 0, 0x80]);
        key.extend_from_slice(&9_u64.to_be_bytes());
        let entry = IndexEntry::decode(3, &key.clone().into(), &[0]).expect("well-formed");
        assert_eq!((entry.number, entry.scalar()), (ItemNumber(9), Ok(Some(Value::Int(1)))));
        assert!(IndexEntry::decode(key.len() - 7, &key.into(), &[0]).is_err());
    }
}

//! Index entries as they are read back: which item, what it says of the value, and what it says of the item's death.
//!
//! ```text
//! value:  byte 0       bits 0-1 queue: 0 immortal, 1 inherit, 2 own; bit 7 inexact
//!         bytes 1..9   base i64, milliseconds, big-endian, if there is a queue
//! ```
//!
//! The *mark* is the item's place at the write that made the entry, or an earlier base in the same queue: a bound, never
//! behind the item (decision 0004). An entry whose mark is not among the dead belongs to a living item; for the others the
//! item's header is asked ([`View::is_living`](crate::gate::View::is_living)).

use bytes::Bytes;
use document::{ItemNumber, Value};

use super::term;
use crate::error::{Error, Result};
use crate::expiry::{Millis, Place, Queue};

const QUEUE_BITS: u8 = 0b0000_0011;
const INEXACT: u8 = 0b1000_0000;
const NUMBER_BYTES: usize = 8;

/// What an entry's value says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    /// A lower bound of the item's place; none for an item that cannot die.
    pub(crate) place: Option<Place>,
    /// Whether the key tells less than the item's value: a cut string, 1 for 1.0, the mere type of an array.
    pub(crate) inexact: bool,
}

impl Mark {
    /// The value's bytes.
    pub(super) fn encode(self) -> Vec<u8> {
        let flags = if self.inexact { INEXACT } else { 0 };
        match self.place {
            None => vec![flags],
            Some(Place { queue, base }) => {
                let mut bytes = Vec::with_capacity(9);
                bytes.push(flags | queue.number() as u8);
                bytes.extend_from_slice(&base.to_be_bytes());
                bytes
            }
        }
    }

    /// The value read back.
    pub(crate) fn decode(value: &[u8]) -> Result<Mark> {
        let parse = || {
            let (flags, base) = value.split_first()?;
            if flags & !(QUEUE_BITS | INEXACT) != 0 {
                return None;
            }
            let queue = match flags & QUEUE_BITS {
                0 => None,
                1 => Some(Queue::Inherit),
                2 => Some(Queue::Own),
                _ => return None,
            };
            let place = match queue {
                None if base.is_empty() => None,
                None => return None,
                Some(queue) => Some(Place { queue, base: Millis::from_be_bytes(base.try_into().ok()?) }),
            };
            Some(Mark { place, inexact: flags & INEXACT != 0 })
        };
        parse().ok_or_else(|| Error::Corrupt("the value of an index entry".into()))
    }

    /// Whether an entry of the item may keep this mark when its place becomes `place`.
    pub(super) fn bounds(self, place: Option<Place>) -> bool {
        match (self.place, place) {
            (None, None) => true,
            (Some(bound), Some(place)) => bound.queue == place.queue && bound.base <= place.base,
            (None, Some(_)) | (Some(_), None) => false,
        }
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

    const INHERIT: Option<Place> = Some(Place { queue: Queue::Inherit, base: 6 });

    #[expect(clippy::unnecessary_wraps, reason = "an item that cannot die has none")]
    fn own(base: Millis) -> Option<Place> {
        Some(Place { queue: Queue::Own, base })
    }

    #[test]
    fn a_mark_reads_back_as_written() {
        for place in [None, INHERIT, own(-1), own(Millis::MAX)] {
            for inexact in [false, true] {
                let mark = Mark { place, inexact };
                assert_eq!(Mark::decode(&mark.encode()), Ok(mark));
            }
        }
        for damaged in [&[][..], &[0, 0], &[1, 2], &[3; 9], &[0x41; 9], &[1; 10]] {
            assert!(Mark::decode(damaged).is_err(), "{damaged:?}");
        }
    }

    #[test]
    fn t11_a_mark_bounds_what_comes_later_in_the_same_queue() {
        let mark = |place| Mark { place, inexact: false };
        assert!(mark(None).bounds(None));
        assert!(mark(own(5)).bounds(own(5)) && mark(own(5)).bounds(own(6)));
        assert!(!mark(own(5)).bounds(own(4)), "an earlier death");
        assert!(!mark(own(5)).bounds(INHERIT), "another queue");
        assert!(!mark(own(5)).bounds(None) && !mark(None).bounds(own(5)));
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

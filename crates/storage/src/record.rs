//! The store's own record: format, commit number, sequence and clock, rewritten by every commit.
//!
//! It is one entry in a keyspace of its own that callers cannot see, so that a commit costs one entry more and
//! everything in it becomes durable together. Layout, little-endian, 45 bytes:
//!
//! | bytes | content |
//! |---|---|
//! | 4 | format, [`FORMAT`] |
//! | 8 | commit: how many commits this store has seen |
//! | 8 | sequence: the last one taken |
//! | 8 | clock bound, raw milliseconds |
//! | 8 | test clock's advance in milliseconds |
//! | 1 | 1 if the clock is suspect, else 0 |
//! | 8 | last trusted raw time in milliseconds, 0 if not suspect |

use crate::clock::ClockRecord;
use crate::{Error, Result, Time};

/// The format this program writes: the layout of this record and all that the engine puts beside it.
pub(crate) const FORMAT: u32 = 7;

/// The formats this program reads. A store of an older one becomes one of [`FORMAT`] with its first commit; what that takes
/// beyond this record is the engine's business.
pub(crate) const READABLE: std::ops::RangeInclusive<u32> = 1..=FORMAT;

const LENGTH: usize = 45;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StoreRecord {
    pub(crate) commit: u64,
    pub(crate) sequence: u64,
    pub(crate) clock: ClockRecord,
}

impl StoreRecord {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(LENGTH);
        bytes.extend(FORMAT.to_le_bytes());
        bytes.extend(self.commit.to_le_bytes());
        bytes.extend(self.sequence.to_le_bytes());
        bytes.extend(self.clock.bound.millis().to_le_bytes());
        bytes.extend(self.clock.advanced_ms.to_le_bytes());
        bytes.push(u8::from(self.clock.trusted.is_some()));
        bytes.extend(self.clock.trusted.unwrap_or_default().millis().to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let damaged = || Error::Corrupt { what: "the store record is unreadable".to_owned() };
        let (format, rest) = bytes.split_first_chunk::<4>().ok_or_else(damaged)?;
        let found = u32::from_le_bytes(*format);
        if !READABLE.contains(&found) {
            return Err(Error::Unsupported { found, supported: FORMAT });
        }
        let numbers: &[u8; LENGTH - 4] = rest.try_into().map_err(|_| damaged())?;
        let number = |at: usize| {
            let mut number = [0; 8];
            number.copy_from_slice(&numbers[at..at + 8]);
            u64::from_le_bytes(number)
        };
        let trusted = match numbers[32] {
            0 => None,
            1 => Some(Time::from_millis(number(33))),
            _ => return Err(damaged()),
        };
        let clock = ClockRecord { bound: Time::from_millis(number(16)), advanced_ms: number(24), trusted };
        Ok(Self { commit: number(0), sequence: number(8), clock })
    }
}

#[cfg(test)]
mod tests {
    use super::StoreRecord;
    use crate::clock::ClockRecord;
    use crate::{Error, Time};

    #[test]
    fn a_record_reads_back_as_written() {
        for trusted in [None, Some(Time::from_millis(77))] {
            let clock = ClockRecord { bound: Time::from_millis(99), advanced_ms: 5, trusted };
            let record = StoreRecord { commit: 3, sequence: 12, clock };
            assert_eq!(StoreRecord::decode(&record.encode()), Ok(record));
        }
    }

    #[test]
    fn damaged_and_foreign_records_are_refused() {
        let bytes = StoreRecord::default().encode();
        for length in 0..bytes.len() {
            assert!(matches!(StoreRecord::decode(&bytes[..length]), Err(Error::Corrupt { .. })));
        }
        let mut other = bytes;
        for found in [0, 8] {
            other[0] = found;
            let found = u32::from(found);
            assert_eq!(StoreRecord::decode(&other), Err(Error::Unsupported { found, supported: 7 }));
        }
        for older in [1, 2, 3, 4, 5, 6] {
            other[0] = older;
            assert_eq!(StoreRecord::decode(&other), Ok(StoreRecord::default()), "it is taken over");
        }
    }
}

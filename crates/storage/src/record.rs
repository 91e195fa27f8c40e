//! The store's own record: format, commit number, sequence and clock, rewritten by every commit.
//!
//! It is one entry in a keyspace of its own that callers cannot see, so that a commit costs one entry more and
//! everything in it becomes durable together. Layout, little-endian, 85 bytes:
//!
//! | bytes | content |
//! |---|---|
//! | 4 | format, [`FORMAT`] |
//! | 8 | commit: how many commits this store has seen |
//! | 8 | sequence: the last one taken |
//! | 8 | clock bound, raw milliseconds |
//! | 8 | test clock's advance in milliseconds |
//! | 1 | why the clock is suspect: 0 not, 1 found at start, 2 a leap while running, 3 the wall clock is behind |
//! | 8 | bound of the trusted raw time in milliseconds, 0 if not suspect |
//! | 16 | boot id of the machine that wrote the record, 0 if unknown |
//! | 8 | boot time at which it was written, milliseconds |
//! | 8 | raw time at that boot time, milliseconds |
//! | 8 | how far behind the shown time an operator has accepted the wall clock to be, milliseconds |
//!
//! Formats 1 to 7 end after the trusted time: 45 bytes.

use crate::clock::{BootId, BootLine, ClockRecord, Leap, RecordedSuspicion};
use crate::{Error, Result, Time};

/// The format this program writes: the layout of this record and all that the engine puts beside it.
pub const FORMAT: u32 = 11;

/// The formats this program reads. The first commit converts an older store to [`FORMAT`]; the engine converts
/// everything beyond this record.
pub(crate) const READABLE: std::ops::RangeInclusive<u32> = 1..=FORMAT;

/// The first format whose record names the boot of the machine.
const FORMAT_WITH_BOOT: u32 = 8;

const LENGTH: usize = 85;
const LENGTH_WITHOUT_BOOT: usize = 45;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StoreRecord {
    pub(crate) commit: u64,
    pub(crate) sequence: u64,
    pub(crate) clock: ClockRecord,
}

impl StoreRecord {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let ClockRecord { bound, advanced_ms, suspicion, boot, accepted_ms } = self.clock;
        let mut bytes = Vec::with_capacity(LENGTH);
        bytes.extend(FORMAT.to_le_bytes());
        bytes.extend(self.commit.to_le_bytes());
        bytes.extend(self.sequence.to_le_bytes());
        bytes.extend(bound.millis().to_le_bytes());
        bytes.extend(advanced_ms.to_le_bytes());
        bytes.push(suspicion.map_or(0, |suspicion| leap_number(suspicion.leap)));
        let trusted = suspicion.map_or(Time::ZERO, |suspicion| suspicion.trusted);
        bytes.extend(trusted.millis().to_le_bytes());
        bytes.extend(boot.map_or([0; 16], |boot| boot.id.bytes()));
        bytes.extend(boot.map_or(0, |boot| boot.boot_ms).to_le_bytes());
        bytes.extend(boot.map_or(0, |boot| boot.line.millis()).to_le_bytes());
        bytes.extend(accepted_ms.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let mut fields = Fields(bytes);
        let found = u32::from_le_bytes(fields.take()?);
        if !READABLE.contains(&found) {
            return Err(Error::Unsupported { found, supported: FORMAT });
        }
        let length = if found < FORMAT_WITH_BOOT { LENGTH_WITHOUT_BOOT } else { LENGTH };
        if bytes.len() != length {
            return Err(damaged());
        }
        let (commit, sequence) = (fields.number()?, fields.number()?);
        let (bound, advanced_ms) = (fields.time()?, fields.number()?);
        let [leap] = fields.take()?;
        let trusted = fields.time()?;
        let suspicion = leap_of(leap)?.map(|leap| RecordedSuspicion { leap, trusted });
        let mut clock = ClockRecord { bound, advanced_ms, suspicion, ..ClockRecord::default() };
        if found >= FORMAT_WITH_BOOT {
            let (id, boot_ms, line) = (fields.take()?, fields.number()?, fields.time()?);
            clock.boot = BootId::new(id).map(|id| BootLine { id, boot_ms, line });
            clock.accepted_ms = fields.number()?;
        }
        Ok(Self { commit, sequence, clock })
    }
}

/// The fields of a record, from the front.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk::<N>().ok_or_else(damaged)?;
        self.0 = rest;
        Ok(*field)
    }

    fn number(&mut self) -> Result<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn time(&mut self) -> Result<Time> {
        self.number().map(Time::from_millis)
    }
}

fn leap_number(leap: Leap) -> u8 {
    match leap {
        Leap::Start => 1,
        Leap::Running => 2,
        Leap::Behind => 3,
    }
}

fn leap_of(number: u8) -> Result<Option<Leap>> {
    match number {
        0 => Ok(None),
        1 => Ok(Some(Leap::Start)),
        2 => Ok(Some(Leap::Running)),
        3 => Ok(Some(Leap::Behind)),
        _ => Err(damaged()),
    }
}

fn damaged() -> Error {
    Error::Corrupt { what: "the store record is unreadable".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::{FORMAT, LENGTH_WITHOUT_BOOT, StoreRecord};
    use crate::clock::{BootId, BootLine, ClockRecord, Leap, RecordedSuspicion};
    use crate::{Error, Time};

    fn suspicion(leap: Leap) -> RecordedSuspicion {
        RecordedSuspicion { leap, trusted: Time::from_millis(77) }
    }

    #[test]
    fn a_record_reads_back_as_written() {
        let boot = BootId::new([9; 16]).map(|id| BootLine { id, boot_ms: 4, line: Time::from_millis(98) });
        for boot in [None, boot] {
            let leaps = [Leap::Start, Leap::Running, Leap::Behind].map(|leap| Some(suspicion(leap)));
            for suspicion in leaps.into_iter().chain([None]) {
                let bound = Time::from_millis(99);
                let clock = ClockRecord { bound, advanced_ms: 5, suspicion, boot, accepted_ms: 6 };
                let record = StoreRecord { commit: 3, sequence: 12, clock };
                assert_eq!(StoreRecord::decode(&record.encode()), Ok(record));
            }
        }
    }

    #[test]
    fn damaged_and_foreign_records_are_refused() {
        let bytes = StoreRecord::default().encode();
        for length in 0..bytes.len() {
            assert!(matches!(StoreRecord::decode(&bytes[..length]), Err(Error::Corrupt { .. })));
        }
        let mut other = bytes;
        for found in [0, FORMAT + 1] {
            other[..4].copy_from_slice(&found.to_le_bytes());
            assert_eq!(StoreRecord::decode(&other), Err(Error::Unsupported { found, supported: FORMAT }));
        }
    }

    #[test]
    fn a_record_of_an_older_format_has_no_boot_and_is_taken_over() {
        let boot = BootId::new([9; 16]).map(|id| BootLine { id, boot_ms: 4, line: Time::from_millis(98) });
        let suspicion = Some(suspicion(Leap::Start));
        let clock =
            ClockRecord { bound: Time::from_millis(99), advanced_ms: 5, suspicion, boot, accepted_ms: 6 };
        let record = StoreRecord { commit: 3, sequence: 12, clock };
        let bytes = record.encode();
        let expected = StoreRecord { clock: ClockRecord { boot: None, accepted_ms: 0, ..clock }, ..record };
        for older in 1..=7 {
            let mut bytes = bytes.clone();
            bytes[0] = older;
            assert!(matches!(StoreRecord::decode(&bytes), Err(Error::Corrupt { .. })), "it is too long");
            bytes.truncate(LENGTH_WITHOUT_BOOT);
            assert_eq!(StoreRecord::decode(&bytes), Ok(expected));
        }
    }
}

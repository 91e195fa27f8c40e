//! Room on the disk.
//!
//! A commit that meets the end of the disk fails half-way, and nothing is written any more until a restart. So what makes a store
//! larger is refused before that, and taken again as soon as there is room. What makes room is taken for longer: whoever deletes,
//! and the purge, must be able to write for it.

use crate::{Error, Result};
use std::path::Path;

/// At most this part of a disk is kept back from users, so that a small one is not all reserve.
const RESERVE_PART: u64 = 20;

/// What is left on a store's disk, and how much of that is not for everybody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// Bytes that could be written.
    pub free_bytes: u64,
    /// Bytes that are not for what makes the store larger, those included which only the store itself may use.
    pub reserved_bytes: u64,
    /// Bytes that only the store itself may use: what it has in memory must still find room in tables.
    pub unwritten_bytes: u64,
}

impl Room {
    /// The disk below `directory`, of which `reserve` bytes are kept back beside the unwritten ones. None if the system does not
    /// tell.
    pub(crate) fn of(directory: &Path, reserve: u64, unwritten_bytes: u64) -> Option<Self> {
        let disk = rustix::fs::statvfs(directory).ok().filter(|disk| disk.f_blocks > 0)?;
        let reserve = reserve.min(disk.f_blocks.saturating_mul(disk.f_frsize) / RESERVE_PART);
        let free_bytes = disk.f_bavail.saturating_mul(disk.f_frsize);
        Some(Self { free_bytes, reserved_bytes: reserve + unwritten_bytes, unwritten_bytes })
    }

    /// Whether what makes the store larger is refused.
    pub fn is_short(self) -> bool {
        self.free_bytes < self.reserved_bytes
    }

    /// An error if there is none for what makes the store larger.
    pub(crate) fn require(self) -> Result<()> {
        self.check(1, self.reserved_bytes)
    }

    /// An error unless so many bytes can be written and leave so many.
    pub(crate) fn check(self, wanted_bytes: u64, kept_bytes: u64) -> Result<()> {
        let free_bytes = self.free_bytes;
        if free_bytes < kept_bytes.saturating_add(wanted_bytes) {
            return Err(Error::NoRoom { wanted_bytes, free_bytes, kept_bytes });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_twentieth_of_the_disk_is_kept_back_at_most_and_what_is_still_to_be_written() {
        let directory = tempfile::tempdir().unwrap();
        let kept =
            |reserve, unwritten| Room::of(directory.path(), reserve, unwritten).unwrap().reserved_bytes;
        assert_eq!((kept(0, 0), kept(1, 0), kept(1, 7)), (0, 1, 8));
        let most = kept(u64::MAX, 0);
        let disk = rustix::fs::statvfs(directory.path()).unwrap();
        assert_eq!(most, disk.f_blocks * disk.f_frsize / 20);
        assert_eq!(Room::of(&directory.path().join("nothing"), 0, 0), None);
    }

    #[test]
    fn what_is_wanted_must_leave_what_is_kept() {
        let room = Room { free_bytes: 10, reserved_bytes: 10, unwritten_bytes: 3 };
        assert!(!room.is_short());
        for (wanted, kept, fits) in [(0, 10, true), (1, 10, false), (7, 3, true), (8, 3, false)] {
            assert_eq!(room.check(wanted, kept).is_ok(), fits, "{wanted} {kept}");
        }
        assert!(Room { free_bytes: 9, ..room }.is_short());
    }
}

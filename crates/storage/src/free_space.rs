//! Free space on the disk.
//!
//! A commit that fills the disk fails halfway, and the store takes no more writes until a restart. So writes that
//! make the store larger are refused before that, and accepted again as soon as there is space. Writes that free space
//! are accepted for longer: deletes and the purge have to write to free it.

use crate::{Error, Result};
use std::path::Path;

/// The reserve is at most this part of the disk, so that a small disk is not all reserve.
const RESERVE_PART: u64 = 20;

/// The free space on a store's disk, and how much of it is reserved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FreeSpace {
    /// Bytes that could be written.
    pub free_bytes: u64,
    /// Bytes reserved from writes that make the store larger, `unwritten_bytes` included.
    pub reserved_bytes: u64,
    /// Bytes reserved for the store itself: its memtables still need space in tables.
    pub unwritten_bytes: u64,
}

impl FreeSpace {
    /// Returns the free space of the disk below `directory`, of which `reserve` bytes are reserved in addition to the
    /// unwritten ones. `None` if the system does not report it.
    pub(crate) fn of(directory: &Path, reserve: u64, unwritten_bytes: u64) -> Option<Self> {
        let disk = rustix::fs::statvfs(directory).ok().filter(|disk| disk.f_blocks > 0)?;
        let reserve = reserve.min(disk.f_blocks.saturating_mul(disk.f_frsize) / RESERVE_PART);
        let free_bytes = disk.f_bavail.saturating_mul(disk.f_frsize);
        Some(Self { free_bytes, reserved_bytes: reserve + unwritten_bytes, unwritten_bytes })
    }

    /// Returns whether writes that make the store larger are refused.
    pub fn is_low(self) -> bool {
        self.free_bytes < self.reserved_bytes
    }

    /// Returns an error if writes that make the store larger are refused.
    pub(crate) fn require(self) -> Result<()> {
        self.check(1, self.reserved_bytes)
    }

    /// Returns an error unless `wanted_bytes` can be written and leave `kept_bytes` free.
    pub(crate) fn check(self, wanted_bytes: u64, kept_bytes: u64) -> Result<()> {
        let free_bytes = self.free_bytes;
        if free_bytes < kept_bytes.saturating_add(wanted_bytes) {
            return Err(Error::DiskFull { wanted_bytes, free_bytes, kept_bytes });
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
            |reserve, unwritten| FreeSpace::of(directory.path(), reserve, unwritten).unwrap().reserved_bytes;
        assert_eq!((kept(0, 0), kept(1, 0), kept(1, 7)), (0, 1, 8));
        let most = kept(u64::MAX, 0);
        let disk = rustix::fs::statvfs(directory.path()).unwrap();
        assert_eq!(most, disk.f_blocks * disk.f_frsize / 20);
        assert_eq!(FreeSpace::of(&directory.path().join("nothing"), 0, 0), None);
    }

    #[test]
    fn what_is_wanted_must_leave_what_is_kept() {
        let free_space = FreeSpace { free_bytes: 10, reserved_bytes: 10, unwritten_bytes: 3 };
        assert!(!free_space.is_low());
        for (wanted, kept, fits) in [(0, 10, true), (1, 10, false), (7, 3, true), (8, 3, false)] {
            assert_eq!(free_space.check(wanted, kept).is_ok(), fits, "{wanted} {kept}");
        }
        assert!(FreeSpace { free_bytes: 9, ..free_space }.is_low());
    }
}

//! An archive in memory, for tests: it keeps what was appended, and can be full.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use storage::Time;

use super::{Archive, ArchiveError};
use crate::expiry::ArchiveDirectory;

/// Lines by directory, and the failures to simulate.
#[derive(Debug, Default)]
pub struct MemoryArchive {
    lines: Mutex<BTreeMap<String, Vec<String>>>,
    /// Directories that cannot be written.
    full: Mutex<Vec<String>>,
}

impl MemoryArchive {
    /// Returns all lines of a directory, in the order of their arrival.
    pub fn lines(&self, directory: &str) -> Vec<String> {
        self.lines.lock().get(directory).cloned().unwrap_or_default()
    }

    /// Makes a directory unwritable, or writable again.
    pub fn set_full(&self, directory: &str, full: bool) {
        let mut directories = self.full.lock();
        directories.retain(|name| name != directory);
        if full {
            directories.push(directory.to_owned());
        }
    }
}

impl Archive for MemoryArchive {
    fn append(&self, directory: &ArchiveDirectory, _at: Time, lines: &[u8]) -> Result<(), ArchiveError> {
        let text = std::str::from_utf8(lines).map_err(|error| ArchiveError(error.to_string()))?;
        let is_full = self.full.lock().iter().any(|name| name == directory.as_str());
        let mut all = self.lines.lock();
        let kept = all.entry(directory.as_str().to_owned()).or_default();
        // A full disk cuts the lines somewhere: here the first half arrives.
        let arrives = if is_full { text.lines().count() / 2 } else { usize::MAX };
        kept.extend(text.lines().take(arrives).map(str::to_owned));
        if is_full {
            return Err(ArchiveError(format!("no room in '{}'", directory.as_str())));
        }
        Ok(())
    }
}

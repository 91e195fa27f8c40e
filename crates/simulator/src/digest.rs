//! Digests of every stored byte and every charge of a seed, as one number, which refactorings must not change.
//!
//! `digests.txt` beside the crate's manifest has the numbers of some seeds. A change that moves or renames code does not change them;
//! a change of stored bytes or charges records them again, and its commit gives the reason.

use storage::{Direction, KeyRange, Keyspace, Store};

/// Trace lines that begin with this have a digest.
const MARK: &str = "digest ";

/// A running checksum (FNV-1a): stable over platforms and versions of the compiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Digest(u64);

impl Default for Digest {
    fn default() -> Digest {
        Digest(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    /// Adds bytes and their number.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        for byte in (bytes.len() as u64).to_le_bytes().iter().chain(bytes) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// Returns the digest of everything in a store.
    pub(crate) fn of_store(store: &dyn Store) -> Result<Digest, String> {
        let mut digest = Digest::default();
        let snapshot = store.snapshot().map_err(|error| error.to_string())?;
        for keyspace in Keyspace::ALL {
            digest.add(&(keyspace as u64).to_le_bytes());
            for entry in snapshot.scan(keyspace, KeyRange::all(), Direction::Forward) {
                let (key, value) = entry.map_err(|error| error.to_string())?;
                digest.add(&key);
                digest.add(&value);
            }
        }
        Ok(digest)
    }

    /// Returns a line for a trace.
    pub(crate) fn line(self) -> String {
        format!("{MARK}{:016x}", self.0)
    }

    /// Returns the digest of all digests of a trace.
    pub(crate) fn of_trace(trace: &[String]) -> u64 {
        let mut digest = Digest::default();
        trace.iter().filter(|line| line.starts_with(MARK)).for_each(|line| digest.add(line.as_bytes()));
        digest.0
    }
}

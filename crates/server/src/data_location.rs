//! The location of a server's data.

use std::path::PathBuf;

/// The location of the data.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DataLocation {
    /// A directory.
    Directory(PathBuf),
    /// Memory, which ends with the process.
    Memory,
}

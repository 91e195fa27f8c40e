//! Where a server keeps its data.

use std::path::PathBuf;

/// Where data lives.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DataLocation {
    /// In a directory.
    Directory(PathBuf),
    /// In memory: it ends with the process.
    Memory,
}

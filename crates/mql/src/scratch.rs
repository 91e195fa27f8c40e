//! The interface to scratch files: where a stage keeps rows that exceed its memory.
//!
//! This crate opens no files. The server implements [`Scratch`] over a directory, tests over memory.

use crate::error::Result;

/// Creates scratch files.
pub trait Scratch: Send + Sync + std::fmt::Debug {
    /// Returns a new, empty file.
    fn create(&self) -> Result<Box<dyn ScratchFile>>;
}

/// A file that only its owner can access. Dropping it deletes the file and frees its space.
pub trait ScratchFile: Send {
    /// Appends bytes. Fails when the space for scratch files is used up.
    fn append(&mut self, bytes: &[u8]) -> Result<()>;

    /// Fills the buffer with the bytes from `offset` on; all of them have been appended before.
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<()>;
}

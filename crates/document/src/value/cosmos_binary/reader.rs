//! A bounds-checked cursor over a binary body.

use crate::error::{Error, Result};

/// How many bytes a length or count takes.
#[derive(Clone, Copy)]
pub(super) enum Width {
    One = 1,
    Two = 2,
    Three = 3,
    Four = 4,
}

pub(super) struct Reader<'a> {
    body: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(body: &'a [u8]) -> Reader<'a> {
        Reader { body, at: 0 }
    }

    /// Returns a second cursor over the same body.
    pub(super) fn elsewhere(&self, at: usize) -> Reader<'a> {
        Reader { body: self.body, at }
    }

    /// Returns the offset of the next byte.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Returns how long the body is.
    pub(super) fn len(&self) -> usize {
        self.body.len()
    }

    /// Returns an error here.
    pub(super) fn error(&self, message: impl Into<String>) -> Error {
        Error::binary(self.at, message)
    }

    pub(super) fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        let end = self.at.checked_add(count).filter(|&end| end <= self.body.len());
        let end = end.ok_or_else(|| self.error(format!("the body ends before {count} more bytes")))?;
        let bytes = &self.body[self.at..end];
        self.at = end;
        Ok(bytes)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let bytes = self.bytes(N)?;
        Ok(bytes.try_into().expect("bytes() gives as many as asked for"))
    }

    pub(super) fn u8(&mut self) -> Result<u8> {
        self.array().map(|[byte]| byte)
    }

    /// Returns a length, count or offset.
    pub(super) fn uint(&mut self, width: Width) -> Result<usize> {
        let mut wide = [0; 4];
        let bytes = self.bytes(width as usize)?;
        wide[..bytes.len()].copy_from_slice(bytes);
        Ok(u32::from_le_bytes(wide) as usize)
    }
}

//! A run: rows in a scratch file, in the order in which they were appended.
//!
//! ```text
//! record   flags u8 (1 origin, 2 meta, 4 tag) [, origin u64] [, meta] [, tag], body
//! ```
//!
//! Meta and body are BSON documents, the tag a document whose only field is the value; each begins with its own length.

use bson::{Document, RawDocument, Value, ValueRef};

use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::pipeline::row::{Body, Row};
use crate::scratch::ScratchFile;

/// A row and a value that belongs to it: what a sorter keeps beside a row because it cannot be computed again.
pub(crate) type Tagged = (Option<Value>, Row);

const ORIGIN: u8 = 1;
const META: u8 = 2;
const TAG: u8 = 4;

/// How many bytes are written or read at once.
const BUFFER_BYTES: usize = 128 * 1024;
/// What a BSON document has at least: its length and its end.
const DOCUMENT_BYTES_MIN: usize = 5;

/// A run that rows are appended to.
pub(crate) struct RunWriter {
    file: Box<dyn ScratchFile>,
    buffer: Vec<u8>,
    written: u64,
}

impl RunWriter {
    pub(crate) fn new(file: Box<dyn ScratchFile>) -> RunWriter {
        RunWriter { file, buffer: Vec::with_capacity(BUFFER_BYTES), written: 0 }
    }

    pub(crate) fn append(&mut self, (tag, row): Tagged, context: &Context) -> Result<()> {
        context.spend(1)?;
        let flag = |is: bool, flag: u8| if is { flag } else { 0 };
        self.buffer.push(
            flag(row.origin.is_some(), ORIGIN) | flag(row.meta.is_some(), META) | flag(tag.is_some(), TAG),
        );
        self.buffer.extend(row.origin.iter().flat_map(|origin| origin.to_le_bytes()));
        if let Some(meta) = row.meta {
            self.buffer.extend_from_slice(RawDocument::from_document(&meta).as_bytes());
        }
        if let Some(tag) = tag {
            let document = Document::new().with("", tag);
            self.buffer.extend_from_slice(RawDocument::from_document(&document).as_bytes());
        }
        self.buffer.extend_from_slice(row.body.into_raw().as_bytes());
        if self.buffer.len() >= BUFFER_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    /// Ends the run; it is read from its beginning.
    pub(crate) fn finish(mut self) -> Result<RunReader> {
        self.flush()?;
        Ok(RunReader { file: self.file, length: self.written, offset: 0, buffer: Vec::new(), at: 0 })
    }

    fn flush(&mut self) -> Result<()> {
        self.file.append(&self.buffer)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

/// A run that is read.
pub(crate) struct RunReader {
    file: Box<dyn ScratchFile>,
    length: u64,
    /// How much of the file has been read into the buffer so far.
    offset: u64,
    buffer: Vec<u8>,
    /// Where the next record begins in the buffer.
    at: usize,
}

impl RunReader {
    pub(crate) fn next(&mut self, context: &Context) -> Result<Option<Tagged>> {
        context.spend(1)?;
        if self.at == self.buffer.len() && self.offset == self.length {
            return Ok(None);
        }
        let [flags] = *self.take(1)?.first_chunk().ok_or_else(damaged)?;
        let origin = match flags & ORIGIN {
            0 => None,
            _ => Some(u64::from_le_bytes(*self.take(8)?.first_chunk().ok_or_else(damaged)?)),
        };
        let meta = match flags & META {
            0 => None,
            _ => Some(Box::new(self.document()?.to_document())),
        };
        let tag = match flags & TAG {
            0 => None,
            _ => self.document()?.get("").map(ValueRef::to_value),
        };
        let body = Body::Raw(self.document()?);
        Ok(Some((tag, Row { body, origin, meta })))
    }

    fn document(&mut self) -> Result<RawDocument> {
        let length = u32::from_le_bytes(*self.peek(4)?.first_chunk().ok_or_else(damaged)?) as usize;
        if length < DOCUMENT_BYTES_MIN {
            return Err(damaged());
        }
        let bytes = bytes::Bytes::copy_from_slice(self.take(length)?);
        RawDocument::parse(bytes).map_err(|_| damaged())
    }

    fn take(&mut self, length: usize) -> Result<&[u8]> {
        self.peek(length)?;
        self.at += length;
        Ok(&self.buffer[self.at - length..self.at])
    }

    /// The next bytes, which stay where they are.
    fn peek(&mut self, length: usize) -> Result<&[u8]> {
        let missing = length.saturating_sub(self.buffer.len() - self.at);
        if missing > 0 {
            let left = usize::try_from(self.length - self.offset).unwrap_or(usize::MAX);
            if missing > left {
                return Err(damaged());
            }
            self.buffer.drain(..self.at);
            self.at = 0;
            let (kept, more) = (self.buffer.len(), missing.max(BUFFER_BYTES).min(left));
            self.buffer.resize(kept + more, 0);
            self.file.read_at(self.offset, &mut self.buffer[kept..])?;
            self.offset += more as u64;
        }
        Ok(&self.buffer[self.at..self.at + length])
    }
}

fn damaged() -> Error {
    Error::new(Code::INTERNAL_ERROR, "a scratch file holds other bytes than were written to it")
}

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

/// A row and a value kept beside it, because it cannot be computed again.
pub(crate) type Tagged = (Option<Value>, Row);

const ORIGIN: u8 = 1;
const META: u8 = 2;
const TAG: u8 = 4;

/// How many bytes are written or read at once: a small part of a stage's memory, as many runs are read at the same time.
const BUFFER_BYTES_MIN: usize = 4 * 1024;
const BUFFER_BYTES_MAX: usize = 128 * 1024;
const BUFFER_PART: usize = 256;
/// The smallest size of a BSON document: its length and its end.
const DOCUMENT_BYTES_MIN: usize = 5;

/// Returns how many bytes of a run are in memory while it is written or read, beside a record that has more.
pub(crate) fn buffer_bytes(context: &Context) -> usize {
    (context.stage_bytes_max / BUFFER_PART).clamp(BUFFER_BYTES_MIN, BUFFER_BYTES_MAX)
}

/// A run that rows are appended to.
pub(crate) struct RunWriter {
    file: Box<dyn ScratchFile>,
    buffer: Vec<u8>,
    buffer_bytes: usize,
    written: u64,
}

impl RunWriter {
    pub(crate) fn new(file: Box<dyn ScratchFile>, context: &Context) -> RunWriter {
        let buffer_bytes = buffer_bytes(context);
        RunWriter { file, buffer: Vec::with_capacity(buffer_bytes), buffer_bytes, written: 0 }
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
        if self.buffer.len() >= self.buffer_bytes {
            self.flush()?;
        }
        Ok(())
    }

    /// Ends the run; it is read from its beginning.
    pub(crate) fn finish(mut self) -> Result<RunReader> {
        self.flush()?;
        let RunWriter { file, buffer_bytes, written: length, .. } = self;
        Ok(RunReader { file, length, offset: 0, buffer: Vec::new(), buffer_bytes, at: 0 })
    }

    fn flush(&mut self) -> Result<()> {
        self.file.append(&self.buffer)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        // One large record must not keep its memory to the end of the run.
        self.buffer.shrink_to(self.buffer_bytes);
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
    buffer_bytes: usize,
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
        // This process wrote it, to a file that no other can open. The bytes are checked against the bounds of the record;
        // an examination of each element would find no flipped bit in a value either.
        RawDocument::from_stored(bytes).map_err(|_| damaged())
    }

    fn take(&mut self, length: usize) -> Result<&[u8]> {
        self.peek(length)?;
        self.at += length;
        Ok(&self.buffer[self.at - length..self.at])
    }

    /// Returns the next bytes without consuming them.
    fn peek(&mut self, length: usize) -> Result<&[u8]> {
        let missing = length.saturating_sub(self.buffer.len() - self.at);
        if missing > 0 {
            let left = usize::try_from(self.length - self.offset).unwrap_or(usize::MAX);
            if missing > left {
                return Err(damaged());
            }
            self.buffer.drain(..self.at);
            self.at = 0;
            let (kept, more) = (self.buffer.len(), missing.max(self.buffer_bytes).min(left));
            // Exactly the capacity needed: the memory of a large record is released after it.
            self.buffer.shrink_to(kept + more);
            self.buffer.reserve_exact(more);
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

#[cfg(test)]
mod tests {
    use super::*;

    struct InMemory(Vec<u8>);

    impl ScratchFile for InMemory {
        fn append(&mut self, bytes: &[u8]) -> Result<()> {
            self.0.extend_from_slice(bytes);
            Ok(())
        }

        fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<()> {
            let begin = usize::try_from(offset).expect("small");
            buffer.copy_from_slice(&self.0[begin..begin + buffer.len()]);
            Ok(())
        }
    }

    #[test]
    fn a_large_record_does_not_keep_its_room_in_the_buffer() {
        let context = Context::at(0).with_stage_bytes_max(1024 * 1024);
        let mut writer = RunWriter::new(Box::new(InMemory(Vec::new())), &context);
        let (count, large) = (2_000, 1_000);
        for number in 0..count {
            let pad = "x".repeat(if number == large { 1024 * 1024 } else { 10 });
            let row = Row::from(Document::new().with("_id", number).with("pad", pad));
            writer.append((None, row), &context).expect("appended");
            let most = if number == large { 2 * 1024 * 1024 } else { 2 * BUFFER_BYTES_MIN };
            assert!(writer.buffer.capacity() <= most, "{number}: {}", writer.buffer.capacity());
        }
        let mut reader = writer.finish().expect("a run");
        for number in 0..count {
            let (_, row) = reader.next(&context).expect("read").expect("a row");
            assert_eq!(row.view().get("_id").map(ValueRef::to_value), Some(Value::Int32(number)));
            // The memory is released when the buffer is filled the next time.
            if number > large + 200 {
                assert!(
                    reader.buffer.capacity() <= 2 * BUFFER_BYTES_MIN,
                    "{number}: {}",
                    reader.buffer.capacity()
                );
            }
        }
        assert!(reader.next(&context).expect("read").is_none());
    }
}

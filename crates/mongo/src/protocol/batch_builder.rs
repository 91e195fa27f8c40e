//! A batch while it is being filled: the documents that fit into one reply.

use bson::RawDocument;
use mql::Code;

use crate::protocol::error::{Error, Result};
use crate::protocol::limits::{BATCH_BYTES, SHOWN_DOCUMENT_BYTES};

/// Documents of one reply: as many as the client asked for, and no more than it can carry. The first one always fits.
#[derive(Default)]
pub(crate) struct BatchBuilder {
    pub(crate) documents: Vec<RawDocument>,
    bytes: usize,
    /// How many it may have, if that is limited.
    count: Option<usize>,
}

impl BatchBuilder {
    pub(crate) fn new(count: Option<usize>) -> BatchBuilder {
        BatchBuilder { count, ..BatchBuilder::default() }
    }

    /// Whether it has as many as were asked for.
    pub(crate) fn is_complete(&self) -> bool {
        self.count.is_some_and(|count| self.documents.len() >= count)
    }

    /// Returns how many more it may have, if that is limited.
    pub(crate) fn left(&self) -> Option<usize> {
        self.count.map(|count| count.saturating_sub(self.documents.len()))
    }

    /// Adds a document; gives it back if the reply has no room for it.
    pub(crate) fn add(&mut self, document: RawDocument) -> std::result::Result<(), RawDocument> {
        let bytes = self.bytes + document.as_bytes().len();
        if !self.documents.is_empty() && bytes > BATCH_BYTES {
            return Err(document);
        }
        self.bytes = bytes;
        self.documents.push(document);
        Ok(())
    }
}

/// Refuses a document that is larger than any that can be shown.
pub(crate) fn check_size(document: &RawDocument) -> Result<()> {
    let bytes = document.as_bytes().len();
    if bytes <= SHOWN_DOCUMENT_BYTES {
        return Ok(());
    }
    let text = format!(
        "BSONObj size: {bytes} (0x{bytes:X}) is invalid. Size must be between 0 and {SHOWN_DOCUMENT_BYTES}(16MB)"
    );
    Err(Error::new(Code::BSON_OBJECT_TOO_LARGE, text))
}

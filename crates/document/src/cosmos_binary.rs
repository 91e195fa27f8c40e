//! Decoding Cosmos binary JSON.
use crate::binary::Document;
use crate::error::{Error, Result};
pub(crate) const PREAMBLE: u8 = 0x80;
pub(crate) fn parse_document(_body: &[u8]) -> Result<Document> {
    Err(Error::binary(0, "binary JSON is not decoded yet"))
}

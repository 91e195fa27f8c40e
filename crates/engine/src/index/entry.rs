//! Decodes index entries: the item's number, its value as far as the entry has it, and the bound of its expiry ([`Mark`]).
//!
//! An entry whose mark has not expired belongs to a living item. For the others the item's header is read
//! (`View::is_living`).

use bytes::Bytes;
use document::{ItemNumber, Value};

use super::term;
use crate::entries::mark::Mark;
use crate::types::error::{Error, Result};

const NUMBER_BYTES: usize = 8;

/// One entry of a path, a composite index, a shape or the outliers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IndexEntry {
    /// The bytes between the prefix of the range and the number: a term, values of a composite index, or nothing.
    pub(crate) term: Bytes,
    /// The item.
    pub(crate) number: ItemNumber,
    /// The value of the entry.
    pub(crate) mark: Mark,
}

impl IndexEntry {
    /// Splits an entry. `prefix` is how many bytes of the key come before the term: the length of the prefix of its
    /// range ([`Index`](super::scan::Index)).
    pub(crate) fn decode(prefix: usize, key: &Bytes, value: &[u8]) -> Result<IndexEntry> {
        let end = key.len().checked_sub(NUMBER_BYTES).filter(|end| *end >= prefix);
        let end = end.ok_or_else(|| Error::Corrupt("an index key of wrong length".into()))?;
        let number = key[end..].first_chunk().expect("the length was checked");
        Ok(IndexEntry {
            term: key.slice(prefix..end),
            number: ItemNumber(u64::from_be_bytes(*number)),
            mark: Mark::decode(value)?,
        })
    }

    /// Returns the scalar of a path entry, or `None` if the string was cut and the item must be read. Where the mark
    /// says inexact, the item may have another spelling of the number.
    pub(crate) fn scalar(&self) -> Result<Option<Value>> {
        term::decode(&self.term)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_taken_apart_behind_its_prefix() {
        let mut key = vec![1, 2, 3];
        key.extend_from_slice(&[0x05, 0xBF, 0xF0, 0, 0, 0, 0, 0, 0, 0x80]);
        key.extend_from_slice(&9_u64.to_be_bytes());
        let entry = IndexEntry::decode(3, &key.clone().into(), &[0]).expect("well-formed");
        assert_eq!((entry.number, entry.scalar()), (ItemNumber(9), Ok(Some(Value::Int(1)))));
        assert!(IndexEntry::decode(key.len() - 7, &key.into(), &[0]).is_err());
    }
}

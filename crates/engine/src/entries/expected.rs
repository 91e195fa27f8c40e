//! The entries that the integrity check expects of an item, with their values.

use bytes::Bytes;
use storage::Keyspace;

use super::mark::Mark;

/// One entry that an item must have.
pub(crate) struct ExpectedEntry {
    pub(crate) keyspace: Keyspace,
    pub(crate) key: Vec<u8>,
    pub(crate) value: ExpectedValue,
}

/// The expected value.
pub(crate) enum ExpectedValue {
    /// These bytes.
    Exactly(Bytes),
    /// A mark that is not behind this one.
    Bounded(Mark),
}

impl ExpectedValue {
    /// Returns the bytes that a write would store there.
    pub(crate) fn bytes(&self) -> Bytes {
        match self {
            ExpectedValue::Exactly(bytes) => bytes.clone(),
            ExpectedValue::Bounded(mark) => mark.encode().into(),
        }
    }

    /// Returns whether the stored bytes meet the expectation.
    pub(crate) fn admits(&self, found: &[u8]) -> bool {
        match self {
            ExpectedValue::Exactly(bytes) => bytes == found,
            ExpectedValue::Bounded(wanted) => Mark::decode(found)
                .is_ok_and(|mark| mark.inexact == wanted.inexact && mark.places.bounds(&wanted.places)),
        }
    }
}

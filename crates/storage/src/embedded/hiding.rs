//! Hides from a snapshot's reads the entries below the watermarks that it has.

use bytes::Bytes;
use std::ops::Bound;

use super::watermarks::Watermarks;
use crate::watermark::{self, Prefix, RANGES};
use crate::{KeyRange, Keyspace, Result};

/// The prefix of the last key that was checked, with its watermarks.
struct Looked {
    prefix: Prefix,
    /// The highest watermark of any snapshot. Most numbers are not below it, and then the snapshot's own need not be read.
    highest: u64,
    /// The snapshot's watermark, once it was read.
    own: Option<u64>,
}

/// A filter that hides the covered entries of one keyspace from a snapshot.
pub(super) struct Hiding<'a, F> {
    watermarks: &'a Watermarks,
    /// Reads a watermark from the snapshot.
    read: F,
    looked: Option<Looked>,
}

impl<'a, F: Fn(Prefix) -> Result<u64>> Hiding<'a, F> {
    /// Creates the filter of a keyspace; `None` if watermarks do not apply to it.
    pub(super) fn new(watermarks: &'a Watermarks, keyspace: Keyspace, read: F) -> Option<Self> {
        watermark::covers(keyspace).then_some(Hiding { watermarks, read, looked: None })
    }

    /// Returns whether an entry is hidden.
    pub(super) fn hides(&mut self, key: &[u8]) -> Result<bool> {
        let Some((prefix, number)) = watermark::place(key) else { return Ok(false) };
        let looked = match &mut self.looked {
            Some(looked) if looked.prefix == prefix => looked,
            looked => {
                let highest = self.watermarks.highest(prefix);
                looked.insert(Looked { prefix, highest, own: None })
            }
        };
        if number >= looked.highest {
            return Ok(false);
        }
        let own = match looked.own {
            Some(own) => own,
            None => *looked.own.insert((self.read)(prefix)?),
        };
        Ok(number < own)
    }

    /// Returns an entry unless it is hidden.
    pub(super) fn visible(&mut self, entry: Result<(Bytes, Bytes)>) -> Option<Result<(Bytes, Bytes)>> {
        match entry.and_then(|(key, value)| Ok((self.hides(&key)?, key, value))) {
            Ok((true, ..)) => None,
            Ok((false, key, value)) => Some(Ok((key, value))),
            Err(error) => Some(Err(error)),
        }
    }

    /// Returns the range without its hidden beginning. Where a key is a prefix and a number and nothing else, the entries below the
    /// watermark come first, and a scan need not skip them one by one.
    pub(super) fn skip_hidden(&self, keyspace: Keyspace, mut range: KeyRange) -> Result<KeyRange> {
        let (Bound::Included(start) | Bound::Excluded(start)) = &range.start else { return Ok(range) };
        let Some(prefix) = start.first_chunk().copied().filter(|_| RANGES.contains(&keyspace)) else {
            return Ok(range);
        };
        if self.watermarks.highest(prefix) == 0 {
            return Ok(range);
        }
        let below = (self.read)(prefix)?;
        let visible = watermark::range(prefix, below).end;
        if below > 0 && *start < visible {
            range.start = Bound::Included(visible);
        }
        Ok(range)
    }
}

//! The named keyspaces, and the ranges and directions in which one is read.

use std::ops::Bound;

/// One of the ordered maps that a store consists of. The engine defines the meaning of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Keyspace {
    /// Databases, containers and their policies.
    Catalog,
    /// Items by number.
    Item,
    /// Item numbers by partition key and id.
    Id,
    /// The path index.
    Index,
    /// Unique-key values.
    Unique,
    /// Expiry queues.
    Queue,
    /// The change feed.
    Feed,
    /// Counters of items and bytes.
    Counter,
    /// Receipts of what sessions have already done.
    Receipt,
    /// The feed of all versions and deletes.
    History,
    /// The deletion record: what was purged, when and why.
    Deletion,
}

impl Keyspace {
    /// All keyspaces; the position in this list is the keyspace's number.
    pub const ALL: [Self; 11] = [
        Self::Catalog,
        Self::Item,
        Self::Id,
        Self::Index,
        Self::Unique,
        Self::Queue,
        Self::Feed,
        Self::Counter,
        Self::Receipt,
        Self::History,
        Self::Deletion,
    ];

    /// Returns the name on disk and in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Catalog => "catalog",
            Self::Item => "item",
            Self::Id => "id",
            Self::Index => "index",
            Self::Unique => "unique",
            Self::Queue => "queue",
            Self::Feed => "feed",
            Self::Counter => "counter",
            Self::Receipt => "receipt",
            Self::History => "history",
            Self::Deletion => "deletion",
        }
    }

    /// Returns whether its entries hold users' data: they take space until users remove the data.
    pub(crate) const fn holds_user_data(self) -> bool {
        matches!(self, Self::Item | Self::Index)
    }

    pub(crate) const fn number(self) -> usize {
        self as usize
    }
}

/// The order in which a scan yields its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Smallest key first.
    Forward,
    /// Largest key first.
    Backward,
}

/// A range of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// Where the range begins.
    pub start: Bound<Vec<u8>>,
    /// Where the range ends.
    pub end: Bound<Vec<u8>>,
}

impl KeyRange {
    /// Returns every key.
    pub const fn all() -> Self {
        Self { start: Bound::Unbounded, end: Bound::Unbounded }
    }

    /// Returns the keys from `start` up to but excluding `end`.
    pub fn between(start: impl Into<Vec<u8>>, end: impl Into<Vec<u8>>) -> Self {
        Self { start: Bound::Included(start.into()), end: Bound::Excluded(end.into()) }
    }

    /// Returns the keys from `start` on.
    pub fn from(start: impl Into<Vec<u8>>) -> Self {
        Self { start: Bound::Included(start.into()), end: Bound::Unbounded }
    }

    /// Returns the keys that begin with `prefix`.
    pub fn prefix(prefix: impl Into<Vec<u8>>) -> Self {
        let start = prefix.into();
        let end = after_prefix(&start).map_or(Bound::Unbounded, Bound::Excluded);
        Self { start: Bound::Included(start), end }
    }

    /// Returns the same range without `key` and everything before it, from which a forward scan continues.
    #[must_use]
    pub fn after(self, key: impl Into<Vec<u8>>) -> Self {
        Self { start: Bound::Excluded(key.into()), end: self.end }
    }

    /// Returns the same range without `key` and everything after it, from which a backward scan continues.
    #[must_use]
    pub fn before(self, key: impl Into<Vec<u8>>) -> Self {
        Self { start: self.start, end: Bound::Excluded(key.into()) }
    }

    /// Returns whether `key` lies in the range.
    pub fn contains(&self, key: &[u8]) -> bool {
        let after_start = match &self.start {
            Bound::Included(start) => key >= start.as_slice(),
            Bound::Excluded(start) => key > start.as_slice(),
            Bound::Unbounded => true,
        };
        let before_end = match &self.end {
            Bound::Included(end) => key <= end.as_slice(),
            Bound::Excluded(end) => key < end.as_slice(),
            Bound::Unbounded => true,
        };
        after_start && before_end
    }

    /// Returns whether no key lies between the bounds; ordered maps panic on such ranges.
    pub fn is_empty(&self) -> bool {
        match (&self.start, &self.end) {
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
            (Bound::Included(start), Bound::Included(end)) => start > end,
            (
                Bound::Included(start) | Bound::Excluded(start),
                Bound::Excluded(end) | Bound::Included(end),
            ) => start >= end,
        }
    }

    /// Returns the bounds, borrowed.
    pub(crate) fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (self.start.as_ref().map(Vec::as_slice), self.end.as_ref().map(Vec::as_slice))
    }
}

/// Returns the smallest byte string after everything that begins with `prefix`, if there is one.
fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != 0xFF)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::{KeyRange, Keyspace};

    #[test]
    fn numbers_are_positions_and_names_differ() {
        for (position, keyspace) in Keyspace::ALL.into_iter().enumerate() {
            assert_eq!(keyspace.number(), position);
            assert!(Keyspace::ALL.iter().filter(|other| other.name() == keyspace.name()).count() == 1);
        }
    }

    #[test]
    fn a_prefix_range_holds_exactly_the_keys_with_that_prefix() {
        let range = KeyRange::prefix([1, 0xFF]);
        assert!(range.contains(&[1, 0xFF]) && range.contains(&[1, 0xFF, 0xFF, 7]));
        assert!(!range.contains(&[1, 0xFE, 9]) && !range.contains(&[2]));
        assert!(KeyRange::prefix([0xFF, 0xFF]).contains(&[0xFF, 0xFF, 0xFF]));
        assert!(KeyRange::prefix([]).contains(&[]));
    }

    #[test]
    fn ranges_without_room_are_empty() {
        assert!(KeyRange::between([2], [2]).is_empty());
        assert!(KeyRange::between([3], [2]).is_empty());
        assert!(!KeyRange::between([2], [3]).is_empty());
        assert!(KeyRange::from([2]).before([2]).is_empty());
        assert!(!KeyRange::all().after([2]).is_empty());
    }
}

//! The smallest of many keys with their values: the memory of every query that must see all rows before it can return
//! one.
//!
//! A page needs only the rows with the smallest keys after the last page's, so only those are kept, however many
//! rows are added. An evicted key is larger than all kept ones; keys from there on are for a later page.

use std::collections::BTreeMap;

use crate::functions::context::Fault;

/// The bytes that a map entry takes besides its key and value.
pub(super) const ENTRY_OVERHEAD: usize = 96;

/// The smallest keys seen, at most `wanted` of them and within the memory of one query.
#[derive(Debug)]
pub(super) struct Smallest<T> {
    entries: BTreeMap<Vec<u8>, (T, usize)>,
    wanted: usize,
    bytes: usize,
    bytes_max: usize,
    /// The smallest key that was evicted. Keys from here on are not kept: their values would be incomplete.
    ceiling: Option<Vec<u8>>,
}

impl<T> Smallest<T> {
    pub(super) fn new(wanted: usize, bytes_max: usize) -> Smallest<T> {
        Smallest { entries: BTreeMap::new(), wanted: wanted.max(1), bytes: 0, bytes_max, ceiling: None }
    }

    /// Returns `true` if a key would be kept; if not, its row need not be made. Remembers that there is more.
    pub(super) fn admits(&mut self, key: &[u8]) -> bool {
        if self.ceiling.as_ref().is_some_and(|ceiling| key >= ceiling.as_slice()) {
            return false;
        }
        let full = self.entries.len() >= self.wanted;
        let beyond = full && self.entries.last_key_value().is_some_and(|(last, _)| key > last.as_slice());
        if beyond {
            self.ceiling = Some(key.to_vec());
        }
        !beyond
    }

    /// Returns the value kept under a key.
    pub(super) fn get_mut(&mut self, key: &[u8]) -> Option<&mut T> {
        self.entries.get_mut(key).map(|(value, _)| value)
    }

    /// Keeps a value of about that many bytes under a key that is admitted, and evicts the largest keys beyond the limits.
    pub(super) fn insert(&mut self, key: Vec<u8>, value: T, bytes: usize) -> Result<(), Fault> {
        let cost = key.len() + bytes + ENTRY_OVERHEAD;
        if let Some((_, before)) = self.entries.insert(key, (value, cost)) {
            self.bytes -= before;
        }
        self.bytes += cost;
        self.evict()
    }

    /// Accounts for a kept value that has grown.
    pub(super) fn grew(&mut self, key: &[u8], bytes: usize) -> Result<(), Fault> {
        if let Some((_, cost)) = self.entries.get_mut(key) {
            *cost += bytes;
            self.bytes += bytes;
        }
        self.evict()
    }

    fn evict(&mut self) -> Result<(), Fault> {
        while self.entries.len() > self.wanted || self.bytes > self.bytes_max {
            if self.entries.len() == 1 {
                let what = "one row of the result";
                return Err(Fault::OutOfAllowance { what, limit: self.bytes_max });
            }
            let Some((key, (_, cost))) = self.entries.pop_last() else { return Ok(()) };
            self.bytes -= cost;
            self.ceiling = Some(key);
        }
        Ok(())
    }

    /// Returns the kept entries in order, and whether there is more behind them.
    pub(super) fn into_parts(self) -> (impl Iterator<Item = (Vec<u8>, T)>, bool) {
        (self.entries.into_iter().map(|(key, (value, _))| (key, value)), self.ceiling.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMORY: usize = 1 << 20;

    #[test]
    fn only_the_smallest_stay_and_more_is_remembered() {
        let mut smallest = Smallest::new(3, 1000);
        for key in [9_u8, 2, 7, 4, 4, 1] {
            if smallest.admits(&[key]) {
                smallest.insert(vec![key], key, 1).expect("fits");
            }
        }
        let (entries, more) = smallest.into_parts();
        assert_eq!(entries.map(|(_, value)| value).collect::<Vec<_>>(), [1, 2, 4]);
        assert!(more);
    }

    #[test]
    fn without_overflow_there_is_no_more() {
        let mut smallest = Smallest::new(3, 1000);
        for key in [3_u8, 1, 3] {
            assert!(smallest.admits(&[key]));
            smallest.insert(vec![key], (), 1).expect("fits");
        }
        assert!(!smallest.into_parts().1);
    }

    #[test]
    fn memory_bounds_the_page_before_it_fails_the_query() {
        let mut smallest = Smallest::new(1000, MEMORY);
        for key in 0_u8..10 {
            if smallest.admits(&[key]) {
                smallest.insert(vec![key], (), MEMORY / 4).expect("the page gets shorter");
            }
        }
        assert!(!smallest.admits(&[5]), "what was dropped does not come back in part");
        let (entries, more) = smallest.into_parts();
        assert_eq!((entries.count(), more), (3, true));
        let mut smallest = Smallest::new(1000, MEMORY);
        assert!(smallest.insert(vec![0], (), MEMORY + 1).is_err());
    }
}

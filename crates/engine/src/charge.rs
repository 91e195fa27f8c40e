//! Request units: what an operation costs, as one small table.
//!
//! The figures follow the service's published ones (a point read of 1 KB is 1 RU, an insert of 1 KB without
//! further indexes about 5). The charge depends on the item's size and on what living entries were touched, never
//! on expiry: a write that finds a dead item in its way costs what it would cost if nothing were there (T14, T21).

use std::ops::AddAssign;

use crate::operation::QueryMetrics;

/// Request units in hundredths, so that sums are exact.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Charge(pub u64);

const KILOBYTE: u64 = 1024;
const READ_FIRST_KILOBYTE: u64 = 100;
const READ_NEXT_KILOBYTE: u64 = 10;
const WRITE_FIRST_KILOBYTE: u64 = 529;
const WRITE_NEXT_KILOBYTE: u64 = 100;
const QUERY_BASE: u64 = 228;
const QUERY_ITEM: u64 = 3;
const QUERY_ENTRIES_PER_HUNDREDTH: u64 = 10;

impl Charge {
    /// A point read of an item of `bytes` bytes.
    pub fn read(bytes: u64) -> Charge {
        Charge(READ_FIRST_KILOBYTE + further_kilobytes(bytes) * READ_NEXT_KILOBYTE)
    }

    /// A create, replace, patch or delete of an item of `bytes` bytes.
    pub fn write(bytes: u64) -> Charge {
        Charge(WRITE_FIRST_KILOBYTE + further_kilobytes(bytes) * WRITE_NEXT_KILOBYTE)
    }

    /// A page of the change feed or of a list of resources: so many, of so many bytes in all.
    pub fn list(items: u64, bytes: u64) -> Charge {
        Charge(QUERY_BASE + items * QUERY_ITEM + further_kilobytes(bytes) * QUERY_ITEM)
    }

    /// A page of a query: by the living items it loaded, the living index entries it walked along and what it shows.
    pub fn query(metrics: &QueryMetrics) -> Charge {
        let QueryMetrics { index_entries, loaded_items, loaded_bytes, output_bytes, .. } = metrics;
        let loading = loaded_items * QUERY_ITEM + further_kilobytes(*loaded_bytes) * QUERY_ITEM;
        let walking = index_entries / QUERY_ENTRIES_PER_HUNDREDTH;
        let showing = further_kilobytes(*output_bytes);
        Charge(QUERY_BASE + loading + walking + showing)
    }

    /// What a request costs that found nothing or was refused.
    pub const MINIMUM: Charge = Charge(100);
}

fn further_kilobytes(bytes: u64) -> u64 {
    bytes.saturating_sub(1) / KILOBYTE
}

impl AddAssign for Charge {
    fn add_assign(&mut self, other: Charge) {
        self.0 += other.0;
    }
}

impl std::fmt::Display for Charge {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (whole, hundredths) = (self.0 / 100, self.0 % 100);
        if hundredths == 0 { write!(out, "{whole}") } else { write!(out, "{whole}.{hundredths:02}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kilobyte_read_costs_one_unit_and_size_adds() {
        for (bytes, text) in [(0, "1"), (1024, "1"), (1025, "1.10"), (10 * 1024, "1.90")] {
            assert_eq!(Charge::read(bytes).to_string(), text, "{bytes}");
        }
    }

    #[test]
    fn writes_grow_by_a_unit_a_kilobyte() {
        assert_eq!(Charge::write(1024).to_string(), "5.29");
        assert_eq!(Charge::write(2 * 1024).to_string(), "6.29");
    }
}

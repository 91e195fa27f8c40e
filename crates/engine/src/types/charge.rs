//! Request units: what an operation costs, as one small table.
//!
//! | Operation | Request units |
//! |---|---|
//! | point read | 1, and 1/11 for each further kilobyte |
//! | create, delete | 5, 5/11 for each further kilobyte, 0.10 for each index term |
//! | replace, patch, upsert of an existing item | a delete of the old version and a create of the new one, of the terms only those that differ |
//! | page of a query or of a list | 2.19 for each physical partition it reads, 0.01 for 4 items loaded and for each kilobyte of them, 0.01 for 10 index entries, 0.09 for each kilobyte shown |
//! | page of the change feed | 1 for each physical partition it reads, and then as a query |
//! | read of a database, container, offer … | 2 |
//! | their change | 4.95 |
//! | a request that found nothing, failed or was refused | 1 |
//! | a request refused for its rate | 0.38, which is not taken from any budget |
//!
//! Kilobytes are rounded up. `docs/request-units.md` repeats the table, with the published figures that it is fitted
//! to. The charge depends on the item's size and terms and on the living entries that were read, never on expiry: a
//! write that removes an expired item with its id costs as much as without that item (T14, T21).

use std::iter::Sum;
use std::ops::{Add, AddAssign};

use crate::types::request::QueryMetrics;

/// Request units in hundredths, so that sums are exact.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Charge(pub u64);

const KILOBYTE: u64 = 1024;
/// Sizes are fitted to two published points each, 1 KB and 100 KB: between them the charge grows by a multiple of
/// 99/11 kilobytes.
const SIZE_DIVISOR: u64 = 11;
const READ_FIRST_KILOBYTE: u64 = 100;
const READ_NEXT_11_KILOBYTES: u64 = 100;
const WRITE_FIRST_KILOBYTE: u64 = 500;
const WRITE_NEXT_11_KILOBYTES: u64 = 500;
const INDEX_TERM: u64 = 10;
const QUERY_PARTITION: u64 = 219;
const QUERY_ITEMS_PER_HUNDREDTH: u64 = 4;
const QUERY_LOADED_KILOBYTE: u64 = 1;
const QUERY_ENTRIES_PER_HUNDREDTH: u64 = 10;
const QUERY_SHOWN_KILOBYTE: u64 = 9;

impl Charge {
    /// The charge of a request that found nothing, failed or was refused.
    pub const MINIMUM: Charge = Charge(100);
    /// The charge of reading a resource of the catalog.
    pub const CATALOG_READ: Charge = Charge(200);
    /// The charge of changing a resource of the catalog.
    pub const CATALOG_WRITE: Charge = Charge(495);
    /// The charge shown to a request that was refused for its rate. It is not taken from any budget.
    pub const THROTTLED: Charge = Charge(38);

    /// Returns the charge of a point read of an item of `bytes` bytes.
    pub fn read(bytes: u64) -> Charge {
        Charge(READ_FIRST_KILOBYTE + further_kilobytes(bytes) * READ_NEXT_11_KILOBYTES / SIZE_DIVISOR)
    }

    /// Returns the charge of a create or delete of an item of `bytes` bytes that writes or removes `terms` index
    /// terms.
    pub fn write(bytes: u64, terms: u64) -> Charge {
        let size = further_kilobytes(bytes) * WRITE_NEXT_11_KILOBYTES / SIZE_DIVISOR;
        Charge(WRITE_FIRST_KILOBYTE + size + terms * INDEX_TERM)
    }

    /// Returns the charge of a new version of an item, of whose index terms `terms` differ.
    pub fn replace(old_bytes: u64, new_bytes: u64, terms: u64) -> Charge {
        Charge::write(old_bytes, 0) + Charge::write(new_bytes, terms)
    }

    /// Returns the charge of a page of the change feed with `items` items of `bytes` bytes in all. An empty page
    /// before the feed's end has only skipped expired items and items of other partition keys; it costs nothing, as
    /// if those were not there (T21).
    pub fn feed(items: u64, bytes: u64, more: bool) -> Charge {
        if items == 0 && more {
            return Charge::default();
        }
        let loaded = QueryMetrics { loaded_items: items, loaded_bytes: bytes, ..QueryMetrics::default() };
        let shown = QueryMetrics { output_items: items, output_bytes: bytes, ..loaded };
        Charge::MINIMUM + Charge::touched(&shown)
    }

    /// Returns the charge of a page of a query over `partitions` physical partitions: by the living items it loaded,
    /// the living index entries it read, and what it shows.
    pub fn query(metrics: &QueryMetrics, partitions: u64) -> Charge {
        Charge(QUERY_PARTITION * partitions.max(1)) + Charge::touched(metrics)
    }

    fn touched(metrics: &QueryMetrics) -> Charge {
        let QueryMetrics { index_entries, loaded_items, loaded_bytes, output_bytes, .. } = metrics;
        let loading = loaded_items / QUERY_ITEMS_PER_HUNDREDTH
            + loaded_bytes.div_ceil(KILOBYTE) * QUERY_LOADED_KILOBYTE;
        let walking = index_entries / QUERY_ENTRIES_PER_HUNDREDTH;
        let showing = output_bytes.div_ceil(KILOBYTE) * QUERY_SHOWN_KILOBYTE;
        Charge(loading + walking + showing)
    }

    /// Returns the request units as a number.
    pub fn units(self) -> f64 {
        self.0 as f64 / 100.0
    }
}

fn further_kilobytes(bytes: u64) -> u64 {
    bytes.saturating_sub(1) / KILOBYTE
}

impl Add for Charge {
    type Output = Charge;

    fn add(self, other: Charge) -> Charge {
        Charge(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Charge {
    fn add_assign(&mut self, other: Charge) {
        *self = *self + other;
    }
}

impl Sum for Charge {
    fn sum<I: Iterator<Item = Charge>>(charges: I) -> Charge {
        charges.fold(Charge::default(), Add::add)
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

    const KB: u64 = KILOBYTE;

    /// Compares the service's published figures with the model.
    #[test]
    fn the_model_meets_the_published_figures() {
        let page = |items, loaded_bytes, output_bytes| QueryMetrics {
            loaded_items: items,
            loaded_bytes,
            output_bytes,
            ..QueryMetrics::default()
        };
        let table = [
            ("point read of 1 KB: 1", Charge::read(KB), "1"),
            ("point read of 100 KB: 10", Charge::read(100 * KB), "10"),
            ("write of 1 KB without index: 5", Charge::write(KB, 0), "5"),
            ("write of 100 KB without index: 50", Charge::write(100 * KB, 0), "50"),
            ("insert of 1 KB: about 5.5", Charge::write(KB, 5), "5.50"),
            ("replace: twice an insert", Charge::replace(KB, KB, 0), "10"),
            (
                "one item of 10 KB by an indexed query: 3.19",
                Charge::query(&page(1, 10 * KB, 10 * KB), 1),
                "3.19",
            ),
            (
                "60,951 items of 400 MB scanned, 7 shown: 4,059.95",
                Charge::query(&page(60_951, 399_998_938, 510), 1),
                "4060.89",
            ),
            ("each further partition: 2 to 3", Charge::query(&page(1, 10 * KB, 10 * KB), 2), "5.38"),
        ];
        for (published, charge, text) in table {
            assert_eq!(charge.to_string(), text, "{published}");
        }
    }

    #[test]
    fn sizes_count_in_kilobytes_begun() {
        for (bytes, text) in
            [(0, "1"), (1024, "1"), (1025, "1.09"), (12 * 1024, "2"), (12 * 1024 + 1, "2.09")]
        {
            assert_eq!(Charge::read(bytes).to_string(), text, "{bytes}");
        }
        for (bytes, terms, text) in [(1024, 0, "5"), (1025, 0, "5.45"), (12 * 1024, 0, "10"), (1, 1, "5.10")]
        {
            assert_eq!(Charge::write(bytes, terms).to_string(), text, "{bytes} {terms}");
        }
    }

    #[test]
    fn a_query_for_one_item_costs_more_than_its_point_read() {
        for bytes in [1, KB, 10 * KB, 100 * KB, 1000 * KB, 2048 * KB] {
            let metrics = QueryMetrics {
                loaded_items: 1,
                loaded_bytes: bytes,
                output_bytes: bytes,
                ..QueryMetrics::default()
            };
            assert!(Charge::query(&metrics, 1) > Charge::read(bytes), "{bytes}");
        }
    }

    #[test]
    fn entries_and_empty_pages_cost_little() {
        let entries = |index_entries| QueryMetrics { index_entries, ..QueryMetrics::default() };
        assert_eq!(Charge::query(&entries(0), 1).to_string(), "2.19");
        assert_eq!(Charge::query(&entries(10_000), 1).to_string(), "12.19");
        assert_eq!(Charge::feed(0, 0, false), Charge::MINIMUM);
        assert_eq!(
            Charge::feed(0, 0, true),
            Charge::default(),
            "T21: what it walked past is as good as not there"
        );
        assert_eq!(Charge::feed(100, 100 * KB, true).to_string(), "11.25");
    }
}

//! The data set: documents made from their number alone, the same for every peer, in JSON and in BSON.
//!
//! Ten documents share a `group`, a hundred a partition key, unless the set says otherwise. `n` is a permutation of the
//! numbers below that within a partition. The rest fills the document up to its size with text that does not compress.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use crate::client::Bson;

pub const GROUP_ITEMS: u64 = 10;
pub const PARTITION_ITEMS: u64 = 100;
/// One of so many documents with names has an x in its name.
pub const NAMED_ITEMS: u64 = 1000;
/// The time to live of an expiring item.
pub const TTL_SECONDS: u32 = 7200;
const POOL_BYTES: usize = 1 << 20;

/// The common properties of a set's documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// The approximate size of a document as JSON.
    pub size: usize,
    /// The documents that share a partition key: a multiple of ten.
    pub partition_items: u64,
    /// Whether documents have a name.
    pub is_named: bool,
}

impl Shape {
    pub fn of_size(size: usize) -> Shape {
        Shape { size, partition_items: PARTITION_ITEMS, is_named: false }
    }

    /// Returns the same shape with partitions of another size.
    pub fn in_partitions_of(self, partition_items: u64) -> Shape {
        Shape { partition_items, ..self }
    }

    /// Returns the same shape with names.
    pub fn named(self) -> Shape {
        Shape { is_named: true, ..self }
    }

    /// Returns the partition of a document.
    pub fn partition(self, id: u64) -> u64 {
        id / self.partition_items
    }

    /// Returns the partition of a group.
    pub fn partition_of_group(self, group: u64) -> u64 {
        self.partition(group * GROUP_ITEMS)
    }

    /// Returns the number below which half of a partition's `n` are.
    pub fn middle(self) -> u64 {
        self.partition_items / 2
    }
}

/// Documents of one shape in one container, and how many of them there are.
pub struct DataSet {
    /// The name of its container, collection, table or prefix.
    pub name: String,
    pub shape: Shape,
    /// The documents that are read: 0..items.
    pub items: u64,
    /// The next document to insert; a set belongs to one peer.
    next: AtomicU64,
}

impl DataSet {
    pub fn new(name: &str, shape: Shape, items: u64) -> Arc<DataSet> {
        Arc::new(DataSet { name: name.to_owned(), shape, items, next: AtomicU64::new(items) })
    }

    /// Returns the same container when it has grown: `items` of its documents are read from now on.
    pub fn grown(&self, items: u64) -> Arc<DataSet> {
        let next = AtomicU64::new(self.used().max(items));
        Arc::new(DataSet { name: self.name.clone(), shape: self.shape, items, next })
    }

    /// Returns the end of the documents' numbers.
    pub fn used(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    /// Returns the number of no document so far.
    pub fn fresh(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }
}

/// A random generator, small, fast and good enough to choose documents.
#[derive(Clone)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(mix(seed.wrapping_add(1)))
    }

    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound.max(1)
    }

    /// Returns a number of at least 0 and below 1.
    pub fn fraction(&mut self) -> f64 {
        (self.number() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// The content of a document, independent of its encoding.
pub struct Fields<'a> {
    pub id: u64,
    /// A different number gives another version of the document.
    pub version: u64,
    shape: Shape,
    pub text: &'a str,
    pub expires: bool,
}

/// The approximate bytes of a JSON document besides `text`.
const FRAME_BYTES: usize = 165;

impl Fields<'static> {
    pub fn new(id: u64, version: u64, shape: Shape) -> Fields<'static> {
        static POOL: LazyLock<String> = LazyLock::new(|| {
            let letters = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 -";
            let mut random = Random::new(7);
            (0..POOL_BYTES).map(|_| char::from(letters[random.below(64) as usize])).collect()
        });
        let length = shape.size.saturating_sub(FRAME_BYTES).max(8);
        let at = (mix(id ^ (version << 40)) % (POOL_BYTES - length) as u64) as usize;
        Fields { id, version, shape, text: &POOL[at..at + length], expires: false }
    }
}

impl Fields<'_> {
    pub fn n(&self) -> u64 {
        (self.id * 37 + 11) % self.shape.partition_items
    }

    fn price(&self) -> u64 {
        mix(self.id ^ (self.version << 32)) % 100_000
    }

    /// Returns the name, if documents have names: letters of the first part of the alphabet, and in some an x.
    fn name(&self) -> Option<String> {
        let mut rest = mix(self.id);
        let mut letter = || {
            rest /= 16;
            char::from(b'a' + (rest % 16) as u8)
        };
        let last = if self.id % NAMED_ITEMS == NAMED_ITEMS / 2 { "x" } else { "" };
        self.shape.is_named.then(|| (0..10).map(|_| letter()).chain(last.chars()).collect())
    }

    pub fn json(&self, out: &mut String) {
        let Fields { id, text, .. } = self;
        let (pk, group, n, price) = (self.shape.partition(*id), id / GROUP_ITEMS, self.n(), self.price());
        let city = id % 1000;
        let _ = write!(
            out,
            "{{\"id\":\"{id}\",\"pk\":\"{pk}\",\"group\":\"g{group}\",\"n\":{n},\"price\":{price},\"active\":true,\
             \"address\":{{\"city\":\"city{city}\",\"zip\":{city}}},\"tags\":[\"red\",\"t{n}\"],\"text\":\"{text}\"",
        );
        if let Some(name) = self.name() {
            let _ = write!(out, ",\"name\":\"{name}\"");
        }
        if self.expires {
            let _ = write!(out, ",\"ttl\":{TTL_SECONDS}");
        }
        out.push('}');
    }

    /// Returns the document as BSON, with an expiry date if it expires: the TTL index is on `expires`.
    pub fn bson(&self, now_ms: i64) -> Bson {
        let (pk, group, city) = (self.shape.partition(self.id), self.id / GROUP_ITEMS, self.id % 1000);
        let mut tags = Bson::new().text("0", "red");
        tags = tags.text("1", &format!("t{}", self.n()));
        let document = Bson::new()
            .text("_id", &self.id.to_string())
            .text("pk", &pk.to_string())
            .text("group", &format!("g{group}"))
            .int("n", self.n() as i32)
            .int("price", self.price() as i32)
            .bool("active", true)
            .document("address", Bson::new().text("city", &format!("city{city}")).int("zip", city as i32))
            .array_of("tags", tags)
            .text("text", self.text);
        let document = match self.name() {
            Some(name) => document.text("name", &name),
            None => document,
        };
        if self.expires { document.date("expires", now_ms) } else { document }
    }
}

/// Numbers of which few are drawn often, in YCSB's distribution, scattered over the whole set.
#[derive(Clone)]
pub struct Zipf {
    items: u64,
    zeta: f64,
    eta: f64,
    alpha: f64,
}

const THETA: f64 = 0.99;

impl Zipf {
    pub fn new(items: u64) -> Zipf {
        let zeta_of = |count: u64| (1..=count).map(|at| (at as f64).powf(-THETA)).sum::<f64>();
        let (zeta, zeta_two) = (zeta_of(items), zeta_of(2));
        let eta = (1.0 - (2.0 / items as f64).powf(1.0 - THETA)) / (1.0 - zeta_two / zeta);
        Zipf { items, zeta, eta, alpha: 1.0 / (1.0 - THETA) }
    }

    pub fn draw(&self, random: &mut Random) -> u64 {
        let u = random.fraction();
        let scaled = u * self.zeta;
        let rank = if scaled < 1.0 {
            0
        } else if scaled < 1.0 + 0.5_f64.powf(THETA) {
            1
        } else {
            (self.items as f64 * (self.eta * u - self.eta + 1.0).powf(self.alpha)) as u64
        };
        mix(rank) % self.items
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_has_its_size_and_is_made_from_its_number() {
        for size in [256, 1024, 102_400] {
            let (mut first, mut again) = (String::new(), String::new());
            let shape = Shape::of_size(size);
            Fields::new(123_456, 0, shape).json(&mut first);
            Fields::new(123_456, 0, shape).json(&mut again);
            assert_eq!(first, again);
            assert!(first.len().abs_diff(size) < 24, "{} instead of {size}", first.len());
        }
    }

    #[test]
    fn half_of_a_partition_is_below_its_middle_whatever_its_size() {
        for partition_items in [10, 100, 10_000] {
            let shape = Shape::of_size(256).in_partitions_of(partition_items);
            let numbers = (7 * partition_items..8 * partition_items).map(|id| Fields::new(id, 0, shape).n());
            let below = numbers.filter(|&n| n < shape.middle()).count() as u64;
            assert_eq!(below, partition_items / 2);
        }
    }

    #[test]
    fn one_of_a_thousand_names_has_an_x() {
        let document = |id, shape| {
            let mut text = String::new();
            Fields::new(id, 0, shape).json(&mut text);
            let name =
                text.split("\"name\":\"").nth(1).map(|rest| rest.split('"').next().unwrap().to_owned());
            assert_eq!(name.is_some(), shape.is_named);
            name.unwrap_or_default()
        };
        let named = Shape::of_size(256).named();
        assert_eq!((0..5000).filter(|id| document(*id, named).contains('x')).count(), 5);
        assert_eq!(document(7, Shape::of_size(256)), "");
    }

    #[test]
    fn a_zipfian_draw_prefers_few() {
        let (zipf, mut random) = (Zipf::new(10_000), Random::new(1));
        let mut counts = vec![0_u32; 10_000];
        (0..100_000).for_each(|_| counts[zipf.draw(&mut random) as usize] += 1);
        counts.sort_unstable_by(|left, right| right.cmp(left));
        let first: u32 = counts[..100].iter().sum();
        assert!((40_000..70_000).contains(&first), "{first} of 100000 for the first hundredth");
    }
}

//! One generation of a partition's index, as queries read it: which keys to look at.
//!
//! Every range is exact as far as terms are: what lies in it and is not marked *inexact* has a value that the range asks
//! for. A term that was cut stands for several strings, so a range includes it at both ends, and whoever reads it looks at
//! the item. Outliers stand in no range but their own, and every query must look at them too.

use std::ops::Bound;
use std::sync::Arc;

use document::{ItemNumber, ValueRef};
use storage::{Direction, KeyRange, Keyspace, Read};

use super::path::PathKey;
use super::policy::{Composite, Coverage, Source};
use super::shape::{self, Places, ShapeHash};
use super::term::{self, Term};
use super::terms::{self, COMPOSITE, OUTLIER, PATH, SHAPE};
use crate::definition::Order;
use crate::error::{Error, Result};
use crate::keys::{self, Generation, Key, PartitionId};

/// A whole generation: every item of the partition has its entries in it.
#[derive(Debug, Clone)]
pub(crate) struct Index {
    pub(crate) partition: PartitionId,
    pub(crate) generation: Generation,
    /// What it holds.
    pub(crate) coverage: Arc<Coverage>,
}

/// A shape that some items have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShapeRecord {
    /// Its name.
    pub(crate) hash: ShapeHash,
    /// How many items have it, dead ones that are not purged included: an estimate for planning.
    pub(crate) items: u64,
    /// What they have where.
    pub(crate) places: Places,
}

impl Index {
    /// What the keys of all entries of a path begin with; their terms follow.
    pub(crate) fn path_prefix(&self, path: &PathKey) -> Vec<u8> {
        let mut prefix = self.prefix(PATH);
        prefix.extend_from_slice(path.as_bytes());
        prefix
    }

    /// All scalars at a path.
    pub(crate) fn whole_path(&self, path: &PathKey) -> KeyRange {
        KeyRange::prefix(self.path_prefix(path))
    }

    /// One scalar at a path; others with the same term if it is cut.
    pub(crate) fn equal(&self, path: &PathKey, term: &Term) -> KeyRange {
        KeyRange::prefix(joined(self.path_prefix(path), term.as_bytes()))
    }

    /// The scalars between two terms. Terms of all types are in one order: bound both ends within one type.
    pub(crate) fn path_range(&self, path: &PathKey, low: Bound<&Term>, high: Bound<&Term>) -> KeyRange {
        between(&self.path_prefix(path), Order::Ascending, low, high)
    }

    /// The strings at a path that begin with `text`; with cut ones that may.
    pub(crate) fn starting_with(&self, path: &PathKey, text: &str) -> KeyRange {
        KeyRange::prefix(joined(self.path_prefix(path), &term::encode_prefix(text)))
    }

    /// The key of one entry of a path: where a walk stood.
    pub(crate) fn path_entry(&self, path: &PathKey, term: &[u8], number: ItemNumber) -> Vec<u8> {
        joined(joined(self.path_prefix(path), term), &number.0.to_be_bytes())
    }

    /// What the keys of all entries of a composite index begin with; the values of its paths follow.
    pub(crate) fn composite_prefix(&self, composite: &Composite) -> Vec<u8> {
        joined(self.prefix(COMPOSITE), &composite.number.to_be_bytes())
    }

    /// The entries of a composite index whose first paths have these values; `None` is undefined. Cut strings, arrays and
    /// objects match by what the index tells of them.
    pub(crate) fn composite_equal(&self, composite: &Composite, values: &[Option<ValueRef<'_>>]) -> KeyRange {
        KeyRange::prefix(self.composite_values(composite, values))
    }

    fn composite_values(&self, composite: &Composite, values: &[Option<ValueRef<'_>>]) -> Vec<u8> {
        let mut key = self.composite_prefix(composite);
        for (part, value) in composite.parts.iter().zip(values) {
            terms::encode_part(*value, part.order, &mut key);
        }
        key
    }

    /// The entries of a composite index whose first paths have the values `equal`, and the next one a scalar between `low`
    /// and `high`, whatever the direction of the index.
    pub(crate) fn composite_range(
        &self,
        composite: &Composite,
        equal: &[Option<ValueRef<'_>>],
        low: Bound<&Term>,
        high: Bound<&Term>,
    ) -> KeyRange {
        let prefix = self.composite_values(composite, equal);
        match composite.parts.get(equal.len()) {
            Some(part) => between(&prefix, part.order, low, high),
            None => KeyRange::prefix(prefix),
        }
    }

    /// All shapes, in the order of their names.
    pub(crate) fn shapes<'a>(&self, reader: &'a dyn Read) -> impl Iterator<Item = Result<ShapeRecord>> + 'a {
        let (partition, generation) = (self.partition, self.generation);
        let prefix = keys::shape_places(partition, generation);
        let skipped = prefix.len();
        let places = reader.scan(Keyspace::Counter, KeyRange::prefix(prefix), Direction::Forward);
        places.map(move |entry| {
            let (key, value) = entry?;
            let hash = ShapeHash::try_from(&key[skipped..])
                .map_err(|_| Error::Corrupt("a shape's key of wrong length".into()))?;
            let (keyspace, count) = Key::ShapeCount(partition, generation, hash).encode();
            let count = reader.get(keyspace, &count)?;
            let items = shape::decode_count(count.as_deref().unwrap_or_default())?;
            Ok(ShapeRecord { hash, items, places: Places::new(value)? })
        })
    }

    /// What the keys of all entries of a shape begin with; nothing follows but the number.
    pub(crate) fn shape_prefix(&self, shape: &ShapeHash) -> Vec<u8> {
        joined(self.prefix(SHAPE), shape)
    }

    /// What the keys of the entries of all shapes begin with.
    pub(super) fn all_shapes_prefix(&self) -> Vec<u8> {
        self.prefix(SHAPE)
    }

    /// All items of a shape, by number.
    pub(crate) fn shape_range(&self, shape: &ShapeHash) -> KeyRange {
        KeyRange::prefix(self.shape_prefix(shape))
    }

    /// What the keys of all outliers begin with; nothing follows but the number.
    pub(crate) fn outlier_prefix(&self) -> Vec<u8> {
        self.prefix(OUTLIER)
    }

    /// All outliers, by number.
    pub(crate) fn outliers(&self) -> KeyRange {
        KeyRange::prefix(self.outlier_prefix())
    }

    fn prefix(&self, kind: u8) -> Vec<u8> {
        joined(keys::index_generation(self.partition, self.generation), &[kind])
    }
}

impl Composite {
    /// Takes the values of an entry apart: for each path what the key tells of it.
    pub(crate) fn values(&self, term: &[u8]) -> Result<Vec<PartValue>> {
        let mut rest = term.to_vec();
        let mut values = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            terms::direct(&mut rest, part.order);
            let (value, used) = part_value(&rest)?;
            values.push(value);
            rest.drain(..used);
            terms::direct(&mut rest, part.order);
        }
        if rest.is_empty() { Ok(values) } else { Err(Error::Corrupt("a composite entry is too long".into())) }
    }

    /// The same with where each value stands in the term.
    pub(crate) fn parts(&self, term: &[u8]) -> Result<Vec<(PartValue, std::ops::Range<usize>)>> {
        let (mut at, mut parts) = (0, Vec::with_capacity(self.parts.len()));
        for part in &self.parts {
            let mut rest = term[at..].to_vec();
            terms::direct(&mut rest, part.order);
            let (value, used) = part_value(&rest)?;
            parts.push((value, at..at + used));
            at += used;
        }
        if at == term.len() { Ok(parts) } else { Err(Error::Corrupt("a composite entry is too long".into())) }
    }

    /// Whether one of its paths is `_ts`.
    pub(crate) fn has_stamp(&self) -> bool {
        self.parts.iter().any(|part| part.source == Source::Stamp)
    }
}

/// What a composite entry tells of one path.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PartValue {
    /// There is nothing.
    Undefined,
    /// This scalar; where the entry is marked inexact, a number may be written in another way in the item.
    Scalar(document::Value),
    /// A long string, an array or an object: the item knows.
    Untold,
}

/// One value at the beginning of ascending bytes, and how many of them it takes.
fn part_value(bytes: &[u8]) -> Result<(PartValue, usize)> {
    if let Some(length) = term::cut_length(bytes) {
        return Ok((PartValue::Untold, length));
    }
    let (value, rest) = document::decode_key(bytes)
        .map_err(|error| Error::Corrupt(format!("a value of a composite entry: {error}")))?;
    let value = match value {
        None => PartValue::Undefined,
        Some(document::Value::Array(_) | document::Value::Object(_)) => PartValue::Untold,
        Some(scalar) => PartValue::Scalar(scalar),
    };
    Ok((value, bytes.len() - rest.len()))
}

fn joined(mut start: Vec<u8>, end: &[u8]) -> Vec<u8> {
    start.extend_from_slice(end);
    start
}

/// The keys behind `prefix` whose next value lies between two terms. A cut term may stand for what the bound asks for, so it
/// is always inside.
fn between(prefix: &[u8], order: Order, low: Bound<&Term>, high: Bound<&Term>) -> KeyRange {
    let (first, last) = match order {
        Order::Ascending => (low, high),
        Order::Descending => (high, low),
    };
    let whole = KeyRange::prefix(prefix);
    let all_of = |term: &Term| {
        let mut key = joined(prefix.to_vec(), term.as_bytes());
        terms::direct(&mut key[prefix.len()..], order);
        KeyRange::prefix(key)
    };
    let start = match first {
        Bound::Unbounded => whole.start,
        Bound::Included(term) => all_of(term).start,
        Bound::Excluded(term) if term.cut => all_of(term).start,
        Bound::Excluded(term) => match all_of(term).end {
            Bound::Excluded(end) => Bound::Included(end),
            unbounded => unbounded,
        },
    };
    let end = match last {
        Bound::Unbounded => whole.end,
        Bound::Included(term) => all_of(term).end,
        Bound::Excluded(term) if term.cut => all_of(term).end,
        Bound::Excluded(term) => match all_of(term).start {
            Bound::Included(start) => Bound::Excluded(start),
            unbounded => unbounded,
        },
    };
    KeyRange { start, end }
}

//! One generation of a partition's index, as queries read it: which keys to look at.
//!
//! Queries put the terms they look for behind the prefixes given here. A range is exact as far as terms are: what lies in it
//! and is not marked *inexact* has a value that the range asks for. A term that was cut stands for several strings, so a
//! range must include it at both ends, and whoever reads it looks at the item. Outliers stand in no range but their own, and
//! every query must look at them too.

use std::sync::Arc;

use document::ValueRef;
use storage::{Direction, KeyRange, Keyspace, Read};

use super::path::PathKey;
use super::policy::{Composite, Coverage};
use super::shape::{self, Places, ShapeHash};
use super::term;
use super::terms::{self, COMPOSITE, OUTLIER, PATH, SHAPE};
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

    /// What the keys of all entries of a composite index begin with; the values of its paths follow.
    pub(crate) fn composite_prefix(&self, composite: &Composite) -> Vec<u8> {
        joined(self.prefix(COMPOSITE), &composite.number.to_be_bytes())
    }

    /// The entries of a composite index whose first paths have these values; `None` is undefined. Cut strings, arrays and
    /// objects match by what the index tells of them.
    pub(crate) fn composite_equal(&self, composite: &Composite, values: &[Option<ValueRef<'_>>]) -> KeyRange {
        let mut key = self.composite_prefix(composite);
        for (part, value) in composite.parts.iter().zip(values) {
            terms::encode_part(*value, part.order, &mut key);
        }
        KeyRange::prefix(key)
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
    /// Takes the term of an entry apart: for each path what it tells of its value, and where that stands in it.
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

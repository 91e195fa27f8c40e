//! One generation of a partition's index, as queries read it: the keys to scan.
//!
//! Queries append terms to the prefixes given here. A range is as exact as its terms: an entry in it that is not
//! marked *inexact* has a value that the range asks for. A term that was cut stands for several strings, so a range
//! must include it at both ends, and the reader of the entry has to read the item. Outliers are in no range but their
//! own, and every query must read them too.

use std::sync::Arc;

use document::ValueRef;
use storage::{Direction, KeyRange, Keyspace, Read};

use super::path::PathKey;
use super::policy::{Composite, Coverage};
use super::shape::{self, ShapeHash, ShapePlaces};
use super::term;
use super::terms::{self, COMPOSITE, OUTLIER, PATH, SHAPE};
use crate::keys::{self, Generation, Key, PartitionId};
use crate::types::error::{Error, Result};

/// A complete generation: every item of the partition has its entries in it.
#[derive(Debug, Clone)]
pub(crate) struct Index {
    pub(crate) partition: PartitionId,
    pub(crate) generation: Generation,
    /// The paths that it covers.
    pub(crate) coverage: Arc<Coverage>,
}

/// A shape that some items have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShapeRecord {
    /// The shape's hash, its name.
    pub(crate) hash: ShapeHash,
    /// How many items have it, expired ones that are not purged included: an estimate for planning.
    pub(crate) items: u64,
    /// The paths of the shape with their kinds.
    pub(crate) places: ShapePlaces,
}

impl Index {
    /// Returns the prefix of the keys of all entries of a path; their terms follow.
    pub(crate) fn path_prefix(&self, path: &PathKey) -> Vec<u8> {
        let mut prefix = self.prefix(PATH);
        prefix.extend_from_slice(path.as_bytes());
        prefix
    }

    /// Returns the prefix of the keys of all entries of a composite index; the values of its paths follow.
    pub(crate) fn composite_prefix(&self, composite: &Composite) -> Vec<u8> {
        joined(self.prefix(COMPOSITE), &composite.number.to_be_bytes())
    }

    /// Returns the entries of a composite index whose first paths have these values; `None` is undefined. Cut
    /// strings, arrays and objects match as far as the index distinguishes them.
    pub(crate) fn composite_equal(&self, composite: &Composite, values: &[Option<ValueRef<'_>>]) -> KeyRange {
        KeyRange::prefix(self.composite_equal_prefix(composite, values))
    }

    /// Returns the prefix of the keys of these entries; the values of the other paths follow.
    pub(crate) fn composite_equal_prefix(
        &self,
        composite: &Composite,
        values: &[Option<ValueRef<'_>>],
    ) -> Vec<u8> {
        let mut key = self.composite_prefix(composite);
        for (part, value) in composite.parts.iter().zip(values) {
            terms::encode_part(*value, part.order, &mut key);
        }
        key
    }

    /// Returns all shapes, in the order of their hashes.
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
            Ok(ShapeRecord { hash, items, places: ShapePlaces::new(value)? })
        })
    }

    /// Returns the prefix of the keys of all entries of a shape; only the number follows.
    pub(crate) fn shape_prefix(&self, shape: &ShapeHash) -> Vec<u8> {
        joined(self.prefix(SHAPE), shape)
    }

    /// Returns the prefix of the keys of all outliers; only the number follows.
    pub(crate) fn outlier_prefix(&self) -> Vec<u8> {
        self.prefix(OUTLIER)
    }

    /// Returns all outliers, by number.
    pub(crate) fn outliers(&self) -> KeyRange {
        KeyRange::prefix(self.outlier_prefix())
    }

    fn prefix(&self, kind: u8) -> Vec<u8> {
        joined(keys::index_generation(self.partition, self.generation), &[kind])
    }
}

impl Composite {
    /// Splits the term of an entry: for each path, what it says of the value, and its range in the term.
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

/// What a composite entry says of one path.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PartValue {
    /// There is no value.
    Undefined,
    /// This scalar. Where the entry is marked inexact, the item may have another spelling of the number.
    Scalar(document::Value),
    /// A long string, an array or an object: the item has to be read.
    Untold,
}

/// Reads one value from the start of ascending bytes, and returns how many of them it takes.
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

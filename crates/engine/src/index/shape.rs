//! Shapes: which properties an item has, and of what kind, stored once for all items that have the same ones.
//!
//! A *shape* is the sorted set of an item's covered property paths (those without array steps), each with its kind:
//! scalar, array or object. Together with the path entries it makes every covered path complete. Either the item has
//! a scalar at the path, and then an entry; or its shape has an array or object there; or its shape does not have the
//! path, and then it is undefined. So items *without* a property are found although no entry in them says so.
//!
//! Items with the same shape are adjacent in the index, under the shape's hash. Two further records have the number
//! of these items and the shape's paths; the paths are written with the first item and removed with the last. The
//! hash is half of a SHA-256, so no two shapes with the same hash can be constructed.

use bytes::Bytes;
use sha2::{Digest, Sha256};
use storage::{Read, Transaction};

use super::path::PathKey;
use crate::keys::{Generation, Key, PartitionId};
use crate::types::error::{Error, Result};

/// The name of a shape.
pub(crate) type ShapeHash = [u8; 16];

/// A shape that an item has: the generation, the hash, and the paths as they are stored.
pub(crate) type ExpectedShape = (Generation, ShapeHash, Vec<u8>);

/// The kind of the value at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Null, boolean, number or string: there is a path entry.
    Scalar = 1,
    /// An array.
    Array = 2,
    /// An object.
    Object = 3,
}

impl Kind {
    fn from_byte(byte: u8) -> Option<Kind> {
        match byte {
            1 => Some(Kind::Scalar),
            2 => Some(Kind::Array),
            3 => Some(Kind::Object),
            _ => None,
        }
    }
}

/// The paths of a shape, as stored: for each, in the order of the paths, the length of the path u16, the encoded path
/// with its end, the kind u8.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShapePlaces(Bytes);

impl ShapePlaces {
    /// Checks stored bytes.
    pub(crate) fn new(bytes: Bytes) -> Result<ShapePlaces> {
        let places = ShapePlaces(bytes);
        let mut rest = &places.0[..];
        while !rest.is_empty() {
            let (_, kind, after) = split(rest).ok_or_else(|| Error::Corrupt("a shape's places".into()))?;
            Kind::from_byte(kind).ok_or_else(|| Error::Corrupt(format!("a shape's kind {kind}")))?;
            rest = after;
        }
        Ok(places)
    }

    /// Returns the kind of value that items of this shape have at a path without array steps, or `None` if they have
    /// no value there.
    pub(crate) fn kind_at(&self, path: &PathKey) -> Option<Kind> {
        let mut rest = &self.0[..];
        while let Some((place, kind, after)) = split(rest) {
            match place.cmp(path.as_bytes()) {
                std::cmp::Ordering::Less => rest = after,
                std::cmp::Ordering::Equal => return Kind::from_byte(kind),
                std::cmp::Ordering::Greater => return None,
            }
        }
        None
    }
}

fn split(bytes: &[u8]) -> Option<(&[u8], u8, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    let (path, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
    let (kind, rest) = rest.split_first()?;
    Some((path, *kind, rest))
}

/// The shape of an item that is being written or removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) hash: ShapeHash,
    pub(super) places: Vec<u8>,
}

impl Shape {
    /// Returns the shape of these paths, or `None` if they take more than `bytes_max`.
    pub(super) fn new(mut places: Vec<(Vec<u8>, Kind)>, bytes_max: usize) -> Option<Shape> {
        places.sort_unstable();
        places.dedup_by(|one, other| one.0 == other.0);
        let length = places.iter().map(|(path, _)| path.len() + 3).sum();
        if length > bytes_max {
            return None;
        }
        let mut bytes = Vec::with_capacity(length);
        for (path, kind) in &places {
            bytes.extend_from_slice(&u16::try_from(path.len()).ok()?.to_be_bytes());
            bytes.extend_from_slice(path);
            bytes.push(*kind as u8);
        }
        let digest = Sha256::digest(&bytes);
        let hash = *digest.first_chunk().expect("a digest has 32 bytes");
        Some(Shape { hash, places: bytes })
    }

    /// Counts an item of this shape.
    pub(super) fn add(
        &self,
        tx: &mut Transaction<'_>,
        partition: PartitionId,
        generation: Generation,
    ) -> Result<()> {
        let (keyspace, count_key) = Key::ShapeCount(partition, generation, self.hash).encode();
        let count = tx.get(keyspace, &count_key)?.map_or(Ok(0), |value| decode_count(&value))?;
        if count == 0 {
            let (keyspace, key) = Key::ShapePlaces(partition, generation, self.hash).encode();
            tx.put(keyspace, key, self.places.clone());
        }
        tx.put(keyspace, count_key, (count + 1).to_be_bytes().to_vec());
        Ok(())
    }

    /// Stops counting an item of this shape.
    pub(super) fn subtract(
        &self,
        tx: &mut Transaction<'_>,
        partition: PartitionId,
        generation: Generation,
    ) -> Result<()> {
        let (keyspace, count_key) = Key::ShapeCount(partition, generation, self.hash).encode();
        let count = tx.get(keyspace, &count_key)?.map_or(Ok(0), |value| decode_count(&value))?;
        match count {
            0 => return Err(Error::Corrupt("a shape's count would fall below zero".into())),
            1 => {
                let (places_keyspace, key) = Key::ShapePlaces(partition, generation, self.hash).encode();
                tx.remove(places_keyspace, key);
                tx.remove(keyspace, count_key);
            }
            _ => tx.put(keyspace, count_key, (count - 1).to_be_bytes().to_vec()),
        }
        Ok(())
    }
}

/// Reads a count.
pub(crate) fn decode_count(value: &[u8]) -> Result<u64> {
    let bytes = value.try_into().map_err(|_| Error::Corrupt("a shape's count of wrong length".into()))?;
    Ok(u64::from_be_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::Step;

    fn path(name: &str) -> PathKey {
        PathKey::new(&[Step::Property(name.to_owned())]).expect("short")
    }

    fn shape(places: &[(&str, Kind)]) -> Shape {
        let places = places.iter().map(|(name, kind)| (path(name).as_bytes().to_vec(), *kind)).collect();
        Shape::new(places, 1000).expect("small")
    }

    #[test]
    fn a_shape_tells_what_stands_where_whatever_the_order() {
        let one = shape(&[("a", Kind::Scalar), ("b", Kind::Array), ("c", Kind::Object)]);
        assert_eq!(one, shape(&[("c", Kind::Object), ("a", Kind::Scalar), ("b", Kind::Array)]));
        assert_ne!(one.hash, shape(&[("a", Kind::Array), ("b", Kind::Array), ("c", Kind::Object)]).hash);
        let places = ShapePlaces::new(one.places.into()).expect("well-formed");
        let kinds = ["a", "b", "c", "d", ""].map(|name| places.kind_at(&path(name)));
        assert_eq!(kinds, [Some(Kind::Scalar), Some(Kind::Array), Some(Kind::Object), None, None]);
    }

    #[test]
    fn a_shape_has_a_limit_and_damage_is_an_error() {
        assert!(Shape::new(vec![(path("a").as_bytes().to_vec(), Kind::Scalar)], 5).is_none());
        let bytes = shape(&[("a", Kind::Scalar)]).places;
        for length in 1..bytes.len() {
            assert!(ShapePlaces::new(bytes[..length].to_vec().into()).is_err());
        }
        assert!(ShapePlaces::new(Bytes::new()).is_ok(), "an item of nothing");
    }
}

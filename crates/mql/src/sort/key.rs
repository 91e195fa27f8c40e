//! The sort key of a document: one value for each part of the order.

use std::cmp::Ordering;

use bson::{ArrayRef, Collation, Document, DocumentRef, Extent, Value, ValueRef};

use super::{Direction, Part, Sort};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::path::Component;
use crate::size::value_bytes;

/// The sort key of a document. Compared by [`Sort::compare`].
#[derive(Debug, Clone)]
pub struct SortKey {
    pieces: Vec<Piece>,
    /// How to compare pieces that have no bytes.
    collation: Collation,
}

#[derive(Debug, Clone)]
struct Piece {
    value: Value,
    /// Bytes that sort as the value does by the collation, if there is one and the value is not too long for it: comparing
    /// strings by a collation makes such bytes anyway.
    bytes: Option<Vec<u8>>,
}

impl SortKey {
    /// Returns the values, one for each part of the order, as `{$meta: "sortKey"}` shows them.
    pub fn values(&self) -> impl Iterator<Item = &Value> {
        self.pieces.iter().map(|piece| &piece.value)
    }

    /// Returns how many bytes it takes, roughly.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<SortKey>() + self.values().map(|value| value_bytes(value.view())).sum::<usize>()
    }

    pub(super) fn compare(&self, other: &SortKey, directions: impl Iterator<Item = Direction>) -> Ordering {
        for ((left, right), direction) in self.pieces.iter().zip(&other.pieces).zip(directions) {
            let order = match (&left.bytes, &right.bytes) {
                (Some(left), Some(right)) => left.cmp(right),
                _ if self.collation.is_simple() => bson::compare(left.value.view(), right.value.view()),
                _ => self.collation.compare_values(left.value.view(), right.value.view()),
            };
            if order.is_ne() {
                return direction.apply(order);
            }
        }
        Ordering::Equal
    }
}

impl Piece {
    fn new(value: ValueRef<'_>, collation: &Collation) -> Piece {
        let mut bytes = None;
        if !collation.is_simple() {
            let mut key = Vec::new();
            if bson::encode_key(value, collation, &mut key) == Extent::Whole {
                bytes = Some(key);
            }
        }
        Piece { value: value.to_value(), bytes }
    }
}

/// Makes the key of a document.
pub(super) fn build(
    sort: &Sort,
    document: DocumentRef<'_>,
    collation: &Collation,
    meta: Option<&Document>,
    context: &Context,
) -> Result<SortKey> {
    let build = Build { sort, collation, context };
    let values = build.fields(document)?;
    let pieces = sort.parts.iter().map(|part| match part {
        Part::Field(place) => Piece::new(values[*place], collation),
        Part::Meta(keyword) => {
            let known = meta.and_then(|meta| meta.get(keyword));
            Piece::new(known.map_or(ValueRef::Null, Value::view), collation)
        }
    });
    Ok(SortKey { pieces: pieces.collect(), collation: collation.clone() })
}

struct Build<'s> {
    sort: &'s Sort,
    collation: &'s Collation,
    context: &'s Context,
}

/// The point that the search for a field's value has reached.
#[derive(Clone, Copy)]
enum PathEnd<'a, 's> {
    Found(ValueRef<'a>),
    /// An array, with the rest of the path, and how many names led there.
    Array(ArrayRef<'a>, &'s [Component], usize),
}

impl<'s> Build<'s> {
    fn fields<'a>(&self, document: DocumentRef<'a>) -> Result<Vec<ValueRef<'a>>> {
        let places = self.sort.fields.iter().map(|(path, _)| descend(document, path.components()));
        let places: Vec<PathEnd<'a, 's>> = places.collect();
        let mut best = None;
        let starts: Vec<&'s [Component]> =
            self.sort.fields.iter().map(|(path, _)| path.components()).collect();
        self.tuples(&places, &starts, &mut best)?;
        Ok(best.unwrap_or_else(|| vec![ValueRef::Null; self.sort.fields.len()]))
    }

    /// Opens the array that fields have reached, for all of them at once, item by item, and keeps the smallest tuple.
    fn tuples<'a>(
        &self,
        places: &[PathEnd<'a, 's>],
        starts: &[&'s [Component]],
        best: &mut Option<Vec<ValueRef<'a>>>,
    ) -> Result<()> {
        self.context.spend(places.len() as u64)?;
        let arrays: Vec<usize> =
            (0..places.len()).filter(|field| matches!(places[*field], PathEnd::Array(..))).collect();
        let Some(first) = arrays.first().copied() else {
            self.offer(places, best);
            return Ok(());
        };
        let PathEnd::Array(items, _, length) = places[first] else { return Ok(()) };
        let same = |field: &usize| match places[*field] {
            PathEnd::Array(_, _, other) => starts[*field][..other] == starts[first][..length],
            PathEnd::Found(_) => true,
        };
        if !arrays.iter().all(same) {
            return Err(Error::bad_value("cannot sort with keys that are parallel arrays"));
        }
        let rest_of = |field: usize| match places[field] {
            PathEnd::Array(_, rest, _) => rest,
            PathEnd::Found(_) => &[],
        };
        let mut next_starts = starts.to_vec();
        for field in &arrays {
            next_starts[*field] = rest_of(*field);
        }
        let empty = items.is_empty().then_some(None);
        for item in items.iter().map(Some).chain(empty) {
            let mut next = places.to_vec();
            for field in &arrays {
                next[*field] = match (item, rest_of(*field)) {
                    (Some(item), []) => PathEnd::Found(item),
                    (None, []) => PathEnd::Found(ValueRef::Undefined),
                    (Some(ValueRef::Document(document)), rest) => descend(document, rest),
                    _ => PathEnd::Found(ValueRef::Null),
                };
            }
            self.tuples(&next, &next_starts, best)?;
        }
        Ok(())
    }

    fn offer<'a>(&self, places: &[PathEnd<'a, 's>], best: &mut Option<Vec<ValueRef<'a>>>) {
        let tuple = places.iter().map(|place| match place {
            PathEnd::Found(value) => *value,
            PathEnd::Array(..) => ValueRef::Null,
        });
        let better = best.as_ref().is_none_or(|best| {
            let order =
                tuple.clone().zip(best).zip(&self.sort.fields).map(|((value, best), (_, direction))| {
                    direction.apply(self.collation.compare_values(value, *best))
                });
            order.into_iter().find(|order| order.is_ne()).is_some_and(Ordering::is_lt)
        });
        if better {
            *best = Some(tuple.collect());
        }
    }
}

/// Follows a path through documents, and into arrays where it says the position, until it ends or meets an array.
fn descend<'a, 's>(document: DocumentRef<'a>, components: &'s [Component]) -> PathEnd<'a, 's> {
    let mut value = Some(ValueRef::Document(document));
    let mut by_position = false;
    for (number, component) in components.iter().enumerate() {
        by_position = matches!(value, Some(ValueRef::Array(_)));
        value = match value {
            Some(ValueRef::Document(document)) => document.get(component.name()),
            Some(ValueRef::Array(items)) => match component.index().and_then(|index| items.get(index)) {
                Some(item) => Some(item),
                None => return PathEnd::Array(items, &components[number..], number),
            },
            _ => None,
        };
    }
    match value {
        // A value at a position counts as a whole, as in indexes.
        Some(ValueRef::Array(items)) if !by_position => PathEnd::Array(items, &[], components.len()),
        Some(value) => PathEnd::Found(value),
        None => PathEnd::Found(ValueRef::Null),
    }
}

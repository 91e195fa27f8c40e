//! Sets of values at one path: ranges of scalars, and whether a missing value, an array or an object is included.
//!
//! Ranges are half-open ranges of the bytes of [`document::encode_key`]. No key is the beginning of another, so "this
//! value" is everything that begins with its key, and "greater than this value" begins where that ends. The same
//! arithmetic then serves points, ranges, prefixes of text and whole types.

use document::{Value, ValueRef, decode_key, encode_key};

use crate::logical::Comparison;

/// A range of scalars, as bytes of [`document::encode_key`] or beginnings of them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Interval {
    /// The first key that is in it.
    pub low: Vec<u8>,
    /// The first key behind it.
    pub high: Vec<u8>,
}

impl Interval {
    fn new(low: Vec<u8>, high: Vec<u8>) -> Interval {
        Interval { low, high }
    }

    /// Returns the interval of all keys with this prefix.
    fn beginning_with(bytes: Vec<u8>) -> Interval {
        let high = behind(&bytes);
        Interval::new(bytes, high)
    }

    /// Returns all scalars.
    pub fn all() -> Interval {
        Interval::new(vec![tag(ValueRef::Null)], vec![tag(ValueRef::String("")) + 1])
    }

    /// Returns one value.
    pub fn point(value: ValueRef<'_>) -> Interval {
        Interval::beginning_with(key(value))
    }

    /// Returns the values of a scalar's type.
    fn of_type(value: ValueRef<'_>) -> Interval {
        match value {
            ValueRef::Bool(_) => {
                Interval::new(vec![tag(ValueRef::Bool(false))], vec![tag(ValueRef::Bool(true)) + 1])
            }
            other => Interval::beginning_with(vec![tag(other)]),
        }
    }

    /// Returns the interval of all texts with this prefix.
    fn prefix(text: &str) -> Interval {
        let mut low = key(ValueRef::String(text));
        // A key of text ends with two zeros, which would end the text.
        low.truncate(low.len() - 2);
        Interval::beginning_with(low)
    }

    /// Returns the value of an interval that holds a single value.
    pub fn as_point(&self) -> Option<Value> {
        match decode_key(&self.low) {
            Ok((Some(value), [])) if self.high == behind(&self.low) => Some(value),
            _ => None,
        }
    }

    fn is_empty(&self) -> bool {
        self.low >= self.high
    }

    fn intersect(&self, other: &Interval) -> Interval {
        let (low, high) = ((&self.low).max(&other.low), (&self.high).min(&other.high));
        Interval::new(low.clone(), high.clone())
    }

    /// Returns `true` if the interval contains the key.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.low.as_slice() <= key && key < self.high.as_slice()
    }
}

fn key(value: ValueRef<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_key(Some(value), &mut bytes);
    bytes
}

/// Returns the first byte of a type's keys.
fn tag(value: ValueRef<'_>) -> u8 {
    key(value)[0]
}

/// Returns the first bytes after all keys with this prefix.
fn behind(bytes: &[u8]) -> Vec<u8> {
    let mut end = bytes.to_vec();
    while end.last() == Some(&0xFF) {
        end.pop();
    }
    *end.last_mut().expect("a key begins with a small tag") += 1;
    end
}

/// The values other than scalars that a set includes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Kinds {
    /// A missing value.
    pub missing: bool,
    /// An array.
    pub array: bool,
    /// An object.
    pub object: bool,
}

impl Kinds {
    /// Returns `true` if the set only includes scalars.
    pub fn is_empty(self) -> bool {
        self == Kinds::default()
    }
}

/// A set of values.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ValueSet {
    /// The scalars, as ranges in ascending order without overlap or touch.
    pub scalars: Vec<Interval>,
    /// The other values.
    pub kinds: Kinds,
}

impl ValueSet {
    /// Scalars in any of these ranges.
    pub(super) fn scalars(mut intervals: Vec<Interval>) -> ValueSet {
        intervals.retain(|interval| !interval.is_empty());
        intervals.sort();
        let mut scalars: Vec<Interval> = Vec::with_capacity(intervals.len());
        for next in intervals {
            match scalars.last_mut() {
                Some(last) if last.high >= next.low => {
                    if last.high < next.high {
                        last.high = next.high;
                    }
                }
                _ => scalars.push(next),
            }
        }
        ValueSet { scalars, kinds: Kinds::default() }
    }

    /// Returns this value alone.
    pub(super) fn point(value: ValueRef<'_>) -> ValueSet {
        ValueSet::scalars(vec![Interval::point(value)])
    }

    /// Returns the type of this scalar.
    pub(super) fn of_type(value: ValueRef<'_>) -> ValueSet {
        ValueSet::scalars(vec![Interval::of_type(value)])
    }

    /// Texts that begin so.
    pub(super) fn prefix(text: &str) -> ValueSet {
        ValueSet::scalars(vec![Interval::prefix(text)])
    }

    /// Returns the set of all defined values.
    pub(super) fn defined() -> ValueSet {
        let kinds = Kinds { missing: false, array: true, object: true };
        ValueSet { scalars: vec![Interval::all()], kinds }
    }

    pub(super) fn array() -> ValueSet {
        ValueSet { scalars: Vec::new(), kinds: Kinds { array: true, ..Kinds::default() } }
    }

    pub(super) fn object() -> ValueSet {
        ValueSet { scalars: Vec::new(), kinds: Kinds { object: true, ..Kinds::default() } }
    }

    /// Values that stand in this relation to a scalar. Ordering knows only values of its type; `!=` all others.
    pub(super) fn compared(operator: Comparison, value: ValueRef<'_>) -> ValueSet {
        let Interval { low, high } = Interval::of_type(value);
        let point = Interval::point(value);
        let interval = match operator {
            Comparison::Equal => point,
            Comparison::NotEqual => {
                return ValueSet::point(value).complement().intersect(&ValueSet::defined());
            }
            Comparison::Less => Interval::new(low, point.low),
            Comparison::LessOrEqual => Interval::new(low, point.high),
            Comparison::Greater => Interval::new(point.high, high),
            Comparison::GreaterOrEqual => Interval::new(point.low, high),
        };
        ValueSet::scalars(vec![interval])
    }

    /// Returns `true` if the set is empty.
    pub fn is_nothing(&self) -> bool {
        self.scalars.is_empty() && self.kinds.is_empty()
    }

    /// Returns `true` if the set includes everything.
    pub fn is_anything(&self) -> bool {
        self.kinds == Kinds { missing: true, array: true, object: true } && self.scalars == [Interval::all()]
    }

    pub(super) fn complement(&self) -> ValueSet {
        let Interval { mut low, high: end } = Interval::all();
        let mut gaps = Vec::with_capacity(self.scalars.len() + 1);
        for interval in &self.scalars {
            gaps.push(Interval::new(
                std::mem::replace(&mut low, interval.high.clone()),
                interval.low.clone(),
            ));
        }
        gaps.push(Interval::new(low, end));
        let Kinds { missing, array, object } = self.kinds;
        let kinds = Kinds { missing: !missing, array: !array, object: !object };
        ValueSet { kinds, ..ValueSet::scalars(gaps) }
    }

    pub(super) fn union(parts: impl IntoIterator<Item = ValueSet>) -> ValueSet {
        let (mut scalars, mut kinds) = (Vec::new(), Kinds::default());
        for part in parts {
            scalars.extend(part.scalars);
            kinds.missing |= part.kinds.missing;
            kinds.array |= part.kinds.array;
            kinds.object |= part.kinds.object;
        }
        ValueSet { kinds, ..ValueSet::scalars(scalars) }
    }

    pub(super) fn intersect(&self, other: &ValueSet) -> ValueSet {
        let kinds = Kinds {
            missing: self.kinds.missing && other.kinds.missing,
            array: self.kinds.array && other.kinds.array,
            object: self.kinds.object && other.kinds.object,
        };
        // Both lists are sorted: the one that ends first cannot overlap with the rest of the other.
        let (mut one, mut two) = (self.scalars.iter().peekable(), other.scalars.iter().peekable());
        let mut scalars = Vec::new();
        while let (Some(a), Some(b)) = (one.peek(), two.peek()) {
            let both = a.intersect(b);
            if !both.is_empty() {
                scalars.push(both);
            }
            if a.high <= b.high {
                one.next();
            } else {
                two.next();
            }
        }
        ValueSet { scalars, kinds }
    }

    /// Returns the intersection of all sets, in time about linear in their total size.
    pub(super) fn intersection(mut parts: Vec<ValueSet>) -> ValueSet {
        if parts.len() == 1 {
            return parts.swap_remove(0);
        }
        ValueSet::union(parts.iter().map(ValueSet::complement)).complement()
    }

    /// Reduces the set to at most `most` ranges by joining neighbours; returns whether that was necessary.
    pub(super) fn widen(&mut self, most: usize) -> bool {
        if self.scalars.len() <= most {
            return false;
        }
        let run = self.scalars.len().div_ceil(most);
        let joined = self.scalars.chunks_mut(run).filter_map(|run| match run {
            [first, .., last] => {
                Some(Interval::new(std::mem::take(&mut first.low), std::mem::take(&mut last.high)))
            }
            [only] => Some(only.clone()),
            [] => None,
        });
        self.scalars = joined.collect();
        true
    }

    /// Returns `true` if the set includes the scalar with this key.
    pub fn admits(&self, key: &[u8]) -> bool {
        let behind = self.scalars.partition_point(|interval| interval.high.as_slice() <= key);
        self.scalars.get(behind).is_some_and(|interval| interval.contains(key))
    }
}

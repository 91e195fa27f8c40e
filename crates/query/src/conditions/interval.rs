//! The values that may stand in one place: ranges of scalars, and whether nothing, an array or an object will do.
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

    /// Everything that begins with these bytes.
    fn beginning_with(bytes: Vec<u8>) -> Interval {
        let high = behind(&bytes);
        Interval::new(bytes, high)
    }

    /// All scalars.
    pub fn all() -> Interval {
        Interval::new(vec![tag(ValueRef::Null)], vec![tag(ValueRef::String("")) + 1])
    }

    /// One value.
    pub fn point(value: ValueRef<'_>) -> Interval {
        Interval::beginning_with(key(value))
    }

    /// The values of a scalar's type.
    fn of_type(value: ValueRef<'_>) -> Interval {
        match value {
            ValueRef::Bool(_) => {
                Interval::new(vec![tag(ValueRef::Bool(false))], vec![tag(ValueRef::Bool(true)) + 1])
            }
            other => Interval::beginning_with(vec![tag(other)]),
        }
    }

    /// All texts that begin so.
    fn prefix(text: &str) -> Interval {
        let mut low = key(ValueRef::String(text));
        // A key of text ends with two zeros, which would end the text.
        low.truncate(low.len() - 2);
        Interval::beginning_with(low)
    }

    /// The one value in it, if it is a single value.
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

    /// Whether a key lies in it.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.low.as_slice() <= key && key < self.high.as_slice()
    }
}

fn key(value: ValueRef<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_key(Some(value), &mut bytes);
    bytes
}

/// The first byte of a type's keys.
fn tag(value: ValueRef<'_>) -> u8 {
    key(value)[0]
}

/// The first bytes behind everything that begins with these.
fn behind(bytes: &[u8]) -> Vec<u8> {
    let mut end = bytes.to_vec();
    while end.last() == Some(&0xFF) {
        end.pop();
    }
    *end.last_mut().expect("a key begins with a small tag") += 1;
    end
}

/// What else than a scalar may stand in a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Kinds {
    /// Nothing.
    pub missing: bool,
    /// An array.
    pub array: bool,
    /// An object.
    pub object: bool,
}

impl Kinds {
    /// Whether only a scalar will do.
    pub fn is_empty(self) -> bool {
        self == Kinds::default()
    }
}

/// What may stand in a place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Standing {
    /// The scalars, as ranges in ascending order without overlap or touch.
    pub scalars: Vec<Interval>,
    /// What else.
    pub kinds: Kinds,
}

impl Standing {
    /// Scalars in any of these ranges.
    pub(super) fn scalars(mut intervals: Vec<Interval>) -> Standing {
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
        Standing { scalars, kinds: Kinds::default() }
    }

    /// This value alone.
    pub(super) fn point(value: ValueRef<'_>) -> Standing {
        Standing::scalars(vec![Interval::point(value)])
    }

    /// The type of this scalar.
    pub(super) fn of_type(value: ValueRef<'_>) -> Standing {
        Standing::scalars(vec![Interval::of_type(value)])
    }

    /// Texts that begin so.
    pub(super) fn prefix(text: &str) -> Standing {
        Standing::scalars(vec![Interval::prefix(text)])
    }

    /// Anything but nothing.
    pub(super) fn defined() -> Standing {
        let kinds = Kinds { missing: false, array: true, object: true };
        Standing { scalars: vec![Interval::all()], kinds }
    }

    pub(super) fn array() -> Standing {
        Standing { scalars: Vec::new(), kinds: Kinds { array: true, ..Kinds::default() } }
    }

    pub(super) fn object() -> Standing {
        Standing { scalars: Vec::new(), kinds: Kinds { object: true, ..Kinds::default() } }
    }

    /// Values that stand in this relation to a scalar. Ordering knows only values of its type; `!=` all others.
    pub(super) fn compared(operator: Comparison, value: ValueRef<'_>) -> Standing {
        let Interval { low, high } = Interval::of_type(value);
        let point = Interval::point(value);
        let interval = match operator {
            Comparison::Equal => point,
            Comparison::NotEqual => {
                return Standing::point(value).complement().intersect(&Standing::defined());
            }
            Comparison::Less => Interval::new(low, point.low),
            Comparison::LessOrEqual => Interval::new(low, point.high),
            Comparison::Greater => Interval::new(point.high, high),
            Comparison::GreaterOrEqual => Interval::new(point.low, high),
        };
        Standing::scalars(vec![interval])
    }

    /// Whether nothing at all fits.
    pub fn is_nothing(&self) -> bool {
        self.scalars.is_empty() && self.kinds.is_empty()
    }

    /// Whether everything fits.
    pub fn is_anything(&self) -> bool {
        self.kinds == Kinds { missing: true, array: true, object: true } && self.scalars == [Interval::all()]
    }

    pub(super) fn complement(&self) -> Standing {
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
        Standing { kinds, ..Standing::scalars(gaps) }
    }

    pub(super) fn union(parts: impl IntoIterator<Item = Standing>) -> Standing {
        let (mut scalars, mut kinds) = (Vec::new(), Kinds::default());
        for part in parts {
            scalars.extend(part.scalars);
            kinds.missing |= part.kinds.missing;
            kinds.array |= part.kinds.array;
            kinds.object |= part.kinds.object;
        }
        Standing { kinds, ..Standing::scalars(scalars) }
    }

    pub(super) fn intersect(&self, other: &Standing) -> Standing {
        let kinds = Kinds {
            missing: self.kinds.missing && other.kinds.missing,
            array: self.kinds.array && other.kinds.array,
            object: self.kinds.object && other.kinds.object,
        };
        // Both lists are sorted: the one that ends first cannot meet anything further of the other.
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
        Standing { scalars, kinds }
    }

    /// What fits everywhere. Takes about as long as reading the parts, however many there are.
    pub(super) fn intersection(mut parts: Vec<Standing>) -> Standing {
        if parts.len() == 1 {
            return parts.swap_remove(0);
        }
        Standing::union(parts.iter().map(Standing::complement)).complement()
    }

    /// Makes do with so many ranges by joining neighbours; tells whether that was necessary.
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

    /// Whether a scalar key fits.
    pub fn admits(&self, key: &[u8]) -> bool {
        let behind = self.scalars.partition_point(|interval| interval.high.as_slice() <= key);
        self.scalars.get(behind).is_some_and(|interval| interval.contains(key))
    }
}

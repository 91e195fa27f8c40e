//! Sets of values as intervals of their keys.
//!
//! An edge is a position between keys: just before all keys that begin with its bytes. As no key is the beginning of
//! another, the edge just after a value is the bytes of its key with the last one raised. An edge also remembers its text
//! for people.

use std::cmp::Ordering;
use std::sync::Arc;

use bson::{Collation, Extent, KEY_BYTES_MAX, Kind, ValueRef, class_byte, encode_key, shell_text};

/// Before the key of every value.
const FIRST: u8 = 0x01;
/// Behind the key of every value.
const LAST: u8 = 0x12;

/// How many intervals are examined to intersect sets: a filter may have as many as it has bytes.
const INTERSECTION_WORK_MAX: usize = 1_000_000;

/// A position between keys.
#[derive(Debug, Clone)]
pub(super) struct Edge {
    bytes: Vec<u8>,
    /// The value next to it, as text for people.
    text: Arc<str>,
    /// Whether it is after that value.
    behind: bool,
}

impl Edge {
    fn new(bytes: Vec<u8>, text: &str, behind: bool) -> Edge {
        Edge { bytes, text: text.into(), behind }
    }

    fn before(key: &[u8], text: &str) -> Edge {
        Edge::new(key.to_vec(), text, false)
    }

    fn behind(key: &[u8], text: &str) -> Edge {
        Edge::new(raised(key), text, true)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Returns the first bytes after all that begin with these. Keys never consist of FF alone.
pub(super) fn raised(bytes: &[u8]) -> Vec<u8> {
    let kept = bytes.iter().rposition(|byte| *byte != 0xFF).map_or(0, |at| at + 1);
    let mut raised = bytes[..kept].to_vec();
    match raised.last_mut() {
        Some(last) => *last += 1,
        // Only the empty text has nothing to raise: after it is after everything.
        None => raised.push(0xFF),
    }
    raised
}

/// The keys between two edges; never empty.
#[derive(Debug, Clone)]
pub(super) struct Interval {
    pub(super) lower: Edge,
    pub(super) upper: Edge,
    /// Whether it holds the key of one value and nothing else.
    pub(super) point: bool,
}

impl Interval {
    /// `[1, 5)` and the like, as explain shows bounds.
    pub(super) fn text(&self, descending: bool) -> String {
        let (open, close) =
            (if self.lower.behind { '(' } else { '[' }, if self.upper.behind { ']' } else { ')' });
        if descending {
            let turned = |bracket: char| match bracket {
                '(' => ')',
                '[' => ']',
                ')' => '(',
                _ => '[',
            };
            return format!("{}{}, {}{}", turned(close), self.upper.text, self.lower.text, turned(open));
        }
        format!("{open}{}, {}{close}", self.lower.text, self.upper.text)
    }
}

/// Some values: intervals in their order that do not touch each other.
#[derive(Debug, Clone, Default)]
pub(super) struct Set(Vec<Interval>);

impl Set {
    pub(super) fn empty() -> Set {
        Set::default()
    }

    pub(super) fn full() -> Set {
        Set::between(Edge::new(vec![FIRST], "MinKey", false), Edge::new(vec![LAST], "MaxKey", true))
    }

    pub(super) fn is_full(&self) -> bool {
        matches!(&self.0[..], [one] if one.lower.bytes == [FIRST] && one.upper.bytes == [LAST])
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn intervals(&self) -> &[Interval] {
        &self.0
    }

    /// Returns the number of values, if there are only single ones.
    pub(super) fn points(&self) -> Option<usize> {
        self.0.iter().all(|interval| interval.point).then_some(self.0.len())
    }

    fn between(lower: Edge, upper: Edge) -> Set {
        if lower.bytes >= upper.bytes {
            return Set::empty();
        }
        Set(vec![Interval { lower, upper, point: false }])
    }

    /// Returns one value.
    pub(super) fn point(value: ValueRef<'_>, collation: &Collation) -> Set {
        let mut key = Vec::new();
        encode_key(value, collation, &mut key);
        let text = shell_text(value);
        Set(vec![Interval {
            lower: Edge::before(&key, &text),
            upper: Edge::behind(&key, &text),
            point: true,
        }])
    }

    /// Returns all values of the class of a type.
    pub(super) fn class(kind: Kind) -> Set {
        let (first, last) = class_texts(kind);
        let class = class_byte(kind);
        let closed = !matches!(last, "{}" | "[]" | "MaxKey" | "null" | "undefined");
        Set::between(Edge::new(vec![class], first, false), Edge::new(vec![class + 1], last, closed))
    }

    /// Returns all values that are less than a value, or equal to it.
    pub(super) fn up_to(value: ValueRef<'_>, collation: &Collation, or_equal: bool) -> Set {
        let (key, extent) = key_of(value, collation);
        let text = shell_text(value);
        let upper = match (extent, or_equal) {
            (Extent::Whole, false) => Edge::before(&key, &text),
            _ => Edge::behind(&key, &text),
        };
        Set::between(Edge::new(vec![FIRST], "MinKey", false), upper)
    }

    /// Returns all values that are greater than a value, or equal to it.
    pub(super) fn down_to(value: ValueRef<'_>, collation: &Collation, or_equal: bool) -> Set {
        let (key, extent) = key_of(value, collation);
        let text = shell_text(value);
        let lower = match (extent, or_equal) {
            (Extent::Whole, false) => Edge::behind(&key, &text),
            _ => Edge::before(&key, &text),
        };
        Set::between(lower, Edge::new(vec![LAST], "MaxKey", true))
    }

    /// Returns all strings that begin with a text, by their bytes.
    pub(super) fn beginning_with(prefix: &str) -> Set {
        let mut key = Vec::new();
        // Without the two zeros at its end the key is the common beginning of the keys of all these strings.
        encode_key(ValueRef::String(prefix), &Collation::simple(), &mut key);
        key.truncate((key.len() - 2).min(KEY_BYTES_MAX));
        let text = shell_text(ValueRef::String(prefix));
        let next = prefix.char_indices().next_back().and_then(|(at, last)| {
            let raised = char::from_u32(last as u32 + 1)?;
            Some(format!("{}{raised}", &prefix[..at]))
        });
        let upper_text = next.map_or_else(|| "{}".to_owned(), |next| shell_text(ValueRef::String(&next)));
        Set::between(Edge::before(&key, &text), Edge::new(raised(&key), &upper_text, false))
    }

    pub(super) fn union(sets: impl IntoIterator<Item = Set>) -> Set {
        let mut all: Vec<Interval> = sets.into_iter().flat_map(|set| set.0).collect();
        all.sort_by(|left, right| left.lower.bytes.cmp(&right.lower.bytes));
        let mut merged: Vec<Interval> = Vec::with_capacity(all.len());
        for interval in all {
            match merged.last_mut() {
                Some(last) if last.point && interval.point && last.lower.bytes == interval.lower.bytes => {}
                // Points that only touch stay points, which are more useful.
                Some(last)
                    if last.upper.bytes > interval.lower.bytes
                        || last.upper.bytes == interval.lower.bytes && !(last.point || interval.point) =>
                {
                    if last.upper.bytes < interval.upper.bytes {
                        last.upper = interval.upper;
                    }
                    last.point = false;
                }
                _ => merged.push(interval),
            }
        }
        Set(merged)
    }

    pub(super) fn intersection(&self, other: &Set) -> Set {
        let mut both = Vec::new();
        let (mut left, mut right) = (self.0.iter().peekable(), other.0.iter().peekable());
        while let (Some(one), Some(two)) = (left.peek(), right.peek()) {
            let lower = if one.lower.bytes >= two.lower.bytes { &one.lower } else { &two.lower };
            let upper = if one.upper.bytes <= two.upper.bytes { &one.upper } else { &two.upper };
            if lower.bytes < upper.bytes {
                both.push(Interval {
                    lower: lower.clone(),
                    upper: upper.clone(),
                    point: one.point || two.point,
                });
            }
            match one.upper.bytes.cmp(&two.upper.bytes) {
                Ordering::Less => drop(left.next()),
                Ordering::Greater => drop(right.next()),
                Ordering::Equal => {
                    left.next();
                    right.next();
                }
            }
        }
        Set(both)
    }

    /// Returns the intersection of these sets, the most selective first; and whether all were used, which stops when it
    /// becomes too much work.
    pub(super) fn intersection_of(mut sets: Vec<Set>) -> (Set, bool) {
        sets.sort_by_key(Set::rank);
        let mut work = 0;
        let mut all = Set::full();
        for set in &sets {
            work += all.0.len() + set.0.len();
            if work > INTERSECTION_WORK_MAX {
                return (all, false);
            }
            all = all.intersection(set);
        }
        (all, true)
    }

    pub(super) fn complement(&self) -> Set {
        let mut rest = Vec::new();
        let full = Set::full();
        let mut lower = full.0[0].lower.clone();
        for interval in &self.0 {
            rest.extend(Set::between(lower, interval.lower.clone()).0);
            lower = interval.upper.clone();
        }
        rest.extend(Set::between(lower, full.0[0].upper.clone()).0);
        Set(rest)
    }

    pub(super) fn meets(&self, other: &Set) -> bool {
        !self.intersection(other).is_empty()
    }

    pub(super) fn is_within(&self, other: &Set) -> bool {
        !self.meets(&other.complement())
    }

    /// Returns how well it narrows a search: less is better.
    pub(super) fn rank(&self) -> usize {
        const WIDE: usize = 1 << 40;
        match self.points() {
            Some(count) => count,
            None if self.is_full() => 4 * WIDE,
            None if self.0.len() > 1 => 3 * WIDE,
            None => {
                let one = &self.0[0];
                let open = usize::from(one.lower.bytes.len() == 1) + usize::from(one.upper.bytes.len() == 1);
                (1 + open) * WIDE / 2
            }
        }
    }
}

/// Returns the key of a value for an edge; of a cut key only the beginning is reliable.
fn key_of(value: ValueRef<'_>, collation: &Collation) -> (Vec<u8>, Extent) {
    let mut key = Vec::new();
    let extent = encode_key(value, collation, &mut key);
    key.truncate(KEY_BYTES_MAX);
    (key, extent)
}

/// Returns the text of the first value of a class, and of the last or the one after it.
fn class_texts(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::MinKey => ("MinKey", "MinKey"),
        Kind::Undefined => ("undefined", "null"),
        Kind::Null => ("null", "null"),
        Kind::Double | Kind::Int32 | Kind::Int64 | Kind::Decimal128 => ("nan", "inf"),
        Kind::String | Kind::Symbol => ("\"\"", "{}"),
        Kind::Document => ("{}", "[]"),
        Kind::Array => ("[]", "BinData(0, )"),
        Kind::Binary => ("BinData(0, )", "ObjectId('000000000000000000000000')"),
        Kind::ObjectId => ("ObjectId('000000000000000000000000')", "ObjectId('ffffffffffffffffffffffff')"),
        Kind::Bool => ("false", "true"),
        Kind::DateTime => ("new Date(-9223372036854775808)", "new Date(9223372036854775807)"),
        Kind::Timestamp => ("Timestamp(0, 0)", "Timestamp(4294967295, 4294967295)"),
        Kind::Regex => ("//", "DBRef"),
        Kind::DbPointer => ("DBRef", "Code"),
        Kind::JavaScript => ("Code", "CodeWScope"),
        Kind::JavaScriptWithScope => ("CodeWScope", "MaxKey"),
        Kind::MaxKey => ("MaxKey", "MaxKey"),
    }
}

#[cfg(test)]
mod tests {
    use bson::Value;

    use super::*;

    fn text(set: &Set) -> String {
        set.intervals().iter().map(|interval| interval.text(false)).collect::<Vec<_>>().join(" ")
    }

    fn number(value: i32) -> Set {
        Set::point(ValueRef::Int32(value), &Collation::simple())
    }

    #[test]
    fn sets_are_joined_and_cut() {
        let simple = Collation::simple();
        let five = Value::Int32(5);
        let above = Set::down_to(five.view(), &simple, false).intersection(&Set::class(Kind::Int32));
        assert_eq!(text(&above), "(5, inf]");
        let below = Set::up_to(five.view(), &simple, true).intersection(&Set::class(Kind::Int32));
        assert_eq!(text(&below), "[nan, 5]");
        assert_eq!(text(&above.intersection(&below)), "");
        assert_eq!(text(&below.intersection(&number(5))), "[5, 5]");
        assert_eq!(number(5).complement().intervals().len(), 2);
        assert_eq!(text(&number(5).complement()), "[MinKey, 5) (5, MaxKey]");
        assert!(number(5).complement().complement().is_within(&number(5)));
        let three = Set::union([number(3), number(1), number(3), number(2)]);
        assert_eq!((text(&three).as_str(), three.points()), ("[1, 1] [2, 2] [3, 3]", Some(3)));
        assert!(three.is_within(&below) && !three.is_within(&above) && three.meets(&number(2)));
        assert!(Set::union([above, below]).is_within(&Set::class(Kind::Double)));
        assert_eq!(text(&Set::beginning_with("ab")), "[\"ab\", \"ac\")");
        assert!(Set::full().is_full() && Set::full().complement().is_empty());
        let (few, whole) = Set::intersection_of(vec![number(1).complement(), number(2).complement(), three]);
        assert_eq!((text(&few).as_str(), whole), ("[3, 3]", true));
        let many = (0..100_000).map(|value| number(value).complement()).collect();
        assert!(!Set::intersection_of(many).1, "it ends before it takes long");
    }

    #[test]
    fn better_sets_rank_lower() {
        let simple = Collation::simple();
        let range = |low: i32, high: i32| {
            Set::down_to(ValueRef::Int32(low), &simple, true).intersection(&Set::up_to(
                ValueRef::Int32(high),
                &simple,
                true,
            ))
        };
        let ranks = [
            number(1).rank(),
            Set::union([number(1), number(9)]).rank(),
            range(1, 9).rank(),
            Set::class(Kind::String).rank(),
            number(1).complement().rank(),
            Set::full().rank(),
        ];
        assert!(ranks.is_sorted(), "{ranks:?}");
    }
}

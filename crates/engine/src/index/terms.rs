//! All entries that one version of an item has in one generation of the index.
//!
//! ```text
//! key:  partition u32, generation u32, kind u8, then
//!         1  path   path, term, number       each scalar, each distinct scalar item of an array (path/[])
//!         2  composite   index u16, one value per path, number       every item, in each composite index
//!         3  shape   hash 16, number       every item
//!         4  outlier   number       instead of all others
//! ```
//!
//! A policy may ask for too many entries of one item: a document of 2 MiB may have half a million elements. An item
//! with more entries, longer paths or a larger shape than the limits below is an *outlier*: it has one entry that
//! says so, and every query that uses the index also reads the outliers. So such an item is accepted, as in the
//! service, and answers stay exact; only queries over a container full of them are no faster than a scan.
//!
//! The number is known only inside the transaction that writes the item; everything else is computed before. Keys are
//! therefore made without the number, in key order, and [`Terms::complete`] adds it. `_ts` in a composite index is
//! filled in there too.

use document::{ItemNumber, ValueRef, encode_key};

use super::path::GrowingPath;
use super::policy::{Composite, Coverage, Cursor, Source};
use super::shape::{Kind, Shape};
use super::term::{self, Fidelity};
use crate::definition::Order;
use crate::keys::{self, Generation, PartitionId};

/// The largest number of entries of one item.
pub(crate) const ENTRIES_MAX: usize = 4096;
/// The largest size of the keys of one item.
const KEY_BYTES_MAX: usize = 1 << 20;
/// The largest size of the paths of one item's shape.
const SHAPE_BYTES_MAX: usize = 32 << 10;

pub(super) const PATH: u8 = 1;
pub(super) const COMPOSITE: u8 = 2;
pub(super) const SHAPE: u8 = 3;
pub(super) const OUTLIER: u8 = 4;

const NUMBER_BYTES: usize = 8;
/// The length of `_ts` as an ordered key: such numbers are exact as doubles.
const STAMP_BYTES: usize = 10;

/// All entries of one version of an item in one generation, in key order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Terms {
    pub(super) entries: Vec<Entry>,
    /// `None` for an outlier.
    pub(super) shape: Option<Shape>,
}

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// The key, without the item's number until the terms are completed.
    pub(super) key: Vec<u8>,
    /// Whether the key is less precise than the item's value.
    pub(super) inexact: bool,
    /// Where `_ts` is to be filled in.
    stamp: Option<StampSlot>,
}

impl Entry {
    /// Returns an entry whose key is complete and as precise as the value.
    pub(super) fn exact(key: Vec<u8>) -> Entry {
        Entry { key, inexact: false, stamp: None }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct StampSlot {
    at: usize,
    order: Order,
}

/// The item exceeds the limits of the index.
struct TooManyTerms;

impl Terms {
    /// Returns the entries of a body under a policy.
    pub(crate) fn extract(
        partition: PartitionId,
        generation: Generation,
        coverage: &Coverage,
        body: ValueRef<'_>,
    ) -> Terms {
        let prefix = keys::index_generation(partition, generation);
        let mut walk = TermCollector::new(prefix);
        if let Ok(shape) = walk.run(coverage, body) {
            return Terms { entries: walk.entries, shape: Some(shape) };
        }
        let outlier = Entry { key: walk.key(OUTLIER, 0), inexact: true, stamp: None };
        Terms { entries: vec![outlier], shape: None }
    }

    /// Fills in what only the transaction knows. Key order is preserved, because no key is a prefix of another.
    pub(super) fn complete(&mut self, number: ItemNumber, ts: u64) {
        for entry in &mut self.entries {
            if let Some(StampSlot { at, order }) = entry.stamp.take() {
                let mut stamp = Vec::with_capacity(STAMP_BYTES);
                encode_key(Some(ValueRef::Int(ts as i64)), &mut stamp);
                debug_assert_eq!(stamp.len(), STAMP_BYTES, "seconds are exact as a double");
                direct(&mut stamp, order);
                entry.key.splice(at..at, stamp);
            }
            entry.key.extend_from_slice(&number.0.to_be_bytes());
        }
    }
}

/// Inverts the bits for a descending order.
pub(super) fn direct(bytes: &mut [u8], order: Order) {
    if order == Order::Descending {
        for byte in bytes {
            *byte = !*byte;
        }
    }
}

/// Appends one value of a composite index, and returns whether it is less precise than the item's value. Of an array
/// or object only the type is written, as an empty one.
pub(super) fn encode_part(value: Option<ValueRef<'_>>, order: Order, out: &mut Vec<u8>) -> bool {
    let start = out.len();
    let inexact = match value {
        None => {
            encode_key(None, out);
            false
        }
        Some(value) => match (term::encode(value, out), value) {
            (Some(fidelity), _) => fidelity != Fidelity::Exact,
            (None, ValueRef::Array(_)) => {
                out.extend_from_slice(&[0x07, 0x00]);
                true
            }
            (None, _) => {
                out.extend_from_slice(&[0x08, 0x00]);
                true
            }
        },
    };
    direct(&mut out[start..], order);
    inexact
}

/// The traversal of a body.
struct TermCollector {
    prefix: Vec<u8>,
    path: GrowingPath,
    term: Vec<u8>,
    places: Vec<(Vec<u8>, Kind)>,
    entries: Vec<Entry>,
    key_bytes: usize,
}

impl TermCollector {
    fn new(prefix: Vec<u8>) -> TermCollector {
        let (places, entries) = (Vec::with_capacity(16), Vec::with_capacity(16));
        TermCollector {
            prefix,
            path: GrowingPath::default(),
            term: Vec::new(),
            places,
            entries,
            key_bytes: 0,
        }
    }

    fn run(&mut self, coverage: &Coverage, body: ValueRef<'_>) -> Result<Shape, TooManyTerms> {
        if let ValueRef::Object(members) = body {
            self.members(members, coverage.start(), Within::Object)?;
        }
        for composite in coverage.composites() {
            let entry = self.composite(composite, body);
            self.push(entry)?;
        }
        let shape = Shape::new(std::mem::take(&mut self.places), SHAPE_BYTES_MAX).ok_or(TooManyTerms)?;
        let mut key = self.key(SHAPE, shape.hash.len());
        key.extend_from_slice(&shape.hash);
        self.push(Entry { key, inexact: false, stamp: None })?;
        self.sort();
        if self.is_too_much(1) { Err(TooManyTerms) } else { Ok(shape) }
    }

    fn members(
        &mut self,
        members: document::ObjectRef<'_>,
        cursor: Cursor<'_>,
        within: Within,
    ) -> Result<(), TooManyTerms> {
        let depth = self.path.depth();
        for (name, member) in members.iter() {
            let cursor = cursor.property(name);
            if cursor.is_barren() {
                continue;
            }
            if !self.path.enter(name) {
                return Err(TooManyTerms);
            }
            self.value(member, cursor, within)?;
            self.path.leave(depth);
        }
        Ok(())
    }

    fn value(&mut self, value: ValueRef<'_>, cursor: Cursor<'_>, within: Within) -> Result<(), TooManyTerms> {
        let kind = match value {
            ValueRef::Array(_) => Kind::Array,
            ValueRef::Object(_) => Kind::Object,
            _ => Kind::Scalar,
        };
        if within == Within::Object && cursor.is_covered() {
            let mut place = Vec::with_capacity(self.path.depth() + 1);
            self.path.write(&mut place);
            self.places.push((place, kind));
        }
        match value {
            ValueRef::Object(members) => self.members(members, cursor, within),
            ValueRef::Array(items) => {
                let (depth, cursor) = (self.path.depth(), cursor.items());
                if cursor.is_barren() {
                    return Ok(());
                }
                if !self.path.enter_items() {
                    return Err(TooManyTerms);
                }
                for item in items.iter() {
                    self.value(item, cursor, Within::Array)?;
                }
                self.path.leave(depth);
                Ok(())
            }
            scalar if cursor.is_covered() => self.scalar(scalar),
            _ => Ok(()),
        }
    }

    fn scalar(&mut self, scalar: ValueRef<'_>) -> Result<(), TooManyTerms> {
        let mut term = std::mem::take(&mut self.term);
        term.clear();
        let fidelity = term::encode(scalar, &mut term);
        let mut key = self.key(PATH, self.path.depth() + 1 + term.len());
        self.path.write(&mut key);
        key.extend_from_slice(&term);
        self.term = term;
        self.push(Entry { key, inexact: fidelity != Some(Fidelity::Exact), stamp: None })
    }

    fn composite(&mut self, composite: &Composite, body: ValueRef<'_>) -> Entry {
        let mut entry = Entry { key: self.key(COMPOSITE, 64), inexact: false, stamp: None };
        entry.key.extend_from_slice(&composite.number.to_be_bytes());
        for part in &composite.parts {
            match part.source {
                Source::Stamp => entry.stamp = Some(StampSlot { at: entry.key.len(), order: part.order }),
                Source::Body(_) => {
                    entry.inexact |= encode_part(part.source.read(body), part.order, &mut entry.key);
                }
            }
        }
        entry
    }

    /// Returns the beginning of a key, with capacity for `rest` bytes and the number.
    fn key(&self, kind: u8, rest: usize) -> Vec<u8> {
        let mut key = Vec::with_capacity(self.prefix.len() + 1 + rest + NUMBER_BYTES);
        key.extend_from_slice(&self.prefix);
        key.push(kind);
        key
    }

    /// Adds an entry. Items of an array may repeat, so repetitions are removed before the limit is judged.
    fn push(&mut self, entry: Entry) -> Result<(), TooManyTerms> {
        self.key_bytes += entry.key.len();
        self.entries.push(entry);
        if self.is_too_much(2) {
            self.sort();
            if self.is_too_much(1) {
                return Err(TooManyTerms);
            }
        }
        Ok(())
    }

    /// Returns whether there are more entries than `times` times the limit.
    fn is_too_much(&self, times: usize) -> bool {
        self.entries.len() > ENTRIES_MAX * times || self.key_bytes > KEY_BYTES_MAX * times
    }

    /// Sorts the entries by key, and removes repetitions. An entry that stands for several values is as inexact as
    /// the least precise of them.
    fn sort(&mut self) {
        self.entries.sort_unstable_by(|one, other| one.key.cmp(&other.key));
        self.entries.dedup_by(|later, first| {
            let same = later.key == first.key;
            first.inexact |= same && later.inexact;
            same
        });
        self.key_bytes = self.entries.iter().map(|entry| entry.key.len()).sum();
    }
}

/// Whether the traversal is inside an array. Only paths outside of arrays belong to the shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Within {
    Object,
    Array,
}

#[cfg(test)]
mod tests {
    use document::{Document, parse_json};

    use super::super::path::PathKey;
    use super::super::term::Term;
    use super::*;
    use crate::definition::{ContainerDefinition, Step};

    const P: PartitionId = PartitionId(7);
    const G: Generation = Generation(3);

    fn coverage(policy: &str) -> Coverage {
        let text = format!(r#"{{"id":"c","partitionKey":{{"paths":["/pk"]}},"indexingPolicy":{policy}}}"#);
        let value = parse_json(text.as_bytes()).expect("valid JSON");
        let definition = ContainerDefinition::from_value(&value).expect("a valid definition");
        Coverage::new(&definition.indexing).expect("an index")
    }

    fn extract(policy: &str, body: &str) -> Terms {
        let body = Document::from_json(body.as_bytes()).expect("valid JSON");
        Terms::extract(P, G, &coverage(policy), body.root())
    }

    /// Returns the path entries as `path=value`, with `!` if inexact.
    fn listed(terms: &Terms, candidates: &[(&str, &str)]) -> Vec<String> {
        let mut found = Vec::new();
        for (path, value) in candidates {
            let step = |name: &str| match name {
                "[]" => Step::Items,
                name => Step::Property(name.to_owned()),
            };
            let steps: Vec<Step> = path.split('/').skip(1).map(step).collect();
            let mut key = keys::index_generation(P, G);
            key.push(PATH);
            key.extend_from_slice(PathKey::new(&steps).expect("short").as_bytes());
            let value = parse_json(value.as_bytes()).expect("valid JSON");
            key.extend_from_slice(Term::new(value.view()).expect("a scalar").as_bytes());
            if let Some(entry) = terms.entries.iter().find(|entry| entry.key == key) {
                found.push(format!("{path}={}{}", value.to_json(), if entry.inexact { "!" } else { "" }));
            }
        }
        found
    }

    fn count(terms: &Terms, kind: u8) -> usize {
        terms.entries.iter().filter(|entry| entry.key[8] == kind).count()
    }

    #[test]
    fn every_scalar_has_an_entry_under_its_path() {
        let body = r#"{"id":"x","n":1.0,"o":{"s":"t","none":{}},"a":[1,1.0,"t",[2],{"k":null},[]],"e":[]}"#;
        let terms = extract("{}", body);
        let expected = [
            ("/id", "\"x\""),
            ("/n", "1"),
            ("/o/s", "\"t\""),
            ("/a/[]", "1"),
            ("/a/[]", "\"t\""),
            ("/a/[]/[]", "2"),
            ("/a/[]/k", "null"),
        ];
        let listed = listed(&terms, &expected);
        let names =
            ["/id=\"x\"", "/n=1!", "/o/s=\"t\"", "/a/[]=1!", "/a/[]=\"t\"", "/a/[]/[]=2", "/a/[]/k=null"];
        assert_eq!(listed, names);
        assert_eq!((count(&terms, PATH), count(&terms, SHAPE), terms.entries.len()), (7, 1, 8));
        assert!(terms.entries.is_sorted_by(|one, other| one.key < other.key));
    }

    #[test]
    fn what_the_policy_leaves_out_has_no_entry_and_no_part_in_the_shape() {
        let policy =
            r#"{"includedPaths":[{"path":"/a/?"},{"path":"/t/[]/?"}],"excludedPaths":[{"path":"/*"}]}"#;
        let terms = extract(policy, r#"{"id":"x","a":1,"b":2,"t":[1,2,{"c":3}]}"#);
        assert_eq!(listed(&terms, &[("/a", "1"), ("/b", "2"), ("/t/[]", "2")]), ["/a=1", "/t/[]=2"]);
        assert_eq!(count(&terms, PATH), 4, "with the id");
        let hash = |body: &str| extract(policy, body).shape.expect("no outlier").hash;
        assert_eq!(hash(r#"{"id":"x","a":1}"#), hash(r#"{"b":[2],"t":[],"a":"z","id":"y"}"#));
        assert_ne!(hash(r#"{"id":"x","a":1}"#), hash(r#"{"id":"x","a":{}}"#));
        assert_ne!(hash(r#"{"id":"x","a":1}"#), hash(r#"{"id":"x"}"#));
    }

    #[test]
    fn every_item_stands_in_every_composite_index() {
        let policy = r#"{"compositeIndexes":[[{"path":"/a"},{"path":"/b","order":"descending"}],
                         [{"path":"/_ts","order":"descending"},{"path":"/a"}]]}"#;
        for body in [r#"{"id":"x"}"#, r#"{"id":"x","a":[1],"b":{}}"#, r#"{"id":"x","a":1,"b":"long"}"#] {
            assert_eq!(count(&extract(policy, body), COMPOSITE), 2, "{body}");
        }
        let key = |body: &str, ts| {
            let mut terms = extract(policy, body);
            terms.complete(ItemNumber(1), ts);
            let entries = terms.entries.iter().filter(|entry| entry.key[8] == COMPOSITE);
            entries.map(|entry| (entry.key.clone(), entry.inexact)).collect::<Vec<_>>()
        };
        let (one, other) = (key(r#"{"id":"x","a":1,"b":2}"#, 10), key(r#"{"id":"x","a":1,"b":3}"#, 11));
        assert!(one[0].0 > other[0].0, "b is descending");
        assert!(one[1].0 > other[1].0, "and so is _ts");
        assert!(!one[0].1 && key(r#"{"id":"x","a":[]}"#, 1)[0].1, "of an array only the type is told");
    }

    #[test]
    fn an_item_that_is_too_much_for_the_index_is_an_outlier() {
        let numbers = |count: usize| (0..count).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
        let wide = format!(r#"{{"id":"x","a":[{}]}}"#, numbers(ENTRIES_MAX));
        let long = format!(r#"{{"id":"x","{}":1}}"#, "n".repeat(2000));
        let deep = format!(r#"{{"id":"x","a":{}1{}}}"#, r#"{"name":"#.repeat(60), "}".repeat(60));
        let deeper = format!(r#"{{"id":"x","a":{}1{}}}"#, r#"{"a long name":"#.repeat(100), "}".repeat(100));
        let members = (0..3000).map(|n| format!("\"member {n:05}\":{{}}")).collect::<Vec<_>>().join(",");
        for (body, outlier) in [
            (wide, true),
            (format!(r#"{{"id":"x","a":[{}]}}"#, numbers(ENTRIES_MAX - 2)), false),
            (format!(r#"{{"id":"x","a":[{}1]}}"#, "1,".repeat(100_000)), false),
            (long, true),
            (deep, false),
            (deeper, true),
            (format!(r#"{{"id":"x","o":{{{members}}}}}"#), true),
        ] {
            let terms = extract("{}", &body);
            assert_eq!(terms.shape.is_none(), outlier, "{}", &body[..60]);
            assert_eq!(count(&terms, OUTLIER) == 1 && terms.entries.len() == 1, outlier);
        }
    }

    #[test]
    fn an_excluded_path_makes_no_outlier() {
        let policy = r#"{"excludedPaths":[{"path":"/a/*"},{"path":"/b/*"}]}"#;
        let body = format!(r#"{{"id":"x","a":[{}1],"b":{{"{}":1}}}}"#, "2,".repeat(50_000), "n".repeat(2000));
        assert!(extract(policy, &body).shape.is_some());
    }
}

//! The keys that a document has in an index.
//!
//! Fields that lead through one array take their values from its items together, so that the values in one item are in one
//! key:
//!
//! ```text
//! {"a.b": 1, "a.c": 1}   of {a: [{b: 1, c: 2}, {b: 3, c: 4}]}     (1, 2) and (3, 4), not (1, 4)
//! {a: 1, b: 1}           of {a: [1, 2], b: [3, 4]}                refused: parallel arrays
//! {a: 1}                 of {a: [5, [6]]}                         5 and [6]: arrays in arrays are not opened
//! {a: 1}                 of {a: []}                               undefined
//! {"a.b": 1}             of {a: [7]}, {a: 7}, {}                  null
//! ```
//!
//! A number in a path is a position where the field is an array, and also the name of a field of the documents in it; keys
//! are made for both, because filters look at both.

use bson::{
    ArrayRef, Collation, Document, DocumentRef, Extent, Value, ValueRef, encode_key, encode_key_descending,
    encode_key_text,
};

use super::pattern::PartKind;
use super::{IndexSpec, sphere};
use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::path::Component;

/// How many keys one document may have in one index.
const KEYS_MAX: usize = 100_000;
/// How many steps finding them may take.
const STEPS_MAX: usize = 10 * KEYS_MAX;
const STEP_WORK: usize = 64;
/// How long the hash of a hashed part is.
const HASH_BYTES: usize = 8;

/// The keys of a document in an index, and their properties.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entries {
    /// Ordered and distinct.
    pub keys: Vec<Vec<u8>>,
    /// Whether the path entered an array. Once an index has such a document, two bounds on one field may be met by two
    /// items of one array, so plans have to be more conservative: the index records it.
    pub multikey: bool,
    /// Whether a key was cut ([`bson::Extent::Cut`]). Once an index has such a key it serves no sort: the index
    /// records it.
    pub cut: bool,
}

impl IndexSpec {
    /// Returns the keys of a document; `None` if it is not in this index.
    pub fn keys(&self, document: DocumentRef<'_>, context: &Context) -> Result<Option<Vec<Vec<u8>>>> {
        Ok(self.entries(document, context)?.map(|entries| entries.keys))
    }

    /// Returns the keys of a document and their properties; `None` if the document is not in this index.
    pub fn entries(&self, document: DocumentRef<'_>, context: &Context) -> Result<Option<Entries>> {
        if self.is_collection_ttl() || !self.covers(document, context)? {
            return Ok(None);
        }
        let mut out = Gathered { keys: Vec::new(), multikey: false, cut: false };
        if let Some(rules) = &self.wildcard {
            rules.visit(document, context, &mut |path, value| {
                let mut key = Vec::new();
                let path = encode_key_text(path.as_bytes(), &mut key);
                let value = encode_key(value, &self.collation, &mut key);
                out.push(key, path == Extent::Cut || value == Extent::Cut)
            })?;
            // It is not known by path whether an array was opened; `true` is safe.
            out.multikey = true;
        } else {
            self.ordinary_keys(document, context, &mut out)?;
        }
        if out.keys.is_empty() {
            return Ok(None);
        }
        out.keys.sort_unstable();
        out.keys.dedup();
        Ok(Some(Entries { keys: out.keys, multikey: out.multikey, cut: out.cut }))
    }

    /// Returns the values that a key of a document stands for, by field, for a duplicate key error. Missing fields are
    /// null.
    pub fn key_value(&self, document: DocumentRef<'_>, key: &[u8], context: &Context) -> Result<Document> {
        let found = self.found_key(document, key, context)?;
        let nulls = || self.parts.iter().map(|part| (part.name.as_str(), Value::Null)).collect();
        Ok(found.unwrap_or_else(nulls))
    }

    /// Returns the values of the document that make up the key, if there are any.
    fn found_key(
        &self,
        document: DocumentRef<'_>,
        key: &[u8],
        context: &Context,
    ) -> Result<Option<Document>> {
        let mut found = None;
        let mut gathered = Gathered { keys: Vec::new(), multikey: false, cut: false };
        let mut expansion = Expansion { index: self, context, gathered: &mut gathered, steps: 0 };
        expansion.run(document, &mut |values, _| {
            let mut bytes = Vec::new();
            for (part, value) in self.parts.iter().zip(values) {
                encode_part(part.kind, value.unwrap_or(ValueRef::Null), &self.collation, &mut bytes);
            }
            if found.is_none() && bytes == key {
                found = Some(values.iter().map(|value| value.map(ValueRef::to_value)).collect::<Vec<_>>());
            }
            Ok(())
        })?;
        let named = |values: Vec<Option<Value>>| {
            let values = values.into_iter().map(|value| value.unwrap_or(Value::Null));
            self.parts.iter().map(|part| part.name.as_str()).zip(values).collect()
        };
        Ok(found.map(named))
    }

    /// Returns the value of `{$meta: "indexKey"}` for a key of a document; none where the key is not made of values (text,
    /// positions on the globe, fields by wildcard) or was too long to be kept whole.
    pub fn shown_key(
        &self,
        document: DocumentRef<'_>,
        key: &[u8],
        context: &Context,
    ) -> Result<Option<Document>> {
        let is_plain = |part: &super::Part| matches!(part.kind, PartKind::Ascending | PartKind::Descending);
        if self.parts.iter().all(is_plain) { self.found_key(document, key, context) } else { Ok(None) }
    }

    fn ordinary_keys(&self, document: DocumentRef<'_>, context: &Context, out: &mut Gathered) -> Result<()> {
        let special = self.special_parts(document, context, out)?;
        if special.as_ref().is_some_and(Vec::is_empty) {
            return Ok(());
        }
        // Only that field decides whether a document is in a text or geographic index.
        let sparse = self.sparse && special.is_none();
        let special = special.unwrap_or_else(|| vec![Vec::new()]);
        let mut keys = Vec::new();
        let mut expansion = Expansion { index: self, context, gathered: out, steps: 0 };
        expansion.run(document, &mut |values, gathered| {
            if sparse && values.iter().all(Option::is_none) {
                return Ok(());
            }
            for special in &special {
                let mut key = Vec::new();
                let mut pieces = std::iter::once(special);
                for (part, value) in self.parts.iter().zip(values) {
                    let extent = match part.kind {
                        PartKind::Text | PartKind::Sphere => {
                            key.extend_from_slice(pieces.next().map_or(&[], Vec::as_slice));
                            Extent::Whole
                        }
                        kind => encode_part(kind, value.unwrap_or(ValueRef::Null), &self.collation, &mut key),
                    };
                    gathered.cut |= extent == Extent::Cut;
                }
                if keys.len() >= KEYS_MAX {
                    return Err(too_many_keys());
                }
                keys.push(key);
            }
            Ok(())
        })?;
        out.keys = keys;
        Ok(())
    }

    /// Returns the pieces of keys that replace a text or geographic part; `None` if there is no such part.
    fn special_parts(
        &self,
        document: DocumentRef<'_>,
        context: &Context,
        out: &mut Gathered,
    ) -> Result<Option<Vec<Vec<u8>>>> {
        if let Some(text) = &self.text {
            text.check_parts(&self.parts, document)?;
            let terms = text.scores(document, context)?;
            out.multikey = true;
            let piece = |term: &String| {
                let mut piece = Vec::new();
                encode_key_text(term.as_bytes(), &mut piece);
                piece
            };
            return Ok(Some(terms.keys().map(piece).collect()));
        }
        let mut pieces: Option<Vec<Vec<u8>>> = None;
        for part in self.parts.iter().filter(|part| part.kind == PartKind::Sphere) {
            let cells = sphere::cells_of_field(&part.path, document, context)?;
            // Two geographic fields in one index: only the first narrows the search, the others must be well-formed.
            if pieces.is_none() {
                out.multikey |= cells.len() > 1;
                pieces = Some(cells);
            }
        }
        Ok(pieces)
    }
}

struct Gathered {
    keys: Vec<Vec<u8>>,
    multikey: bool,
    cut: bool,
}

impl Gathered {
    fn push(&mut self, key: Vec<u8>, cut: bool) -> Result<()> {
        if self.keys.len() >= KEYS_MAX {
            return Err(too_many_keys());
        }
        self.keys.push(key);
        self.cut |= cut;
        Ok(())
    }
}

fn too_many_keys() -> Error {
    Error::new(
        Code::CANNOT_BUILD_INDEX_KEYS,
        format!("a document cannot have more than {KEYS_MAX} keys in one index"),
    )
}

/// Appends the key of a value in a part of an index.
pub(super) fn encode_part(
    kind: PartKind,
    value: ValueRef<'_>,
    collation: &Collation,
    out: &mut Vec<u8>,
) -> Extent {
    match kind {
        PartKind::Descending => encode_key_descending(value, collation, out),
        PartKind::Hashed => {
            out.extend_from_slice(&hash(value, collation));
            Extent::Whole
        }
        _ => encode_key(value, collation, out),
    }
}

/// Returns the hash of a value; equal values have equal hashes.
fn hash(value: ValueRef<'_>, collation: &Collation) -> [u8; HASH_BYTES] {
    let mut key = Vec::new();
    encode_key(value, collation, &mut key);
    hash_of_key(&key)
}

/// Returns the hash of the value that has this key.
pub(super) fn hash_of_key(key: &[u8]) -> [u8; HASH_BYTES] {
    // FNV-1a, then mixed: an index spreads by the first bits.
    let hash = key.iter().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3)
    });
    let mixed = (hash ^ (hash >> 33)).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    (mixed ^ (mixed >> 33)).to_be_bytes()
}

/// The position of one field of the key during expansion.
#[derive(Clone)]
struct Cursor<'d, 'p> {
    at: CursorState<'d>,
    /// The rest of the path.
    rest: &'p [Component],
    /// The route to this position: fields with the same route are in the same array.
    route: Vec<Step<'p>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step<'p> {
    Name(&'p str),
    Position(usize),
}

#[derive(Clone, Copy)]
enum CursorState<'d> {
    /// An inner value of the path.
    Value(ValueRef<'d>),
    /// The end: a value that is a key as it is.
    End(ValueRef<'d>),
    Missing,
}

/// Takes the values of one key, one for each part; `None` is missing.
type Emit<'e, 'd> = &'e mut dyn FnMut(&[Option<ValueRef<'d>>], &mut Gathered) -> Result<()>;

struct Expansion<'e> {
    index: &'e IndexSpec,
    context: &'e Context,
    gathered: &'e mut Gathered,
    steps: usize,
}

impl<'e> Expansion<'e> {
    fn run<'d>(&mut self, document: DocumentRef<'d>, emit: Emit<'_, 'd>) -> Result<()> {
        let root = CursorState::Value(ValueRef::Document(document));
        let cursors = self
            .index
            .parts
            .iter()
            .map(|part| match part.kind {
                // These find their values in their own way.
                PartKind::Text | PartKind::Sphere | PartKind::Wildcard => {
                    Cursor { at: CursorState::Missing, rest: &[], route: Vec::new() }
                }
                _ => Cursor { at: root, rest: part.path.components(), route: Vec::new() },
            })
            .collect();
        self.expand(cursors, emit)
    }

    fn expand<'d>(&mut self, mut cursors: Vec<Cursor<'d, 'e>>, emit: Emit<'_, 'd>) -> Result<()> {
        self.step(cursors.len())?;
        let mut waiting: Option<usize> = None;
        for at in 0..cursors.len() {
            if let Some(items) = walk(&mut cursors[at]) {
                self.check_hashed(at)?;
                if cursors[at].rest.first().is_some_and(|component| component.index().is_some()) {
                    return self.by_position(&cursors, at, items, emit);
                }
                match waiting {
                    Some(first) if cursors[first].route != cursors[at].route => {
                        return Err(parallel(&cursors[at], &cursors[first]));
                    }
                    _ => waiting = waiting.or(Some(at)),
                }
            }
        }
        let Some(first) = waiting else {
            let values: Vec<Option<ValueRef<'d>>> = cursors
                .iter()
                .map(|cursor| match cursor.at {
                    CursorState::Value(value) | CursorState::End(value) => Some(value),
                    CursorState::Missing => None,
                })
                .collect();
            return emit(&values, self.gathered);
        };
        self.by_item(&cursors, first, emit)
    }

    /// Counts work. If a number is a position and a name at every level, the number of branches doubles with each
    /// level.
    fn step(&mut self, work: usize) -> Result<()> {
        self.context.spend(work as u64)?;
        self.steps += 1 + work / STEP_WORK;
        if self.steps > STEPS_MAX { Err(too_many_keys()) } else { Ok(()) }
    }

    /// Continues all fields that wait at one array in its items, item by item.
    fn by_item<'d>(&mut self, cursors: &[Cursor<'d, 'e>], first: usize, emit: Emit<'_, 'd>) -> Result<()> {
        self.gathered.multikey = true;
        let CursorState::Value(ValueRef::Array(items)) = cursors[first].at else { return Ok(()) };
        let waits = |cursor: &Cursor<'d, 'e>| {
            matches!(cursor.at, CursorState::Value(ValueRef::Array(_)))
                && cursor.route == cursors[first].route
        };
        let mut enter = |item: Option<ValueRef<'d>>, position: usize| {
            let next = cursors
                .iter()
                .map(|cursor| if waits(cursor) { entered(cursor, item, position) } else { cursor.clone() })
                .collect();
            self.expand(next, emit)
        };
        if items.is_empty() {
            return enter(None, 0);
        }
        for (position, item) in items.iter().enumerate() {
            enter(Some(item), position)?;
        }
        Ok(())
    }

    /// Continues one field at a position of its array, and in those documents of it that have a field of that name.
    fn by_position<'d>(
        &mut self,
        cursors: &[Cursor<'d, 'e>],
        at: usize,
        items: ArrayRef<'d>,
        emit: Emit<'_, 'd>,
    ) -> Result<()> {
        let cursor = &cursors[at];
        let (component, rest) = cursor.rest.split_first().expect("a cursor with a position to go");
        let index = component.index().expect("a position");
        let mut ways = Vec::new();
        self.step(items.len())?;
        for (number, item) in items.iter().enumerate() {
            let mut route = cursor.route.clone();
            route.push(Step::Position(number));
            if number == index {
                // An item at the end of the path is not opened further.
                let here = if rest.is_empty() { CursorState::End(item) } else { CursorState::Value(item) };
                ways.push(Cursor { at: here, rest, route: route.clone() });
            }
            if let ValueRef::Document(document) = item
                && let Some(value) = document.get(component.name())
            {
                route.push(Step::Name(component.name()));
                ways.push(Cursor { at: CursorState::Value(value), rest, route });
            }
        }
        if ways.is_empty() {
            ways.push(Cursor { at: CursorState::Missing, rest: &[], route: Vec::new() });
        }
        self.gathered.multikey |= ways.len() > 1;
        for way in ways {
            let mut next = cursors.to_vec();
            next[at] = way;
            self.expand(next, emit)?;
        }
        Ok(())
    }

    fn check_hashed(&self, at: usize) -> Result<()> {
        if self.index.parts[at].kind == PartKind::Hashed {
            return Err(Error::location(16766, "hashed indexes do not currently support array values"));
        }
        Ok(())
    }
}

fn parallel(one: &Cursor<'_, '_>, other: &Cursor<'_, '_>) -> Error {
    let name = |cursor: &Cursor<'_, '_>| {
        let last = cursor.route.iter().rev().find_map(|step| match step {
            Step::Name(name) => Some((*name).to_owned()),
            Step::Position(_) => None,
        });
        last.unwrap_or_default()
    };
    Error::new(
        Code::CANNOT_INDEX_PARALLEL_ARRAYS,
        format!("cannot index parallel arrays [{}] [{}]", name(one), name(other)),
    )
}

/// Continues through documents as far as the path leads; returns the array, if it ends at one.
fn walk<'d>(cursor: &mut Cursor<'d, '_>) -> Option<ArrayRef<'d>> {
    loop {
        match (cursor.at, cursor.rest.split_first()) {
            (CursorState::Value(ValueRef::Array(items)), _) => return Some(items),
            (CursorState::Value(ValueRef::Document(document)), Some((component, rest))) => {
                cursor.at = document.get(component.name()).map_or(CursorState::Missing, CursorState::Value);
                cursor.rest = rest;
                cursor.route.push(Step::Name(component.name()));
            }
            (CursorState::Value(value), None) => cursor.at = CursorState::End(value),
            (CursorState::Value(_), Some(_)) => cursor.at = CursorState::Missing,
            (CursorState::End(_) | CursorState::Missing, _) => return None,
        }
    }
}

/// Returns a field that was waiting at an array, in one of its items; `None` stands for an empty array.
fn entered<'d, 'p>(cursor: &Cursor<'d, 'p>, item: Option<ValueRef<'d>>, position: usize) -> Cursor<'d, 'p> {
    let mut next = cursor.clone();
    next.route.push(Step::Position(position));
    next.at = match (item, cursor.rest.is_empty()) {
        (Some(item), true) => CursorState::End(item),
        (None, true) => CursorState::End(ValueRef::Undefined),
        (Some(item @ ValueRef::Document(_)), false) => CursorState::Value(item),
        // Arrays in arrays are not opened, and other items have no fields.
        (_, false) => CursorState::Missing,
    };
    next
}

#[cfg(test)]
mod tests {
    use bson::parse_extended_json;

    use super::*;

    fn document(json: &str) -> Document {
        parse_extended_json(json).expect(json).as_document().expect("a document").clone()
    }

    fn index(key: &str, options: &str) -> IndexSpec {
        let json = format!(r#"{{"key":{key},"name":"x"{options}}}"#);
        IndexSpec::parse(document(&json).view()).expect(&json)
    }

    /// Returns the keys a document should have, each as a list of values in the order of the parts.
    fn expected(index: &IndexSpec, keys: &str) -> Vec<Vec<u8>> {
        let Value::Array(keys) = parse_extended_json(keys).expect(keys) else { panic!("a list of keys") };
        let mut keys: Vec<Vec<u8>> = keys
            .iter()
            .map(|key| {
                let mut bytes = Vec::new();
                for (part, value) in index.parts.iter().zip(key.as_array().expect("a list of values")) {
                    encode_part(part.kind, value.view(), &index.collation, &mut bytes);
                }
                bytes
            })
            .collect();
        keys.sort();
        keys
    }

    #[test]
    fn keys_follow_the_arrays() {
        for (key, stored, keys) in [
            (r#"{"a":1}"#, r#"{"a":5}"#, "[[5]]"),
            (r#"{"a":-1}"#, r#"{"a":"x"}"#, r#"[["x"]]"#),
            (r#"{"a":1}"#, "{}", "[[null]]"),
            (r#"{"a":1}"#, r#"{"a":null}"#, "[[null]]"),
            (r#"{"a":1}"#, r#"{"a":[]}"#, r#"[[{"$undefined":true}]]"#),
            (r#"{"a":1}"#, r#"{"a":[3,1,3]}"#, "[[1],[3]]"),
            (r#"{"a":1}"#, r#"{"a":[5,[6,7]]}"#, "[[5],[[6,7]]]"),
            (r#"{"a":1}"#, r#"{"a":{"b":[1]}}"#, r#"[[{"b":[1]}]]"#),
            (r#"{"a.b":1}"#, r#"{"a":{"b":5}}"#, "[[5]]"),
            (r#"{"a.b":1}"#, r#"{"a":5}"#, "[[null]]"),
            (r#"{"a.b":1}"#, r#"{"a":[]}"#, "[[null]]"),
            (r#"{"a.b":1}"#, r#"{"a":[{"b":1},{"b":[2,3]},{"c":4},5]}"#, "[[1],[2],[3],[null]]"),
            (r#"{"a.b":1}"#, r#"{"a":[[{"b":1}]]}"#, "[[null]]"),
            (r#"{"a.b":1,"a.c":1}"#, r#"{"a":[{"b":1,"c":2},{"b":3,"c":4}]}"#, "[[1,2],[3,4]]"),
            (r#"{"a.b":1,"a.c":-1}"#, r#"{"a":[{"b":1},{"c":[4,5]}]}"#, "[[1,null],[null,4],[null,5]]"),
            (r#"{"a":1,"b":1}"#, r#"{"a":[1,2],"b":3}"#, "[[1,3],[2,3]]"),
            (r#"{"a":1,"a.b":1}"#, r#"{"a":[{"b":1}]}"#, r#"[[{"b":1},1]]"#),
            (r#"{"a":1,"b":1}"#, r#"{"a":[],"b":3}"#, r#"[[{"$undefined":true},3]]"#),
            (r#"{"a.0":1}"#, r#"{"a":[5,6]}"#, "[[5]]"),
            (r#"{"a.0":1}"#, r#"{"a":{"0":7}}"#, "[[7]]"),
            (r#"{"a.0.b":1}"#, r#"{"a":[{"b":1},{"b":2}]}"#, "[[1]]"),
            (r#"{"a.0":1}"#, r#"{"a":[5,{"0":8}]}"#, "[[5],[8]]"),
            (r#"{"a.7":1}"#, r#"{"a":[5]}"#, "[[null]]"),
            (r#"{"a.0":1,"a.1":1}"#, r#"{"a":[5,6]}"#, "[[5,6]]"),
            (r#"{"a.0":1,"b":1}"#, r#"{"a":[5,6],"b":[1,2]}"#, "[[5,1],[5,2]]"),
            (r#"{"a":"hashed","b":1}"#, r#"{"a":5,"b":[1,2]}"#, "[[5,1],[5,2]]"),
        ] {
            let index = index(key, "");
            let found = index.keys(document(stored).view(), &Context::at(0)).expect(stored).expect("keys");
            assert_eq!(found, expected(&index, keys), "{key} of {stored}");
        }
    }

    #[test]
    fn arrays_that_do_not_go_together_are_refused() {
        let refused = |key: &str, stored: &str| {
            index(key, "").keys(document(stored).view(), &Context::at(0)).expect_err(stored)
        };
        let error = refused(r#"{"a":1,"b":1}"#, r#"{"a":[1,2],"b":[3,4]}"#);
        assert_eq!(error.code, Code::CANNOT_INDEX_PARALLEL_ARRAYS);
        assert_eq!(error.message, "cannot index parallel arrays [b] [a]");
        let nested = refused(r#"{"a.b":1,"a.c":1}"#, r#"{"a":[{"b":[1],"c":[2]}]}"#);
        assert_eq!(nested.code, Code::CANNOT_INDEX_PARALLEL_ARRAYS);
        assert_eq!(refused(r#"{"a":"hashed"}"#, r#"{"a":[1]}"#).code, Code(16766));
        assert_eq!(refused(r#"{"a":"2dsphere"}"#, r#"{"a":[300,0]}"#).code, Code(16755));
    }

    #[test]
    fn a_document_made_to_fork_at_every_level_ends_soon() {
        let mut value = Value::Array((0..50_000).map(Value::Int32).collect());
        for _ in 0..60 {
            value = Value::Array(vec![Value::Document(Document::new().with("0", value))]);
        }
        let stored = Document::new().with("0", value);
        let path = vec!["0"; 120].join(".");
        let forking = index(&format!(r#"{{"{path}":1}}"#), "");
        let error = forking.keys(stored.view(), &Context::at(0)).expect_err("too much");
        assert_eq!(error.code, Code::CANNOT_BUILD_INDEX_KEYS);
    }

    #[test]
    fn some_documents_are_left_out() {
        let count = |index: &IndexSpec, stored: &str| {
            index.keys(document(stored).view(), &Context::at(0)).expect(stored).map(|keys| keys.len())
        };
        let sparse = index(r#"{"a":1,"b":1}"#, r#","sparse":true"#);
        assert_eq!(count(&sparse, r#"{"c":1}"#), None);
        assert_eq!(count(&sparse, r#"{"b":1}"#), Some(1));
        assert_eq!(count(&sparse, r#"{"a":null}"#), Some(1));
        let partial = index(r#"{"a":1}"#, r#","partialFilterExpression":{"b":{"$gt":5}}"#);
        assert_eq!(count(&partial, r#"{"a":1,"b":5}"#), None);
        assert_eq!(count(&partial, r#"{"b":6}"#), Some(1));
        let collection_ttl = index(r#"{"_ts":1}"#, r#","expireAfterSeconds":5"#);
        assert_eq!(count(&collection_ttl, r#"{"_ts":1}"#), None);
        let text = index(r#"{"t":"text"}"#, "");
        assert_eq!(count(&text, r#"{"u":"word"}"#), None);
        assert_eq!(count(&text, r#"{"t":["Some words","more WORDS"]}"#), Some(1));
        assert_eq!(count(&text, r#"{"t":"the quick fox"}"#), Some(2));
        let sphere = index(r#"{"g":"2dsphere"}"#, "");
        assert_eq!(count(&sphere, "{}"), None);
        assert_eq!(count(&sphere, r#"{"g":[1,2]}"#), Some(1));
    }

    #[test]
    fn a_wildcard_has_every_path() {
        let paths = |index: &IndexSpec, stored: &str| {
            let mut found = Vec::new();
            let stored = document(stored);
            let rules = index.wildcard.as_ref().expect("a wildcard");
            rules
                .visit(stored.view(), &Context::at(0), &mut |path, value| {
                    found.push(format!("{path}={}", bson::shell_text(value)));
                    Ok(())
                })
                .expect("paths");
            found.join(" ")
        };
        let stored = r#"{"_id":1,"a":{"b":1,"x":{}},"c":[2,{"d":3},[4]],"e":[]}"#;
        let all = index(r#"{"$**":1}"#, "");
        assert_eq!(paths(&all, stored), "a.b=1 a.x={} c=2 c.d=3 c=[ 4 ] e=undefined");
        assert_eq!(paths(&index(r#"{"a.$**":1}"#, ""), stored), "a.b=1 a.x={}");
        let some = index(r#"{"$**":1}"#, r#","wildcardProjection":{"a.b":1,"_id":1}"#);
        assert_eq!(paths(&some, stored), "_id=1 a.b=1");
        let others = index(r#"{"$**":1}"#, r#","wildcardProjection":{"a":0}"#);
        assert_eq!(paths(&others, stored), "c=2 c.d=3 c=[ 4 ] e=undefined");
    }

    #[test]
    fn arrays_and_long_values_are_told() {
        let entries = |stored: &str| {
            index(r#"{"a":1}"#, "")
                .entries(document(stored).view(), &Context::at(0))
                .expect(stored)
                .expect("keys")
        };
        assert!(!entries(r#"{"a":1}"#).multikey);
        assert!(entries(r#"{"a":[1]}"#).multikey && entries(r#"{"a":[]}"#).multikey);
        assert!(entries(&format!(r#"{{"a":"{}"}}"#, "x".repeat(5000))).cut);
    }

    #[test]
    fn a_key_tells_its_values() {
        let index = index(r#"{"a":1,"b":-1}"#, "");
        let stored = document(r#"{"a":[1,2]}"#);
        let keys = index.keys(stored.view(), &Context::at(0)).expect("keys").expect("keys");
        let told: Vec<String> = keys
            .iter()
            .map(|key| {
                let value = index.key_value(stored.view(), key, &Context::at(0)).expect("a value");
                bson::shell_text(Value::Document(value).view())
            })
            .collect();
        assert_eq!(told, ["{ a: 1, b: null }", "{ a: 2, b: null }"]);
    }

    #[test]
    fn t27_the_earliest_date_counts() {
        let ttl = index(r#"{"a.d":1}"#, r#","expireAfterSeconds":5,"partialFilterExpression":{"x":1}"#);
        let date = |millis: i64| format!(r#"{{"$date":{{"$numberLong":"{millis}"}}}}"#);
        for (stored, earliest) in [
            (format!(r#"{{"x":1,"a":{{"d":{}}}}}"#, date(7)), Some(7)),
            (format!(r#"{{"x":1,"a":{{"d":[{},5,{}]}}}}"#, date(7), date(-3)), Some(-3)),
            (format!(r#"{{"x":1,"a":[{{"d":{}}},{{"d":{}}}]}}"#, date(9), date(8)), Some(8)),
            (format!(r#"{{"x":2,"a":{{"d":{}}}}}"#, date(7)), None),
            (r#"{"x":1,"a":{"d":5}}"#.to_owned(), None),
            (r#"{"x":1,"a":{"d":{"$timestamp":{"t":1,"i":1}}}}"#.to_owned(), None),
            (r#"{"x":1}"#.to_owned(), None),
            (format!(r#"{{"x":1,"a":{{"d":[[{}]]}}}}"#, date(7)), None),
        ] {
            assert_eq!(ttl.earliest_date(document(&stored).view()), earliest, "{stored}");
        }
        let hashed = index(r#"{"a":"hashed"}"#, r#","expireAfterSeconds":5"#);
        assert_eq!(hashed.earliest_date(document(&format!(r#"{{"a":{}}}"#, date(7))).view()), None);
    }
}

//! Plans against reading everything: every candidate finds all documents that a filter finds; an exact candidate needs no
//! filter; and where a candidate serves the sort, documents come in its order.

use std::collections::BTreeSet;

use bson::{Collation, Document, Value, parse_extended_json};
use mql::Context;
use mql::filter::{Filter, Settings};
use mql::index::{Available, Candidate, IndexSpec, Span, plan, plan_branches};
use mql::sort::{Direction, Sort};
use proptest::prelude::*;
use proptest::sample::select;

fn json(text: &str) -> Value {
    parse_extended_json(text).expect(text)
}

fn scalar() -> impl Strategy<Value = Value> + Clone {
    prop_oneof![
        20 => (0..4_i32).prop_map(Value::Int32),
        4 => select(vec!["a", "A", "b", "ab", "é", ""]).prop_map(Value::from),
        4 => Just(Value::Null),
        2 => select(vec![1.0, 2.5, f64::NAN, -0.0, f64::INFINITY]).prop_map(Value::Double),
        1 => select(vec![
            Value::Bool(true),
            Value::DateTime(5),
            Value::MinKey,
            Value::MaxKey,
            Value::Undefined,
            json(r#"{"$regularExpression":{"pattern":"^a","options":""}}"#),
            json(r#"{"$numberDecimal":"2.50"}"#),
            json(r#"{"$oid":"ffffffffffffffffffffffff"}"#),
            Value::Int64(i64::MAX),
            Value::String(format!("{}a", "x".repeat(3000))),
            Value::String(format!("{}b", "x".repeat(3000))),
            Value::String("x".repeat(1600)),
        ]),
    ]
}

fn value() -> impl Strategy<Value = Value> + Clone {
    scalar().prop_recursive(3, 12, 3, |inner| {
        let fields = prop::collection::btree_map(select(vec!["a", "b", "c", "0"]), inner.clone(), 0..3);
        prop_oneof![
            3 => prop::collection::vec(inner, 0..3).prop_map(Value::Array),
            2 => fields.prop_map(|fields| Value::Document(fields.into_iter().collect())),
        ]
    })
}

fn document() -> impl Strategy<Value = Document> {
    let items = prop::collection::vec(
        prop::collection::btree_map(select(vec!["b", "c"]), value(), 0..3)
            .prop_map(|fields| Value::Document(fields.into_iter().collect())),
        0..4,
    );
    let numbers = prop::collection::vec((0..4_i32).prop_map(Value::Int32), 0..4);
    let a = prop_oneof![
        3 => value(),
        2 => items.prop_map(Value::Array),
        2 => numbers.prop_map(Value::Array),
        1 => (0..4_i32).prop_map(Value::Int32),
    ];
    (prop::option::weighted(0.9, a), prop::option::weighted(0.5, value())).prop_map(|(a, b)| {
        let fields = [("a", a), ("b", b)].into_iter();
        fields.filter_map(|(name, value)| value.map(|value| (name, value))).collect()
    })
}

const PATHS: &[&str] =
    &["a", "a", "a", "a", "a.b", "a.b", "a.b", "a.b", "a.c", "a.c", "b", "b", "a.b.c", "a.0", "a.0.b"];

fn operator(name: &str, operand: impl Into<Value>) -> Document {
    Document::new().with(name, operand)
}

/// Returns the operators on one value.
fn test() -> BoxedStrategy<Document> {
    let comparison =
        (select(vec!["$eq", "$gt", "$gte", "$lt", "$lte", "$ne"]), prop_oneof![2 => scalar(), 1 => value()]);
    let list = (select(vec!["$in", "$nin", "$all"]), prop::collection::vec(value(), 0..4));
    let simple = prop_oneof![
        6 => comparison.prop_map(|(name, operand)| operator(name, operand)),
        2 => list.prop_map(|(name, operands)| operator(name, operands)),
        1 => any::<bool>().prop_map(|exists| operator("$exists", exists)),
        1 => select(vec!["number", "string", "array", "object", "null", "undefined", "bool"])
            .prop_map(|kind| operator("$type", kind)),
        1 => select(vec!["^a", "b", "^ab?", "^A"]).prop_map(|pattern| operator("$regex", pattern)),
        1 => (0..3_i32).prop_map(|size| operator("$size", size)),
        1 => Just(operator("$mod", vec![Value::Int32(2), Value::Int32(0)])),
    ];
    let both =
        (simple.clone(), simple.clone()).prop_map(|(one, other)| one.into_iter().chain(other).collect());
    let range = (0..4_i32, 0..4_i32).prop_map(|(low, high)| operator("$gte", low).with("$lte", high));
    prop_oneof![
        4 => simple.clone(),
        1 => both,
        4 => range.clone(),
        1 => simple.clone().prop_map(|inner| operator("$not", inner)),
        1 => range.prop_map(|inner| operator("$elemMatch", inner)),
        1 => simple.clone().prop_map(|inner| operator("$elemMatch", inner)),
        2 => (select(vec!["b", "c", "a"]), simple.clone(), select(vec!["b", "c"]), simple).prop_map(
            |(first, one, second, other)| {
                let mut inner = Document::new();
                inner.insert(first, one);
                inner.insert(second, other);
                operator("$elemMatch", inner)
            }
        ),
    ]
    .boxed()
}

fn condition() -> BoxedStrategy<Document> {
    prop_oneof![
        3 => (select(PATHS), test()).prop_map(|(path, test)| operator(path, test)),
        1 => (select(PATHS), value()).prop_map(|(path, value)| operator(path, value)),
        1 => (0..4_i32, 0..4_i32).prop_map(|(b, c)| operator("a.b", b).with("a.c", c)),
        1 => (select(PATHS), value()).prop_map(|(path, value)| {
            let sides = vec![Value::String(format!("${path}")), Value::Document(operator("$literal", value))];
            operator("$expr", operator("$eq", sides))
        }),
    ]
    .boxed()
}

fn filter() -> impl Strategy<Value = Document> {
    condition().prop_recursive(2, 8, 3, |inner| {
        let list = |name: &'static str| {
            prop::collection::vec(inner.clone(), 1..4).prop_map(move |nodes| {
                operator(name, nodes.into_iter().map(Value::Document).collect::<Vec<_>>())
            })
        };
        prop_oneof![
            3 => (inner.clone(), inner.clone()).prop_map(|(mut one, other)| {
                other.into_iter().for_each(|(name, value)| one.insert(name, value));
                one
            }),
            1 => list("$or"),
            1 => list("$and"),
            1 => list("$nor"),
        ]
    })
}

fn index() -> impl Strategy<Value = Document> {
    let direction = prop_oneof![
        6 => Just(Value::Int32(1)),
        3 => Just(Value::Int32(-1)),
        1 => Just(Value::from("hashed")),
    ];
    let fields = prop::collection::vec((select(PATHS), direction), 1..3);
    let options = select(vec![
        "{}",
        "{}",
        "{}",
        "{}",
        "{}",
        r#"{"sparse":true}"#,
        r#"{"collation":{"locale":"en","strength":2}}"#,
        r#"{"partialFilterExpression":{"a":{"$gt":1}}}"#,
        r#"{"partialFilterExpression":{"b":{"$exists":true}}}"#,
        r#"{"partialFilterExpression":{"$or":[{"a":1},{"a":{"$type":"string"}}]}}"#,
    ]);
    let ordinary = (fields, options).prop_map(|(fields, options)| {
        let mut key = Document::new();
        let mut hashed = false;
        for (path, direction) in fields {
            let is_hash = direction.as_str().is_some();
            key.insert(path, if is_hash && hashed { Value::Int32(1) } else { direction });
            hashed |= is_hash;
        }
        let mut spec = Document::new().with("key", key).with("name", "x");
        let options = json(options);
        for (name, value) in options.as_document().expect("options").iter() {
            spec.push(name, value.clone());
        }
        spec
    });
    let wildcard = select(vec![
        r#"{"key":{"$**":1},"name":"x"}"#,
        r#"{"key":{"a.$**":1},"name":"x"}"#,
        r#"{"key":{"$**":1},"name":"x","wildcardProjection":{"a":1}}"#,
        r#"{"key":{"$**":1},"name":"x","wildcardProjection":{"a.b":0}}"#,
    ])
    .prop_map(|text| json(text).as_document().expect("a document").clone());
    prop_oneof![6 => ordinary, 1 => wildcard]
}

/// `a` and `b` in it, each a document or an array of them.
fn below_two_arrays() -> impl Strategy<Value = Document> {
    let one_or_several = |one: BoxedStrategy<Value>| {
        prop_oneof![one.clone(), prop::collection::vec(one, 0..3).prop_map(Value::Array),].boxed()
    };
    let number = || prop::option::of((0..2_i32).prop_map(Value::Int32));
    let fields = |fields: [(&str, Option<Value>); 2]| {
        let there = fields.into_iter().filter_map(|(name, value)| Some((name, value?)));
        Value::Document(there.collect())
    };
    let leaf = (number(), number()).prop_map(move |(x, y)| fields([("x", x), ("y", y)])).boxed();
    let item = (one_or_several(leaf), number()).prop_map(move |(b, c)| fields([("b", Some(b)), ("c", c)]));
    one_or_several(item.boxed()).prop_map(|a| Document::new().with("a", a))
}

fn element_filter() -> impl Strategy<Value = Document> {
    let texts = vec![
        r#"{"a":{"$elemMatch":{"b.x":X,"b.y":Y}}}"#,
        r#"{"a.b":{"$elemMatch":{"x":X,"y":Y}}}"#,
        r#"{"a":{"$elemMatch":{"b":{"$elemMatch":{"x":X,"y":Y}}}}}"#,
        r#"{"a":{"$elemMatch":{"b":{"$elemMatch":{"x":X,"y":Y}},"c":Z}}}"#,
        r#"{"a":{"$elemMatch":{"b.x":X,"c":Z}}}"#,
        r#"{"a":{"$elemMatch":{"b.x":X,"b.y":Y,"c":Z}}}"#,
        r#"{"a":{"$elemMatch":{"b":{"$elemMatch":{"x":X}},"b.y":Y,"c":Z}}}"#,
        r#"{"a":{"$elemMatch":{"b.x":X}},"a.b.y":Y,"a.c":Z}"#,
        r#"{"$and":[{"a":{"$elemMatch":{"b.x":X,"c":Z}}},{"a":{"$elemMatch":{"b.y":Y,"c":X}}}]}"#,
        r#"{"a.b.x":X,"a.b.y":Y,"a.c":Z}"#,
    ];
    (select(texts), 0..2_i32, 0..2_i32, 0..2_i32).prop_map(|(text, x, y, z)| {
        let text =
            text.replace('X', &x.to_string()).replace('Y', &y.to_string()).replace('Z', &z.to_string());
        json(&text).as_document().expect("a filter").clone()
    })
}

fn sort() -> impl Strategy<Value = Option<Document>> {
    let fields = prop::collection::vec((select(PATHS), select(vec![1, -1])), 1..3);
    prop::option::of(fields.prop_map(|fields| {
        let mut sort = Document::new();
        for (path, direction) in fields {
            sort.insert(path, direction);
        }
        sort
    }))
}

/// An index with its entries, as a store would keep it.
struct Stored {
    spec: IndexSpec,
    entries: BTreeSet<(Vec<u8>, usize)>,
    multikey: bool,
    cut: bool,
}

/// Builds the index over the documents that it accepts; returns those too.
fn build(spec: IndexSpec, documents: Vec<Document>) -> (Stored, Vec<Document>) {
    let context = Context::at(0);
    let mut stored = Stored { spec, entries: BTreeSet::new(), multikey: false, cut: false };
    let mut taken = Vec::new();
    for document in documents {
        let Ok(entries) = stored.spec.entries(document.view(), &context) else { continue };
        if let Some(entries) = entries {
            stored.multikey |= entries.multikey;
            stored.cut |= entries.cut;
            stored.entries.extend(entries.keys.into_iter().map(|key| (key, taken.len())));
        }
        taken.push(document);
    }
    (stored, taken)
}

/// Returns `true` if a span holds a key in the form of a store: with the number of the item after it.
pub(crate) fn is_within(span: &Span, key: &[u8], number: usize) -> bool {
    let entry = [key, &(number as u64).to_be_bytes()].concat();
    span.lower <= entry && (span.upper.is_empty() || entry < span.upper)
}

/// Returns the documents that a candidate finds, each at its first position.
fn found(stored: &Stored, candidate: &Candidate) -> Vec<usize> {
    assert!(candidate.spans.is_sorted());
    let mut hits: Vec<usize> = Vec::new();
    for span in &candidate.spans {
        let within = |(key, number): &&(Vec<u8>, usize)| is_within(span, key, *number);
        hits.extend(stored.entries.iter().filter(within).map(|(_, number)| number));
    }
    if candidate.direction == Direction::Descending {
        hits.reverse();
    }
    let mut seen = BTreeSet::new();
    hits.retain(|number| seen.insert(*number));
    hits
}

fn check(
    spec: &Document,
    documents: Vec<Document>,
    filter: &Document,
    sort: Option<&Document>,
    strict: bool,
) {
    let context = Context::at(0);
    let Ok(spec) = IndexSpec::parse(spec.view()) else { return };
    let collation = if strict { spec.collation().clone() } else { Collation::simple() };
    let settings = Settings { collation: collation.clone(), ..Settings::default() };
    let Ok(parsed) = Filter::parse(filter.view(), &settings) else { return };
    let sort = sort.map(|sort| Sort::parse(sort.view()).expect("a sort"));
    let (stored, documents) = build(spec, documents);
    let matches = |number: &usize| parsed.matches(documents[*number].view(), &context).expect("an answer");
    let expected: BTreeSet<usize> = (0..documents.len()).filter(matches).collect();
    let available = [Available { spec: &stored.spec, multikey: stored.multikey, cut: stored.cut }];
    for candidate in plan(&parsed, sort.as_ref(), &collation, &available, None).expect("a plan") {
        let hits = found(&stored, &candidate);
        let told = || {
            format!(
                "{filter:?}\n{:?}\n{:?} multikey {}\n{documents:?}",
                stored.spec.to_document(),
                candidate.bounds,
                stored.multikey
            )
        };
        if candidate.exact {
            assert!(hits.iter().all(matches), "exact: {hits:?} is not {expected:?}\n{}", told());
        }
        let filtered: Vec<usize> = hits.into_iter().filter(matches).collect();
        assert_eq!(filtered.iter().copied().collect::<BTreeSet<_>>(), expected, "{}", told());
        if let (Some(sort), true) = (&sort, candidate.serves_sort) {
            let keys: Vec<_> = filtered
                .iter()
                .map(|number| sort.key(documents[*number].view(), &collation, None, &context).expect("a key"))
                .collect();
            let ordered = keys.windows(2).all(|pair| sort.compare(&pair[0], &pair[1]).is_le());
            assert!(ordered, "sort {sort:?}: {filtered:?}\n{}", told());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(3000), max_shrink_iters: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn candidates_miss_nothing(
        spec in index(),
        documents in prop::collection::vec(document(), 1..20),
        filter in filter(),
        sort in sort(),
        strict in any::<bool>(),
    ) {
        check(&spec, documents, &filter, sort.as_ref(), strict);
    }

    /// The same below two arrays, of which `$elemMatch` names one, both, or a path through both.
    #[test]
    fn candidates_below_two_arrays_miss_nothing(
        key in select(vec![
            r#"{"a.b.x":1,"a.b.y":1}"#,
            r#"{"a.b.x":1,"a.c":1}"#,
            r#"{"a.c":-1,"a.b.y":1,"a.b.x":1}"#,
            r#"{"a.b.y":1,"a.c":1,"a.b.x":-1}"#,
        ]),
        documents in prop::collection::vec(below_two_arrays(), 1..12),
        filter in element_filter(),
    ) {
        let spec = Document::new().with("key", json(key)).with("name", "x");
        check(&spec, documents, &filter, None, true);
    }

    /// The same without arrays, where bounds are intersected.
    #[test]
    fn candidates_over_plain_documents_miss_nothing(
        spec in index(),
        values in prop::collection::vec((scalar(), scalar(), any::<bool>()), 1..12),
        filter in filter(),
        sort in sort(),
    ) {
        let documents = values
            .into_iter()
            .map(|(a, b, nested)| {
                let a = if nested { Value::Document(Document::new().with("b", a)) } else { a };
                Document::new().with("a", a).with("b", b)
            })
            .collect();
        check(&spec, documents, &filter, sort.as_ref(), true);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(1000), ..ProptestConfig::default() })]

    #[test]
    fn branches_together_miss_nothing(
        specs in prop::collection::vec(index(), 2..5),
        documents in prop::collection::vec(document(), 1..20),
        branches in prop::collection::vec(filter(), 2..4),
        other in prop::option::of(condition()),
    ) {
        let context = Context::at(0);
        let branches: Vec<Value> = branches.into_iter().map(Value::Document).collect();
        let filter = other.unwrap_or_default().with("$or", branches);
        let parsed = Filter::parse(filter.view(), &Settings::default());
        let specs: Vec<IndexSpec> = specs.iter().filter_map(|spec| IndexSpec::parse(spec.view()).ok()).collect();
        prop_assume!(parsed.is_ok());
        let parsed = parsed.unwrap();
        let mut documents = documents;
        let fits = |document: &Document| {
            specs.iter().all(|spec| spec.entries(document.view(), &context).is_ok())
        };
        documents.retain(fits);
        let stored: Vec<Stored> =
            specs.into_iter().map(|spec| build(spec, documents.clone()).0).collect();
        let available: Vec<Available<'_>> = stored
            .iter()
            .map(|index| Available { spec: &index.spec, multikey: index.multikey, cut: index.cut })
            .collect();
        let Some(planned) = plan_branches(&parsed, &Collation::simple(), &available) else { return Ok(()) };
        let hits: BTreeSet<usize> = planned
            .iter()
            .flat_map(|candidates| found(&stored[candidates[0].index], &candidates[0]))
            .collect();
        for (number, document) in documents.iter().enumerate() {
            let passes = parsed.matches(document.view(), &context).unwrap();
            prop_assert!(!passes || hits.contains(&number), "{filter:?}\n{document:?}");
        }
    }
}

/// Filter, sort, key, options, and what comes out: the bounds, whether it serves the sort and is exact.
const PLANS: &[(&str, &str, &str, &str)] = &[
    (r#"{"a":5}"#, "{}", r#"{"a":1}"#, r#"{ a: [ "[5, 5]" ] } exact"#),
    (r#"{"a":{"$gt":5}}"#, r#"{"a":1}"#, r#"{"a":1}"#, r#"{ a: [ "(5, inf]" ] } sorted exact"#),
    (
        r#"{"a":{"$gte":1,"$lt":5}}"#,
        r#"{"a":-1}"#,
        r#"{"a":1}"#,
        r#"{ a: [ "[1, 5)" ] } sorted backwards exact"#,
    ),
    (r#"{"a":{"$in":[3,1]}}"#, "{}", r#"{"a":1}"#, r#"{ a: [ "[1, 1]", "[3, 3]" ] } exact"#),
    (
        r#"{"a":5,"b":{"$lt":3}}"#,
        r#"{"b":-1}"#,
        r#"{"a":1,"b":-1}"#,
        r#"{ a: [ "[5, 5]" ], b: [ "(3, -inf]" ] } sorted exact"#,
    ),
    (r#"{"b":3}"#, "{}", r#"{"a":1,"b":1}"#, "none"),
    (
        r#"{"a":{"$gt":1},"b":3}"#,
        "{}",
        r#"{"a":1,"b":1}"#,
        r#"{ a: [ "(1, inf]" ], b: [ "[MinKey, MaxKey]" ] }"#,
    ),
    (
        "{}",
        r#"{"a":1,"b":-1}"#,
        r#"{"a":-1,"b":1}"#,
        r#"{ a: [ "[MaxKey, MinKey]" ], b: [ "[MinKey, MaxKey]" ] } sorted backwards exact"#,
    ),
    ("{}", r#"{"a":1,"b":1}"#, r#"{"a":-1,"b":1}"#, "none"),
    (
        r#"{"a":{"$in":[1,2]}}"#,
        r#"{"b":1}"#,
        r#"{"a":1,"b":1}"#,
        r#"{ a: [ "[1, 1]", "[2, 2]" ], b: [ "[MinKey, MaxKey]" ] } exact"#,
    ),
    (r#"{"a":{"$regex":"^ab"}}"#, "{}", r#"{"a":1}"#, r#"{ a: [ "[\"ab\", \"ac\")", "[/^ab/, /^ab/]" ] }"#),
    (r#"{"a":null}"#, "{}", r#"{"a":1}"#, r#"{ a: [ "[null, null]" ] } exact"#),
    (r#"{"a":{"$ne":5}}"#, "{}", r#"{"a":1}"#, r#"{ a: [ "[MinKey, 5)", "(5, MaxKey]" ] } exact"#),
    (r#"{"$or":[{"a":1},{"a":{"$gt":8}}]}"#, "{}", r#"{"a":1}"#, r#"{ a: [ "[1, 1]", "(8, inf]" ] } exact"#),
    (r#"{"$or":[{"a":1},{"b":1}]}"#, "{}", r#"{"a":1}"#, "none"),
    (r#"{"a":5}"#, "{}", r#"{"a":"hashed"}"#, r#"{ a: [ "[5, 5]" ] }"#),
    (r#"{"a":{"$gt":5}}"#, "{}", r#"{"a":"hashed"}"#, "none"),
    (r#"{"a":"x"}"#, "{}", r#"{"a":1}"#, r#"{ a: [ "[\"x\", \"x\"]" ] } exact"#),
    (r#"{"a":{"$exists":true}}"#, "{}", r#"{"$**":1}"#, "none"),
    (
        r#"{"a.b":{"$lt":3}}"#,
        "{}",
        r#"{"$**":1}"#,
        r#"{ $_path: [ "[\"a.b\", \"a.b\"]" ], a.b: [ "[-inf, 3)" ] }"#,
    ),
    // A comparison of an expression with a constant; the expression itself is always evaluated too.
    (r#"{"$expr":{"$eq":["$a",5]}}"#, "{}", r#"{"a":1}"#, r#"{ a: [ "[5, 5]" ] }"#),
    (
        r#"{"$expr":{"$and":[{"$eq":[{"$literal":"$x"},"$a.b"]},{"$gt":["$c",1]}]}}"#,
        "{}",
        r#"{"a.b":1}"#,
        r#"{ a.b: [ "[\"$x\", \"$x\"]" ] }"#,
    ),
    (r#"{"$expr":{"$eq":["$a",[5]]}}"#, "{}", r#"{"a":1}"#, "none"),
    (r#"{"$expr":{"$eq":["$a","$b"]}}"#, "{}", r#"{"a":1}"#, "none"),
    (r#"{"$expr":{"$or":[{"$eq":["$a",5]}]}}"#, "{}", r#"{"a":1}"#, "none"),
    (r#"{"$nor":[{"$expr":{"$eq":["$a",5]}}]}"#, "{}", r#"{"a":1}"#, "none"),
    (r#"{"_ts":3}"#, "{}", r#"{"_ts":1}"#, r#"{ _ts: [ "[3, 3]" ] } exact"#),
    (r#"{"$nor":[{"a":1}]}"#, "{}", r#"{"a":1}"#, r#"{ a: [ "[MinKey, 1)", "(1, MaxKey]" ] } exact"#),
    (
        r#"{"a":5,"b":6}"#,
        r#"{"a":1,"c":1}"#,
        r#"{"a":1,"b":1,"c":1}"#,
        r#"{ a: [ "[5, 5]" ], b: [ "[6, 6]" ], c: [ "[MinKey, MaxKey]" ] } sorted exact"#,
    ),
];

fn describe(candidates: &[Candidate]) -> String {
    let Some(candidate) = candidates.first() else { return "none".into() };
    let mut text = bson::shell_text(Value::Document(candidate.bounds.clone()).view());
    if candidate.serves_sort {
        text.push_str(" sorted");
    }
    if candidate.direction == Direction::Descending {
        text.push_str(" backwards");
    }
    if candidate.exact {
        text.push_str(" exact");
    }
    text.replace("\\\"", "\"")
}

#[test]
fn bounds_are_as_explain_shows_them() {
    for (filter, sort, key, expected) in PLANS {
        let spec = json(&format!(r#"{{"key":{key},"name":"x"}}"#));
        let spec = IndexSpec::parse(spec.as_document().expect("a document").view()).expect(key);
        let filter = Filter::parse(json(filter).as_document().expect(filter).view(), &Settings::default())
            .expect(filter);
        let sort = Sort::parse(json(sort).as_document().expect(sort).view()).expect(sort);
        let available = [Available { spec: &spec, multikey: false, cut: false }];
        let candidates = plan(&filter, Some(&sort), &Collation::simple(), &available, None).expect("a plan");
        assert_eq!(describe(&candidates), expected.replace("\\\"", "\""), "{filter:?} {sort:?} {key}");
    }
}

//! Properties of filters over random documents and conditions.

use bson::{Document, RawDocument, Value};
use mql::Context;
use mql::filter::{Filter, Settings};
use mql::projection::{Beside, Projection};
use mql::sort::Sort;
use proptest::prelude::*;

const PATHS: [&str; 8] = ["a", "b", "a.b", "a.0", "a.0.b", "a.b.0", "b.a", "a.1.0"];

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        (-2_i32..3).prop_map(Value::Int32),
        (-2_i64..3).prop_map(Value::Int64),
        prop::sample::select(vec![f64::NAN, -1.0, 0.5, 1.0, f64::INFINITY]).prop_map(Value::Double),
        "[ab]{0,2}".prop_map(Value::String),
        any::<bool>().prop_map(Value::Bool),
        Just(Value::Null),
        Just(Value::MinKey),
        Just(Value::MaxKey),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            prop::collection::vec((prop::sample::select(vec!["a", "b", "0"]), inner), 0..3)
                .prop_map(|fields| Value::Document(fields.into_iter().collect())),
        ]
    })
}

fn document() -> impl Strategy<Value = Document> {
    prop::collection::vec((prop::sample::select(vec!["a", "b"]), value()), 0..3)
        .prop_map(|fields| fields.into_iter().collect())
}

fn operators() -> impl Strategy<Value = Document> {
    let comparison = (prop::sample::select(vec!["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]), value());
    let list = (prop::sample::select(vec!["$in", "$nin", "$all"]), prop::collection::vec(value(), 0..3));
    prop_oneof![
        comparison.prop_map(|(name, value)| Document::new().with(name, value)),
        list.prop_map(|(name, values)| Document::new().with(name, values)),
        any::<bool>().prop_map(|exists| Document::new().with("$exists", exists)),
        prop::sample::select(vec!["int", "number", "array", "object", "string", "null"])
            .prop_map(|name| Document::new().with("$type", name)),
        (0..3_i32).prop_map(|size| Document::new().with("$size", size)),
        "[ab]".prop_map(|pattern| Document::new().with("$regex", pattern)),
        (1..4_i32, 0..2_i32)
            .prop_map(|(by, rest)| Document::new().with("$mod", vec![Value::Int32(by), Value::Int32(rest)])),
        scalar()
            .prop_map(|value| { Document::new().with("$elemMatch", Document::new().with("$gte", value)) }),
        scalar().prop_map(|value| Document::new().with("$elemMatch", Document::new().with("b", value))),
    ]
}

/// Names with a meaning somewhere, combined at random.
const NAMES: [&str; 40] = [
    "$and",
    "$or",
    "$nor",
    "$not",
    "$eq",
    "$gt",
    "$in",
    "$all",
    "$elemMatch",
    "$exists",
    "$type",
    "$size",
    "$mod",
    "$regex",
    "$options",
    "$bitsAllSet",
    "$expr",
    "$jsonSchema",
    "$text",
    "$search",
    "$geoWithin",
    "$geometry",
    "$box",
    "$center",
    "$near",
    "$maxDistance",
    "type",
    "coordinates",
    "required",
    "properties",
    "items",
    "minimum",
    "a",
    "b",
    "a.$",
    "$slice",
    "$meta",
    "$natural",
    "",
    "a.b",
];

fn nonsense() -> impl Strategy<Value = Document> {
    let names = || prop::sample::select(NAMES.to_vec());
    let leaf = prop_oneof![scalar(), names().prop_map(Value::from), Just(Value::Undefined)];
    let value = leaf.prop_recursive(5, 32, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec((names(), inner), 0..3)
                .prop_map(|fields| Value::Document(fields.into_iter().collect())),
        ]
    });
    prop::collection::vec((prop::sample::select(NAMES.to_vec()), value), 0..3)
        .prop_map(|fields| fields.into_iter().collect())
}

fn matches(filter: &Document, document: &RawDocument) -> bool {
    let filter = Filter::parse(filter.view(), &Settings::default()).unwrap();
    let context = Context::at(0);
    let from_bytes = filter.matches(document.view(), &context).unwrap();
    let from_tree = filter.matches(document.to_document().view(), &context).unwrap();
    assert_eq!(from_bytes, from_tree, "bytes and tree");
    from_bytes
}

fn of(path: &str, condition: impl Into<Value>) -> Document {
    Document::new().with(path, condition)
}

proptest! {
    #[test]
    fn negations_are_complements(
        document in document(),
        path in prop::sample::select(PATHS.to_vec()),
        operators in operators(),
        value in value(),
    ) {
        let document = RawDocument::from_document(&document);
        let plain = matches(&of(path, operators.clone()), &document);
        prop_assert_ne!(plain, matches(&of(path, of("$not", operators.clone())), &document));
        let nor = of("$nor", vec![Value::Document(of(path, operators))]);
        prop_assert_ne!(plain, matches(&nor, &document));
        let equal = matches(&of(path, of("$eq", value.clone())), &document);
        prop_assert_ne!(equal, matches(&of(path, of("$ne", value.clone())), &document));
        prop_assert_eq!(equal, matches(&of(path, of("$in", vec![value.clone()])), &document));
        prop_assert_ne!(equal, matches(&of(path, of("$nin", vec![value])), &document));
    }

    #[test]
    fn connectives_are_those_of_logic(
        document in document(),
        first in (prop::sample::select(PATHS.to_vec()), operators()),
        second in (prop::sample::select(PATHS.to_vec()), operators()),
    ) {
        let document = RawDocument::from_document(&document);
        let conditions = [of(first.0, first.1), of(second.0, second.1)];
        let [one, two] = [matches(&conditions[0], &document), matches(&conditions[1], &document)];
        let both = conditions.map(Value::Document).to_vec();
        prop_assert_eq!(matches(&of("$and", both.clone()), &document), one && two);
        prop_assert_eq!(matches(&of("$or", both.clone()), &document), one || two);
        prop_assert_eq!(matches(&of("$nor", both), &document), !(one || two));
    }

    #[test]
    fn bounds_that_include_their_end_are_equality_or_more(
        document in document(),
        path in prop::sample::select(PATHS.to_vec()),
        value in value(),
    ) {
        let document = RawDocument::from_document(&document);
        let ask = |name: &str| matches(&of(path, of(name, value.clone())), &document);
        prop_assert_eq!(ask("$gte"), ask("$gt") || ask("$eq"));
        prop_assert_eq!(ask("$lte"), ask("$lt") || ask("$eq"));
    }

    /// Every input is refused or can be evaluated.
    #[test]
    fn nothing_panics(text in nonsense(), document in document()) {
        let context = Context::at(0);
        let settings = Settings::default();
        let document = RawDocument::from_document(&document);
        if let Ok(filter) = Filter::parse(text.view(), &settings) {
            let _ = filter.matches(document.view(), &context);
            let _ = filter.position(document.view(), &context);
            filter.equalities();
        }
        if let Ok(projection) = Projection::parse(text.view(), &settings) {
            let _ = projection.apply(document.view(), Beside::default(), &context);
        }
        if let Ok(sort) = Sort::parse(text.view()) {
            let _ = sort.key(document.view(), &settings.collation, None, &context);
        }
    }

    /// A sort key is the same from bytes and from a tree, and exchanging two keys reverses their order.
    #[test]
    fn a_sort_key_is_the_same_for_bytes_and_tree_and_turns_round(
        left in document(),
        right in document(),
        path in prop::sample::select(PATHS.to_vec()),
    ) {
        let context = Context::at(0);
        let simple = bson::Collation::simple();
        for direction in [1, -1] {
            let sort = Sort::parse(of(path, direction).view()).unwrap();
            let key = |document: &Document| sort.key(document.view(), &simple, None, &context).unwrap();
            let bytes = RawDocument::from_document(&left);
            let from_bytes = sort.key(bytes.view(), &simple, None, &context).unwrap();
            prop_assert!(sort.compare(&from_bytes, &key(&left)).is_eq());
            let order = sort.compare(&key(&left), &key(&right));
            prop_assert_eq!(sort.compare(&key(&right), &key(&left)), order.reverse());
        }
    }
}

//! Geographic and text indexes against reading everything: the candidate finds all documents that a filter finds.

use std::sync::Arc;

use bson::{Collation, Document, Value, parse_extended_json};
use mql::Context;
use mql::filter::{Filter, Settings};
use mql::index::{Available, IndexSpec, plan};
use proptest::prelude::*;
use proptest::sample::select;

use crate::plan::is_within;

fn document(text: &str) -> Document {
    parse_extended_json(text).expect(text).as_document().expect(text).clone()
}

/// Checks that the candidate of the index finds what the filter finds; returns how many documents both find.
fn check(spec: &Document, documents: &[Document], filter: &Document) -> Option<(usize, usize)> {
    let context = Context::at(0);
    let spec = IndexSpec::parse(spec.view()).expect("a specification");
    let settings = Settings { text: spec.text_rules().cloned().map(Arc::new), ..Settings::default() };
    let filter_text = format!("{filter:?}");
    let filter = Filter::parse(filter.view(), &settings).ok()?;
    let stored: Vec<(&Document, Vec<Vec<u8>>)> = documents
        .iter()
        .filter_map(|document| {
            let keys = spec.keys(document.view(), &context).ok()?;
            Some((document, keys.unwrap_or_default()))
        })
        .collect();
    let available = [Available { spec: &spec, multikey: true, cut: false }];
    let candidates = plan(&filter, None, &Collation::simple(), &available, None).expect("a plan");
    let candidate = candidates.first()?;
    let (mut read, mut matched) = (0, 0);
    for (number, (document, keys)) in stored.into_iter().enumerate() {
        let found = keys.iter().any(|key| candidate.spans.iter().any(|span| is_within(span, key, number)));
        let passes = filter.matches(document.view(), &context).expect("an answer");
        assert!(found || !passes, "{filter_text}\n{document:?}\n{keys:?}\n{:?}", candidate.spans);
        read += usize::from(found);
        matched += usize::from(passes);
    }
    Some((read, matched))
}

/// Points all over the globe, many near the poles, the date line and each other.
fn place() -> impl Strategy<Value = [f64; 2]> + Clone {
    let longitude =
        prop_oneof![-180.0..=180.0_f64, 0.0..10.0_f64, select(vec![-180.0, -179.9, 179.9, 180.0, 0.0]),];
    let latitude = prop_oneof![-90.0..=90.0_f64, 0.0..10.0_f64, select(vec![-90.0, 90.0, 89.99, 0.0])];
    (longitude, latitude).prop_map(|(longitude, latitude)| [longitude, latitude])
}

fn pair([longitude, latitude]: [f64; 2]) -> Value {
    Value::Array(vec![Value::Double(longitude), Value::Double(latitude)])
}

fn geometry(kind: &str, coordinates: Value) -> Value {
    Value::Document(Document::new().with("type", kind).with("coordinates", coordinates))
}

/// Returns a triangle: no line crosses itself.
fn polygon(corners: [[f64; 2]; 3]) -> Value {
    let ring = corners.iter().chain(&corners[..1]).map(|corner| pair(*corner)).collect::<Vec<_>>();
    geometry("Polygon", Value::Array(vec![Value::Array(ring)]))
}

fn shape() -> impl Strategy<Value = Value> {
    let near = (place(), prop::array::uniform3((-5.0..5.0_f64, -5.0..5.0_f64)));
    let small = near.prop_map(|([x, y], steps)| {
        let corner = |(east, north): (f64, f64)| {
            let longitude = x + east;
            let longitude = if longitude > 180.0 { longitude - 360.0 } else { longitude };
            [longitude.max(-180.0), (y + north).clamp(-90.0, 90.0)]
        };
        polygon(steps.map(corner))
    });
    prop_oneof![
        2 => place().prop_map(pair),
        3 => place().prop_map(|place| geometry("Point", pair(place))),
        1 => (place(), place())
            .prop_map(|(from, to)| geometry("LineString", Value::Array(vec![pair(from), pair(to)]))),
        2 => small,
        1 => prop::array::uniform3(place()).prop_map(polygon),
    ]
}

fn question() -> impl Strategy<Value = Document> {
    let distance = prop_oneof![0.0..2_000_000.0_f64, 0.0..20_000_000.0_f64];
    let of = |operator: &str, inner: Document| Document::new().with(operator, inner);
    prop_oneof![
        shape().prop_map(move |shape| of("$geoIntersects", Document::new().with("$geometry", shape))),
        shape().prop_map(move |shape| of("$geoWithin", Document::new().with("$geometry", shape))),
        (place(), 0.0..3.2_f64).prop_map(move |(centre, radius)| {
            let circle = Value::Array(vec![pair(centre), Value::Double(radius)]);
            of("$geoWithin", Document::new().with("$centerSphere", circle))
        }),
        (place(), distance).prop_map(move |(centre, most)| {
            let point = geometry("Point", pair(centre));
            of("$near", Document::new().with("$geometry", point).with("$maxDistance", most))
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(1500), ..ProptestConfig::default() })]

    #[test]
    fn geographic_candidates_miss_nothing(
        shapes in prop::collection::vec(shape(), 1..12),
        question in question(),
        kind in select(vec!["a", "b"]),
    ) {
        let spec = document(r#"{"key":{"kind":1,"place":"2dsphere"},"name":"x"}"#);
        let documents: Vec<Document> = shapes
            .into_iter()
            .map(|shape| Document::new().with("kind", "a").with("place", shape))
            .collect();
        let filter = Document::new().with("kind", kind).with("place", question.clone());
        check(&spec, &documents, &filter);
        let alone = document(r#"{"key":{"place":"2dsphere"},"name":"x"}"#);
        check(&alone, &documents, &Document::new().with("place", question));
    }

    #[test]
    fn text_candidates_miss_nothing(
        texts in prop::collection::vec("((run|runs|running|cake|cakes|the|café|cafe|Tea) ?){0,4}", 1..8),
        search in "-?\"?((run|cakes|the|cafe|tea)\"? ?){0,3}",
        kind in 0..2_i32,
    ) {
        let spec = document(r#"{"key":{"kind":1,"text":"text"},"name":"x"}"#);
        let documents: Vec<Document> =
            texts.into_iter().map(|text| Document::new().with("kind", 1).with("text", text)).collect();
        let search = Document::new().with("$search", search);
        check(&spec, &documents, &Document::new().with("kind", kind).with("$text", search));
    }
}

#[test]
fn special_candidates_narrow_the_search() {
    let spec = document(r#"{"key":{"place":"2dsphere"},"name":"x"}"#);
    let places: Vec<Document> = (-18..18)
        .flat_map(|x| (-8..8).map(move |y| [f64::from(x) * 10.0, f64::from(y) * 10.0]))
        .map(|place| Document::new().with("place", pair(place)))
        .collect();
    let near = document(
        r#"{"place":{"$near":{"$geometry":{"type":"Point","coordinates":[10,50]},"$maxDistance":1000000}}}"#,
    );
    let (read, matched) = check(&spec, &places, &near).expect("a candidate");
    assert!(matched >= 3 && read < places.len() / 8, "{read} read for {matched}");
    let text = document(r#"{"key":{"t":"text"},"name":"x"}"#);
    let words: Vec<Document> =
        ["coffee", "tea cake", "cake"].iter().map(|text| Document::new().with("t", *text)).collect();
    let search = document(r#"{"$text":{"$search":"cakes"}}"#);
    assert_eq!(check(&text, &words, &search), Some((2, 2)));
    assert_eq!(check(&text, &words, &document(r#"{"t":"cake"}"#)), None, "only for $text");
}

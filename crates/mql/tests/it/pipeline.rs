//! Collections in memory for pipelines to run over, and properties of pipelines.

use std::collections::BTreeMap;
use std::sync::Arc;

use bson::{Collation, Document, DocumentRef, RawDocument, Value, ValueRef};
use mql::filter::{Filter, Settings as FilterSettings};
use mql::index::{Available, IndexSpec, TextRules, plan};
use mql::pipeline::{
    Description, Find, Merge, Namespace, Order, Outcome, Pipeline, Row, Running, Scan, ScanId, Settings,
    Source,
};
use mql::{Context, Result};
use proptest::prelude::*;

/// The collection that pipelines run on.
pub(crate) const LEADING: &str = "docs";

/// Collections by name, and the scans that are open over them.
#[derive(Default, Clone)]
pub(crate) struct Memory {
    pub(crate) collections: BTreeMap<String, Vec<RawDocument>>,
    staged: BTreeMap<String, Vec<RawDocument>>,
    scans: BTreeMap<u64, std::vec::IntoIter<Row>>,
    opened: u64,
    /// Whether scans come in the requested order.
    pub(crate) serves_sorts: bool,
    /// Whether joins on `k` learn that an index serves them.
    pub(crate) serves_joins: bool,
    /// The text index of every collection.
    pub(crate) text: Option<Arc<TextRules>>,
    /// The requests to the collections, abbreviated.
    pub(crate) asked: Vec<String>,
}

impl Memory {
    fn documents(&self, name: &Namespace) -> &[RawDocument] {
        self.collections.get(&name.collection).map_or(&[], Vec::as_slice)
    }
}

impl Source for Memory {
    fn open(&mut self, scan: &Scan) -> Result<(ScanId, Order)> {
        let context = Context::at(0);
        let mut rows = Vec::new();
        for (number, document) in self.documents(&scan.collection).iter().enumerate() {
            if scan.filter.matches(document.view(), &context)? {
                rows.push(Row::of_item(document.clone(), number as u64));
            }
        }
        self.asked.push(format!("{} {} limit {:?}", scan.collection.collection, rows.len(), scan.limit));
        let mut order = Order::Any;
        if let (Some(sort), true) = (&scan.sort, self.serves_sorts) {
            let key = |row: &Row| sort.key(row.view(), &Collation::simple(), None, &context).unwrap();
            rows.sort_by(|left, right| sort.compare(&key(left), &key(right)));
            order = Order::Sorted;
        }
        self.opened += 1;
        self.scans.insert(self.opened, rows.into_iter());
        Ok((ScanId(self.opened), order))
    }

    fn next(&mut self, scan: ScanId) -> Result<Option<Row>> {
        Ok(self.scans.get_mut(&scan.0).and_then(Iterator::next))
    }

    fn close(&mut self, scan: ScanId) {
        self.scans.remove(&scan.0);
    }

    fn is_served(&mut self, _collection: &Namespace, filter: &Filter) -> Result<bool> {
        let index = IndexSpec::parse(json(r#"{"key": {"k": 1}, "name": "k"}"#).view())?;
        let available = Available { spec: &index, multikey: false, cut: false };
        let plans = plan(filter, None, &Collation::simple(), &[available], None)?;
        Ok(self.serves_joins && !plans.is_empty())
    }

    fn geospatial_field(&mut self, _collection: &Namespace) -> Result<String> {
        Ok("place".to_owned())
    }

    fn text_rules(&mut self, _collection: &Namespace) -> Result<Option<Arc<TextRules>>> {
        Ok(self.text.clone())
    }

    fn describe(&mut self, collection: &Namespace, what: &Description) -> Result<Vec<Document>> {
        let document = match what {
            Description::Collection(options) => {
                let count = self.documents(collection).len() as i32;
                let mut document = Document::new().with("ns", collection.to_string());
                if options.contains("count") {
                    document.push("count", count);
                }
                document
            }
            Description::Indexes => Document::new().with("name", "_id_"),
            Description::Operations(_) => Document::new().with("type", "op"),
            Description::Sessions => Document::new().with("_id", 1),
        };
        Ok(vec![document])
    }

    fn stage_documents(&mut self, target: &Namespace, documents: Vec<RawDocument>) -> Result<()> {
        self.staged.entry(target.collection.clone()).or_default().extend(documents);
        Ok(())
    }

    fn replace_collection(&mut self, target: &Namespace) -> Result<()> {
        let staged = self.staged.remove(&target.collection).unwrap_or_default();
        self.collections.insert(target.collection.clone(), staged);
        Ok(())
    }

    fn merge(&mut self, merge: &Arc<Merge>, document: RawDocument, context: &Context) -> Result<()> {
        let filter = merge.counterpart(document.view())?;
        let filter = Filter::parse(filter.view(), &FilterSettings::default())?;
        let documents = self.collections.entry(merge.target().collection.clone()).or_default();
        let mut place = None;
        for (number, found) in documents.iter().enumerate() {
            if filter.matches(found.view(), context)? {
                place = Some(number);
            }
        }
        let found = place.map(|place| documents[place].view());
        match (merge.decide(found, &document, context)?, place) {
            (Outcome::Insert(document), _) => documents.push(document),
            (Outcome::Replace(document), Some(place)) => documents[place] = document,
            (Outcome::Replace(_) | Outcome::Keep, _) => {}
        }
        Ok(())
    }
}

/// Returns the settings of pipelines over [`LEADING`].
pub(crate) fn settings() -> Settings {
    Settings {
        database: "test".to_owned(),
        collection: Some(LEADING.to_owned()),
        collation: Collation::simple(),
        ..Settings::default()
    }
}

/// Returns all rows of a pipeline. The source is a new one for every row, as in a cursor with batches of one.
pub(crate) fn run(
    stages: &[Document],
    settings: &Settings,
    memory: &mut Memory,
    context: &Context,
) -> Result<Vec<Row>> {
    let views: Vec<DocumentRef<'_>> = stages.iter().map(Document::view).collect();
    let mut running = Pipeline::parse(&views, settings)?.start();
    let rows = drain(&mut running, memory, context);
    running.close(memory);
    assert!(memory.scans.is_empty(), "every scan is closed");
    rows
}

fn drain(running: &mut Running, memory: &mut Memory, context: &Context) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    loop {
        let mut fresh = memory.clone();
        let next = running.next(&mut fresh, context);
        *memory = fresh;
        match next? {
            Some(row) => rows.push(row),
            None => return Ok(rows),
        }
    }
}

fn json(text: &str) -> Document {
    match bson::parse_extended_json(text).unwrap() {
        Value::Document(document) => document,
        other => panic!("not a document: {other:?}"),
    }
}

fn stages(text: &str) -> Vec<Document> {
    match bson::parse_extended_json(text).unwrap() {
        Value::Array(items) => items.iter().map(|item| item.as_document().unwrap().clone()).collect(),
        other => panic!("not an array: {other:?}"),
    }
}

fn memory(documents: &[Document]) -> Memory {
    let mut memory = Memory::default();
    let raw = documents.iter().map(RawDocument::from_document).collect();
    memory.collections.insert(LEADING.to_owned(), raw);
    memory
}

fn origins(pipeline: &str) -> Vec<Option<u64>> {
    let documents: Vec<Document> = (0..4)
        .map(|number| json(&format!(r#"{{"_id": {number}, "a": [{number}, 9], "b": {}}}"#, 3 - number)))
        .collect();
    let mut memory = memory(&documents);
    let rows = run(&stages(pipeline), &settings(), &mut memory, &Context::at(0)).unwrap();
    rows.into_iter().map(|row| row.origin).collect()
}

#[test]
fn t16_rows_know_the_item_they_are_made_from() {
    let some = |numbers: &[u64]| numbers.iter().copied().map(Some).collect::<Vec<_>>();
    assert_eq!(origins("[]"), some(&[0, 1, 2, 3]));
    assert_eq!(origins(r#"[{"$sort": {"b": 1}}, {"$limit": 2}, {"$project": {"c": "$b"}}]"#), some(&[3, 2]));
    assert_eq!(origins(r#"[{"$match": {"_id": 1}}, {"$unwind": "$a"}]"#), some(&[1, 1]));
    let lookup = r#"[{"$skip": 3}, {"$lookup": {"from": "docs", "localField": "_id", "foreignField": "b", "as": "c"}}]"#;
    assert_eq!(origins(lookup), some(&[3]));
    let window = r#"[{"$setWindowFields": {"sortBy": {"b": 1}, "output": {"n": {"$documentNumber": {}}}}}]"#;
    assert_eq!(origins(window), some(&[3, 2, 1, 0]));
    assert_eq!(origins(r#"[{"$group": {"_id": "$_id"}}]"#), vec![None; 4]);
    assert_eq!(origins(r#"[{"$count": "n"}]"#), [None]);
    assert_eq!(origins(r#"[{"$facet": {"a": []}}]"#), [None]);
    let union = r#"[{"$limit": 1}, {"$unionWith": {"coll": "docs", "pipeline": [{"$limit": 1}]}}]"#;
    assert_eq!(origins(union), [Some(0), None]);
}

/// The conditions that reach the collection, and the number of rows requested.
#[test]
fn conditions_and_limits_reach_the_collection() {
    let asked = |pipeline: &str| {
        let documents: Vec<Document> = (0..10)
            .map(|number| json(&format!(r#"{{"_id": {number}, "a": {}, "b": [1]}}"#, number % 2)))
            .collect();
        let mut memory = memory(&documents);
        run(&stages(pipeline), &settings(), &mut memory, &Context::at(0)).unwrap();
        memory.asked.join("; ")
    };
    for (pipeline, expected) in [
        (r#"[{"$match": {"a": 1}}, {"$match": {"_id": {"$gt": 4}}}]"#, "docs 3 limit None"),
        (r#"[{"$sort": {"_id": -1}}, {"$match": {"a": 1}}]"#, "docs 5 limit None"),
        (r#"[{"$addFields": {"c": 1}}, {"$match": {"a": 1, "c": 1}}]"#, "docs 5 limit None"),
        (r#"[{"$addFields": {"a": 1}}, {"$match": {"a": 1}}]"#, "docs 10 limit None"),
        (r#"[{"$project": {"a": 1}}, {"$match": {"a": 1}}]"#, "docs 5 limit None"),
        (r#"[{"$project": {"_id": 0}}, {"$match": {"_id": 1}}]"#, "docs 10 limit None"),
        (r#"[{"$unwind": "$b"}, {"$match": {"a": 1, "b": 1}}]"#, "docs 5 limit None"),
        (r#"[{"$limit": 3}, {"$match": {"a": 1}}]"#, "docs 10 limit Some(3)"),
        (r#"[{"$match": {"a": 1}}, {"$skip": 1}, {"$limit": 3}]"#, "docs 5 limit Some(4)"),
        (
            r#"[{"$sort": {"a": 1}}, {"$project": {"a": 1}}, {"$skip": 2}, {"$limit": 3}]"#,
            "docs 10 limit Some(5)",
        ),
        (r#"[{"$group": {"_id": "$a"}}, {"$match": {"_id": 1}}]"#, "docs 10 limit None"),
        (r#"[{"$match": {"$expr": {"$eq": ["$a", 1]}}}]"#, "docs 5 limit None"),
    ] {
        assert_eq!(asked(pipeline), expected, "{pipeline}");
    }
}

/// A join requests only the equal documents, and a pipeline with `let` those that its values find.
#[test]
fn joins_ask_for_what_is_equal() {
    let documents: Vec<Document> =
        (0..3).map(|number| json(&format!(r#"{{"_id": {number}, "next": {}}}"#, number + 1))).collect();
    let mut memory = memory(&documents);
    let pipeline = stages(
        r#"[{"$match": {"_id": 0}},
            {"$lookup": {"from": "docs", "localField": "next", "foreignField": "_id", "as": "a"}},
            {"$lookup": {"from": "docs", "let": {"n": "$next"}, "as": "b",
                         "pipeline": [{"$match": {"$expr": {"$gte": ["$_id", "$$n"]}}}]}}]"#,
    );
    run(&pipeline, &settings(), &mut memory, &Context::at(0)).unwrap();
    assert_eq!(memory.asked, ["docs 1 limit None", "docs 1 limit None", "docs 2 limit None"]);
}

#[test]
fn a_pipeline_tells_what_it_looks_into_and_where_it_writes() {
    let parse = |text: &str| {
        let stages = stages(text);
        let views: Vec<DocumentRef<'_>> = stages.iter().map(Document::view).collect();
        Pipeline::parse(&views, &settings()).unwrap()
    };
    let pipeline = parse(
        r#"[{"$facet": {"x": [{"$lookup": {"from": "b", "as": "x", "pipeline": [{"$unionWith": "c"}]}}]}},
            {"$graphLookup": {"from": "a", "startWith": 1, "connectFromField": "x", "connectToField": "y", "as": "z"}},
            {"$out": "d"}]"#,
    );
    let names: Vec<String> = pipeline.collections().into_iter().map(|name| name.to_string()).collect();
    assert_eq!(names, ["test.a", "test.b", "test.c"]);
    assert!(
        matches!(pipeline.writes(), Some(mql::pipeline::Writes::Out(target)) if target.collection == "d")
    );
    assert!(parse("[]").writes().is_none());
}

#[test]
fn a_stage_that_keeps_too_much_is_refused() {
    let text = "x".repeat(4 * 1024 * 1024);
    let documents: Vec<Document> =
        (0..30).map(|number| Document::new().with("_id", number).with("t", text.as_str())).collect();
    let graph = r#"[{"$limit": 1}, {"$graphLookup": {"from": "docs", "startWith": "$t", "connectFromField": "t",
        "connectToField": "t", "as": "d"}}]"#;
    for (pipeline, stage, code) in [
        (r#"[{"$sort": {"_id": -1}}]"#, "$sort", 292),
        (r#"[{"$group": {"_id": null, "t": {"$push": "$t"}}}]"#, "$group", 292),
        (r#"[{"$bucketAuto": {"groupBy": "$_id", "buckets": 2}}]"#, "$bucketAuto", 292),
        (r#"[{"$setWindowFields": {"output": {"n": {"$sum": 1}}}}]"#, "$setWindowFields", 292),
        (r#"[{"$limit": 1}, {"$lookup": {"from": "docs", "as": "d", "pipeline": []}}]"#, "$lookup", 292),
        (r#"[{"$sample": {"size": 30}}]"#, "$sample", 292),
        (r#"[{"$densify": {"field": "_id", "range": {"step": 1, "bounds": "full"}}}]"#, "$densify", 292),
        (r#"[{"$facet": {"all": []}}]"#, "$facet", 4_031_700),
        (graph, "$graphLookup", 40099),
    ] {
        let error =
            run(&stages(pipeline), &settings(), &mut memory(&documents), &Context::at(0)).unwrap_err();
        assert_eq!(error.code.0, code, "{pipeline}: {}", error.message);
        assert!(error.message.contains(stage), "{}", error.message);
    }
    let few = r#"[{"$sort": {"_id": -1}}, {"$limit": 2}, {"$project": {"t": 0}}]"#;
    assert_eq!(
        run(&stages(few), &settings(), &mut memory(&documents[..20]), &Context::at(0)).unwrap().len(),
        2
    );
}

/// A running pipeline waits in a cursor and moves between threads; `$merge` decides wherever the write happens.
#[test]
fn pipelines_can_be_sent() {
    fn sent<T: Send>() {}
    fn shared<T: Send + Sync>() {}
    sent::<Running>();
    shared::<Pipeline>();
    shared::<Merge>();
    shared::<Scan>();
}

/// Each row of a growing window is larger than the one before: refused long before memory runs out.
#[test]
fn growing_windows_are_bounded() {
    let documents: Vec<Document> = (0..4000).map(|number| Document::new().with("_id", number)).collect();
    let pipeline = stages(
        r#"[{"$setWindowFields": {"sortBy": {"_id": 1}, "output": {"a": {"$push": "$$ROOT", "window": {"documents": ["unbounded", "current"]}}}}}]"#,
    );
    let error = run(&pipeline, &settings(), &mut memory(&documents), &Context::at(0)).unwrap_err();
    assert_eq!(error.code.0, 292);
}

/// Stages that nest and double their input, one after the other: refused before the stack or the memory ends.
#[test]
fn growth_from_stage_to_stage_is_bounded() {
    for stage in [
        r#"{"$project": {"a": "$$ROOT", "b": "$$ROOT"}}"#,
        r#"{"$replaceWith": {"a": "$$ROOT"}}"#,
        r#"{"$group": {"_id": null, "a": {"$push": "$$ROOT"}, "b": {"$push": "$$ROOT"}}}"#,
        r#"{"$group": {"_id": "$$ROOT"}}"#,
        r#"{"$facet": {"a": []}}"#,
        r#"{"$setWindowFields": {"output": {"a.a.a.a.a": {"$push": "$$ROOT"}}}}"#,
        r#"{"$bucketAuto": {"groupBy": "$_id", "buckets": 1, "output": {"a": {"$first": "$$ROOT"}}}}"#,
    ] {
        let pipeline = vec![json(stage); 900];
        let error = run(&pipeline, &settings(), &mut memory(&[json(r#"{"_id": 1}"#)]), &Context::at(0));
        assert!(error.is_err(), "{stage}");
    }
}

/// Results of a lookup that do not depend on the row are found once in a request.
#[test]
fn what_is_the_same_for_all_rows_is_found_once() {
    let documents: Vec<Document> = (0..5).map(|number| Document::new().with("_id", number)).collect();
    let mut memory = memory(&documents);
    let pipeline =
        stages(r#"[{"$lookup": {"from": "docs", "pipeline": [{"$match": {"_id": 1}}], "as": "d"}}]"#);
    let rows = run(&pipeline, &settings(), &mut memory, &Context::at(0)).unwrap();
    assert_eq!((rows.len(), memory.asked.len()), (5, 2));
}

/// A `find` may require the nearest first, also with a limit, and with an order as well.
#[test]
fn a_find_brings_the_nearest_first() {
    let documents: Vec<Document> =
        [5, 1, 3].iter().map(|far| json(&format!(r#"{{"_id": {far}, "p": [0, {far}]}}"#))).collect();
    let ids = |sort: Option<&Document>, limit| {
        let filter = json(r#"{"p": {"$near": [0, 0]}, "_id": {"$gt": 0}}"#);
        let find =
            Find { filter: filter.view(), sort: sort.map(Document::view), skip: 0, limit, projection: None };
        let mut running = Pipeline::find(&[], &find, &settings()).unwrap().start();
        let rows = drain(&mut running, &mut memory(&documents), &Context::at(0)).unwrap();
        rows.iter().map(|row| bson::shell_text(row.view().get("_id").unwrap())).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(ids(None, None), "1 3 5");
    assert_eq!(ids(None, Some(2)), "1 3");
    assert_eq!(ids(Some(&json(r#"{"_id": -1}"#)), None), "5 3 1");
}

#[test]
fn a_view_stands_for_its_pipeline() {
    let documents = [json(r#"{"_id": 1, "k": 1}"#), json(r#"{"_id": 2, "k": 1, "old": true}"#)];
    let mut memory = memory(&documents);
    let mut settings = settings();
    let name = |collection: &str| Namespace { database: "test".into(), collection: collection.into() };
    settings.views.push(mql::pipeline::View {
        name: name("young"),
        on: name(LEADING),
        pipeline: vec![RawDocument::from_document(&json(r#"{"$match": {"old": {"$exists": false}}}"#))],
    });
    let pipeline = stages(
        r#"[{"$match": {"_id": 1}},
            {"$lookup": {"from": "young", "localField": "k", "foreignField": "k", "as": "l"}},
            {"$graphLookup": {"from": "young", "startWith": 1, "connectFromField": "k", "connectToField": "k", "as": "g"}},
            {"$project": {"l": "$l._id", "g": "$g._id"}},
            {"$unionWith": {"coll": "young", "pipeline": [{"$project": {"u": {"$literal": 1}}}]}}]"#,
    );
    let rows = run(&pipeline, &settings, &mut memory, &Context::at(0)).unwrap();
    let texts: Vec<String> =
        rows.iter().map(|row| bson::to_extended_json(ValueRef::Document(row.view()), true)).collect();
    assert_eq!(texts, [r#"{"_id":1,"l":[1],"g":[1]}"#, r#"{"_id":1,"u":1}"#]);
}

/// The caller opens every collection that a pipeline names: views, their collections, and those of inner pipelines.
#[test]
fn everything_that_is_read_is_named() {
    let name = |collection: &str| Namespace { database: "test".into(), collection: collection.into() };
    let inner = json(r#"{"$lookup": {"from": "within", "localField": "a", "foreignField": "a", "as": "w"}}"#);
    let mut settings = settings();
    settings.views.push(mql::pipeline::View {
        name: name("view"),
        on: name("behind"),
        pipeline: vec![RawDocument::from_document(&inner)],
    });
    let named = |text: &str| {
        let pipeline = stages(text);
        let views: Vec<_> = pipeline.iter().map(Document::view).collect();
        let found = Pipeline::parse(&views, &settings).unwrap().collections();
        found.into_iter().map(|name| name.collection).collect::<Vec<_>>().join(" ")
    };
    for stage in [
        r#"{"$lookup": {"from": "view", "localField": "a", "foreignField": "a", "as": "l"}}"#,
        r#"{"$lookup": {"from": "view", "pipeline": [], "as": "l"}}"#,
        r#"{"$lookup": {"from": "view", "let": {"v": 1}, "pipeline": [{"$match": {"$expr": "$$v"}}], "as": "l"}}"#,
        r#"{"$unionWith": "view"}"#,
        r#"{"$graphLookup": {"from": "view", "startWith": 1, "connectFromField": "a", "connectToField": "b", "as": "g"}}"#,
    ] {
        assert_eq!(named(&format!("[{stage}]")), "behind view within", "{stage}");
        assert_eq!(named(&format!(r#"[{{"$facet": {{"f": [{stage}]}}}}]"#)), "behind view within", "{stage}");
        let around = r#"{"from": "other", "let": {"x": "$a"}, "as": "o", "pipeline": [{"$match": {"$expr": {"$eq": ["$a", "$$x"]}}}, "#;
        let nested = format!(r#"[{{"$lookup": {around}{stage}]}}}}]"#);
        assert_eq!(named(&nested), "behind other view within", "{stage}");
    }
}

fn random_document() -> impl Strategy<Value = Document> {
    let scalar = prop_oneof![
        (-3..4_i32).prop_map(Value::Int32),
        (-2..3_i32).prop_map(|number| Value::Double(f64::from(number) / 2.0)),
        Just(Value::Null),
        "[ab]{0,1}".prop_map(Value::String),
    ];
    let value = prop_oneof![
        3 => scalar.clone(),
        1 => prop::collection::vec(scalar.clone(), 0..3).prop_map(Value::Array),
        1 => scalar.clone().prop_map(|inner| Value::Document(Document::new().with("x", inner))),
    ];
    prop::collection::btree_map(prop_oneof![Just("a"), Just("b"), Just("c")], value, 0..4)
        .prop_map(|fields| fields.into_iter().collect())
}

/// Stages whose result depends on their input alone.
const POOL: &[&str] = &[
    r#"{"$match": {"a": {"$gte": 0}}}"#,
    r#"{"$match": {"$or": [{"a": 1}, {"b": null}], "c": {"$ne": "a"}}}"#,
    r#"{"$match": {"$expr": {"$lt": ["$a", "$b"]}}}"#,
    r#"{"$match": {"b.x": {"$exists": true}}}"#,
    r#"{"$sort": {"a": 1, "_id": -1}}"#,
    r#"{"$sort": {"b": -1, "_id": 1}}"#,
    r#"{"$limit": 4}"#,
    r#"{"$skip": 2}"#,
    r#"{"$project": {"a": 1, "b": 1}}"#,
    r#"{"$project": {"c": 0}}"#,
    r#"{"$project": {"a": "$b", "c": 1}}"#,
    r#"{"$addFields": {"a": {"$ifNull": ["$c", 0]}}}"#,
    r#"{"$set": {"b.x": "$a"}}"#,
    r#"{"$unset": "a"}"#,
    r#"{"$unwind": "$a"}"#,
    r#"{"$unwind": {"path": "$b", "includeArrayIndex": "c", "preserveNullAndEmptyArrays": true}}"#,
    r#"{"$lookup": {"from": "docs", "localField": "a", "foreignField": "b", "as": "c"}}"#,
    r#"{"$group": {"_id": "$a", "b": {"$sum": "$b"}, "c": {"$first": "$c"}}}"#,
    r#"{"$sortByCount": "$a"}"#,
    r#"{"$replaceWith": {"_id": "$_id", "a": "$b", "b": "$a"}}"#,
    r#"{"$setWindowFields": {"sortBy": {"_id": 1}, "output": {"c": {"$sum": "$a", "window": {"documents": [-1, 0]}}}}}"#,
    r#"{"$unionWith": {"coll": "docs", "pipeline": [{"$limit": 2}]}}"#,
];

fn texts(rows: Vec<Row>) -> Vec<String> {
    rows.into_iter().map(|row| bson::to_extended_json(ValueRef::Document(row.view()), false)).collect()
}

/// Words with a meaning somewhere in a pipeline.
const WORDS: &[&str] = &[
    "_id",
    "a",
    "b",
    "a.b",
    "$a",
    "$a.b",
    "$$ROOT",
    "$$v",
    "$sum",
    "$push",
    "$first",
    "$topN",
    "$percentile",
    "$rank",
    "$shift",
    "input",
    "n",
    "p",
    "method",
    "approximate",
    "output",
    "sortBy",
    "by",
    "window",
    "documents",
    "range",
    "unit",
    "bounds",
    "step",
    "full",
    "partition",
    "unbounded",
    "current",
    "path",
    "preserveNullAndEmptyArrays",
    "includeArrayIndex",
    "from",
    "localField",
    "foreignField",
    "as",
    "let",
    "pipeline",
    "docs",
    "startWith",
    "connectFromField",
    "connectToField",
    "maxDepth",
    "depthField",
    "groupBy",
    "boundaries",
    "buckets",
    "default",
    "granularity",
    "R5",
    "newRoot",
    "size",
    "coll",
    "into",
    "on",
    "whenMatched",
    "whenNotMatched",
    "replace",
    "fail",
    "partitionBy",
    "field",
    "near",
    "distanceField",
    "value",
    "linear",
    "locf",
    "$and",
    "$expr",
    "$eq",
    "$in",
    "$gt",
    "$literal",
    "$match",
    "$limit",
    "day",
    "month",
    "partitionByFields",
    "",
    ".",
    "a.",
    "$",
];

const STAGES: &[&str] = &[
    "$match",
    "$project",
    "$addFields",
    "$set",
    "$unset",
    "$group",
    "$sort",
    "$limit",
    "$skip",
    "$unwind",
    "$lookup",
    "$count",
    "$sortByCount",
    "$facet",
    "$bucket",
    "$bucketAuto",
    "$replaceRoot",
    "$replaceWith",
    "$sample",
    "$unionWith",
    "$out",
    "$merge",
    "$graphLookup",
    "$redact",
    "$setWindowFields",
    "$densify",
    "$fill",
    "$documents",
    "$geoNear",
    "$collStats",
    "$indexStats",
    "$currentOp",
    "$changeStream",
    "$nope",
];

fn hostile_value() -> impl Strategy<Value = Value> {
    let word = || (0..WORDS.len()).prop_map(|word| WORDS[word].to_owned());
    let scalar = prop_oneof![
        word().prop_map(Value::String),
        prop_oneof![Just(0), Just(1), Just(-1), Just(2), Just(i32::MAX)].prop_map(Value::Int32),
        prop_oneof![Just(i64::MIN), Just(i64::MAX)].prop_map(Value::Int64),
        prop_oneof![Just(f64::NAN), Just(f64::INFINITY), Just(-0.0), Just(0.5), Just(1e300)]
            .prop_map(Value::Double),
        prop_oneof![Just(i64::MIN), Just(i64::MAX), Just(0)].prop_map(Value::DateTime),
        any::<bool>().prop_map(Value::Bool),
        Just(Value::Null),
    ];
    scalar.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            3 => prop::collection::vec((word(), inner), 0..4)
                .prop_map(|fields| Value::Document(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    /// Every pipeline is answered with rows or an error.
    #[test]
    fn every_pipeline_is_answered(
        picks in prop::collection::vec((0..STAGES.len(), hostile_value()), 1..4),
        documents in prop::collection::vec(hostile_value(), 0..4),
        collectionless in any::<bool>(),
    ) {
        let documents: Vec<Document> =
            documents.into_iter().map(|value| Document::new().with("_id", 1).with("a", value)).collect();
        let pipeline: Vec<Document> =
            picks.into_iter().map(|(stage, argument)| Document::new().with(STAGES[stage], argument)).collect();
        let mut settings = settings();
        if collectionless {
            settings.collection = None;
        }
        let _ = run(&pipeline, &settings, &mut memory(&documents), &Context::at(0));
    }

    /// Moving conditions to the front or to the collection changes nothing: all stages together have the results of the
    /// stages one by one.
    #[test]
    fn stages_together_are_stages_one_by_one(
        documents in prop::collection::vec(random_document(), 0..10),
        picks in prop::collection::vec(0..POOL.len(), 0..6),
        serves_sorts in any::<bool>(),
    ) {
        let documents: Vec<Document> = documents.into_iter().enumerate().map(|(number, fields)| {
            std::iter::once(("_id".to_owned(), Value::Int32(number as i32))).chain(fields).collect()
        }).collect();
        let pipeline: Vec<Document> = picks.iter().map(|pick| json(POOL[*pick])).collect();
        let mut whole = memory(&documents);
        whole.serves_sorts = serves_sorts;
        let together = run(&pipeline, &settings(), &mut whole, &Context::at(0)).map(texts);

        let mut separate = Ok(documents.clone());
        for stage in &pipeline {
            let Ok(input) = &separate else { break };
            // The stage reads its input as a collection of its own; the other collections stay unchanged.
            let mut memory = memory(&documents);
            memory.collections.insert("input".into(), input.iter().map(RawDocument::from_document).collect());
            let settings = Settings { collection: Some("input".into()), ..settings() };
            separate = run(std::slice::from_ref(stage), &settings, &mut memory, &Context::at(0))
                .map(|rows| rows.into_iter().map(|row| row.body.into_tree()).collect());
        }
        let separate = separate.map(|documents| texts(documents.into_iter().map(Row::from).collect()));
        match (together, separate) {
            (Ok(together), Ok(separate)) => prop_assert_eq!(together, separate, "{:?}", pipeline),
            (together, separate) => prop_assert_eq!(together.is_err(), separate.is_err(), "{:?}", pipeline),
        }
    }
}

/// A megabyte in `let` is not copied for each stage.
#[test]
fn stages_share_the_values_of_let() {
    let variables = Arc::new(Document::new().with("large", "x".repeat(1 << 20)));
    let collection = Some(LEADING.to_owned());
    let settings = Settings { collection, variables: Arc::clone(&variables), ..Settings::default() };
    let limit = Document::new().with("$limit", 5);
    let condition = Document::new().with("$match", Document::new().with("a", 1));
    let stages = [limit.view(), condition.view()].repeat(100);
    let pipeline = Pipeline::parse(&stages, &settings).unwrap();
    let sharers = Arc::strong_count(&variables);
    assert!(sharers > 100, "{sharers}");
    drop(pipeline);
}

/// Values of all sorts that joins may meet.
const JOINED: &[&str] = &[
    "1",
    "1.0",
    "2",
    "null",
    "\"a\"",
    "\"A\"",
    "[1, 2]",
    "[]",
    "[[1]]",
    "[null]",
    "{\"x\": 1}",
    "[{\"x\": 1}, {\"x\": 2}]",
    "true",
    "{\"$numberDecimal\": \"1\"}",
    "{\"$numberDouble\": \"NaN\"}",
    "{\"$undefined\": true}",
    "{\"$regularExpression\": {\"pattern\": \"a\", \"options\": \"\"}}",
    "{\"$minKey\": 1}",
];

/// Documents with joined values, some of them missing.
fn joined_documents() -> impl Strategy<Value = Vec<Document>> {
    let value = prop_oneof![1 => Just(None), 6 => (0..JOINED.len()).prop_map(Some)];
    let document = (value, 0..3);
    proptest::collection::vec(document, 0..12).prop_map(|documents| {
        let document = |(number, (value, other)): (usize, (Option<usize>, i32))| {
            let value = value.map_or(String::new(), |value| format!(r#", "k": {}"#, JOINED[value]));
            json(&format!(r#"{{"_id": {number}, "other": {other}{value}}}"#))
        };
        documents.into_iter().enumerate().map(document).collect()
    })
}

proptest! {
    /// A join by table has the results of a scan for each row, in the same order.
    #[test]
    fn a_join_by_table_finds_what_scans_find(
        left in joined_documents(),
        right in joined_documents(),
        local in prop::sample::select(vec!["k", "k.x", "k.0", "other"]),
        foreign in prop::sample::select(vec!["k", "k.x", "k.0", "other", "_id", "$weird"]),
        conditions in prop::sample::select(vec!["", r#", "pipeline": [{"$match": {"other": {"$gt": 0}}}]"#,
            r#", "pipeline": [{"$sort": {"other": 1}}]"#]),
        by_expression in any::<bool>(),
        folds in any::<bool>(),
    ) {
        let lookup = if by_expression && foreign != "$weird" {
            format!(
                r#"[{{"$lookup": {{"from": "r", "let": {{"v": "${local}", "o": "$other"}}, "pipeline": [{{"$match": {{"$expr":
                {{"$and": [{{"$eq": ["$$v", "${foreign}"]}}, {{"$gte": ["$other", "$$o"]}}]}}}}}}], "as": "f"}}}}]"#
            )
        } else {
            format!(
                r#"[{{"$lookup": {{"from": "r", "localField": "{local}", "foreignField": "{foreign}"{conditions}, "as": "f"}}}}]"#
            )
        };
        let mut settings = settings();
        if folds {
            settings.collation = Collation::parse(json(r#"{"locale": "en", "strength": 2}"#).view()).unwrap();
        }
        let rows = |serves_joins: bool| {
            let mut memory = memory(&left);
            memory.serves_joins = serves_joins;
            memory.collections.insert("r".to_owned(), right.iter().map(RawDocument::from_document).collect());
            let rows = run(&stages(&lookup), &settings, &mut memory, &Context::at(0));
            rows.map(|rows| rows.into_iter().map(|row| row.body.into_raw()).collect::<Vec<_>>())
        };
        prop_assert_eq!(rows(false), rows(true));
    }
}

/// Two reads of the other collection, however many rows there are: one for the first row, one for the table.
#[test]
fn a_join_without_an_index_reads_the_other_collection_twice() {
    let documents: Vec<Document> =
        (0..50).map(|number| json(&format!(r#"{{"_id": {number}, "k": {}}}"#, number % 7))).collect();
    let by_fields = r#"[{"$lookup": {"from": "docs", "localField": "_id", "foreignField": "k", "as": "f"}}]"#;
    let by_expression = r#"[{"$lookup": {"from": "docs", "let": {"i": "$_id"}, "pipeline": [
        {"$match": {"$expr": {"$eq": ["$k", "$$i"]}}}], "as": "f"}}]"#;
    let cases =
        [(by_fields, false, 3), (by_fields, true, 51), (by_expression, false, 3), (by_expression, true, 51)];
    let stored = json(r#"{"locale": "sv", "version": "57.1"}"#);
    let before_format_9 = Collation::parse_stored(stored.view()).unwrap();
    for collation in [Collation::simple(), before_format_9] {
        for (lookup, serves_joins, scans) in cases {
            let lookup = stages(lookup);
            let mut memory = memory(&documents);
            memory.serves_joins = serves_joins;
            let settings = Settings { collation: collation.clone(), ..settings() };
            run(&lookup, &settings, &mut memory, &Context::at(0)).unwrap();
            assert_eq!(memory.asked.len(), scans, "an index: {serves_joins}, {collation:?}");
        }
    }
    // A collection that is too large to keep is searched row by row, and so it is in a request of another time.
    let mut memory = memory(&documents);
    run(&stages(by_fields), &settings(), &mut memory, &Context::at(0).with_stage_bytes_max(5000)).unwrap();
    assert_eq!(memory.asked.len(), 52);
}

/// A row without a value for the joined field does not decide how the others are joined.
#[test]
fn a_first_row_without_a_value_does_not_keep_the_index_from_the_others() {
    let lookup = r#"[{"$lookup": {"from": "docs", "let": {"v": "$v"}, "pipeline": [
        {"$match": {"$expr": {"$eq": ["$k", "$$v"]}}}], "as": "f"}}]"#;
    for first in [r#"{"_id": 0, "k": 1}"#, r#"{"_id": 0, "k": 1, "v": [1, 2]}"#] {
        let others = (1..50).map(|number| json(&format!(r#"{{"_id": {number}, "k": 1, "v": {number}}}"#)));
        let documents: Vec<Document> = std::iter::once(json(first)).chain(others).collect();
        for (serves_joins, scans) in [(true, 51), (false, 4)] {
            let mut memory = memory(&documents);
            memory.serves_joins = serves_joins;
            run(&stages(lookup), &settings(), &mut memory, &Context::at(0)).unwrap();
            assert_eq!(memory.asked.len(), scans, "an index: {serves_joins}, {first}");
        }
    }
}

/// A table is valid for one request, so an idle cursor keeps none. The next request makes its own.
#[test]
fn a_resting_pipeline_keeps_no_join_table() {
    let rows: Vec<Document> =
        (0..50).map(|number| json(&format!(r#"{{"_id": {number}, "k": {}}}"#, number % 7))).collect();
    let lookup =
        stages(r#"[{"$lookup": {"from": "r", "localField": "_id", "foreignField": "k", "as": "f"}}]"#);
    let views: Vec<_> = lookup.iter().map(Document::view).collect();
    let mut running = Pipeline::parse(&views, &settings()).unwrap().start();
    let mut memory = memory(&rows);
    // One owner is here, one is the source; a third one would be the table.
    let foreign = RawDocument::from_document(&json(r#"{"_id": 1, "k": 49}"#)).into_bytes();
    memory.collections.insert("r".to_owned(), vec![RawDocument::parse(foreign.clone()).unwrap()]);
    let context = Context::at(0);
    for _ in 0..3 {
        running.next(&mut memory, &context).unwrap().unwrap();
    }
    assert_eq!(memory.asked.len(), 3, "the rows, the first look, and the table");
    memory.collections.clear();
    assert!(!foreign.is_unique(), "the table has the document");
    running.rest();
    assert!(foreign.is_unique(), "nothing has it any more");
    running.next(&mut memory, &context).unwrap().unwrap();
    assert_eq!(memory.asked.len(), 4, "the next request has its own table");
}

/// A pipeline holds, between two requests, the rows that its stages have kept and not returned yet; trees take more than
/// bytes.
#[test]
fn a_resting_pipeline_tells_how_much_it_holds() {
    let document = |number: i32| {
        json(&format!(
            r#"{{"_id": {number}, "k": {}, "pad": "{}", "a": [1, 2, 3]}}"#,
            number % 7,
            "x".repeat(1000)
        ))
    };
    let documents: Vec<Document> = (0..200).map(document).collect();
    let all = 200 * 1000;
    for (stages_text, least, most) in [
        ("[]", 0, 0),
        (r#"[{"$match": {"k": 1}}]"#, 0, 0),
        (r#"[{"$sort": {"k": 1}}]"#, all, 2 * all),
        (r#"[{"$group": {"_id": "$_id", "p": {"$first": "$pad"}}}]"#, 3 * all, 5 * all),
        (r#"[{"$group": {"_id": null, "p": {"$push": "$pad"}}}, {"$unwind": "$p"}]"#, 3 * all, 5 * all),
        (r#"[{"$set": {"n": 1}}, {"$sort": {"k": 1}}]"#, 3 * all, 6 * all),
        (r#"[{"$sample": {"size": 200}}]"#, all, 2 * all),
        (r#"[{"$bucketAuto": {"groupBy": "$_id", "buckets": 10}}]"#, all, 2 * all),
        (
            r#"[{"$setWindowFields": {"sortBy": {"k": 1}, "output": {"n": {"$documentNumber": {}}}}}]"#,
            3 * all,
            6 * all,
        ),
        (
            r#"[{"$match": {"k": 9}}, {"$unionWith": {"coll": "docs", "pipeline": [{"$sort": {"k": 1}}]}}]"#,
            all,
            2 * all,
        ),
    ] {
        let parsed = stages(stages_text);
        let views: Vec<_> = parsed.iter().map(Document::view).collect();
        let mut running = Pipeline::parse(&views, &settings()).unwrap().start();
        let mut memory = memory(&documents);
        let context = Context::at(0);
        assert!(running.next(&mut memory, &context).unwrap().is_some(), "{stages_text}");
        running.rest();
        let bytes = running.bytes();
        assert!((least * 9 / 10..=most).contains(&bytes), "{stages_text}: {bytes}");
        while running.next(&mut memory, &context).unwrap().is_some() {}
        assert_eq!(running.bytes(), 0, "{stages_text}: everything was given");
    }
}

/// A stage no longer counts rows that it has returned: the bytes it holds shrink with them.
#[test]
fn a_resting_pipeline_holds_less_with_every_row_that_it_gives() {
    let document = |number: i32| {
        let pad = "x".repeat(1000);
        json(&format!(
            r#"{{"_id": {number}, "k": {}, "place": [{}, 1], "pad": "{pad}"}}"#,
            number % 4,
            number % 90
        ))
    };
    let documents: Vec<Document> = (0..200).map(document).collect();
    for stages_text in [
        r#"[{"$sort": {"k": 1}}]"#,
        r#"[{"$group": {"_id": "$_id", "p": {"$first": "$pad"}}}]"#,
        r#"[{"$sample": {"size": 200}}]"#,
        r#"[{"$bucketAuto": {"groupBy": "$_id", "buckets": 100}}]"#,
        r#"[{"$bucketAuto": {"groupBy": "$_id", "buckets": 100, "output": {"p": {"$push": "$pad"}}}}]"#,
        r#"[{"$setWindowFields": {"sortBy": {"_id": 1}, "output": {"n": {"$documentNumber": {}}}}}]"#,
        r#"[{"$setWindowFields": {"partitionBy": "$k", "output": {"n": {"$sum": 1}}}}]"#,
        r#"[{"$setWindowFields": {"output": {"p": {"$last": "$pad"}}}}]"#,
        r#"[{"$densify": {"field": "_id", "range": {"step": 1, "bounds": "full"}}}]"#,
        r#"[{"$densify": {"field": "_id", "range": {"step": 1, "bounds": [0, 200]}, "partitionByFields": ["k"]}}]"#,
        r#"[{"$geoNear": {"near": [0, 0], "distanceField": "d", "key": "place"}}]"#,
    ] {
        let parsed = stages(stages_text);
        let views: Vec<_> = parsed.iter().map(Document::view).collect();
        let mut running = Pipeline::parse(&views, &settings()).unwrap().start();
        let (mut memory, context) = (memory(&documents), Context::at(0));
        let mut held = Vec::new();
        while running.next(&mut memory, &context).unwrap().is_some() {
            held.push(running.bytes());
        }
        let (first, middle, last) = (held[0], held[held.len() / 2], held[held.len() - 1]);
        assert!(first > 100_000, "{stages_text}: {first}");
        assert!((first * 4 / 10..=first * 6 / 10).contains(&middle), "{stages_text}: {middle} of {first}");
        assert!(last < first / 50, "{stages_text}: {last} of {first}");
    }
}

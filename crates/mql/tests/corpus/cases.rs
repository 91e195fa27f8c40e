//! Checks for one input of a fuzz target. The targets share this file with the test that replays their corpus.
//!
//! Inputs are lines of Extended JSON, so that they can be read and that mutations of them stay close to something
//! meaningful. A line that cannot be read counts as an empty document.
//!
//! ```text
//! filter                          update                              pipeline
//! {"a": {"$gt": 1}}               {"a.b": 2}          the filter      [{"$match": {"a": 1}}]
//! {"_id": 1, "a": 2}              {"$set": {"a.$": 1}}                {"_id": 1, "a": 1}
//! ...                             [{"x": 1}]          array filters   ...
//!                                 {"_id": 1, "a": []}
//! ```
//!
//! All further lines are documents. Some documents are always there, so that a filter alone is an input too.
//!
//! No check measures time. Every evaluation has a small budget, so an input that takes long reveals work that is not
//! charged.

use std::collections::BTreeMap;
use std::sync::Arc;

use bson::{Document, DocumentRef, ObjectId, RawDocument, Value, limits, parse_extended_json};
use mql::filter::{Filter, Settings};
use mql::index::TextRules;
use mql::pipeline::{self, Description, Merge, Namespace, Order, Pipeline, Row, Scan, ScanId, Source};
use mql::update::{Update, describe_change, prepare_insert, upsert_document};
use mql::{Code, Context, Result};

/// Steps that one evaluation may do.
const BUDGET: u64 = 100_000;

/// Documents of one input. More of them find nothing that a few do not.
const DOCUMENTS_MAX: usize = 8;

/// 2024-05-06T07:08:09.123Z.
const NOW_MILLIS: i64 = 1_714_979_289_123;

/// Documents that are always there: every type, and arrays in every place.
const DOCUMENTS: &[&str] = &[
    r#"{"_id": 1, "a": 5, "b": {"c": 1, "d": [1, 2, {"e": 3}]}, "s": "text"}"#,
    r#"{"_id": 2, "a": [1, 5, 9], "b": [{"c": 1}, {"c": [2, 3]}, 4], "n": null}"#,
    r#"{"_id": {"$oid": "0102030405060708090a0b0c"}, "a": [[1, 2], [3]], "d": {"$date": "2024-01-01T00:00:00Z"}}"#,
    r#"{"_id": "x", "a": 1.5, "l": {"$numberLong": "9223372036854775807"}, "m": {"$numberDecimal": "1.10"}, "t": true}"#,
    r#"{"_id": 5, "a": "A b", "r": {"$regularExpression": {"pattern": "a", "options": "i"}},
        "i": {"$binary": {"base64": "AAEC", "subType": "00"}}, "k": {"$minKey": 1}, "p": {"type": "Point", "coordinates": [1, 2]}}"#,
    r#"{"_id": 6}"#,
];

/// An input as values.
struct Input {
    lines: Vec<Value>,
    documents: Vec<RawDocument>,
}

impl Input {
    /// Reads an input whose first lines, so many, are no documents.
    fn parse(data: &[u8], heads: usize) -> Input {
        let text = String::from_utf8_lossy(data);
        let mut lines =
            text.lines().map(|line| parse_extended_json(line).unwrap_or(Value::Document(Document::new())));
        let heads: Vec<Value> = lines.by_ref().take(heads).collect();
        let own = lines.take(DOCUMENTS_MAX);
        let fixed = DOCUMENTS.iter().map(|text| parse_extended_json(text).expect("Extended JSON"));
        let documents = fixed.chain(own).filter_map(|value| raw(&value)).collect();
        Input { lines: heads, documents }
    }

    fn document(&self, line: usize) -> Document {
        self.lines.get(line).and_then(Value::as_document).cloned().unwrap_or_default()
    }
}

/// Returns a document as a client could send it; none if it is nested too deep.
fn raw(value: &Value) -> Option<RawDocument> {
    RawDocument::parse(RawDocument::from_document(value.as_document()?).into_bytes()).ok()
}

fn context() -> Context {
    Context::at(NOW_MILLIS).with_steps_max(BUDGET)
}

/// Returns an answer, if it was not stopped for the work it does.
fn finished<T>(answer: Result<T>) -> Option<Result<T>> {
    match answer {
        Err(error) if error.code == Code::MAX_TIME_MS_EXPIRED => None,
        answer => {
            if let Err(error) = &answer {
                assert!(!error.message.is_empty() && error.code.0 > 0, "{error:?}");
            }
            Some(answer)
        }
    }
}

/// Checks that a filter is parsed the same way from bytes and from a tree; that documents match it or not in either form;
/// and that its negation is its complement.
pub(crate) fn check_filter(data: &[u8]) {
    let input = Input::parse(data, 1);
    let settings = Settings::default();
    let tree = input.document(0);
    let Some(bytes) = raw(&Value::Document(tree.clone())) else { return };
    let filter = finished(Filter::parse(tree.view(), &settings)).expect("parsing costs nothing");
    let same = Filter::parse(bytes.view(), &settings);
    assert_eq!(same.as_ref().map(drop), filter.as_ref().map(drop));
    let Ok(filter) = filter else { return };
    filter.equalities();
    let negation = Document::new().with("$nor", vec![Value::Document(tree)]);
    let negation = Filter::parse(negation.view(), &settings);
    for document in &input.documents {
        let matches = finished(filter.matches(document.view(), &context()));
        let unpacked = finished(filter.matches(document.to_document().view(), &context()));
        if let (Some(matches), Some(unpacked)) = (&matches, &unpacked) {
            assert_eq!(matches, unpacked, "{document:?}");
        }
        finished(filter.position(document.view(), &context()));
        if let (Some(Ok(matches)), Ok(negation)) = (matches, &negation)
            && let Some(Ok(negated)) = finished(negation.matches(document.view(), &context()))
        {
            assert_eq!(matches, !negated, "{document:?}");
        }
    }
}

/// Checks that the result of an update may be stored, differs from the original, and keeps the `_id`.
pub(crate) fn check_update(data: &[u8]) {
    let input = Input::parse(data, 3);
    let settings = Settings::default();
    let empty = Value::Document(Document::new());
    let update = input.lines.get(1).unwrap_or(&empty);
    let array_filters = input.lines.get(2).and_then(Value::as_array).unwrap_or_default();
    let array_filters: Vec<DocumentRef<'_>> =
        array_filters.iter().filter_map(|filter| filter.view().as_document()).collect();
    let Ok(filter) = Filter::parse(input.document(0).view(), &settings) else { return };
    let update =
        finished(Update::parse(update.view(), &array_filters, &settings)).expect("parsing costs nothing");
    let Ok(update) = update else { return };
    for document in &input.documents {
        if let Some(Ok(Some(after))) = finished(update.apply(document, Some(&filter), false, &context())) {
            assert_ne!(&after, document);
            check_stored(&after);
            let ids = (document.get("_id"), after.get("_id"));
            if let (Some(before), after) = ids {
                assert!(after.is_some_and(|after| bson::equal(before, after)), "{ids:?}");
            }
            describe_change(document.view(), after.view());
            if let Some(Ok(Some(again))) = finished(update.apply(&after, Some(&filter), false, &context())) {
                check_stored(&again);
            }
        }
    }
    let mut make_id = || ObjectId([7; 12]);
    if let Some(Ok(inserted)) = finished(upsert_document(&filter, &update, &context(), &mut make_id)) {
        check_stored(&inserted);
        assert_eq!(inserted.view().iter().next().map(|(name, _)| name), Some("_id"));
        // The document of an upsert may be inserted unchanged, except for timestamps of zero.
        assert_eq!(prepare_insert(&inserted, &mut make_id, None), Ok(inserted));
    }
}

fn check_stored(document: &RawDocument) {
    assert!(document.as_bytes().len() <= limits::DOCUMENT_BYTES_MAX);
    let checked = RawDocument::parse(document.clone().into_bytes());
    assert_eq!(checked.as_ref(), Ok(document));
}

/// Checks that a pipeline returns the same rows twice, and the same whether or not the collection answers its beginning.
pub(crate) fn check_pipeline(data: &[u8]) {
    let input = Input::parse(data, 1);
    let stages = input.lines.first().and_then(Value::as_array).unwrap_or_default();
    let stages: Vec<DocumentRef<'_>> = stages.iter().filter_map(|stage| stage.view().as_document()).collect();
    let rows = rows(&stages, &input.documents);
    if let (Some(rows), Some(again)) = (&rows, &self::rows(&stages, &input.documents)) {
        assert_eq!(rows, again);
    }
    let is_random = ["$sample", "$rand"].iter().any(|word| String::from_utf8_lossy(data).contains(word));
    let Some(Ok(rows)) = rows.filter(|_| !is_random) else { return };
    // It skips no row, but the collection answers nothing after this stage.
    let nothing = Document::new().with("$skip", 0);
    let behind: Vec<DocumentRef<'_>> = [nothing.view()].into_iter().chain(stages).collect();
    if let Some(Ok(plain)) = self::rows(&behind, &input.documents) {
        assert_eq!(rows, plain);
    }
}

/// Returns all rows of a pipeline over some documents.
fn rows(stages: &[DocumentRef<'_>], documents: &[RawDocument]) -> Option<Result<Vec<RawDocument>>> {
    let settings = pipeline::Settings {
        database: "test".to_owned(),
        collection: Some("docs".to_owned()),
        ..pipeline::Settings::default()
    };
    let pipeline = match finished(Pipeline::parse(stages, &settings)).expect("parsing costs nothing") {
        Ok(pipeline) => pipeline,
        Err(error) => return Some(Err(error)),
    };
    let mut memory = Memory { documents, context: context(), scans: BTreeMap::new(), opened: 0 };
    let context = context();
    let mut running = pipeline.start();
    let mut rows = Vec::new();
    let answer = loop {
        match running.next(&mut memory, &context) {
            Ok(Some(row)) => rows.push(row.body.into_raw()),
            Ok(None) => break Ok(rows),
            Err(error) => break Err(error),
        }
    };
    running.close(&mut memory);
    assert!(memory.scans.is_empty(), "every scan is closed");
    finished(answer)
}

/// Collections that all have the same documents, and accept every write.
struct Memory<'d> {
    documents: &'d [RawDocument],
    context: Context,
    scans: BTreeMap<u64, std::vec::IntoIter<Row>>,
    opened: u64,
}

impl Source for Memory<'_> {
    fn open(&mut self, scan: &Scan) -> Result<(ScanId, Order)> {
        let mut rows = Vec::new();
        for (document, number) in self.documents.iter().zip(0..) {
            if scan.filter.matches(document.view(), &self.context)? {
                rows.push(Row::of_item(document.clone(), number));
            }
        }
        self.opened += 1;
        self.scans.insert(self.opened, rows.into_iter());
        Ok((ScanId(self.opened), Order::Any))
    }

    fn next(&mut self, scan: ScanId) -> Result<Option<Row>> {
        Ok(self.scans.get_mut(&scan.0).and_then(Iterator::next))
    }

    fn close(&mut self, scan: ScanId) {
        self.scans.remove(&scan.0);
    }

    fn is_served(&mut self, _collection: &Namespace, _filter: &Filter) -> Result<bool> {
        Ok(false)
    }

    fn geospatial_field(&mut self, _collection: &Namespace) -> Result<String> {
        Ok("p".to_owned())
    }

    fn text_rules(&mut self, _collection: &Namespace) -> Result<Option<Arc<TextRules>>> {
        Ok(None)
    }

    fn describe(&mut self, _collection: &Namespace, _what: &Description) -> Result<Vec<Document>> {
        Ok(vec![Document::new()])
    }

    fn stage_documents(&mut self, _target: &Namespace, _documents: Vec<RawDocument>) -> Result<()> {
        Ok(())
    }

    fn replace_collection(&mut self, _target: &Namespace) -> Result<()> {
        Ok(())
    }

    fn merge(&mut self, merge: &Arc<Merge>, document: RawDocument, context: &Context) -> Result<()> {
        merge.counterpart(document.view())?;
        merge.decide(self.documents.first().map(RawDocument::view), &document, context)?;
        merge.decide(None, &document, context).map(drop)
    }
}

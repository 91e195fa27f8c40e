//! Commands for documents of collections, and their indexes. Everything is in Extended JSON.

use std::sync::Arc;

use bson::{Document, RawDocument, Value, parse_extended_json, to_extended_json};
use engine::Collection;
use engine::collection::{Decision, LivingDocument, Modified, Target};
use mql::index::IndexSpec;
use storage::Direction;

use super::Answer;
use super::call::{Call, words};
use super::stage::{Stage, describe};

fn document(text: &str) -> Document {
    match parse_extended_json(text) {
        Ok(Value::Document(document)) => document,
        other => panic!("not a document: {text}: {other:?}"),
    }
}

fn id(text: &str) -> Value {
    parse_extended_json(text).unwrap_or_else(|error| panic!("no _id: {text}: {error}"))
}

fn json(document: &RawDocument) -> String {
    to_extended_json(Value::Document(document.to_document()).view(), true)
}

/// A document in a line.
pub(super) fn show(stage: &mut Stage, verb: &str, found: &LivingDocument) -> String {
    let (number, version) = (stage.labels.item(found.number.0), stage.labels.version(found.sequence.0));
    format!("{verb} {number} {version}")
}

fn modify(
    stage: &Stage,
    collection: &Arc<Collection>,
    id: Value,
    decide: impl FnOnce(Option<&LivingDocument>) -> Decision + Send + 'static,
) -> engine::Result<Modified> {
    let decide = move |found: Option<&LivingDocument>, _| Ok(decide(found).into());
    stage.engine().modify(collection, Target::Id(id), decide, None).wait()
}

fn modified(stage: &mut Stage, modified: &Modified) -> Answer {
    Ok(vec![match (&modified.before, &modified.after) {
        (None, None) => "none matched".to_owned(),
        (None, Some(found)) => show(stage, "created", found),
        (Some(found), None) => show(stage, "deleted", found),
        (Some(_), Some(found)) if modified.is_write() => show(stage, "replaced", found),
        (Some(_), Some(found)) => show(stage, "unchanged", found),
    }])
}

/// Inserts as `insert` does.
pub(super) fn create(stage: &mut Stage, collection: &Arc<Collection>, text: &str) -> Answer {
    let raw = RawDocument::from_document(&document(text));
    let inserted = stage.engine().insert(collection, vec![raw], true, None).wait()?.remove(0);
    Ok(vec![inserted.map_or_else(|error| describe(&error), |_| "created".to_owned())])
}

/// Replaces the document of the `_id`, and inserts one if `or_create`.
pub(super) fn put(stage: &mut Stage, collection: &Arc<Collection>, text: &str, or_create: bool) -> Answer {
    let document = document(text);
    let id = document.get("_id").expect("an _id").clone();
    let next = RawDocument::from_document(&document);
    let decide = move |found: Option<&LivingDocument>| match found {
        Some(_) => Decision::Replace(next),
        None if or_create => Decision::Insert(next),
        None => Decision::Keep,
    };
    let outcome = modify(stage, collection, id, decide)?;
    modified(stage, &outcome)
}

pub(super) fn delete(stage: &mut Stage, collection: &Arc<Collection>, text: &str) -> Answer {
    let decide =
        |found: Option<&LivingDocument>| if found.is_some() { Decision::Delete } else { Decision::Keep };
    let outcome = modify(stage, collection, id(text), decide)?;
    modified(stage, &outcome)
}

pub(super) fn get(stage: &mut Stage, collection: &Arc<Collection>, text: &str) -> Answer {
    let reading = stage.engine().reading(&[collection])?;
    let found = reading.by_id(collection, id(text).view())?;
    let Some(found) = found else { return Ok(vec!["none".to_owned()]) };
    Ok(vec![format!("{}: {}", show(stage, "read", &found), json(&found.document))])
}

fn collection(stage: &Stage, name: &str) -> Arc<Collection> {
    stage.engine().collection("db", name).unwrap_or_else(|| panic!("no collection {name}"))
}

/// `index m at,-b expireAfterSeconds=0`: makes an index and waits for its build.
pub(super) fn index(stage: &mut Stage, call: &mut Call<'_>) -> Answer {
    let spec = spec(call)?;
    let collection = collection(stage, call.name);
    let numbers = stage.engine().create_indexes(&collection, vec![spec])?;
    while !stage.engine().build_indexes_step(&collection, &numbers, 2)?.done {}
    Ok(Vec::new())
}

fn spec(call: &mut Call<'_>) -> engine::Result<IndexSpec> {
    let mut key = Document::new();
    let mut name = Vec::new();
    for field in call.word().split(',') {
        let (field, direction) = field.strip_prefix('-').map_or((field, 1), |field| (field, -1));
        key.push(field, direction);
        name.push(format!("{field}_{direction}"));
    }
    let mut spec = Document::new().with("key", key).with("name", name.join("_"));
    for (option, text) in call.trailing_options() {
        spec.push(option, parse_extended_json(text).expect("Extended JSON"));
    }
    Ok(IndexSpec::parse(spec.view())?)
}

/// Gives an index of the same key other options, as `collMod` does.
pub(super) fn reindex(stage: &mut Stage, call: &mut Call<'_>) -> Answer {
    let spec = spec(call)?;
    let collection = collection(stage, call.name);
    let number = collection.indexes().named(spec.name()).expect("an index of that key").number;
    let number = stage.engine().change_index(&collection, number, spec)?;
    while !stage.engine().build_indexes_step(&collection, &[number], 2)?.done {}
    Ok(Vec::new())
}

/// Drops an index by its key.
pub(super) fn unindex(stage: &mut Stage, call: &mut Call<'_>) -> Answer {
    let name = spec(call)?.name().to_owned();
    let collection = collection(stage, call.name);
    let number = collection.indexes().named(&name).expect("an index of that key").number;
    stage.engine().drop_indexes(&collection, &[number])?;
    Ok(Vec::new())
}

/// The documents that stand in an index, in its order.
pub(super) fn walk(stage: &mut Stage, call: &mut Call<'_>) -> Answer {
    let name = spec(call)?.name().to_owned();
    let collection = collection(stage, call.name);
    let reading = stage.engine().reading(&[&collection])?;
    let number = reading.indexes(&collection)?.named(&name).expect("an index of that key").number;
    let (mut lines, mut last) = (Vec::new(), None);
    loop {
        let hits = reading.index(&collection, number, (&[], &[]), last.as_ref(), Direction::Forward, 2)?;
        let Some(hit) = hits.last() else { break };
        last = Some(hit.clone());
        for hit in hits {
            let found = reading.by_number(&collection, hit.number)?.expect("an entry of a living document");
            lines.push(json(&found.document));
        }
    }
    Ok(or_none(lines))
}

/// All documents in the order of their creation.
pub(super) fn find(stage: &mut Stage, call: &mut Call<'_>) -> Answer {
    let backward = words(call.rest()).contains(&"backward");
    let lines = all(stage, &collection(stage, call.name), backward)?;
    Ok(or_none(lines.iter().map(|found| json(&found.document)).collect()))
}

pub(super) fn all(
    stage: &Stage,
    collection: &Arc<Collection>,
    backward: bool,
) -> engine::Result<Vec<LivingDocument>> {
    let reading = stage.engine().reading(&[collection])?;
    let direction = if backward { Direction::Backward } else { Direction::Forward };
    let (mut found, mut last) = (Vec::new(), None);
    loop {
        let page = reading.natural(collection, last, direction, 3, 1 << 20)?;
        let Some(end) = page.last() else { return Ok(found) };
        last = Some(end.number);
        found.extend(page);
    }
}

/// The `_id` of a document in Extended JSON.
pub(super) fn id_of(found: &LivingDocument) -> String {
    let document = found.document.to_document();
    to_extended_json(document.get("_id").expect("an _id").view(), true)
}

pub(super) fn or_none(lines: Vec<String>) -> Vec<String> {
    if lines.is_empty() { vec!["none".to_owned()] } else { lines }
}

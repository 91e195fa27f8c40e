//! Collections through the admin API: commands of the MongoDB API, as drivers send them, so that validators, indexes and views
//! mean what they mean to everybody.

use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use bson::{Document, RawDocument, Value, ValueRef, Writer};
use hyper::Method;

use super::import::Mode;
use crate::client::{Client, Payload};
use crate::place::Place;

const BSON: &str = "application/bson";

/// MongoDB's number for a key that is taken,
const DUPLICATE_KEY: i32 = 11000;
/// and the service's for who comes too fast.
const TOO_MANY_REQUESTS: i32 = 16500;

/// How long to wait where nobody says how long.
const PAUSE: Duration = Duration::from_millis(100);

/// What a page of documents did.
#[derive(Debug, Default)]
pub(super) struct Written {
    pub(super) created: u64,
    pub(super) replaced: u64,
    /// Those that were refused, by position, and why.
    pub(super) failed: Vec<(usize, String)>,
}

/// Runs a command; its answer, which may tell of statements that failed.
fn run(client: &mut Client, command: &RawDocument) -> Result<RawDocument> {
    loop {
        let payload = Payload::Bytes(BSON, command.clone().into_bytes());
        let answer = client.call(&Method::POST, "/_bolide/command", payload)?;
        let answer =
            RawDocument::parse(answer.body).context("the server answers something that is not BSON")?;
        if matches!(answer.get("ok"), Some(ValueRef::Double(ok)) if ok > 0.0) {
            return Ok(answer);
        }
        let text =
            answer.get("errmsg").and_then(ValueRef::as_str).unwrap_or("no reason was given").to_owned();
        if !matches!(answer.get("code"), Some(ValueRef::Int32(TOO_MANY_REQUESTS))) {
            let name = command.view().iter().next().map_or("", |(name, _)| name);
            bail!("the server refuses {name}: {text}");
        }
        client.pause(retry_after(&text));
    }
}

fn retry_after(text: &str) -> Duration {
    let told =
        text.split_once("RetryAfterMs=").and_then(|(_, rest)| rest.split(',').next()?.trim().parse().ok());
    told.map_or(PAUSE, Duration::from_millis)
}

/// What a collection is, as mongodump describes it. None for what belongs to the system.
pub(super) fn describe(client: &mut Client, place: &Place) -> Result<Document> {
    let filter = Document::new().with("name", place.name.as_str());
    let list = Document::new()
        .with("listCollections", 1)
        .with("filter", filter)
        .with("$db", place.database.as_str());
    let listed = first_batch(&run(client, &RawDocument::from_document(&list))?);
    let Some(entry) = listed.into_iter().next() else { bail!("the collection '{place}' is gone") };
    let kind = entry.get("type").and_then(Value::as_str).unwrap_or("collection").to_owned();
    let options = entry.get("options").cloned().unwrap_or_else(|| Document::new().into());
    let uuid = match entry.get("info").and_then(Value::as_document).and_then(|info| info.get("uuid")) {
        Some(Value::Binary(uuid)) => hex(&uuid.bytes),
        _ => String::new(),
    };
    let mut indexes = Vec::new();
    if kind != "view" {
        let list =
            Document::new().with("listIndexes", place.name.as_str()).with("$db", place.database.as_str());
        indexes = first_batch(&run(client, &RawDocument::from_document(&list))?);
    }
    let indexes: Vec<Value> = indexes.into_iter().map(Value::Document).collect();
    Ok(Document::new()
        .with("indexes", indexes)
        .with("uuid", uuid)
        .with("collectionName", place.name.as_str())
        .with("type", kind)
        .with("options", options))
}

fn hex(bytes: &[u8]) -> String {
    let digit = |four: u8| char::from_digit(four.into(), 16).expect("four bits are a digit");
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// The documents of an answer with a cursor; what is listed here fits into one.
fn first_batch(answer: &RawDocument) -> Vec<Document> {
    let cursor = answer.get("cursor").and_then(ValueRef::as_document);
    let batch = cursor.and_then(|cursor| cursor.get("firstBatch")).and_then(ValueRef::as_array);
    batch.map_or_else(Vec::new, |batch| {
        batch.iter().filter_map(ValueRef::as_document).map(bson::DocumentRef::to_document).collect()
    })
}

/// Makes what such a description describes, unless it is there: the collection or view, then its indexes.
pub(super) fn make(client: &mut Client, place: &Place, description: &Document) -> Result<()> {
    let filter = Document::new().with("name", place.name.as_str());
    let list = Document::new()
        .with("listCollections", 1)
        .with("filter", filter)
        .with("nameOnly", true)
        .with("$db", place.database.as_str());
    if first_batch(&run(client, &RawDocument::from_document(&list))?).is_empty() {
        let mut create = Document::new().with("create", place.name.as_str());
        for (name, value) in
            description.get("options").and_then(Value::as_document).into_iter().flat_map(Document::iter)
        {
            create.push(name, value.clone());
        }
        create.push("$db", place.database.as_str());
        run(client, &RawDocument::from_document(&create))
            .with_context(|| format!("cannot make '{place}'"))?;
    }
    let indexes = description.get("indexes").and_then(Value::as_array).unwrap_or_default();
    let indexes = indexes.iter().filter_map(Value::as_document).filter(|index| !is_own(index)).map(|index| {
        let mut index = index.clone();
        // Old servers named the collection in each index.
        index.remove("ns");
        Value::Document(index)
    });
    let indexes: Vec<Value> = indexes.collect();
    if !indexes.is_empty() {
        let create = Document::new()
            .with("createIndexes", place.name.as_str())
            .with("indexes", indexes)
            .with("$db", place.database.as_str());
        run(client, &RawDocument::from_document(&create))
            .with_context(|| format!("cannot make the indexes of '{place}'"))?;
    }
    Ok(())
}

/// Whether an index is the one that every collection has.
fn is_own(index: &Document) -> bool {
    index.get("name").and_then(Value::as_str) == Some("_id_")
}

/// Writes documents. Who is there already is left alone or replaced.
pub(super) fn write(
    client: &mut Client,
    place: &Place,
    mode: Mode,
    documents: &[RawDocument],
) -> Result<Written> {
    let mut written = Written::default();
    let mut left: Vec<usize> = (0..documents.len()).collect();
    let mut taken = Vec::new();
    while !left.is_empty() {
        let refused = statements(client, &insert(place, &left, documents))?;
        written.created += (left.len() - refused.len()) as u64;
        let mut again = Vec::new();
        for refusal in refused {
            let Some(position) = left.get(refusal.position).copied() else { continue };
            match refusal.code {
                TOO_MANY_REQUESTS => {
                    client.pause(retry_after(&refusal.words));
                    again.push(position);
                }
                DUPLICATE_KEY if mode == Mode::Upsert && refusal.is_about_id => taken.push(position),
                _ => written.failed.push((position, refusal.words)),
            }
        }
        left = again;
    }
    while !taken.is_empty() {
        let refused = statements(client, &replace(place, &taken, documents))?;
        written.replaced += (taken.len() - refused.len()) as u64;
        let mut again = Vec::new();
        for refusal in refused {
            let Some(position) = taken.get(refusal.position).copied() else { continue };
            if refusal.code == TOO_MANY_REQUESTS {
                client.pause(retry_after(&refusal.words));
                again.push(position);
            } else {
                written.failed.push((position, refusal.words));
            }
        }
        taken = again;
    }
    written.failed.sort_by_key(|(position, _)| *position);
    Ok(written)
}

fn insert(place: &Place, which: &[usize], documents: &[RawDocument]) -> RawDocument {
    let mut command = Writer::default();
    command.field("insert", place.name.as_str());
    command.open_array("documents");
    for position in which {
        command.raw_item(&documents[*position]);
    }
    command.close();
    ending(command, place)
}

fn replace(place: &Place, which: &[usize], documents: &[RawDocument]) -> RawDocument {
    let mut command = Writer::default();
    command.field("update", place.name.as_str());
    command.open_array("updates");
    for position in which {
        let document = &documents[*position];
        let mut statement = Writer::default();
        statement.open_document("q");
        statement.open_document("_id");
        statement.field("$eq", document.get("_id").unwrap_or(ValueRef::Null));
        statement.close();
        statement.close();
        statement.raw_field("u", document);
        statement.field("upsert", true);
        command.raw_item(&statement.finish());
    }
    command.close();
    ending(command, place)
}

/// What all writes of an import have in common. What a document has is what it keeps: also empty timestamps.
fn ending(mut command: Writer, place: &Place) -> RawDocument {
    command.field("ordered", false);
    command.field("bypassEmptyTsReplacement", true);
    command.field("$db", place.database.as_str());
    command.finish()
}

/// A statement that was refused.
struct Refusal {
    position: usize,
    code: i32,
    /// Whether another document has its `_id`.
    is_about_id: bool,
    words: String,
}

fn statements(client: &mut Client, command: &RawDocument) -> Result<Vec<Refusal>> {
    let answer = run(client, command)?;
    let errors = answer.get("writeErrors").and_then(ValueRef::as_array);
    let errors =
        errors.map_or_else(Vec::new, |errors| errors.iter().filter_map(ValueRef::as_document).collect());
    let number = |value: Option<ValueRef<'_>>| match value {
        Some(ValueRef::Int32(number)) => Ok(number),
        other => Err(anyhow!("the server tells of a failed write without a number: {other:?}")),
    };
    errors
        .into_iter()
        .map(|error| {
            let pattern = error.get("keyPattern").and_then(ValueRef::as_document);
            Ok(Refusal {
                position: usize::try_from(number(error.get("index"))?).unwrap_or(usize::MAX),
                code: number(error.get("code"))?,
                is_about_id: pattern.is_some_and(|pattern| pattern.iter().map(|(name, _)| name).eq(["_id"])),
                words: error.get("errmsg").and_then(ValueRef::as_str).unwrap_or_default().to_owned(),
            })
        })
        .collect()
}

//! Collections through the admin API: the same commands of the MongoDB API that drivers send, so that validators,
//! indexes and views apply as usual.

use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use bson::{Document, RawDocument, Value, ValueRef, Writer};
use hyper::Method;

use super::import::Mode;
use crate::client::{Client, Payload};
use crate::namespace::Namespace;

const BSON: &str = "application/bson";

/// MongoDB's error code for a duplicate key.
const DUPLICATE_KEY: i32 = 11000;
/// MongoDB's error code for exceeded throughput.
const TOO_MANY_REQUESTS: i32 = 16500;

/// How long to wait if the server suggests no time.
const PAUSE: Duration = Duration::from_millis(100);

/// The result of writing a page of documents.
#[derive(Debug, Default)]
pub(super) struct Written {
    pub(super) created: u64,
    pub(super) replaced: u64,
    /// The refused documents, by position, and why.
    pub(super) failed: Vec<(usize, String)>,
}

/// Runs a command; its answer may report failed statements.
fn run(client: &mut Client, command: &RawDocument) -> Result<RawDocument> {
    loop {
        let payload = Payload::Bytes(BSON, command.clone().into_bytes());
        let answer = client.call(&Method::POST, "/_bolide/command", payload)?;
        let answer = RawDocument::parse(answer.body).context("the server returned data that is not BSON")?;
        if matches!(answer.get("ok"), Some(ValueRef::Double(ok)) if ok > 0.0) {
            return Ok(answer);
        }
        let text = answer.get("errmsg").and_then(ValueRef::as_str).unwrap_or("no reason given").to_owned();
        if !matches!(answer.get("code"), Some(ValueRef::Int32(TOO_MANY_REQUESTS))) {
            let name = command.view().iter().next().map_or("", |(name, _)| name);
            bail!("the server refused {name}: {text}");
        }
        client.pause(retry_after(&text));
    }
}

fn retry_after(text: &str) -> Duration {
    let told =
        text.split_once("RetryAfterMs=").and_then(|(_, rest)| rest.split(',').next()?.trim().parse().ok());
    told.map_or(PAUSE, Duration::from_millis)
}

/// Describes a collection as mongodump does. `None` for system collections.
pub(super) fn describe(client: &mut Client, namespace: &Namespace) -> Result<Document> {
    let filter = Document::new().with("name", namespace.name.as_str());
    let list = Document::new()
        .with("listCollections", 1)
        .with("filter", filter)
        .with("$db", namespace.database.as_str());
    let listed = first_batch(&run(client, &RawDocument::from_document(&list))?);
    let Some(entry) = listed.into_iter().next() else { bail!("the collection '{namespace}' is gone") };
    let kind = entry.get("type").and_then(Value::as_str).unwrap_or("collection").to_owned();
    let options = entry.get("options").cloned().unwrap_or_else(|| Document::new().into());
    let uuid = match entry.get("info").and_then(Value::as_document).and_then(|info| info.get("uuid")) {
        Some(Value::Binary(uuid)) => hex(&uuid.bytes),
        _ => String::new(),
    };
    let mut indexes = Vec::new();
    if kind != "view" {
        let list = Document::new()
            .with("listIndexes", namespace.name.as_str())
            .with("$db", namespace.database.as_str());
        indexes = first_batch(&run(client, &RawDocument::from_document(&list))?);
    }
    let indexes: Vec<Value> = indexes.into_iter().map(Value::Document).collect();
    Ok(Document::new()
        .with("indexes", indexes)
        .with("uuid", uuid)
        .with("collectionName", namespace.name.as_str())
        .with("type", kind)
        .with("options", options))
}

fn hex(bytes: &[u8]) -> String {
    let digit = |four: u8| char::from_digit(four.into(), 16).expect("four bits are a digit");
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Returns the documents of an answer with a cursor; the lists requested here fit into one.
fn first_batch(answer: &RawDocument) -> Vec<Document> {
    let cursor = answer.get("cursor").and_then(ValueRef::as_document);
    let batch = cursor.and_then(|cursor| cursor.get("firstBatch")).and_then(ValueRef::as_array);
    batch.map_or_else(Vec::new, |batch| {
        batch.iter().filter_map(ValueRef::as_document).map(bson::DocumentRef::to_document).collect()
    })
}

/// Creates the collection or view in such a description, unless it exists, then its indexes.
pub(super) fn make(client: &mut Client, namespace: &Namespace, description: &Document) -> Result<()> {
    let filter = Document::new().with("name", namespace.name.as_str());
    let list = Document::new()
        .with("listCollections", 1)
        .with("filter", filter)
        .with("nameOnly", true)
        .with("$db", namespace.database.as_str());
    if first_batch(&run(client, &RawDocument::from_document(&list))?).is_empty() {
        let mut create = Document::new().with("create", namespace.name.as_str());
        for (name, value) in
            description.get("options").and_then(Value::as_document).into_iter().flat_map(Document::iter)
        {
            create.push(name, value.clone());
        }
        create.push("$db", namespace.database.as_str());
        run(client, &RawDocument::from_document(&create))
            .with_context(|| format!("cannot create '{namespace}'"))?;
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
            .with("createIndexes", namespace.name.as_str())
            .with("indexes", indexes)
            .with("$db", namespace.database.as_str());
        run(client, &RawDocument::from_document(&create))
            .with_context(|| format!("cannot create the indexes of '{namespace}'"))?;
    }
    Ok(())
}

/// Returns whether an index is the default one on `_id`.
fn is_own(index: &Document) -> bool {
    index.get("name").and_then(Value::as_str) == Some("_id_")
}

/// Writes documents. Existing ones are left alone or replaced.
pub(super) fn write(
    client: &mut Client,
    namespace: &Namespace,
    mode: Mode,
    documents: &[RawDocument],
) -> Result<Written> {
    let mut written = Written::default();
    let mut left: Vec<usize> = (0..documents.len()).collect();
    let mut taken = Vec::new();
    while !left.is_empty() {
        let refused = statements(client, &insert(namespace, &left, documents))?;
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
        let refused = statements(client, &replace(namespace, &taken, documents))?;
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

fn insert(namespace: &Namespace, which: &[usize], documents: &[RawDocument]) -> RawDocument {
    let mut command = Writer::default();
    command.field("insert", namespace.name.as_str());
    command.open_array("documents");
    for position in which {
        command.raw_item(&documents[*position]);
    }
    command.close();
    ending(command, namespace)
}

fn replace(namespace: &Namespace, which: &[usize], documents: &[RawDocument]) -> RawDocument {
    let mut command = Writer::default();
    command.field("update", namespace.name.as_str());
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
    ending(command, namespace)
}

/// Completes a write command. Imported documents keep empty timestamps as they are.
fn ending(mut command: Writer, namespace: &Namespace) -> RawDocument {
    command.field("ordered", false);
    command.field("bypassEmptyTsReplacement", true);
    command.field("$db", namespace.database.as_str());
    command.finish()
}

/// A refused statement.
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
        other => Err(anyhow!("the server reported a failed write without its index: {other:?}")),
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

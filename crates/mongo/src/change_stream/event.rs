//! The documents of a stream.

use std::sync::Arc;

use bson::{Document, Value, ValueRef};
use engine::collection::{Collection, LivingDocument};
use engine::{Event, EventKind, Manner, WatchEvent, Watched};
use mql::Code;
use mql::pipeline::{ChangeStream, FullDocument};
use mql::update::describe_change;

use super::NON_RESUMABLE;
use super::images::{IMAGES, has_images};
use super::token::Token;
use crate::access::executor::Executor;
use crate::protocol::error::{Error, Result};
use crate::protocol::operation_time::cluster_time;

/// Returns the fields that every event begins with.
fn head(token: Token, kind: &str) -> Document {
    let time = cluster_time(token.position);
    let millis = i64::try_from(token.position.time().millis()).unwrap_or(i64::MAX);
    Document::new()
        .with("_id", token.to_document())
        .with("operationType", kind)
        .with("clusterTime", time)
        .with("wallTime", Value::DateTime(millis))
}

/// Returns the event that ends a stream.
pub(super) fn invalidate(token: Token) -> Document {
    head(token, "invalidate")
}

/// Returns the document of an event; none if only expanded events show it.
pub(super) fn describe(
    event: WatchEvent,
    options: &ChangeStream,
    executor: &Executor,
) -> Result<Option<Document>> {
    let token = Token::at(event.position);
    let namespace = Document::new().with("db", event.database.as_str()).with("coll", event.name.as_str());
    Ok(Some(match event.what {
        Watched::Item(collection, item) => {
            return of_item(token, namespace, &collection, &item, options, executor);
        }
        Watched::Created => return Ok(None),
        Watched::Dropped => head(token, "drop").with("ns", namespace),
        Watched::Renamed { database, name } => head(token, "rename")
            .with("ns", namespace)
            .with("to", Document::new().with("db", database).with("coll", name)),
        Watched::DatabaseDropped => {
            head(token, "dropDatabase").with("ns", Document::new().with("db", event.database.as_str()))
        }
    }))
}

fn of_item(
    token: Token,
    namespace: Document,
    collection: &Arc<Collection>,
    event: &Event<LivingDocument>,
    options: &ChangeStream,
    executor: &Executor,
) -> Result<Option<Document>> {
    let kind = match (event.kind, event.manner) {
        (EventKind::Create, _) => "insert",
        (EventKind::Replace, Manner::Whole) => "replace",
        (EventKind::Replace, Manner::Parts) => "update",
        (EventKind::Delete | EventKind::Expire, _) => "delete",
    };
    let image = event.current.as_ref().or(event.previous.as_ref());
    let id = image.and_then(|found| found.document.get("_id")).map_or(Value::Null, ValueRef::to_value);
    let mut described = head(token, kind);
    match kind {
        "insert" | "replace" => described.push("fullDocument", shown(event.current.as_ref())),
        "update" => {
            if let Some(document) = full_document(collection, event, &id, options, executor)? {
                described.push("fullDocument", document);
            }
        }
        _ => {}
    }
    described.push("ns", namespace);
    described.push("documentKey", Document::new().with("_id", id));
    if let ("update", Some(before), Some(after)) = (kind, &event.previous, &event.current) {
        let description = describe_change(before.document.view(), after.document.view());
        described.push("updateDescription", description);
    }
    if kind != "insert"
        && let Some(before) = before_change(collection, event, options)?
    {
        described.push("fullDocumentBeforeChange", before);
    }
    if event.kind == EventKind::Expire {
        described.push("bolide", Document::new().with("expired", true));
    }
    Ok(Some(described))
}

fn shown(found: Option<&LivingDocument>) -> Value {
    found.map_or(Value::Null, |found| found.document.to_document().into())
}

/// Returns the document that goes with an update; none if the client did not ask for it.
fn full_document(
    collection: &Arc<Collection>,
    event: &Event<LivingDocument>,
    id: &Value,
    options: &ChangeStream,
    executor: &Executor,
) -> Result<Option<Value>> {
    match options.full_document {
        FullDocument::Default => Ok(None),
        FullDocument::UpdateLookup => current(collection, id, executor).map(Some),
        FullDocument::WhenAvailable | FullDocument::Required if has_images(collection) => {
            Ok(Some(shown(event.current.as_ref())))
        }
        FullDocument::WhenAvailable => Ok(Some(Value::Null)),
        FullDocument::Required => Err(no_image("post-image", "update", collection)),
    }
}

/// Returns the document before a change; none if the client did not ask for it.
fn before_change(
    collection: &Collection,
    event: &Event<LivingDocument>,
    options: &ChangeStream,
) -> Result<Option<Value>> {
    match options.full_document_before_change {
        FullDocument::Default | FullDocument::UpdateLookup => Ok(None),
        _ if has_images(collection) => Ok(Some(shown(event.previous.as_ref()))),
        FullDocument::WhenAvailable => Ok(Some(Value::Null)),
        FullDocument::Required => Err(no_image("pre-image", "update, delete and replace", collection)),
    }
}

fn no_image(what: &str, of: &str, collection: &Collection) -> Error {
    let text = format!(
        "Change stream was configured to require a {what} for all {of} events, but the {what} was not found: {} has \
         no '{IMAGES}'",
        collection.namespace()
    );
    Error::new(Code::NO_MATCHING_DOCUMENT, text).with_label(NON_RESUMABLE)
}

/// Returns the document as it is now, if it has not expired; its collection may have another name by now, or be gone.
fn current(collection: &Arc<Collection>, id: &Value, executor: &Executor) -> Result<Value> {
    let now = executor.engine().collection(&collection.database, &collection.name);
    let Some(now) = now.filter(|now| now.definition.uuid == collection.definition.uuid) else {
        return Ok(Value::Null);
    };
    executor.read(&[&now], |reading| Ok(shown(reading.by_id(&now, id.view())?.as_ref())))
}

//! What stages tell of a collection besides its documents: `$collStats`, `$indexStats`, `$currentOp`.

use std::sync::Arc;

use bson::{Document, Value, ValueRef};
use engine::collection::{Collection, Reading};
use mql::Code;
use mql::pipeline::{Description, Namespace};

use crate::error::{Error, Result};
use crate::operations::Operation;
use crate::service::Service;

/// Tells of a collection, its indexes, or of what runs.
pub(crate) fn describe(
    service: &Service,
    reading: &Reading,
    collection: Option<&Arc<Collection>>,
    name: &Namespace,
    what: &Description,
) -> Result<Vec<Document>> {
    match what {
        Description::Collection(options) => {
            let collection = collection.ok_or_else(|| {
                let text = format!("Unable to retrieve storageStats in $collStats stage :: caused by :: Collection [{name}] not found.");
                Error::new(Code::NAMESPACE_NOT_FOUND, text)
            })?;
            Ok(vec![collection_figures(service, reading, collection, options)?])
        }
        Description::Indexes => Ok(Vec::new()),
        Description::Operations(_) => {
            Ok(service.operations.list().iter().map(|operation| running(operation)).collect())
        }
    }
}

/// The answer of `$collStats`.
fn collection_figures(
    service: &Service,
    reading: &Reading,
    collection: &Arc<Collection>,
    options: &Document,
) -> Result<Document> {
    let mut told = Document::new()
        .with("ns", collection.namespace())
        .with("host", service.settings.advertise.as_deref().unwrap_or("localhost"))
        .with("localTime", Value::DateTime(reading.now().millis() as i64));
    if let Some(storage) = options.get("storageStats") {
        let scale =
            storage.as_document().and_then(|storage| storage.get("scale")).and_then(|it| whole(it.view()));
        told.push("storageStats", storage_figures(reading, collection, scale.unwrap_or(1).max(1))?);
    }
    if options.contains("count") {
        told.push("count", reading.usage(collection)?.living.items as i64);
    }
    Ok(told)
}

/// Sizes of a collection, of the living only (T18); also the answer of `collStats`.
pub(crate) fn storage_figures(
    reading: &Reading,
    collection: &Arc<Collection>,
    scale: i64,
) -> Result<Document> {
    let living = reading.usage(collection)?.living;
    let (count, bytes) = (living.items as i64, living.bytes as i64);
    let mut figures = Document::new().with("size", bytes / scale).with("count", count);
    if count > 0 {
        figures.push("avgObjSize", bytes / count);
    }
    Ok(figures
        .with("numOrphanDocs", 0_i64)
        .with("storageSize", bytes / scale)
        .with("freeStorageSize", 0_i64)
        .with("capped", false)
        .with("scaleFactor", scale))
}

fn whole(value: ValueRef<'_>) -> Option<i64> {
    crate::fields::whole(value)
}

/// A command that runs, as `$currentOp` shows it.
fn running(operation: &Operation) -> Document {
    Document::new()
        .with("type", "op")
        .with("desc", format!("conn{}", operation.connection.id))
        .with("connectionId", operation.connection.id)
        .with("opid", operation.number as i32)
        .with("active", true)
        .with("op", "command")
        .with("ns", format!("{}.$cmd", operation.database))
        .with("command", operation.body.to_document())
        .with("microsecs_running", i64::try_from(operation.since.elapsed().as_micros()).unwrap_or(i64::MAX))
}

//! What stages show of a collection besides its documents: `$collStats`, `$indexStats`, `$currentOp`,
//! `$listLocalSessions`.

use std::sync::Arc;

use bson::{Document, Value, ValueRef};
use engine::collection::{Collection, IndexState, Reading};
use mql::Code;
use mql::pipeline::{Description, Namespace};

use crate::protocol::error::{Error, Result};
use crate::protocol::fields::truth;
use crate::service::Service;
use crate::service::operations::operations;

/// Describes a collection, its indexes, the running operations, or the sessions of a user.
pub(crate) fn describe(
    service: &Service,
    reading: &Reading,
    collection: Option<&Arc<Collection>>,
    name: &Namespace,
    what: &Description,
    user: &[u8; 32],
) -> Result<Vec<Document>> {
    match what {
        Description::Collection(options) => {
            let collection = collection.ok_or_else(|| {
                let text = format!("Unable to retrieve storageStats in $collStats stage :: caused by :: Collection [{name}] not found.");
                Error::new(Code::NAMESPACE_NOT_FOUND, text)
            })?;
            Ok(vec![collection_figures(service, reading, collection, options)?])
        }
        Description::Indexes => match collection {
            Some(collection) => index_figures(service, reading, collection),
            None => Ok(Vec::new()),
        },
        Description::Operations(options) => {
            let all_users = options.get("allUsers").and_then(|it| truth(it.view())).unwrap_or(false);
            // Clients that have not authenticated are all one user.
            let own = (!all_users && *user != [0; 32]).then_some(*user);
            Ok(operations(service, own))
        }
        Description::Sessions => {
            let own = service.sessions.list_of(user).into_iter();
            Ok(own.map(|session| Document::new().with("_id", session.to_document())).collect())
        }
    }
}

/// Returns the answer of `$collStats`.
fn collection_figures(
    service: &Service,
    reading: &Reading,
    collection: &Arc<Collection>,
    options: &Document,
) -> Result<Document> {
    let mut described = Document::new()
        .with("ns", collection.namespace())
        .with("host", host(service))
        .with("localTime", Value::DateTime(reading.now().millis() as i64));
    if let Some(storage) = options.get("storageStats") {
        let scale =
            storage.as_document().and_then(|storage| storage.get("scale")).and_then(|it| whole(it.view()));
        described.push("storageStats", storage_figures(reading, collection, scale.unwrap_or(1).max(1))?);
    }
    if options.contains("count") {
        described.push("count", reading.usage(collection)?.living.items as i64);
    }
    Ok(described)
}

/// Returns the sizes of a collection, of documents that have not expired (T18); also the answer of `collStats`.
pub(crate) fn storage_figures(
    reading: &Reading,
    collection: &Arc<Collection>,
    scale: i64,
) -> Result<Document> {
    let living = reading.usage(collection)?.living;
    let (count, bytes) = (living.items as i64, living.bytes as i64);
    let number = |number: i64| i32::try_from(number).map_or(Value::Int64(number), Value::Int32);
    let mut figures = Document::new().with("size", number(bytes / scale)).with("count", number(count));
    if count > 0 {
        figures.push("avgObjSize", number(bytes / count));
    }
    let (mut sizes, mut building, mut total) = (Document::new(), Vec::new(), 0);
    let list = reading.indexes(collection)?;
    for usage in reading.index_usage(collection)? {
        let Some(index) = list.get(usage.number) else { continue };
        let bytes = usage.bytes as i64;
        total += bytes;
        sizes.push(index.spec.name(), number(bytes / scale));
        if matches!(index.state, IndexState::Building(_)) {
            building.push(Value::from(index.spec.name()));
        }
    }
    Ok(figures
        .with("numOrphanDocs", 0)
        .with("storageSize", number(bytes / scale))
        .with("freeStorageSize", 0)
        .with("capped", false)
        .with("nindexes", sizes.len() as i32)
        .with("indexBuilds", building)
        .with("totalIndexSize", number(total / scale))
        .with("totalSize", number((bytes + total) / scale))
        .with("indexSizes", sizes)
        .with("scaleFactor", number(scale)))
}

fn whole(value: ValueRef<'_>) -> Option<i64> {
    crate::protocol::fields::whole(value)
}

/// Returns the answer of `$indexStats`.
fn index_figures(
    service: &Service,
    reading: &Reading,
    collection: &Arc<Collection>,
) -> Result<Vec<Document>> {
    let since = Value::DateTime(service.started_at.millis() as i64);
    let list = reading.indexes(collection)?;
    let described = list.iter().map(|index| {
        let uses = i64::try_from(service.shared.index_uses.of(collection, index.number)).unwrap_or(i64::MAX);
        let accesses = Document::new().with("ops", uses).with("since", since.clone());
        let mut entry = Document::new()
            .with("name", index.spec.name())
            .with("key", index.spec.key_pattern().clone())
            .with("host", host(service))
            .with("accesses", accesses)
            .with("spec", index.spec.to_document());
        if matches!(index.state, IndexState::Building(_)) {
            entry.push("building", true);
        }
        entry
    });
    Ok(described.collect())
}

fn host(service: &Service) -> &str {
    service.settings.advertise.as_deref().unwrap_or("localhost")
}

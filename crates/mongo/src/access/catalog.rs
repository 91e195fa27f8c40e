//! Collections by name: those that exist, those that a write creates, and views.

use std::collections::HashSet;
use std::sync::Arc;

use bson::{Collation, Document, DocumentRef, RawDocument, ValueRef};
use engine::Engine;
use engine::collection::{Collection, CollectionDefinition};
use mql::Code;
use mql::pipeline::{self, Pipeline};

use crate::access::executor::Executor;
use crate::access::is_staged;
use crate::protocol::error::{Error, Result};
use crate::protocol::random;

/// The largest depth of views over views.
const VIEWS_MAX: usize = 20;
/// The largest number of views that a pipeline may read; a view that is read twice, perhaps by other views, counts twice.
const EXPANSION_MAX: usize = 100;

/// Returns the definition of a new collection with these options.
pub(crate) fn definition(options: RawDocument) -> Result<CollectionDefinition> {
    let mut uuid: [u8; 16] = random::bytes();
    // Version 4, variant 1: a UUID as tools expect it.
    uuid[6] = uuid[6] & 0x0F | 0x40;
    uuid[8] = uuid[8] & 0x3F | 0x80;
    let collation = match options.get("collation").and_then(ValueRef::as_document) {
        Some(collation) => Collation::parse(collation)?,
        None => Collation::simple(),
    };
    Ok(CollectionDefinition { uuid, options, collation, shard_key: None })
}

/// Returns the collection of that name, created if it does not exist: the first write creates a collection.
pub(crate) fn for_write(executor: &Executor, database: &str, name: &str) -> Result<Arc<Collection>> {
    refuse_system(database, name)?;
    if let Some(collection) = executor.find_collection(database, name) {
        refuse_view(&collection)?;
        return Ok(collection);
    }
    match executor.create_collection(database, name, definition(RawDocument::default())?) {
        Ok(collection) => Ok(collection),
        // Another client was faster.
        Err(engine::Error::Exists { .. }) => {
            executor.find_collection(database, name).ok_or_else(|| missing(database, name))
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns the collection of that name, if there is one, to be read, explained or described. Every command that takes a name from a client
/// gets its collection here or by [`resolve`]; [`Executor::read`] refuses any other.
pub(crate) fn find(engine: &Engine, database: &str, name: &str) -> Result<Option<Arc<Collection>>> {
    refuse_system_read(database, name)?;
    Ok(engine.collection(database, name))
}

/// Returns the collections and views of a database whose statistics clients may see.
pub(crate) fn readable(engine: &Engine, database: &str) -> Vec<Arc<Collection>> {
    let mut collections = engine.collections(database);
    collections.retain(|collection| !Collection::is_of_system(database, &collection.name));
    collections
}

/// Returns the collection of that name, which must exist.
pub(crate) fn existing(engine: &Engine, database: &str, name: &str) -> Result<Arc<Collection>> {
    find(engine, database, name)?.ok_or_else(|| missing(database, name))
}

/// Returns the error for a missing collection.
pub(crate) fn missing(database: &str, name: &str) -> Error {
    Error::new(Code::NAMESPACE_NOT_FOUND, format!("ns does not exist: {database}.{name}"))
}

/// Refuses reads of system collections by any client: documents, counts, statistics and indexes alike, since a count by a filter
/// reveals values as well as the documents do. `usersInfo` shows what user administrators need.
pub(crate) fn refuse_system_read(database: &str, name: &str) -> Result<()> {
    if Collection::is_of_system(database, name) {
        let text = format!("not authorized on {database} to read {database}.{name}");
        return Err(Error::new(Code::UNAUTHORIZED, text));
    }
    Ok(())
}

/// Refuses writes to system collections, and to staged collections, which do not outlive the process.
pub(crate) fn refuse_system(database: &str, name: &str) -> Result<()> {
    if name.starts_with("system.") || is_staged(name) {
        let text = format!("Invalid system namespace: {database}.{name}");
        return Err(Error::new(Code::INVALID_NAMESPACE, text));
    }
    Ok(())
}

/// Refuses a write to a view.
pub(crate) fn refuse_view(collection: &Collection) -> Result<()> {
    if view(collection).is_some() {
        let text = format!("Namespace {} is a view, not a collection", collection.namespace());
        return Err(Error::new(Code::COMMAND_NOT_SUPPORTED_ON_VIEW, text));
    }
    Ok(())
}

/// The definition of a view.
#[derive(Debug, Clone)]
pub(crate) struct View {
    /// The name of the collection, or view, behind it.
    pub(crate) on: String,
    /// The stages that make the view from that collection.
    pub(crate) pipeline: Vec<RawDocument>,
}

/// Returns the view that a collection is, if it is one.
pub(crate) fn view(collection: &Collection) -> Option<View> {
    let options = collection.definition.options.view();
    let on = options.get("viewOn").and_then(ValueRef::as_str)?.to_owned();
    let stages = options.get("pipeline").and_then(ValueRef::as_array);
    let stages = stages.map_or_else(Vec::new, |stages| {
        stages.iter().filter_map(ValueRef::as_document).map(RawDocument::from_view).collect()
    });
    Some(View { on, pipeline: stages })
}

/// Follows a name through views to the collection behind them. Returns its name and the stages of the views.
pub(crate) fn resolve(engine: &Engine, database: &str, name: &str) -> Result<(String, Vec<RawDocument>)> {
    let (mut name, mut stages) = (name.to_owned(), Vec::new());
    for _ in 0..VIEWS_MAX {
        let Some(View { on, pipeline }) = find(engine, database, &name)?.and_then(|it| view(&it)) else {
            return Ok((name, stages));
        };
        stages.splice(0..0, pipeline);
        name = on;
    }
    let text = format!("View depth too deep or view cycle detected; maximum depth is {VIEWS_MAX}");
    Err(Error::new(Code::VIEW_DEPTH_LIMIT_EXCEEDED, text))
}

/// Returns a view's pipeline, parsed without the context of a request.
pub(crate) fn parse_view(database: &str, on: &str, stages: &[RawDocument]) -> Result<Pipeline> {
    let settings = pipeline::Settings {
        database: database.to_owned(),
        collection: Some(on.to_owned()),
        ..pipeline::Settings::default()
    };
    let stages: Vec<_> = stages.iter().map(RawDocument::view).collect();
    Ok(Pipeline::parse(&stages, &settings)?)
}

/// Refuses a view of that name if it would read itself, directly or through other views.
pub(crate) fn check_cycles(
    engine: &Engine,
    database: &str,
    name: &str,
    on: &str,
    pipeline: &Pipeline,
) -> Result<()> {
    let (mut looks_into, mut known) = (looked_into(database, on, pipeline), HashSet::new());
    while let Some(next) = looks_into.pop() {
        if next == name {
            let text = format!("View cycle detected: {database}.{name} would look into itself");
            return Err(Error::new(Code::GRAPH_CONTAINS_CYCLE, text));
        }
        let Some(View { on, pipeline }) = engine.collection(database, &next).and_then(|it| view(&it)) else {
            continue;
        };
        if known.insert(next) {
            looks_into.extend(looked_into(database, &on, &parse_view(database, &on, &pipeline)?));
        }
    }
    Ok(())
}

/// Returns the collections that a view reads, all of one database.
fn looked_into(database: &str, on: &str, pipeline: &Pipeline) -> Vec<String> {
    let names = pipeline.collections().into_iter().filter(|name| name.database == database);
    names.map(|name| name.collection).chain([on.to_owned()]).collect()
}

/// Refuses a pipeline that reads too many views: each stands for another pipeline, so a few nested views could be read a
/// million times.
pub(crate) fn check_expansion(engine: &Engine, database: &str, stages: &[RawDocument]) -> Result<()> {
    let mut left = EXPANSION_MAX;
    stages.iter().try_for_each(|stage| expand(engine, database, stage.view(), 0, &mut left))
}

fn expand(
    engine: &Engine,
    database: &str,
    part: DocumentRef<'_>,
    depth: usize,
    left: &mut usize,
) -> Result<()> {
    for (name, value) in part.iter() {
        match value {
            ValueRef::String(collection) if matches!(name, "$unionWith" | "from" | "coll") => {
                let Some(view) = engine.collection(database, collection).and_then(|it| view(&it)) else {
                    continue;
                };
                if *left == 0 || depth >= VIEWS_MAX {
                    let text = format!(
                        "the pipeline looks into more than {EXPANSION_MAX} views, or more than {VIEWS_MAX} deep"
                    );
                    return Err(Error::new(Code::VIEW_DEPTH_LIMIT_EXCEEDED, text));
                }
                *left -= 1;
                for stage in &view.pipeline {
                    expand(engine, database, stage.view(), depth + 1, left)?;
                }
            }
            ValueRef::Document(inner) => expand(engine, database, inner, depth, left)?,
            ValueRef::Array(items) => {
                for inner in items.iter().filter_map(ValueRef::as_document) {
                    expand(engine, database, inner, depth, left)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns a collection's entry in `listCollections`.
pub(crate) fn describe(collection: &Collection, name_only: bool) -> Document {
    let is_view = view(collection).is_some();
    let kind = if is_view { "view" } else { "collection" };
    let entry = Document::new().with("name", collection.name.as_str()).with("type", kind);
    if name_only {
        return entry;
    }
    let mut info = Document::new().with("readOnly", is_view);
    if !is_view {
        info.push("uuid", bson::Binary { subtype: 4, bytes: collection.definition.uuid.to_vec() });
    }
    let mut options = collection.definition.options.to_document();
    if options.contains("validator") {
        for (name, default) in [("validationLevel", "strict"), ("validationAction", "error")] {
            if !options.contains(name) {
                options.push(name, default);
            }
        }
    }
    let entry = entry.with("options", options).with("info", info);
    if is_view {
        return entry;
    }
    let indexes = collection.indexes();
    let Some(id_index) = indexes.iter().find(|index| index.spec.is_id()) else { return entry };
    entry.with("idIndex", id_index.spec.to_document())
}

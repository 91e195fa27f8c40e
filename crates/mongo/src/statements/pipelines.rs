//! Pipelines with all collections and views that they read and write, ready to run.

use std::sync::Arc;

use bson::{RawDocument, ValueRef};
use mql::filter;
use mql::index::Hint;
use mql::pipeline::{DiskUse, Merge, Namespace, Pipeline, Settings, View, Writes};
use mql::{Code, Error as LanguageError};

use super::describe::describe;
use crate::access::catalog;
use crate::access::{self, PipelineCursor, PipelineInputs};
use crate::protocol::error::{Error, Result};
use crate::protocol::fields::Fields;
use crate::service::call::{Call, check_collection, check_database};

/// How deep views may be nested.
const VIEWS_MAX: usize = 20;

/// Returns the collection that a pipeline runs on; none for `aggregate: 1`.
pub(crate) fn collection(call: &Call) -> Result<Option<&str>> {
    match call.argument() {
        ValueRef::String(name) => Ok(Some(check_collection(&call.database, name)?)),
        ValueRef::Int32(1) | ValueRef::Int64(1) => Ok(None),
        ValueRef::Double(number) if (number - 1.0).abs() < f64::EPSILON => Ok(None),
        _ => Err(Error::new(
            Code::FAILED_TO_PARSE,
            "Invalid command format: the 'aggregate' field must specify a collection name or 1",
        )),
    }
}

/// Returns the settings of a pipeline over that collection.
pub(crate) fn settings(call: &Call, collection: Option<&str>, language: &filter::Settings) -> Settings {
    Settings {
        database: call.database.clone(),
        collection: collection.map(str::to_owned),
        collation: language.collation.clone(),
        variables: language.variables.clone(),
        views: Vec::new(),
        text: language.text.clone(),
        patterns: language.patterns.clone(),
        disk_use: match call.fields().boolean("allowDiskUse") {
            Ok(Some(false)) => DiskUse::Declined,
            _ => DiskUse::Allowed,
        },
    }
}

/// Returns a pipeline over a collection, ready to run.
pub(crate) fn build(
    call: &Call,
    on: Option<&str>,
    stages: &[RawDocument],
    language: &filter::Settings,
    hint: Option<Hint>,
) -> Result<PipelineCursor> {
    catalog::check_expansion(&call.engine, &call.database, stages)?;
    let stages: Vec<_> = stages.iter().map(RawDocument::view).collect();
    ready(call, on, language, hint, |settings| Pipeline::parse(&stages, settings))
}

/// Returns a pipeline over a collection, with all views that it reads.
pub(crate) fn parse(
    call: &Call,
    on: Option<&str>,
    stages: &[RawDocument],
    language: &filter::Settings,
) -> Result<Pipeline> {
    let stages: Vec<_> = stages.iter().map(RawDocument::view).collect();
    with_views(call, on, language, |settings| Pipeline::parse(&stages, settings))
}

/// Returns a pipeline with all views that it reads, and its target if it writes. It is parsed again as long as it turns out
/// to read further views.
fn with_views(
    call: &Call,
    on: Option<&str>,
    language: &filter::Settings,
    parse: impl Fn(&Settings) -> mql::Result<Pipeline>,
) -> Result<Pipeline> {
    let mut settings = settings(call, on, language);
    let mut pipeline = parse(&settings)?;
    for _ in 0..VIEWS_MAX {
        let found = views(call, &pipeline.collections(), &settings.views)?;
        if found.is_empty() {
            break;
        }
        settings.views.extend(found);
        pipeline = parse(&settings)?;
    }
    match pipeline.writes() {
        Some(Writes::Merge(merge)) => check_target(merge.target())?,
        Some(Writes::Out(target)) => check_target(target)?,
        None => {}
    }
    Ok(pipeline)
}

/// Returns a pipeline with all collections that it reads, ready to run.
pub(crate) fn ready(
    call: &Call,
    on: Option<&str>,
    language: &filter::Settings,
    hint: Option<Hint>,
    parse: impl Fn(&Settings) -> mql::Result<Pipeline>,
) -> Result<PipelineCursor> {
    let pipeline = with_views(call, on, language, parse)?;
    if !pipeline.descriptions().is_empty() && call.executor.is_transaction() {
        let text = "a pipeline that tells of operations, sessions, indexes or statistics cannot be part of a transaction";
        return Err(LanguageError::new(Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION, text).into());
    }
    if pipeline.writes().is_some() && call.executor.is_transaction() {
        let text = "a pipeline with $out or $merge cannot be part of a transaction";
        return Err(LanguageError::new(Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION, text).into());
    }
    if pipeline.writes().is_some() {
        check_concern(call.fields())?;
    }
    if let Some(Writes::Merge(merge)) = pipeline.writes() {
        check_merge(call, merge)?;
    }
    let (service, user) = (Arc::clone(&call.service), call.owner().user);
    let inputs = PipelineInputs {
        leading: on.map(|name| Namespace { database: call.database.clone(), collection: name.to_owned() }),
        collections: pipeline.collections(),
        collation: language.collation.clone(),
        hint,
        bypass: call.fields().is_set("bypassDocumentValidation")?,
        scratch: call.service.settings.scratch.clone(),
        describe: Arc::new(move |reading, collection, name, what| {
            describe(&service, reading, collection, name, what, &user)
        }),
    };
    Ok(PipelineCursor::new(pipeline, inputs))
}

/// Refuses a linearizable read of a pipeline that writes: what it writes could not be read back from there.
fn check_concern(fields: Fields<'_>) -> Result<()> {
    let concern = fields.document("readConcern")?;
    if concern.and_then(|concern| concern.get("level")).and_then(ValueRef::as_str) == Some("linearizable") {
        let text = "a pipeline with $out or $merge cannot be used with a 'linearizable' read concern level";
        return Err(Error::new(Code::INVALID_OPTIONS, text));
    }
    Ok(())
}

/// Refuses to write to a name that commands cannot use.
fn check_target(target: &Namespace) -> Result<()> {
    check_database(&target.database)?;
    check_collection(&target.database, &target.collection)?;
    catalog::refuse_system(&target.database, &target.collection)
}

/// Refuses a `$merge` without a unique index: each document must have one counterpart at most.
fn check_merge(call: &Call, merge: &Merge) -> Result<()> {
    let (on, target) = (merge.on(), merge.target());
    if on.len() == 1 && on[0] == "_id" {
        return Ok(());
    }
    let collection = call.engine.collection(&target.database, &target.collection);
    if collection.is_some_and(|collection| access::unique_key(&collection, on).is_some()) {
        return Ok(());
    }
    Err(Error::location(51183, "Cannot find index to verify that join fields will be unique"))
}

/// Returns the views among the collections that a pipeline reads, without those that are known.
fn views(call: &Call, names: &[Namespace], known: &[View]) -> Result<Vec<View>> {
    let mut views = Vec::new();
    for name in names.iter().filter(|name| !known.iter().any(|view| view.name == **name)) {
        let (on, pipeline) = catalog::resolve(&call.engine, &name.database, &name.collection)?;
        if on != name.collection {
            let on = Namespace { database: name.database.clone(), collection: on };
            views.push(View { name: name.clone(), on, pipeline });
        }
    }
    Ok(views)
}

//! `aggregate`.

use std::sync::Arc;

use bson::{RawDocument, ValueRef};
use mql::filter;
use mql::index::Hint;
use mql::pipeline::{DiskUse, Merge, Namespace, Pipeline, Settings, View, Writes};
use mql::{Code, Error as LanguageError};

use crate::access::{self, Answers, Reads};
use crate::call::{Call, check_collection, check_database};
use crate::catalog;
use crate::change_stream;
use crate::cursor_reply::{self, Opening};
use crate::error::{Error, Result};
use crate::explanation::Verbosity;
use crate::fields::Fields;
use crate::reply::Reply;
use crate::statements;

/// How deep views may look into views.
const VIEWS_MAX: usize = 20;

const KNOWN: &[&str] = &[
    "aggregate",
    "pipeline",
    "cursor",
    "explain",
    "allowDiskUse",
    "collation",
    "hint",
    "let",
    "bypassDocumentValidation",
];

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let fields = call.fields();
    fields.only(KNOWN)?;
    fields.boolean("allowDiskUse")?;
    if fields.is_set("explain")? {
        return super::explain::explain(call, Verbosity::Planner);
    }
    let cursor = fields.document("cursor")?.ok_or_else(|| {
        let text = "The 'cursor' option is required, except for aggregate with the explain argument";
        Error::new(Code::FAILED_TO_PARSE, text)
    })?;
    let batch_size = Fields::new("aggregate.cursor", cursor).count("batchSize")?;
    let batch_size = batch_size.map(|size| usize::try_from(size).unwrap_or(usize::MAX));
    if let Some(stages) = call.documents("pipeline")?.filter(|stages| change_stream::is_change_stream(stages))
    {
        return follow(call, &stages, batch_size);
    }
    let answers = answers(call, fields)?;
    let namespace = namespace(call)?;
    let opening = Opening { namespace: &namespace, batch_size, single_batch: false, keep: false };
    cursor_reply::open(call, answers, &opening)
}

/// Opens a change stream.
fn follow(call: &Call, stages: &[RawDocument], batch_size: Option<usize>) -> Result<Reply> {
    if call.room.is_transaction() {
        let text = "$changeStream cannot be part of a transaction";
        return Err(Error::new(Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION, text));
    }
    let (name, language) = (collection(call)?, statements::settings(call, call.fields())?);
    let pipeline = parse(call, name, stages, &language)?;
    let stream = call.blocking(|| change_stream::open(call, name, &pipeline))?;
    let namespace = namespace(call)?;
    let opening = Opening { namespace: &namespace, batch_size, single_batch: false, keep: false };
    cursor_reply::follow(call, stream, &opening)
}

/// The name of the cursor's collection, as replies give it.
fn namespace(call: &Call) -> Result<String> {
    Ok(match collection(call)? {
        Some(name) => format!("{}.{name}", call.database),
        None => format!("{}.$cmd.aggregate", call.database),
    })
}

/// The collection that a pipeline runs on; none for `aggregate: 1`.
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

/// The answer of an `aggregate` that has not begun; also what `explain` asks for.
pub(super) fn answers(call: &Call, fields: Fields<'_>) -> Result<Answers> {
    let pipeline = call.documents("pipeline")?;
    let pipeline = fields.required("pipeline", pipeline)?;
    let name = collection(call)?;
    let (on, stages) = match name {
        Some(name) => {
            let (on, mut stages) = catalog::resolve(&call.engine, &call.database, name)?;
            stages.extend(pipeline);
            (Some(on), stages)
        }
        None => (None, pipeline),
    };
    let handle = on.as_ref().and_then(|name| call.engine.collection(&call.database, name));
    let language = match name {
        Some(name) => statements::language(call, fields, name, handle.as_deref())?,
        None => statements::settings(call, fields)?,
    };
    build(call, on.as_deref(), &stages, &language, access::hint(fields)?)
}

/// What surrounds a pipeline over that collection.
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

/// A pipeline over a collection, ready to run.
pub(crate) fn build(
    call: &Call,
    on: Option<&str>,
    stages: &[RawDocument],
    language: &filter::Settings,
    hint: Option<Hint>,
) -> Result<Answers> {
    catalog::check_expansion(&call.engine, &call.database, stages)?;
    let stages: Vec<_> = stages.iter().map(RawDocument::view).collect();
    ready(call, on, language, hint, |settings| Pipeline::parse(&stages, settings))
}

/// A pipeline over a collection, with everything that it looks into.
pub(super) fn parse(
    call: &Call,
    on: Option<&str>,
    stages: &[RawDocument],
    language: &filter::Settings,
) -> Result<Pipeline> {
    let stages: Vec<_> = stages.iter().map(RawDocument::view).collect();
    with_views(call, on, language, |settings| Pipeline::parse(&stages, settings))
}

/// A pipeline with everything that it looks into, and a target that it may write to if it writes. It is read anew while it turns
/// out to look into views.
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

/// A pipeline with everything that it looks into, ready to run.
pub(super) fn ready(
    call: &Call,
    on: Option<&str>,
    language: &filter::Settings,
    hint: Option<Hint>,
    parse: impl Fn(&Settings) -> mql::Result<Pipeline>,
) -> Result<Answers> {
    let pipeline = with_views(call, on, language, parse)?;
    if !pipeline.descriptions().is_empty() && call.room.is_transaction() {
        let text = "a pipeline that tells of operations, sessions, indexes or statistics cannot be part of a transaction";
        return Err(LanguageError::new(Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION, text).into());
    }
    if pipeline.writes().is_some() && call.room.is_transaction() {
        let text = "a pipeline with $out or $merge cannot be part of a transaction";
        return Err(LanguageError::new(Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION, text).into());
    }
    if pipeline.writes().is_some() {
        check_concern(call.fields())?;
    }
    if let Some(Writes::Merge(merge)) = pipeline.writes() {
        check_merge(call, merge)?;
    }
    let reads = Reads {
        leading: on.map(|name| Namespace { database: call.database.clone(), collection: name.to_owned() }),
        collections: pipeline.collections(),
        collation: language.collation.clone(),
        hint,
        user: call.owner().user,
        bypass: call.fields().is_set("bypassDocumentValidation")?,
        service: Arc::clone(&call.service),
    };
    Ok(Answers::new(pipeline, reads))
}

/// What a pipeline writes cannot be read back from where it would be linearizable.
fn check_concern(fields: Fields<'_>) -> Result<()> {
    let concern = fields.document("readConcern")?;
    if concern.and_then(|concern| concern.get("level")).and_then(ValueRef::as_str) == Some("linearizable") {
        let text = "a pipeline with $out or $merge cannot be used with a 'linearizable' read concern level";
        return Err(Error::new(Code::INVALID_OPTIONS, text));
    }
    Ok(())
}

/// What a pipeline writes to must have a name that commands can say.
fn check_target(target: &Namespace) -> Result<()> {
    check_database(&target.database)?;
    check_collection(&target.database, &target.collection)?;
    catalog::refuse_system(&target.database, &target.collection)
}

/// A document of `$merge` must have one counterpart at most: a unique index says so.
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

/// The views among the collections that a pipeline looks into, without those that are known.
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

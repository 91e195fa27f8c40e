//! `explain`: how another command would find its documents.

use std::sync::Arc;

use bson::{Document, DocumentRef, RawDocument, Value};
use mql::Code;
use mql::filter::Filter;
use mql::pipeline::{Pipeline, Settings};
use mql::sort::Sort;

use crate::access;
use crate::call::Call;
use crate::catalog;
use crate::error::{Error, Result};
use crate::explanation::{Inquiry, Purpose, Verbosity, Walked, shown};
use crate::fields::Fields;
use crate::reply::Reply;
use crate::statements;

use super::build_info;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let fields = call.fields();
    fields.only(&["explain", "verbosity"])?;
    let verbosity = Verbosity::parse(fields.text("verbosity")?)?;
    let inner = fields.required("explain", fields.document("explain")?)?;
    let name = inner.iter().next().map_or("", |(name, _)| name);
    let command = super::find(name).ok_or_else(|| {
        Error::new(Code::COMMAND_NOT_FOUND, format!("Explain failed due to unknown command: {name}"))
    })?;
    let inner = call.about(command, RawDocument::from_view(inner));
    explain(&inner, verbosity)
}

/// The explanation of a command.
pub(super) fn explain(call: &Call, verbosity: Verbosity) -> Result<Reply> {
    let fields = call.fields();
    let inquiry = match call.command.name {
        "find" => return find(call, fields, verbosity),
        "aggregate" => {
            let pipeline = call.documents("pipeline")?;
            let pipeline = fields.required("pipeline", pipeline)?;
            return aggregate(call, fields, pipeline, verbosity);
        }
        "count" => count(call, fields)?,
        "distinct" => select(call, fields, fields, "query")?,
        "update" => update(call, "updates")?,
        "delete" => delete(call, "deletes")?,
        "findAndModify" => find_and_modify(call, fields)?,
        other => {
            let text = format!("Explain is not supported for the command: {other}");
            return Err(Error::new(Code::COMMAND_NOT_SUPPORTED, text));
        }
    };
    let told = told(call, &inquiry, verbosity)?;
    Ok(reply(call, told))
}

fn told(call: &Call, inquiry: &Inquiry, verbosity: Verbosity) -> Result<Document> {
    call.blocking(|| {
        let plan = inquiry.plan(&call.room)?;
        let walked = if verbosity == Verbosity::Planner { None } else { Some(walk(call, inquiry)?) };
        Ok(inquiry.told(plan.as_ref(), walked.as_ref(), verbosity))
    })
}

/// Walks as the command would: what it asks of its collection is a `find`, and runs as one.
fn walk(call: &Call, inquiry: &Inquiry) -> Result<Walked> {
    let Some(collection) = &inquiry.collection else { return Ok(Walked::default()) };
    let find = inquiry.as_find();
    let parse = |settings: &Settings| Pipeline::find(&[], &find, settings);
    let name = Some(collection.name.as_str());
    let answers = super::aggregate::ready(call, name, &inquiry.language, inquiry.hint.clone(), parse)?;
    inquiry.walk(answers, &call.room, &mut call.context())
}

fn reply(call: &Call, told: Document) -> Reply {
    let mut reply = Document::new().with("explainVersion", "1");
    reply.fields_mut().extend(told);
    let settings = &call.service.settings;
    let server = Document::new()
        .with("host", settings.host.name.as_str())
        .with("port", i32::from(call.connection.local.port()))
        .with("version", build_info::version())
        .with("gitVersion", env!("CARGO_PKG_VERSION"));
    let command = call.body.view().iter().filter(|(name, _)| !name.starts_with('$'));
    let command = command.map(|(name, value)| (name, value.to_value())).collect::<Document>();
    reply.push("command", command.with("$db", call.database.as_str()));
    reply.push("serverInfo", server);
    reply.push("serverParameters", Document::new());
    reply.into()
}

fn find(call: &Call, fields: Fields<'_>, verbosity: Verbosity) -> Result<Reply> {
    // Everything that is wrong with the command itself is found here.
    super::find::answers(call, fields)?;
    let name = call.collection()?;
    let (_, view) = catalog::resolve(&call.engine, &call.database, name)?;
    if !view.is_empty() {
        return aggregate(call, fields, stages_of(fields)?, verbosity);
    }
    let inquiry = Inquiry {
        sort: sort(fields)?,
        skip: fields.count("skip")?.unwrap_or(0),
        limit: fields.count("limit")?.filter(|limit| *limit > 0),
        projection: fields.document("projection")?.filter(|it| !it.is_empty()).map(DocumentRef::to_document),
        ..select(call, fields, fields, "filter")?
    };
    Ok(reply(call, told(call, &inquiry, verbosity)?))
}

/// A `find` as a pipeline, for a view.
fn stages_of(fields: Fields<'_>) -> Result<Vec<RawDocument>> {
    let mut stages = Vec::new();
    let mut add = |name: &str, value: Value| {
        stages.push(RawDocument::from_document(&Document::new().with(name, value)));
    };
    for (field, stage) in [("filter", "$match"), ("sort", "$sort"), ("projection", "$project")] {
        if let Some(document) = fields.document(field)?.filter(|it| !it.is_empty()) {
            add(stage, document.to_document().into());
        }
    }
    for (field, stage) in [("skip", "$skip"), ("limit", "$limit")] {
        if let Some(count) = fields.count(field)?.filter(|count| *count > 0) {
            add(stage, Value::Int64(i64::try_from(count).unwrap_or(i64::MAX)));
        }
    }
    Ok(stages)
}

fn aggregate(
    call: &Call,
    fields: Fields<'_>,
    pipeline: Vec<RawDocument>,
    verbosity: Verbosity,
) -> Result<Reply> {
    let name = super::aggregate::collection(call)?;
    let (on, mut stages) = match name {
        Some(name) => {
            let (on, stages) = catalog::resolve(&call.engine, &call.database, name)?;
            (Some(on), stages)
        }
        None => (None, Vec::new()),
    };
    stages.extend(pipeline);
    let handle = on.as_ref().and_then(|name| call.engine.collection(&call.database, name));
    let language = match name {
        Some(name) => statements::language(call, fields, name, handle.as_deref())?,
        None => statements::settings(call, fields)?,
    };
    let parsed = super::aggregate::parse(call, on.as_deref(), &stages, &language)?;
    if !parsed.reads_collection() {
        return Ok(reply(call, Document::new().with("stages", shown(&stages))));
    }
    let leading = parsed.leading();
    let namespace = format!("{}.{}", call.database, on.as_deref().unwrap_or("$cmd.aggregate"));
    let inquiry = Inquiry {
        namespace,
        collection: handle,
        filter: Arc::clone(&leading.filter),
        conditions: leading.conditions.clone(),
        sort: leading.sort.as_ref().map(|sort| (Arc::clone(sort), first(&stages, "$sort"))),
        skip: 0,
        limit: leading.limit,
        projection: None,
        language,
        hint: access::hint(fields)?,
        purpose: Purpose::Find,
    };
    let told = told(call, &inquiry, verbosity)?;
    let rest = behind(&stages, leading.sort.is_some());
    if rest.is_empty() {
        return Ok(reply(call, told));
    }
    let mut all = vec![Value::Document(Document::new().with("$cursor", told))];
    all.extend(shown(rest));
    Ok(reply(call, Document::new().with("stages", all)))
}

/// The argument of the first stage of that name.
fn first(stages: &[RawDocument], name: &str) -> Document {
    let found = stages.iter().find_map(|stage| stage.get(name).and_then(bson::ValueRef::as_document));
    found.map(DocumentRef::to_document).unwrap_or_default()
}

/// The stages that are not done by the walk itself: behind the conditions, and behind the order if the walk is asked for one.
fn behind(stages: &[RawDocument], sorted: bool) -> &[RawDocument] {
    let is = |stage: &RawDocument, name: &str| stage.get(name).is_some();
    let mut at = stages.iter().take_while(|stage| is(stage, "$match")).count();
    if sorted && stages.get(at).is_some_and(|stage| is(stage, "$sort")) {
        at += 1;
    }
    if stages.get(at).is_some_and(|stage| is(stage, "$limit")) {
        at += 1;
    }
    &stages[at..]
}

fn count(call: &Call, fields: Fields<'_>) -> Result<Inquiry> {
    Ok(Inquiry {
        skip: fields.count("skip")?.unwrap_or(0),
        limit: fields.integer("limit")?.map(i64::unsigned_abs).filter(|limit| *limit > 0),
        purpose: Purpose::Count,
        ..select(call, fields, fields, "query")?
    })
}

fn update(call: &Call, name: &str) -> Result<Inquiry> {
    let statement = only_statement(call, name)?;
    let fields = Fields::new("update.updates", statement.view());
    let change = fields.required("u", fields.document.get("u"))?;
    let limit = if fields.is_set("multi")? { None } else { Some(1) };
    changing(call, fields, "q", change, limit, fields.is_set("upsert")?)
}

fn delete(call: &Call, name: &str) -> Result<Inquiry> {
    let statement = only_statement(call, name)?;
    let fields = Fields::new("delete.deletes", statement.view());
    let limit = if fields.integer("limit")? == Some(0) { None } else { Some(1) };
    Ok(Inquiry { limit, purpose: Purpose::Delete, ..select(call, call.fields(), fields, "q")? })
}

fn find_and_modify(call: &Call, fields: Fields<'_>) -> Result<Inquiry> {
    if fields.is_set("remove")? {
        let selected = select(call, fields, fields, "query")?;
        return Ok(Inquiry { limit: Some(1), sort: sort(fields)?, purpose: Purpose::Delete, ..selected });
    }
    let change = fields.value("update").ok_or_else(|| {
        Error::new(Code::FAILED_TO_PARSE, "Either an update or remove=true must be specified")
    })?;
    changing(call, fields, "query", change, Some(1), fields.is_set("upsert")?)
}

fn changing(
    call: &Call,
    fields: Fields<'_>,
    filter: &str,
    change: bson::ValueRef<'_>,
    limit: Option<u64>,
    upsert: bool,
) -> Result<Inquiry> {
    let selected = select(call, call.fields(), fields, filter)?;
    let update = statements::parse_update(call, selected.collection.as_deref(), fields, change)?;
    let purpose = Purpose::Update { update: Box::new(update), upsert };
    Ok(Inquiry { limit, sort: sort(fields)?, purpose, ..selected })
}

/// The one statement that is explained: more than one have no one answer.
fn only_statement(call: &Call, name: &str) -> Result<RawDocument> {
    let statements = call.documents(name)?;
    let mut statements = call.fields().required(name, statements)?;
    match (statements.pop(), statements.is_empty()) {
        (Some(statement), true) => Ok(statement),
        _ => Err(Error::new(Code::INVALID_LENGTH, "explained write batches must be of size 1")),
    }
}

/// The documents that a filter of the command, or of its statement, selects.
fn select(call: &Call, command: Fields<'_>, fields: Fields<'_>, name: &str) -> Result<Inquiry> {
    let collection = catalog::find(&call.engine, &call.database, call.collection()?)?;
    if let Some(collection) = &collection {
        catalog::refuse_view(collection)?;
    }
    let mut settings =
        statements::with_defaults(statements::settings(call, fields)?, fields, collection.as_deref());
    if let Some(variables) = command.document("let")? {
        settings.variables = Arc::new(variables.to_document());
    }
    let none = Document::new();
    let conditions = fields.document(name)?.unwrap_or(none.view());
    Ok(Inquiry {
        namespace: call.namespace()?,
        collection,
        filter: Arc::new(Filter::parse(conditions, &settings)?),
        conditions: conditions.to_document(),
        sort: None,
        skip: 0,
        limit: None,
        projection: None,
        language: settings,
        hint: access::hint(fields)?,
        purpose: Purpose::Find,
    })
}

fn sort(fields: Fields<'_>) -> Result<Option<(Arc<Sort>, Document)>> {
    let Some(sort) = fields.document("sort")?.filter(|sort| !sort.is_empty()) else { return Ok(None) };
    Ok(Some((Arc::new(Sort::parse(sort)?), sort.to_document())))
}

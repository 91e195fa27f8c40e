//! `explain`: how another command would find its documents.

use std::sync::Arc;

use bson::{Document, DocumentRef, RawDocument, Value};
use mql::Code;
use mql::filter::Filter;
use mql::pipeline::{Pipeline, Settings};
use mql::sort::Sort;

use crate::access;
use crate::access::catalog;
use crate::protocol::error::{Error, Result};
use crate::protocol::fields::Fields;
use crate::protocol::reply::Reply;
use crate::protocol::verbosity::Verbosity;
use crate::protocol::version::version;
use crate::service::call::Call;
use crate::statements;
use crate::statements::explanation::{Execution, ExplainRequest, Purpose, shown};
use crate::statements::pipelines;

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

/// Returns the explanation of a command.
pub(super) fn explain(call: &Call, verbosity: Verbosity) -> Result<Reply> {
    let Some(explain) = call.command.traits.explain else {
        let text = format!("Explain is not supported for the command: {}", call.command.name);
        return Err(Error::new(Code::COMMAND_NOT_SUPPORTED, text));
    };
    explain(call, verbosity)
}

/// Returns the explanation of a command that asks for this.
fn answer(call: &Call, request: &ExplainRequest, verbosity: Verbosity) -> Result<Reply> {
    Ok(reply(call, explained(call, request, verbosity)?))
}

fn explained(call: &Call, request: &ExplainRequest, verbosity: Verbosity) -> Result<Document> {
    call.blocking(|| {
        let plan = request.plan(&call.executor)?;
        let execution = if verbosity == Verbosity::Planner { None } else { Some(execute(call, request)?) };
        Ok(request.to_document(plan.as_ref(), execution.as_ref(), verbosity))
    })
}

/// Runs the search of the command on its collection, as a `find`.
fn execute(call: &Call, request: &ExplainRequest) -> Result<Execution> {
    let Some(collection) = &request.collection else { return Ok(Execution::default()) };
    let find = request.as_find();
    let parse = |settings: &Settings| Pipeline::find(&[], &find, settings);
    let name = Some(collection.name.as_str());
    let pipeline_cursor = pipelines::ready(call, name, &request.language, request.hint.clone(), parse)?;
    request.execute(pipeline_cursor, &call.executor, &mut call.context())
}

fn reply(call: &Call, explained: Document) -> Reply {
    let mut reply = Document::new().with("explainVersion", "1");
    reply.fields_mut().extend(explained);
    let settings = &call.service.settings;
    let server = Document::new()
        .with("host", settings.host.name.as_str())
        .with("port", i32::from(call.connection.local.port()))
        .with("version", version())
        .with("gitVersion", env!("CARGO_PKG_VERSION"));
    let command = call.body.view().iter().filter(|(name, _)| !name.starts_with('$'));
    let command = command.map(|(name, value)| (name, value.to_value())).collect::<Document>();
    reply.push("command", command.with("$db", call.database.as_str()));
    reply.push("serverInfo", server);
    reply.push("serverParameters", Document::new());
    reply.into()
}

pub(super) fn find(call: &Call, verbosity: Verbosity) -> Result<Reply> {
    let fields = call.fields();
    // This finds every error in the command itself.
    super::find::pipeline_cursor(call, fields)?;
    let name = call.collection()?;
    let (_, view) = catalog::resolve(&call.engine, &call.database, name)?;
    if !view.is_empty() {
        return pipeline(call, stages_of(fields)?, verbosity);
    }
    let request = ExplainRequest {
        sort: sort(fields)?,
        skip: fields.count("skip")?.unwrap_or(0),
        limit: fields.count("limit")?.filter(|limit| *limit > 0),
        projection: fields.document("projection")?.filter(|it| !it.is_empty()).map(DocumentRef::to_document),
        ..select(call, fields, fields, "filter")?
    };
    answer(call, &request, verbosity)
}

/// Returns a `find` as a pipeline, for a view.
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

pub(super) fn aggregate(call: &Call, verbosity: Verbosity) -> Result<Reply> {
    let stages = call.documents("pipeline")?;
    pipeline(call, call.fields().required("pipeline", stages)?, verbosity)
}

/// Explains a pipeline on the command's collection.
fn pipeline(call: &Call, pipeline: Vec<RawDocument>, verbosity: Verbosity) -> Result<Reply> {
    let fields = call.fields();
    let name = pipelines::collection(call)?;
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
    let parsed = pipelines::parse(call, on.as_deref(), &stages, &language)?;
    if !parsed.reads_collection() {
        return Ok(reply(call, Document::new().with("stages", shown(&stages))));
    }
    let leading = parsed.leading();
    let namespace = format!("{}.{}", call.database, on.as_deref().unwrap_or("$cmd.aggregate"));
    let request = ExplainRequest {
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
    let explained = explained(call, &request, verbosity)?;
    let rest = behind(&stages, leading.sort.is_some());
    if rest.is_empty() {
        return Ok(reply(call, explained));
    }
    let mut all = vec![Value::Document(Document::new().with("$cursor", explained))];
    all.extend(shown(rest));
    Ok(reply(call, Document::new().with("stages", all)))
}

/// Returns the argument of the first stage of that name.
fn first(stages: &[RawDocument], name: &str) -> Document {
    let found = stages.iter().find_map(|stage| stage.get(name).and_then(bson::ValueRef::as_document));
    found.map(DocumentRef::to_document).unwrap_or_default()
}

/// Returns the stages that are not done by the scan itself: behind the conditions, and behind the order if the scan has one.
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

pub(super) fn count(call: &Call, verbosity: Verbosity) -> Result<Reply> {
    let fields = call.fields();
    let request = ExplainRequest {
        skip: fields.count("skip")?.unwrap_or(0),
        limit: fields.integer("limit")?.map(i64::unsigned_abs).filter(|limit| *limit > 0),
        purpose: Purpose::Count,
        ..select(call, fields, fields, "query")?
    };
    answer(call, &request, verbosity)
}

pub(super) fn distinct(call: &Call, verbosity: Verbosity) -> Result<Reply> {
    let fields = call.fields();
    answer(call, &select(call, fields, fields, "query")?, verbosity)
}

pub(super) fn update(call: &Call, verbosity: Verbosity) -> Result<Reply> {
    let statement = only_statement(call, "updates")?;
    let fields = Fields::new("update.updates", statement.view());
    let change = fields.required("u", fields.document.get("u"))?;
    let limit = if fields.is_set("multi")? { None } else { Some(1) };
    answer(call, &changing(call, fields, "q", change, limit, fields.is_set("upsert")?)?, verbosity)
}

pub(super) fn delete(call: &Call, verbosity: Verbosity) -> Result<Reply> {
    let statement = only_statement(call, "deletes")?;
    let fields = Fields::new("delete.deletes", statement.view());
    let limit = if fields.integer("limit")? == Some(0) { None } else { Some(1) };
    let selected = select(call, call.fields(), fields, "q")?;
    answer(call, &ExplainRequest { limit, purpose: Purpose::Delete, ..selected }, verbosity)
}

pub(super) fn find_and_modify(call: &Call, verbosity: Verbosity) -> Result<Reply> {
    let fields = call.fields();
    if fields.is_set("remove")? {
        let selected = select(call, fields, fields, "query")?;
        let request =
            ExplainRequest { limit: Some(1), sort: sort(fields)?, purpose: Purpose::Delete, ..selected };
        return answer(call, &request, verbosity);
    }
    let change = fields.value("update").ok_or_else(|| {
        Error::new(Code::FAILED_TO_PARSE, "Either an update or remove=true must be specified")
    })?;
    let request = changing(call, fields, "query", change, Some(1), fields.is_set("upsert")?)?;
    answer(call, &request, verbosity)
}

fn changing(
    call: &Call,
    fields: Fields<'_>,
    filter: &str,
    change: bson::ValueRef<'_>,
    limit: Option<u64>,
    upsert: bool,
) -> Result<ExplainRequest> {
    let selected = select(call, call.fields(), fields, filter)?;
    let update = statements::parse_update(call, selected.collection.as_deref(), fields, change)?;
    let purpose = Purpose::Update { update: Box::new(update), upsert };
    Ok(ExplainRequest { limit, sort: sort(fields)?, purpose, ..selected })
}

/// Returns the one statement to explain: several would have no single answer.
fn only_statement(call: &Call, name: &str) -> Result<RawDocument> {
    let statements = call.documents(name)?;
    let mut statements = call.fields().required(name, statements)?;
    match (statements.pop(), statements.is_empty()) {
        (Some(statement), true) => Ok(statement),
        _ => Err(Error::new(Code::INVALID_LENGTH, "explained write batches must be of size 1")),
    }
}

/// Returns the documents that a filter of the command, or of its statement, selects.
fn select(call: &Call, command: Fields<'_>, fields: Fields<'_>, name: &str) -> Result<ExplainRequest> {
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
    Ok(ExplainRequest {
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

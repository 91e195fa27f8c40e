//! Statements that change documents: what `update`, `delete`, `findAndModify` and `bulkWrite` are made of.
//!
//! A statement first finds its document with a scan, then passes it to a function inside the store's transaction, which checks
//! the filter again and decides. If the document has changed so that it does not match any more, or has expired, the statement
//! tries again: the client that changed it has made progress, so this ends. A filter on `_id` alone needs no scan.

pub(crate) mod cursor_reply;
pub(crate) mod describe;
pub(crate) mod explanation;
pub(crate) mod matching;
pub(crate) mod pipelines;

mod context_seed;
mod delete;
mod update;

use std::sync::Arc;

use bson::{Collation, Document, DocumentRef, Value, ValueRef};
use engine::collection::{Collection, LivingDocument, Reading, Target};
use engine::find::{self, Plan, PlanRequest};
use mql::Code;
use mql::expression::{Expression, Scope, Variables};
use mql::filter::{self, Filter};
use mql::index::Hint;
use mql::sort::{Sort, SortKey};
use mql::update::Update;

use crate::access::catalog;
use crate::access::executor::Executor;
use crate::access::{self, Validator};
use crate::protocol::error::{Error, Result};
use crate::protocol::fields::Fields;
use crate::service::call::Call;

pub(crate) use context_seed::{ContextSeed, new_id};
pub(crate) use delete::DeleteStatement;
pub(crate) use update::{Images, UpdateStatement, Updated};

/// Options that `insert`, `update` and `delete` have in common.
pub(crate) const WRITE_OPTIONS: &[&str] =
    &["ordered", "bypassDocumentValidation", "bypassEmptyTsReplacement"];

/// The most statements of one command.
const BATCH_MAX: usize = 100_000;

/// Refuses a command without statements, or with too many.
pub(crate) fn check_batch(statements: usize) -> Result<()> {
    if (1..=BATCH_MAX).contains(&statements) {
        return Ok(());
    }
    let text = format!("Write batch sizes must be between 1 and {BATCH_MAX}. Got {statements} operations.");
    Err(Error::new(Code::INVALID_LENGTH, text))
}

/// How filters and updates of a statement are read: its collation, and the values of `let` (`c` in an update).
pub(crate) fn settings(call: &Call, fields: Fields<'_>) -> Result<filter::Settings> {
    let collation = match fields.document("collation")? {
        Some(collation) if !collation.is_empty() => Collation::parse(collation)?,
        _ => Collation::simple(),
    };
    let variables = match (fields.document("let")?, fields.document("c")?) {
        (Some(variables), _) | (None, Some(variables)) => constants(call, variables)?,
        (None, None) => Document::new(),
    };
    Ok(filter::Settings { collation, variables: Arc::new(variables), ..filter::Settings::default() })
}

/// Returns the values of `let`: expressions that need no document.
fn constants(call: &Call, variables: DocumentRef<'_>) -> Result<Document> {
    let (nothing, context) = (Document::new(), call.context());
    let mut values = Document::new();
    for (name, expression) in variables.iter() {
        let expression = Expression::parse(expression, &Variables::none())?;
        let value = expression.evaluate(&Scope::root(nothing.view()), &context)?;
        // To expressions, a variable that is undefined is missing.
        values.push(name, value.unwrap_or(Value::Undefined));
    }
    Ok(values)
}

/// Returns the same settings with those of the collection: its collation, unless the request has its own, and its text
/// index.
pub(crate) fn with_defaults(
    mut settings: filter::Settings,
    fields: Fields<'_>,
    collection: Option<&Collection>,
) -> filter::Settings {
    let Some(collection) = collection else { return settings };
    if fields.value("collation").is_none() {
        settings.collation = collection.definition.collation.clone();
    }
    settings.text = collection.indexes().text_rules();
    settings
}

/// Returns how a command that reads `name`, a collection or a view over `on`, compares strings and searches text. A view
/// has one collation, its own: a request cannot use another.
pub(crate) fn language(
    call: &Call,
    fields: Fields<'_>,
    name: &str,
    on: Option<&Collection>,
) -> Result<filter::Settings> {
    let mut settings = with_defaults(settings(call, fields)?, fields, on);
    let named = call.engine.collection(&call.database, name);
    if let Some(view) = named.filter(|named| catalog::view(named).is_some()) {
        let own = &view.definition.collation;
        let asked = fields.document("collation")?.is_some_and(|asked| !asked.is_empty());
        // Compares options: no request can name the order of strings stored before format 9.
        if asked && settings.collation.to_document() != own.to_document() {
            let text = format!("Cannot override a view's default collation: {}.{name}", call.database);
            return Err(Error::new(Code::OPTION_NOT_SUPPORTED_ON_VIEW, text));
        }
        settings.collation = own.clone();
    }
    Ok(settings)
}

/// Reads an update.
pub(crate) fn update(
    call: &Call,
    collection: &Collection,
    fields: Fields<'_>,
    filter: DocumentRef<'_>,
    change: ValueRef<'_>,
    upsert: bool,
) -> Result<UpdateStatement> {
    let settings = update_settings(call, Some(collection), fields)?;
    let bypass = call.fields().is_set("bypassDocumentValidation")?;
    Ok(UpdateStatement {
        update: parse_change(fields, change, &settings)?,
        selection: selection(fields, filter, &settings)?,
        upsert,
        validator: Validator::of(collection, bypass)?,
        context_seed: ContextSeed::of(call),
    })
}

/// Reads the operators of an update alone: `explain` needs no more.
pub(crate) fn parse_update(
    call: &Call,
    collection: Option<&Collection>,
    fields: Fields<'_>,
    change: ValueRef<'_>,
) -> Result<Update> {
    parse_change(fields, change, &update_settings(call, collection, fields)?)
}

fn update_settings(
    call: &Call,
    collection: Option<&Collection>,
    fields: Fields<'_>,
) -> Result<filter::Settings> {
    let mut settings = with_defaults(settings(call, fields)?, fields, collection);
    if let Some(variables) = call.fields().document("let")? {
        Arc::make_mut(&mut settings.variables).fields_mut().extend(constants(call, variables)?);
    }
    Ok(settings)
}

fn parse_change(fields: Fields<'_>, change: ValueRef<'_>, settings: &filter::Settings) -> Result<Update> {
    let array_filters: Vec<DocumentRef<'_>> = match fields.array("arrayFilters")? {
        None => Vec::new(),
        Some(filters) => filters
            .iter()
            .map(|filter| {
                filter.as_document().ok_or_else(|| Error::bad_value("arrayFilters must be documents"))
            })
            .collect::<Result<_>>()?,
    };
    Ok(Update::parse(change, &array_filters, settings)?)
}

/// Checks an update that has no collection to run on.
pub(crate) fn check_update(
    call: &Call,
    fields: Fields<'_>,
    filter: DocumentRef<'_>,
    change: ValueRef<'_>,
) -> Result<()> {
    let settings = settings(call, fields)?;
    selection(fields, filter, &settings)?;
    parse_change(fields, change, &settings).map(drop)
}

/// Reads a delete.
pub(crate) fn delete(
    call: &Call,
    collection: &Collection,
    fields: Fields<'_>,
    filter: DocumentRef<'_>,
) -> Result<DeleteStatement> {
    let mut settings = with_defaults(settings(call, fields)?, fields, Some(collection));
    if let Some(variables) = call.fields().document("let")? {
        settings.variables = Arc::new(constants(call, variables)?);
    }
    Ok(DeleteStatement {
        selection: selection(fields, filter, &settings)?,
        context_seed: ContextSeed::of(call),
    })
}

fn selection(fields: Fields<'_>, filter: DocumentRef<'_>, settings: &filter::Settings) -> Result<Selection> {
    let sort = fields.document("sort")?.filter(|sort| !sort.is_empty());
    Ok(Selection {
        filter: Arc::new(Filter::parse(filter, settings)?),
        sort: sort.map(Sort::parse).transpose()?.map(Arc::new),
        hint: access::hint(fields)?,
        collation: settings.collation.clone(),
    })
}

/// How many attempts a statement makes before it gives up with a conflict.
const ATTEMPTS_MAX: usize = 1_000;

/// Which documents a statement is about.
#[derive(Debug)]
pub(crate) struct Selection {
    pub(crate) filter: Arc<Filter>,
    pub(crate) sort: Option<Arc<Sort>>,
    pub(crate) hint: Option<Hint>,
    pub(crate) collation: Collation,
}

impl Selection {
    /// Returns the one `_id` that can match, if the filter names it.
    fn id(&self) -> Option<Value> {
        find::named_id(&self.filter, &self.collation)
    }

    fn plan(
        &self,
        reading: &Reading<'_>,
        collection: &Arc<Collection>,
        sort: Option<&Sort>,
        limit: Option<u64>,
    ) -> Result<Plan> {
        let (collation, hint) = (&self.collation, self.hint.as_ref());
        Ok(find::plan(
            reading,
            collection,
            &PlanRequest { filter: &self.filter, sort, limit, collation, hint },
        )?)
    }

    /// Returns the first document that matches, in the order of the sort if there is one.
    fn first(
        &self,
        executor: &Executor,
        collection: &Arc<Collection>,
        context_seed: &ContextSeed,
    ) -> Result<Option<LivingDocument>> {
        let sort = self.sort.as_deref();
        blocking_read(executor, collection, |reading| {
            let context = &context_seed.context(reading.now());
            let plan = self.plan(reading, collection, sort, Some(1))?;
            let sorted = plan.sorted;
            let limit = Some(1).filter(|_| sorted);
            let mut scan = executor.scan(plan, collection, &self.filter, limit);
            let Some(sort) = sort.filter(|_| !sorted) else { return Ok(scan.next(reading, context)?) };
            let mut best: Option<(SortKey, LivingDocument)> = None;
            while let Some(found) = scan.next(reading, context)? {
                let meta = search_meta(&self.filter, found.document.view(), context)?;
                let key = sort.key(found.document.view(), &self.collation, meta.as_ref(), context)?;
                if best.as_ref().is_none_or(|(least, _)| sort.compare(&key, least).is_lt()) {
                    best = Some((key, found));
                }
            }
            Ok(best.map(|(_, found)| found))
        })
    }

    /// Returns the target of the next attempt; none if nothing matches.
    fn target(
        &self,
        executor: &Executor,
        collection: &Arc<Collection>,
        context_seed: &ContextSeed,
    ) -> Result<Option<Target>> {
        match self.id() {
            Some(id) => {
                if self.hint.is_some() {
                    // It needs no plan, but a hint that names no index is refused.
                    blocking_read(executor, collection, |reading| {
                        self.plan(reading, collection, None, None)
                    })?;
                }
                executor.index_uses().note_id(collection);
                Ok(Some(Target::Id(id)))
            }
            None => {
                Ok(self.first(executor, collection, context_seed)?.map(|found| Target::Number(found.number)))
            }
        }
    }

    /// Returns the targets of all documents that match, as of one read: a document that changes meanwhile is met once.
    fn all(
        &self,
        executor: &Executor,
        collection: &Arc<Collection>,
        context_seed: &ContextSeed,
    ) -> Result<Vec<Target>> {
        blocking_read(executor, collection, |reading| {
            let context = &context_seed.context(reading.now());
            let plan = self.plan(reading, collection, None, None)?;
            let mut scan = executor.scan(plan, collection, &self.filter, None);
            let mut targets = Vec::new();
            while let Some(found) = scan.next(reading, context)? {
                targets.push(Target::Number(found.number));
            }
            Ok(targets)
        })
    }
}

/// Returns what a filter's search has of a document beside its fields, for `$meta`.
pub(crate) fn search_meta(
    filter: &Filter,
    document: DocumentRef<'_>,
    context: &mql::Context,
) -> Result<Option<Document>> {
    let Some(search) = filter.text() else { return Ok(None) };
    let score = search.score(document, context)?;
    Ok(score.map(|score| Document::new().with("textScore", score)))
}

/// Reads a collection where that may take long, without holding up other connections.
fn blocking_read<T>(
    executor: &Executor,
    collection: &Arc<Collection>,
    work: impl FnOnce(&Reading<'_>) -> Result<T>,
) -> Result<T> {
    tokio::task::block_in_place(|| executor.read(&[collection], work))
}

fn too_many_attempts() -> Error {
    Error::new(Code::WRITE_CONFLICT, "the document kept changing while the statement looked for it")
}

/// Returns a value of an answer that was recorded for a repetition.
fn recorded(answer: &bson::RawDocument, name: &str) -> i64 {
    match answer.get(name) {
        Some(ValueRef::Int32(value)) => value.into(),
        Some(ValueRef::Int64(value)) => value,
        _ => 0,
    }
}

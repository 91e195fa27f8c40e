//! `$lookup`: a join with another collection.
//!
//! An equality of two fields becomes a condition on the other collection, so that an index can serve it. A pipeline with
//! `let` is parsed again for each row with the values as constants, so that an index can serve its comparisons with them
//! too.

use std::sync::Arc;

use bson::{Document, DocumentRef, RawDocument, Value, ValueRef};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::filter::equalities;
use crate::path::FieldPath;
use crate::pipeline::chain::{Each, EachRow, ExecutionContext, Step};
use crate::pipeline::memory::Memory;
use crate::pipeline::row::{Row, document_bytes, value_bytes};
use crate::pipeline::rules::PipelineKind;
use crate::pipeline::running::Running;
use crate::pipeline::settings::{Binding, Bound, Formula, PipelineContext};
use crate::pipeline::source::{Description, Namespace};
use crate::pipeline::values::{text, type_name};
use crate::pipeline::{Pipeline, parse_inner};

use super::join_table::{JoinTable, RequestTime, request_time};
use super::matching::conjuncts;

/// A `$lookup` as parsed.
#[derive(Debug)]
pub(crate) struct Lookup {
    from: Option<Namespace>,
    /// The field of the row and the field of the other collection that must be equal.
    join: Option<(FieldPath, String)>,
    /// The field of the other collection that is compared with a value of the row, if one is.
    field: Option<String>,
    variables: Vec<(String, Formula)>,
    inner: Inner,
    output: FieldPath,
}

/// The pipeline over the other collection.
#[derive(Debug)]
struct Inner {
    stages: Vec<RawDocument>,
    around: PipelineContext,
    /// The pipeline itself, where it is the same for all rows.
    fixed: Option<Arc<Pipeline>>,
    /// A pipeline that finds everything it may find for any row, if there is one.
    whole: Option<Arc<Pipeline>>,
    /// The collections it reads: the named one, or the one behind it if it is a view, and those that the stages read.
    collections: Vec<Namespace>,
    /// The descriptions that it requests besides documents.
    descriptions: Vec<(Namespace, Description)>,
    /// How many of its stages make a view: the join comes after them.
    of_view: usize,
    /// Whether it depends on randomness: then its results differ from row to row.
    random: bool,
    /// The bytes of the stages, which are the cost of parsing them.
    bytes: u64,
}

/// The options of a `$lookup`.
#[derive(Default)]
struct Options<'a> {
    from: Option<Namespace>,
    local: Option<&'a str>,
    foreign: Option<&'a str>,
    output: Option<&'a str>,
    variables: Option<DocumentRef<'a>>,
    pipeline: Option<Vec<RawDocument>>,
}

fn refused(message: impl Into<String>) -> Error {
    Error::failed_to_parse(message)
}

impl<'a> Options<'a> {
    fn read(argument: ValueRef<'a>, around: &PipelineContext) -> Result<Options<'a>> {
        let ValueRef::Document(document) = argument else {
            return Err(refused("the $lookup specification must be an Object"));
        };
        let mut options = Options::default();
        for (name, value) in document.iter() {
            let string = || {
                value.as_str().ok_or_else(|| {
                    let shown = text(value);
                    let kind = type_name(value);
                    refused(format!("$lookup argument '{name}: {shown}' must be a string, is type {kind}"))
                })
            };
            match name {
                "from" => options.from = Some(read_from(value, around)?),
                "localField" => options.local = Some(string()?),
                "foreignField" => options.foreign = Some(string()?),
                "as" => options.output = Some(string()?),
                "let" => {
                    options.variables = Some(value.as_document().ok_or_else(|| {
                        let (shown, kind) = (text(value), type_name(value));
                        refused(format!("$lookup argument 'let: {shown}' must be an object, is type {kind}"))
                    })?);
                }
                "pipeline" => options.pipeline = Some(read_stages("$lookup", value)?),
                _ => return Err(refused(format!("unknown argument to $lookup: {name}"))),
            }
        }
        Ok(options)
    }
}

/// Returns the name of another collection: a string, or database and collection.
fn read_from(value: ValueRef<'_>, around: &PipelineContext) -> Result<Namespace> {
    match value {
        ValueRef::String("") => Err(Error::new(
            crate::Code::INVALID_NAMESPACE,
            "Invalid namespace specified: the collection is empty",
        )),
        ValueRef::String(name) => Ok(around.namespace(name)),
        ValueRef::Document(document) => {
            let part = |name: &str| document.get(name).and_then(ValueRef::as_str);
            match (part("db"), part("coll")) {
                (Some(database), Some(collection)) => {
                    Ok(Namespace { database: database.to_owned(), collection: collection.to_owned() })
                }
                _ => Err(refused(format!(
                    "$lookup argument 'from: {}' must be a string or {{db, coll}}",
                    text(value)
                ))),
            }
        }
        other => {
            let (shown, kind) = (text(other), type_name(other));
            Err(refused(format!("$lookup argument 'from: {shown}' must be a string, is type {kind}")))
        }
    }
}

/// Returns the stages of a pipeline within a stage.
pub(crate) fn read_stages(stage: &str, value: ValueRef<'_>) -> Result<Vec<RawDocument>> {
    let ValueRef::Array(items) = value else {
        let kind = type_name(value);
        return Err(Error::type_mismatch(format!(
            "'pipeline' option of {stage} must be an array, is type {kind}"
        )));
    };
    items
        .iter()
        .map(|item| match item {
            ValueRef::Document(document) => Ok(RawDocument::from_view(document)),
            _ => Err(Error::type_mismatch("Each element of the 'pipeline' array must be an object")),
        })
        .collect()
}

/// Returns the expressions of a `let`, by name.
pub(crate) fn read_variables(
    variables: Option<DocumentRef<'_>>,
    around: &PipelineContext,
) -> Result<Vec<(String, Formula)>> {
    let Some(variables) = variables else { return Ok(Vec::new()) };
    variables
        .iter()
        .map(|(name, value)| {
            crate::expression::check_variable_name(name)?;
            Ok((name.to_owned(), around.formula(value)?))
        })
        .collect()
}

/// Returns the values of a `let` for a row.
pub(crate) fn evaluate_variables(
    variables: &[(String, Formula)],
    row: &Row,
    context: &Context,
) -> Result<Vec<Binding>> {
    let bind =
        |(name, formula): &(String, Formula)| Ok((name.clone(), Bound::To(formula.of_row(row, context)?)));
    variables.iter().map(bind).collect()
}

/// Returns the names of a `let`, for a check of their uses before there are values.
pub(crate) fn without_values(variables: &[(String, Formula)]) -> Vec<Binding> {
    variables.iter().map(|(name, _)| (name.clone(), Bound::Awaited)).collect()
}

impl Lookup {
    pub(crate) fn parse(argument: ValueRef<'_>, around: &PipelineContext) -> Result<Lookup> {
        let options = Options::read(argument, around)?;
        let output = options.output.ok_or_else(|| refused("must specify 'as' field for a $lookup"))?;
        let join = match (options.local, options.foreign) {
            (Some(local), Some(foreign)) => {
                FieldPath::parse_aggregation(foreign)?;
                Some((FieldPath::parse_aggregation(local)?, foreign.to_owned()))
            }
            (None, None) if options.pipeline.is_some() => None,
            (None, None) => {
                return Err(refused(
                    "$lookup requires either 'pipeline' or both 'localField' and 'foreignField' to be specified",
                ));
            }
            _ => {
                return Err(refused(
                    "$lookup requires both or neither of 'localField' and 'foreignField' to be specified",
                ));
            }
        };
        let pipeline = match options.pipeline {
            Some(pipeline) => pipeline,
            None if options.variables.is_some() => {
                return Err(refused("$lookup with a 'let' argument must also specify 'pipeline'"));
            }
            None => Vec::new(),
        };
        let documents = pipeline.first().is_some_and(|stage| stage.get("$documents").is_some());
        if options.from.is_none() && !documents {
            let shown = text(argument);
            return Err(refused(format!("missing 'from' option to $lookup stage specification: {shown}")));
        }
        let variables = read_variables(options.variables, around)?;
        let compared = || compared_field(&pipeline, &variables);
        let field = join.as_ref().map(|(_, foreign)| foreign.clone()).or_else(compared);
        let inner = Inner::parse(pipeline, options.from.as_ref(), &variables, around)?;
        Ok(Lookup {
            from: options.from,
            join,
            field,
            variables,
            inner,
            output: FieldPath::parse_aggregation(output)?,
        })
    }

    pub(crate) fn start(self: &Arc<Self>) -> Box<dyn Step> {
        EachRow::step(LookupStep { lookup: Arc::clone(self), kept: None, joins: JoinStrategy::NotYet })
    }

    /// Returns the outermost name of the field that it writes.
    pub(crate) fn written(&self) -> &str {
        self.output.first()
    }

    /// Adds the descriptions that the pipeline over the other collection requests besides documents.
    pub(crate) fn descriptions(&self, found: &mut Vec<(Namespace, Description)>) {
        found.extend(self.inner.descriptions.iter().cloned());
    }

    /// Adds the collections that it reads.
    pub(crate) fn collections(&self, found: &mut Vec<Namespace>) {
        found.extend(self.from.clone());
        found.extend(self.inner.collections.iter().cloned());
    }
}

impl Inner {
    fn parse(
        stages: Vec<RawDocument>,
        from: Option<&Namespace>,
        variables: &[(String, Formula)],
        around: &PipelineContext,
    ) -> Result<Inner> {
        let (on, view) = around.behind(from);
        let checked = around.inner(on.as_ref(), &without_values(variables))?;
        let fixed = variables.is_empty() && view.is_empty();
        let of_view = view.len();
        let stages: Vec<RawDocument> = view.into_iter().chain(stages).collect();
        let plain = parse_inner(&views(&stages), &checked, PipelineKind::Lookup)?;
        let around = around.inner(on.as_ref(), &[])?;
        let whole = match (&on, fixed, of_view) {
            (Some(_), false, 0) => Some(Arc::new(parse_inner(&[], &around, PipelineKind::Lookup)?)),
            _ => None,
        };
        let collections = on.into_iter().chain(plain.collections()).collect();
        let descriptions = plain.descriptions();
        let bytes = stages.iter().map(|stage| stage.as_bytes().len() as u64).sum();
        let fixed = fixed.then(|| Arc::new(plain));
        let whole = whole.or_else(|| fixed.clone());
        let random = stages.iter().any(|stage| is_random(ValueRef::Document(stage.view())));
        Ok(Inner { stages, around, fixed, whole, collections, descriptions, of_view, random, bytes })
    }

    /// Returns the pipeline for a row.
    fn pipeline(&self, condition: Option<&Document>, values: &[Binding]) -> Result<Pipeline> {
        if let Some(fixed) = &self.fixed {
            return fixed.with_condition(condition);
        }
        let around = self.around.with_values(values);
        let matching =
            condition.map(|condition| RawDocument::from(&Document::new().with("$match", condition.clone())));
        let (of_view, own) = self.stages.split_at(self.of_view);
        let stages: Vec<DocumentRef<'_>> =
            of_view.iter().chain(&matching).chain(own).map(RawDocument::view).collect();
        parse_inner(&stages, &around, PipelineKind::Lookup)
    }
}

/// Returns the field of the other collection that a pipeline compares with a variable:
/// `{$match: {$expr: {$eq: ["$field", "$$variable"]}}}`.
fn compared_field(stages: &[RawDocument], variables: &[(String, Formula)]) -> Option<String> {
    let is_variable = |side: ValueRef<'_>| {
        let name = side.as_str().and_then(|side| side.strip_prefix("$$"));
        name.is_some_and(|name| variables.iter().any(|(known, _)| known == name))
    };
    let filters = stages.iter().map_while(|stage| stage.get("$match")?.as_document());
    filters.flat_map(|filter| conjuncts(&filter.to_document())).find_map(|condition| {
        let compared = equalities(condition.get("$expr")?.view());
        compared.into_iter().find(|(_, other)| is_variable(*other)).map(|(field, _)| field.to_owned())
    })
}

/// Returns `true` if a value contains the name of a stage or operator that depends on randomness. It may be in a literal:
/// taking that for random only costs time.
fn is_random(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Document(fields) => fields
            .iter()
            .any(|(name, value)| matches!(name, "$rand" | "$sample" | "$sampleRate") || is_random(value)),
        ValueRef::Array(items) => items.iter().any(is_random),
        _ => false,
    }
}

/// Returns all stages, borrowed.
pub(crate) fn views(stages: &[RawDocument]) -> Vec<DocumentRef<'_>> {
    stages.iter().map(RawDocument::view).collect()
}

struct LookupStep {
    lookup: Arc<Lookup>,
    /// The results, if they are the same for all rows, and the request's time.
    kept: Option<(RequestTime, Vec<Value>)>,
    /// How rows are joined.
    joins: JoinStrategy,
}

/// How the rows of a `$lookup` are joined with equal documents.
enum JoinStrategy {
    /// No row with a condition that an index on the field could serve has come so far. The first one is joined by a scan:
    /// there may be no other.
    NotYet,
    /// By a scan for each row.
    ByScans,
    /// By a table, once one has been read.
    ByTable(Option<Box<(RequestTime, JoinTable)>>),
}

/// The largest number of bytes kept for the next row.
const KEPT_BYTES_MAX: usize = 16 * 1024 * 1024;

impl LookupStep {
    fn find(&mut self, row: &Row, execution: &mut ExecutionContext<'_>) -> Result<Vec<Value>> {
        let lookup = &self.lookup;
        execution.context.spend(lookup.inner.bytes / 8)?;
        let condition = lookup.join.as_ref().map(|(local, foreign)| equality(row.view(), local, foreign));
        let values = evaluate_variables(&lookup.variables, row, execution.context)?;
        let pipeline = lookup.inner.pipeline(condition.as_ref(), &values)?;
        match self.joined(&pipeline, execution)? {
            Some(found) => Ok(found),
            None => gather("$lookup", pipeline.start(), execution),
        }
    }

    /// Returns the table's documents for a row; none if the row needs a scan.
    fn joined(
        &mut self,
        pipeline: &Pipeline,
        execution: &mut ExecutionContext<'_>,
    ) -> Result<Option<Vec<Value>>> {
        let lookup = Arc::clone(&self.lookup);
        let (Some(field), Some(whole)) = (&lookup.field, &lookup.inner.whole) else { return Ok(None) };
        if !pipeline.only_matches() || !whole.only_matches() {
            return Ok(None);
        }
        let filter = &pipeline.leading.filter;
        let now = request_time(execution.context);
        match &self.joins {
            JoinStrategy::NotYet => {
                let Some(empty) = JoinTable::new(field, whole.around.collation()) else {
                    self.joins = JoinStrategy::ByScans;
                    return Ok(None);
                };
                // A row without a value for the field, or with an array, does not show whether an index serves the others.
                if !empty.serves(filter, whole.around.collation())? {
                    return Ok(None);
                }
                let is_served = match lookup.inner.collections.first() {
                    Some(collection) => execution.source.is_served(collection, filter)?,
                    None => true,
                };
                self.joins = if is_served { JoinStrategy::ByScans } else { JoinStrategy::ByTable(None) };
                return Ok(None);
            }
            JoinStrategy::ByScans => return Ok(None),
            JoinStrategy::ByTable(Some(made)) if made.0 == now => {}
            JoinStrategy::ByTable(_) => {
                self.joins = match table(whole, field, execution)? {
                    Some(table) => JoinStrategy::ByTable(Some(Box::new((now, table)))),
                    None => JoinStrategy::ByScans,
                };
            }
        }
        let JoinStrategy::ByTable(Some(made)) = &self.joins else { return Ok(None) };
        let found = made.1.find(filter, whole.around.collation(), execution.context)?;
        let mut memory = Memory::of("$lookup");
        for value in found.iter().flatten() {
            memory.take(value_bytes(value.view()), execution.context)?;
        }
        Ok(found)
    }

    /// Returns the rows of a pipeline that does not depend on the row, read once per request: documents may expire
    /// between two.
    fn find_or_repeat(&mut self, row: &Row, execution: &mut ExecutionContext<'_>) -> Result<Vec<Value>> {
        let lookup = &self.lookup;
        if lookup.join.is_some() || !lookup.variables.is_empty() || lookup.inner.random {
            return self.find(row, execution);
        }
        let now = request_time(execution.context);
        if let Some((then, found)) = &self.kept
            && *then == now
        {
            execution.context.spend(found.len() as u64)?;
            return Ok(found.clone());
        }
        let found = self.find(row, execution)?;
        let bytes: usize = found.iter().map(|value| value_bytes(value.view())).sum();
        self.kept = (bytes <= KEPT_BYTES_MAX).then(|| (now, found.clone()));
        Ok(found)
    }
}

impl Each for LookupStep {
    fn apply(&mut self, row: Row, execution: &mut ExecutionContext<'_>) -> Result<Option<Row>> {
        let found = self.find_or_repeat(&row, execution)?;
        let mut document = row.body.clone().into_tree();
        self.lookup.output.set(&mut document, Value::Array(found));
        row.with_made(document).map(Some)
    }

    /// Drops the results of this request: the next one may not use them.
    fn rest(&mut self) {
        self.kept = None;
        if let JoinStrategy::ByTable(made) = &mut self.joins {
            *made = None;
        }
    }
}

/// Returns a table of everything that a `$lookup` may join with, by the joined field; none if that is too much to keep, or
/// has no keys.
fn table(inner: &Pipeline, foreign: &str, execution: &mut ExecutionContext<'_>) -> Result<Option<JoinTable>> {
    let Some(mut table) = JoinTable::new(foreign, inner.around.collation()) else { return Ok(None) };
    let mut running = inner.clone().start();
    let mut all = || -> Result<bool> {
        while let Some(row) = running.next(execution.source, execution.context)? {
            if !table.add(row.body, execution.context)? {
                return Ok(false);
            }
        }
        Ok(true)
    };
    let result = all();
    running.close(execution.source);
    Ok(result?.then_some(table))
}

/// Returns all documents of a pipeline.
fn gather(
    stage: &'static str,
    mut running: Running,
    execution: &mut ExecutionContext<'_>,
) -> Result<Vec<Value>> {
    let mut memory = Memory::of(stage);
    let mut found = Vec::new();
    let mut all = || -> Result<()> {
        while let Some(row) = running.next(execution.source, execution.context)? {
            memory.take(document_bytes(row.view()), execution.context)?;
            found.push(Value::Document(row.body.into_tree()));
        }
        Ok(())
    };
    let result = all();
    running.close(execution.source);
    result.map(|()| found)
}

/// Returns the condition that the foreign field equals the row's value; missing is null, and one item of an array is enough.
fn equality(document: DocumentRef<'_>, local: &FieldPath, foreign: &str) -> Document {
    let mut values = Vec::new();
    local.values(document, &mut values);
    let mut values: Vec<Value> = values.into_iter().map(ValueRef::to_value).collect();
    if values.is_empty() {
        values.push(Value::Null);
    }
    among(foreign, values)
}

/// Returns the condition that a field has one of these values. Regular expressions are values here, not patterns.
pub(crate) fn among(field: &str, values: Vec<Value>) -> Document {
    let equal = |value: Value| Document::new().with(field, Document::new().with("$eq", value));
    if values.len() == 1
        && let Some(value) = values.first()
    {
        return equal(value.clone());
    }
    if values.iter().any(|value| matches!(value, Value::Regex(_))) {
        let each: Vec<Value> = values.into_iter().map(|value| Value::Document(equal(value))).collect();
        return Document::new().with("$or", each);
    }
    Document::new().with(field, Document::new().with("$in", values))
}

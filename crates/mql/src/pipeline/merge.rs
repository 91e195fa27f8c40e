//! `$merge`: each row meets its counterpart in another collection.
//!
//! This module decides what happens; the source finds the counterpart and writes, both at once.

use std::sync::Arc;

use bson::{Document, DocumentRef, ObjectId, RawDocument, Value, ValueRef};

use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::path::FieldPath;
use crate::pipeline::chain::{ExecutionContext, Flow, Outbox, Step};
use crate::pipeline::rewrite::Rewrite;
use crate::pipeline::row::Row;
use crate::pipeline::settings::{Bound, Formula, PipelineContext};
use crate::pipeline::source::Namespace;
use crate::pipeline::stages::lookup::{
    evaluate_variables, read_stages, read_variables, views, without_values,
};
use crate::pipeline::values::{text, type_name};

/// A `$merge`, checked.
#[derive(Debug)]
pub struct Merge {
    target: Namespace,
    on: Vec<String>,
    matched: Matched,
    not_matched: NotMatched,
}

/// What happens to a counterpart.
#[derive(Debug)]
enum Matched {
    Replace,
    KeepExisting,
    Merge,
    Fail,
    Pipeline { stages: Vec<RawDocument>, variables: Vec<(String, Formula)>, around: PipelineContext },
}

/// What happens without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NotMatched {
    Insert,
    Discard,
    Fail,
}

/// The write to make.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// Nothing.
    Keep,
    /// A new document.
    Insert(RawDocument),
    /// Replaces the counterpart by this document.
    Replace(RawDocument),
}

impl Merge {
    /// Returns the target collection.
    pub fn target(&self) -> &Namespace {
        &self.target
    }

    /// Returns the fields by which a counterpart is found. There must be a unique index over exactly these (error 51183 if
    /// not).
    pub fn on(&self) -> &[String] {
        &self.on
    }

    /// Returns `true` if it may insert documents.
    pub fn inserts(&self) -> bool {
        self.not_matched == NotMatched::Insert
    }

    /// Returns `true` if it may change counterparts.
    pub fn updates(&self) -> bool {
        !matches!(self.matched, Matched::KeepExisting | Matched::Fail)
    }

    /// Returns the filter that finds the counterpart of a document.
    pub fn counterpart(&self, document: DocumentRef<'_>) -> Result<Document> {
        let mut filter = Document::new();
        for field in &self.on {
            let value = match FieldPath::parse_aggregation(field)?.get_nested(document) {
                None | Some(ValueRef::Null | ValueRef::Undefined) => {
                    let message = format!(
                        "$merge write error: 'on' field '{field}' cannot be missing, null, undefined or an array"
                    );
                    return Err(Error::location(51132, message));
                }
                Some(ValueRef::Array(_)) => {
                    let message = format!("$merge write error: 'on' field '{field}' cannot be an array");
                    return Err(Error::location(51185, message));
                }
                Some(value) => value.to_value(),
            };
            filter.push(field.as_str(), Document::new().with("$eq", value));
        }
        Ok(filter)
    }

    /// Returns the outcome for a document with the counterpart `found`, or without one.
    pub fn decide(
        &self,
        found: Option<DocumentRef<'_>>,
        document: &RawDocument,
        context: &Context,
    ) -> Result<Outcome> {
        let Some(found) = found else {
            return match self.not_matched {
                NotMatched::Insert => Ok(Outcome::Insert(document.clone())),
                NotMatched::Discard => Ok(Outcome::Keep),
                NotMatched::Fail => Err(Error::location(
                    13113,
                    "$merge could not find a matching document in the target collection for at least one \
                     document in the source collection",
                )),
            };
        };
        let after = match &self.matched {
            Matched::KeepExisting => return Ok(Outcome::Keep),
            Matched::Fail => {
                let shown = text(ValueRef::Document(found));
                let message = format!("$merge found a matching document in the target collection: {shown}");
                return Err(Error::new(Code::DUPLICATE_KEY, message));
            }
            Matched::Replace => document.to_document(),
            Matched::Merge => {
                let mut merged = found.to_document();
                for (name, value) in document.view().iter() {
                    merged.insert(name, value.to_value());
                }
                merged
            }
            Matched::Pipeline { stages, variables, around } => {
                let row = Row::from(document.clone());
                let mut values = evaluate_variables(variables, &row, context)?;
                if !values.iter().any(|(name, _)| name == "new") {
                    values.push(("new".to_owned(), Bound::To(Some(Value::Document(document.to_document())))));
                }
                let around = around.with_values(&values);
                Rewrite::parse_at(&views(stages), &around)?.apply(found, context)?
            }
        };
        keep_id(found, after).map(|after| Outcome::Replace(RawDocument::from(&after)))
    }
}

/// Returns the new document with the `_id` of the old one: it never changes, and stays if it is left out.
fn keep_id(found: DocumentRef<'_>, mut after: Document) -> Result<Document> {
    let Some(id) = found.get("_id") else { return Ok(after) };
    match after.get("_id") {
        None => after.fields_mut().insert(0, ("_id".to_owned(), id.to_value())),
        Some(other) if bson::equal(other.view(), id) => {}
        Some(_) => {
            let message = "$merge failed to update the matching document, did you attempt to modify the _id or \
                           the shard key?";
            return Err(Error::new(Code::IMMUTABLE_FIELD, message));
        }
    }
    Ok(after)
}

impl Merge {
    pub(crate) fn parse(argument: ValueRef<'_>, around: &PipelineContext) -> Result<Merge> {
        let document = match argument {
            ValueRef::String(name) => {
                let target = around.namespace(name);
                let not_matched = NotMatched::Insert;
                return Ok(Merge { target, on: vec!["_id".into()], matched: Matched::Merge, not_matched });
            }
            ValueRef::Document(document) => document,
            other => {
                let kind = type_name(other);
                let message = format!("$merge only supports a string or object argument, not {kind}");
                return Err(Error::location(51182, message));
            }
        };
        let known = ["into", "on", "let", "whenMatched", "whenNotMatched"];
        if let Some((name, _)) = document.iter().find(|(name, _)| !known.contains(name)) {
            return Err(Error::location(40415, format!("BSON field '$merge.{name}' is an unknown field.")));
        }
        let into = document.get("into").ok_or_else(|| {
            Error::location(40414, "BSON field '$merge.into' is missing but a required field")
        })?;
        let variables = match document.get("let") {
            None => None,
            Some(ValueRef::Document(variables)) => Some(variables),
            Some(other) => {
                let message = format!(
                    "BSON field '$merge.let' is the wrong type '{}', expected type 'object'",
                    type_name(other)
                );
                return Err(Error::type_mismatch(message));
            }
        };
        let matched = read_matched(document.get("whenMatched"), variables, around)?;
        let not_matched = read_not_matched(document.get("whenNotMatched"))?;
        let never = matches!(matched, Matched::KeepExisting | Matched::Fail);
        if never && not_matched != NotMatched::Insert {
            let shown = |name| document.get(name).and_then(ValueRef::as_str).unwrap_or_default();
            let message = format!(
                "Combination of {{whenMatched: {}, whenNotMatched: {}}} is not supported",
                shown("whenMatched"),
                shown("whenNotMatched")
            );
            return Err(Error::location(51181, message));
        }
        let on = document.get("on").map_or_else(|| Ok(vec!["_id".to_owned()]), read_on)?;
        Ok(Merge { target: read_target(into, around)?, on, matched, not_matched })
    }

    pub(crate) fn start(self: &Arc<Self>) -> Box<dyn Step> {
        Box::new(MergeStep { merge: Arc::clone(self), outbox: Outbox::default() })
    }
}

fn read_target(into: ValueRef<'_>, around: &PipelineContext) -> Result<Namespace> {
    let refused = || {
        let message = format!(
            "$merge 'into' field  must be either a string or an object, but found {}",
            type_name(into)
        );
        Error::location(51178, message)
    };
    match into {
        ValueRef::String(name) if !name.is_empty() => Ok(around.namespace(name)),
        ValueRef::Document(target) => {
            let collection = target.get("coll").and_then(ValueRef::as_str).ok_or_else(refused)?;
            let mut namespace = around.namespace(collection);
            if let Some(database) = target.get("db") {
                database.as_str().ok_or_else(refused)?.clone_into(&mut namespace.database);
            }
            Ok(namespace)
        }
        _ => Err(refused()),
    }
}

fn read_on(on: ValueRef<'_>) -> Result<Vec<String>> {
    let refused = |found: ValueRef<'_>| {
        let kind = type_name(found);
        let message =
            format!("$merge 'on' field must be either a string or an array of strings, but found {kind}");
        Error::location(51186, message)
    };
    let fields = match on {
        ValueRef::String(field) => vec![field.to_owned()],
        ValueRef::Array(items) => items
            .iter()
            .map(|item| item.as_str().map(str::to_owned).ok_or_else(|| refused(item)))
            .collect::<Result<Vec<_>>>()?,
        other => return Err(refused(other)),
    };
    if fields.is_empty() {
        let message = "If explicitly specifying $merge 'on', must include at least one field";
        return Err(Error::location(51187, message));
    }
    for (number, field) in fields.iter().enumerate() {
        FieldPath::parse_aggregation(field)?;
        if fields[..number].contains(field) {
            return Err(Error::location(31465, format!("Found a duplicate field '{field}'")));
        }
    }
    Ok(fields)
}

fn bad_mode(field: &str, value: &str) -> Error {
    Error::bad_value(format!("Enumeration value '{value}' for field '{field}' is not a valid value."))
}

fn read_matched(
    value: Option<ValueRef<'_>>,
    variables: Option<DocumentRef<'_>>,
    around: &PipelineContext,
) -> Result<Matched> {
    let mode = match value {
        None => "merge",
        Some(ValueRef::String(mode)) => mode,
        Some(stages @ ValueRef::Array(_)) => {
            let stages = read_stages("$merge", stages)?;
            let variables = read_variables(variables, around)?;
            let mut names = without_values(&variables);
            names.push(("new".to_owned(), Bound::Awaited));
            Rewrite::parse_at(&views(&stages), &around.with_values(&names))?;
            return Ok(Matched::Pipeline { stages, variables, around: around.clone() });
        }
        Some(other) => {
            let message = format!(
                "$merge 'whenMatched' field must be either a string or an array, but found {}",
                type_name(other)
            );
            return Err(Error::location(51191, message));
        }
    };
    if variables.is_some() {
        let message = format!("Cannot use 'let' variables with 'whenMatched: {mode}' mode");
        return Err(Error::location(51199, message));
    }
    Ok(match mode {
        "replace" => Matched::Replace,
        "keepExisting" => Matched::KeepExisting,
        "merge" => Matched::Merge,
        "fail" => Matched::Fail,
        other => return Err(bad_mode("$merge.whenMatched", other)),
    })
}

fn read_not_matched(value: Option<ValueRef<'_>>) -> Result<NotMatched> {
    match value {
        None | Some(ValueRef::String("insert")) => Ok(NotMatched::Insert),
        Some(ValueRef::String("discard")) => Ok(NotMatched::Discard),
        Some(ValueRef::String("fail")) => Ok(NotMatched::Fail),
        Some(ValueRef::String(other)) => Err(bad_mode("$merge.whenNotMatched", other)),
        Some(other) => {
            let message = format!(
                "BSON field '$merge.whenNotMatched' is the wrong type '{}', expected type 'string'",
                type_name(other)
            );
            Err(Error::type_mismatch(message))
        }
    }
}

struct MergeStep {
    merge: Arc<Merge>,
    outbox: Outbox,
}

impl Step for MergeStep {
    fn push(&mut self, row: Row, execution: &mut ExecutionContext<'_>) -> Result<()> {
        execution.context.spend(1)?;
        let mut row = row;
        if self.merge.on.iter().any(|field| field == "_id") && row.view().get("_id").is_none() {
            let mut document = row.body.clone().into_tree();
            document.fields_mut().insert(0, ("_id".to_owned(), Value::ObjectId(new_id(execution.context))));
            row = row.with_body(document);
        }
        execution.source.merge(&self.merge, row.body.into_raw(), execution.context)
    }

    fn end(&mut self, _world: &mut ExecutionContext<'_>) -> Result<()> {
        self.outbox.end();
        Ok(())
    }

    fn pop(&mut self, _world: &mut ExecutionContext<'_>) -> Result<Flow> {
        Ok(self.outbox.pop())
    }
}

/// Returns an id for a document without one, after the usual pattern: seconds, then random bits.
pub fn new_id(context: &Context) -> ObjectId {
    let mut bytes = [0; 12];
    bytes[..4].copy_from_slice(&context.timestamp.seconds.to_be_bytes());
    bytes[4..].copy_from_slice(&context.random().to_be_bytes());
    ObjectId(bytes)
}

//! What a collection asks of documents before they are stored: its validator, a filter that they must match, and its shard key,
//! which they must have and keep.

use std::sync::Arc;

use bson::{Document, RawDocument, Value, ValueRef};
use engine::collection::Collection;
use mql::filter::{Filter, Settings, explain_schema};
use mql::path::FieldPath;
use mql::{Code, Context};
use parking_lot::Mutex;

use crate::error::{Error, Result};

const FAILED: &str = "Document failed validation";

/// What is asked of documents before they are stored.
#[derive(Debug, Clone, Default)]
pub(crate) struct Validator {
    filter: Option<Arc<Filter>>,
    /// The filter as it was written.
    rules: Document,
    /// A document that did not match before may go on not matching.
    moderate: bool,
    shard_key: Option<FieldPath>,
    /// The document that was refused last, for the explanation.
    refused: Arc<Mutex<Option<RawDocument>>>,
}

impl Validator {
    /// What a collection asks. A request may go past the validator, and offences may be there only to be logged.
    pub(crate) fn of(collection: &Collection, bypass: bool) -> Result<Validator> {
        let options = collection.definition.options.view();
        let text = |name| options.get(name).and_then(ValueRef::as_str);
        let off =
            bypass || text("validationLevel") == Some("off") || text("validationAction") == Some("warn");
        let rules = options
            .get("validator")
            .and_then(ValueRef::as_document)
            .filter(|rules| !off && !rules.is_empty());
        let filter = rules.map(|rules| Filter::parse(rules, &Settings::default())).transpose()?;
        Ok(Validator {
            filter: filter.map(Arc::new),
            rules: rules.map(bson::DocumentRef::to_document).unwrap_or_default(),
            moderate: text("validationLevel") == Some("moderate"),
            shard_key: collection.definition.shard_key.as_deref().map(FieldPath::parse).transpose()?,
            refused: Arc::default(),
        })
    }

    /// Asks a document that is new.
    pub(crate) fn check_insert(&self, document: &RawDocument, context: &Context) -> mql::Result<()> {
        if let Some(path) = &self.shard_key
            && path.get(document.view()).is_none()
        {
            let text = format!("document does not contain shard key for pattern {{ {path}: \"hashed\" }}");
            return Err(mql::Error::new(Code(61), text));
        }
        self.check_rules(document, context)
    }

    /// Asks a document that is changed.
    pub(crate) fn check_update(
        &self,
        before: &RawDocument,
        after: &RawDocument,
        context: &Context,
    ) -> mql::Result<()> {
        if let Some(path) = &self.shard_key {
            let same = match (path.get(before.view()), path.get(after.view())) {
                (Some(before), Some(after)) => bson::equal(before, after),
                (before, after) => before.is_none() && after.is_none(),
            };
            if !same {
                let text = format!(
                    "Performing an update on the path '{path}' would modify the immutable field '{path}'"
                );
                return Err(mql::Error::new(Code::IMMUTABLE_FIELD, text));
            }
        }
        match &self.filter {
            Some(filter) if self.moderate && !filter.matches(before.view(), context)? => Ok(()),
            _ => self.check_rules(after, context),
        }
    }

    fn check_rules(&self, document: &RawDocument, context: &Context) -> mql::Result<()> {
        match &self.filter {
            Some(filter) if !filter.matches(document.view(), context)? => {
                *self.refused.lock() = Some(document.clone());
                Err(mql::Error::new(Code::DOCUMENT_VALIDATION_FAILURE, FAILED))
            }
            _ => Ok(()),
        }
    }

    /// The rules of a schema that the document did not keep which was refused last; none if the validator is no schema alone.
    fn broken_rules(&self) -> Option<Vec<Value>> {
        let schema = self.rules.get("$jsonSchema").and_then(Value::as_document);
        let (schema, refused) = (schema.filter(|_| self.rules.len() == 1)?, self.refused.lock().take()?);
        let broken = explain_schema(schema.view(), refused.view(), &Context::at(0)).ok()?;
        Some(broken.into_iter().map(Value::Document).collect())
    }

    /// A refusal with what clients look at besides its message: which document, and what it does not meet.
    pub(crate) fn explained(&self, error: Error, id: Option<ValueRef<'_>>) -> Error {
        if error.code != Code::DOCUMENT_VALIDATION_FAILURE {
            return error;
        }
        let first = self.rules.iter().next().map_or("", |(name, _)| name);
        let operator = if first.starts_with('$') { first } else { "$and" };
        let details = match self.broken_rules() {
            Some(broken) => {
                Document::new().with("operatorName", operator).with("schemaRulesNotSatisfied", broken)
            }
            None => Document::new()
                .with("operatorName", operator)
                .with("specifiedAs", self.rules.clone())
                .with("reason", "the document does not match"),
        };
        let mut info = Document::new();
        if let Some(id) = id {
            info.push("failingDocumentId", id.to_value());
        }
        error.with("errInfo", info.with("details", details))
    }
}

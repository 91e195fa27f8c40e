//! What a collection asks of documents before they are stored: its validator, a filter that they must match, and its shard key,
//! which they must have and keep.

use std::sync::Arc;

use bson::{Document, RawDocument, ValueRef};
use engine::collection::Collection;
use mql::filter::{Filter, Settings, explain_filter};
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

    /// What the document does not meet which was refused last.
    fn details(&self) -> Option<Document> {
        let refused = self.refused.lock().take()?;
        explain_filter(self.rules.view(), refused.view(), &Context::at(0)).ok()
    }

    /// A refusal with what clients look at besides its message: which document, and what it does not meet.
    pub(crate) fn explained(&self, error: Error, id: Option<ValueRef<'_>>) -> Error {
        if error.code != Code::DOCUMENT_VALIDATION_FAILURE {
            return error;
        }
        let details = self.details().unwrap_or_else(|| {
            let rules = self.rules.clone();
            Document::new().with("specifiedAs", rules).with("reason", "the document does not match")
        });
        let mut info = Document::new();
        if let Some(id) = id {
            info.push("failingDocumentId", id.to_value());
        }
        error.with("errInfo", info.with("details", details))
    }
}

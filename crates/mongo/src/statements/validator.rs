//! The validator of a collection: a filter that what is written must match.

use std::sync::Arc;

use bson::{Document, DocumentRef, RawDocument, ValueRef};
use mql::filter::{Filter, Settings};
use mql::{Code, Context};

use crate::error::Result;

/// The message of a refusal; the front end adds `errInfo`.
pub(crate) const FAILED: &str = "Document failed validation";

/// What is asked of documents before they are stored.
#[derive(Debug, Clone, Default)]
pub(crate) struct Validator {
    filter: Option<Arc<Filter>>,
    /// A document that did not match before may go on not matching.
    moderate: bool,
}

impl Validator {
    /// The validator among the options of a collection; none if a request goes past it, or if offences are only to be logged.
    pub(crate) fn of(options: DocumentRef<'_>, bypass: bool) -> Result<Validator> {
        let text = |name| options.get(name).and_then(ValueRef::as_str);
        let off =
            bypass || text("validationLevel") == Some("off") || text("validationAction") == Some("warn");
        let rules = options
            .get("validator")
            .and_then(ValueRef::as_document)
            .filter(|rules| !off && !rules.is_empty());
        let Some(rules) = rules else { return Ok(Validator::default()) };
        let filter = Filter::parse(rules, &Settings::default())?;
        Ok(Validator {
            filter: Some(Arc::new(filter)),
            moderate: text("validationLevel") == Some("moderate"),
        })
    }

    /// Asks a document that is new.
    pub(crate) fn check_insert(&self, document: &RawDocument, context: &Context) -> mql::Result<()> {
        match &self.filter {
            Some(filter) if !filter.matches(document.view(), context)? => Err(refused()),
            _ => Ok(()),
        }
    }

    /// Asks a document that is changed.
    pub(crate) fn check_update(
        &self,
        before: &RawDocument,
        after: &RawDocument,
        context: &Context,
    ) -> mql::Result<()> {
        match &self.filter {
            Some(filter) if self.moderate && !filter.matches(before.view(), context)? => Ok(()),
            _ => self.check_insert(after, context),
        }
    }
}

fn refused() -> mql::Error {
    mql::Error::new(Code::DOCUMENT_VALIDATION_FAILURE, FAILED)
}

/// What a refusal tells besides its message.
pub(crate) fn details(document: &RawDocument) -> Document {
    let mut details = Document::new();
    if let Some(id) = document.get("_id") {
        details.push("failingDocumentId", id.to_value());
    }
    details
}

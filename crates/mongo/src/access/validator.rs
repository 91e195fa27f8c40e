//! What a collection requires of documents before they are stored: its validator, a filter that they must match, and its shard
//! key, which they must have and keep.

use std::sync::Arc;

use bson::{Document, RawDocument, ValueRef};
use engine::collection::Collection;
use mql::filter::{Filter, Settings, explain_filter};
use mql::path::FieldPath;
use mql::{Code, Context};
use parking_lot::Mutex;
use storage::Time;

use crate::protocol::error::{Error, Result};
use crate::protocol::write_errors::DetailBudget;

const FAILED: &str = "Document failed validation";

/// The requirements of a collection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Validator {
    filter: Option<Arc<Filter>>,
    /// The filter as it was written.
    rules: Document,
    /// A document that did not match before need not match now.
    moderate: bool,
    shard_key: Option<FieldPath>,
    /// The document that was refused last and when, for the explanation.
    refused: Arc<Mutex<Option<(RawDocument, Time)>>>,
}

impl Validator {
    /// Returns the requirements of a collection. A request may bypass the validator, and violations may only be logged.
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

    /// Checks a new document.
    pub(crate) fn check_insert(&self, document: &RawDocument, context: &Context) -> mql::Result<()> {
        if let Some(path) = &self.shard_key
            && path.get(document.view()).is_none()
        {
            let text = format!("document does not contain shard key for pattern {{ {path}: \"hashed\" }}");
            return Err(mql::Error::new(Code(61), text));
        }
        self.check_rules(document, context)
    }

    /// Checks a changed document.
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
                let now = Time::from_millis(context.now_millis.unsigned_abs());
                *self.refused.lock() = Some((document.clone(), now));
                Err(mql::Error::new(Code::DOCUMENT_VALIDATION_FAILURE, FAILED))
            }
            _ => Ok(()),
        }
    }

    /// Returns the time at which a document was refused last: an explanation evaluates the rules at the time of the check.
    pub(crate) fn refused_at(&self) -> Option<Time> {
        self.refused.lock().as_ref().map(|(_, now)| *now)
    }

    /// Adds the details to a refusal that clients read besides its message: the document, and the rules that it breaks. The rules are
    /// determined within the context of the command, and only within the command's budget for details.
    pub(crate) fn explained(&self, error: Error, budget: &DetailBudget, context: &Context) -> Error {
        if error.code != Code::DOCUMENT_VALIDATION_FAILURE {
            return error;
        }
        let Some((refused, _)) = self.refused.lock().take() else { return error };
        let mut info = Document::new();
        if let Some(id) = refused.get("_id") {
            info.push("failingDocumentId", id.to_value());
        }
        if budget.is_spent() {
            return error.with("errInfo", info);
        }
        match explain_filter(self.rules.view(), refused.view(), context) {
            Ok(details) => {
                budget.spend(&details);
                error.with("errInfo", info.with("details", details))
            }
            Err(stopped) => stopped.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use bson::{Timestamp, Value};

    use super::*;

    fn validator(rules: &str) -> Validator {
        let Value::Document(rules) = bson::parse_extended_json(rules).unwrap() else { panic!("{rules}") };
        let filter = Filter::parse(rules.view(), &Settings::default()).unwrap();
        Validator { filter: Some(Arc::new(filter)), rules, ..Validator::default() }
    }

    fn refusal(validator: &Validator, pad: &str, budget: &DetailBudget, context: &Context) -> Error {
        let document = Document::new().with("_id", 7).with("a", pad);
        let document = RawDocument::from_document(&document);
        let error = validator.check_insert(&document, &Context::at(0)).unwrap_err();
        validator.explained(error.into(), budget, context)
    }

    fn details(error: &Error) -> Option<&Value> {
        error.extra.get("errInfo").and_then(Value::as_document)?.get("details")
    }

    #[test]
    fn refusals_are_explained_as_long_as_there_is_room_to_tell_them() {
        let validator = validator(r#"{"$jsonSchema": {"properties": {"a": {"bsonType": "int"}}}}"#);
        let (budget, context) = (DetailBudget::default(), Context::at(0));
        let pad = "x".repeat(3_000);
        let explained: Vec<bool> =
            (0..1_000).map(|_| details(&refusal(&validator, &pad, &budget, &context)).is_some()).collect();
        let count = explained.iter().filter(|explained| **explained).count();
        assert!((300..400).contains(&count), "a megabyte of explanations, not {count}");
        assert!(explained[..count].iter().all(|explained| *explained));
        let last = refusal(&validator, &pad, &budget, &context);
        let id = last.extra.get("errInfo").and_then(Value::as_document).unwrap().get("failingDocumentId");
        assert_eq!(id, Some(&Value::Int32(7)), "which document it was is told of all");
    }

    #[test]
    fn a_large_value_is_left_out_of_an_explanation() {
        for (rules, reason) in [
            (r#"{"$jsonSchema": {"maxProperties": 1}}"#, "specified number of properties"),
            (r#"{"a": {"$type": "int"}}"#, "type did not match"),
        ] {
            let validator = validator(rules);
            for (bytes, shown) in [(100, true), (100_000, false)] {
                let pad = "x".repeat(bytes);
                let error = refusal(&validator, &pad, &DetailBudget::default(), &Context::at(0));
                let text = format!("{:?}", details(&error));
                assert!(text.contains(reason) && text.contains("consideredType"), "{text}");
                assert_eq!(text.contains("consideredValue"), shown, "{rules}: {bytes}");
            }
        }
    }

    #[test]
    fn an_explanation_ends_with_its_command() {
        let properties: Vec<String> =
            (0..2_000).map(|number| format!(r#""p{number}": {{"pattern": "^a"}}"#)).collect();
        let rules = format!(
            r#"{{"$jsonSchema": {{"properties": {{"a": {{"bsonType": "int"}}, {}}}}}}}"#,
            properties.join(", ")
        );
        let cancelled = Arc::new(AtomicBool::new(true));
        let context = Context::new(0, Timestamp { seconds: 0, increment: 0 }, 1, cancelled);
        let error = refusal(&validator(&rules), "x", &DetailBudget::default(), &context);
        assert_eq!(error.code, Code::MAX_TIME_MS_EXPIRED);
    }
}

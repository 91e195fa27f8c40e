//! `$changeStream`: the options of a client for the feed of changes. The feed itself is in the engine.

use bson::{Document, Timestamp, ValueRef};

use crate::error::{Error, Result};
use crate::pipeline::values::type_name;

/// A `$changeStream`, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangeStream {
    /// Which documents go with the changes.
    pub full_document: FullDocument,
    /// Which documents before the change go with it.
    pub full_document_before_change: FullDocument,
    /// The token of the change after which to begin.
    pub resume_after: Option<Document>,
    /// The same, and the change may have ended the stream.
    pub start_after: Option<Document>,
    /// The time at which to begin.
    pub start_at: Option<Timestamp>,
    /// Whether all databases are watched.
    pub all_changes_for_cluster: bool,
    /// Whether changes of definitions are included.
    pub show_expanded_events: bool,
}

/// Whether a document goes with a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FullDocument {
    /// Where the change itself has it.
    Default,
    /// The current version.
    UpdateLookup,
    /// The version after or before the change, if it exists.
    WhenAvailable,
    /// The same, or an error if it does not exist.
    Required,
}

impl ChangeStream {
    pub(crate) fn parse(argument: ValueRef<'_>) -> Result<ChangeStream> {
        let ValueRef::Document(document) = argument else {
            let message = format!(
                "the $changeStream stage must be specified as an object, got {}",
                type_name(argument)
            );
            return Err(Error::location(50808, message));
        };
        let mut stream = ChangeStream {
            full_document: FullDocument::Default,
            full_document_before_change: FullDocument::Default,
            resume_after: None,
            start_after: None,
            start_at: None,
            all_changes_for_cluster: false,
            show_expanded_events: false,
        };
        for (name, value) in document.iter() {
            stream.option(name, value)?;
        }
        let starts = [stream.resume_after.is_some(), stream.start_after.is_some(), stream.start_at.is_some()];
        if starts.into_iter().filter(|given| *given).count() > 1 {
            let message = "Only one type of resume option is allowed, but multiple were found.";
            return Err(Error::location(40674, message));
        }
        Ok(stream)
    }

    fn option(&mut self, name: &str, value: ValueRef<'_>) -> Result<()> {
        let wrong = |expected: &str| {
            let found = type_name(value);
            let message = format!(
                "BSON field '$changeStream.{name}' is the wrong type '{found}', expected type '{expected}'"
            );
            Error::type_mismatch(message)
        };
        let flag = || value.as_bool().ok_or_else(|| wrong("bool"));
        let token = || value.as_document().map(bson::DocumentRef::to_document).ok_or_else(|| wrong("object"));
        let mode = || {
            let mode = value.as_str().ok_or_else(|| wrong("string"))?;
            FullDocument::parse(name, mode)
        };
        match (name, value) {
            ("fullDocument", _) => self.full_document = mode()?,
            ("fullDocumentBeforeChange", ValueRef::String("off")) => {}
            ("fullDocumentBeforeChange", _) => self.full_document_before_change = mode()?,
            ("resumeAfter", _) => self.resume_after = Some(token()?),
            ("startAfter", _) => self.start_after = Some(token()?),
            ("startAtOperationTime", ValueRef::Timestamp(time)) => self.start_at = Some(time),
            ("startAtOperationTime", _) => return Err(wrong("timestamp")),
            ("allChangesForCluster", _) => self.all_changes_for_cluster = flag()?,
            ("showExpandedEvents", _) => self.show_expanded_events = flag()?,
            _ => {
                let message = format!("BSON field '$changeStream.{name}' is an unknown field.");
                return Err(Error::location(40415, message));
            }
        }
        Ok(())
    }
}

impl FullDocument {
    fn parse(field: &str, mode: &str) -> Result<FullDocument> {
        Ok(match mode {
            "default" => FullDocument::Default,
            "updateLookup" if field == "fullDocument" => FullDocument::UpdateLookup,
            "whenAvailable" => FullDocument::WhenAvailable,
            "required" => FullDocument::Required,
            other => {
                let message = format!(
                    "Enumeration value '{other}' for field '$changeStream.{field}' is not a valid value."
                );
                return Err(Error::bad_value(message));
            }
        })
    }
}

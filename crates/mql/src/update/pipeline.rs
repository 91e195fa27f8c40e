//! A pipeline as an update: the result of its stages replaces the document.

use bson::{ArrayRef, DocumentRef, RawDocument, Writer};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::filter;
use crate::pipeline::{Rewrite, Settings};
use crate::update::document::{check_depth, check_id, check_same_id};

/// The stages of an update.
#[derive(Debug)]
pub(super) struct Stages(Rewrite);

impl Stages {
    pub(super) fn parse(stages: ArrayRef<'_>, settings: &filter::Settings) -> Result<Stages> {
        let not_a_stage = || Error::type_mismatch("Each element of the 'pipeline' array must be an object");
        let stages: Vec<DocumentRef<'_>> =
            stages.iter().map(|stage| stage.as_document().ok_or_else(not_a_stage)).collect::<Result<_>>()?;
        // No stage that an update may have reads anything but the document.
        let settings = Settings {
            collation: settings.collation.clone(),
            variables: settings.variables.clone(),
            patterns: settings.patterns.clone(),
            ..Settings::default()
        };
        Rewrite::parse(&stages, &settings).map(Stages)
    }

    /// Returns the result, with the `_id` of the document first, also if the stages dropped it.
    pub(super) fn apply(&self, document: &RawDocument, context: &Context) -> Result<RawDocument> {
        let after = self.0.apply(document.view(), context)?;
        let own_id = after.view().get("_id");
        if own_id.is_some() {
            check_same_id(document.view(), after.view())?;
        }
        let mut writer = Writer::default();
        if let Some(id) = own_id.or_else(|| document.get("_id")) {
            check_id(id)?;
            writer.field("_id", id);
        }
        for (name, value) in after.view().iter().filter(|(name, _)| *name != "_id") {
            check_depth(value)?;
            writer.field(name, value);
        }
        Ok(writer.finish())
    }
}

//! A document that replaces another. Only the `_id` stays.

use bson::{DocumentRef, RawDocument, Writer};

use crate::context::Context;
use crate::error::Result;
use crate::update::document::{check_depth, check_id, check_same_id, dollar_prefixed, is_zero_timestamp};

/// The replacing document.
#[derive(Debug)]
pub(super) struct Replacement(RawDocument);

impl Replacement {
    pub(super) fn parse(replacement: DocumentRef<'_>) -> Result<Replacement> {
        for (name, value) in replacement.iter() {
            if name.starts_with('$') {
                return Err(dollar_prefixed(name));
            }
            check_depth(value)?;
        }
        Ok(Replacement(RawDocument::from_view(replacement)))
    }

    /// Returns the replacement with the `_id` of the document, which comes first, and with the time in place of a timestamp
    /// of zero, unless those are kept.
    pub(super) fn apply(&self, document: &RawDocument, context: &Context) -> Result<RawDocument> {
        let Replacement(replacement) = self;
        let own_id = replacement.get("_id");
        if own_id.is_some() {
            check_same_id(document.view(), replacement.view())?;
        }
        let mut writer = Writer::default();
        if let Some(id) = own_id.or_else(|| document.get("_id")) {
            check_id(id)?;
            writer.field("_id", id);
        }
        for (name, value) in replacement.view().iter().filter(|(name, _)| *name != "_id") {
            match context.time_for_empty() {
                Some(now) if is_zero_timestamp(value) => writer.field(name, now),
                _ => writer.field(name, value),
            }
        }
        Ok(writer.finish())
    }
}

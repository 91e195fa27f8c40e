//! Every document that a command's filter finds, one after the other, within one request.

use std::sync::Arc;

use bson::{Document, DocumentRef, RawDocument};
use mql::filter::Filter;

use crate::access;
use crate::call::Call;
use crate::catalog;
use crate::error::Result;
use crate::fields::Fields;
use crate::statements;

/// Shows every document of the command's collection, or view, that meets the filter in the field `name`.
pub(crate) fn each(
    call: &Call,
    fields: Fields<'_>,
    name: &str,
    mut visit: impl FnMut(DocumentRef<'_>) -> Result<()>,
) -> Result<()> {
    let (room, context) = (&call.room, call.context());
    let (on, stages) = catalog::resolve(&call.engine, &call.database, call.collection()?)?;
    let Some(collection) = call.engine.collection(&call.database, &on) else { return Ok(()) };
    let settings = statements::with_defaults(statements::settings(call, fields)?, fields, Some(&collection));
    let none = Document::new();
    let filter = fields.document(name)?.unwrap_or(none.view());
    if !stages.is_empty() {
        let wanted = RawDocument::from_document(&Document::new().with("$match", filter.to_document()));
        let stages: Vec<RawDocument> = stages.into_iter().chain([wanted]).collect();
        let mut answers = crate::commands::aggregate::build(call, Some(&on), &stages, &settings, None)?;
        return answers.each(room, &context, |document| visit(document.view()));
    }
    let filter = Arc::new(Filter::parse(filter, &settings)?);
    let hint = access::hint(fields)?;
    room.read(&[&collection], |reading| {
        let plan =
            access::choose(reading, &collection, &filter, None, None, &settings.collation, hint.as_ref())?;
        let mut walk = plan.into_walk(room, &collection, &filter, None);
        while let Some(found) = walk.next(reading, &context)? {
            visit(found.document.view())?;
        }
        Ok(())
    })
}

//! All documents that match a command's filter, one after the other, within one request; or their number.

use std::sync::Arc;

use bson::{Document, DocumentRef, RawDocument};
use engine::find::{self, PlanRequest};
use mql::filter::Filter;

use crate::access;
use crate::access::catalog;
use crate::protocol::error::Result;
use crate::protocol::fields::Fields;
use crate::service::call::Call;
use crate::statements::{self, pipelines};

/// What the caller wants of the documents that are found.
enum Wanted<'w> {
    Each(&'w mut dyn FnMut(DocumentRef<'_>) -> Result<()>),
    Number(&'w mut u64),
}

impl Wanted<'_> {
    fn take(&mut self, document: DocumentRef<'_>) -> Result<()> {
        match self {
            Wanted::Each(visit) => visit(document),
            Wanted::Number(number) => {
                **number += 1;
                Ok(())
            }
        }
    }
}

/// Shows every document of the command's collection, or view, that meets the filter in the field `name`.
pub(crate) fn each(
    call: &Call,
    fields: Fields<'_>,
    name: &str,
    mut visit: impl FnMut(DocumentRef<'_>) -> Result<()>,
) -> Result<()> {
    search(call, fields, name, Wanted::Each(&mut visit))
}

/// Returns how many documents of the command's collection, or view, meet the filter in the field `name`.
pub(crate) fn count(call: &Call, fields: Fields<'_>, name: &str) -> Result<u64> {
    let mut number = 0;
    search(call, fields, name, Wanted::Number(&mut number))?;
    Ok(number)
}

fn search(call: &Call, fields: Fields<'_>, name: &str, mut wanted: Wanted<'_>) -> Result<()> {
    let (executor, mut context) = (&call.executor, call.context());
    let (on, stages) = catalog::resolve(&call.engine, &call.database, call.collection()?)?;
    let Some(collection) = call.engine.collection(&call.database, &on) else { return Ok(()) };
    let settings = statements::language(call, fields, call.collection()?, Some(&collection))?;
    let none = Document::new();
    let filter = fields.document(name)?.unwrap_or(none.view());
    if !stages.is_empty() {
        let condition = RawDocument::from_document(&Document::new().with("$match", filter.to_document()));
        let stages: Vec<RawDocument> = stages.into_iter().chain([condition]).collect();
        let mut pipeline_cursor = pipelines::build(call, Some(&on), &stages, &settings, None)?;
        return pipeline_cursor.each(executor, &mut context, |document, _| wanted.take(document.view()));
    }
    let filter = Arc::new(Filter::parse(filter, &settings)?);
    let hint = access::hint(fields)?;
    executor.read(&[&collection], |reading| {
        let collation = &settings.collation;
        let request =
            PlanRequest { filter: &filter, sort: None, limit: None, collation, hint: hint.as_ref() };
        let plan = find::plan(reading, &collection, &request)?;
        // A transaction relies on each document that it was shown, so it has to read them.
        let covered = plan.covered && !executor.is_transaction();
        let mut scan = executor.scan(plan, &collection, &filter, None);
        if let (Wanted::Number(number), true) = (&mut wanted, covered) {
            **number = scan.count_entries(reading, &context)?;
            return Ok(());
        }
        while let Some(found) = scan.next(reading, &context)? {
            wanted.take(found.document.view())?;
        }
        Ok(())
    })
}

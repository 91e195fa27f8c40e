//! `findAndModify`.

use std::sync::Arc;

use bson::{Document, RawDocument, Value};
use mql::Code;
use mql::filter::Filter;
use mql::pipeline::RequestedMeta;
use mql::projection::{Beside, Projection};

use crate::access::catalog;
use crate::protocol::error::{Error, Result};
use crate::protocol::reply::Reply;
use crate::service::call::Call;
use crate::statements::{self, Images};

const KNOWN: &[&str] = &[
    "findAndModify",
    "findandmodify",
    "query",
    "sort",
    "remove",
    "update",
    "new",
    "fields",
    "upsert",
    "bypassDocumentValidation",
    "bypassEmptyTsReplacement",
    "collation",
    "hint",
    "arrayFilters",
    "let",
];

/// Fields that version 1 of the API does not have.
pub(super) const OUTSIDE_API: &[&str] = &[
    "collectionUUID",
    "encryptionInformation",
    "originalCollation",
    "originalQuery",
    "runtimeConstants",
    "sampleId",
];

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let fields = call.fields();
    fields.only(KNOWN)?;
    let (remove, upsert, new) = (fields.is_set("remove")?, fields.is_set("upsert")?, fields.is_set("new")?);
    let update = fields.value("update");
    let refused = match (remove, update.is_some()) {
        (true, true) => Some("Cannot specify both an update and remove=true"),
        (false, false) => Some("Either an update or remove=true must be specified"),
        (true, false) if upsert => Some("Cannot specify both upsert=true and remove=true"),
        (true, false) if new => {
            Some("Cannot specify both new=true and remove=true; 'remove' always returns the deleted document")
        }
        _ => None,
    };
    if let Some(text) = refused {
        return Err(Error::new(Code::FAILED_TO_PARSE, text));
    }
    catalog::refuse_system(&call.database, call.collection()?)?;
    let shown = Shown::parse(call)?;
    let run =
        async || if remove { delete(call, &shown).await } else { change(call, &shown, new, upsert).await };
    match run().await {
        // The collection was dropped between the look and the write.
        Err(error) if error.code == Code::NAMESPACE_NOT_FOUND && !call.executor.is_transaction() => {
            run().await
        }
        outcome => outcome,
    }
}

async fn delete(call: &Call, shown: &Shown) -> Result<Reply> {
    let fields = call.fields();
    let none = Document::new();
    let filter = fields.document("query")?.unwrap_or(none.view());
    let Some(collection) = call.engine.collection(&call.database, call.collection()?) else {
        return Ok(reply(Document::new().with("n", 0), None));
    };
    catalog::refuse_view(&collection)?;
    let statement = Arc::new(statements::delete(call, &collection, fields, filter)?);
    shown.asked.check(&statement.selection.filter)?;
    let deleted = statement.one(&call.executor, &collection, call.receipt(0)).await?;
    call.service.statistics.documents_deleted.add(deleted.count);
    let last = Document::new().with("n", deleted.count as i32);
    Ok(reply(last, shown.of(call, deleted.before, &statement.selection.filter)?))
}

async fn change(call: &Call, shown: &Shown, new: bool, upsert: bool) -> Result<Reply> {
    let fields = call.fields();
    let none = Document::new();
    let filter = fields.document("query")?.unwrap_or(none.view());
    let update = fields.required("update", fields.value("update"))?;
    let name = call.collection()?;
    let existing = if upsert {
        Some(catalog::for_write(&call.executor, &call.database, name)?)
    } else {
        call.engine.collection(&call.database, name)
    };
    let Some(collection) = existing else {
        return Ok(reply(Document::new().with("n", 0).with("updatedExisting", false), None));
    };
    catalog::refuse_view(&collection)?;
    let statement = Arc::new(statements::update(call, &collection, fields, filter, update, upsert)?);
    shown.asked.check(&statement.selection.filter)?;
    let updated = statement.one(&call.executor, &collection, call.receipt(0), Images::Recorded).await?;
    let statistics = &call.service.statistics;
    statistics.documents_updated.add(updated.modified);
    statistics.documents_inserted.add(u64::from(updated.upserted.is_some()));
    let touched = updated.matched + u64::from(updated.upserted.is_some());
    let mut last = Document::new().with("n", touched as i32).with("updatedExisting", updated.matched > 0);
    if let Some(id) = updated.upserted {
        last.push("upserted", id);
    }
    let image = if new { updated.after } else { updated.before };
    Ok(reply(last, shown.of(call, image, &statement.selection.filter)?))
}

/// The projection of the document. It is read before anything is written, so that a wrong one changes nothing.
struct Shown {
    projection: Option<Projection>,
    asked: RequestedMeta,
}

impl Shown {
    fn parse(call: &Call) -> Result<Shown> {
        let fields = call.fields();
        let projection = fields.document("fields")?;
        let asked = RequestedMeta::of(projection);
        if asked.sort_key {
            return Err(Error::bad_value("Cannot use a $meta sortKey projection in findAndModify commands."));
        }
        let settings = statements::settings(call, fields)?;
        let projection = projection.map(|projection| Projection::parse(projection, &settings)).transpose()?;
        Ok(Shown { projection, asked })
    }

    fn of(&self, call: &Call, document: Option<RawDocument>, filter: &Filter) -> Result<Option<Value>> {
        let Some(document) = document else { return Ok(None) };
        let Some(projection) = &self.projection else {
            return Ok(Some(Value::Document(document.to_document())));
        };
        let context = call.context();
        let meta = statements::search_meta(filter, document.view(), &context)?;
        let beside = Beside { filter: Some(filter), meta: meta.as_ref() };
        Ok(Some(Value::Document(projection.apply(document.view(), beside, &context)?)))
    }
}

/// `value` must be present even if there is none: one driver requires it.
fn reply(last: Document, value: Option<Value>) -> Reply {
    Document::new().with("lastErrorObject", last).with("value", value.unwrap_or(Value::Null)).into()
}

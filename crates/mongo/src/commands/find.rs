//! `find`.

use std::sync::Arc;

use bson::{Document, RawDocument, ValueRef};
use engine::collection::Collection;
use engine::find::AccessPath;
use mql::filter::Filter;
use mql::pipeline::{Find, Pipeline, Settings};
use mql::projection::Projection;

use crate::access::catalog;
use crate::access::{self, PipelineCursor};
use crate::protocol::error::{Error, Result};
use crate::protocol::fields::{Fields, is_generic};
use crate::protocol::reply::Reply;
use crate::service::call::Call;
use crate::statements;
use crate::statements::cursor_reply::{self, FIRST_BATCH, Opening};
use crate::statements::pipelines;

const KNOWN: &[&str] = &[
    "find",
    "filter",
    "projection",
    "sort",
    "hint",
    "skip",
    "limit",
    "batchSize",
    "singleBatch",
    "max",
    "min",
    "returnKey",
    "showRecordId",
    "tailable",
    "awaitData",
    "noCursorTimeout",
    "allowPartialResults",
    "oplogReplay",
    "collation",
    "allowDiskUse",
    "let",
];

/// Fields that version 1 of the API does not have.
pub(super) const OUTSIDE_API: &[&str] = &[
    "allowSpeculativeMajorityRead",
    "awaitData",
    "max",
    "min",
    "noCursorTimeout",
    "oplogReplay",
    "readOnce",
    "returnKey",
    "showRecordId",
    "tailable",
];

/// Options that would change the result and are not supported.
const NOT_SUPPORTED: &[&str] = &["max", "min"];
const NOT_SUPPORTED_IF_SET: &[&str] = &["returnKey", "showRecordId", "tailable", "awaitData"];

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let fields = call.fields();
    let namespace = call.namespace()?;
    if let Some(id) = plain_id(fields).filter(|_| !call.executor.is_transaction())
        && let Some(collection) = plain_collection(call)?
    {
        let document = by_id(call, &collection, id)?;
        return Ok(cursor_reply::whole(call, &namespace, document.as_slice()));
    }
    let pipeline_cursor = pipeline_cursor(call, fields)?;
    let batch_size = fields.count("batchSize")?.map(|size| usize::try_from(size).unwrap_or(usize::MAX));
    let opening = Opening {
        namespace: &namespace,
        batch_size,
        single_batch: fields.is_set("singleBatch")?,
        keep: fields.is_set("noCursorTimeout")?,
    };
    cursor_reply::open(call, pipeline_cursor, &opening)
}

/// Fields that a `find` may have beside an `_id` and still want nothing but that document.
const PLAIN: &[&str] = &["find", "filter", "limit", "singleBatch", "batchSize"];

/// Returns the `_id` if the command asks for nothing else, as drivers' `findOne` by `_id` does. No pipeline is needed for
/// it. Errors in the command are reported by the code that reads all of it.
fn plain_id(fields: Fields<'_>) -> Option<ValueRef<'_>> {
    let mut conditions = fields.document("filter").ok()??.iter();
    let (Some(("_id", id)), None) = (conditions.next(), conditions.next()) else { return None };
    let is_scalar = matches!(
        id,
        ValueRef::String(_)
            | ValueRef::ObjectId(_)
            | ValueRef::Int32(_)
            | ValueRef::Int64(_)
            | ValueRef::Binary(_)
    );
    let is_all = fields.document.iter().all(|(name, _)| PLAIN.contains(&name) || is_generic(name));
    let is_right = fields.count("limit").is_ok() && fields.is_set("singleBatch").is_ok();
    // With a first batch of zero documents, the document would have to wait in a cursor.
    let is_shown = fields.count("batchSize").is_ok_and(|size| size != Some(0));
    (is_scalar && is_all && is_right && is_shown).then_some(id)
}

/// Returns the collection that the command names, if it exists and is no view.
fn plain_collection(call: &Call) -> Result<Option<Arc<Collection>>> {
    let collection = catalog::find(&call.engine, &call.database, call.collection()?)?;
    Ok(collection.filter(|collection| catalog::view(collection).is_none()))
}

fn by_id(call: &Call, collection: &Arc<Collection>, id: ValueRef<'_>) -> Result<Option<RawDocument>> {
    let executor = &call.executor;
    executor.meter().note_path(collection, &AccessPath::Id(id.to_value()));
    executor.index_uses().note_id(collection);
    let found = executor.read(&[collection], |reading| Ok(reading.by_id(collection, id)?))?;
    Ok(found.map(|found| found.document))
}

/// Returns the answer of a `find` that has not begun; also what `explain` asks for.
pub(super) fn pipeline_cursor(call: &Call, fields: Fields<'_>) -> Result<PipelineCursor> {
    fields.only(KNOWN)?;
    fields.boolean("allowDiskUse")?;
    refuse(fields)?;
    let name = call.collection()?;
    let (on, stages) = catalog::resolve(&call.engine, &call.database, name)?;
    let collection = call.engine.collection(&call.database, &on);
    let settings = statements::language(call, fields, name, collection.as_deref())?;
    let none = Document::new();
    let filter = fields.document("filter")?.unwrap_or(none.view());
    let (skip, limit) = (fields.count("skip")?, fields.count("limit")?.filter(|limit| *limit > 0));
    let projection = fields.document("projection")?.filter(|projection| !projection.is_empty());
    let sort = fields.document("sort")?.filter(|sort| !sort.is_empty());
    let find = Find { filter, sort, skip: skip.unwrap_or(0), limit, projection };
    catalog::check_expansion(&call.engine, &call.database, &stages)?;
    let view: Vec<_> = stages.iter().map(RawDocument::view).collect();
    let parse = |settings: &Settings| Pipeline::find(&view, &find, settings);
    let pipeline_cursor =
        pipelines::ready(call, Some(&on), &settings, access::hint(fields)?, parse)?.limited(limit);
    // A sort keeps in memory only as many documents as are shown.
    let shown = limit.map(|limit| limit.saturating_add(find.skip));
    let keeps_little = sort.is_none() || shown.is_some_and(|shown| shown <= FIRST_BATCH as u64);
    let pipeline_cursor =
        if stages.is_empty() && keeps_little { pipeline_cursor.scanning() } else { pipeline_cursor };
    let Some(projection) = projection else { return Ok(pipeline_cursor) };
    // What `a.$` shows is decided by the filter.
    let filter = Arc::new(Filter::parse(filter, &settings)?);
    Ok(pipeline_cursor.projected(Projection::parse(projection, &settings)?, filter))
}

fn refuse(fields: Fields<'_>) -> Result<()> {
    for name in NOT_SUPPORTED {
        if fields.value(name).is_some() {
            return Err(Error::not_supported(format!("the option '{name}' of find")));
        }
    }
    for name in NOT_SUPPORTED_IF_SET {
        if fields.is_set(name)? {
            return Err(Error::not_supported(format!("the option '{name}' of find")));
        }
    }
    Ok(())
}

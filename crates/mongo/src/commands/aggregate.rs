//! `aggregate`.

use bson::RawDocument;
use mql::Code;

use crate::access::catalog;
use crate::access::{self, PipelineCursor};
use crate::change_stream;
use crate::protocol::error::{Error, Result};
use crate::protocol::fields::Fields;
use crate::protocol::reply::Reply;
use crate::protocol::verbosity::Verbosity;
use crate::service::call::Call;
use crate::statements;
use crate::statements::cursor_reply::{self, Opening};
use crate::statements::pipelines::{build, collection, parse};

const KNOWN: &[&str] = &[
    "aggregate",
    "pipeline",
    "cursor",
    "explain",
    "allowDiskUse",
    "collation",
    "hint",
    "let",
    "bypassDocumentValidation",
];

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let fields = call.fields();
    fields.only(KNOWN)?;
    fields.boolean("allowDiskUse")?;
    if fields.is_set("explain")? {
        return super::explain::explain(call, Verbosity::Planner);
    }
    let cursor = fields.document("cursor")?.ok_or_else(|| {
        let text = "The 'cursor' option is required, except for aggregate with the explain argument";
        Error::new(Code::FAILED_TO_PARSE, text)
    })?;
    let batch_size = Fields::new("aggregate.cursor", cursor).count("batchSize")?;
    let batch_size = batch_size.map(|size| usize::try_from(size).unwrap_or(usize::MAX));
    if let Some(stages) = call.documents("pipeline")?.filter(|stages| change_stream::is_change_stream(stages))
    {
        return follow(call, &stages, batch_size);
    }
    let pipeline_cursor = pipeline_cursor(call, fields)?;
    let namespace = namespace(call)?;
    let opening = Opening { namespace: &namespace, batch_size, single_batch: false, keep: false };
    cursor_reply::open(call, pipeline_cursor, &opening)
}

/// Opens a change stream.
fn follow(call: &Call, stages: &[RawDocument], batch_size: Option<usize>) -> Result<Reply> {
    if call.executor.is_transaction() {
        let text = "$changeStream cannot be part of a transaction";
        return Err(Error::new(Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION, text));
    }
    let (name, language) = (collection(call)?, statements::settings(call, call.fields())?);
    let pipeline = parse(call, name, stages, &language)?;
    let stream = call
        .blocking(|| change_stream::open(&call.executor, call.fields(), &call.database, name, &pipeline))?;
    let namespace = namespace(call)?;
    let opening = Opening { namespace: &namespace, batch_size, single_batch: false, keep: false };
    cursor_reply::follow(call, stream, &opening)
}

/// Returns the name of the cursor's collection, as replies give it.
fn namespace(call: &Call) -> Result<String> {
    Ok(match collection(call)? {
        Some(name) => format!("{}.{name}", call.database),
        None => format!("{}.$cmd.aggregate", call.database),
    })
}

/// Returns the answer of an `aggregate` that has not begun; also what `explain` asks for.
pub(super) fn pipeline_cursor(call: &Call, fields: Fields<'_>) -> Result<PipelineCursor> {
    let pipeline = call.documents("pipeline")?;
    let pipeline = fields.required("pipeline", pipeline)?;
    let name = collection(call)?;
    let (on, stages) = match name {
        Some(name) => {
            let (on, mut stages) = catalog::resolve(&call.engine, &call.database, name)?;
            stages.extend(pipeline);
            (Some(on), stages)
        }
        None => (None, pipeline),
    };
    let handle = on.as_ref().and_then(|name| call.engine.collection(&call.database, name));
    let language = match name {
        Some(name) => statements::language(call, fields, name, handle.as_deref())?,
        None => statements::settings(call, fields)?,
    };
    build(call, on.as_deref(), &stages, &language, access::hint(fields)?)
}

//! `find`.

use std::sync::Arc;

use bson::{Document, RawDocument};
use mql::filter::Filter;
use mql::pipeline::{Find, Pipeline, Settings};
use mql::projection::Projection;

use crate::access::{self, Answers};
use crate::call::Call;
use crate::catalog;
use crate::cursor_reply::{self, Opening};
use crate::error::{Error, Result};
use crate::fields::Fields;
use crate::reply::Reply;
use crate::statements;

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

/// Options that would change what is found, and that are not there.
const NOT_SUPPORTED: &[&str] = &["max", "min"];
const NOT_SUPPORTED_IF_SET: &[&str] = &["returnKey", "showRecordId", "tailable", "awaitData"];

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let fields = call.fields();
    let namespace = call.namespace()?;
    let answers = answers(call, fields)?;
    let batch_size = fields.count("batchSize")?.map(|size| usize::try_from(size).unwrap_or(usize::MAX));
    let opening = Opening {
        namespace: &namespace,
        batch_size,
        single_batch: fields.is_set("singleBatch")?,
        keep: fields.is_set("noCursorTimeout")?,
    };
    cursor_reply::open(call, answers, &opening)
}

/// The answer of a `find` that has not begun; also what `explain` asks for.
pub(super) fn answers(call: &Call, fields: Fields<'_>) -> Result<Answers> {
    fields.only(KNOWN)?;
    refuse(fields)?;
    let name = call.collection()?;
    let (on, stages) = catalog::resolve(&call.engine, &call.database, name)?;
    let collection = call.engine.collection(&call.database, &on);
    let settings =
        statements::with_defaults(statements::settings(call, fields)?, fields, collection.as_deref());
    let none = Document::new();
    let filter = fields.document("filter")?.unwrap_or(none.view());
    let (skip, limit) = (fields.count("skip")?, fields.count("limit")?.filter(|limit| *limit > 0));
    let projection = fields.document("projection")?.filter(|projection| !projection.is_empty());
    let sort = fields.document("sort")?.filter(|sort| !sort.is_empty());
    let find = Find { filter, sort, skip: skip.unwrap_or(0), limit };
    catalog::check_expansion(&call.engine, &call.database, &stages)?;
    let view: Vec<_> = stages.iter().map(RawDocument::view).collect();
    let parse = |settings: &Settings| Pipeline::find(&view, &find, settings);
    let answers =
        super::aggregate::ready(call, Some(&on), &settings, access::hint(fields)?, parse)?.limited(limit);
    let answers = if stages.is_empty() && sort.is_none() { answers.walking() } else { answers };
    let Some(projection) = projection else { return Ok(answers) };
    // What `a.$` shows is decided by the filter.
    let filter = Arc::new(Filter::parse(filter, &settings)?);
    Ok(answers.projected(Projection::parse(projection, &settings)?, filter))
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

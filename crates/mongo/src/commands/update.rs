//! `update`.

use std::sync::Arc;

use bson::{Document, RawDocument, Value};
use mql::Code;

use crate::access::catalog;
use crate::protocol::error::{Error, Result};
use crate::protocol::fields::Fields;
use crate::protocol::reply::Reply;
use crate::protocol::write_errors::{WriteErrors, is_fatal, is_throttled};
use crate::service::call::Call;
use crate::statements::{self, Images, UpdateStatement, Updated, WRITE_OPTIONS, check_batch};

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let fields = call.fields();
    fields.only_these_and(&["update", "updates", "let"], WRITE_OPTIONS)?;
    let name = call.collection()?.to_owned();
    let ordered = fields.boolean("ordered")?.unwrap_or(true);
    let updates = call.documents("updates")?;
    let updates = fields.required("updates", updates)?;
    check_batch(updates.len())?;
    let executor = call.executor.clone();
    let (mut matched, mut modified) = (0, 0);
    let (mut upserted, mut errors) = (Vec::new(), WriteErrors::default());
    for (position, update) in updates.iter().enumerate() {
        match one(call, (&call.database, &name), update, position).await {
            Ok(done) => {
                matched += done.matched;
                modified += done.modified;
                if let Some(id) = done.upserted {
                    matched += 1;
                    upserted.push(Value::Document(
                        Document::new().with("index", position as i32).with("_id", id),
                    ));
                }
            }
            Err(error) if is_fatal(&error, executor.is_transaction()) => return Err(error),
            Err(error) if is_throttled(&error, position, &errors) => return Err(error),
            Err(error) => {
                errors.push(position, error);
                if ordered || executor.is_transaction() {
                    break;
                }
            }
        }
    }
    let mut reply = Document::new().with("n", matched as i32).with("nModified", modified as i32);
    if !upserted.is_empty() {
        reply.push("upserted", Value::Array(upserted));
    }
    if !errors.is_empty() {
        call.abort_transaction();
    }
    errors.add_to(&mut reply);
    Ok(reply.into())
}

/// Runs one statement on the collection of that database and name.
pub(super) async fn one(
    call: &Call,
    target: (&str, &str),
    update: &RawDocument,
    position: usize,
) -> Result<Updated> {
    catalog::refuse_system(target.0, target.1)?;
    let done = match attempt(call, target, update, position).await {
        // The collection was dropped between the look and the write.
        Err(error) if error.code == Code::NAMESPACE_NOT_FOUND && !call.executor.is_transaction() => {
            attempt(call, target, update, position).await?
        }
        outcome => outcome?,
    };
    let statistics = &call.service.statistics;
    statistics.documents_updated.add(done.modified);
    statistics.documents_inserted.add(u64::from(done.upserted.is_some()));
    Ok(done)
}

async fn attempt(
    call: &Call,
    (database, name): (&str, &str),
    update: &RawDocument,
    position: usize,
) -> Result<Updated> {
    let fields = Fields::new("update.updates", update.view());
    fields.only(&[
        "q",
        "u",
        "c",
        "multi",
        "upsert",
        "collation",
        "arrayFilters",
        "hint",
        "sort",
        "upsertSupplied",
    ])?;
    let multi = fields.is_set("multi")?;
    let upsert = fields.is_set("upsert")?;
    let filter = fields.required("q", fields.document("q")?)?;
    let change = fields.required("u", fields.document.get("u"))?;
    let executor = call.executor.clone();
    let collection = if upsert {
        catalog::for_write(&call.executor, database, name)?
    } else {
        match call.engine.collection(database, name) {
            Some(collection) => collection,
            // A wrong statement is refused whether or not there is something to change.
            None => {
                return statements::check_update(call, fields, filter, change).map(|()| Updated::default());
            }
        }
    };
    catalog::refuse_view(&collection)?;
    let statement = statements::update(call, &collection, fields, filter, change, upsert)?;
    if multi {
        if statement.update.is_replacement() {
            return Err(Error::new(
                Code::FAILED_TO_PARSE,
                "multi update is not supported for replacement-style update",
            ));
        }
        if fields.value("sort").is_some() {
            return Err(Error::new(Code::FAILED_TO_PARSE, "Cannot specify sort with multi=true"));
        }
    }
    let statement = Arc::new(statement);
    run_statement(call, &executor, &collection, &statement, multi, position).await
}

async fn run_statement(
    call: &Call,
    executor: &crate::access::executor::Executor,
    collection: &Arc<engine::Collection>,
    statement: &Arc<UpdateStatement>,
    multi: bool,
    position: usize,
) -> Result<Updated> {
    if multi {
        return statement.all(executor, collection).await;
    }
    let receipt = call.receipt(position as i32);
    statement.one(executor, collection, receipt, Images::NotRecorded).await
}

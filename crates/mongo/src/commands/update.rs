//! `update`.

use std::sync::Arc;

use bson::{Document, RawDocument, Value};

use crate::call::Call;
use crate::catalog;
use crate::error::{Error, Result};
use crate::fields::Fields;
use crate::reply::Reply;
use crate::statements::{self, Images, UpdateStatement, Updated, check_batch};
use crate::write_errors::{WriteErrors, is_fatal};

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let fields = call.fields();
    let name = call.collection()?.to_owned();
    let ordered = fields.boolean("ordered")?.unwrap_or(true);
    let updates = call.documents("updates")?;
    let updates = fields.required("updates", updates)?;
    check_batch(updates.len())?;
    let room = call.room.clone();
    let (mut matched, mut modified) = (0, 0);
    let (mut upserted, mut errors) = (Vec::new(), WriteErrors::default());
    for (position, update) in updates.iter().enumerate() {
        match one(call, &name, update, position).await {
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
            Err(error) if is_fatal(&error, room.is_transaction()) => return Err(error),
            Err(error) => {
                errors.push(position, &error);
                if ordered {
                    break;
                }
            }
        }
    }
    let mut reply = Document::new().with("n", matched as i32).with("nModified", modified as i32);
    if !upserted.is_empty() {
        reply.push("upserted", Value::Array(upserted));
    }
    errors.add_to(&mut reply);
    Ok(reply.into())
}

async fn one(call: &Call, name: &str, update: &RawDocument, position: usize) -> Result<Updated> {
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
    let room = call.room.clone();
    let collection = if upsert {
        catalog::for_write(&call.engine, &call.database, name)?
    } else {
        match call.engine.collection(&call.database, name) {
            Some(collection) => collection,
            None => return Ok(Updated::default()),
        }
    };
    catalog::refuse_view(&collection)?;
    let statement = statements::update(call, &collection, fields, filter, change, upsert)?;
    if multi {
        if statement.update.is_replacement() {
            return Err(Error::new(
                mql::Code::FAILED_TO_PARSE,
                "multi update is not supported for replacement-style update",
            ));
        }
        if fields.value("sort").is_some() {
            return Err(Error::new(mql::Code::FAILED_TO_PARSE, "Cannot specify sort with multi=true"));
        }
    }
    let statement = Arc::new(statement);
    run_statement(call, &room, &collection, &statement, multi, position).await
}

async fn run_statement(
    call: &Call,
    room: &crate::room::Room,
    collection: &Arc<engine::Collection>,
    statement: &Arc<UpdateStatement>,
    multi: bool,
    position: usize,
) -> Result<Updated> {
    if multi {
        return statement.all(room, collection).await;
    }
    let receipt = call.receipt(position as i32);
    statement.one(room, collection, receipt, Images::NotRecorded).await
}

//! `delete`.

use std::sync::Arc;

use bson::{Document, RawDocument};

use crate::access::catalog;
use crate::protocol::error::{Error, Result};
use crate::protocol::fields::Fields;
use crate::protocol::reply::Reply;
use crate::protocol::write_errors::{WriteErrors, is_fatal, is_throttled};
use crate::service::call::Call;
use crate::statements::{self, WRITE_OPTIONS, check_batch};

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let fields = call.fields();
    fields.only_these_and(&["delete", "deletes", "let"], WRITE_OPTIONS)?;
    let name = call.collection()?.to_owned();
    let ordered = fields.boolean("ordered")?.unwrap_or(true);
    let deletes = call.documents("deletes")?;
    let deletes = fields.required("deletes", deletes)?;
    check_batch(deletes.len())?;
    let in_transaction = call.executor.is_transaction();
    let (mut count, mut errors) = (0, WriteErrors::default());
    for (position, delete) in deletes.iter().enumerate() {
        match one(call, (&call.database, &name), delete, position).await {
            Ok(gone) => count += gone,
            Err(error) if is_fatal(&error, in_transaction) => return Err(error),
            Err(error) if is_throttled(&error, position, &errors) => return Err(error),
            Err(error) => {
                errors.push(position, error);
                if ordered || in_transaction {
                    break;
                }
            }
        }
    }
    let mut reply = Document::new().with("n", count as i32);
    if !errors.is_empty() {
        call.abort_transaction();
    }
    errors.add_to(&mut reply);
    Ok(reply.into())
}

/// Runs one statement on the collection of that database and name.
pub(super) async fn one(
    call: &Call,
    (database, name): (&str, &str),
    delete: &RawDocument,
    position: usize,
) -> Result<u64> {
    catalog::refuse_system(database, name)?;
    let fields = Fields::new("delete.deletes", delete.view());
    fields.only(&["q", "limit", "collation", "hint", "let"])?;
    let filter = fields.required("q", fields.document("q")?)?;
    let all = match fields.required("limit", fields.integer("limit")?)? {
        0 => true,
        1 => false,
        limit => {
            let text = format!("The limit field in delete objects must be 0 or 1. Got {limit}");
            return Err(Error::new(mql::Code::FAILED_TO_PARSE, text));
        }
    };
    let executor = call.executor.clone();
    let Some(collection) = call.engine.collection(database, name) else { return Ok(0) };
    catalog::refuse_view(&collection)?;
    let statement = Arc::new(statements::delete(call, &collection, fields, filter)?);
    let outcome = if all {
        statement.all(&executor, &collection).await
    } else {
        statement
            .one(&executor, &collection, call.receipt(position as i32))
            .await
            .map(|deleted| deleted.count)
    };
    match outcome {
        // The collection was dropped between the look and the write: nothing is there to delete.
        Err(error) if error.code == mql::Code::NAMESPACE_NOT_FOUND => Ok(0),
        outcome => {
            let count = outcome?;
            call.service.statistics.documents_deleted.add(count);
            Ok(count)
        }
    }
}

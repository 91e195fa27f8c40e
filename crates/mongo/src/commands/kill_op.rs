//! `killOp`: stops a running command.

use bson::Document;

use crate::protocol::cancellation::CancelReason;
use crate::protocol::error::Result;
use crate::protocol::reply::Reply;
use crate::service::call::Call;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let fields = call.fields();
    let number = fields.required("op", fields.integer("op")?)?;
    if let Some(operation) = call.service.operations.get(number) {
        operation.cancellation.cancel(CancelReason::Killed);
    }
    Ok(Document::new().with("info", "attempting to kill op").into())
}

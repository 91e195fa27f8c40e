//! `killOp`: stops a running command.

use bson::Document;

use crate::protocol::cancellation::CancelReason;
use crate::protocol::error::Result;
use crate::protocol::reply::Reply;
use crate::service::call::Call;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let fields = call.fields();
    let number = fields.required("op", fields.integer("op")?)?;
    call.service.operations.stop(|operation| i64::from(operation.number) == number, CancelReason::Killed);
    Ok(Document::new().with("info", "attempting to kill op").into())
}

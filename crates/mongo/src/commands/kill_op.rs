//! `killOp`: stops a command that runs.

use bson::Document;

use crate::call::Call;
use crate::error::Result;
use crate::operations::Stop;
use crate::reply::Reply;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let fields = call.fields();
    let number = fields.required("op", fields.integer("op")?)?;
    call.service.operations.stop(|operation| i64::from(operation.number) == number, Stop::Killed);
    Ok(Document::new().with("info", "attempting to kill op").into())
}

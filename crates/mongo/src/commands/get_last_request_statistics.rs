//! `getLastRequestStatistics`: the charge of the previous command of this connection. One of Cosmos DB's own commands.

use bson::Document;
use mql::Code;

use crate::protocol::error::{Error, Result};
use crate::protocol::reply::Reply;
use crate::service::call::Call;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let last = call.connection.client.lock().last_request.clone();
    let last = last.ok_or_else(|| {
        Error::new(
            Code::OPERATION_FAILED,
            "this connection has run no command whose statistics could be told",
        )
    })?;
    let answer = Document::new()
        .with("_t", "GetRequestStatisticsResponse")
        .with("CommandName", last.command)
        .with("RequestCharge", last.charge.units())
        .with("RequestDurationInMilliSeconds", i64::try_from(last.duration.as_millis()).unwrap_or(i64::MAX));
    Ok(answer.into())
}

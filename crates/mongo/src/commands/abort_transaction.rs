//! `abortTransaction`.

use mql::Code;

use crate::access::permit::unless_stopped;
use crate::protocol::error::{Error, Result};
use crate::protocol::reply::Reply;
use crate::service::call::Call;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let (session, number) = call.transaction().ok_or_else(outside)?;
    let opened = call.service.transactions.abort(session, number, &call.cancellation)?;
    // It is aborted, and a statement that works in it has been stopped. When that has ended, the writes go.
    if let Ok(_turn) = unless_stopped(opened.turns.lock(), &call.cancellation).await {
        drop(opened.take());
    }
    Ok(Reply::ok())
}

/// Returns the error for the end of a transaction that has not begun.
pub(super) fn outside() -> Error {
    Error::new(
        Code::INVALID_OPTIONS,
        "a transaction is ended within a session, with 'txnNumber' and 'autocommit: false'",
    )
}

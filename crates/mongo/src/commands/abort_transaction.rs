//! `abortTransaction`.

use mql::Code;

use crate::protocol::error::{Error, Result};
use crate::protocol::reply::Reply;
use crate::service::call::Call;

#[expect(clippy::unused_async, reason = "all commands have one shape")]
pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let (session, number) = call.transaction().ok_or_else(outside)?;
    call.service.transactions.abort(session, number)?;
    Ok(Reply::ok())
}

/// Returns the error for the end of a transaction that has not begun.
pub(super) fn outside() -> Error {
    Error::new(
        Code::INVALID_OPTIONS,
        "a transaction is ended within a session, with 'txnNumber' and 'autocommit: false'",
    )
}

//! `commitTransaction`.

use engine::collection::Receipt;
use mql::Code;

use crate::access::permit::unless_stopped;
use crate::protocol::error::{Error, Result, TRANSIENT_TRANSACTION};
use crate::protocol::reply::Reply;
use crate::service::call::Call;
use crate::session::transactions::{Commit, none};

use super::abort_transaction::outside;

/// The statement number of the commit within its transaction: no client uses it.
const COMMIT: i32 = -1;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let (session, number) = call.transaction().ok_or_else(outside)?;
    let transactions = &call.service.transactions;
    let receipt = Receipt { session: session.to_bytes(), number, statement: COMMIT };
    let Some(turns) = transactions.turns(session, number) else {
        // An earlier process, or a session that was ended since, may have committed it.
        return if call.engine.is_recorded(&receipt)? { Ok(Reply::ok()) } else { Err(none(number)) };
    };
    // Until its turn comes, the transaction is open: the background step and `abortTransaction` can end it.
    let _turn = unless_stopped(turns.lock(), &call.cancellation).await?;
    let found = match transactions.commit(session, number) {
        // The command that committed it may have been stopped before it noted that: the receipt came with the commit.
        Err(_) if call.engine.is_recorded(&receipt)? => return Ok(Reply::ok()),
        found => found?,
    };
    let Commit::Open(opened) = found else { return Ok(Reply::ok()) };
    let Some(workspace) = opened.take() else { return Ok(Reply::ok()) };
    let made = opened.collections.commit();
    match call.engine.commit(workspace, Some(receipt)).await {
        Ok(position) => {
            call.executor.meter().committed(position);
            call.service.transactions.committed(session, number);
            Ok(Reply::ok())
        }
        Err(error) => {
            made.release();
            Err(commit_error(error))
        }
    }
}

fn commit_error(error: engine::Error) -> Error {
    match error {
        engine::Error::Conflict { .. } => {
            let text = "Write conflict during the commit of the transaction: a document has changed or expired since it began.";
            Error::new(Code::WRITE_CONFLICT, text).with_label(TRANSIENT_TRANSACTION)
        }
        error => error.into(),
    }
}

//! `commitTransaction`.

use engine::collection::Receipt;
use mql::Code;

use crate::call::Call;
use crate::error::{Error, Result, TRANSIENT_TRANSACTION};
use crate::reply::Reply;
use crate::transactions::{Commit, none};

use super::abort_transaction::outside;

/// The number of the commit among the statements of its transaction: one that no client uses.
const COMMIT: i32 = -1;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let (session, number) = call.transaction().ok_or_else(outside)?;
    let transactions = &call.service.transactions;
    let receipt = Receipt { session: session.to_bytes(), number, statement: COMMIT };
    let Some(lock) = transactions.commit_lock(session, number) else {
        // An earlier process, or a session that was ended since, may have committed it.
        return if call.engine.is_recorded(&receipt)? { Ok(Reply::ok()) } else { Err(none(number)) };
    };
    let _commit = lock.lock().await;
    let Commit::Open(opened) = transactions.commit(session, number)? else { return Ok(Reply::ok()) };
    call.service.cursors.kill_of_transaction(session, number);
    let Some(workspace) = opened.take() else { return Ok(Reply::ok()) };
    match call.engine.commit(workspace, Some(receipt)).await {
        Ok(()) => {
            opened.collections.confirm();
            call.service.transactions.committed(session, number);
            Ok(Reply::ok())
        }
        Err(engine::Error::Conflict { .. }) => {
            let text = "Write conflict during the commit of the transaction: a document has changed or expired since it began.";
            Err(Error::new(Code::WRITE_CONFLICT, text).with_label(TRANSIENT_TRANSACTION))
        }
        Err(error) => Err(error.into()),
    }
}

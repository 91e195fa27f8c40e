//! When a command may begin: the queue that its kind of work waits in, for all front ends of the server together.
//!
//! Greetings, authentication and operators' commands wait in none, and neither do the commands that end a transaction: others
//! wait for what it holds. The statements of an open transaction wait like all others of their kind and are never refused,
//! since the transaction would have to begin again. No holder of a permit waits for a transaction (`access::permit`), so
//! their wait ends.
//!
//! Statements of one transaction run one after another, as in MongoDB, where they share their session. Each waits for its
//! turn before it asks for a permit: no holder of a permit waits for another statement.

use transport::OwnedPermit;

use crate::access::executor::Turn;
use crate::access::permit::unless_stopped;
use crate::protocol::error::Result;
use crate::service::call::Call;
use crate::session::TxnNumber;

/// Waits for the turn of the command in its transaction, if it is part of one; an error if that has ended meanwhile.
pub(crate) async fn turn(call: &Call) -> Result<Option<Turn>> {
    let Some(turns) = call.executor.turns() else { return Ok(None) };
    let turn = unless_stopped(turns.lock_owned(), &call.cancellation).await?;
    if let Some((session, number)) = call.transaction() {
        call.service.transactions.check_open(session, number)?;
    }
    Ok(Some(turn))
}

/// Waits until the command may begin; if there is too much to do, returns an error after which clients try again.
pub(crate) async fn wait(call: &Call) -> Result<Option<OwnedPermit>> {
    let Some(work) = call.command.traits.queue else { return Ok(None) };
    let (admission, tenant) = (&call.service.settings.admission, call.connection.tenant());
    let goes_on = matches!(call.txn_number, Some(TxnNumber::Transaction { starts: false, .. }));
    if goes_on {
        return unless_stopped(admission.enter_owned_unbounded(tenant, work), &call.cancellation).await;
    }
    Ok(Some(admission.enter_owned(tenant, work).await?))
}

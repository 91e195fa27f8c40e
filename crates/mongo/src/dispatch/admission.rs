//! When a command may begin: the queue that its kind of work waits in, for all front ends of the server together.
//!
//! Greetings, authentication and operators' commands wait in none. Neither do commands of a transaction that has begun:
//! others wait for what it holds.

use transport::Permit;

use crate::protocol::error::Result;
use crate::service::Service;
use crate::service::call::Call;
use crate::session::{InTransaction, TxnNumber};

/// Waits until the command may begin; if there is too much to do, returns an error after which clients try again.
pub(crate) async fn wait<'a>(call: &Call, service: &'a Service) -> Result<Option<Permit<'a>>> {
    let goes_on = matches!(call.txn_number, Some(TxnNumber::Transaction { starts: false, .. }));
    let ends = call.command.transaction == InTransaction::Ends;
    let Some(work) = call.command.traits.queue.filter(|_| !goes_on && !ends) else { return Ok(None) };
    Ok(Some(service.settings.admission.enter(call.connection.tenant(), work).await?))
}

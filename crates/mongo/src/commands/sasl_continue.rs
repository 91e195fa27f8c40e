//! `saslContinue`: the further steps of an authentication.

use mql::Code;

use crate::commands::sasl_start::take;
use crate::protocol::error::{Error, Result};
use crate::protocol::reply::Reply;
use crate::service::call::Call;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    // Taken out, so that a failure ends the conversation.
    let conversation = call.connection.client.lock().conversation.take();
    let conversation =
        conversation.ok_or_else(|| Error::new(Code::PROTOCOL_ERROR, "No SASL session state found"))?;
    let (user, database) = conversation.about();
    match conversation.go_on(call.fields(), &call.service.users()) {
        Ok(step) => Ok(take(call, step).into()),
        Err(error) => {
            tracing::info!(peer = %call.connection.peer, ?user, ?database, "authentication failed");
            if error.code == Code::AUTHENTICATION_FAILED {
                call.service.wrong_proofs.add(1);
                let mut client = call.connection.client.lock();
                (client.wrong_proofs, client.was_wrong) = (client.wrong_proofs.saturating_add(1), true);
            }
            Err(error)
        }
    }
}

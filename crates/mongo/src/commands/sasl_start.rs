//! `saslStart`: the first step of an authentication.

use bson::Document;

use crate::auth::{Conversation, Step};
use crate::call::Call;
use crate::error::Result;
use crate::fields::Fields;
use crate::reply::Reply;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    call.connection.client.lock().conversation = None;
    Ok(begin(call, call.fields(), &call.database)?.into())
}

/// Begins a conversation, which replaces one that is under way.
pub(super) fn begin(call: &Call, fields: Fields<'_>, database: &str) -> Result<Document> {
    let step = Conversation::start(fields, database, &call.service.users())?;
    Ok(take(call, step))
}

/// What a step means for the connection.
pub(super) fn take(call: &Call, step: Step) -> Document {
    let mut client = call.connection.client.lock();
    if let Some(next) = &step.next {
        client.claimed = Some(next.about());
    }
    client.conversation = step.next;
    if let Some(identity) = step.proved {
        client.identity = Some(identity);
        client.wrong_proofs = 0;
    }
    step.reply
}

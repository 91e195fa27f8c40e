//! `saslStart`: the first step of an authentication.

use bson::{Document, DocumentRef, ValueRef};

use crate::auth::{Conversation, Step};
use crate::protocol::error::Result;
use crate::protocol::fields::Fields;
use crate::protocol::reply::Reply;
use crate::service::call::{Call, check_database};

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    call.connection.client.lock().conversation = None;
    Ok(begin(call, call.fields(), &call.database)?.into())
}

/// Runs the first step of an authentication that came with a hello. If the step fails, the client learns why when it tries again.
pub(super) fn speculate(call: &Call, first: DocumentRef<'_>) -> Option<Document> {
    first.get("saslStart")?;
    let database = first.get("db").and_then(ValueRef::as_str).unwrap_or("admin");
    begin(call, Fields::new("saslStart", first), check_database(database).ok()?).ok()
}

/// Begins a conversation, which replaces an earlier one.
fn begin(call: &Call, fields: Fields<'_>, database: &str) -> Result<Document> {
    let step = Conversation::start(fields, database, &call.service.users())?;
    Ok(take(call, step))
}

/// Notes the outcome of a step on the connection; returns its reply.
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

//! `startSession`: a session whose id the server generates.

use bson::Document;

use crate::protocol::error::Result;
use crate::protocol::limits::SESSION_MINUTES;
use crate::protocol::random;
use crate::protocol::reply::Reply;
use crate::service::call::Call;
use crate::session::SessionId;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let id = SessionId { uuid: random::uuid(), user: call.connection.user_digest() };
    let session = call.service.session(id)?;
    let reply =
        Document::new().with("id", session.id.to_document()).with("timeoutMinutes", SESSION_MINUTES as i32);
    Ok(reply.into())
}
